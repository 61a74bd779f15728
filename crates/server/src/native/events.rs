//! `/api/v1/events`: what happened, as it happens.

use crate::{
    app::App,
    ask::Query,
    auth::Caller,
    convert, flows,
    problem::{Code, Problem, Result},
    route::{Access, Route},
    sse::{self, Closed, Sink},
};
use axum::{extract::State, response::Response};
use http::HeaderMap;
use std::collections::HashSet;
use tokio::time::{Instant, sleep_until};
use windlass_api::event::ListenEvents;
use windlass_core::{About, Event as Row, JobId, Namespace, RunId, What};
use windlass_engine::{FeedItem, Subscription};

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/events", Access::Viewer, listen)
            .says("Follow events as server-sent events; `namespace=*` follows all namespaces the token may see")
            .query::<ListenEvents>()
            .reads(sse::LAST_EVENT_ID)
            .answers_with(200, "text/event-stream")
            .refuses(&[Code::Invalid, Code::TooMany]),
    ]
}

/// Which events a listener hears. Asked before anything is kept for it.
struct Filter {
    caller: Caller,
    /// None: everywhere the caller may look.
    namespace: Option<Namespace>,
    /// Empty: all.
    kinds: Vec<String>,
    job: Option<JobId>,
    run: Option<OfRun>,
}

/// Events name their jobs, not the runs of these; so the jobs of the run are known here.
struct OfRun {
    run: RunId,
    jobs: HashSet<JobId>,
}

impl OfRun {
    async fn new(app: &App, namespace: &Namespace, run: RunId) -> Result<Self> {
        let jobs = flows::jobs(app, namespace, run).await?;
        Ok(Self { run, jobs: jobs.into_iter().map(|job| job.key.id).collect() })
    }

    fn wants(&self, what: &What) -> bool {
        match what.job() {
            Some(job) => self.jobs.contains(&job),
            None => what.run() == Some(self.run),
        }
    }
}

impl Filter {
    fn new(caller: Caller, query: &ListenEvents) -> Result<Self> {
        let namespace = match query.namespace.as_deref() {
            Some("*") => None,
            Some(name) => Some(Namespace::new(name)?),
            None => Some(Namespace::default()),
        };
        if let Some(namespace) = &namespace {
            caller.check_namespace(namespace)?;
        }
        let kinds = query.kind.iter().flat_map(|kinds| kinds.split(',')).map(|kind| kind.trim().to_owned()).collect();
        Ok(Self { caller, namespace, kinds, job: query.job.map(JobId), run: None })
    }

    fn wants(&self, event: &Row) -> bool {
        // The audit trail is for those who may read it as such.
        if event.what.about() == About::Audit && !self.caller.may(Access::Admin) {
            return false;
        }
        let here = match &self.namespace {
            Some(namespace) => event.namespace == *namespace,
            None => self.caller.check_namespace(&event.namespace).is_ok(),
        };
        here && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == event.what.name()))
            && (self.job.is_none() || event.what.job() == self.job)
            && self.run.as_ref().is_none_or(|run| run.wants(&event.what))
    }

    /// Jobs are added to a run while it goes on; it is told before they are.
    async fn learn(&mut self, app: &App, event: &Row) {
        let grew = self.run.as_ref().is_some_and(|known| event.what.about() == About::Run(known.run));
        if let Some(run) = self.run.as_ref().filter(|_| grew).map(|known| known.run) {
            match OfRun::new(app, &event.namespace, run).await {
                Ok(known) => self.run = Some(known),
                Err(problem) => tracing::warn!(problem = %problem.0, "the jobs of a run cannot be read"),
            }
        }
    }
}

async fn listen(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<ListenEvents>,
) -> Result<Response> {
    let after = sse::last_event(&headers)?.or(query.after);
    let mut filter = Filter::new(caller.clone(), &query)?;
    let subscription = app.engine.subscribe(after).await?;
    let end = match query.follow {
        Some(false) => Some(app.engine.store().events_after(u64::MAX - 1, 1).await?.last),
        Some(true) | None => None,
    };
    if let Some(run) = query.run {
        let namespace = filter.namespace.clone();
        let namespace = namespace.ok_or_else(|| Problem::invalid("run", "name the namespace the run is in"))?;
        filter.run = Some(OfRun::new(&app, &namespace, RunId(run)).await?);
    }
    let listened = app.clone();
    sse::open(&app, &caller, |sink| async move {
        // However it ends, the reader comes back where it was.
        drop(pump(listened, sink, subscription, filter, end).await);
    })
}

/// `end`: the last number that is wanted.
async fn pump(
    app: App,
    mut sink: Sink,
    mut events: Subscription,
    mut filter: Filter,
    end: Option<u64>,
) -> Result<(), Closed> {
    let mut seen = None;
    let mut next_beat = Instant::now() + sse::BEAT;
    // Tells proxies and readers that the stream is open.
    sink.send(sse::beat(None)).await?;
    while end.is_none_or(|end| events.position() < end) {
        let item = tokio::select! {
            () = sink.over() => return Ok(()),
            () = sleep_until(next_beat) => None,
            item = events.next() => Some(item.map_err(|error| {
                tracing::warn!(%error, "a stream of events ends because the store cannot be read");
                Closed
            })?),
        };
        let text = match item {
            None => sse::beat(seen),
            Some(FeedItem::Gap { requested, oldest }) => {
                seen = Some(oldest.saturating_sub(1));
                let data = serde_json::json!({"requested": requested, "oldest": oldest});
                sse::frame(seen, "gap", &data.to_string())
            }
            Some(FeedItem::Event(number, event)) => {
                let (mut text, mut next) = (String::new(), Some((number, event)));
                while let Some((number, event)) = next {
                    seen = Some(number);
                    filter.learn(&app, &event).await;
                    if filter.wants(&event) {
                        text += &shown(number, &event)?;
                    }
                    next = if text.len() < sse::TOGETHER { events.ready() } else { None };
                }
                if text.is_empty() {
                    continue;
                }
                text
            }
        };
        sink.send(text).await?;
        next_beat = Instant::now() + sse::BEAT;
    }
    Ok(())
}

fn shown(number: u64, event: &Row) -> Result<String, Closed> {
    let data = serde_json::to_string(&convert::event(number, event)).map_err(|_| Closed)?;
    Ok(sse::frame(Some(number), event.what.name(), &data))
}
