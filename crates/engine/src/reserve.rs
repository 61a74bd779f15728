//! While the disk is nearly full, only commands that free something, report or keep a lease are let in. What is left is for them.
//!
//! The embedded store says when only its reserve is left. PostgreSQL says so by refusing a batch; for a moment after that the same
//! commands go alone, so that a large submit does not take a small report down with it.

use crate::{error::Error, store::StoreError};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};
use windlass_core::{Command, Namespace, Refusal};

/// How long after a batch found no room no other one tries to bring more.
const HELD_OFF_FOR: Duration = Duration::from_secs(1);
/// Bytes that a report may bring without being counted.
const FREE_BYTES: usize = 1 << 10;
/// One namespace may use one part in so many of the reserve, so that its results leave room for what others report.
const SHARE: u64 = 4;

#[derive(Default)]
pub struct Reserve {
    /// When a batch last found no room.
    full_at: Mutex<Option<Instant>>,
    /// Bytes that each namespace has used of the reserve.
    used: Mutex<HashMap<Namespace, u64>>,
    in_use: AtomicBool,
    was_full: AtomicBool,
}

impl Reserve {
    pub fn found_full(&self) {
        *self.full_at.lock() = Some(Instant::now());
        self.was_full.store(true, Relaxed);
    }

    /// Why a command may not use the room that is left. `left`: what [`Store::reserve_left`] says.
    ///
    /// [`Store::reserve_left`]: crate::store::Store::reserve_left
    pub fn refuse(&self, left: Option<u64>, command: &Command) -> Option<Refusal> {
        let left = self.left(left)?;
        if !command.may_use_reserve() {
            return Some(full("what is left of the disk is reserved for reports, renewals, cancels and deletes"));
        }
        self.count(left?, command)
    }

    /// A claim makes work that would need more.
    pub fn refuse_claim(&self, left: Option<u64>) -> Option<Refusal> {
        self.left(left).map(|_| full("what is left of the disk is reserved for jobs that are held already"))
    }

    pub fn is_in_use(&self, left: Option<u64>) -> bool {
        self.left(left).is_some()
    }

    /// None: there is room. What is left is only known where the store keeps a reserve.
    fn left(&self, left: Option<u64>) -> Option<Option<u64>> {
        if left.is_none() && self.in_use.load(Relaxed) && self.in_use.swap(false, Relaxed) {
            self.used.lock().clear();
        }
        (left.is_some() || self.is_held_off()).then_some(left)
    }

    fn is_held_off(&self) -> bool {
        if !self.was_full.load(Relaxed) {
            return false;
        }
        let held_off = self.full_at.lock().is_some_and(|at| at.elapsed() < HELD_OFF_FOR);
        self.was_full.store(held_off, Relaxed);
        held_off
    }

    fn count(&self, left: u64, command: &Command) -> Option<Refusal> {
        let bytes = command.reported_bytes().saturating_sub(FREE_BYTES) as u64;
        let namespace = command.namespace().filter(|_| bytes > 0)?;
        self.in_use.store(true, Relaxed);
        let mut used = self.used.lock();
        let used = used.entry(namespace.clone()).or_default();
        if *used + bytes > left / SHARE {
            return Some(full("this namespace has used its part of the space that is reserved for reports"));
        }
        *used += bytes;
        None
    }
}

/// A store without room is no verdict about the command: who decides about runs tries again later.
pub fn as_error(refusal: Refusal) -> Error {
    match refusal {
        Refusal::StoreFull { why } => {
            let text = format!("{why}; free space on its disk, and everything is accepted again without a restart");
            StoreError::Full(text).into()
        }
        refusal => refusal.into(),
    }
}

fn full(why: &'static str) -> Refusal {
    Refusal::StoreFull { why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{
        JobId, LeaseId, Payload,
        commands::{
            all::All,
            complete::Complete,
            holder::Holder,
            renew::Renew,
            submit::{NewJob, Submit},
        },
    };

    fn submit() -> Command {
        Submit { namespace: Namespace::default(), job: NewJob::new(JobId::from_u128(1)) }.into()
    }

    fn report(namespace: &str, bytes: usize) -> Command {
        let lease = LeaseId { job: JobId::from_u128(1), secret: Default::default() };
        let holder = Holder::lease(&Namespace::new(namespace).unwrap(), lease);
        Complete { holder, result: Payload::from(vec![b'x'; bytes]) }.into()
    }

    fn renew(namespace: &str) -> Command {
        let Command::Complete(Complete { holder, .. }) = report(namespace, 0) else { unreachable!() };
        Renew { holder, length: None }.into()
    }

    fn is_full(reserve: &Reserve, left: Option<u64>, command: Command) -> bool {
        matches!(reserve.refuse(left, &command), Some(Refusal::StoreFull { .. }))
    }

    #[test]
    fn the_reserve_is_for_reports_and_what_goes_with_them() {
        let (reserve, left) = (Reserve::default(), Some(1 << 20));
        assert!(is_full(&reserve, left, submit()));
        assert!(reserve.refuse_claim(left).is_some());
        assert!(!is_full(&reserve, left, renew("a")));
        assert!(!is_full(&reserve, left, report("a", 10)));
        let with_report = All { commands: vec![report("a", 10), submit()] };
        assert!(!is_full(&reserve, left, with_report.into()));
        let with_check = All { commands: vec![renew("a"), submit()] };
        assert!(is_full(&reserve, left, with_check.into()));
        assert!(!is_full(&reserve, None, submit()));
        assert!(reserve.refuse_claim(None).is_none());
    }

    #[test]
    fn the_reports_of_one_namespace_leave_room_for_those_of_others() {
        let (reserve, left) = (Reserve::default(), Some(4 << 20));
        assert!(!is_full(&reserve, left, report("a", 1 << 20)));
        assert!(is_full(&reserve, left, report("a", 1 << 20)));
        assert!(!is_full(&reserve, left, report("a", 1 << 10)));
        assert!(!is_full(&reserve, left, report("b", 1 << 20)));
        assert!(!is_full(&reserve, None, renew("a")));
        assert!(!is_full(&reserve, left, report("a", 1 << 20)));
    }

    #[test]
    fn after_a_batch_found_no_room_small_reports_go_alone_for_a_while() {
        let reserve = Reserve::default();
        reserve.found_full();
        assert!(is_full(&reserve, None, submit()));
        assert!(!is_full(&reserve, None, report("a", 8 << 20)));
        *reserve.full_at.lock() = Instant::now().checked_sub(HELD_OFF_FOR);
        assert!(!is_full(&reserve, None, submit()));
    }
}
