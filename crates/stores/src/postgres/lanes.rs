//! Which lanes an offer can serve: a copy of the lane table, found through each lane's rarest tag.
//!
//! The copy is never the truth about what does not exist. It is read again, from where it was read last, before a claim may
//! say that there is nothing; and a lane somebody has queued a job in is in the table before the job is.

use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};
use uuid::Uuid;
use windlass_core::{HeadQuery, Lane, Namespace, Tags, Wake};

use super::rows::uuid_of;

/// How long a lane that was confirmed in the table needs no confirming. Far less than it takes to be collected.
const CONFIRMED_FOR: Duration = Duration::from_secs(600);
/// How long the places of the fronts of very many lanes may be out of date.
const FRONTS_FOR: Duration = Duration::from_secs(1);
/// Answers kept for offers seen before.
const OFFERS_MAX: usize = 1_024;
/// What they may take, in each namespace: an offer may name very many tags and fit very many lanes.
const OFFERS_BYTES_MAX: usize = 8 << 20;
/// Lanes known here beyond twice those in the table: others have collected them.
const GONE_MAX: usize = 1_000;

/// The place in the queue of each lane's first job.
type Fronts = HashMap<Uuid, (i32, i64)>;

#[derive(Default)]
pub struct Lanes(Mutex<Book>);

#[derive(Default)]
struct Book {
    spaces: HashMap<Namespace, Space>,
    names: HashMap<Lane, (Namespace, Tags)>,
    confirmed: HashMap<Lane, Instant>,
    /// Rows added by transactions from here on may be missing.
    horizon: i64,
}

#[derive(Default)]
struct Space {
    /// The lane that requires nothing, which every offer can serve.
    open: Option<Uuid>,
    by_tag: HashMap<Arc<str>, Vec<(Uuid, Tags)>>,
    /// As many lanes; those with many tags count as several.
    weight: usize,
    offers: HashMap<Tags, Arc<[Uuid]>>,
    offers_bytes: usize,
    /// Lanes that had work when last looked at, or got some since, with the place of their first job. Only an order to
    /// look in, never the truth; and only kept where there are too many lanes to look into them all.
    fronts: Option<(Instant, Fronts)>,
}

impl Space {
    fn add(&mut self, lane: Lane, tags: &Tags) {
        self.forget_offers();
        self.weight += tags.weight();
        let lanes_with = |tag: &str| self.by_tag.get(tag).map_or(0, Vec::len);
        match tags.iter().min_by_key(|tag| lanes_with(tag)).map(Arc::<str>::from) {
            Some(rarest) => self.by_tag.entry(rarest).or_default().push((uuid_of(lane), tags.clone())),
            None => self.open = Some(uuid_of(lane)),
        }
    }

    fn remove(&mut self, lane: Lane, tags: &Tags) {
        self.forget_offers();
        self.weight = self.weight.saturating_sub(tags.weight());
        if tags.is_empty() {
            self.open = None;
        }
        for tag in tags.iter() {
            if let Some(lanes) = self.by_tag.get_mut(tag) {
                lanes.retain(|(kept, _)| *kept != uuid_of(lane));
                if lanes.is_empty() {
                    self.by_tag.remove(tag);
                }
            }
        }
        if let Some((_, fronts)) = &mut self.fronts {
            fronts.remove(&uuid_of(lane));
        }
    }

    fn is_empty(&self) -> bool {
        self.open.is_none() && self.by_tag.is_empty()
    }

    fn serving(&mut self, offered: &Tags) -> Arc<[Uuid]> {
        if let Some(known) = self.offers.get(offered) {
            return known.clone();
        }
        let listed = offered.iter().filter_map(|tag| self.by_tag.get(tag)).flatten();
        let fitting = listed.filter(|(_, required)| required.subset_of(offered)).map(|(lane, _)| *lane);
        let lanes: Arc<[Uuid]> = self.open.into_iter().chain(fitting).collect();
        let bytes = lanes.len() * size_of::<Uuid>() + offered.iter().map(|tag| tag.len() + 32).sum::<usize>();
        if self.offers.len() >= OFFERS_MAX || self.offers_bytes + bytes > OFFERS_BYTES_MAX {
            self.forget_offers();
        }
        self.offers_bytes += bytes;
        self.offers.insert(offered.clone(), lanes.clone());
        lanes
    }

    fn forget_offers(&mut self) {
        self.offers.clear();
        self.offers_bytes = 0;
    }
}

impl Lanes {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock()
    }

    /// The lanes known to fit, each once.
    pub fn serving(&self, query: &HeadQuery) -> Arc<[Uuid]> {
        let mut book = self.book();
        book.spaces.get_mut(&query.namespace).map_or_else(|| Arc::from([]), |space| space.serving(&query.offered))
    }

    /// Namespaces with so many lanes, or more.
    pub fn crowded(&self, max: usize) -> Vec<Namespace> {
        let book = self.book();
        book.spaces.iter().filter(|(_, space)| space.weight >= max).map(|(namespace, _)| namespace.clone()).collect()
    }

    pub fn learn(&self, namespace: &Namespace, lane: Lane, tags: &Tags) {
        let mut book = self.book();
        if book.names.insert(lane, (namespace.clone(), tags.clone())).is_none() {
            book.spaces.entry(namespace.clone()).or_default().add(lane, tags);
        }
    }

    pub fn forget(&self, lane: Lane) {
        let mut book = self.book();
        book.confirmed.remove(&lane);
        let Some((namespace, tags)) = book.names.remove(&lane) else { return };
        let Some(space) = book.spaces.get_mut(&namespace) else { return };
        space.remove(lane, &tags);
        if space.is_empty() {
            book.spaces.remove(&namespace);
        }
    }

    /// There are so many lanes in the table now. Whoever collects a lane forgets it, and nobody tells the other servers; so one
    /// that knows far more than there are begins anew, and reads the table again when it is next asked for lanes.
    pub fn compare(&self, in_table: usize) {
        let mut book = self.book();
        if book.names.len() > in_table.saturating_mul(2).saturating_add(GONE_MAX) {
            *book = Book::default();
        }
    }

    /// Entries of all kinds.
    #[cfg(test)]
    fn entries(&self) -> usize {
        let book = self.book();
        let of = |space: &Space| 1 + space.by_tag.len() + space.offers.len();
        book.spaces.values().map(of).sum::<usize>() + book.names.len() + book.confirmed.len()
    }

    /// What other servers are told by number only.
    pub fn wake_of(&self, lane: Lane) -> Option<Wake> {
        let book = self.book();
        let (namespace, tags) = book.names.get(&lane)?;
        Some(Wake { namespace: namespace.clone(), lane, tags: tags.clone() })
    }

    /// Those of the lanes that have to be written down again, each once and sorted.
    pub fn to_confirm<'a>(&self, wakes: &'a [Wake]) -> Vec<&'a Wake> {
        let book = self.book();
        let fresh = |wake: &&Wake| book.confirmed.get(&wake.lane).is_none_or(|at| at.elapsed() > CONFIRMED_FOR);
        let mut stale: Vec<&Wake> = wakes.iter().filter(fresh).collect();
        stale.sort_by(|a, b| (&a.namespace, a.lane).cmp(&(&b.namespace, b.lane)));
        stale.dedup_by_key(|wake| wake.lane);
        stale
    }

    /// After the commit that wrote them down.
    pub fn confirmed(&self, lanes: impl Iterator<Item = (Namespace, Lane, Tags)>) {
        for (namespace, lane, tags) in lanes {
            self.learn(&namespace, lane, &tags);
            self.book().confirmed.insert(lane, Instant::now());
        }
    }

    /// Of very many lanes, those with the best fronts as far as is known; none where that is too long ago.
    pub fn best_known(&self, namespace: &Namespace, serving: &[Uuid], count: usize) -> Option<Vec<Uuid>> {
        let book = self.book();
        let (at, fronts) = book.spaces.get(namespace)?.fronts.as_ref()?;
        if at.elapsed() > FRONTS_FOR {
            return None;
        }
        let known = serving.iter().filter_map(|lane| Some((*fronts.get(lane)?, *lane)));
        let mut known: Vec<((i32, i64), Uuid)> = known.collect();
        if known.len() > count {
            known.select_nth_unstable(count);
            known.truncate(count);
        }
        Some(known.into_iter().map(|(_, lane)| lane).collect())
    }

    pub fn saw_busy(&self, namespace: &Namespace, fronts: Fronts) {
        self.book().spaces.entry(namespace.clone()).or_default().fronts = Some((Instant::now(), fronts));
    }

    /// New work in these lanes: to be looked into first, since nobody knows yet where it stands.
    pub fn saw_work(&self, wakes: &[Wake]) {
        let mut book = self.book();
        for wake in wakes {
            if let Some((_, fronts)) = book.spaces.get_mut(&wake.namespace).and_then(|space| space.fronts.as_mut()) {
                fronts.insert(uuid_of(wake.lane), (i32::MIN, 0));
            }
        }
    }

    pub fn horizon(&self) -> i64 {
        self.book().horizon
    }

    pub fn read_up_to(&self, horizon: i64) {
        let mut book = self.book();
        book.horizon = book.horizon.max(horizon);
    }

    /// After a failover transactions may be counted anew, and confirmations may be lost.
    pub fn doubt(&self) {
        let mut book = self.book();
        book.horizon = 0;
        book.confirmed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(list: &[&str]) -> Tags {
        list.iter().copied().collect()
    }

    #[test]
    fn an_offer_finds_exactly_the_lanes_it_can_serve() {
        let lanes = Lanes::default();
        let ns = Namespace::default();
        let sets: Vec<Tags> = vec![tags(&[]), tags(&["a"]), tags(&["a", "b"]), tags(&["b", "c"]), tags(&["c"])];
        for set in &sets {
            lanes.learn(&ns, Lane::of(&ns, set), set);
            lanes.learn(&ns, Lane::of(&ns, set), set);
        }
        for offered in [tags(&[]), tags(&["a"]), tags(&["a", "b"]), tags(&["a", "b", "c"]), tags(&["x"])] {
            let query = HeadQuery { namespace: ns.clone(), offered: offered.clone() };
            let mut found = lanes.serving(&query).to_vec();
            let fitting = sets.iter().filter(|set| set.subset_of(&offered));
            let mut expected: Vec<Uuid> = fitting.map(|set| uuid_of(Lane::of(&ns, set))).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{offered:?}");
        }
        lanes.forget(Lane::of(&ns, &sets[1]));
        let query = HeadQuery { namespace: ns.clone(), offered: tags(&["a"]) };
        assert_eq!(lanes.serving(&query).len(), 1);
    }

    #[test]
    fn lanes_that_are_gone_leave_nothing_behind() {
        let (lanes, ns) = (Lanes::default(), Namespace::default());
        let sets: Vec<Tags> = (0..3_000).map(|n| tags(&["linux", &format!("host-{n}")])).collect();
        let all = || sets.iter().map(|set| (ns.clone(), Lane::of(&ns, set), set.clone()));
        lanes.confirmed(all());
        lanes.serving(&HeadQuery { namespace: ns.clone(), offered: tags(&["linux"]) });
        for (_, lane, _) in all() {
            lanes.forget(lane);
        }
        assert_eq!(lanes.entries(), 0, "collected by this server");
        lanes.confirmed(all());
        lanes.compare(2_000);
        assert_eq!(lanes.book().names.len(), 3_000);
        lanes.compare(10);
        assert_eq!(lanes.entries(), 0, "collected by another one");
    }

    #[test]
    fn offers_are_remembered_by_what_they_take() {
        let (lanes, ns) = (Lanes::default(), Namespace::default());
        lanes.learn(&ns, Lane::of(&ns, &tags(&["a"])), &tags(&["a"]));
        for n in 0..500 {
            let long = (0..200).map(|tag| format!("{n}-{tag}-{}", "x".repeat(200))).collect::<Vec<_>>();
            let offered: Tags = long.iter().map(String::as_str).collect();
            lanes.serving(&HeadQuery { namespace: ns.clone(), offered });
        }
        let book = lanes.book();
        let space = &book.spaces[&ns];
        assert!(space.offers.len() < 250 && space.offers_bytes <= OFFERS_BYTES_MAX, "{}", space.offers.len());
    }

    #[test]
    fn many_lanes_that_share_a_tag_are_found_by_their_rarest() {
        let lanes = Lanes::default();
        let ns = Namespace::default();
        for n in 0..10_000 {
            let set = tags(&["linux", &format!("host-{n}")]);
            lanes.learn(&ns, Lane::of(&ns, &set), &set);
        }
        let book = lanes.book();
        let by_tag = &book.spaces[&ns].by_tag;
        assert!(by_tag.values().all(|listed| listed.len() <= 2), "the common tag lists almost nothing");
    }
}
