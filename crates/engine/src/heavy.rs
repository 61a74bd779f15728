//! Requests that make hundreds of jobs or bring half a megabyte in one transaction, which nobody else can commit beside.
//!
//! They go one at a time, each namespace in its turn, and while others are at work a namespace rests after each for many
//! times as long as it took. Whoever has the server to himself does not wait at all.

use crate::{error::Error, intake::weight, pieces::is_report, queue::Queue};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::{Mutex as FairMutex, MutexGuard, OwnedMutexGuard},
    time::{Instant, sleep},
};
use windlass_core::{Command, Namespace};

/// Jobs that one command makes before it counts as heavy.
const JOBS: usize = 200;
/// Bytes that it brings before it does.
const BYTES: usize = 512 << 10;
/// How many times as long as it worked a namespace rests while others are there: hundreds of jobs get a twentieth of the
/// time, bytes a tenth.
const REST_JOBS: u32 = 19;
const REST_BYTES: u32 = 9;
const REST_MAX: Duration = Duration::from_secs(30);
/// How often somebody who rests looks whether the others are gone.
const LOOK: Duration = Duration::from_millis(20);
/// Heavy requests of one namespace that may wait; one more is told to come back later.
const WAITING_MAX: usize = 8;
/// The same for all namespaces.
const ALL_WAITING_MAX: usize = 64;

/// The namespace of a heavy request, and how many times as long as it takes the namespace rests afterwards. What a worker
/// reports under its lease never has to rest: the lease would run out meanwhile.
pub fn of(commands: &[Command]) -> Option<(&Namespace, u32)> {
    let first = commands.first().filter(|first| commands.len() == 1 || matches!(first, Command::KeepPart(_)))?;
    let rest = if first.jobs() > JOBS {
        REST_JOBS
    } else if weight(commands) > BYTES && !is_report(first) {
        REST_BYTES
    } else {
        return None;
    };
    first.namespace().map(|namespace| (namespace, rest))
}

#[derive(Default)]
pub struct Heavy {
    /// One at a time; in here wait at most one of each namespace, so that they take turns.
    alone: FairMutex<()>,
    lines: Mutex<HashMap<Namespace, Line>>,
}

/// Taken by whoever's turn it is in its namespace.
type Rest = Arc<FairMutex<Option<Instant>>>;

/// Those of one namespace.
#[derive(Default)]
struct Line {
    /// Until when it rests.
    turn: Rest,
    waiting: usize,
}

/// The right to run one heavy request now.
pub struct HeavyPermit<'a> {
    began: Instant,
    rest: u32,
    rests_until: OwnedMutexGuard<Option<Instant>>,
    _alone: MutexGuard<'a, ()>,
    _in_line: InLine<'a>,
}

impl Heavy {
    pub async fn permit<'a>(
        &'a self,
        queue: &Queue,
        (namespace, rest): (&Namespace, u32),
    ) -> Result<HeavyPermit<'a>, Error> {
        let (in_line, line) = self.line_up(namespace)?;
        let rests_until = line.lock_owned().await;
        if let Some(until) = *rests_until {
            sit_out(queue, until).await;
        }
        let alone = self.alone.lock().await;
        Ok(HeavyPermit { began: Instant::now(), rest, rests_until, _alone: alone, _in_line: in_line })
    }

    fn line_up(&self, namespace: &Namespace) -> Result<(InLine<'_>, Rest), Error> {
        let mut lines = self.lines.lock();
        lines.retain(|_, line| line.waiting > 0 || line.rests());
        let all: usize = lines.values().map(|line| line.waiting).sum();
        let line = lines.entry(namespace.clone()).or_default();
        if line.waiting == WAITING_MAX || all >= ALL_WAITING_MAX {
            return Err(Error::Overloaded);
        }
        line.waiting += 1;
        Ok((InLine { heavy: self, namespace: namespace.clone() }, line.turn.clone()))
    }
}

impl Line {
    fn rests(&self) -> bool {
        self.turn.try_lock().is_ok_and(|until| until.is_some_and(|until| until > Instant::now()))
    }
}

async fn sit_out(queue: &Queue, until: Instant) {
    while Instant::now() < until && queue.is_shared() {
        sleep(LOOK).await;
    }
}

impl Drop for HeavyPermit<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        *self.rests_until = Some(now + ((now - self.began) * self.rest).min(REST_MAX));
    }
}

/// Given back also by callers that do not wait any longer.
struct InLine<'a> {
    heavy: &'a Heavy,
    namespace: Namespace,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut lines = self.heavy.lines.lock();
        if let Some(line) = lines.get_mut(&self.namespace) {
            line.waiting -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{
        JobId, LeaseId, RunId,
        commands::{complete::Complete, fail::Fail, holder::Holder, keep_part::KeepPart, tell::Tell},
    };

    #[test]
    fn what_brings_half_a_megabyte_rests_unless_a_worker_reports_it() {
        let namespace = Namespace::new("a").unwrap();
        let text = |bytes| format!("\"{}\"", "x".repeat(bytes));
        let tell = |bytes: usize| -> Command {
            Tell { namespace: namespace.clone(), topic: "t".into(), data: text(bytes).as_str().into() }.into()
        };
        assert_eq!(of(&[tell(BYTES / 2)]), None);
        assert_eq!(of(&[tell(BYTES)]), Some((&namespace, REST_BYTES)));
        assert_eq!(of(&[tell(BYTES), tell(BYTES)]), None, "these go in pieces");
        let part = |at| -> Command {
            let (run, text) = (RunId::from_u128(1), text(BYTES / 4).into());
            KeepPart { namespace: namespace.clone(), run, at, text }.into()
        };
        assert_eq!(of(&(0..3).map(part).collect::<Vec<_>>()), None);
        assert_eq!(of(&(0..4).map(part).collect::<Vec<_>>()), Some((&namespace, REST_BYTES)), "in pieces, with a rest");
        let holder = Holder::lease(&namespace, LeaseId::new(JobId::from_u128(1), Default::default()));
        let result = || text(BYTES).as_str().into();
        let completed: Command = Complete { holder: holder.clone(), result: result() }.into();
        let failed: Command = Fail { holder, message: "m".into(), retryable: false, result: result() }.into();
        for report in [completed, failed] {
            assert_eq!(of(std::slice::from_ref(&report)), None);
            assert!(report.weight() > BYTES, "all that it brings takes room: {}", report.weight());
        }
    }
}
