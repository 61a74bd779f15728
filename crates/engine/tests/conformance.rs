//! The reference store through the suite every store must pass.

use std::sync::Arc;
use windlass_engine::{
    clock::Simulated,
    memory::Memory,
    testing::{Fresh, START, conformance, faults},
};

async fn memory() -> Fresh {
    let clock = Arc::new(Simulated::at(START));
    Fresh { store: Arc::new(Memory::new(clock.clone())), clock, keep: None }
}

macro_rules! parts {
    ($($name:ident: $part:path),+ $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $part(memory().await).await;
        })+
    };
}

parts! {
    listing_pages: conformance::listing::pages,
    listing_filters: conformance::listing::filters,
    listing_bodies: conformance::listing::bodies,
    listing_named: conformance::listing::named,
    log_pages: conformance::logs::pages,
    log_caps: conformance::logs::caps,
    record_order_and_pages: conformance::records::order_and_pages,
    record_filters: conformance::records::filters,
    event_numbers: conformance::events::numbers,
    event_trimming: conformance::events::trimmed,
    due_longest_first: conformance::due::longest_first,
    due_follows_the_rows: conformance::due::follows_the_rows,
    claims_in_order: conformance::claims::in_order,
    claims_ahead: conformance::claims::ahead,
    claims_lanes_come_and_go: conformance::claims::lanes_come_and_go,
    claims_side_by_side: conformance::claims::side_by_side,
    waiting_takes_what_the_batch_made: conformance::waiting::takes_what_the_batch_made,
    waiting_finds_nothing_and_writes_nothing: conformance::waiting::finds_nothing_and_writes_nothing,
    graphs_wide: conformance::graphs::wide,
    graphs_deep: conformance::graphs::deep,
}

#[tokio::test]
async fn every_call_may_fail_once() {
    faults::nth_call_fails(memory, &[faults::When::Before, faults::When::After], faults::ALONE).await;
}
