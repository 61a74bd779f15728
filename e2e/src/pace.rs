//! Whether the machine itself runs at its pace.
//!
//! A host that slows a virtual machine down, for a tenth of a second every other second and without telling it, delays
//! everybody alike. What was measured meanwhile says nothing about a server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

const EVERY: Duration = Duration::from_millis(4);
/// A piece of work that takes some tens of microseconds.
const STEPS: u64 = 2_000;
/// So much of its usual time is still the usual pace. Neighbours on the same cores cost something, too.
const USUAL: f64 = 1.8;
/// What piled up meanwhile is worked off for a while.
const AFTER: Duration = Duration::from_millis(60);

pub struct Pace {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(Instant, Duration)>>,
}

/// When the machine was slow.
pub struct Slow(Vec<Instant>);

impl Pace {
    pub fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = thread::spawn(move || {
            let mut samples = Vec::new();
            while !seen.load(Ordering::Relaxed) {
                samples.push((Instant::now(), sample()));
                thread::sleep(EVERY); // Between two samples.
            }
            samples
        });
        Self { over, thread }
    }

    pub fn stop(self) -> Slow {
        self.over.store(true, Ordering::Relaxed);
        let samples = self.thread.join().unwrap();
        let mut times: Vec<Duration> = samples.iter().map(|(_, took)| *took).collect();
        times.sort_unstable();
        // The faster half of the samples is at the usual pace.
        let usual = times.get(times.len() / 4).copied().unwrap_or_default();
        Slow(samples.into_iter().filter(|(_, took)| *took > usual.mul_f64(USUAL)).map(|(at, _)| at).collect())
    }
}

impl Slow {
    /// Whether what took so long from then on was slowed down by the machine.
    pub fn touches(&self, from: Instant, took: Duration) -> bool {
        self.0.iter().any(|slow| *slow + AFTER >= from && *slow <= from + took + EVERY)
    }
}

/// Time on a processor, not on the clock: waiting for one is not slowness of the machine, a slow one is.
fn sample() -> Duration {
    let before = on_processor();
    let mut value = 1u64;
    for step in 0..STEPS {
        value = std::hint::black_box(value.rotate_left(5) ^ step);
    }
    std::hint::black_box(value);
    on_processor().saturating_sub(before)
}

fn on_processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
