//! What was acknowledged, and whether it still holds.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_sdk::{
    Client,
    api::{
        JobSettings,
        event::ListenEvents,
        job::{State, SubmitJob},
    },
};

/// Every submit that was answered with success.
#[derive(Default)]
pub struct History {
    pub acknowledged: Vec<Uuid>,
    /// Calls that got no answer and were repeated under the same key.
    pub repeated: usize,
}

/// Submits small command jobs until told to stop. A call that got no answer is repeated under the same key: the promise is
/// that this makes no second job.
pub async fn submit_until(clients: Vec<Client>, name: &'static str, stop: Arc<AtomicBool>, pace: Duration) -> History {
    let mut history = History::default();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let payload = serde_json::value::to_raw_value(&serde_json::json!({"command": ["true"]})).unwrap();
        let job = SubmitJob {
            payload: Some(payload),
            idempotency_key: Some(format!("{name}-{number}")),
            ..SubmitJob::default()
        };
        let mut turn = number;
        loop {
            match clients[turn % clients.len()].submit(&job).await {
                Ok(submitted) => {
                    history.acknowledged.push(submitted.id);
                    break;
                }
                Err(error) if error.is_temporary() => {
                    history.repeated += 1;
                    turn += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await; // A client that is refused comes back in a moment.
                }
                Err(error) => panic!("a submit was refused: {error}"),
            }
        }
        tokio::time::sleep(pace).await; // The pace of a client.
    }
    history
}

impl History {
    /// Every acknowledged job ends completed, within so long, and the feed tells of each end exactly once.
    pub async fn check(&self, client: &Client, patience: Duration) {
        let begun = Instant::now();
        for &id in &self.acknowledged {
            loop {
                let job = client.wait(id, Duration::from_secs(10)).await.expect("an acknowledged job is there");
                if job.state.is_final() {
                    assert_eq!(job.state, State::Completed, "{id}: {:?}", job.error);
                    break;
                }
                assert!(begun.elapsed() < patience, "{id} is still {:?}", job.state);
            }
        }
        let mut ends: BTreeMap<Uuid, usize> = BTreeMap::new();
        for event in events_so_far(client).await {
            if event.kind == "completed" {
                *ends.entry(event.job.expect("it is about a job")).or_default() += 1;
            }
        }
        for id in &self.acknowledged {
            assert_eq!(ends.get(id), Some(&1), "{id} completed exactly once");
        }
    }
}

/// All events so far, read from the start to a marker submitted for the purpose.
pub async fn events_so_far(client: &Client) -> Vec<windlass_sdk::api::event::Event> {
    let nobody = JobSettings { tags: Some(vec!["nobody".into()]), ..JobSettings::default() };
    let marker = client.submit(&SubmitJob::default().with(nobody)).await.unwrap();
    let from_the_start = ListenEvents { after: Some(0), ..ListenEvents::default() };
    let mut events = client.events(&from_the_start).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        let last = event.kind == "submitted" && event.job == Some(marker.id);
        seen.push(event);
        if last {
            break;
        }
    }
    client.cancel(marker.id).await.unwrap();
    seen
}
