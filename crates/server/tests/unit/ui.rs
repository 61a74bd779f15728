use windlass_server::ui::{BASE, File, PAGE, files};

#[test]
fn the_page_needs_only_files_that_are_there_and_runs_nothing_inline() {
    let (scripts, links) = (PAGE.split("src=\""), PAGE.split("href=\""));
    let named: Vec<&str> = scripts.skip(1).chain(links.skip(1)).filter_map(|rest| rest.split('"').next()).collect();
    let assets: Vec<&str> = named.iter().filter_map(|name| name.strip_prefix("./assets/")).collect();
    assert!(!assets.is_empty());
    for name in assets {
        assert!(files::FILES.iter().any(|file| file.name == name), "{name}");
    }
    assert_eq!(PAGE.matches("<script").count(), PAGE.matches("<script type=\"module\" crossorigin src=").count());
    assert!(PAGE.contains(BASE) && !PAGE.contains("<style") && !PAGE.contains("//cdn"));
}

/// The budget of a first visit, compressed, is 250 kB.
#[test]
fn the_first_load_stays_small() {
    let first = |file: &&File| PAGE.contains(file.name);
    let bytes: usize = files::FILES.iter().filter(first).map(|file| file.bytes.len()).sum();
    assert!(bytes + PAGE.len() < 250_000, "{bytes}");
}
