//! What waits to be run, and what goes into the next batch.

use crate::{
    lines::{Lines, Space},
    request::Request,
    settings::Settings,
    sharing::Sharing,
};
use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio::sync::Notify;

/// What is run now. A store that takes several batches at a time need not wait for its disk because of requests that
/// promise nothing, so it gets them apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    Promises,
    NoPromises,
}

/// What waits to be run.
#[derive(Default)]
pub struct Queue {
    waiting: Mutex<Waiting>,
    /// Apart from what waits: callers who only ask must not wait for the batcher, nor it for them.
    sharing: Mutex<Sharing>,
    /// Commands of one namespace in the batch before; 0: all.
    each: AtomicUsize,
    bell: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Those that a store may be given apart.
    promises: Lines,
    others: Lines,
    /// Apart, so that a flood of log lines delays nothing else.
    logs: Lines,
    /// Which of the first two goes first.
    turn: bool,
    closed: bool,
}

impl Waiting {
    fn has(&self, which: Which) -> bool {
        match which {
            Which::All => !self.promises.is_empty() || !self.others.is_empty(),
            Which::Promises => !self.promises.is_empty(),
            Which::NoPromises => !self.others.is_empty(),
        }
    }

    fn take(&mut self, which: Which, batch: &mut Vec<Request>, space: &mut Space) {
        match which {
            Which::All if self.turn => {
                self.promises.take(batch, space);
                self.others.take(batch, space);
            }
            Which::All => {
                self.others.take(batch, space);
                self.promises.take(batch, space);
            }
            Which::Promises => self.promises.take(batch, space),
            Which::NoPromises => self.others.take(batch, space),
        }
    }
}

/// Everything in one transaction while several namespaces are at work: nobody waits long for the others', and what is lost
/// by committing more often is little.
const SHARED_MAX: usize = 128;
const SHARED_BYTES_MAX: usize = 512 << 10;

impl Queue {
    /// False: nothing more is taken.
    pub fn push(&self, request: Request, is_log: bool) -> bool {
        let is_promise = request.is_promise();
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return false;
        }
        match (is_log, is_promise) {
            (true, _) => waiting.logs.push(request),
            (_, true) => waiting.promises.push(request),
            (_, false) => waiting.others.push(request),
        }
        drop(waiting);
        self.bell.notify_one();
        true
    }

    pub fn close(&self) {
        self.waiting.lock().closed = true;
        self.bell.notify_one();
    }

    /// Returns when there is something to run: what, or none when nothing more will come. While the disk is busy, promises would
    /// wait for the sync after this one whenever they are written, so they gather here and are written together.
    /// `visit` is called whenever it looks.
    pub async fn wait_for_work(&self, is_syncing: impl Fn() -> bool, visit: impl Fn()) -> Option<Which> {
        loop {
            visit();
            let which = if is_syncing() { Which::NoPromises } else { Which::All };
            {
                let waiting = self.waiting.lock();
                if !waiting.logs.is_empty() || waiting.has(which) {
                    return Some(which);
                }
                if waiting.closed && !waiting.has(Which::All) {
                    return None;
                }
            }
            self.bell.notified().await;
        }
    }

    /// Whether several namespaces were at work a moment ago.
    pub fn is_shared(&self) -> bool {
        self.sharing.lock().is_shared()
    }

    /// How many commands of one caller go together while others are at work. None: all.
    pub fn piece(&self) -> Option<usize> {
        Some(self.each.load(Ordering::Relaxed)).filter(|each| *each > 0)
    }

    /// What a batch cost that others had to wait for.
    pub fn learn(&self, took: Duration, commands: usize) {
        self.sharing.lock().learn(took, commands);
    }

    /// Somebody should look again.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    /// What goes next, for stores that get the two kinds apart, and how many of its kind wait.
    pub fn kind(&self) -> (Which, usize) {
        let waiting = self.waiting.lock();
        let promises = if waiting.turn { waiting.has(Which::Promises) } else { !waiting.has(Which::NoPromises) };
        match promises {
            true => (Which::Promises, waiting.promises.len()),
            false => (Which::NoPromises, waiting.others.len()),
        }
    }

    pub fn next_batch(&self, which: Which, settings: &Settings) -> Vec<Request> {
        let mut waiting = self.waiting.lock();
        let waiting = &mut *waiting;
        let mut batch = Vec::new();
        let mut sharing = self.sharing.lock();
        sharing.see(waiting.promises.namespaces().chain(waiting.others.namespaces()));
        let each = sharing.each();
        drop(sharing);
        self.each.store(each.unwrap_or(0), Ordering::Relaxed);
        let (mut count, mut bytes) = (settings.batch_max, settings.batch_bytes_max);
        if each.is_some() {
            (count, bytes) = (count.min(SHARED_MAX), bytes.min(SHARED_BYTES_MAX));
        }
        let each = each.unwrap_or(usize::MAX);
        waiting.take(which, &mut batch, &mut Space { count, bytes, each });
        waiting.turn = !waiting.turn;
        let mut logs = Vec::new();
        let (count, bytes) = (settings.batch_max, settings.log_batch_bytes_max);
        waiting.logs.take(&mut logs, &mut Space { count, bytes, each });
        batch.extend(logs);
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::{Semaphore, oneshot};
    use windlass_core::{
        Namespace,
        commands::{tell::Tell, tokens::UseToken},
    };

    fn request(namespace: &str) -> Request {
        let tell = Tell { namespace: Namespace::new(namespace).unwrap(), topic: "t".into(), data: "{}".into() };
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Request { commands: vec![tell.into()], by: None, reply: oneshot::channel().0, room, abandon: None, weight: 258 }
    }

    #[test]
    fn looking_up_a_token_takes_nothing_from_whoever_is_alone() {
        let (queue, settings) = (Queue::default(), Settings::default());
        queue.push(request("much"), false);
        let mut lookup = request("much");
        lookup.commands = vec![UseToken { namespace: Namespace::new("system").unwrap(), hash: "h".into() }.into()];
        queue.push(lookup, false);
        assert_eq!(queue.next_batch(Which::All, &settings).len(), 2);
        assert!(!queue.is_shared());
    }

    #[test]
    fn a_namespace_with_little_to_do_is_in_the_next_batch_however_much_another_has() {
        let (queue, settings) = (Queue::default(), Settings::default());
        for _ in 0..500 {
            queue.push(request("much"), false);
        }
        assert_eq!(queue.next_batch(Which::All, &settings).len(), 500, "alone it has all the room there is");
        for _ in 0..500 {
            queue.push(request("much"), false);
        }
        queue.push(request("little"), false);
        let batch = queue.next_batch(Which::All, &settings);
        assert!(batch.len() < SHARED_MAX, "and nobody waits long for the batch before");
        assert!(batch.iter().any(|request| request.commands[0].namespace().unwrap().as_str() == "little"));
    }
}
