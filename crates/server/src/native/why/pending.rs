//! Why nobody has taken a job that could run.

use super::{
    AHEAD_MAX, Facts, NAMED_MAX, Seen,
    explain::{cause, command, word},
};
use crate::wire_time::text;
use windlass_api::why::Cause;
use windlass_core::worker::Liveness;

pub(super) fn pending(facts: &Facts) -> Vec<Cause> {
    let able: Vec<&Seen> = facts.workers.iter().filter(|seen| seen.fits(&facts.job)).collect();
    let (ready, quiet): (Vec<&Seen>, Vec<&Seen>) = able.into_iter().partition(|seen| seen.takes_jobs(facts.now));
    let free: Vec<&Seen> = ready.iter().copied().filter(|seen| !seen.is_busy()).collect();
    let mut causes = Vec::new();
    if free.is_empty() && facts.waiting == 0 {
        if !ready.is_empty() || !facts.strangers.is_empty() {
            causes.push(workers_busy(facts, &ready));
        }
        if !quiet.is_empty() {
            causes.push(workers_offline(facts, &quiet));
        }
        if causes.is_empty() {
            causes.push(no_worker_offers(facts));
        }
    }
    if facts.ahead > 0 {
        causes.push(jobs_ahead(facts));
    }
    if causes.is_empty() {
        causes.push(next(facts, &free));
    }
    causes
}

/// How a worker that would fit is started.
fn another(facts: &Facts) -> String {
    if let Some(start) = &facts.start {
        return start.clone();
    }
    let tags: String = facts.job.spec.tags.iter().map(|tag| format!(" --tag {}", word(tag))).collect();
    command(&facts.job, &format!("worker{tags} --allow-commands"))
}

fn ids(workers: &[&Seen]) -> Vec<String> {
    workers.iter().take(NAMED_MAX).map(|seen| seen.worker.id.to_string()).collect()
}

fn some(named: Vec<String>) -> String {
    let more = named.len().saturating_sub(3);
    let first = named.into_iter().take(3).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{first} and {more} others") } else { first }
}

fn workers_busy(facts: &Facts, ready: &[&Seen]) -> Cause {
    let busy = |seen: &&Seen| {
        let slots = seen.worker.slots.max(1);
        // It has nothing free since it took the last of them.
        let since = seen.held.iter().filter_map(|job| job.live.claimed_at).max();
        let since = since.map(|at| format!(" since {}", text(at))).unwrap_or_default();
        let first = seen.held.first().map(|job| format!(", for example with job {}", job.key.id)).unwrap_or_default();
        format!("{} ({} of {slots}{since}{first})", seen.worker.id, seen.held.len())
    };
    let stranger = |job: &windlass_core::Job| {
        let since = job.live.claimed_at.map(|at| format!(" since {}", text(at))).unwrap_or_default();
        let worker = job.holder().map(ToString::to_string).unwrap_or_default();
        format!("{worker} (not registered, with job {}{since})", job.key.id)
    };
    let named: Vec<String> = ready.iter().map(busy).chain(facts.strangers.iter().map(stranger)).collect();
    let words = format!("All workers that fit are busy: {}.", some(named));
    let strangers = facts.strangers.iter().filter_map(|job| job.holder()).map(ToString::to_string);
    let workers = ids(ready).into_iter().chain(strangers).take(NAMED_MAX).collect();
    let held = ready.iter().flat_map(|seen| &seen.held).chain(&facts.strangers);
    let jobs = held.take(NAMED_MAX).map(|job| job.key.id.0).collect();
    let slots = if facts.start.is_some() { "" } else { ", or one with more --slots" };
    let help = Some(format!("Start another worker{slots}: {}", another(facts)));
    Cause { workers, jobs, help, ..cause("workers_busy", words) }
}

fn workers_offline(facts: &Facts, quiet: &[&Seen]) -> Cause {
    let state = |seen: &&Seen| {
        let worker = &seen.worker;
        match (worker.draining, worker.liveness(facts.now)) {
            (true, Liveness::Online) => format!("{} is draining", worker.id),
            (_, liveness) => format!("{} has been {} since {}", worker.id, liveness.name(), text(worker.last_seen)),
        }
    };
    let named = quiet.iter().map(state).collect();
    let words = format!("Workers with the required tags exist, but none of them takes jobs now: {}.", some(named));
    let draining =
        quiet.iter().find(|seen| seen.worker.draining && seen.worker.liveness(facts.now) == Liveness::Online);
    let help = match draining {
        Some(seen) => {
            let line = format!("workers undrain {}", word(seen.worker.id.as_str()));
            format!("End the drain: {}", command(&facts.job, &line))
        }
        None => format!("Start it again, or another one: {}", another(facts)),
    };
    Cause { workers: ids(quiet), help: Some(help), ..cause("workers_offline", words) }
}

fn no_worker_offers(facts: &Facts) -> Cause {
    let required = &facts.job.spec.tags;
    let offered = |tag: &&str| !facts.workers.iter().any(|seen| seen.worker.tags.contains(tag));
    let missing: Vec<&str> = required.iter().filter(offered).collect();
    let what = match missing.as_slice() {
        _ if facts.workers.is_empty() => "No worker is registered in this namespace".to_owned(),
        [] => format!("No registered worker offers all of {} together", required.iter().collect::<Vec<_>>().join(", ")),
        missing => format!("No registered worker offers {}", missing.join(", ")),
    };
    let words = format!("{what}, and no unregistered worker that could take it waits or works.");
    Cause { help: Some(format!("Start one: {}", another(facts))), ..cause("no_worker_offers", words) }
}

fn jobs_ahead(facts: &Facts) -> Cause {
    let more = if facts.ahead >= AHEAD_MAX { "at least " } else { "" };
    let words = format!("{more}{} jobs with the same tags go first.", facts.ahead);
    let help =
        format!("Show them: {}; start another worker: {}", command(&facts.job, "jobs --state pending"), another(facts));
    Cause { help: Some(help), ..cause("jobs_ahead", words) }
}

fn next(facts: &Facts, free: &[&Seen]) -> Cause {
    let heard = |seen: &&Seen| format!("{} (last seen at {})", seen.worker.id, text(seen.worker.last_seen));
    let words = match (free, facts.waiting) {
        ([], _) => "It is next: a worker that is not registered waits for such a job.".to_owned(),
        (free, 0) => {
            let named = some(free.iter().map(heard).collect());
            format!("It is next: the first worker that claims gets it. Free, but not claiming at the moment: {named}.")
        }
        (_, _) => "It is next: a worker that waits for such a job is about to get it.".to_owned(),
    };
    Cause { workers: ids(free), ..cause("ready", words) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{super::explain::explain, *};
    use std::sync::Arc;
    use windlass_api::Uuid;
    use windlass_core::{
        Job, JobId, JobKey, Lane, Lease, Millis, Namespace, Spec, State as JobState, Tags, Timestamp, WorkerId,
        job::{ConcurrencyKey, Live},
        policy::WorkerPolicy,
        worker::Worker,
    };

    pub const NOW: Timestamp = Timestamp(1_763_208_000_000);

    pub fn job(state: JobState, tags: &[&str], live: Live) -> Job {
        let (namespace, tags) = (Namespace::default(), tags.iter().copied().collect::<Tags>());
        let concurrency = Some(ConcurrencyKey { key: "k".into(), limit: 2 });
        Job {
            lane: Lane::of(&namespace, &tags),
            key: JobKey::new(&namespace, JobId::from_u128(1)),
            priority: 0,
            seq: 0,
            state,
            due: None,
            spec: Arc::new(Spec { tags, concurrency, ..Spec::default() }),
            live,
        }
    }

    fn seen(name: &str, tags: &[&str], silent: i64, draining: bool) -> Seen {
        let worker = Worker {
            id: WorkerId::trusted(name),
            tags: tags.iter().copied().collect(),
            slots: 1,
            owner: None,
            registered_at: NOW,
            last_seen: Timestamp(NOW.0 - silent),
            doubt_until: None,
            declared: Liveness::Online,
            away: false,
            draining,
            policy: WorkerPolicy::default(),
            extra: None,
        };
        Seen { worker, held: Vec::new(), looked: true }
    }

    pub fn facts(job: Job, workers: Vec<Seen>, ahead: usize) -> Facts {
        let (parents, rivals, strangers) = (Vec::new(), Vec::new(), Vec::new());
        Facts { job, now: NOW, parents, rivals, last: None, workers, strangers, waiting: 0, start: None, ahead }
    }

    /// Codes, the summary, and what helps against the first cause.
    pub fn told(facts: &Facts) -> (Vec<String>, String, String) {
        let why = explain(facts);
        let help = why.reasons.first().and_then(|cause| cause.help.clone()).unwrap_or_default();
        (why.reasons.iter().map(|cause| cause.code.clone()).collect(), why.summary, help)
    }

    /// Held by `worker` for so many milliseconds.
    fn taken(worker: &str, tags: &[&str], ago: i64) -> Job {
        let lease = Lease {
            secret: Uuid::from_u128(9),
            worker: WorkerId::trusted(worker),
            principal: None,
            length: Millis(1),
            until: None,
            deadline: None,
        };
        let live = Live { lease: Some(lease), claimed_at: Some(Timestamp(NOW.0 - ago)), ..Live::default() };
        let mut job = job(JobState::Running, tags, live);
        job.key.id = JobId::from_u128(2);
        job
    }

    fn gpu_job() -> Job {
        job(JobState::Pending, &["gpu"], Live::default())
    }

    /// Workers and jobs ahead; codes, and words of the summary and of what helps.
    type Case = (Vec<Seen>, usize, &'static [&'static str], &'static str, &'static str);

    #[test]
    fn a_pending_job_waits_for_workers_or_for_its_turn() {
        let gpu = |silent, draining| seen("g", &["gpu"], silent, draining);
        let table: Vec<Case> = vec![
            (vec![], 0, &["no_worker_offers"], "No worker is registered", "windlass worker --tag gpu --allow-commands"),
            (vec![seen("c", &["cpu"], 0, false)], 0, &["no_worker_offers"], "offers gpu", "windlass worker --tag gpu"),
            (vec![gpu(0, false)], 0, &["ready"], "g (last seen at 2025-11-15T12:00:00.000Z)", ""),
            (vec![gpu(0, false)], 7, &["jobs_ahead"], "7 jobs", "windlass jobs --state pending"),
            (vec![gpu(0, false)], AHEAD_MAX, &["jobs_ahead"], "at least 1000 jobs", ""),
            (
                vec![gpu(600_000, false)],
                0,
                &["workers_offline"],
                "g has been offline since 2025-11-15T11:50:00.000Z",
                "windlass worker --tag gpu",
            ),
            (vec![gpu(0, true)], 3, &["workers_offline", "jobs_ahead"], "g is draining", "windlass workers undrain g"),
            (vec![gpu(600_000, false), seen("h", &["gpu", "x"], 0, false)], 0, &["ready"], "It is next", ""),
        ];
        for (workers, ahead, codes, words, help) in table {
            let (found, summary, helps) = told(&facts(gpu_job(), workers, ahead));
            assert_eq!(found, codes, "{summary}");
            assert!(summary.contains(words), "{summary}");
            assert!(helps.contains(help), "{helps}");
        }
        let both = job(JobState::Pending, &["cpu", "gpu"], Live::default());
        let apart = vec![seen("c", &["cpu"], 0, false), seen("g", &["gpu"], 0, false)];
        assert!(told(&facts(both, apart, 0)).1.contains("all of cpu, gpu together"));
    }

    #[test]
    fn it_is_not_called_next_while_all_workers_that_fit_are_busy_or_dead() {
        let busy = Seen { held: vec![taken("g", &["gpu"], 60_000)], ..seen("g", &["gpu"], 0, false) };
        let dead = seen("h", &["gpu"], 600_000, false);
        let (codes, summary, help) = told(&facts(gpu_job(), vec![busy, dead], 0));
        assert_eq!(codes, ["workers_busy", "workers_offline"]);
        assert!(summary.contains("g (1 of 1 since 2025-11-15T11:59:00.000Z, for example with job"), "{summary}");
        assert!(help.contains("windlass worker --tag gpu --allow-commands"), "{help}");
        let half = Seen { held: vec![taken("g", &["gpu"], 60_000)], ..seen("g", &["gpu"], 0, false) };
        let half = Seen { worker: Worker { slots: 2, ..half.worker }, ..half };
        assert_eq!(told(&facts(gpu_job(), vec![half], 0)).0, ["ready"]);
    }

    #[test]
    fn workers_that_did_not_register_count_while_they_wait_or_work() {
        let mut working = facts(gpu_job(), vec![seen("c", &["cpu"], 0, false)], 0);
        working.strangers = vec![taken("curl", &["gpu"], 60_000)];
        let (codes, summary, _) = told(&working);
        assert_eq!(codes, ["workers_busy"]);
        assert!(summary.contains("curl (not registered, with job") && summary.contains("11:59:00"), "{summary}");
        let mut waiting = facts(gpu_job(), Vec::new(), 0);
        waiting.waiting = 1;
        let (codes, summary, _) = told(&waiting);
        assert_eq!(codes, ["ready"]);
        assert!(summary.contains("not registered waits"), "{summary}");
    }

    #[test]
    fn names_in_commands_are_quoted_for_the_shell() {
        let odd = job(JobState::Pending, &["a b'c;$(x)"], Live::default());
        assert!(told(&facts(odd, Vec::new(), 0)).2.contains("--tag 'a b'\\''c;$(x)' --allow-commands"));
        let theirs = Facts { start: Some("their own worker".into()), ..facts(gpu_job(), Vec::new(), 0) };
        assert_eq!(told(&theirs).2, "Start one: their own worker");
    }
}
