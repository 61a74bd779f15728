//! How long to wait before asking again.

use crate::Error;
use std::time::Duration;
use windlass_api::Code;

/// Full jitter: each wait is drawn between nothing and a bound that doubles, so that workers that were cut off together do
/// not come back together. What the server asks for is the least, and jitter comes on top of it.
pub(crate) struct Backoff {
    base: Duration,
    cap: Duration,
    tries: u32,
}

impl Backoff {
    pub fn new(cap: Duration) -> Self {
        Self { base: Duration::from_millis(100), cap, tries: 0 }
    }

    pub fn reset(&mut self) {
        self.tries = 0;
    }

    /// The wait after this error.
    pub fn after(&mut self, error: &Error) -> Duration {
        let bound = self.bound();
        self.tries = self.tries.saturating_add(1);
        error.retry_after().unwrap_or_default() + bound.mul_f64(rand::random_range(0.0..=1.0))
    }

    fn bound(&self) -> Duration {
        self.base.saturating_mul(1 << self.tries.min(16)).min(self.cap)
    }
}

/// Whether the same call may well succeed later. What does not answer as Windlass does is most often a proxy whose server
/// is being restarted.
pub(crate) fn worth_repeating(error: &Error) -> bool {
    error.is_temporary() || matches!(error, Error::Confused { .. })
}

/// The token is not, or no longer, good for this.
pub(crate) fn is_denied(error: &Error) -> bool {
    matches!(error.known(), Some(Code::Unauthorized | Code::Forbidden))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_api::Problem;

    #[test]
    fn waits_stay_below_a_bound_that_doubles_up_to_the_cap() {
        let gone = Error::Unreachable { url: String::new(), why: String::new() };
        let mut backoff = Backoff::new(Duration::from_secs(1));
        for bound_ms in [100, 200, 400, 800, 1_000, 1_000] {
            assert_eq!(backoff.bound(), Duration::from_millis(bound_ms));
            assert!(backoff.after(&gone) <= Duration::from_millis(bound_ms));
        }
        backoff.reset();
        assert_eq!(backoff.bound(), Duration::from_millis(100));
    }

    #[test]
    fn what_the_server_asks_for_is_the_least() {
        let problem = Problem { status: 503, retry_after_ms: Some(5_000), ..Problem::default() };
        let busy = Error::Problem(Box::new(problem));
        let mut backoff = Backoff::new(Duration::from_secs(1));
        for _ in 0..20 {
            let wait = backoff.after(&busy);
            assert!((5_000..=6_000).contains(&wait.as_millis()), "{wait:?}");
        }
    }

    /// However they lost the server, after a while they ask for it evenly, and one that comes back is not run over.
    #[test]
    fn a_fleet_that_was_cut_off_does_not_come_back_together() {
        let gone = Error::Unreachable { url: String::new(), why: String::new() };
        let mut asked = vec![0_u32; 120];
        for _ in 0..2_000 {
            let mut backoff = Backoff::new(super::super::BACKOFF_MAX);
            let mut at = Duration::ZERO;
            while at < Duration::from_secs(120) {
                asked[at.as_secs() as usize] += 1;
                at += backoff.after(&gone);
            }
        }
        let steady = asked[60..].iter().sum::<u32>() / 60;
        let peak = *asked[30..].iter().max().expect("there are seconds");
        assert!(peak <= 2 * steady, "{peak} in a second, {steady} on average");
    }
}
