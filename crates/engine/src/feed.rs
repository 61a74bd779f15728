//! The ordered event feed: replay from any kept number, then live, without gap or duplicate.
//!
//! The store's event log is the truth. A ring of the latest events in memory spares subscribers who keep up the reading;
//! whoever falls behind it reads from the store, and whoever falls behind that is told of the gap.

use crate::store::{Store, StoreError};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::sync::watch;
use windlass_core::Event;

const RING: usize = 4_096;
/// Held for each reader that does not read, so not more than the reading itself is worth.
const PAGE: usize = 64;

pub struct Feed {
    ring: Mutex<VecDeque<(u64, Arc<Event>)>>,
    /// Counts news; what the news is, the ring or the store tells.
    news: watch::Sender<u64>,
    /// Where another server may have caused the events.
    poll_every: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FeedItem {
    Event(u64, Arc<Event>),
    /// Events after `requested` are no longer all kept; the feed goes on at `oldest`.
    Gap {
        requested: u64,
        oldest: u64,
    },
}

impl Feed {
    pub fn new(poll_every: Option<Duration>) -> Self {
        Self { ring: Mutex::default(), news: watch::Sender::new(0), poll_every }
    }

    /// Called when the events are safe, in commit order, so that subscribers may trust what they hear.
    pub fn publish(&self, first: Option<u64>, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        if self.news.receiver_count() == 0 {
            self.lock().clear();
            return;
        }
        if let Some(first) = first {
            let mut ring = self.lock();
            ring.extend((first..).zip(events.into_iter().map(Arc::new)));
            let excess = ring.len().saturating_sub(RING);
            ring.drain(..excess);
        }
        self.ring_bell();
    }

    /// There were events that are not told here: who follows them reads the store.
    pub fn skip(&self) {
        self.lock().clear();
        if self.news.receiver_count() > 0 {
            self.ring_bell();
        }
    }

    pub fn readers(&self) -> usize {
        self.news.receiver_count()
    }

    pub fn ring_bell(&self) {
        self.news.send_modify(|count| *count += 1);
    }

    /// What follows `after`, as far as the ring tells; none: ask the store.
    fn recent(&self, after: u64) -> Option<Vec<(u64, Arc<Event>)>> {
        let ring = self.lock();
        let (oldest, latest) = (ring.front()?.0, ring.back()?.0);
        if after > latest {
            // Ahead of what was published: the store knows whether that number was ever given.
            return None;
        }
        let skip = (after + 1).checked_sub(oldest)? as usize;
        Some(ring.iter().skip(skip).take(PAGE).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<Event>)>> {
        self.ring.lock()
    }
}

/// One reader of the feed. Holds at most a page of events, so a slow one costs no memory.
pub struct Subscription {
    feed: Arc<Feed>,
    store: Arc<dyn Store>,
    news: watch::Receiver<u64>,
    /// The last number handed out.
    after: u64,
    page: VecDeque<(u64, Arc<Event>)>,
}

impl Subscription {
    /// From the event after `after`, or, where none is given, from now.
    pub async fn new(feed: Arc<Feed>, store: Arc<dyn Store>, after: Option<u64>) -> Result<Self, StoreError> {
        // Subscribed before looking, so that nothing falls between replay and live.
        let news = feed.news.subscribe();
        let after = match after {
            Some(after) => after,
            None => store.events_after(u64::MAX - 1, 1).await?.last,
        };
        Ok(Self { feed, store, news, after, page: VecDeque::new() })
    }

    /// The next event if it is at hand.
    pub fn ready(&mut self) -> Option<(u64, Arc<Event>)> {
        let (number, event) = self.page.pop_front()?;
        self.after = number;
        Some((number, event))
    }

    pub async fn next(&mut self) -> Result<FeedItem, StoreError> {
        loop {
            if let Some((number, event)) = self.ready() {
                return Ok(FeedItem::Event(number, event));
            }
            self.news.borrow_and_update();
            if let Some(gap) = self.fill().await? {
                return Ok(gap);
            }
            if self.page.is_empty() {
                self.wait().await;
            }
        }
    }

    async fn fill(&mut self) -> Result<Option<FeedItem>, StoreError> {
        if let Some(page) = self.feed.recent(self.after) {
            self.page.extend(page);
            return Ok(None);
        }
        let page = self.store.events_after(self.after, PAGE).await?;
        let requested = self.after;
        if requested > page.last {
            // A number from the future, from another data folder perhaps: go on from now.
            self.after = page.last;
            return Ok(Some(FeedItem::Gap { requested, oldest: page.last + 1 }));
        }
        self.page.extend(page.events.into_iter().map(|(number, event)| (number, Arc::new(event))));
        if page.oldest > requested + 1 {
            self.after = page.oldest - 1;
            return Ok(Some(FeedItem::Gap { requested, oldest: page.oldest }));
        }
        Ok(None)
    }

    async fn wait(&mut self) {
        let changed = self.news.changed();
        match self.feed.poll_every {
            Some(every) => drop(tokio::time::timeout(every, changed).await),
            None => drop(changed.await),
        }
    }
}
