//! What the compiler cannot hold us to: who may use whom, who reads the clock, and how long a file may grow.
//!
//! Reads sources and manifests as text, whichever crates there are, so that a new crate is held to it from its first day.

mod manifests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Crates of ours that a crate may be built on. A crate that is not listed may use any, but for the outermost.
const LAYERS: [(&str, &[&str]); 11] = [
    ("core", &[]),
    ("api", &[]),
    ("yaml", &[]),
    ("plan", &["core", "api", "yaml"]),
    ("engine", &["core"]),
    ("product", &["core", "engine"]),
    ("stores", &["core", "engine"]),
    ("server", &["core", "engine", "api", "plan", "product", "yaml"]),
    ("sdk", &["api"]),
    ("worker", &["api", "sdk", "yaml"]),
    ("e2e", &["api", "engine", "sdk", "stores", "yaml"]),
];

/// Everything else that the inner crates may use. Rules without a runtime, an engine without SQL or HTTP, SQL in one place.
const FOREIGN: [(&str, &[&str]); 4] = [
    ("core", &["serde", "serde_json", "foldhash", "sha2", "thiserror", "uuid"]),
    (
        "engine",
        &[
            "async-trait",
            // Every request is put in the line of its namespace.
            "foldhash",
            "parking_lot",
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
    ("product", &["async-trait", "parking_lot", "serde", "serde_json", "sha2", "thiserror", "tokio", "uuid"]),
    (
        "stores",
        &[
            "async-trait",
            "foldhash",
            "parking_lot",
            // Encrypted lines to PostgreSQL.
            "percent-encoding",
            "rusqlite",
            // How much of a disk is free, and keeping some of it back.
            "rustix",
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

/// All ways to learn what time it is, by way of a fresh id as well.
const READS_THE_CLOCK: [&str; 5] =
    ["SystemTime::now", "now_v7", "Zoned::now", "jiff::Timestamp::now", "UNIX_EPOCH.elapsed"];

/// A file's age asks the clock on the wall by another name. This one compares with the engine's time.
const ASKS_FOR_THE_TIME_OF_FILES: [(&str, &str); 1] = [("server", "src/content.rs")];

/// Sleeps in tests, each with its reason. Fewer are better.
const SLEEPS_MAX: usize = 86;

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
            // Ids hold the time they were made at, log lines the time they were printed at; nothing is decided by either.
            let clock = [("engine", "src/clock.rs"), ("engine", "src/ids.rs"), ("sdk", "src/worker/wall.rs")];
            let clock = clock.iter().any(|(owner, path)| name == *owner && inside == Path::new(path));
            for way in READS_THE_CLOCK {
                assert!(clock || !text.contains(way), "{} reads the clock: {way}", file.display());
            }
            let of_files =
                ASKS_FOR_THE_TIME_OF_FILES.iter().any(|(owner, path)| name == *owner && inside == Path::new(path));
            let asks = shipped(&text).contains(".modified()") && inside.starts_with("src");
            assert!(of_files || !asks, "{} asks for the time of a file", file.display());
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
fn every_kind_of_record_that_the_rules_keep_is_in_the_list_of_them() {
    let mut named: Vec<String> = Vec::new();
    for (_, text) in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), ".rs") {
        let after = text.split("const KIND: &'static str = \"").skip(1);
        named.extend(after.filter_map(|rest| rest.split('"').next()).map(String::from));
    }
    named.sort();
    let mut listed = windlass_core::commands::records::KINDS.to_vec();
    listed.sort_unstable();
    assert_eq!(named, listed);
}

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
    let arms = "match x {\n    What::A => 1,\n    What::B => {\n        2\n    }\n    _ => 3,\n}\nmatch y {\n    Other::A => 1,\n    _ => 2,\n}\n";
    assert_eq!(catch_alls(arms, &["What::"]), [6]);
    let module = ["a".to_owned(), "b".to_owned()];
    let found =
        imports("use crate::{c::{D, e::F}, g};\nuse super::h;\nuse std::fs;\nlet x = crate::i::j();\n", &module);
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    for path in ["c::D", "c::e::F", "g", "a::h", "i::j"] {
        assert!(found.iter().any(|found| found == path), "{path} is not in {found:?}");
    }
    assert_eq!(spellings("a_b"), ["a_b", "a-b", "ab"]);
    assert!(is_own(Path::new("cli/src/dialects/a_b.rs"), "a_b") && is_own(Path::new("x/a_b/mod.rs"), "a_b"));
    assert!(!is_own(Path::new("x/a_bc/mod.rs"), "a_b"));
    let code = "let a; // Instant::now\nlet b;\n\n#[cfg(test)]\nmod tests { println!() }\n";
    assert!(!shipped(code).contains("Instant") && !shipped(code).contains("println!") && shipped(code).contains("b;"));
}

/// Files outside the dialects' own that may name one. Each with the reason.
const NAMES_A_DIALECT: [(&str, &str); 6] = [
    // Programs that speak a dialect to servers that need not be ours, so that users choose it by name.
    ("worker/src/", "the worker's flag `--dialect`, and the program `silorunner`"),
    ("sdk/src/worker/", "the worker loop over another server's protocol"),
    // Records keep the kinds they were first written under.
    ("product/src/", "kinds of stored items"),
    ("cli/src/commands/item.rs", "help: which protocol has the same items"),
    ("cli/src/bench/", "what is measured is named"),
    // Rules that evaluate expressions are not in the core, and lie in a folder of their own.
    ("plan/src/lib.rs", "the list of its modules"),
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

/// The arms of a file that take whatever is left, in matches that name one of these types.
fn catch_alls(text: &str, types: &[&str]) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let catches = |at: &usize| lines[*at].trim_start().starts_with("_ =>");
    let is_of = |at: &usize| {
        let inner =
            lines[..*at].iter().rev().take_while(|line| line.trim().is_empty() || indent(line) >= indent(lines[*at]));
        let mut arms = inner.filter(|line| indent(line) == indent(lines[*at])).map(|line| line.trim_start());
        arms.any(|arm| types.iter().any(|of| arm.trim_start_matches("| ").starts_with(of)))
    };
    (0..lines.len()).filter(catches).filter(is_of).map(|at| at + 1).collect()
}

/// A new refusal or kind of event does not compile until every surface has said what becomes of it.
#[test]
fn every_surface_names_every_refusal_and_every_kind_of_event() {
    for (name, path) in crates().into_iter().filter(|(name, _)| ["server", "engine", "cli"].contains(&name.as_str())) {
        for (file, text) in files(&path.join("src"), ".rs") {
            if !file.starts_with(path.join("src/testing")) {
                let found = catch_alls(&shipped(&text), &["Refusal::", "What::"]);
                assert!(found.is_empty(), "{} of {name} takes what is left in lines {found:?}", file.display());
            }
        }
    }
}

/// Folders of a crate from the bottom up: none imports one behind it.
const FOLDERS: [(&str, &[&str]); 1] = [("core", &["model", "desk", "moves", "commands"])];

/// Crates whose files are looked at one by one: they have no folders to speak of.
const BY_FILE: [&str; 2] = ["engine", "product"];

/// What a file imports from its own crate, from the root: `use` trees spelt out, and paths in the code.
fn imports(text: &str, module: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let code = shipped(text).replace(['\n', ' '], "");
    for statement in shipped(text).split("use ").skip(1).filter_map(|rest| rest.split_once(';')) {
        spell_out(&statement.0.split_whitespace().collect::<String>(), &mut Vec::new(), &mut found);
    }
    for rest in code.split("crate::").skip(1) {
        let path = rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').next().unwrap_or_default();
        found.push(["crate"].into_iter().chain(path.split("::")).map(str::to_owned).collect());
    }
    let absolute = |path: Vec<String>| match path.first().map(String::as_str) {
        Some("crate") => Some(path[1..].to_vec()),
        Some("super") => {
            let up = path.iter().take_while(|part| *part == "super").count();
            Some([&module[..module.len().saturating_sub(up)], &path[up..]].concat())
        }
        _ => None,
    };
    found.into_iter().filter_map(absolute).collect()
}

/// `a::{b, c::d}` is `a::b` and `a::c::d`.
fn spell_out(tree: &str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in tree.char_indices().chain([(tree.len(), ',')]) {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        if letter == ',' && depth == 0 {
            let (path, inner) = tree[start..at].split_once('{').unwrap_or((&tree[start..at], ""));
            let kept = before.len();
            before.extend(path.split("::").filter(|part| !part.is_empty()).map(str::to_owned));
            match inner.strip_suffix('}') {
                Some(inner) => spell_out(inner, before, found),
                None => found.push(before.clone()),
            }
            before.truncate(kept);
            start = at + 1;
        }
    }
}

/// By folder, or file beside the folders, what it imports.
fn import_graph(src: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph = BTreeMap::<_, BTreeSet<_>>::new();
    for (file, text) in files(src, ".rs") {
        let inside = file.strip_prefix(src).unwrap().with_extension("");
        let mut module: Vec<String> = inside.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        module.pop_if(|last| last == "mod");
        for path in imports(&text, &module) {
            if let Some(to) = path.first().filter(|to| **to != module[0] && is_module(src, to)) {
                graph.entry(module[0].clone()).or_default().insert(to.clone());
            }
        }
    }
    graph
}

fn is_module(src: &Path, name: &str) -> bool {
    !name.is_empty() && src.join(name).is_dir() || src.join(name).with_extension("rs").is_file()
}

/// What can be reached from here.
fn reached(graph: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(at) = open.pop() {
        open.extend(graph.get(&at).into_iter().flatten().filter(|to| found.insert((*to).clone())).cloned());
    }
    found
}

/// A folder counts with all below it, a file beside the folders by itself.
#[test]
fn folders_of_a_crate_do_not_import_each_other_in_circles() {
    let end_to_end = ("e2e".to_owned(), crates()[0].1.join("../../e2e"));
    for (name, path) in crates().into_iter().chain([end_to_end]) {
        let src = path.join("src");
        let graph = import_graph(&src);
        let looked_at = |from: &String| src.join(from).is_dir() || BY_FILE.contains(&name.as_str());
        let circles = graph.keys().filter(|from| looked_at(from) && reached(&graph, from).contains(*from));
        let circles: Vec<&String> = circles.collect();
        assert!(circles.is_empty(), "folders of {name} that import each other in circles: {circles:?}");
        for (at, folder) in list(&FOLDERS, &name).unwrap_or_default().iter().enumerate() {
            let used = graph.get(*folder).into_iter().flatten();
            let above = used.filter(|to| !list(&FOLDERS, &name).unwrap()[..at].contains(&to.as_str()));
            assert_eq!(above.collect::<Vec<_>>(), [""; 0], "{folder} of {name} imports what lies above it");
        }
    }
}

/// A process that a test starts is this program again; called as a test it would pass without having tested anything.
#[test]
fn what_a_test_starts_is_not_counted_as_a_test() {
    for (file, text) in all_tests() {
        for (before, _) in text.match_indices("fn child").map(|(at, _)| text.split_at(at)) {
            let attributes = before.rsplit("\n\n").next().unwrap_or_default();
            let counted = attributes.contains("test") && !attributes.contains("#[ignore");
            assert!(!counted, "{}: a child that is counted as a test", file.display());
        }
    }
}

/// Every invariant names what fails if it is broken, and what it names is there.
#[test]
fn every_invariant_names_tests_that_exist() {
    let root = crates()[0].1.join("../..");
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let section = text.split("## Invariants").nth(1).unwrap().split("\n## ").next().unwrap();
    let sources: String = all_files().into_iter().map(|(_, text)| text).collect::<String>() + include_str!("tidy.rs");
    for number in 1.. {
        let Some((_, from)) = section.split_once(&format!("\n{number}. **")) else {
            return assert!(number > 10, "{number}");
        };
        let invariant = from.split(&format!("\n{}. **", number + 1)).next().unwrap();
        let named = invariant.split("*Test").nth(1).unwrap_or_else(|| panic!("no test named: {invariant}"));
        for name in named.split('`').skip(1).step_by(2) {
            let there = match name {
                _ if name.ends_with(".txt") => root.join("crates/engine/scenarios").join(name).is_file(),
                _ if name.ends_with(".rs") && !name.contains('/') => named.contains("walk"),
                _ if name.contains('/') => root.join(name).is_file() || root.join("crates").join(name).is_file(),
                _ if name.contains([' ', ':']) => true,
                _ => sources.contains(&format!("fn {name}(")) || root.join("crates").join(name).is_dir(),
            };
            assert!(there, "invariant {number} names {name}, which is not there");
        }
    }
}

/// A promise whose test has another name now, or is gone, is only a sentence.
#[test]
fn every_test_that_the_guarantees_name_exists() {
    let page = fs::read_to_string(crates()[0].1.join("../../docs/guarantees.md")).unwrap();
    let sources: String = all_files().into_iter().map(|(_, text)| text).collect();
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let named = rows
        .filter_map(|row| row.trim_end_matches(" |").rsplit_once(" | "))
        .flat_map(|(_, tests)| tests.split('`').skip(1).step_by(2));
    let plain = |name: &&str| name.matches('_').count() > 1 && !name.contains(['.', '/', ' ']);
    let missing: Vec<&str> = named
        .filter(plain)
        .filter(|name| {
            !sources.contains(&match name.strip_suffix('…') {
                Some(begins) => format!("fn {begins}"),
                None => format!("fn {name}("),
            })
        })
        .collect();
    assert!(missing.is_empty(), "docs/guarantees.md names {missing:?}");
}

/// All sources there are, those of the end-to-end tests as well.
fn all_files() -> Vec<(PathBuf, String)> {
    let end_to_end = crates()[0].1.join("../../e2e");
    crates().into_iter().map(|(_, path)| path).chain([end_to_end]).flat_map(|path| files(&path, ".rs")).collect()
}

/// Code that only tests run: their own files, and the part of a file that is only built for them.
fn all_tests() -> Vec<(PathBuf, String)> {
    let tests = |(path, text): (PathBuf, String)| {
        let whole = ["tests", "e2e", "testing", "testing.rs"].iter().any(|part| path.iter().any(|is| is == *part));
        let from = if whole { 0 } else { text.find("#[cfg(test)]").unwrap_or(text.len()) };
        (path, text[from..].to_owned())
    };
    all_files().into_iter().map(tests).collect()
}

/// A test that waits for a length of time is slow where the machine is fast and fails where it is slow. It moves the clock
/// or waits for a condition (`windlass_engine::testing::eventually`); where real time is what it tests, the line says why.
#[test]
fn a_test_that_sleeps_says_why() {
    let (mut sleeps, mut unexplained) = (0, Vec::new());
    for (file, text) in all_tests() {
        for (line, number) in text.lines().zip(1..) {
            let code = line.split("//").next().unwrap_or_default();
            if ["sleep(", "sleep_until("].iter().any(|sleep| code.contains(sleep)) && !code.contains("fn ") {
                sleeps += 1;
                if !line.contains("// ") {
                    unexplained.push(format!("{}: line {number} of its tests", file.display()));
                }
            }
        }
    }
    println!("{sleeps} sleeps in tests");
    assert!(unexplained.is_empty(), "{} sleeps without a reason:\n{}", unexplained.len(), unexplained.join("\n"));
    assert!(
        sleeps <= SLEEPS_MAX,
        "{sleeps} sleeps in tests, more than the {SLEEPS_MAX} there are; move the clock instead"
    );
}
