use crate::support::Server;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use windlass_core::Namespace;
use windlass_server::quota::{COUNTED_FOR, Fit, Limits, OVERHEAD, Owner, Usage, Whose};

fn usage() -> (Arc<Usage>, Whose) {
    let usage = Usage::new(Limits { per_job: 0, per_namespace: 1_000_000, reserve: 0 });
    (usage, Whose::Namespace(Namespace::default()))
}

#[tokio::test]
async fn what_is_coming_counts_and_is_given_back_or_kept() {
    let server = Server::start().await;
    let owner = Owner { namespace: Namespace::default(), job: None };
    let (usage, whose) = usage();
    assert!(matches!(usage.try_add(&whose, 1), Fit::Unknown), "nobody has counted");
    usage.learn(&whose, 400_000, Instant::now(), Duration::ZERO);
    let first = usage.enter(&server.app, &owner, 300_000).await.unwrap();
    let second = usage.enter(&server.app, &owner, 200_000).await.unwrap();
    assert!(matches!(usage.try_add(&whose, 200_000), Fit::No { .. }), "it was counted a moment ago");
    drop(second);
    assert_eq!(usage.used(&whose), Some((400_000, 300_000 + OVERHEAD)));
    first.keep(250_000);
    assert_eq!(usage.used(&whose), Some((650_000 + OVERHEAD, 0)));
    usage.forget(&owner, 250_000);
    assert_eq!(usage.used(&whose), Some((400_000, 0)));
}

#[test]
fn a_sum_is_counted_anew_before_anybody_is_refused_for_an_old_one() {
    let (usage, whose) = usage();
    let now = Instant::now();
    usage.learn(&whose, 1_000_000, now, Duration::ZERO);
    assert!(matches!(usage.try_add(&whose, 1), Fit::No { .. }));
    usage.learn(&whose, 1_000_000, now.checked_sub(COUNTED_FOR * 2).unwrap(), Duration::ZERO);
    assert!(matches!(usage.try_add(&whose, 1), Fit::Unknown));
}
