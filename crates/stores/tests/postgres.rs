//! The PostgreSQL store against the reference store: same commands, same clock, same replies, same rows.
#![cfg(feature = "testing")]

mod support;

use support::{Pair, Story, claim, complete, submit};
use windlass_core::{JobId, Millis, State};
use windlass_engine::store::{JobQuery, Store};

#[tokio::test]
async fn a_job_is_submitted_claimed_and_completed_once() {
    let pair = Pair::new().await;
    let mut story = Story::default();
    pair.run(vec![submit(1).into(), submit(2).into()]).await;
    let replies = pair.run(vec![claim("w1", 7, 1).into()]).await;
    let lease = support::lease_of(&replies);
    assert_eq!(lease.job, JobId::from_u128(1));
    pair.run(vec![complete(lease, "42").into(), complete(lease, "42").into()]).await;
    pair.compare(&mut story).await;
    let jobs = pair.postgres.jobs(&JobQuery { limit: 10, ..JobQuery::default() }).await.unwrap();
    let states: Vec<State> = jobs.iter().map(|job| job.state).collect();
    assert_eq!(states, [State::Pending, State::Completed]);
    pair.clock.advance(Millis::from_secs(8 * 86_400));
    pair.sweep().await;
    pair.compare(&mut story).await;
    assert_eq!(pair.postgres.jobs(&JobQuery { limit: 10, ..JobQuery::default() }).await.unwrap().len(), 1);
}
