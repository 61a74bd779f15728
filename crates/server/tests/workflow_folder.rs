//! A folder of workflows: versioned, watched, and never worse than its last good state.

use crate::support::Server;
use std::fs;
use windlass_core::Namespace;
use windlass_engine::testing::eventually;
use windlass_server::{definitions, dialects::workflow_graph, duties, flows::folder};

#[tokio::test]
async fn a_faulty_file_is_told_with_its_place_and_leaves_the_good_version() {
    let server = Server::start().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("nightly.yaml");
    fs::write(&file, "windlass: workflow\nsteps:\n  a: {}\n").unwrap();
    fs::write(place.path().join("plain.yaml"), "tags: [gpu]\n").unwrap();
    let loaded = definitions::load(&server.app, &Namespace::default(), place.path()).await;
    assert_eq!((loaded.changed.len(), loaded.faults.len()), (2, 0), "{loaded:?}");
    let loaded = definitions::load(&server.app, &Namespace::default(), place.path()).await;
    assert_eq!((loaded.changed.len(), loaded.unchanged), (0, 2));
    let table = [
        (
            "windlass: workflow\nsteps:\n  a: {needs: b}\n  b: {needs: a}\n",
            3,
            "steps.a.needs: the steps wait for each other: a -> b -> a",
        ),
        (
            "windlass: workflow\nsteps:\n  a: {}\n  b:\n    needs: [a, zz]\n",
            5,
            "steps.b.needs: there is no step \"zz\"",
        ),
        ("windlass: workflow\nsteps:\n  a: {}\n  a: {}\n", 4, ""),
        ("windlass: workflow\nsteps:\n  a:\n    timeout: 5 parsecs\n", 4, "not a duration"),
        ("windlass: workflow\nsteps:\n  a:\n    paylaod: 1\n", 4, "paylaod"),
        ("windlass: workflow\nsteps:\n  a:\n    if: 1 +\n", 4, "steps.a.if: "),
        ("windlass: workflow\nsteps: [\n", 0, ""),
    ];
    for (text, line, expected) in table {
        fs::write(&file, text).unwrap();
        let loaded = definitions::load(&server.app, &Namespace::default(), place.path()).await;
        let fault = loaded.faults.first().unwrap_or_else(|| panic!("{text}"));
        let at = fault.fault.line;
        assert!(line == 0 || at == line, "{fault} is not at line {line}: {text}");
        assert!(fault.fault.sentence().contains(expected) && fault.file == file, "{fault}");
        assert_eq!(server.get("/api/v1/workflows/nightly").await.expect(200)["version"], 1);
    }
    let other = folder::load(&server.app, &Namespace::default(), place.path()).await;
    assert_eq!((other.faults.len(), other.changed.len()), (1, 0), "what is no workflow is left alone");
}

/// The most memory this process has had, in bytes.
fn memory_peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn a_huge_file_in_a_folder_is_a_fault_and_takes_no_memory() {
    let server = Server::start().await;
    let place = tempfile::tempdir().unwrap();
    fs::File::create(place.path().join("huge.yaml")).unwrap().set_len(2 << 30).unwrap();
    fs::write(place.path().join("small.yaml"), "windlass: workflow\nsteps:\n  a: {}\n").unwrap();
    let before = memory_peak();
    let loaded = definitions::load(&server.app, &Namespace::default(), place.path()).await;
    let other = folder::load(&server.app, &Namespace::default(), place.path()).await;
    let graphs = workflow_graph::folder::load(&server.app, place.path()).await.unwrap();
    let refused = graphs[0].result.as_ref().unwrap_err();
    for why in [loaded.faults[0].to_string(), other.faults[0].to_string(), refused.clone()] {
        assert!(why.contains("the file is larger than"), "{why}");
    }
    assert_eq!((loaded.changed.len(), loaded.faults.len(), other.unchanged, graphs.len()), (1, 1, 1, 1));
    assert!(memory_peak() - before < 256 << 20, "the file was read");
}

#[tokio::test]
async fn a_watched_folder_is_loaded_again_when_it_changes() {
    let server = Server::start().await;
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("one.yaml"), "steps:\n  a: {}\n").unwrap();
    fs::write(place.path().join("ci.yaml"), "name: CI\non: push\njobs:\n  t: {run: make}\n").unwrap();
    let _duties = duties::start(&server.app, None, Some(place.path())).await;
    assert_eq!(server.get("/api/v1/workflows/one").await.expect(200)["version"], 1);
    server.get("/api/v1/workflows/ci").await.expect(404);
    fs::write(place.path().join("one.yaml"), "steps:\n  a: {}\n  b: {needs: a}\n").unwrap();
    let seen = async || (server.get("/api/v1/workflows/one").await.expect(200)["version"] == 2).then_some(());
    eventually("the change is seen", seen).await;
}
