//! Tells those who wait for one job that it has ended or that its log grew, and those who wait for one run that it has ended.
//! Nobody hears of anything else, so that waiting costs nothing while other things happen.

use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use tokio::sync::Notify;
use windlass_core::{About, Event, JobKey, Namespace, RunId};

/// What somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    Job(JobKey),
    Run(Namespace, RunId),
}

impl Subject {
    /// What an event is the end of.
    pub fn ended_by(event: &Event) -> Option<Self> {
        match event.what.about() {
            About::RunEnd(run) => Some(Subject::Run(event.namespace.clone(), run)),
            About::JobEnd(job) => Some(Subject::Job(JobKey::new(&event.namespace, job))),
            _ => None,
        }
    }

    /// Short, and the same in every build: servers name it to each other by it. That two share one costs a look.
    pub fn hint(&self) -> u64 {
        let (namespace, id) = match self {
            Subject::Job(key) => (&key.namespace, key.id.as_bytes()),
            Subject::Run(namespace, run) => (namespace, run.as_bytes()),
        };
        let bytes = namespace.as_str().bytes().chain([b'\n']).chain(id.iter().copied());
        // FNV-1a.
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

type Readers = HashMap<Subject, (usize, Arc<Notify>)>;

#[derive(Default)]
pub struct Bulletin {
    readers: Mutex<Readers>,
}

/// Hears of one thing until it is dropped.
pub struct Reader {
    bulletin: Arc<Bulletin>,
    subject: Subject,
    bell: Arc<Notify>,
}

impl Bulletin {
    /// Register before looking, so that nothing falls between.
    pub fn register(self: &Arc<Self>, subject: Subject) -> Reader {
        let mut readers = self.readers.lock();
        let (count, bell) = readers.entry(subject.clone()).or_default();
        *count += 1;
        Reader { bulletin: self.clone(), subject, bell: bell.clone() }
    }

    pub fn subjects(&self) -> usize {
        self.readers.lock().len()
    }

    pub fn post(&self, events: &[Event], logged: &[JobKey]) {
        let readers = self.readers.lock();
        if readers.is_empty() {
            return;
        }
        let ended = events.iter().filter_map(Subject::ended_by);
        for subject in ended.chain(logged.iter().cloned().map(Subject::Job)) {
            if let Some((_, bell)) = readers.get(&subject) {
                bell.notify_waiters();
            }
        }
    }
}

impl Bulletin {
    /// What ended at another server.
    pub fn post_hints(&self, ended: &[u64]) {
        let readers = self.readers.lock();
        if readers.is_empty() {
            return;
        }
        let ended: HashSet<u64> = ended.iter().copied().collect();
        for (_, (_, bell)) in readers.iter().filter(|(subject, _)| ended.contains(&subject.hint())) {
            bell.notify_waiters();
        }
    }
}

impl Reader {
    /// Enable it before looking; await it after.
    pub fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.bell.notified()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut readers = self.bulletin.readers.lock();
        if let Some((count, _)) = readers.get_mut(&self.subject) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{JobId, Timestamp, What, run::RunState};

    fn job(id: u128) -> JobKey {
        JobKey::new(&Namespace::default(), JobId::from_u128(id))
    }

    fn run(id: u128) -> Subject {
        Subject::Run(Namespace::default(), RunId(JobId::from_u128(id).0))
    }

    fn event(namespace: &Namespace, what: What) -> Event {
        Event { namespace: namespace.clone(), at: Timestamp(0), what }
    }

    /// How many of the readers a post wakes.
    fn woken(bulletin: &Bulletin, readers: &[Reader], events: &[Event], logged: &[JobKey]) -> usize {
        let mut news: Vec<_> = readers.iter().map(|reader| Box::pin(reader.news())).collect();
        for news in &mut news {
            news.as_mut().enable();
        }
        bulletin.post(events, logged);
        news.iter_mut().filter_map(|news| news.as_mut().enable().then_some(())).count()
    }

    #[test]
    fn whoever_waits_for_one_thing_is_woken_by_that_and_by_nothing_else() {
        let (bulletin, here) = (Arc::new(Bulletin::default()), Namespace::default());
        let elsewhere = Namespace::new("elsewhere").unwrap();
        let subjects = (0..1_000).flat_map(|id| [run(id), Subject::Job(job(id))]);
        let readers: Vec<Reader> = subjects.map(|subject| bulletin.register(subject)).collect();
        let finished = |id| What::RunFinished { run: RunId(JobId::from_u128(id).0), state: RunState::Completed };
        let table = [
            (vec![event(&here, finished(7))], vec![], 1),
            (vec![event(&elsewhere, finished(7))], vec![], 0),
            (vec![event(&here, What::Completed { job: JobId::from_u128(7) })], vec![], 1),
            (vec![event(&here, What::Submitted { job: JobId::from_u128(7) })], vec![], 0),
            (vec![event(&here, What::RunStarted { run: RunId(JobId::from_u128(7).0) })], vec![], 0),
            (vec![event(&here, finished(5_000))], vec![job(3), job(4)], 2),
        ];
        for (events, logged, expected) in table {
            assert_eq!(woken(&bulletin, &readers, &events, &logged), expected, "{events:?}");
        }
        drop(readers);
        assert!(bulletin.readers.lock().is_empty(), "those who wait no longer are forgotten");
    }
}
