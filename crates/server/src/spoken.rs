//! Who called last in which protocol, for people who wonder whether their old clients are still about.

use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

/// One protocol. Costs a caller two additions, and once in a second a lock.
pub struct Voice {
    pub name: &'static str,
    pub namespace: Option<&'static str>,
    start: Instant,
    calls: AtomicU64,
    /// Seconds since the start, and one.
    at: AtomicU64,
    who: Mutex<Option<Arc<str>>>,
}

/// What was last heard.
pub struct Heard {
    pub calls: u64,
    pub seconds_ago: Option<u64>,
    pub who: Option<Arc<str>>,
}

impl Voice {
    pub fn heard(&self, who: Option<&Arc<str>>) {
        self.calls.fetch_add(1, Relaxed);
        let now = self.start.elapsed().as_secs() + 1;
        if self.at.swap(now, Relaxed) != now {
            *self.who.lock() = who.cloned();
        }
    }

    pub fn last(&self) -> Heard {
        let at = self.at.load(Relaxed);
        let now = self.start.elapsed().as_secs() + 1;
        Heard {
            calls: self.calls.load(Relaxed),
            seconds_ago: (at > 0).then(|| now.saturating_sub(at)),
            who: self.who.lock().clone(),
        }
    }
}

/// All protocols, in the order in which they were first met.
#[derive(Default)]
pub struct Voices(Mutex<Vec<Arc<Voice>>>);

impl Voices {
    pub fn of(&self, name: &'static str, namespace: Option<&'static str>) -> Arc<Voice> {
        let mut known = self.0.lock();
        if let Some(voice) = known.iter().find(|voice| voice.name == name) {
            return voice.clone();
        }
        let (start, calls, at) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
        let voice = Arc::new(Voice { name, namespace, start, calls, at, who: Mutex::new(None) });
        known.push(voice.clone());
        voice
    }

    pub fn all(&self) -> Vec<Arc<Voice>> {
        self.0.lock().clone()
    }
}
