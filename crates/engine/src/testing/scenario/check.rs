//! What a scenario can look at: jobs, runs, workers, records and the events told.

use super::{
    super::TestResult,
    command::record_key,
    line::{Line, length},
    names::{Names, shown},
    options::Options,
    stage::Stage,
    told::run_state,
};
use crate::{clock::Clock, store::JobQuery};
use serde_json::from_str;
use windlass_core::{
    Job, JobKey, Record, State, What, concurrency::KeyUse, definition::DefinitionHead, run::Run, schedule::Schedule,
    worker::Worker,
};

pub(super) struct Look<'a> {
    pub stage: &'a mut Stage,
}

const LOOKS: [&str; 13] = [
    "job",
    "new",
    "events",
    "attempts",
    "result",
    "payload",
    "logged",
    "worker",
    "run",
    "record",
    "schedule",
    "key",
    "definition",
];

impl Look<'_> {
    pub fn knows(word: &str, line: &Line) -> bool {
        (LOOKS.contains(&word) || word == "count") && line.words.get(1).is_some_and(|second| second != "claims")
    }

    pub async fn check(&mut self, line: &Line) -> TestResult<()> {
        let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
        match words[..] {
            ["events", "worker", name, ref told @ ..] => self.events(&["worker", name], told).await,
            ["events", "record", name, ref told @ ..] => self.events(&["record", name], told).await,
            ["events", name, ref told @ ..] => self.events(&[name], told).await,
            ["attempts", job, ref reasons @ ..] => self.attempts(job, reasons).await,
            ["result", job, ref text @ ..] => self.body(job, "result", text).await,
            ["payload", job, ref text @ ..] => self.body(job, "payload", text).await,
            ["logged", job, ref pieces @ ..] => self.log(job, pieces).await,
            ["count", state, number] => self.count(state, number).await,
            ["new", job, ref state @ ..] => {
                self.name_new(job).await?;
                self.facts(line, "job", job, state).await
            }
            [kind, name, ref state @ ..] => self.facts(line, kind, name, state).await,
            _ => Err("look at what?".into()),
        }
    }

    /// `j1 pending`, `r1 failed`, `w1 offline`, `new j2 pending`, each perhaps `gone`.
    pub async fn state(&mut self, clause: &[String]) -> TestResult<()> {
        let words: Vec<&str> = clause.iter().map(String::as_str).collect();
        let (name, state) = match words[..] {
            ["new", name, state] => {
                self.name_new(name).await?;
                (name, state)
            }
            [name, state] => (name, state),
            _ => return Err(format!("write j1 pending, not {:?}", clause.join(" "))),
        };
        let kind = match &self.stage.names {
            names if names.is_job(name) => "job",
            names if names.is_run(name) => "run",
            _ => "worker",
        };
        self.facts(&Line::default(), kind, name, &[state]).await
    }

    /// Gives a name to the oldest job that has none: a retry or a scheduled firing drew its id by itself.
    async fn name_new(&mut self, name: &str) -> TestResult<()> {
        let query = JobQuery { namespace: Some(self.stage.namespace.clone()), limit: 10_000, ..JobQuery::default() };
        let jobs = self.stage.bench.store.jobs(&query).await.map_err(|error| error.to_string())?;
        let unnamed = jobs.iter().filter(|job| !self.stage.names.knows(job.key.id)).min_by_key(|job| job.seq);
        let id = unnamed.ok_or("there is no new job")?.key.id;
        self.stage.names.bind_job(name, id);
        Ok(())
    }

    async fn facts(&mut self, line: &Line, kind: &str, name: &str, state: &[&str]) -> TestResult<()> {
        let mut options = Options::of(line);
        let namespace = options.namespace(&self.stage.namespace)?;
        let found = self.find(kind, name, &namespace).await?;
        let expected_state = state.first().copied();
        let Some(facts) = found else {
            return if expected_state == Some("gone") { Ok(()) } else { Err(format!("there is no {kind} {name}")) };
        };
        if let Some(expected) = expected_state {
            compare(&format!("{name} is"), expected, &facts.state)?;
        }
        for (fact, expected) in line.options.iter().filter(|(fact, _)| fact != "ns") {
            let is = facts.get(fact).ok_or_else(|| format!("a {kind} has no {fact}"))?;
            compare(&format!("{fact} of {name} is"), expected, &is)?;
        }
        Ok(())
    }

    async fn find(
        &mut self,
        kind: &str,
        name: &str,
        namespace: &windlass_core::Namespace,
    ) -> TestResult<Option<Facts<'_>>> {
        let now = self.stage.bench.clock.now();
        if kind == "job" {
            let key = JobKey::new(namespace, self.stage.names.job(name));
            let job = self.stage.bench.store.job(&key).await.map_err(|error| error.to_string())?;
            let names = &self.stage.names;
            return Ok(job.map(|job| Facts { state: job.state.name().into(), of: Of::Job(Box::new(job), names) }));
        }
        let at = match kind {
            "run" => format!("run/{}", self.stage.names.run(name)),
            "worker" => format!("worker/{name}"),
            "schedule" => format!("schedule/{name}"),
            "key" => format!("concurrency/{name}"),
            "definition" => format!("definition/{name}"),
            _ => name.to_string(),
        };
        let key = record_key(namespace, &at)?;
        let record = self.stage.bench.store.record(&key).await.map_err(|error| error.to_string())?;
        let Some(record) = record else { return Ok(None) };
        Facts::of_record(kind, record, now).map(Some)
    }

    async fn events(&mut self, about: &[&str], expected: &[&str]) -> TestResult<()> {
        let told = self.stage.bench.events().await?;
        let names = &mut self.stage.names;
        let wanted: Box<dyn Fn(&What) -> bool> = match *about {
            ["worker", name] => Box::new(move |what| worker_of(what) == Some(name)),
            ["record", name] => Box::new(move |what| record_of(what).as_deref() == Some(name)),
            [name] if names.is_run(name) => {
                let run = names.run(name);
                Box::new(
                    move |what| matches!(what, What::RunStarted { run: of } | What::RunGrew { run: of, .. } | What::RunFinished { run: of, .. } if *of == run),
                )
            }
            [name] if names.is_job(name) => {
                let job = names.job(name);
                Box::new(move |what| what.job() == Some(job))
            }
            _ => return Err(format!("nothing is called {}", about.join(" "))),
        };
        let is: Vec<&str> = told.iter().filter(|(_, e)| wanted(&e.what)).map(|(_, event)| event.what.name()).collect();
        compare(&format!("events of {} are", about.join(" ")), &expected.join(" "), &is.join(" "))
    }

    async fn attempts(&mut self, job: &str, expected: &[&str]) -> TestResult<()> {
        let body = self.read_body(job).await?;
        let is: Vec<String> = body.attempts.iter().map(|attempt| word(&attempt.outcome.reason)).collect();
        compare(&format!("past attempts of {job} are"), &expected.join(" "), &is.join(" "))
    }

    async fn body(&mut self, job: &str, part: &str, expected: &[&str]) -> TestResult<()> {
        let body = self.read_body(job).await?;
        let payload = if part == "result" { body.result } else { Some(body.payload) };
        let text = |payload: windlass_core::Payload| String::from_utf8_lossy(payload.as_bytes()).into_owned();
        let is = payload.map_or_else(|| "none".to_string(), text);
        compare(&format!("{part} of {job} is"), &expected.join(" "), &is)
    }

    async fn read_body(&mut self, job: &str) -> TestResult<crate::store::JobBody> {
        let key = JobKey::new(&self.stage.namespace, self.stage.names.job(job));
        let body = self.stage.bench.store.body(&key).await.map_err(|error| error.to_string())?;
        body.ok_or_else(|| format!("there is no job {job}"))
    }

    async fn log(&mut self, job: &str, expected: &[&str]) -> TestResult<()> {
        let key = JobKey::new(&self.stage.namespace, self.stage.names.job(job));
        let log = super::super::snapshot::whole_log(&*self.stage.bench.store, &key).await;
        let log = log.map_err(|error| error.to_string())?;
        let is: Vec<String> =
            log.iter().map(|piece| String::from_utf8_lossy(piece.data.as_bytes()).into_owned()).collect();
        compare(&format!("log of {job} is"), &expected.join("|"), &is.join("|"))
    }

    async fn count(&mut self, state: &str, expected: &str) -> TestResult<()> {
        let states = State::ALL.into_iter().filter(|have| have.name() == state || state == "all").collect();
        let query = JobQuery { namespace: Some(self.stage.namespace.clone()), states, ..JobQuery::default() };
        let count = self.stage.bench.store.count(&query, 100_000).await.map_err(|error| error.to_string())?;
        compare(&format!("number of {state} jobs is"), expected, &count.to_string())
    }
}

fn compare(what: &str, expected: &str, is: &str) -> TestResult<()> {
    let same_length = || matches!((length(expected), length(is)), (Ok(expected), Ok(is)) if expected == is);
    if expected == is || same_length() { Ok(()) } else { Err(format!("{what} {is:?}, not {expected:?}")) }
}

fn worker_of(what: &What) -> Option<&str> {
    match what {
        What::WorkerRegistered { worker }
        | What::WorkerOnline { worker }
        | What::WorkerUnreachable { worker }
        | What::WorkerOffline { worker }
        | What::WorkerDraining { worker }
        | What::WorkerUndrained { worker }
        | What::WorkerDeleted { worker } => Some(worker.as_str()),
        _ => None,
    }
}

fn record_of(what: &What) -> Option<String> {
    match what {
        What::RecordPut { kind, key } | What::RecordDeleted { kind, key } => Some(format!("{kind}/{key}")),
        What::DefinitionPut { name, .. }
        | What::DefinitionDeleted { name }
        | What::Linked { definition: name, .. }
        | What::Unlinked { definition: name, .. } => Some(format!("definition/{name}")),
        _ => None,
    }
}

/// A reason as it is stored.
fn word(reason: &windlass_core::Reason) -> String {
    serde_json::to_string(reason).unwrap_or_default().trim_matches('"').to_string()
}

pub(super) struct Facts<'a> {
    state: String,
    of: Of<'a>,
}

enum Of<'a> {
    Job(Box<Job>, &'a Names),
    Run(Box<Run>),
    Worker(Box<Worker>),
    Schedule(Box<Schedule>),
    Key(KeyUse),
    Definition(DefinitionHead),
    Record(Record),
}

impl Facts<'_> {
    fn of_record(kind: &str, record: Record, now: windlass_core::Timestamp) -> TestResult<Self> {
        let odd = |error: serde_json::Error| format!("record {:?}: {error}", record.key);
        let (state, of) = match kind {
            "run" => {
                let run: Run = from_str(&record.value).map_err(odd)?;
                (run_state(run.state()).to_string(), Of::Run(Box::new(run)))
            }
            "worker" => {
                let worker: Worker = from_str(&record.value).map_err(odd)?;
                (worker.liveness(now).name().to_string(), Of::Worker(Box::new(worker)))
            }
            "schedule" => ("there".to_string(), Of::Schedule(Box::new(from_str(&record.value).map_err(odd)?))),
            "key" => ("there".to_string(), Of::Key(from_str(&record.value).map_err(odd)?)),
            "definition" => {
                let head: DefinitionHead = from_str(&record.value).map_err(odd)?;
                let state = if head.deleted_at.is_some() { "deleted" } else { "there" };
                (state.to_string(), Of::Definition(head))
            }
            _ => ("there".to_string(), Of::Record(record)),
        };
        Ok(Facts { state, of })
    }

    /// None: there is no such fact.
    fn get(&self, fact: &str) -> Option<String> {
        let time = |at: Option<windlass_core::Timestamp>| at.map_or_else(|| "none".to_string(), shown);
        Some(match (&self.of, fact) {
            (Of::Job(job, names), _) => return job_fact(job, names, fact),
            (Of::Run(run), "completed") => run.completed.to_string(),
            (Of::Run(run), "failed") => run.failed.to_string(),
            (Of::Run(run), "cancelled") => run.cancelled.to_string(),
            (Of::Run(run), "skipped") => run.skipped.to_string(),
            (Of::Run(run), "open") => run.open.to_string(),
            (Of::Run(run), "total") => run.total.to_string(),
            (Of::Worker(worker), "declared") => worker.declared.name().to_string(),
            (Of::Worker(worker), "seen") => shown(worker.last_seen),
            (Of::Worker(worker), "registered") => shown(worker.registered_at),
            (Of::Worker(worker), "doubted") => time(worker.doubt_until),
            (Of::Worker(worker), "draining") => yes(worker.draining),
            (Of::Worker(worker), "tags") => worker.tags.iter().collect::<Vec<_>>().join(","),
            (Of::Schedule(schedule), "fired") => schedule.fired.to_string(),
            (Of::Schedule(schedule), "next") => shown(schedule.next_at),
            (Of::Key(key), "used") => key.used.to_string(),
            (Of::Definition(head), "latest") => head.latest.to_string(),
            (Of::Definition(head), "links") => head.links.to_string(),
            (Of::Definition(head), "created") => time(head.created_at),
            (Of::Record(record), "version") => record.version.to_string(),
            (Of::Record(record), "value") => record.value.to_string(),
            (Of::Record(record), "parent") => record.parent.as_deref().unwrap_or("none").to_string(),
            (Of::Record(record), "due") => time(record.due),
            _ => return None,
        })
    }
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.into()
}

fn job_fact(job: &Job, names: &Names, fact: &str) -> Option<String> {
    let live = &job.live;
    let time = |at: Option<windlass_core::Timestamp>| at.map_or_else(|| "none".to_string(), shown);
    let linked = |id: Option<windlass_core::JobId>| id.map_or_else(|| "none".to_string(), |id| names.job_name(id));
    let reason = || live.outcome.as_ref().map_or_else(|| "none".to_string(), |outcome| word(&outcome.reason));
    Some(match fact {
        "attempt" => live.attempt.to_string(),
        "spent" => live.spent.to_string(),
        "losses" => live.losses.to_string(),
        "waiting" => live.waiting.to_string(),
        "priority" => job.priority.to_string(),
        "reason" => reason(),
        "message" => live.outcome.as_ref().map_or_else(String::new, |outcome| outcome.message.to_string()),
        "holder" => job.holder().map_or("none", |worker| worker.as_str()).to_string(),
        "definition" => {
            let definition = job.spec.definition.as_ref();
            definition.map_or_else(|| "none".to_string(), |known| format!("{}@{}", known.name, known.version))
        }
        "owner" => job.spec.owner.as_deref().unwrap_or("none").to_string(),
        "until" => time(live.lease.as_ref().and_then(|lease| lease.until)),
        "due" => time(job.due),
        "run-at" => time(live.run_at),
        "started" => time(live.started_at),
        "finished" => time(live.finished_at),
        "slot" => yes(live.has_place),
        "progress" => live.progress.as_ref().map_or_else(|| "none".to_string(), |p| p.percent.to_string()),
        "progress-message" => live.progress.as_ref().map_or_else(String::new, |p| p.message.to_string()),
        "cancel-message" => live.cancel.as_ref().map_or_else(String::new, |cancel| cancel.message.to_string()),
        "cancel-by" => live.cancel.as_ref().map_or_else(|| "none".to_string(), |cancel| cancel.by.to_string()),
        "retry-of" => linked(job.spec.retry_of),
        "retry-job" => linked(live.retry_job),
        "retried-by" => linked(live.retried_by),
        "log-bytes" => live.log.bytes.to_string(),
        "log-dropped" => live.log.dropped_bytes.to_string(),
        _ => return None,
    })
}
