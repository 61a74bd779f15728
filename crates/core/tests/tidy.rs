//! What the compiler cannot hold us to: who may use whom, who reads the clock, and how long a file may grow.
//!
//! Reads sources and manifests as text, whichever crates there are, so that a new crate is held to it from its first day.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Crates of ours that a crate may be built on. A crate that is not listed may use any, but for the outermost.
const LAYERS: [(&str, &[&str]); 10] = [
    ("core", &[]),
    ("api", &[]),
    ("plan", &["core", "api"]),
    ("engine", &["core"]),
    ("product", &["core", "engine"]),
    ("stores", &["core", "engine"]),
    ("server", &["core", "engine", "api", "plan", "product"]),
    ("sdk", &["api"]),
    ("worker", &["api", "sdk"]),
    ("e2e", &["api", "sdk", "stores"]),
];

/// Everything else that the inner crates may use. Rules without a runtime, an engine without SQL or HTTP, SQL in one place.
const FOREIGN: [(&str, &[&str]); 4] = [
    ("core", &["serde", "serde_json", "foldhash", "sha2", "thiserror", "uuid"]),
    (
        "engine",
        &[
            "async-trait",
            "rand",
            "rand_chacha",
            // Threads that yield to others.
            "rustix",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
            "uuid",
        ],
    ),
    ("product", &["async-trait", "serde", "serde_json", "sha2", "thiserror", "tokio", "uuid"]),
    (
        "stores",
        &[
            "async-trait",
            "foldhash",
            // Encrypted lines to PostgreSQL.
            "percent-encoding",
            "rusqlite",
            "rustls",
            "rustls-platform-verifier",
            "serde",
            "serde_json",
            "tempfile",
            "thiserror",
            "tokio",
            "tokio-postgres",
            "tokio-postgres-rustls",
            "tracing",
            "uuid",
        ],
    ),
];

/// Time that is only measured, and waits that end: everything that decides by time asks the store's clock.
const MAY_MEASURE: [&str; 6] = ["engine", "stores", "server", "sdk", "worker", "cli"];

const LINES_MAX: usize = 600;

fn crates() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies among the others");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = entries.filter(|path| path.join("Cargo.toml").is_file());
    let mut found: Vec<_> = found.map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path)).collect();
    found.sort();
    assert!(found.iter().any(|(name, _)| name == "core"), "{found:?}");
    found
}

/// All files below `folder` that end so, but for this one, which has to name what it forbids.
fn files(folder: &Path, ending: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["target", "node_modules"].contains(&&*name) && !name.starts_with('.') {
                open.push(path);
            } else if name.ends_with(ending) && name != "tidy.rs" {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// The code of a file as it is shipped: no comments, and nothing behind the tests at its end.
fn shipped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Names under the headings of a manifest that `wanted` picks.
fn dependencies(manifest: &str, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let (mut heading, mut names) = ("", Vec::new());
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            heading = line.trim_matches(['[', ']']);
            // `[dependencies.name]` names its dependency in the heading.
            if let Some((section, name)) = heading.split_once("dependencies.") {
                names.extend(wanted(&format!("{section}dependencies")).then(|| name.to_string()));
            }
        } else if wanted(heading) && line.contains('=') && !line.starts_with('#') {
            names.push(line.split(['.', '=', ' ']).next().unwrap_or_default().to_string());
        }
    }
    names
}

fn list<'a>(of: &'a [(&str, &'a [&'a str])], name: &str) -> Option<&'a [&'a str]> {
    of.iter().find(|(listed, _)| *listed == name).map(|(_, list)| *list)
}

#[test]
fn crates_use_only_what_lies_below_them() {
    for (name, path) in crates() {
        let manifest = fs::read_to_string(path.join("Cargo.toml")).unwrap();
        for used in dependencies(&manifest, |heading| heading == "dependencies") {
            match used.strip_prefix("windlass-") {
                Some(ours) => {
                    let allowed = list(&LAYERS, &name).is_none_or(|allowed| allowed.contains(&ours));
                    assert!(allowed, "{name} may not be built on {used}");
                }
                None => {
                    let allowed = list(&FOREIGN, &name).is_none_or(|allowed| allowed.contains(&&*used));
                    assert!(allowed, "{name} may not use {used}; say in tidy.rs why it has to");
                }
            }
        }
        let any = dependencies(&manifest, |heading| heading.ends_with("dependencies"));
        assert!(!any.contains(&"windlass-cli".to_string()), "{name} uses the outermost crate");
    }
}

#[test]
fn only_the_clock_reads_the_clock() {
    for (name, path) in crates() {
        for (file, text) in files(&path, ".rs") {
            let inside = file.strip_prefix(&path).unwrap();
            // The second one tells people when a line was printed; nothing is decided by it.
            let clock = [("engine", "src/clock.rs"), ("sdk", "src/worker/wall.rs")];
            let clock = clock.iter().any(|(owner, path)| name == *owner && inside == Path::new(path));
            assert!(clock || !text.contains("SystemTime::now"), "{} reads the clock", file.display());
            let measures = MAY_MEASURE.contains(&&*name) || !inside.starts_with("src");
            assert!(measures || !shipped(&text).contains("Instant::now"), "{} measures time", file.display());
        }
    }
}

#[test]
fn the_rules_do_nothing_but_decide() {
    let forbidden =
        ["async ", ".await", "std::fs", "std::net", "std::thread", "std::process", "std::env", "println!", "rand::"];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate lies among the others");
    for folder in ["core/src", "product/src/rules"] {
        for (file, text) in files(&crates.join(folder), ".rs") {
            for word in forbidden {
                assert!(!shipped(&text).contains(word), "{} holds {word:?}", file.display());
            }
        }
    }
}

/// What a product is made of is records and commands like any other to the engine and the stores.
#[test]
fn the_engine_knows_nothing_of_items() {
    for (name, path) in crates().into_iter().filter(|(name, _)| ["core", "engine", "stores"].contains(&name.as_str())) {
        for (file, text) in files(&path.join("src"), ".rs").into_iter().chain(files(&path.join("src"), ".sql")) {
            for word in ["part_number", "silo_", "bom"] {
                let found = text.to_lowercase().contains(word);
                assert!(!found, "{} of {name} holds {word:?}", file.display());
            }
        }
    }
}

#[test]
fn nothing_is_unsafe_or_left_undone() {
    for (name, path) in crates() {
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| path.join(root));
        for root in roots.iter().filter(|root| root.is_file()) {
            let text = fs::read_to_string(root).unwrap();
            assert!(text.contains("#![forbid(unsafe_code)]"), "{} of {name} does not forbid it", root.display());
        }
        for (file, text) in files(&path, ".rs") {
            for word in ["todo!(", "unimplemented!(", "dbg!("] {
                assert!(!text.contains(word), "{} holds {word:?}", file.display());
            }
        }
    }
}

#[test]
fn no_file_grows_past_what_one_reads_in_a_sitting() {
    for (_, path) in crates() {
        for (file, text) in files(&path, ".rs") {
            let lines = text.lines().count();
            assert!(lines <= LINES_MAX, "{} has {lines} lines; split it", file.display());
        }
    }
}

#[test]
fn every_statement_says_what_it_is_for() {
    for (_, path) in crates() {
        for (file, text) in files(&path, ".sql") {
            let comment = text.starts_with("-- ") || text.starts_with("/*");
            assert!(comment, "{} opens without a comment", file.display());
        }
    }
}

#[test]
fn the_checks_see_what_they_look_for() {
    let manifest =
        "[dependencies]\na.workspace = true\nb = \"1\"\n[dev-dependencies]\nc = \"1\"\n[dependencies.d]\nx = 1\n";
    assert_eq!(dependencies(manifest, |heading| heading == "dependencies"), ["a", "b", "d"]);
    assert_eq!(dependencies(manifest, |heading| heading.ends_with("dependencies")), ["a", "b", "c", "d"]);
    assert_eq!(spellings("a_b"), ["a_b", "a-b", "ab"]);
    assert!(is_own(Path::new("cli/src/dialects/a_b.rs"), "a_b") && is_own(Path::new("x/a_b/mod.rs"), "a_b"));
    assert!(!is_own(Path::new("x/a_bc/mod.rs"), "a_b"));
    let code = "let a; // Instant::now\nlet b;\n\n#[cfg(test)]\nmod tests { println!() }\n";
    assert!(!shipped(code).contains("Instant") && !shipped(code).contains("println!") && shipped(code).contains("b;"));
}

/// Files outside the dialects' own that may name one. Each with the reason.
const NAMES_A_DIALECT: [(&str, &str); 5] = [
    // Programs that speak a dialect to servers that need not be ours, so that users choose it by name.
    ("worker/src/", "the worker's flag `--dialect`, and the program `silorunner`"),
    ("sdk/src/worker/", "the worker loop over another server's protocol"),
    // Records keep the kinds they were first written under.
    ("product/src/", "kinds of stored items"),
    ("cli/src/commands/item.rs", "help: which protocol has the same items"),
    ("cli/src/bench/", "what is measured is named"),
];

/// The ways to write a name.
fn spellings(name: &str) -> [String; 3] {
    [name.to_owned(), name.replace('_', "-"), name.replace('_', "")]
}

/// Whether a file belongs to a dialect: it lies in a folder of its name, or has it.
fn is_own(inside: &Path, name: &str) -> bool {
    inside.with_extension("").components().any(|part| part.as_os_str() == name)
}

/// A new dialect is a folder and a line: nothing else may know it, or the next one has to be written in there as well.
#[test]
fn only_its_folder_and_the_list_name_a_dialect() {
    let crates = crates();
    let folder = crates[0].1.parent().unwrap();
    let dialects = fs::read_dir(folder.join("server/src/dialects")).unwrap().map(|entry| entry.unwrap().path());
    let names: Vec<String> = dialects
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert!(names.len() >= 2, "{names:?}");
    for (file, text) in crates.iter().flat_map(|(_, path)| files(&path.join("src"), ".rs")) {
        let inside = file.strip_prefix(folder).unwrap();
        let list = inside.ends_with("dialects/mod.rs");
        if list || NAMES_A_DIALECT.iter().any(|(start, _)| inside.to_str().unwrap().starts_with(start)) {
            continue;
        }
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_lowercase();
        for name in names.iter().filter(|name| !is_own(inside, name)) {
            let named = spellings(name).into_iter().find(|spelling| text.contains(spelling.as_str()));
            assert_eq!(
                named,
                None,
                "{} names a dialect: move what it says about it into the dialect",
                inside.display()
            );
        }
    }
}

/// Two ways to the same engine, and neither knows the other: what both need lies below them.
#[test]
fn the_native_api_and_the_dialects_do_not_know_each_other() {
    let server = crates().into_iter().find(|(name, _)| name == "server").unwrap().1.join("src");
    for (folder, other) in [("native", "dialects::"), ("dialects", "native::")] {
        for (file, text) in files(&server.join(folder), ".rs") {
            assert!(!shipped(&text).contains(other), "{} uses {other}", file.display());
        }
    }
}

/// Where tests are gathered in one program, cargo does not find them by itself.
#[test]
fn every_file_of_tests_is_run() {
    let end_to_end = crates()[0].1.join("../../e2e");
    for folder in crates().into_iter().map(|(_, path)| path).chain([end_to_end]) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if !manifest.contains("autotests = false") {
            continue;
        }
        let all = fs::read_to_string(folder.join("tests/all.rs")).unwrap();
        for entry in fs::read_dir(folder.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_code = path.join("mod.rs").is_file() || path.extension().is_some_and(|ending| ending == "rs");
            let listed = all.contains(&format!("mod {name};")) || manifest.contains(&format!("\"tests/{name}.rs\""));
            assert!(listed || !is_code, "tests/all.rs does not name {}", path.display());
        }
    }
}
