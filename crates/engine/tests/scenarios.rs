//! The rules as stories, on the reference store.

use std::{collections::BTreeSet, sync::Arc};
use windlass_engine::{
    clock::Simulated,
    memory::Memory,
    testing::{Fresh, START, conformance, scenario},
};

async fn memory() -> Fresh {
    let clock = Arc::new(Simulated::at(START));
    Fresh { store: Arc::new(Memory::new(clock.clone())), clock, keep: None }
}

#[tokio::test]
async fn every_story_ends_as_it_says() {
    conformance::scenarios(memory).await;
}

/// A text that is not in the list would never be played.
#[test]
fn every_text_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.map(|name| name.trim_end_matches(".txt").to_string()).collect();
    let listed: BTreeSet<String> = scenario::ALL.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(files, listed);
}

/// The runner must be able to fail: each of these is wrong in one place, and the error says where.
#[tokio::test]
async fn a_wrong_story_is_told_by_line() {
    let table = [
        ("submit j1\nw1 claims -> nothing", "line 2: expected 0 leases"),
        ("submit j1\nsubmit j1", "line 2: it was refused: refused exists"),
        ("submit j1 -> j1 blocked", "line 1: expected \"j1 blocked\", answered \"j1 pending\""),
        ("submit j1 colour=red", "line 1: nobody knows the option colour="),
        ("submit j1\nevents j1 submitted claimed", "line 2: events of j1 are \"submitted\""),
        ("submit j1\njob j1 pending attempt=1", "line 2: attempt of j1 is \"0\", not \"1\""),
        ("together\n  submit j1\n  cancel j2", "line 3: it was refused: refused not-found"),
        ("submit j1\nat 1s tick -> j1 gone", "line 2: j1 is \"pending\", not \"gone\""),
        ("dance", "line 1: nobody knows"),
        ("submit j1\nw1 claims -> j1 as L1\ncomplete L1 -> refused lease-lost", "line 3: expected"),
    ];
    for (text, why) in table {
        let error = scenario::play(memory().await, "wrong", text).await.unwrap_err();
        assert!(error.starts_with("wrong.txt, ") && error.contains(why), "{text:?}: {error}");
    }
}
