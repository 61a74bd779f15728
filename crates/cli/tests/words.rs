//! Help, completions and manual pages.

use crate::support::{alone, home};

#[test]
fn every_shell_gets_completions() {
    let home = home();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        // The script asks the program, which knows its commands.
        let script = alone(home.path(), &["completions", shell]).ok();
        assert!(script.contains("WINDLASS_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn manual_pages_are_written() {
    let home = home();
    alone(home.path(), &["man", "pages"]).ok();
    let pages: Vec<String> = std::fs::read_dir(home.path().join("pages"))
        .unwrap()
        .map(|page| page.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    for page in ["windlass.1", "windlass-submit.1", "windlass-job-wait.1"] {
        assert!(pages.contains(&page.to_owned()), "{pages:?}");
    }
}

#[test]
fn help_teaches_with_examples() {
    let home = home();
    for command in
        ["submit", "jobs", "logs", "events", "token", "definitions", "schedules", "export", "import", "backup"]
    {
        let help = alone(home.path(), &[command, "--help"]).ok();
        assert!(help.contains("Example"), "{command}: {help}");
    }
    let all = alone(home.path(), &["--help"]).ok();
    assert!(all.contains("Exit codes: 0 done, 1 error, 2 wrong usage"), "{all}");
}

#[test]
fn the_output_format_may_stand_anywhere() {
    let home = home();
    for args in
        [["-o", "json", "profile", "list"], ["profile", "-o", "json", "list"], ["profile", "list", "-o", "json"]]
    {
        assert_eq!(alone(home.path(), &args).ok().trim(), "[]");
    }
}
