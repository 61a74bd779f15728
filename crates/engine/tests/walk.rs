//! Random walks on the reference store: the rules must hold whatever is asked, in whatever order.

use std::sync::Arc;
use windlass_engine::{
    clock::Simulated,
    memory::Memory,
    testing::{Fresh, START, walk},
};

fn memory() -> Fresh {
    let clock = Arc::new(Simulated::at(START));
    Fresh { store: Arc::new(Memory::new(clock.clone())), clock, keep: None }
}

#[tokio::test]
async fn the_rules_hold_on_a_random_walk() {
    let (seed, transitions) = walk::asked(1, 20_000);
    let tally = walk::run(vec![("memory", memory())], seed, transitions).await.unwrap_or_else(|why| panic!("{why}"));
    println!("{tally:#?}");
    assert!(tally.transitions >= transitions);
}

/// Of three commands in one batch the first, refused for coming too late, ends the job of which the last one tells.
#[tokio::test]
async fn a_log_may_follow_what_was_too_late_in_the_same_batch() {
    walk::run(vec![("memory", memory())], 22, 2_800).await.map(drop).unwrap_or_else(|why| panic!("{why}"));
}

/// Two stores that are the same stay the same: nothing is drawn from anywhere but the seed.
#[tokio::test]
async fn a_walk_repeats_exactly() {
    let (seed, transitions) = walk::asked(2, 4_000);
    let stores = vec![("memory", memory()), ("memory again", memory())];
    walk::run(stores, seed, transitions).await.unwrap_or_else(|why| panic!("{why}"));
}
