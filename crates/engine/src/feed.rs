//! The ordered event feed: replay from any kept number, then live, without gap or duplicate.
//!
//! The store's event log is the truth. A ring of the latest events in memory spares subscribers who keep up the reading;
//! whoever falls behind it reads from the store, and whoever falls behind that is told of the gap.

use crate::{
    ring::Ring,
    store::{Store, StoreError},
};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::sync::watch;
use windlass_core::{Event, Namespace};

/// Held for each reader that does not read, so not more than the reading itself is worth.
const PAGE: usize = 64;
/// Who skims holds nothing, and asks seldom.
const SKIMMED_AT_ONCE: usize = 512;
/// Who skims is not interested in more of what happened since the last time.
const SKIMMED_MAX: usize = 4_096;

pub struct Feed {
    ring: Ring,
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
        Self { ring: Ring::default(), news: watch::Sender::new(0), poll_every }
    }

    /// Called when the events are safe, in commit order, so that subscribers may trust what they hear.
    pub fn publish(&self, first: Option<u64>, events: Vec<Event>) {
        if self.passes_over(first, &events) {
            return;
        }
        if let Some(first) = first {
            self.ring.keep(first, events);
        }
        self.ring_bell();
    }

    /// Whether nobody follows these events: then they are not told here, and who wants them later reads the store.
    pub fn passes_over(&self, first: Option<u64>, events: &[Event]) -> bool {
        self.ring.passes_over(first, events)
    }

    pub fn readers(&self) -> usize {
        self.ring.readers()
    }

    pub fn ring_bell(&self) {
        self.news.send_modify(|count| *count += 1);
    }
}

/// That somebody follows a namespace, or all of them, for as long as it is held.
struct Following {
    feed: Arc<Feed>,
    namespace: Option<Namespace>,
}

impl Following {
    fn new(feed: Arc<Feed>, namespace: Option<Namespace>) -> Self {
        feed.ring.follow(namespace.as_ref());
        Self { feed, namespace }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.feed.ring.unfollow(self.namespace.as_ref());
    }
}

/// One reader of the feed. Holds at most a page of events, so a slow one costs no memory.
pub struct Subscription {
    following: Following,
    store: Arc<dyn Store>,
    news: watch::Receiver<u64>,
    /// The last number that was read, of whatever namespace.
    after: u64,
    page: VecDeque<(u64, Arc<Event>)>,
}

enum Filled {
    More,
    Nothing,
    Gap(FeedItem),
}

impl Subscription {
    /// From the event after `after`, or, where none is given, from now. Without a namespace: of all.
    pub async fn new(
        feed: Arc<Feed>,
        store: Arc<dyn Store>,
        namespace: Option<Namespace>,
        after: Option<u64>,
    ) -> Result<Self, StoreError> {
        // Subscribed before looking, so that nothing falls between replay and live.
        let news = feed.news.subscribe();
        let following = Following::new(feed, namespace);
        let after = match after {
            Some(after) => after,
            None => store.events_after(u64::MAX - 1, 1).await?.last,
        };
        Ok(Self { following, store, news, after, page: VecDeque::new() })
    }

    /// The number up to which everything was told.
    pub fn position(&self) -> u64 {
        self.page.front().map_or(self.after, |(number, _)| number - 1)
    }

    /// The next event if it is at hand.
    pub fn ready(&mut self) -> Option<(u64, Arc<Event>)> {
        self.page.pop_front()
    }

    pub async fn next(&mut self) -> Result<FeedItem, StoreError> {
        loop {
            if let Some((number, event)) = self.ready() {
                return Ok(FeedItem::Event(number, event));
            }
            self.news.borrow_and_update();
            match self.fill(PAGE).await? {
                Filled::More => {}
                Filled::Nothing => self.wait().await,
                Filled::Gap(gap) => return Ok(gap),
            }
        }
    }

    /// Shows everything that happened since, without waiting for more. False: that was too much, and some was left out. This is
    /// for those who look now and then: nobody wakes them for each event.
    pub async fn skim(&mut self, mut show: impl FnMut(&Event)) -> Result<bool, StoreError> {
        let (mut shown, mut all) = (0, true);
        loop {
            shown += self.page.len();
            self.page.drain(..).for_each(|(_, event)| show(&event));
            self.news.borrow_and_update();
            if let Some(latest) = self.following.feed.ring.has_left_behind(self.after) {
                (self.after, all) = (latest, false);
            }
            if shown >= SKIMMED_MAX {
                // And not what comes meanwhile: where much happens there is always more.
                self.after = self.store.events_after(u64::MAX - 1, 1).await?.last.max(self.after);
                return Ok(false);
            }
            match self.fill(SKIMMED_AT_ONCE).await? {
                Filled::More => {}
                Filled::Nothing => return Ok(all),
                Filled::Gap(_) => all = false,
            }
        }
    }

    async fn fill(&mut self, limit: usize) -> Result<Filled, StoreError> {
        let requested = self.after;
        let followed = self.following.namespace.as_ref();
        if let Some(recent) = self.following.feed.ring.recent(requested, followed, limit) {
            self.page.extend(recent.events);
            self.after = recent.upto;
            return Ok(if recent.upto > requested { Filled::More } else { Filled::Nothing });
        }
        let page = self.store.events_after(requested, limit).await?;
        if requested > page.last {
            // A number from the future, from another data folder perhaps: go on from now.
            self.after = page.last;
            return Ok(Filled::Gap(FeedItem::Gap { requested, oldest: page.last + 1 }));
        }
        let gap = page.oldest > requested + 1;
        self.after = match page.events.last() {
            Some((number, _)) => *number,
            None if gap => page.oldest - 1,
            None => requested,
        };
        let wanted = page.events.into_iter().filter(|(_, event)| followed.is_none_or(|one| *one == event.namespace));
        self.page.extend(wanted.map(|(number, event)| (number, Arc::new(event))));
        Ok(match gap {
            true => Filled::Gap(FeedItem::Gap { requested, oldest: page.oldest }),
            false if self.after > requested => Filled::More,
            false => Filled::Nothing,
        })
    }

    async fn wait(&mut self) {
        let changed = self.news.changed();
        match self.following.feed.poll_every {
            Some(every) => drop(tokio::time::timeout(every, changed).await),
            None => drop(changed.await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::Simulated, memory::Memory};
    use windlass_core::{Timestamp, What};

    fn events(count: usize) -> Vec<Event> {
        let what = What::RecordPut { kind: "k".into(), key: "k".into() };
        vec![Event { namespace: Namespace::default(), at: Timestamp(1), what }; count]
    }

    /// It looks when it wants to, once for everything that happened, and is not held up by what is too much to look at.
    #[tokio::test]
    async fn who_skims_the_events_sees_all_of_them_or_is_told_that_there_were_too_many() {
        let feed = Arc::new(Feed::new(None));
        let store = Arc::new(Memory::new(Arc::new(Simulated::at(Timestamp(0)))));
        let mut reader = Subscription::new(feed.clone(), store, Some(Namespace::default()), None).await.unwrap();
        let mut seen = 0;
        feed.publish(Some(1), events(3));
        feed.publish(Some(4), events(1_000));
        assert!(reader.skim(|_| seen += 1).await.unwrap());
        assert_eq!(seen, 1_003);
        assert!(reader.skim(|_| panic!("nothing happened since")).await.unwrap());
        feed.publish(Some(1_004), events(6_000));
        assert!(!reader.skim(|_| panic!("old news")).await.unwrap(), "6,000 are more than are at hand");
        feed.publish(Some(7_004), events(600));
        assert!(reader.skim(|_| seen += 1).await.unwrap());
        assert_eq!(seen, 1_603, "and it goes on from there");
        feed.publish(Some(7_604), events(SKIMMED_MAX));
        assert!(!reader.skim(|_| seen += 1).await.unwrap(), "it ends there, also where more comes without end");
        assert_eq!(seen, 1_603 + SKIMMED_MAX);
    }
}
