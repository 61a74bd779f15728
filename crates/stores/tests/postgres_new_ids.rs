//! Ids of new jobs are taken as free and checked where they are written. What callers hear must not show it.

use crate::support::{claim, complete, lease_of, quiet, run, submit};
use windlass_core::{JobId, Refusal, Reply, commands::submit::Submit};
use windlass_engine::store::Store;
use windlass_stores::{postgres::Postgres, testing::Cluster};

/// A store that has met no taken id yet, and so does not look first.
async fn trusting(url: &str) -> Postgres {
    Postgres::connect(quiet(url.to_owned())).await.unwrap()
}

fn is_taken(reply: &Result<Reply, Refusal>) -> bool {
    matches!(reply, Err(Refusal::Exists { .. }))
}

#[tokio::test]
async fn an_id_that_is_taken_is_refused_and_its_neighbours_are_not() {
    let url = Cluster::shared().fresh_database();
    let first = trusting(&url).await;
    run(&first, vec![submit(1).into(), submit(2).into()]).await.unwrap();
    let claimed = run(&first, vec![claim("w", 1, 1).into()]).await.unwrap();
    let finished = lease_of(&claimed.replies).job;
    run(&first, vec![complete(lease_of(&claimed.replies), "done").into()]).await.unwrap();
    assert_eq!(finished, JobId::from_u128(1));
    for taken in [1, 2] {
        let store = trusting(&url).await;
        let outcome = run(&store, vec![submit(taken).into(), submit(10 + taken).into()]).await.unwrap();
        assert!(is_taken(&outcome.replies[0]), "{taken}: {:?}", outcome.replies[0]);
        assert!(outcome.replies[1].is_ok(), "{taken}: {:?}", outcome.replies[1]);
    }
    assert_eq!(first.check().await.unwrap(), Vec::<String>::new());
}

/// Nothing is written for it, so that no write can notice; the answer must still come from a look.
#[tokio::test]
async fn a_taken_id_with_another_fault_is_refused_for_the_same_reason_as_ever() {
    let url = Cluster::shared().fresh_database();
    run(&trusting(&url).await, vec![submit(1).into()]).await.unwrap();
    let mut orphan: Submit = submit(1);
    orphan.job.parents = vec![JobId::from_u128(404)];
    let outcome = run(&trusting(&url).await, vec![orphan.into()]).await.unwrap();
    assert!(is_taken(&outcome.replies[0]), "{:?}", outcome.replies[0]);
}
