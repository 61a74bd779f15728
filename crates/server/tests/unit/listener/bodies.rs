use std::time::Duration;
use tokio::time::Instant;
use windlass_server::listener::{Limits, bodies::Pace};

/// Whether a body goes on for ten minutes of which so many bytes come every so many seconds.
fn goes_on(bytes: u64, seconds: u64) -> bool {
    let limits = Limits { body: Duration::from_secs(15), body_rate: 1_000, ..Limits::default() };
    let (mut pace, began) = (Pace::new(&limits), Instant::now());
    let times = (0..600).step_by(seconds as usize).map(|second| began + Duration::from_secs(second));
    times.into_iter().all(|now| {
        let next = now + Duration::from_secs(seconds);
        let in_time = next <= pace.pauses(now);
        pace.goes_on(next);
        pace.receives(bytes);
        in_time
    })
}

#[test]
fn a_body_that_trickles_ends_and_one_that_comes_steadily_does_not() {
    assert!(!goes_on(1, 10), "a byte every now and then");
    assert!(!goes_on(1 << 20, 16), "a pause that is too long");
    assert!(goes_on(1_000, 1) && goes_on(10_000, 10), "slow, but steady");
}
