//! Who listens to what happens, and so whether anybody has to find out what does.

use super::{super::Joblib, pump, results::Awaited};
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

/// How long somebody who begins to listen waits for the pump. It goes on trying where the store does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub struct Audience {
    seats: Mutex<Seats>,
    left: Notify,
    /// Sockets in rooms where the status of tasks is told. Without any, nobody has to look tasks up.
    pub watchers: AtomicUsize,
}

#[derive(Default)]
struct Seats {
    taken: usize,
    /// Whether the pump follows the events yet; none: there is no pump.
    pump: Option<watch::Receiver<bool>>,
}

/// Somebody listens, for as long as it is held.
pub struct Listening(Joblib);

/// Whatever is committed after this returns will be heard.
pub async fn listen(joblib: &Joblib) -> Listening {
    let mut follows = joblib.own.sockets.audience.enter(joblib);
    let listening = Listening(joblib.clone());
    // Late is better than never: what is missed until then is found by asking.
    drop(timeout(PATIENCE, follows.wait_for(|follows| *follows)).await);
    listening
}

impl Listening {
    /// The next time that this result of a provider is told, here or on another server.
    pub fn result(&self, provider: &str, hash: &str) -> Awaited {
        self.0.own.sockets.results.wait(provider, hash)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.own.sockets.audience.leave();
    }
}

impl Audience {
    fn enter(&self, joblib: &Joblib) -> watch::Receiver<bool> {
        let mut seats = self.seats.lock();
        seats.taken += 1;
        let start = || {
            let (follows, told) = watch::channel(false);
            joblib.own.sockets.runtime().spawn(pump::run(joblib.itself(), follows));
            told
        };
        seats.pump.get_or_insert_with(start).clone()
    }

    fn leave(&self) {
        let mut seats = self.seats.lock();
        seats.taken -= 1;
        if seats.taken == 0 {
            self.left.notify_one();
        }
    }

    /// Returns when nobody listens any more. Whoever comes later starts another pump.
    pub async fn is_gone(&self) {
        loop {
            self.left.notified().await;
            let mut seats = self.seats.lock();
            if seats.taken == 0 {
                seats.pump = None;
                return;
            }
        }
    }

    pub fn is_watching(&self) -> bool {
        self.watchers.load(Relaxed) > 0
    }
}
