//! The time that decides, for all servers on one database.
//!
//! It is the database's time plus an offset that is stored beside the rows, so that all servers go by the same. Each server
//! carries the time on with its own monotonic clock in between. If the database's clock is set, the sum no longer agrees with
//! the monotonic clocks; whoever notices first changes the offset by as much, and for everybody time goes on as before. The
//! offset then shrinks slowly, until the database's time is the one that decides again.
//!
//! Where two servers disagree (one started just when the clock was set, one was paused with its machine) the later time is
//! taken by both, because what is stored may be from then. Whoever has to step forward for that grants grace.

use super::{Inner, failure::Failure, run::NO_ANSWER, statements::Sql};
use parking_lot::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use windlass_core::Timestamp;
use windlass_engine::{StoreError, clock::Steady};

/// A difference beyond this is no slow answer and no drift: a clock was set.
const JUMP_MS: i64 = 2_000;
/// An offset shrinks by one part of so much time; less than what [`Steady`] can follow.
const SHRINK: i64 = 200;

/// What is added to the database's time, as it was when the database's time was `since`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offset {
    ms: i64,
    since: i64,
}

impl Offset {
    fn shared(self, database: Timestamp) -> Timestamp {
        Timestamp(database.0.saturating_add(self.left(database)))
    }

    /// What is left of it.
    fn left(self, database: Timestamp) -> i64 {
        let shrunk = (database.0.saturating_sub(self.since)).max(0) / SHRINK;
        if self.ms < 0 { (self.ms + shrunk).min(0) } else { (self.ms - shrunk).max(0) }
    }

    /// What the database's clock shows at a time, to a part in two hundred of the offset's age.
    fn database(self, shared: Timestamp) -> Timestamp {
        let about = Timestamp(shared.0.saturating_sub(self.ms));
        Timestamp(shared.0.saturating_sub(self.left(about)))
    }
}

/// What the database said, and between which readings of the monotonic clock it said so.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    pub database: Timestamp,
    offset: Offset,
    /// When the latest batch was decided.
    latest: Option<Timestamp>,
    sent: Duration,
    received: Duration,
}

#[derive(Debug)]
struct State {
    steady: Steady,
    offset: Offset,
    steps: u64,
}

/// What to do about a difference.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    offset: Offset,
    /// The offset is new: store it.
    write: bool,
    /// Others go by a later time.
    forward: Option<Timestamp>,
}

impl State {
    /// Never behind what is stored.
    fn start(told: &ClockReading) -> (Self, Verdict) {
        let shared = told.offset.shared(told.database);
        let now = told.latest.map_or(shared, |latest| latest.max(shared));
        let write = (now - shared).0 > JUMP_MS;
        let offset = if write { offset_for(now, told) } else { told.offset };
        let state = Self { steady: Steady::new(now, told.received), offset, steps: 0 };
        (state, Verdict { offset, write, forward: None })
    }

    /// How far a time is ahead of ours, beyond what the way of the answer explains.
    fn ahead(&self, shared: Timestamp, sent: Duration, received: Duration) -> i64 {
        let (early, late) = (self.steady.at(sent), self.steady.at(received));
        (shared - late).0.max(0) + (shared - early).0.min(0)
    }

    /// Our time, drawn a little towards the one that all servers share. None: they differ, because a clock was set.
    fn look(&mut self, database: Timestamp, sent: Duration, received: Duration) -> Option<Timestamp> {
        let ahead = self.ahead(self.offset.shared(database), sent, received);
        let toward = Timestamp(self.steady.at(received).0 + ahead);
        (ahead.abs() <= JUMP_MS).then(|| self.steady.toward(toward, received))
    }

    /// The same, with the offset as it is stored now. One that does not agree is for all to correct, not for this look.
    fn look_told(&mut self, told: &ClockReading) -> Option<Timestamp> {
        let shared = told.offset.shared(told.database);
        if self.ahead(shared, told.sent, told.received).abs() > JUMP_MS {
            return None;
        }
        self.offset = told.offset;
        self.look(told.database, told.sent, told.received)
    }

    fn judge(&self, told: &ClockReading) -> Verdict {
        let shared = told.offset.shared(told.database);
        let ahead = self.ahead(shared, told.sent, told.received);
        let mine = self.steady.at(told.received);
        if ahead.abs() <= JUMP_MS {
            return Verdict { offset: told.offset, write: false, forward: None };
        }
        // Others have set the clock to a later time, or written rows at one.
        let set = (ahead > 0 && told.offset != self.offset).then_some(shared);
        let written = told.latest.filter(|latest| (*latest - mine).0 > JUMP_MS);
        let forward = set.max(written);
        let now = forward.unwrap_or(mine);
        let write = (now - shared).0.abs() > JUMP_MS;
        let offset = if write { offset_for(now, told) } else { told.offset };
        Verdict { offset, write, forward }
    }

    fn apply(&mut self, verdict: &Verdict, received: Duration) {
        self.offset = verdict.offset;
        if let Some(time) = verdict.forward {
            self.steady.not_before(time, received);
            self.steps += 1;
        }
    }
}

fn offset_for(now: Timestamp, told: &ClockReading) -> Offset {
    Offset { ms: (now - told.database).0, since: told.database.0 }
}

pub struct Time {
    started: Instant,
    state: Mutex<Option<State>>,
    setting: tokio::sync::Mutex<()>,
}

impl Default for Time {
    fn default() -> Self {
        Self { started: Instant::now(), state: Mutex::new(None), setting: tokio::sync::Mutex::new(()) }
    }
}

impl Time {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock()
    }

    fn told(&self, row: &Row, sent: Duration) -> Result<ClockReading, Failure> {
        let number = |at: usize| row.try_get::<_, Option<i64>>(at);
        let offset = Offset { ms: number(1)?.unwrap_or(0), since: number(2)?.unwrap_or(0) };
        let (database, latest) = (Timestamp(row.try_get(0)?), number(3)?.map(Timestamp));
        Ok(ClockReading { database, offset, latest, sent, received: self.started.elapsed() })
    }
}

impl Inner {
    /// To be read before the database is asked for the time.
    pub fn monotonic(&self) -> Duration {
        self.time.started.elapsed()
    }

    /// The time that decides, given what the database says. It may not decide anything while the two differ.
    pub fn now(&self, database: Timestamp, sent: Duration) -> Result<Timestamp, Failure> {
        if let Some(clock) = &self.clock {
            return Ok(clock.now());
        }
        let received = self.monotonic();
        let seen = self.time.lock().as_mut().and_then(|state| state.look(database, sent, received));
        seen.ok_or(Failure::Clock)
    }

    /// The time that decides without asking, and what the database's clock should show: whoever decides by it has that
    /// compared before anything is written. None: ask.
    pub fn now_unasked(&self) -> Option<(Timestamp, Option<Timestamp>)> {
        if let Some(clock) = &self.clock {
            return Some((clock.now(), None));
        }
        let state = self.time.lock();
        let state = state.as_ref()?;
        let now = state.steady.at(self.monotonic());
        Some((now, Some(state.offset.database(now))))
    }

    /// The same, with what is stored about the offset: another server may have set it.
    pub fn now_told(&self, told: &ClockReading) -> Option<Timestamp> {
        if let Some(clock) = &self.clock {
            return Some(clock.now());
        }
        self.time.lock().as_mut()?.look_told(told)
    }

    /// The same, where no rule depends on it.
    pub fn now_alone(&self) -> Timestamp {
        if let Some(clock) = &self.clock {
            return clock.now();
        }
        self.time.lock().as_ref().map_or(Timestamp(0), |state| state.steady.at(self.monotonic()))
    }

    pub fn clock_steps(&self) -> u64 {
        self.time.lock().as_ref().map_or(0, |state| state.steps)
    }

    /// What the database says about the time, from the answer to [`Sql::Clock`].
    pub fn told(&self, rows: &[Row], sent: Duration) -> Result<ClockReading, Failure> {
        let row = rows.first().ok_or_else(|| Failure::corrupt("the database does not tell the time"))?;
        self.time.told(row, sent)
    }

    /// Agrees with the other servers on the time, after the database's clock was set or when this one starts.
    pub async fn set_clock(&self) -> Result<(), StoreError> {
        if self.clock.is_some() {
            return Ok(());
        }
        let _setting = self.time.setting.lock().await;
        let taken = self.readers_for_numbers.take().await?;
        let set = tokio::time::timeout(self.attempt_max, self.set_clock_on(&taken)).await;
        match set.unwrap_or_else(|_| Err(Failure::Lost(NO_ANSWER.into()))) {
            Ok(()) => {
                taken.give_back();
                Ok(())
            }
            // Whatever was begun ends with the connection.
            Err(failure) => Err(failure.into_store_error()),
        }
    }

    async fn set_clock_on(&self, connection: &super::connection::Lent) -> Result<(), Failure> {
        let lock = self.lock_key("clock");
        connection.batch(&format!("BEGIN; SELECT pg_advisory_xact_lock({lock})")).await?;
        let sent = self.monotonic();
        let told = self.told(&connection.query(Sql::Clock, &[]).await?, sent)?;
        let (started, verdict) = match &*self.time.lock() {
            Some(state) => (None, state.judge(&told)),
            None => {
                let (state, verdict) = State::start(&told);
                (Some(state), verdict)
            }
        };
        if verdict.write {
            tracing::warn!(
                offset_ms = verdict.offset.ms,
                "the database's clock was changed; leases and deadlines are not affected"
            );
            connection.execute(Sql::SetClock, &[&verdict.offset.ms, &verdict.offset.since]).await?;
        }
        connection.batch("COMMIT").await?;
        let mut state = self.time.lock();
        match started {
            Some(started) => *state = Some(started),
            None => state.iter_mut().for_each(|state| state.apply(&verdict, told.received)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_000_000_000;
    const HOUR: i64 = 3_600_000;

    /// A database whose clock can be set, and servers on it, in simulation.
    #[derive(Default)]
    struct World {
        /// Real time since the start, and how far the database's clock is ahead of it.
        real: i64,
        jumped: i64,
        offset: Offset,
        latest: Option<Timestamp>,
        /// Each with the time that its monotonic clock missed.
        servers: Vec<(State, i64)>,
    }

    impl World {
        fn told(&self, missed: i64) -> ClockReading {
            let at = Duration::from_millis((self.real - missed) as u64);
            let database = Timestamp(START + self.real + self.jumped);
            ClockReading { database, offset: self.offset, latest: self.latest, sent: at, received: at }
        }

        fn start(&mut self) {
            let (state, verdict) = State::start(&self.told(0));
            self.offset = verdict.offset;
            self.servers.push((state, 0));
        }

        /// One sweep and a batch on one server, with whatever agreement they need first. When it was, from the start.
        fn batch(&mut self, server: usize) -> i64 {
            for _ in 0..2 {
                let told = self.told(self.servers[server].1);
                let state = &mut self.servers[server].0;
                if let Some(now) = state.look_told(&told) {
                    self.latest = Some(now);
                    return now.0 - START;
                }
                let verdict = state.judge(&told);
                state.apply(&verdict, told.received);
                self.offset = verdict.offset;
            }
            panic!("{server} finds no time: {:?}", self.servers[server].0);
        }

        fn pass(&mut self, ms: i64) {
            self.real += ms;
        }
    }

    #[test]
    fn however_the_databases_clock_is_set_time_goes_on_for_all_servers() {
        for jumps in [[HOUR, 0], [-HOUR, 0], [HOUR, -HOUR], [-HOUR, 5 * HOUR], [2_500, -10_000]] {
            let mut world = World::default();
            world.start();
            world.start();
            for (round, jump) in jumps.into_iter().enumerate() {
                world.jumped += jump;
                for step in 0..100 {
                    world.pass(100);
                    let now = world.batch(step % 2);
                    assert!(
                        (now - world.real).abs() <= world.real / 100 + 2,
                        "{jumps:?} {round}: {now} {}",
                        world.real
                    );
                }
            }
            assert!(world.servers.iter().all(|(state, _)| state.steps == 0), "nobody had to step: {jumps:?}");
            world.start();
            let late = world.batch(2);
            assert!((late - world.real).abs() <= world.real / 100 + 2, "a server that starts goes by the same time");
        }
    }

    #[test]
    fn a_server_that_starts_after_the_clock_was_set_back_is_not_behind_what_is_stored() {
        let mut world = World::default();
        world.start();
        world.pass(10_000);
        world.batch(0);
        world.jumped = -HOUR;
        world.start();
        world.pass(5_000);
        assert!((14_900..=15_100).contains(&world.batch(1)));
        assert!((14_900..=15_100).contains(&world.batch(0)), "and the other one agrees");
    }

    #[test]
    fn servers_that_disagree_take_the_later_time_and_the_one_that_steps_grants_grace() {
        // One starts when the clock was set forward and nobody has noticed yet.
        let mut world = World::default();
        world.start();
        world.pass(1_000);
        world.jumped = HOUR;
        world.start();
        let times = [world.batch(0), world.batch(1), world.batch(0), world.batch(1)];
        assert!((times[3] - times[2]).abs() <= 20 && times[3] >= HOUR, "{times:?}");
        assert_eq!((world.servers[0].0.steps, world.servers[1].0.steps), (1, 0));
        // One was paused with its machine, while the other worked on, or did not.
        for busy in [true, false] {
            let mut world = World::default();
            world.start();
            world.start();
            world.pass(HOUR);
            world.servers[0].1 = HOUR;
            if busy {
                world.batch(1);
            }
            let times = [world.batch(0), world.batch(1), world.batch(0), world.batch(1)];
            assert!((times[3] - times[2]).abs() <= 20 && times[3] >= HOUR, "busy {busy}: {times:?}");
            assert_eq!(world.servers[0].0.steps, 1, "busy {busy}");
        }
    }

    #[test]
    fn an_offset_shrinks_until_the_databases_time_decides_again() {
        for jump in [10_000, -10_000] {
            let mut world = World::default();
            world.start();
            world.jumped = jump;
            let mut before = world.batch(0);
            for _ in 0..3_000 {
                world.pass(1_000);
                let now = world.batch(0);
                assert!((985..=1_015).contains(&(now - before)), "{jump}: {}", now - before);
                before = now;
            }
            assert!((before - world.real - jump).abs() <= 2, "{jump}: {before} {}", world.real);
        }
    }

    #[test]
    fn a_slow_answer_is_no_jump() {
        let mut world = World::default();
        world.start();
        world.pass(60_000);
        let database = Timestamp(START + 30_000);
        let state = &mut world.servers[0].0;
        let (sent, received) = (Duration::from_secs(20), Duration::from_secs(60));
        let now = state.look(database, sent, received).unwrap();
        assert_eq!(now, Timestamp(START + 60_000));
        assert_eq!(state.look(database, Duration::from_secs(33), received), None);
    }
}
