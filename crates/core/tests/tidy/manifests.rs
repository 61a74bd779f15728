//! What manifests leave out is not there: tests that are listed by hand, and examples that nobody looks for.

use super::{crates, files};
use std::fs;

/// Where tests are gathered in one program, cargo does not find them by itself.
#[test]
fn every_file_of_tests_is_run() {
    let end_to_end = crates()[0].1.join("../../e2e");
    for folder in crates().into_iter().map(|(_, path)| path).chain([end_to_end]) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if !manifest.contains("autotests = false") {
            continue;
        }
        let tests = folder.join("tests");
        let all = fs::read_to_string(tests.join("all.rs")).unwrap();
        // Each folder with the list of what is in it.
        let mut open = vec![(tests.clone(), all.clone())];
        while let Some((folder, list)) = open.pop() {
            for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                let name = path.file_stem().unwrap().to_str().unwrap();
                let inside = path.strip_prefix(&tests).unwrap().display();
                let below = fs::read_to_string(path.join("mod.rs")).ok();
                let is_code = below.is_some() || path.extension().is_some_and(|ending| ending == "rs");
                let by_path =
                    manifest.contains(&format!("\"tests/{inside}\"")) || all.contains(&format!("\"{inside}\""));
                let listed = name == "mod" || list.contains(&format!("mod {name};")) || by_path;
                assert!(listed || !is_code, "no list of tests names {}", path.display());
                open.extend(below.map(|list| (path, list)));
            }
        }
    }
}

/// An example in a comment would have its crate checked once more to be found. One that is included from `examples/` is compiled with the tests.
#[test]
fn every_example_is_compiled() {
    for (_, folder) in crates() {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let library = folder.join("src/lib.rs").exists();
        assert!(!library || manifest.contains("doctest = false"), "{} lacks doctest = false", folder.display());
        for (path, text) in files(&folder.join("src"), ".rs") {
            let comments = text.lines().map(str::trim_start).filter(|line| line.starts_with("//"));
            let fences = comments.filter_map(|line| line.trim_start_matches(['/', '!', ' ']).strip_prefix("```"));
            // Every second one ends what the one before it began.
            let examples = fences.step_by(2).filter(|kind| *kind != "text").count();
            assert_eq!(examples, 0, "{} has an example that nothing compiles", path.display());
        }
    }
}
