//! The only reader of the operating system's clocks.
//!
//! Leases, deadlines and signs of life are lengths of time, so they must not change when somebody sets the clock. They run on a
//! [`Steady`] time: what the clock on the wall said at the start, then on at the pace of the monotonic clock. Only what people
//! wrote as a time of day, calendar schedules, looks at the wall.

use parking_lot::Mutex;
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};
use windlass_core::{Millis, Timestamp};

pub trait Clock: Send + Sync + 'static {
    /// Only moves forward, and at the pace of time.
    fn now(&self) -> Timestamp;

    /// What the clock on the wall says. It may jump.
    fn wall(&self) -> Timestamp {
        self.now()
    }

    /// What is stored already is from this time, so it is never earlier from here on.
    fn not_before(&self, _stored: Timestamp) {}
}

/// Of so much time that passes, one part at most is used to come closer to the wall.
const SLEW: i64 = 100;

/// A time that is carried on by a monotonic clock and drawn slowly towards another one, so that it neither jumps nor stands
/// still. Readings come in as values.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// In microseconds, so that looking often does not round the correction away.
    time: i64,
    monotonic: i64,
    /// Time that passed and was too short to correct anything.
    unused: i64,
}

impl Steady {
    pub fn new(time: Timestamp, monotonic: Duration) -> Self {
        Self { time: micros(time), monotonic: monotonic.as_micros() as i64, unused: 0 }
    }

    /// The time at this reading of the monotonic clock. An earlier one than the last gives the time before.
    pub fn at(&self, monotonic: Duration) -> Timestamp {
        Timestamp((self.time + monotonic.as_micros() as i64 - self.monotonic).div_euclid(1_000))
    }

    /// Moves on, and a little towards `wall`.
    pub fn toward(&mut self, wall: Timestamp, monotonic: Duration) -> Timestamp {
        let passed = (monotonic.as_micros() as i64 - self.monotonic).max(0);
        self.monotonic += passed;
        self.time += passed;
        self.unused += passed;
        let most = self.unused / SLEW;
        self.unused %= SLEW;
        self.time += (micros(wall) - self.time).clamp(-most, most);
        Timestamp(self.time.div_euclid(1_000))
    }

    /// Jumps forward if it has to, so that it is no earlier than `time` at this reading. Whoever does this sees to it that
    /// nothing runs out because of it.
    pub fn not_before(&mut self, time: Timestamp, monotonic: Duration) {
        let then = self.time + monotonic.as_micros() as i64 - self.monotonic;
        self.time += (micros(time) - then).max(0);
    }
}

fn micros(time: Timestamp) -> i64 {
    time.0.saturating_mul(1_000)
}

/// The system's clocks.
pub struct System {
    started: Instant,
    steady: Mutex<Steady>,
}

impl Default for System {
    fn default() -> Self {
        Self { started: Instant::now(), steady: Mutex::new(Steady::new(system_wall(), Duration::ZERO)) }
    }
}

fn system_wall() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis() as i64)
}

impl Clock for System {
    fn now(&self) -> Timestamp {
        let mut steady = self.steady.lock();
        steady.toward(system_wall(), self.started.elapsed())
    }

    fn wall(&self) -> Timestamp {
        system_wall()
    }

    fn not_before(&self, stored: Timestamp) {
        self.steady.lock().not_before(stored, self.started.elapsed());
    }
}

/// Clocks that tests move.
pub struct Simulated {
    now: AtomicI64,
    /// How far the wall is ahead.
    wall: AtomicI64,
}

impl Simulated {
    pub fn at(start: Timestamp) -> Self {
        Self { now: AtomicI64::new(start.0), wall: AtomicI64::new(0) }
    }
    pub fn advance(&self, length: Millis) {
        self.now.fetch_add(length.0, Ordering::AcqRel);
    }
    pub fn set(&self, now: Timestamp) {
        self.now.store(now.0, Ordering::Release);
    }
    /// As if somebody had set the clock on the wall.
    pub fn jump(&self, length: Millis) {
        self.wall.fetch_add(length.0, Ordering::AcqRel);
    }
}

impl Clock for Simulated {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Acquire))
    }

    fn wall(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::Acquire) + self.wall.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    /// Each row: how long after the start somebody sets the clock, and by how much; the time is looked at every `look` ms.
    #[test]
    fn however_the_wall_jumps_time_goes_on_at_the_pace_of_time() {
        let jumps: [&[(i64, i64)]; 6] = [
            &[],
            &[(1_000, HOUR)],
            &[(1_000, -HOUR)],
            &[(1_000, HOUR), (2_000, -HOUR), (2_001, -HOUR)],
            &[(500, 24 * HOUR), (4_000, -48 * HOUR)],
            &[(500, 300), (600, -300), (700, 300), (800, -300)],
        ];
        for (row, jumps) in jumps.iter().enumerate() {
            for look in [1, 7, 250, 5_000] {
                let start = 1_000_000_000;
                let mut steady = Steady::new(Timestamp(start), Duration::ZERO);
                let mut before = start;
                for passed in (look..=10_000).step_by(look as usize) {
                    let off: i64 = jumps.iter().filter(|(at, _)| *at <= passed).map(|(_, by)| by).sum();
                    let wall = Timestamp(start + passed + off);
                    let now = steady.toward(wall, Duration::from_millis(passed as u64)).0;
                    let moved = now - before;
                    assert!(
                        (look - look / SLEW - 1..=look + look / SLEW + 1).contains(&moved),
                        "{row}: {moved} in {look} ms"
                    );
                    assert!(
                        (now - start - passed).abs() <= passed / SLEW + 1,
                        "{row}: {} after {passed} ms",
                        now - start
                    );
                    before = now;
                }
            }
        }
    }

    #[test]
    fn a_small_error_is_corrected_slowly_however_often_one_looks() {
        for look in [10, 500, 20_000] {
            let mut steady = Steady::new(Timestamp(0), Duration::ZERO);
            let mut now = 0;
            for passed in (look..=20_000_000).step_by(look as usize) {
                now = steady.toward(Timestamp(passed / 1_000 + 100), Duration::from_micros(passed as u64)).0;
                if passed == 5_000_000 {
                    assert!((5_049..=5_051).contains(&now), "half-way after five seconds: {now}");
                }
            }
            assert!((20_099..=20_100).contains(&now), "looked at every {look} µs: {now}");
        }
    }

    #[test]
    fn it_is_never_behind_what_is_stored() {
        let clock = System::default();
        let stored = clock.now() + Millis(HOUR);
        clock.not_before(stored);
        let first = clock.now();
        assert!(first >= stored && clock.now() >= first);
        clock.not_before(Timestamp(5));
        assert!(clock.now() >= first);
        assert!(clock.wall() < stored, "the wall says what it says");
    }
}
