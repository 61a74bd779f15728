//! Tells a worker at once that somebody else changed something about it: a job it holds was cancelled or taken away, or it may
//! claim no more, or again.
//!
//! A notice is a hint to ask, as a wake-up is; it says nothing itself. A worker asks with the number up to which it has heard, so
//! that nothing falls between two calls. Only so many are remembered: who has been away for longer is told to ask.

use parking_lot::Mutex;
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::{Notify, futures::Notified};
use uuid::Uuid;

/// Notices that are remembered.
const KEPT: usize = 4_096;

pub struct Notices {
    /// Numbers of another server, or of this one before a restart, mean nothing here.
    server: Uuid,
    /// The number of the next one, to be read by those who have nothing to wait for yet.
    next: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the next one.
    next: u64,
    /// Whom the last ones are for.
    recent: VecDeque<u64>,
    listeners: HashMap<u64, (usize, Arc<Notify>)>,
}

/// Hears what is for one worker until it is dropped.
pub struct Listener {
    notices: Arc<Notices>,
    worker: u64,
    bell: Arc<Notify>,
}

impl Default for Notices {
    fn default() -> Self {
        Self { server: Uuid::new_v4(), next: AtomicU64::new(0), state: Mutex::default() }
    }
}

impl Notices {
    /// Workers by their [`windlass_core::WorkerKey::hint`].
    pub fn post(&self, workers: impl IntoIterator<Item = u64>) {
        let mut workers = workers.into_iter().peekable();
        if workers.peek().is_none() {
            return;
        }
        let mut state = self.state.lock();
        for worker in workers {
            state.next += 1;
            self.next.store(state.next, Ordering::Release);
            state.recent.push_back(worker);
            if state.recent.len() > KEPT {
                state.recent.pop_front();
            }
            if let Some((_, bell)) = state.listeners.get(&worker) {
                bell.notify_waiters();
            }
        }
    }

    /// Something happened elsewhere, and nobody said to whom.
    pub fn post_all(&self) {
        let mut state = self.state.lock();
        state.next += 1;
        self.next.store(state.next, Ordering::Release);
        state.recent.clear();
        state.listeners.values().for_each(|(_, bell)| bell.notify_waiters());
    }

    /// Up to where everything has been heard by somebody who looks now.
    pub fn mark(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Whether there was something for this worker after `mark`, as far as one can tell; and up to where that is known.
    pub fn since(&self, worker: u64, mark: u64) -> (bool, u64) {
        let state = self.state.lock();
        let oldest = state.next - state.recent.len() as u64;
        let known = mark.checked_sub(oldest).filter(|_| mark <= state.next);
        let news = known.is_none_or(|from| state.recent.iter().skip(from as usize).any(|one| *one == worker));
        (news, state.next)
    }

    pub fn listen(self: &Arc<Self>, worker: u64) -> Listener {
        let mut state = self.state.lock();
        let (count, bell) = state.listeners.entry(worker).or_default();
        *count += 1;
        Listener { notices: self.clone(), worker, bell: bell.clone() }
    }

    /// Returns when there is something for this worker after `mark`.
    pub async fn told(self: &Arc<Self>, worker: u64, mark: u64) {
        let listener = self.listen(worker);
        loop {
            let mut bell = std::pin::pin!(listener.rings());
            bell.as_mut().enable();
            if self.since(worker, mark).0 {
                return;
            }
            bell.await;
        }
    }

    /// A number as callers keep it.
    pub fn token(&self, mark: u64) -> String {
        format!("{}-{mark}", self.server.simple())
    }

    pub fn mark_of(&self, token: &str) -> Option<u64> {
        let (server, mark) = token.rsplit_once('-')?;
        (Uuid::try_parse(server).ok()? == self.server).then(|| mark.parse().ok()).flatten()
    }
}

impl Listener {
    /// Enable it before looking; await it after.
    pub fn rings(&self) -> Notified<'_> {
        self.bell.notified()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut state = self.notices.state.lock();
        if let Some((count, _)) = state.listeners.get_mut(&self.worker) {
            *count -= 1;
            if *count == 0 {
                state.listeners.remove(&self.worker);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_falls_between_two_calls() {
        let notices = Arc::new(Notices::default());
        let mark = notices.mark();
        notices.post([7, 8]);
        assert_eq!([7, 8, 9].map(|worker| notices.since(worker, mark).0), [true, true, false]);
        notices.told(8, mark).await;
        let mark = notices.since(8, mark).1;
        assert!(!notices.since(8, mark).0, "heard once");
        let waiting = tokio::spawn({
            let notices = notices.clone();
            async move { notices.told(8, mark).await }
        });
        while notices.state.lock().listeners.is_empty() {
            tokio::task::yield_now().await;
        }
        notices.post([9]);
        assert!(!waiting.is_finished(), "that was for another");
        notices.post([8]);
        waiting.await.unwrap();
        assert!(notices.state.lock().listeners.is_empty(), "who has gone leaves nothing behind");
    }

    #[test]
    fn who_was_away_for_too_long_is_told_to_ask() {
        let notices = Notices::default();
        let mark = notices.mark();
        notices.post((0..KEPT as u64).map(|_| 1));
        assert!(!notices.since(2, mark).0);
        notices.post([1]);
        assert!(notices.since(2, mark).0, "it may have been for this one");
        let mark = notices.mark();
        notices.post_all();
        assert!(notices.since(2, mark).0 && !notices.since(2, notices.mark()).0);
        assert!(notices.since(2, notices.mark() + 1).0, "a number that was never given");
        assert!(notices.state.lock().recent.len() <= KEPT);
    }

    #[test]
    fn numbers_of_another_server_mean_nothing() {
        let (one, other) = (Notices::default(), Notices::default());
        assert_eq!(one.mark_of(&one.token(5)), Some(5));
        for odd in [other.token(5), "".into(), "x".into(), "-5".into(), format!("{}x", one.token(5))] {
            assert_eq!(one.mark_of(&odd), None, "{odd}");
        }
    }
}
