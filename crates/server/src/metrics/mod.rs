//! What is counted, for Prometheus. Label values come from tables, never from callers, so their number is bounded; a route has
//! series once it was called. Jobs and workers are asked of the store, which knows them after a restart and those of other
//! servers too, and never for more than a bounded number of rows.

mod figures;
pub mod text;

use crate::problem::Result;
use figures::Figures;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
pub use text::Format;
use text::{Family, Kind, Samples, Text};
use windlass_core::Namespace;
use windlass_engine::{
    Counts, Engine,
    tally::{Histogram, SHORT, Tally},
};

/// Statuses whose counters are kept at hand; others are looked up.
const AT_HAND: [u16; 12] = [200, 201, 204, 400, 401, 403, 404, 409, 413, 422, 500, 503];

/// What writes its samples.
type Write = fn(&Seen<'_>, &mut Samples<'_>);

const fn family(name: &'static str, kind: Kind, help: &'static str, write: Write) -> Family {
    Family { name, kind, help, write }
}

/// Every family, in the order in which it is served.
pub const FAMILIES: &[Family] = &[
    family("windlass_jobs", Kind::Gauge, "Unfinished jobs by state, counted up to 10000 each", |seen, samples| {
        seen.figures.jobs.iter().for_each(|(state, count)| samples.put(&[("state", *state)], count))
    }),
    family(
        "windlass_oldest_waiting_seconds",
        Kind::Gauge,
        "How long the oldest pending job has waited; 0 if none is pending",
        |seen, samples| samples.put(&[], seen.figures.oldest_seconds),
    ),
    family(
        "windlass_jobs_submitted",
        Kind::Counter,
        "Jobs submitted to this server, including steps of runs",
        |seen, samples| samples.put(&[], load(&seen.tally.submitted)),
    ),
    family("windlass_jobs_claimed", Kind::Counter, "Jobs given to workers by this server", |seen, samples| {
        samples.put(&[], load(&seen.tally.claimed))
    }),
    family(
        "windlass_jobs_requeued",
        Kind::Counter,
        "Attempts that failed or were lost and are retried",
        |seen, samples| samples.put(&[], load(&seen.tally.requeued)),
    ),
    family("windlass_jobs_ended", Kind::Counter, "Jobs that ended, by outcome", |seen, samples| {
        samples.put(&[("outcome", "completed")], load(&seen.tally.completed));
        samples.put(&[("outcome", "failed")], load(&seen.tally.failed));
        samples.put(&[("outcome", "cancelled")], load(&seen.tally.cancelled));
        samples.put(&[("outcome", "skipped")], load(&seen.tally.skipped));
    }),
    family(
        "windlass_job_wait_seconds",
        Kind::Histogram,
        "Time from when a job could be claimed to its claim",
        |seen, samples| samples.histogram(&[], &seen.tally.wait.observed()),
    ),
    family(
        "windlass_job_run_seconds",
        Kind::Histogram,
        "Time from a job's claim to the report that ended it",
        |seen, samples| samples.histogram(&[], &seen.tally.run.observed()),
    ),
    family(
        "windlass_report_seconds",
        Kind::Histogram,
        "Time from a worker's report to its durable acknowledgement",
        |seen, samples| samples.histogram(&[], &seen.tally.report.observed()),
    ),
    family("windlass_workers", Kind::Gauge, "Registered workers by state, counted up to 10000", |seen, samples| {
        seen.figures.workers.iter().for_each(|(state, count)| samples.put(&[("state", *state)], count));
    }),
    family(
        "windlass_api_workers",
        Kind::Gauge,
        "Registered workers of a dialect by state, counted up to 10000",
        |seen, samples| {
            for (api, states) in &seen.figures.api_workers {
                states.iter().for_each(|(state, count)| samples.put(&[("api", *api), ("state", *state)], count));
            }
        },
    ),
    family(
        "windlass_api_jobs_pending",
        Kind::Gauge,
        "Jobs of a dialect that wait for a worker, counted up to 10000",
        |seen, samples| {
            seen.figures.api_pending.iter().for_each(|(api, count)| samples.put(&[("api", *api)], count));
        },
    ),
    family("windlass_claims_waiting", Kind::Gauge, "Claims that wait for a job on this server", |seen, samples| {
        samples.put(&[], seen.counts.waiting)
    }),
    family("windlass_event_readers", Kind::Gauge, "Readers of the event feed on this server", |seen, samples| {
        samples.put(&[], seen.counts.readers)
    }),
    family("windlass_engine_commands", Kind::Counter, "Commands run, including refused ones", |seen, samples| {
        samples.put(&[], seen.counts.commands)
    }),
    family("windlass_engine_commits", Kind::Counter, "Transactions committed", |seen, samples| {
        samples.put(&[], seen.counts.batches)
    }),
    family("windlass_engine_commit_seconds", Kind::Histogram, "Duration of a transaction", |seen, samples| {
        samples.histogram(&[], &seen.tally.commit.observed())
    }),
    family(
        "windlass_engine_syncs",
        Kind::Counter,
        "Fsyncs; with PostgreSQL they are part of the commit",
        |seen, samples| samples.put(&[], seen.tally.sync.observed().count),
    ),
    family("windlass_engine_sync_seconds", Kind::Histogram, "Duration of an fsync", |seen, samples| {
        samples.histogram(&[], &seen.tally.sync.observed())
    }),
    family("windlass_log_bytes", Kind::Counter, "Bytes of job logs received", |seen, samples| {
        samples.put(&[], seen.counts.log_bytes)
    }),
    family(
        "windlass_http_requests",
        Kind::Counter,
        "Requests answered, by method, route and status",
        |seen, samples| {
            for ((route, method), answered) in seen.metrics.routes.lock().iter() {
                answered.each(|status, count| {
                    let status = status.to_string();
                    samples.put(&[("method", *method), ("route", *route), ("status", &status)], count);
                });
            }
        },
    ),
    family(
        "windlass_http_request_seconds",
        Kind::Histogram,
        "Time until the response head, by API, including long polls",
        |seen, samples| {
            let known = seen.metrics.seconds.lock();
            let called = known.iter().map(|(surface, seconds)| (surface, seconds.observed()));
            for (surface, observed) in called.filter(|(_, observed)| observed.count > 0) {
                samples.histogram(&[("api", *surface)], &observed);
            }
        },
    ),
    family("windlass_http_connections", Kind::Gauge, "Open connections", |seen, samples| {
        samples.put(&[], seen.metrics.open_connections())
    }),
    family("windlass_http_connections_refused", Kind::Counter, "Connections refused, by reason", |seen, samples| {
        seen.metrics.refused.lock().iter().for_each(|(reason, count)| samples.put(&[("reason", *reason)], count));
    }),
];

/// What was answered on one route.
#[derive(Default)]
struct Answered {
    at_hand: [AtomicU64; AT_HAND.len()],
    others: Mutex<BTreeMap<u16, u64>>,
}

impl Answered {
    fn count(&self, status: u16) {
        match AT_HAND.iter().position(|known| *known == status) {
            Some(at) => {
                self.at_hand[at].fetch_add(1, Relaxed);
            }
            None => *self.others.lock().entry(status).or_default() += 1,
        }
    }

    fn each(&self, mut see: impl FnMut(u16, u64)) {
        let at_hand = AT_HAND.iter().zip(&self.at_hand).map(|(status, count)| (*status, count.load(Relaxed)));
        at_hand.filter(|(_, count)| *count > 0).for_each(|(status, count)| see(status, count));
        self.others.lock().iter().for_each(|(status, count)| see(*status, *count));
    }
}

#[derive(Default)]
pub struct Metrics {
    routes: Mutex<BTreeMap<(&'static str, &'static str), Arc<Answered>>>,
    /// By surface, in the order in which they were first met.
    seconds: Mutex<Vec<(&'static str, Arc<Histogram>)>>,
    connections: Arc<AtomicI64>,
    refused: Mutex<BTreeMap<&'static str, u64>>,
    figures: figures::FiguresCache,
}

impl Metrics {
    /// An open connection, until dropped.
    pub fn connection(&self) -> Open {
        self.connections.fetch_add(1, Relaxed);
        Open(self.connections.clone())
    }

    pub fn open_connections(&self) -> i64 {
        self.connections.load(Relaxed)
    }

    pub fn refused_connection(&self, reason: &'static str) {
        *self.refused.lock().entry(reason).or_default() += 1;
    }

    pub fn meter(&self, surface: &'static str, method: &'static str, route: &'static str) -> Meter {
        let answered = self.routes.lock().entry((route, method)).or_default().clone();
        Meter { method, route, answered, seconds: self.seconds_of(surface) }
    }

    fn seconds_of(&self, surface: &'static str) -> Arc<Histogram> {
        let mut known = self.seconds.lock();
        if let Some((_, seconds)) = known.iter().find(|(name, _)| *name == surface) {
            return seconds.clone();
        }
        let seconds = Arc::new(Histogram::new(SHORT));
        known.push((surface, seconds.clone()));
        seconds
    }

    /// As Prometheus reads it. Some are told of each dialect's namespace.
    pub async fn text(
        &self,
        engine: &Engine,
        dialects: &[(&'static str, Namespace)],
        format: Format,
    ) -> Result<String> {
        let figures = self.figures.get(engine, dialects).await?;
        let seen = Seen { metrics: self, figures: &figures, tally: engine.tally(), counts: engine.counts() };
        let mut text = Text::new(format);
        for family in FAMILIES {
            (family.write)(&seen, &mut text.family(family));
        }
        Ok(text.end())
    }
}

/// What metrics are written from.
pub struct Seen<'a> {
    metrics: &'a Metrics,
    figures: &'a Figures,
    tally: &'a Tally,
    counts: Counts,
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

pub struct Open(Arc<AtomicI64>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Counts the requests of one route.
pub struct Meter {
    pub method: &'static str,
    pub route: &'static str,
    answered: Arc<Answered>,
    seconds: Arc<Histogram>,
}

impl Meter {
    pub fn count(&self, status: u16, took: Duration) {
        self.seconds.observe(took);
        self.answered.count(status);
    }
}

/// The table of `docs/operations.md`.
pub fn markdown() -> String {
    let row = |family: &Family| format!("| `{}` | {} | {} |\n", family.shown(), family.kind.name(), family.help);
    format!("| metric | type | meaning |\n|---|---|---|\n{}", FAMILIES.iter().map(row).collect::<String>())
}
