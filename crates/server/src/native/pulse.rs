//! `/api/v1/pulse`: that something changed, told at most twice a second, and once a second where much does.
//!
//! Pages that show what is going on need not hear every event: they look again at what they show. All pages of a namespace share
//! one reader of its events, and each message is written once for all of them. That reader looks when it is time to tell, and is
//! not woken for each event.

use crate::{
    app::App,
    ask::Ask,
    auth::Caller,
    dialect::{Mount, With},
    problem::{Code, Result},
    route::{Access, Route},
    sse::{self, Closed, Sink},
    wire_time::text,
};
use axum::{extract::State, response::Response};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::broadcast::{self, Receiver, Sender, error::RecvError},
    time::{Instant, sleep_until, timeout},
};
use windlass_api::pulse::{Hello, Pulse};
use windlass_core::{About, Event, Namespace};
use windlass_engine::{FeedItem, Subscription, store::StoreError};

const EVERY: Duration = Duration::from_millis(500);
/// What belongs together, such as a submit and the claim that waits for it, is told together.
const TOGETHER: Duration = Duration::from_millis(50);
/// Jobs and runs named in one message; of more it is only said that there are more.
const NAMED_MAX: usize = 200;
/// A message that names more is followed by a pause: pages look again once a second at most.
const MANY: usize = 50;
/// Messages that may wait for a slow page. One that missed some is told to look at everything.
const BEHIND_MAX: usize = 16;

pub fn routes() -> Vec<Route> {
    vec![
        Mount(Arc::<Pulses>::default())
            .get("/api/v1/pulse", Access::Viewer, listen)
            .says("Follow a summary of what changes, as server-sent events `hello` and `pulse`, at most two a second")
            .answers_with(200, "text/event-stream")
            .refuses(&[Code::Invalid, Code::TooMany]),
    ]
}

/// The readers that are at work, by namespace.
#[derive(Default)]
pub struct Pulses(Mutex<HashMap<Namespace, Sender<Bytes>>>);

impl Pulses {
    async fn join(self: &Arc<Self>, app: &App, namespace: &Namespace) -> Result<Receiver<Bytes>> {
        if let Some(sender) = self.0.lock().get(namespace) {
            return Ok(sender.subscribe());
        }
        let events = app.engine.follow(namespace.clone(), None).await?;
        let mut pulses = self.0.lock();
        // Somebody else may have been faster.
        if let Some(sender) = pulses.get(namespace) {
            return Ok(sender.subscribe());
        }
        let (sender, receiver) = broadcast::channel(BEHIND_MAX);
        pulses.insert(namespace.clone(), sender.clone());
        tokio::spawn(read(self.clone(), namespace.clone(), events, sender));
        Ok(receiver)
    }

    /// Whether nobody listens any more; then the next one begins anew.
    fn ends(&self, namespace: &Namespace, sender: &Sender<Bytes>) -> bool {
        let mut pulses = self.0.lock();
        let ends = sender.receiver_count() == 0;
        if ends {
            pulses.remove(namespace);
        }
        ends
    }
}

async fn read(pulses: Arc<Pulses>, namespace: Namespace, mut events: Subscription, sender: Sender<Bytes>) {
    let mut next = Instant::now();
    loop {
        let mut gathered = Pulse::default();
        // One that nobody listens to may be waiting for an event of a namespace in which nothing happens.
        let first = match timeout(sse::BEAT, events.next()).await {
            Ok(item) => item,
            Err(_) if pulses.ends(&namespace, &sender) => return,
            Err(_) => continue,
        };
        sleep_until(next.max(Instant::now() + TOGETHER)).await;
        if let Err(error) = gather_all(&mut gathered, &namespace, first, &mut events).await {
            tracing::warn!(%error, "pages are not told of changes because the store cannot be read");
            pulses.0.lock().remove(&namespace);
            return;
        }
        if pulses.ends(&namespace, &sender) {
            return;
        }
        next = Instant::now() + if gathered.jobs.len() > MANY { 2 * EVERY } else { EVERY };
        if gathered != Pulse::default() {
            let data = serde_json::to_string(&gathered).unwrap_or_default();
            // Nobody listens: said above, the next time.
            drop(sender.send(sse::frame(None, "pulse", &data).into()));
        }
    }
}

async fn gather_all(
    gathered: &mut Pulse,
    namespace: &Namespace,
    first: Result<FeedItem, StoreError>,
    events: &mut Subscription,
) -> Result<(), StoreError> {
    match first? {
        FeedItem::Event(_, event) => gather(gathered, namespace, &event),
        FeedItem::Gap { .. } => gathered.more = true,
    }
    let all = events.skim(|event| gather(gathered, namespace, event)).await?;
    gathered.more |= !all;
    Ok(())
}

fn gather(pulse: &mut Pulse, namespace: &Namespace, event: &Event) {
    if event.namespace != *namespace || event.what.about() == About::Audit {
        return;
    }
    let kind = event.what.name();
    *pulse.counts.entry(kind.to_owned()).or_default() += 1;
    let named = |map: &mut BTreeMap<_, String>, id| {
        let room = map.len() < NAMED_MAX || map.contains_key(&id);
        room.then(|| map.insert(id, kind.to_owned()));
        !room
    };
    if let Some(job) = event.what.job() {
        pulse.more |= named(&mut pulse.jobs, job.0);
    } else if let Some(run) = event.what.run() {
        pulse.more |= named(&mut pulse.runs, run.0);
    }
}

async fn listen(State(app): State<With<Pulses>>, caller: Caller, ask: Ask) -> Result<Response> {
    let pulses = app.own.join(&app, &ask.namespace).await?;
    let hello = Hello { version: env!("CARGO_PKG_VERSION").to_owned(), now: text(app.engine.now().await?) };
    let hello = serde_json::to_string(&hello).unwrap_or_default();
    sse::open(&app, &caller, |sink| async move {
        // However it ends, the page comes back and looks at everything.
        drop(pump(sink, pulses, hello).await);
    })
}

async fn pump(mut sink: Sink, mut pulses: Receiver<Bytes>, hello: String) -> Result<(), Closed> {
    sink.send(sse::frame(None, "hello", &hello)).await?;
    let mut next_beat = Instant::now() + sse::BEAT;
    loop {
        let frame = tokio::select! {
            () = sink.over() => return Ok(()),
            () = sleep_until(next_beat) => sse::beat(None).into(),
            pulse = pulses.recv() => match pulse {
                Ok(frame) => frame,
                Err(RecvError::Lagged(_)) => sse::frame(None, "pulse", r#"{"more":true}"#).into(),
                Err(RecvError::Closed) => return Ok(()),
            },
        };
        sink.send(frame).await?;
        next_beat = Instant::now() + sse::BEAT;
    }
}
