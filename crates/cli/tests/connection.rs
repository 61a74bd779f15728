//! Where the options about the connection may stand, for every command, and which of several answers counts.

use crate::support::{ADMIN, Ran, Server, WORKER, alone, home, run, windlass};
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use std::{collections::BTreeMap, ffi::OsString, fs, path::Path};
use windlass_cli::{
    cli::Cli,
    remote::{Found, Remote},
};

/// What can be said, with a value.
const OPTIONS: [(&str, &str, &str); 6] = [
    ("server", "--server", "http://there:1"),
    ("token", "--token", "a-token"),
    ("token_file", "--token-file", "a.token"),
    ("namespace", "-n", "film"),
    ("ca_cert", "--ca-cert", "ca.pem"),
    ("profile", "--profile", "work"),
];

/// Every command that has no commands of its own, with words that satisfy it.
fn commands() -> Vec<Vec<String>> {
    fn below(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        let mut subs = command.get_subcommands().peekable();
        if subs.peek().is_none() || !command.is_subcommand_required_set() && !path.is_empty() {
            all.push(line(path, command));
        }
        for sub in subs {
            below(sub, &[path, &[sub.get_name().to_owned()]].concat(), all);
        }
    }
    let mut all = Vec::new();
    below(&Cli::command(), &[], &mut all);
    all
}

fn words(command: &clap::Command, value: &str) -> Vec<String> {
    let mut words = Vec::new();
    for arg in command.get_arguments().filter(|arg| arg.is_required_set()) {
        words.extend(arg.get_long().map(|long| format!("--{long}")));
        let possible = arg.get_possible_values();
        words.push(possible.first().map_or_else(|| value.to_owned(), |value| value.get_name().to_owned()));
    }
    words
}

/// The tree does not say of which kind a value is, nor what is needed in place of something else: this is tried.
fn line(path: &[String], command: &clap::Command) -> Vec<String> {
    let more = [&[][..], &["1"], &["--every", "1h"], &["--category", "F01"], &["--role", "viewer"]];
    let values = ["1", "00000000-0000-7000-8000-000000000001"];
    let mut lines = values.into_iter().flat_map(|value| {
        more.iter().map(move |more| {
            let more = more.iter().map(|word| (*word).to_owned()).collect();
            [path.to_vec(), words(command, value), more].concat()
        })
    });
    lines.find(|line| parse(line).is_some()).unwrap_or_else(|| path.to_vec())
}

fn parse(words: &[String]) -> Option<ArgMatches> {
    let line = std::iter::once("windlass".to_owned()).chain(words.iter().cloned());
    Cli::command().try_get_matches_from(line).ok()
}

fn said(remote: &Remote, name: &str) -> Option<String> {
    let (options, path) = (remote.options.clone(), |path: std::path::PathBuf| path.display().to_string());
    match name {
        "server" => options.server,
        "token" => options.token,
        "token_file" => options.token_file.map(path),
        "namespace" => options.namespace,
        "ca_cert" => options.ca_cert.map(path),
        _ => remote.profile.clone(),
    }
}

#[test]
fn every_command_takes_every_connection_option_before_and_after_it() {
    let all = commands();
    assert!(all.len() > 80, "{}", all.len());
    assert!(all.iter().any(|words| words == &["worker"]));
    let unknown: Vec<_> = all.iter().filter(|words| parse(words).is_none()).collect();
    assert!(unknown.is_empty(), "the test does not know how to call {unknown:?}");
    for words in all {
        for (name, option, value) in OPTIONS {
            let option = [option.to_owned(), value.to_owned()];
            for line in [[&option[..], &words].concat(), [&words[..], &option].concat()] {
                let matches = parse(&line).unwrap_or_else(|| panic!("{line:?}"));
                let cli = Cli::from_arg_matches(&matches).unwrap();
                assert_eq!(said(&cli.remote, name).as_deref(), Some(value), "{line:?}");
            }
        }
    }
}

#[test]
fn the_short_n_is_the_namespace_everywhere() {
    fn below(command: &clap::Command) {
        for arg in command.get_arguments().filter(|arg| arg.get_short() == Some('n')) {
            assert_eq!(arg.get_id(), "namespace", "{}", command.get_name());
        }
        command.get_subcommands().for_each(below);
    }
    let mut command = Cli::command();
    command.build();
    below(&command);
}

fn resolved(options: &[(&str, &str)], variables: &[(&str, &str)]) -> anyhow::Result<Remote> {
    let line: Vec<String> = options.iter().flat_map(|(name, value)| [(*name).into(), (*value).into()]).collect();
    let matches = parse(&[vec!["worker".to_owned()], line].concat()).unwrap();
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    let variable = |name: &str| variables.get(name).map(OsString::from);
    Cli::from_arg_matches(&matches).unwrap().remote.or_variables(variable)
}

#[test]
fn an_option_wins_over_a_variable() {
    for (name, option, value) in OPTIONS {
        let variable = format!("WINDLASS_{}", name.to_uppercase());
        let remote = resolved(&[], &[(&variable, "said")]).unwrap();
        assert_eq!(said(&remote, name).as_deref(), Some("said"), "{name}");
        let remote = resolved(&[(option, value)], &[(&variable, "said")]).unwrap();
        assert_eq!(said(&remote, name).as_deref(), Some(value), "{name}");
        let nothing = resolved(&[], &[(&variable, "")]).unwrap();
        assert_eq!(said(&nothing, name).unwrap_or_default(), "", "{name}: an empty variable");
    }
    // A token has two of each.
    let variables = [("WINDLASS_TOKEN", "v"), ("WINDLASS_TOKEN_FILE", "v.token")];
    let by_file = resolved(&[("--token-file", "o.token")], &variables).unwrap();
    assert_eq!((said(&by_file, "token"), said(&by_file, "token_file").as_deref()), (None, Some("o.token")));
    let both = resolved(&[("--token", "o"), ("--token-file", "o.token")], &[]).err().unwrap().to_string();
    assert!(both.contains("--token and --token-file"), "{both}");
}

/// A server with a job in each of two namespaces, and the ways to say where a worker works.
struct Place {
    server: Server,
    away: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let (server, away) = (Server::start(), home());
        fs::write(away.path().join("w.token"), format!("{WORKER}\n")).unwrap();
        fs::write(away.path().join("none.token"), "no-such-token-0123456789\n").unwrap();
        let set = ["profile", "set", "film", "--server", &server.url, "--token-file", "w.token", "-n", "film"];
        alone(away.path(), &set).ok();
        alone(away.path(), &["profile", "set", "wrong", "--server", "http://127.0.0.1:1", "-n", "wrong"]).ok();
        alone(away.path(), &["profile", "use", "wrong"]).ok();
        Self { server, away }
    }

    fn pending(&self, namespace: &str) -> usize {
        self.server.json(&["jobs", "--state", "pending", "-n", namespace]).as_array().unwrap().len()
    }

    /// Runs `worker` with these words before and after the command and these variables; it must do exactly the job in `film`.
    #[track_caller]
    fn works(&self, before: &[&str], after: &[&str], variables: &[(&str, &str)]) {
        for namespace in ["film", "default", "wrong"] {
            self.server.windlass(&["cancel", "last", "-n", namespace]);
            self.server.windlass(&["submit", "-p", "1", "-n", namespace]).ok();
        }
        let own = ["--work-dir", "work", "--exit-when-idle", "--exec", "true"];
        let ran = call(self.away.path(), &[before, &["worker"], after, &own].concat(), variables);
        assert_eq!(ran.code, 0, "{before:?} {after:?} {variables:?}: {}", ran.err);
        let left: Vec<usize> = ["film", "default", "wrong"].map(|namespace| self.pending(namespace)).into();
        assert_eq!(left, [0, 1, 1], "{before:?} {after:?} {variables:?}: {}", ran.err);
    }
}

fn call(folder: &Path, line: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = windlass(folder);
    command.args(line).envs(variables.iter().copied());
    run(command, "")
}

#[test]
fn a_worker_works_where_it_is_told_to_in_every_way_of_telling() {
    let place = Place::new();
    let url = place.server.url.clone();
    let url = url.as_str();
    let film = ["--server", url, "--token-file", "w.token", "-n", "film"];
    place.works(&film, &[], &[]);
    place.works(&[], &film, &[]);
    place.works(&["-n", "film"], &["--server", url, "--token-file", "w.token"], &[]);
    place.works(&["--server", url], &["--namespace", "film", "--token", WORKER], &[]);
    place.works(&["--namespace=film"], &[], &[("WINDLASS_SERVER", url), ("WINDLASS_TOKEN_FILE", "w.token")]);
    let variables = [("WINDLASS_SERVER", url), ("WINDLASS_TOKEN", WORKER), ("WINDLASS_NAMESPACE", "film")];
    place.works(&[], &[], &variables);
    place.works(&["-o", "json"], &[], &variables);
    place.works(&["--profile", "film"], &[], &[]);
    place.works(&[], &["--profile", "film"], &[]);
    place.works(&[], &[], &[("WINDLASS_PROFILE", "film")]);
    // Each where several say something: the option, then the variable, then the profile.
    let others =
        [("WINDLASS_SERVER", "http://127.0.0.1:1"), ("WINDLASS_TOKEN", "x"), ("WINDLASS_NAMESPACE", "default")];
    place.works(&film, &[], &others);
    place.works(&[], &film, &others);
    place.works(&["--profile", "wrong"], &[], &variables);
    place.works(&["-n", "film"], &["--profile", "wrong"], &variables);
    place.works(&["--token-file", "w.token"], &[], &[variables[0], ("WINDLASS_TOKEN", "x"), variables[2]]);
    place.works(&["--profile", "film"], &[], &[("WINDLASS_PROFILE", "wrong")]);
}

#[test]
fn a_worker_that_cannot_connect_names_the_reason() {
    let place = Place::new();
    let worker = |more: &[&str]| {
        let line = [&["worker"], more, &["--exit-when-idle", "--exec", "true"]].concat();
        call(place.away.path(), &line, &[])
    };
    let none = worker(&["--server", &place.server.url, "--token-file", "none.token"]);
    assert_eq!(none.code, 3, "{}", none.err);
    worker(&["--token-file", "missing.token"]).says(&["missing.token"]);
    worker(&["--profile", "unknown"]).says(&["there is no profile \"unknown\"", "film, wrong"]);
    let both = worker(&["--token", "a", "--token-file", "w.token"]);
    assert_eq!(both.code, 2);
    both.says(&["--token and --token-file were both given"]);
}

#[test]
fn an_empty_profile_stands_for_none() {
    let place = Place::new();
    let found = |variables: &[(&str, &str)]| -> Found {
        // Only what does not need the user's own profiles.
        resolved(&[("--profile", "")], variables).unwrap().find().unwrap()
    };
    let found = found(&[("WINDLASS_PROFILE", "wrong")]);
    assert_eq!((&*found.endpoint.server, &*found.endpoint.namespace), ("http://127.0.0.1:3000", "default"));
    let variables = [("WINDLASS_PROFILE", ""), ("WINDLASS_SERVER", &place.server.url), ("WINDLASS_TOKEN", ADMIN)];
    let made = call(place.away.path(), &["submit", "-p", "1", "-o", "json"], &variables).ok();
    let id = serde_json::from_str::<serde_json::Value>(&made).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(place.server.json(&["job", "show", &id])["namespace"], "default", "not the default profile's");
}
