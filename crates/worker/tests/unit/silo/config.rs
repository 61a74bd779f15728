use std::{fs, path::Path, time::Duration};
use windlass_worker::silo::config::{Config, Fetch};

const NEEDED: &str = "server_url: http://h\ntoken: silo_runner_x\n";

fn read(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runner.yaml");
    fs::write(&file, text).unwrap();
    let found = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Config::read(&file, found)
}

fn wrong(text: &str, variables: &[(&str, &str)]) -> String {
    read(text, variables).err().unwrap_or_else(|| panic!("{text:?} is taken"))
}

#[test]
fn the_file_of_the_documentation_is_understood() {
    let text = "server_url: \"https://silo.example.com\"\ntoken: \"silo_runner_abc123...\"\nname: \"worker-01\"\n\
                tags: [\"create\", \"linux\"]\npoll_interval: 5\ncreate_path: \"/opt/create\"\n";
    let config = read(text, &[]).unwrap();
    assert_eq!((config.server_url.as_str(), config.name.as_str()), ("https://silo.example.com", "worker-01"));
    assert_eq!(config.tags.unwrap(), ["create", "linux"]);
    assert_eq!((config.poll_interval.as_secs(), config.heartbeat_interval.as_secs()), (5, 30));
    assert_eq!(config.commands["create-dag-extract"], ["/opt/create", "--console", "-m", "silo.runner", "dag-extract"]);
    assert_eq!((config.commands.len(), config.fetch), (4, Fetch::Item));
}

#[test]
fn the_environment_comes_first_and_suffices() {
    let variables = [
        ("SILO_RUNNER_SERVER_URL", "http://other"),
        ("SILO_RUNNER_TOKEN", "silo_runner_y"),
        ("SILO_RUNNER_NAME", ""),
        ("SILO_RUNNER_TAGS", "a, b,"),
        ("SILO_RUNNER_POLL_INTERVAL", "0.5"),
        ("SILO_RUNNER_CREATE_PATH", "/c"),
        ("SILO_RUNNER_FETCH", "scope"),
    ];
    let config = read(&format!("{NEEDED}name: n\npoll_interval: 9\ntags: [x]\n"), &variables).unwrap();
    assert_eq!((config.server_url.as_str(), config.token.as_str()), ("http://other", "silo_runner_y"));
    assert_eq!((config.name.as_str(), config.tags.unwrap()), ("n", vec!["a".to_owned(), "b".into()]));
    assert_eq!(config.poll_interval, Duration::from_millis(500));
    assert_eq!((config.commands["create-export"][0].as_str(), config.fetch), ("/c", Fetch::Scope));
    let found = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    assert!(Config::read(Path::new("/nowhere/runner.yaml"), found).is_ok(), "no file is needed");
}

#[test]
fn commands_are_added_and_replaced() {
    let config =
        read(&format!("{NEEDED}commands:\n  mesh: [mesher, -v]\n  create-export: ['{{create_path}}2', x]\n"), &[]);
    let config = config.unwrap();
    assert_eq!(config.commands["mesh"], ["mesher", "-v"]);
    assert_eq!(config.commands["create-export"], ["/usr/bin/create2", "x"]);
    assert_eq!(config.commands.len(), 5);
}

#[test]
fn what_is_wrong_is_said_with_its_key_and_line() {
    for (text, variables, parts) in [
        ("token: silo_runner_x\n", &[] as &[(&str, &str)], &["server_url: ", "SILO_RUNNER_SERVER_URL"] as &[&str]),
        ("server_url: http://h\n", &[], &["token: ", "SILO_RUNNER_TOKEN"]),
        ("server_url: http://h\ntoken: silo_x\n", &[], &["token: ", "silo_runner_"]),
        (&format!("{NEEDED}poll_intervall: 5\n"), &[], &["runner.yaml:3:1: poll_intervall: "]),
        (&format!("{NEEDED}\npoll_interval: soon\n"), &[], &["runner.yaml:4:16: poll_interval: "]),
        (&format!("{NEEDED}poll_interval: 0\n"), &[], &["poll_interval: 0 is not a number of seconds"]),
        (NEEDED, &[("SILO_RUNNER_HEARTBEAT_INTERVAL", "x")], &["heartbeat_interval: \"x\" is not a number"]),
        (&format!("{NEEDED}tags: create\n"), &[], &["runner.yaml:3:7: tags: "]),
        (&format!("{NEEDED}commands: {{a: []}}\n"), &[], &["commands.a: "]),
        (&format!("{NEEDED}commands: {{a: run}}\n"), &[], &["runner.yaml:3:11: commands: "]),
        (&format!("{NEEDED}token: silo_runner_z\n"), &[], &["runner.yaml:3:1"]),
        ("server_url: [\n", &[], &["runner.yaml:"]),
        (&format!("{NEEDED}fetch: all\n"), &[], &["runner.yaml:3:8: fetch: ", "`scope`"]),
        ("- a\n", &[], &["runner.yaml: ", "a map of settings"]),
    ] {
        let why = wrong(text, variables);
        assert!(parts.iter().all(|part| why.contains(part)), "{text:?}: {why}");
        assert!(!why.contains("silo_runner_z") && !why.contains("silo_x\n"), "{why}");
    }
}
