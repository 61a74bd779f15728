//! Which lanes may hold a pending job, and which of them an offer can serve.
//!
//! Kept in memory only, as it follows from the claim index: found there when the store is opened, grown when a job
//! becomes pending, shrunk when a lane is looked into and found empty. A lane too many costs one look; a lane too few
//! would hide a job, so entries are added before a batch commits and stay if it does not.
//!
//! A lane that no claim looks into any more is found by counting: when as many jobs have left it as came, it is in doubt, and
//! looked into later. Counts may be wrong (after a start nobody counted); a lane is only removed after a look.

use super::{
    failure::{Failure, Result},
    rows,
};
use foldhash::{HashMap, HashSet};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};
use windlass_core::{HeadQuery, Job, JobChange, JobId, JobKey, Lane, Namespace, State, Tags, select};

/// So many lanes may be in doubt before the oldest of them is looked into. Few, or a caller could leave much memory behind;
/// but not so few that a server with some hundreds of lanes, which are empty now and then, would look all the time.
const DOUBTS_MAX: usize = 256;

/// Priority and place in the queue.
pub(super) type QueuePosition = (i32, i64);

#[derive(Default)]
pub(super) struct Lanes {
    spaces: HashMap<Namespace, Space>,
    /// Lanes that may be empty, the oldest doubt first.
    doubts: VecDeque<(Namespace, Lane)>,
    /// Made for a batch that is not committed yet.
    fresh: Vec<(Namespace, Lane)>,
    weights: Arc<Weights>,
}

/// How many lanes each namespace has, for those who do not hold the writer. A lane with many tags counts as several.
#[derive(Default)]
pub(super) struct Weights(Mutex<HashMap<Namespace, usize>>);

impl Weights {
    fn change(&self, namespace: &Namespace, change: impl FnOnce(usize) -> usize) {
        let mut weights = self.lock();
        let weight = change(weights.get(namespace).copied().unwrap_or(0));
        match weight {
            0 => weights.remove(namespace),
            weight => weights.insert(namespace.clone(), weight),
        };
    }

    pub(super) fn above(&self, max: usize) -> Vec<Namespace> {
        let weights = self.lock();
        weights.iter().filter(|(_, weight)| **weight >= max).map(|(namespace, _)| namespace.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Namespace, usize>> {
        self.0.lock()
    }
}

/// The lanes of one namespace.
#[derive(Default)]
struct Space {
    lanes: HashMap<Lane, Entry>,
    /// Lanes under the tag that was the rarest when they came. A lane that requires no tag is under none.
    by_tag: HashMap<Arc<str>, HashSet<Lane>>,
    untagged: Option<Lane>,
    /// All lanes by the earliest place their head can have.
    by_place: BTreeSet<(QueuePosition, Lane)>,
}

struct Entry {
    tags: Tags,
    under: Option<Arc<str>>,
    /// No pending job of the lane comes before this.
    low: QueuePosition,
    /// Jobs that came, less those that left, as far as was counted.
    count: usize,
    in_doubt: bool,
}

impl Entry {
    /// Whether the doubt is new.
    fn doubt(&mut self) -> bool {
        !std::mem::replace(&mut self.in_doubt, true)
    }
}

impl Lanes {
    /// Finds all lanes that hold a pending job.
    pub(super) fn open(connection: &Connection) -> Result<Self> {
        let mut lanes = Lanes::default();
        let mut last = (String::new(), Vec::new());
        let mut statement = connection.prepare(LANE_NEXT)?;
        loop {
            let mut rows = statement.query((&last.0, &last.1))?;
            let Some(row) = rows.next()? else {
                lanes.committed();
                return Ok(lanes);
            };
            last = (row.get(0)?, after(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?));
            let key = JobKey::new(&rows::to_namespace(&last.0)?, rows::blob_id(row, 4)?);
            let job = rows::load_job(connection, &key)?.ok_or_else(|| missing(&key))?;
            lanes.add(&job);
        }
    }

    /// Notes that `job` is, or is about to be, pending.
    pub(super) fn add(&mut self, job: &Job) {
        if !self.spaces.contains_key(&job.key.namespace) {
            self.spaces.insert(job.key.namespace.clone(), Space::default());
        }
        let space = self.spaces.get_mut(&job.key.namespace).expect("it was just made");
        if space.add(job.lane, &job.spec.tags, select::order(job)) {
            self.weights.change(&job.key.namespace, |weight| weight + job.spec.tags.weight());
            self.fresh.push((job.key.namespace.clone(), job.lane));
        }
    }

    /// After the commit: counts what the batch queued and what it took.
    pub(super) fn count(&mut self, change: &JobChange) {
        let is_pending = |job: &Option<Job>| job.as_ref().is_some_and(|job| job.state == State::Pending);
        let (was, is) = (is_pending(&change.old), is_pending(&change.new));
        let Some(job) = change.new.as_ref().or(change.old.as_ref()).filter(|_| was != is) else { return };
        let space = self.spaces.get_mut(&job.key.namespace);
        let Some(entry) = space.and_then(|space| space.lanes.get_mut(&job.lane)) else { return };
        entry.count = if is { entry.count + 1 } else { entry.count.saturating_sub(1) };
        if entry.count == 0 && entry.doubt() {
            self.doubts.push_back((job.key.namespace.clone(), job.lane));
        }
    }

    pub(super) fn committed(&mut self) {
        self.fresh.clear();
    }

    /// The batch was taken back: nobody knows whether its lanes hold anything.
    pub(super) fn rolled_back(&mut self) {
        for (namespace, lane) in std::mem::take(&mut self.fresh) {
            let entry = self.spaces.get_mut(&namespace).and_then(|space| space.lanes.get_mut(&lane));
            if entry.is_some_and(Entry::doubt) {
                self.doubts.push_back((namespace, lane));
            }
        }
    }

    /// Looks into lanes in doubt while there are too many of them.
    pub(super) fn clear_doubts(&mut self, connection: &Connection) -> Result<()> {
        self.look_until(connection, DOUBTS_MAX)
    }

    /// Looks into all lanes in doubt.
    pub(super) fn clear_all_doubts(&mut self, connection: &Connection) -> Result<()> {
        self.look_until(connection, 0)
    }

    fn look_until(&mut self, connection: &Connection, left: usize) -> Result<()> {
        while self.doubts.len() > left {
            let Some((namespace, lane)) = self.doubts.pop_front() else { break };
            let Some(space) = self.spaces.get_mut(&namespace) else { continue };
            let Some(entry) = space.lanes.get_mut(&lane) else { continue };
            entry.in_doubt = false;
            if entry.count > 0 {
                continue;
            }
            let gone = space.saw(lane, head(connection, &namespace, lane)?);
            self.went(&namespace, gone);
        }
        Ok(())
    }

    /// Lanes of so much weight are gone.
    fn went(&mut self, namespace: &Namespace, gone: usize) {
        if gone > 0 {
            self.weights.change(namespace, |weight| weight.saturating_sub(gone));
        }
        if self.spaces.get(namespace).is_some_and(|space| space.lanes.is_empty()) {
            self.spaces.remove(namespace);
        }
    }

    /// Entries of all kinds.
    pub(super) fn entries(&self) -> usize {
        let under = |space: &Space| space.by_tag.values().map(HashSet::len).sum::<usize>();
        let of = |space: &Space| 1 + space.lanes.len() + space.by_tag.len() + under(space) + space.by_place.len();
        self.spaces.values().map(of).sum::<usize>() + self.doubts.len()
    }

    pub(super) fn weights(&self) -> Arc<Weights> {
        self.weights.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.spaces.values().map(|space| space.lanes.len()).sum()
    }

    /// The first `count` pending jobs that fit, in claim order: the same answer as [`select::heads`].
    pub(super) fn heads(&mut self, connection: &Connection, query: &HeadQuery, count: usize) -> Result<Vec<JobKey>> {
        let Some(space) = self.spaces.get_mut(&query.namespace) else { return Ok(Vec::new()) };
        let mut search = Search { connection, query, count, found: BTreeMap::new(), seen: Vec::new() };
        match space.fitting(&query.offered) {
            Some(fitting) => search.all(fitting.into_iter())?,
            None => {
                let fits = |(_, lane): &(QueuePosition, Lane)| space.lanes[lane].tags.subset_of(&query.offered);
                search.all(space.by_place.iter().copied().filter(fits))?;
            }
        }
        let Search { found, seen, .. } = search;
        let gone = seen.into_iter().map(|(lane, head)| space.saw(lane, head)).sum();
        self.went(&query.namespace, gone);
        Ok(found.into_values().map(|id| JobKey::new(&query.namespace, id)).collect())
    }
}

/// The smallest key above a lane. SQLite starts a comparison of several columns at the rows that are equal, so asking for lanes
/// greater than one would read all jobs of that lane.
pub(super) fn after(lane: &[u8]) -> Vec<u8> {
    [lane, &[0]].concat()
}

pub(super) fn missing(key: &JobKey) -> Failure {
    Failure::Damaged(format!("an index names job {}/{}, which is not there as it says", key.namespace, key.id))
}

impl Space {
    /// Whether it is new.
    fn add(&mut self, lane: Lane, tags: &Tags, place: QueuePosition) -> bool {
        if let Some(entry) = self.lanes.get_mut(&lane) {
            if place < entry.low {
                self.by_place.remove(&(entry.low, lane));
                self.by_place.insert((place, lane));
                entry.low = place;
            }
            return false;
        }
        let count = |tag: &str| self.by_tag.get(tag).map_or(0, HashSet::len);
        let under: Option<Arc<str>> = tags.iter().min_by_key(|tag| count(tag)).map(Arc::from);
        match &under {
            Some(tag) => drop(self.by_tag.entry(tag.clone()).or_default().insert(lane)),
            None => self.untagged = Some(lane),
        }
        self.by_place.insert((place, lane));
        self.lanes.insert(lane, Entry { tags: tags.clone(), under, low: place, count: 0, in_doubt: false });
        true
    }

    /// A look into the lane found this head, or nothing. The weight of what is gone with that.
    fn saw(&mut self, lane: Lane, head: Option<QueuePosition>) -> usize {
        let Some(entry) = self.lanes.get_mut(&lane) else { return 0 };
        if head == Some(entry.low) {
            return 0;
        }
        self.by_place.remove(&(entry.low, lane));
        match head {
            Some(place) => {
                entry.low = place;
                self.by_place.insert((place, lane));
                0
            }
            None => self.remove(lane),
        }
    }

    fn remove(&mut self, lane: Lane) -> usize {
        let Some(entry) = self.lanes.remove(&lane) else { return 0 };
        let Some(tag) = entry.under else {
            self.untagged = None;
            return entry.tags.weight();
        };
        if let Some(under) = self.by_tag.get_mut(&tag) {
            under.remove(&lane);
            if under.is_empty() {
                self.by_tag.remove(&tag);
            }
        }
        entry.tags.weight()
    }

    /// The lanes that fit, by the earliest place of their head. None: so many may fit that it is better to walk them all
    /// in that order.
    fn fitting(&self, offered: &Tags) -> Option<Vec<(QueuePosition, Lane)>> {
        let under = || offered.iter().filter_map(|tag| self.by_tag.get(tag));
        let candidates: usize = under().map(HashSet::len).sum();
        if candidates > 64 && candidates > self.lanes.len() / 4 {
            return None;
        }
        let lanes = under().flatten().chain(&self.untagged).copied();
        let with_entry = lanes.map(|lane| (lane, &self.lanes[&lane]));
        let fitting = with_entry.filter(|(_, entry)| entry.tags.subset_of(offered));
        let mut fitting: Vec<(QueuePosition, Lane)> = fitting.map(|(lane, entry)| (entry.low, lane)).collect();
        fitting.sort_unstable();
        Some(fitting)
    }
}

/// The place of a lane's first job.
fn head(connection: &Connection, namespace: &Namespace, lane: Lane) -> Result<Option<QueuePosition>> {
    let mut statement = connection.prepare_cached(LANE_HEADS)?;
    let mut rows = statement.query((namespace.as_str(), rows::lane_bytes(lane), 1))?;
    rows.next()?.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
}

/// Looks into lanes until no later one can hold anything earlier.
struct Search<'a> {
    connection: &'a Connection,
    query: &'a HeadQuery,
    count: usize,
    found: BTreeMap<QueuePosition, JobId>,
    seen: Vec<(Lane, Option<QueuePosition>)>,
}

pub(super) const LANE_NEXT: &str = include_str!("sql/lane_next.sql");
pub(super) const LANE_HEADS: &str = include_str!("sql/lane_heads.sql");

impl Search<'_> {
    fn all(&mut self, lanes: impl Iterator<Item = (QueuePosition, Lane)>) -> Result<()> {
        for (low, lane) in lanes {
            if self.beyond(low) {
                break;
            }
            self.look(lane)?;
        }
        Ok(())
    }

    /// True when enough was found, all of it before `place`.
    fn beyond(&self, place: QueuePosition) -> bool {
        self.found.len() >= self.count && self.found.last_key_value().is_none_or(|(last, _)| *last < place)
    }

    fn look(&mut self, lane: Lane) -> Result<()> {
        let mut statement = self.connection.prepare_cached(LANE_HEADS)?;
        let limit = i64::try_from(self.count).unwrap_or(i64::MAX);
        let mut rows = statement.query((self.query.namespace.as_str(), rows::lane_bytes(lane), limit))?;
        let mut head = None;
        while let Some(row) = rows.next()? {
            let place = (row.get(0)?, row.get(1)?);
            head.get_or_insert(place);
            if self.beyond(place) {
                break;
            }
            self.found.insert(place, rows::blob_id(row, 2)?);
            if self.found.len() > self.count {
                self.found.pop_last();
            }
        }
        self.seen.push((lane, head));
        Ok(())
    }
}
