//! The program itself, as a process: starting, refusing, stopping.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdout, Command, Output, Stdio},
    time::{Duration, Instant},
};
use windlass_engine::testing::eventually_blocking;

struct Server {
    process: Child,
    out: BufReader<ChildStdout>,
    ready: String,
    address: String,
}

fn windlass(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn serve(data: &Path, more: &[&str], log: Option<fs::File>) -> Server {
    serve_with(data, &[&["--listen", "127.0.0.1:0"], more].concat(), log)
}

fn serve_with(data: &Path, more: &[&str], log: Option<fs::File>) -> Server {
    let mut command = windlass(&["serve", "--data", data.to_str().unwrap()]);
    let log = log.map_or_else(Stdio::null, Stdio::from);
    Server::new(command.args(more).stdout(Stdio::piped()).stderr(log).spawn().unwrap())
}

/// A test that fails leaves no server behind.
impl Drop for Server {
    fn drop(&mut self) {
        drop((self.process.kill(), self.process.wait()));
    }
}

impl Server {
    /// Waits until it says that it is ready.
    fn new(mut process: Child) -> Self {
        let out = BufReader::new(process.stdout.take().unwrap());
        let mut server = Self { process, out, ready: String::new(), address: String::new() };
        server.out.read_line(&mut server.ready).unwrap();
        let address = server.ready.split("://").nth(1).and_then(|rest| rest.split(' ').next());
        server.address = address.unwrap_or_else(|| panic!("not ready: {}", server.ready)).to_owned();
        server
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn ended(mut self) -> (i32, Duration) {
        let began = Instant::now();
        let status = eventually_blocking("it stops", || self.process.try_wait().unwrap());
        (status.code().unwrap_or(-1), began.elapsed())
    }

    fn call(&self, method: &str, path: &str, token: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

fn text(output: &Output) -> (i32, String, String) {
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), words(&output.stdout), words(&output.stderr))
}

#[test]
fn it_starts_serves_keeps_and_stops_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let log = fs::File::create(folder.path().join("log")).unwrap();
    let data = folder.path().join("data");
    let began = Instant::now();
    let server = serve(&data, &["--log", "trace"], Some(log));
    println!("ready after {:?}", began.elapsed());
    assert!(server.ready.contains("admin.token"), "{}", server.ready);
    let token = fs::read_to_string(data.join("admin.token")).unwrap().trim().to_owned();
    assert!(server.call("GET", "/readyz", &token, "").starts_with("HTTP/1.1 200"));
    let made = server.call("POST", "/api/v1/jobs", &token, r#"{"id": "01890000-0000-7000-8000-000000000001"}"#);
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");

    let second = windlass(&["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]).output().unwrap();
    let (code, _, said) = text(&second);
    assert!(code == 3 && said.contains(&format!("process {}", server.process.id())), "{code}: {said}");

    server.signal("-TERM");
    let (code, took) = server.ended();
    assert!(code == 0 && took < Duration::from_secs(5), "{code} after {took:?}");
    assert!(data.join("windlass.clean").exists(), "the store was closed cleanly");

    let again = serve(&data, &[], None);
    let kept = again.call("GET", "/api/v1/jobs/01890000-0000-7000-8000-000000000001", &token, "");
    assert!(kept.starts_with("HTTP/1.1 200"), "the token and the job are still there: {kept}");
    again.signal("-INT");
    assert_eq!(again.ended().0, 0);
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.contains("/api/v1/jobs") && !log.contains(&token), "{log}");
}

#[test]
fn a_long_poll_does_not_hold_up_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), &[], None);
    let token = fs::read_to_string(folder.path().join("admin.token")).unwrap().trim().to_owned();
    server.call("POST", "/api/v1/jobs", &token, r#"{"id": "01890000-0000-7000-8000-000000000001"}"#);
    let mut waiting = TcpStream::connect(&server.address).unwrap();
    let path = "/api/v1/jobs/01890000-0000-7000-8000-000000000001/wait?wait_ms=60000";
    write!(waiting, "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(300)); // Mostly the call waits by now; its answer is the same either way.
    server.signal("-TERM");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("pending"), "{answer}");
    let (code, took) = server.ended();
    assert!(code == 0 && took < Duration::from_secs(5), "{code} after {took:?}");
}

#[test]
fn a_wrong_configuration_is_refused_before_anything_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.yaml");
    fs::write(&file, "log: info\nlisen: 127.0.0.1:1\n").unwrap();
    let (code, _, said) = text(&windlass(&["serve", "--config", file.to_str().unwrap()]).output().unwrap());
    assert!(code == 2 && said.contains("line 2") && said.contains("did you mean \"listen\""), "{code}: {said}");
    let data = folder.path().join("data");
    let mut short = windlass(&["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let (code, _, said) = text(&short.env("WINDLASS_ADMIN_TOKEN", "short").output().unwrap());
    assert!(code != 0 && said.contains("16 characters"), "{code}: {said}");
}

#[test]
fn config_show_tells_values_and_origins_but_no_secrets() {
    let mut show = windlass(&["config", "show", "-o", "json", "--log", "debug"]);
    show.env("WINDLASS_ADMIN_TOKEN", "correct-horse-battery").env("CORS_ORIGINS", "https://a.example");
    let (code, out, said) = text(&show.output().unwrap());
    assert_eq!(code, 0, "{said}");
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let one = |name: &str| found.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    assert_eq!((&one("log")["value"], &one("log")["origin"]), (&"debug".into(), &"--log".into()));
    assert_eq!(one("origins")["origin"], "CORS_ORIGINS");
    assert!(!out.contains("horse"));
    let (code, out, _) = text(&windlass(&["config", "show"]).output().unwrap());
    assert!(code == 0 && out.lines().any(|line| line.starts_with("listen") && line.ends_with("default")), "{out}");
}

#[test]
fn config_show_tells_what_is_in_effect_and_where_it_comes_from() {
    let mut show = windlass(&["config", "show", "-o", "json", "--data", "here"]);
    show.env("WORKER_UNREACHABLE_THRESHOLD_MS", "1000");
    let (code, out, said) = text(&show.output().unwrap());
    assert_eq!(code, 0, "{said}");
    let found: serde_json::Value = serde_json::from_str(&out).unwrap();
    let one = |name: &str| {
        let one = found.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        (one["value"].as_str().unwrap().to_owned(), one["origin"].as_str().unwrap().to_owned())
    };
    let is = |name: &str, value: &str, origin: &str| assert_eq!(one(name), (value.to_owned(), origin.to_owned()));
    is("neops_worker_unreachable", "1000ms", "WORKER_UNREACHABLE_THRESHOLD_MS");
    is("neops_worker_offline", "3s", "three times neops_worker_unreachable");
    is("neops_job_stuck", "6s", "twice neops_worker_offline");
    is("neops_job_pending", "30s", "five times neops_job_stuck");
    is("artifacts", "here/artifacts", "in the folder that data names (--data)");
    is("without_token", "loopback", "auto (default), by listen and hosts");
}

#[test]
fn an_output_that_is_closed_early_is_no_panic() {
    let commands: [&[&str]; 6] = [
        &["config", "show"],
        &["config", "show", "-o", "json"],
        &["config", "show", "--log", "loud"],
        &["completions", "bash"],
        &["serve", "--help"],
        &["jobs", "--server", "http://127.0.0.1:1"],
    ];
    for args in commands {
        let mut child = windlass(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0..=2)), "{args:?}: {code:?}");
    }
}

#[test]
fn a_disk_that_fails_ends_the_process_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // The first start makes the database, so that it is the writing of jobs that fails.
    let first = serve(&data, &[], None);
    first.signal("-TERM");
    assert_eq!(first.ended().0, 0);
    let token = fs::read_to_string(data.join("admin.token")).unwrap().trim().to_owned();

    let script = "trap '' XFSZ; ulimit -f 2000; exec \"$0\" serve --data \"$1\" --listen 127.0.0.1:0";
    let process = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_windlass"), data.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Server::new(process);
    let body = format!(r#"{{"payload": "{}"}}"#, "x".repeat(100_000));
    let mut acknowledged = 0;
    while TcpStream::connect(&server.address).is_ok() && acknowledged < 1_000 {
        match std::panic::catch_unwind(|| server.call("POST", "/api/v1/jobs", &token, &body)) {
            Ok(answer) if answer.starts_with("HTTP/1.1 201") => acknowledged += 1,
            _ => break,
        }
    }
    assert_eq!(server.ended().0, 4, "after {acknowledged} jobs");

    let again = serve(&data, &[], None);
    let listed = again.call("GET", "/api/v1/jobs?limit=1000", &token, "");
    let kept = listed.matches("\"state\":\"pending\"").count();
    assert!(acknowledged > 0 && kept >= acknowledged, "{kept} of {acknowledged}");
    again.signal("-TERM");
    assert_eq!(again.ended().0, 0);
}

/// A certificate for localhost that signs itself, with further arguments for openssl.
fn certificate(folder: &Path, more: &[&str]) -> [String; 2] {
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name).to_string_lossy().into_owned());
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", &key, "-out", &certificate])
        .args(more)
        .output()
        .expect("openssl is installed");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [certificate, key]
}

#[test]
fn a_certificate_made_the_usual_way_is_refused_in_words_that_help_and_one_made_as_documented_works() {
    for (more, works) in [(&[][..], false), (&["-addext", "basicConstraints=critical,CA:FALSE"], true)] {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = certificate(folder.path(), more);
        let log = folder.path().join("log");
        let arguments = ["--tls-cert", &certificate, "--tls-key", &key];
        let data = folder.path().join("data");
        let server = serve(&data, &arguments, Some(fs::File::create(&log).unwrap()));
        let url = format!("https://{}", server.address);
        let call = |more: &[&str]| {
            let done = windlass(&["stats", "--server", &url]).args(more).env("WINDLASS_DATA", &data).output().unwrap();
            (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
        };
        let (trusted, said) = call(&["--ca-cert", &certificate]);
        assert_eq!(trusted, works, "{said}");
        let warned = fs::read_to_string(&log).unwrap().contains("CA:TRUE");
        assert_eq!(warned, !works, "the server says so at its start");
        if works {
            let (trusted, said) = call(&[]);
            assert!(!trusted && said.contains("--ca-cert FILE") && !said.contains("Is a server running"), "{said}");
        } else {
            assert!(said.contains("CA:TRUE") && said.contains("basicConstraints=critical,CA:FALSE"), "{said}");
            assert!(!said.contains("Is a server running"), "{said}");
        }
        server.signal("-TERM");
        assert_eq!(server.ended().0, 0);
    }
}

#[test]
fn two_servers_share_one_database() {
    let cluster = windlass_stores::testing::Cluster::start();
    let url = cluster.fresh_database();
    let folder = tempfile::tempdir().unwrap();
    // Each writes a token of its own where none is set, and neither voids the other's.
    let files = folder.path().join("files").to_string_lossy().into_owned();
    let arguments = ["--database", &url, "--artifacts", &files];
    let [one, two] = ["one", "two"].map(|name| serve(&folder.path().join(name), &arguments, None));
    let alone = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["serve", "--listen", "127.0.0.1:0", "--database", &url, "--data"])
        .arg(folder.path().join("three"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&alone.stderr);
    assert_eq!(
        alone.status.code(),
        Some(2),
        "a third one with a folder of its own for artifacts does not start: {said}"
    );
    assert!(said.contains("three/artifacts is not where this database's artifacts are"), "{said}");
    let [first, second] = ["one", "two"]
        .map(|name| fs::read_to_string(folder.path().join(name).join("admin.token")).unwrap().trim().to_owned());
    let made = one.call("POST", "/api/v1/jobs", &second, r#"{"id": "01890000-0000-7000-8000-000000000001"}"#);
    assert!(made.starts_with("HTTP/1.1 201"), "{made}");
    let shown = two.call("GET", "/api/v1/jobs/01890000-0000-7000-8000-000000000001", &first, "");
    assert!(shown.starts_with("HTTP/1.1 200") && shown.contains("pending"), "{shown}");
    assert!(!one.ready.contains("postgres://"), "the address of the database may hold a password: {}", one.ready);
    one.signal("-TERM");
    two.signal("-TERM");
    assert_eq!((one.ended().0, two.ended().0), (0, 0));
}

#[test]
fn the_start_says_who_may_call_without_a_token_and_a_proxy_as_it_comes_is_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |server: &Server, version: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        write!(stream, "GET /api/workflows HTTP/{version}\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    for (arguments, said, local, proxied) in [
        (&[][..], "without a token: loopback", "200", "401"),
        (&["--without-token", "never"], "without a token: never", "401", "401"),
        (&["--listen", "0.0.0.0:0"], "without a token: never", "401", "401"),
        (&["--hosts", "jobs.example"], "without a token: never", "401", "401"),
        (&["--without-token", "anyone"], "without a token: anyone", "200", "200"),
    ] {
        let listen = if arguments.contains(&"--listen") { vec![] } else { vec!["--listen", "127.0.0.1:0"] };
        let server = serve_with(&folder.path().join("data"), &[&listen[..], arguments].concat(), None);
        assert!(server.ready.contains(said), "{arguments:?}: {}", server.ready);
        assert_eq!((ask(&server, "1.1"), ask(&server, "1.0")), (local.into(), proxied.into()), "{arguments:?}");
        server.signal("-TERM");
        assert_eq!(server.ended().0, 0);
    }
}

#[test]
fn a_store_that_the_doctor_calls_bad_is_not_served() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = serve(&data, &[], None);
    let token = fs::read_to_string(data.join("admin.token")).unwrap();
    for _ in 0..3 {
        let answer = server.call("POST", "/api/v1/jobs", token.trim(), r#"{"payload": 1}"#);
        assert!(answer.contains("201"), "{answer}");
    }
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    // Others could read it: the server closes it, so that the doctor has nothing to say.
    let file = data.join("windlass.db");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let server = serve(&data, &[], None);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    // Rows that are whole but contradict each other, after a clean stop.
    let database = rusqlite::Connection::open(&file).unwrap();
    let gap = "DELETE FROM events WHERE first_no = (SELECT first_no FROM events ORDER BY first_no LIMIT 1 OFFSET 1)";
    assert_eq!(database.execute(gap, []).unwrap(), 1);
    database.close().unwrap();
    let place = data.to_str().unwrap();
    let doctor = text(&windlass(&["doctor", "--data", place]).output().unwrap());
    assert!(doctor.0 == 1 && doctor.1.contains("BAD"), "{doctor:?}");
    let (code, _, err) = text(&windlass(&["serve", "--data", place, "--listen", "127.0.0.1:0"]).output().unwrap());
    assert_eq!(code, 3, "{err}");
    for words in ["damaged", "integrity", "Restore a backup", "windlass doctor"] {
        assert!(err.contains(words), "{err}");
    }
}
