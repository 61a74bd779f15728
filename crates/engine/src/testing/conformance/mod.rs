//! All that a store must pass. Each part takes a fresh store and panics with what is wrong, so that a store's tests can
//! call them one by one, or all of them with [`run_all`].

mod build;
pub mod claims;
pub mod due;
pub mod events;
pub mod graphs;
pub mod listing;
pub mod logs;
pub mod records;
pub mod waiting;

use super::{Fresh, faults, scenario};

pub async fn run_all(fresh: impl AsyncFn() -> Fresh) {
    scenarios(&fresh).await;
    listing::pages(fresh().await).await;
    listing::filters(fresh().await).await;
    listing::names(fresh().await).await;
    listing::bodies(fresh().await).await;
    listing::named(fresh().await).await;
    listing::oldest(fresh().await).await;
    listing::heads(fresh().await).await;
    logs::pages(fresh().await).await;
    logs::caps(fresh().await).await;
    records::order_and_pages(fresh().await).await;
    records::filters(fresh().await).await;
    events::numbers(fresh().await).await;
    events::trimmed(fresh().await).await;
    due::longest_first(fresh().await).await;
    due::follows_the_rows(fresh().await).await;
    claims::in_order(fresh().await).await;
    claims::ahead(fresh().await).await;
    claims::lanes_come_and_go(fresh().await).await;
    claims::side_by_side(fresh().await).await;
    waiting::takes_what_the_batch_made(fresh().await).await;
    waiting::finds_nothing_and_writes_nothing(fresh().await).await;
    graphs::wide(fresh().await).await;
    graphs::deep(fresh().await).await;
    graphs::alone(fresh().await).await;
    // A call that never arrives is nothing to a store: the store in memory shows that the caller asks again. There each call fails
    // alone, too; a fresh store on disk for each takes longer than all that is done with it.
    faults::nth_call_fails(&fresh, &[faults::When::After], 8).await;
}

/// Every scenario on a fresh store each. All failures are told together.
pub async fn scenarios(fresh: impl AsyncFn() -> Fresh) {
    let mut wrong = Vec::new();
    for (name, text) in scenario::ALL {
        wrong.extend(scenario::play(fresh().await, name, text).await.err());
    }
    assert!(wrong.is_empty(), "{} of {} scenarios failed:\n{}", wrong.len(), scenario::ALL.len(), wrong.join("\n"));
}
