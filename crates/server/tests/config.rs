//! Settings: where they come from, who wins, and what is said when they are wrong.

use std::{fs, path::Path};
use windlass_server::config::{
    Config, Effective, Origin, Sources, docs, effective,
    table::{self, Foreign, From, Table, as_it_is},
    without_effect,
};
use windlass_server::dialects::{self, joblib, silo};

fn variables<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

fn with_file(name: &str, text: &str) -> Sources<'static> {
    Sources { file: Some((name.into(), text.to_owned())), table: dialects::table(), ..Sources::default() }
}

fn find<'a>(found: &'a [Effective], name: &str) -> &'a Effective {
    found.iter().find(|one| one.setting.name == name).unwrap()
}

fn silo_settings(config: &Config) -> silo::Settings {
    silo::Settings::read(&config.values)
}

#[track_caller]
fn refused(sources: &Sources) -> String {
    match effective(sources).and_then(|found| Config::new(&found).map(drop)) {
        Ok(()) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn flags_win_over_variables_over_the_file_over_defaults() {
    let set = variables(&[("WINDLASS_LOG", "debug"), ("WINDLASS_LISTEN", "127.0.0.1:2")]);
    let sources = Sources {
        flags: vec![("listen", "127.0.0.1:1".into())],
        variable: Some(&set),
        ..with_file(
            "w.yaml",
            "# ours\nlisten: 127.0.0.1:3\nlog: trace\n\nretention: 3d\nhosts: [a.example, b.example]\n",
        )
    };
    let found = effective(&sources).unwrap();
    let told = |name: &str| (find(&found, name).shown().to_owned(), find(&found, name).origin.to_string());
    assert_eq!(told("listen"), ("127.0.0.1:1".into(), "--listen".into()));
    assert_eq!(told("log"), ("debug".into(), "WINDLASS_LOG".into()));
    assert_eq!(told("retention"), ("3d".into(), "w.yaml, line 5".into()));
    assert_eq!(told("events_kept"), ("1d".into(), "default".into()));
    let config = Config::new(&found).unwrap();
    assert_eq!(config.hosts, ["a.example", "b.example"]);
    assert_eq!(config.limits.retention.0, 3 * 86_400_000);
}

#[test]
fn what_is_in_effect_is_shown_with_what_it_follows_from() {
    let told = |set: &[(&str, &str)], name: &str| {
        let set = variables(set);
        let sources = Sources { variable: Some(&set), table: dialects::table(), ..Sources::default() };
        let found = effective(&sources).unwrap();
        (find(&found, name).shown().to_owned(), find(&found, name).source())
    };
    let is = |set: &[(&str, &str)], name: &str, value: &str, source: &str| {
        assert_eq!(told(set, name), (value.to_owned(), source.to_owned()), "{set:?} {name}");
    };
    is(&[], "neops_worker_offline", "6m", "default");
    is(
        &[("WINDLASS_NEOPS_WORKER_UNREACHABLE", "10m"), ("WORKER_OFFLINE_THRESHOLD_MS", "1000")],
        "neops_worker_offline",
        "10m",
        "WORKER_OFFLINE_THRESHOLD_MS, raised from 1000ms",
    );
    is(&[("WINDLASS_NEOPS_JOB_STUCK", "90s")], "neops_job_pending", "450s", "five times neops_job_stuck");
    is(&[("WINDLASS_JOBLIB_DOUBT", "1h")], "joblib_doubt", "10m", "WINDLASS_JOBLIB_DOUBT, lowered from 1h");
    is(&[("WINDLASS_SILO_HEARTBEAT", "1ms")], "silo_heartbeat", "1s", "WINDLASS_SILO_HEARTBEAT, raised from 1ms");
    is(&[("WINDLASS_RETRY_RATE", "9000000")], "retry_rate", "1000000", "WINDLASS_RETRY_RATE, lowered from 9000000");
    is(&[("WINDLASS_LISTEN", "0.0.0.0:1")], "without_token", "never", "auto (default), by listen and hosts");
    is(&[("WINDLASS_WITHOUT_TOKEN", "anyone")], "without_token", "anyone", "WINDLASS_WITHOUT_TOKEN");
}

#[test]
fn a_toml_file_says_the_same() {
    let found =
        effective(&with_file("w.toml", "log = \"warn\"\nsilo_watch = true\nconnections_max = 7\nhosts = [\"a\"]\n"))
            .unwrap();
    let config = Config::new(&found).unwrap();
    assert_eq!((config.log.as_str(), silo_settings(&config).watch, config.connections.connections), ("warn", true, 7));
    assert_eq!(find(&found, "connections_max").origin, Origin::File { path: "w.toml".into(), line: 3 });
}

#[test]
fn who_needs_no_token_can_be_said_and_the_older_name_still_counts() {
    let here: std::net::IpAddr = "127.0.0.1".parse().unwrap();
    let said = |text: &str| {
        let config = Config::new(&effective(&with_file("w.yaml", text)).unwrap()).unwrap();
        config.without_token(here).name()
    };
    for (text, means) in [
        ("", "loopback"),
        ("without_token: never\n", "never"),
        ("without_token: anyone\n", "anyone"),
        ("hosts: [jobs.example]\n", "never"),
        ("allow_open: true\n", "anyone"),
        ("allow_open: false\n", "loopback"),
        ("allow_open: true\nwithout_token: never\n", "never"),
    ] {
        assert_eq!(said(text), means, "{text:?}");
    }
    let error = refused(&with_file("w.yaml", "without_token: all\n"));
    assert!(error.contains("\"all\" is none of auto, never, loopback, anyone"), "{error}");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (name, text, said) in [
        (
            "w.yaml",
            "log: info\nlisen: 127.0.0.1:1\n",
            "w.yaml, line 2: there is no setting \"lisen\"; did you mean \"listen\"?",
        ),
        (
            "w.toml",
            "\n\nretension = \"3d\"\n",
            "w.toml, line 3: there is no setting \"retension\"; did you mean \"retention\"?",
        ),
        ("w.yaml", "completely_else: 1\n", "windlass config show"),
        (
            "w.yaml",
            "log: loud\n",
            "log (from w.yaml, line 1): \"loud\" is none of off, error, warn, info, debug, trace",
        ),
        ("w.yaml", "retention: 3\n", "it has no unit of time; write it like 250ms, 90s, 5m, 2h or 7d"),
        ("w.yaml", "listen: {a: 1}\n", "w.yaml, line 1: listen takes a single value"),
        ("w.yaml", "tls_cert: a.pem\n", "tls_cert and tls_key go together"),
        ("w.yaml", "log: [\n", "w.yaml: "),
        ("w.toml", "log = \n", "w.toml: "),
    ] {
        let error = refused(&with_file(name, text));
        assert!(error.contains(said), "{text:?}: {error}");
    }
    let flags = vec![("connections_max", "many".to_owned())];
    assert_eq!(
        refused(&Sources { flags, ..Sources::default() }),
        "connections_max (from --connections-max): \"many\" is not a number"
    );
}

#[test]
fn an_empty_file_and_no_file_are_the_defaults() {
    for sources in
        [Sources::default(), with_file("w.yaml", ""), with_file("w.yaml", "# nothing\n"), with_file("w.toml", "")]
    {
        let found = effective(&sources).unwrap();
        assert!(found.iter().all(|one| one.origin == Origin::Default) && found.len() == sources.table.settings.len());
        let config = Config::new(&found).unwrap();
        assert_eq!((config.listen.as_str(), config.data.as_path()), ("127.0.0.1:3000", Path::new(".windlass")));
        let limits = windlass_core::Limits::default();
        assert_eq!(config.limits, limits, "the table's defaults are the engine's");
    }
}

#[test]
fn names_of_other_programs_are_understood_and_give_way_to_ours() {
    fn port(text: &str) -> Result<String, String> {
        let port: u16 = text.parse().map_err(|_| format!("{text:?} is not a port"))?;
        Ok(format!("127.0.0.1:{port}"))
    }
    let known = || -> Table {
        let key = |key, to| Foreign { from: From::Key { block: "jobs", key }, to, convert: as_it_is };
        let port = Foreign { from: From::Variable("PORT"), to: table::listen, convert: port };
        let mut table = dialects::table();
        table.foreign.extend([port, key("log_limit", table::job_log_max)]);
        table
    };
    let set = variables(&[("PORT", "8080"), ("CORS_ORIGINS", "https://a.example, https://b.example")]);
    let sources =
        || Sources { variable: Some(&set), table: known(), ..with_file("w.yaml", "jobs:\n  log_limit: 1MiB\n") };
    let found = effective(&sources()).unwrap();
    assert_eq!(
        (find(&found, "listen").shown(), find(&found, "listen").origin.to_string()),
        ("127.0.0.1:8080", "PORT".into())
    );
    assert_eq!(find(&found, "job_log_max").origin.to_string(), "w.yaml, line 2");
    assert_eq!(Config::new(&found).unwrap().origins, ["https://a.example", "https://b.example"]);

    let set = variables(&[("PORT", "8080"), ("WINDLASS_LISTEN", "127.0.0.1:1")]);
    let both = Sources {
        variable: Some(&set),
        file: Some(("w.yaml".into(), "jobs: {log_limit: 1MiB}\njob_log_max: 2MiB\n".into())),
        ..sources()
    };
    let found = effective(&both).unwrap();
    assert_eq!((find(&found, "listen").shown(), find(&found, "job_log_max").shown()), ("127.0.0.1:1", "2MiB"));

    let wrong = Sources { table: known(), ..with_file("w.yaml", "log: info\njobs:\n  log_limits: 1MiB\n") };
    assert!(refused(&wrong).contains("line 3: there is no setting \"log_limits\"; did you mean \"log_limit\"?"));
    let wrong = Sources { table: known(), ..with_file("w.yaml", "jobs: {log_limits: 1MiB}\nlog: info\n") };
    assert!(refused(&wrong).contains("w.yaml, line 1: there is no setting"), "{}", refused(&wrong));
    let set = variables(&[("PORT", "http")]);
    assert_eq!(refused(&Sources { variable: Some(&set), ..sources() }), "listen (from PORT): \"http\" is not a port");
}

#[test]
fn secrets_are_not_shown() {
    let set = variables(&[
        ("WINDLASS_ADMIN_TOKEN", "correct-horse-battery"),
        ("WINDLASS_DATABASE", "postgres://u:hunter2@h/d"),
    ]);
    let found = effective(&Sources { variable: Some(&set), ..Sources::default() }).unwrap();
    for one in &found {
        assert!(!one.shown().contains("horse") && !one.shown().contains("hunter2"), "{}", one.setting.name);
    }
    assert_eq!(find(&found, "admin_token").shown(), "(set, not shown)");
    assert_eq!(Config::new(&found).unwrap().database.unwrap().reveal(), "postgres://u:hunter2@h/d");
}

#[test]
fn the_documentation_is_made_from_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("WINDLASS_WRITE_DOCS").is_some() {
        fs::write(&path, docs::markdown(&dialects::table())).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == docs::markdown(&dialects::table()),
        "docs/configuration.md is not what the table says; run `WINDLASS_WRITE_DOCS=1 cargo test -p windlass-server --test all config`"
    );
}

const SILO_FILE: &str = "jobs:\n  directory: /srv/jobdefs\n  watch: true\n  runner_timeout: 45\n  job_timeout_check: 7\n  \
    default_priority: 20\nserver: {listen: '127.0.0.1:8080'}\nstorage: {path: /srv/silo}\nauth:\n  admin_token: from-the-file-0123456\n\
    events: {history_size: 512, heartbeat: 11}\nlocks: {timeout_minutes: 3}\n";

#[test]
fn silo_s_own_file_is_understood_key_by_key() {
    let found = effective(&with_file("config.yaml", SILO_FILE)).unwrap();
    let config = Config::new(&found).unwrap();
    let silo = silo_settings(&config);
    assert_eq!((silo.directory.as_path(), silo.directory_is_set, silo.watch), (Path::new("/srv/jobdefs"), true, true));
    assert_eq!((silo.runner_timeout.0, silo.timeout_check.as_secs(), silo.default_priority), (45_000, 7, 20));
    assert_eq!((silo.heartbeat.as_secs(), silo.lock_timeout.0), (11, 180_000));
    assert_eq!((config.listen.as_str(), config.data.as_path()), ("127.0.0.1:8080", Path::new("/srv/silo")));
    assert_eq!(find(&found, "admin_token").origin.to_string(), "config.yaml, line 10");
    let usual = effective(&with_file("config.yaml", "jobs: {default_priority: -5}\n")).unwrap();
    let silo = silo_settings(&Config::new(&usual).unwrap());
    assert_eq!((silo.directory.as_path(), silo.directory_is_set), (Path::new("/etc/silo/jobdefs"), false));
    assert_eq!((silo.runner_timeout.0, silo.timeout_check.as_secs(), silo.default_priority), (90_000, 30, -5));
}

#[test]
fn silo_s_variables_win_over_its_file_and_ours_over_both() {
    let table = [
        ("SILO_JOBS_DIRECTORY", "/var/jobdefs", "silo_jobs", "/var/jobdefs"),
        ("SILO_JOBS_RUNNER_TIMEOUT", "46", "silo_runner_timeout", "46s"),
        ("SILO_JOBS_JOB_TIMEOUT_CHECK", "8", "silo_timeout_check", "8s"),
        ("SILO_JOBS_DEFAULT_PRIORITY", "21", "silo_priority", "21"),
        ("SILO_LISTEN", "127.0.0.1:8081", "listen", "127.0.0.1:8081"),
        ("SILO_STORAGE_PATH", "/var/silo", "data", "/var/silo"),
    ];
    for (name, value, to, expected) in table {
        let set = [(name, value)];
        let set = variables(&set);
        let sources = Sources { variable: Some(&set), ..with_file("config.yaml", SILO_FILE) };
        let found = effective(&sources).unwrap();
        assert_eq!(find(&found, to).shown(), expected, "{name}");
        assert_eq!(find(&found, to).origin.to_string(), name);
    }
    let set = variables(&[
        ("SILO_JOBS_DEFAULT_PRIORITY", "21"),
        ("WINDLASS_SILO_PRIORITY", "22"),
        ("SILO_ADMIN_TOKEN", "from-a-variable-012345"),
    ]);
    let sources = Sources { variable: Some(&set), ..with_file("config.yaml", SILO_FILE) };
    let found = effective(&sources).unwrap();
    assert_eq!(find(&found, "silo_priority").shown(), "22", "our own name wins");
    assert_eq!(find(&found, "admin_token").origin.to_string(), "SILO_ADMIN_TOKEN");
    let flags = vec![("silo_priority", "23".to_owned())];
    let found = effective(&Sources { flags, variable: Some(&set), ..with_file("config.yaml", SILO_FILE) }).unwrap();
    assert_eq!(find(&found, "silo_priority").shown(), "23", "a flag wins over all");
}

#[test]
fn the_variables_of_zndraw_are_understood_and_those_without_effect_are_named() {
    let set = |name: &str| match name {
        "ZNDRAW_JOBLIB_ALLOWED_CATEGORIES" => Some(r#"["modifiers", "filesystem"]"#.to_owned()),
        "ZNDRAW_JOBLIB_WORKER_TIMEOUT_SECONDS" => Some("2.5".to_owned()),
        "ZNDRAW_JOBLIB_SWEEPER_INTERVAL_SECONDS" => Some("30".to_owned()),
        "ZNDRAW_AUTH_DEFAULT_ADMIN_EMAIL" => Some("root@example.org".to_owned()),
        "ZNDRAW_AUTH_DEFAULT_ADMIN_PASSWORD" => Some("hunter42".to_owned()),
        _ => None,
    };
    let sources = Sources { variable: Some(&set), table: dialects::table(), ..Sources::default() };
    let found = effective(&sources).unwrap();
    let settings = joblib::Settings::read(&Config::new(&found).unwrap().values);
    assert_eq!(settings.categories, ["modifiers", "filesystem"]);
    assert_eq!(settings.worker_timeout.0, 2_500);
    assert_eq!(settings.admin.unwrap().0, "root@example.org");
    assert_eq!(find(&found, "joblib_admin_password").shown(), "(set, not shown)");
    assert_eq!(without_effect(&dialects::table(), &set), ["ZNDRAW_JOBLIB_SWEEPER_INTERVAL_SECONDS"]);
    let odd = |name: &str| (name == "ZNDRAW_JOBLIB_SWEEPER_INTERVAL_SECONDS").then(|| "often".to_owned());
    let sources = Sources { variable: Some(&odd), table: dialects::table(), ..Sources::default() };
    let error = effective(&sources).err().unwrap().to_string();
    assert!(error.starts_with("ZNDRAW_JOBLIB_SWEEPER_INTERVAL_SECONDS (from "), "{error}");
}

#[test]
fn what_silo_s_file_gets_wrong_is_named() {
    for (text, said) in [
        ("jobs: {runner_timeout: 0}\n", "at least 1"),
        ("jobs: {runner_timeout: soon}\n", "soon"),
        ("jobs: {job_timeout_check: 0}\n", "at least 1"),
        ("jobs: {default_priority: high}\n", "high"),
        ("jobs: {directories: /x}\n", "directories"),
        ("events: {history_size: 255}\n", "not between 256 and 1000000"),
        ("locks: {timeout_minutes: 0}\n", "at least 1"),
        ("jobz: {directory: /x}\n", "jobz"),
    ] {
        let error = refused(&with_file("config.yaml", text));
        assert!(error.contains(said) && error.contains("config.yaml"), "{text:?}: {error}");
    }
}
