//! What a turn is decided on, as it is stored: read in pieces, and no more of it than may be held in memory.

use crate::{app::App, ask, problem::Result};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use windlass_core::{Job, JobKey, Namespace, Payload, State};
use windlass_plan::{
    meter::weight_of_text,
    plan::{self, Fact, Facts, Plan, StepTurn},
};

/// Memory that the results of other steps may take when they are read.
const ROOM_MAX: u64 = 32 << 20;
/// Results read at a time.
const RESULTS: usize = 16;
/// Bytes that are weighed within a millisecond.
const ON_THE_SPOT: usize = 512 << 10;

/// Not yet read as JSON, which may take a while.
#[derive(Clone, Default)]
pub struct Stored {
    others: Vec<(Arc<str>, State, bool, Option<Payload>)>,
    of: (Payload, Option<Payload>),
    /// Memory it takes at most when it is read.
    pub room: u64,
}

pub fn value(payload: &Payload) -> Value {
    serde_json::from_slice(payload.as_bytes()).unwrap_or_default()
}

impl Stored {
    pub fn read(&self) -> Facts {
        let others = self.others.iter().map(|(name, state, failure, output)| Fact {
            name: name.to_string(),
            state: *state,
            failure: *failure,
            output: output.as_ref().map(value).unwrap_or_default(),
        });
        let of = (value(&self.of.0), self.of.1.as_ref().map(value).unwrap_or_default());
        Facts { others: others.collect(), of }
    }

    async fn take(&mut self, app: &App, namespace: &Namespace, texts: Vec<Payload>) -> Result<Result<(), String>> {
        let bytes: usize = texts.iter().map(Payload::len).sum();
        // What takes more room than there is even as text need not be looked at.
        let weigh = move || texts.iter().map(|text| weight_of_text(text.as_bytes())).sum::<u64>();
        self.room += match bytes {
            bytes if bytes as u64 > ROOM_MAX => bytes as u64,
            bytes if bytes > ON_THE_SPOT => app.aside.run(namespace, weigh).await?,
            _ => weigh(),
        };
        Ok(self.fits())
    }

    fn fits(&self) -> Result<(), String> {
        if self.room > ROOM_MAX {
            return Err(format!(
                "what it looks at would take more than {ROOM_MAX} bytes of memory, the most that a turn may take: \
                 let the steps before it give less, or only the names of artifacts"
            ));
        }
        Ok(())
    }
}

/// The inner error is the step's own.
pub async fn load(app: &App, plan: &Plan, job: &Job, asked: StepTurn<'_>) -> Result<Result<Stored, String>> {
    let store = app.engine.store();
    let namespace = &job.key.namespace;
    let mut stored = Stored::default();
    if let Some(of) = job.spec.stage.of
        && let Some(body) = store.body(&JobKey::new(namespace, of)).await?
    {
        let texts = [Some(&body.payload), body.result.as_ref()].into_iter().flatten().cloned().collect();
        if let Err(why) = stored.take(app, namespace, texts).await? {
            return Ok(Err(why));
        }
        stored.of = (body.payload, body.result);
    }
    let others = match asked.gathers {
        true => {
            let own = store.body(&job.key).await?.map(|body| body.payload).unwrap_or_default();
            let is_large = own.len() > ask::LARGE;
            let read = move || plan::members(&value(&own));
            if is_large { app.aside.run(namespace, read).await? } else { read() }
        }
        false => job.spec.parents.clone(),
    };
    let others: Vec<JobKey> = others.into_iter().map(|id| JobKey::new(namespace, id)).collect();
    let others = store.jobs_named(&others).await?;
    let named: Vec<(&Arc<str>, &Job)> =
        others.iter().filter_map(|job| Some((&job.spec.node.as_ref()?.name, job))).collect();
    let wanted = named.iter().filter(|(name, job)| job.live.has_result && plan.wants(asked, name));
    let wanted: Vec<JobKey> = wanted.map(|(_, job)| job.key.clone()).collect();
    let mut results: HashMap<JobKey, Payload> = HashMap::new();
    for some in wanted.chunks(RESULTS) {
        let found = store.results(some).await?;
        let texts = found.iter().map(|(_, result)| result.clone()).collect();
        if let Err(why) = stored.take(app, namespace, texts).await? {
            return Ok(Err(why));
        }
        results.extend(found);
    }
    let other = |(name, job): (&Arc<str>, &Job)| (name.clone(), job.state, job.is_failure(), results.remove(&job.key));
    stored.others = named.into_iter().map(other).collect();
    Ok(Ok(stored))
}
