//! `windlass up`, as a newcomer would run it: the real server, the real worker, and every command against them.

use crate::support::{Ran, home, run, windlass};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use windlass_engine::testing::eventually_blocking;

pub struct Up {
    child: Child,
    url: String,
    screen: String,
    pub home: tempfile::TempDir,
}

impl Up {
    pub fn start() -> Self {
        let home = home();
        let mut command = windlass(home.path());
        // Jobs may call the program, as they can where it is installed.
        let folder = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
        command.env("PATH", format!("{}:{}", folder.display(), std::env::var("PATH").unwrap()));
        command.args(["up", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut screen = String::new();
        while !screen.contains("Ctrl-C stops it") {
            let line = lines.next().unwrap_or_else(|| panic!("it ended with: {screen}")).unwrap();
            screen += &format!("{line}\n");
        }
        let url = screen.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
        Self { child, url, screen, home }
    }

    pub fn windlass(&self, args: &[&str]) -> Ran {
        let mut command = windlass(self.home.path());
        command.args(args).env("WINDLASS_SERVER", &self.url);
        run(command, "")
    }

    #[track_caller]
    pub fn json(&self, args: &[&str]) -> serde_json::Value {
        let mut all = args.to_vec();
        all.extend(["-o", "json"]);
        serde_json::from_str(&self.windlass(&all).ok()).unwrap()
    }

    /// As Ctrl-C does.
    fn stop(&mut self) -> i32 {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

/// Everything below a process, itself not counted.
fn below(pid: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = text.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(|child| std::iter::once(child).chain(below(child))).collect()
}

#[test]
fn killed_it_leaves_nobody_behind() {
    let up = Up::start();
    up.windlass(&["submit", "--shell", "sleep 300"]).ok();
    wait_until(|| below(up.child.id()).len() >= 3);
    std::thread::sleep(Duration::from_secs(1)); // Shells replace themselves and start others a moment later.
    let left = below(up.child.id());
    kill(Pid::from_raw(up.child.id() as i32), Signal::SIGKILL).unwrap();
    let killed = Instant::now();
    let runs = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    wait_until(|| !left.iter().any(runs));
    println!("{} processes ended within {:?}", left.len(), killed.elapsed());
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop();
        }
    }
}

#[test]
fn the_first_screen_shows_something_finished_and_a_curl_that_works() {
    let mut up = Up::start();
    for words in ["A first job ran", "completed", "step 3 of 3", ".windlass/admin.token"] {
        assert!(up.screen.contains(words), "{words}: {}", up.screen);
    }
    let curl = up.screen.lines().find(|line| line.trim().starts_with("curl ")).unwrap();
    let answer = Command::new("sh").args(["-c", curl]).current_dir(up.home.path()).output().unwrap();
    let job: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(up.windlass(&["job", "wait", job["id"].as_str().unwrap(), "--timeout", "20s"]).code, 0);
    assert!(up.home.path().join("definitions/hello.yaml").exists());
    // A job that runs when it is stopped is finished and reported first.
    let slow = up.json(&["submit", "--shell", "sleep 1; echo late"]);
    wait_until(|| {
        up.json(&["job", "show", "last"])["state"] == "running"
            || up.json(&["job", "show", "last"])["state"] == "claimed"
    });
    assert_eq!(up.stop(), 0);
    let begin = format!("{{\"job\":{{\"namespace\":\"default\",\"id\":{}", slow["id"]);
    let exported = run_in(up.home.path(), &["export", "-"]).ok();
    let line = exported.lines().find(|line| line.starts_with(&begin)).unwrap();
    assert!(line.contains("ompleted\""), "{line}");
}

fn run_in(home: &Path, args: &[&str]) -> Ran {
    crate::support::alone(home, args)
}

fn wait_until(mut ready: impl FnMut() -> bool) {
    eventually_blocking("it is ready", || ready().then_some(()));
}

#[test]
fn jobs_of_other_workers_are_left_to_them_uncharged() {
    let up = Up::start();
    let id = up.json(&["submit", "-p", r#"{"numbers": [1, 2]}"#])["id"].as_str().unwrap().to_owned();
    let job = || up.json(&["job", "show", &id]);
    // In one look: it may be claimed again before the next.
    wait_until(|| {
        let job = job();
        job["attempt"].as_u64() >= Some(1) && ["scheduled", "pending"].contains(&job["state"].as_str().unwrap())
    });
    // Others are not held up by it, and what is meant for this worker still fails if it is wrong.
    assert_eq!(up.windlass(&["submit", "--shell", "true", "--wait"]).code, 0);
    assert_eq!(up.windlass(&["submit", "-p", r#"{"command": "ls"}"#, "--wait"]).code, 3);
    let token = up.home.path().join(".windlass/worker.token");
    let mut other = windlass(up.home.path());
    other.args(["worker", "--once", "--name", "adder", "--token-file"]).arg(token).env("WINDLASS_SERVER", &up.url);
    let other = run(
        {
            other.args(["--exec", "sh", "-c", r#"cat >/dev/null; echo '{"sum": 3}'"#]);
            other
        },
        "",
    );
    assert_eq!(other.code, 0, "{}", other.err);
    assert_eq!((&job()["state"], &job()["result"]["sum"]), (&"completed".into(), &3.into()), "{}", job());
}

#[test]
fn every_noun_has_its_verbs() {
    let up = Up::start();
    // Jobs and their logs.
    let followed = up.windlass(&["submit", "--shell", "echo out; echo err >&2; exit 4", "--retries", "0", "--follow"]);
    assert_eq!(followed.code, 3);
    followed.says(&["out", "err", "failed"]);
    up.windlass(&["logs", "last"]).says(&["out"]);
    assert_eq!(up.windlass(&["logs", "last", "-f"]).code, 3);
    assert_eq!(up.windlass(&["submit", "--command", "--wait", "--", "true"]).code, 0);
    // Why, events, figures.
    up.windlass(&["submit", "--tag", "nobody-has-this"]).ok();
    up.windlass(&["why", "last"]).says(&["pending", "nobody-has-this"]);
    let events = up.windlass(&["events", "--job", "last", "-o", "jsonl"]).ok();
    assert!(events.lines().any(|line| line.contains("\"submitted\"")), "{events}");
    assert_eq!(up.json(&["stats"])["jobs"]["failed"]["count"], 1);
    // Abbreviated ids.
    let id = up.json(&["job", "show", "last"])["id"].as_str().unwrap().to_owned();
    assert_eq!(up.json(&["job", "show", &id[..30]])["id"], id.as_str());
    let several = up.windlass(&["job", "show", &id[..4]]);
    assert_eq!(several.code, 1);
    several.says(&["could be any of these", &id]);
    up.windlass(&["job", "show", "ffffffff"]).says(&["no job"]);
    // Definitions.
    let folder = up.home.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("greet.yaml"), "description: Greets.\npayload: {shell: echo greetings}\n").unwrap();
    up.windlass(&["definitions", "check", "mine"]).says(&["greet is valid"]);
    up.windlass(&["definitions", "apply", "mine"]).says(&["greet@1", "new"]);
    up.windlass(&["definitions", "apply", "mine"]).says(&["greet@1", "unchanged"]);
    assert_eq!(up.windlass(&["submit", "-d", "greet", "--wait"]).code, 0);
    up.windlass(&["logs", "last"]).says(&["greetings"]);
    std::fs::write(folder.join("bad.yaml"), "tagz: [x]\n").unwrap();
    let bad = up.windlass(&["definitions", "check", "mine"]);
    assert_eq!(bad.code, 1);
    bad.says(&["bad.yaml", "tagz", "1 of 2"]);
    assert_eq!(up.json(&["definitions", "versions", "greet"]).as_array().unwrap().len(), 1);
    up.windlass(&["definitions", "delete", "greet"]).ok();
    // Schedules.
    up.windlass(&["schedules", "set", "nightly", "--cron", "30 3 * * *", "--shell", "true"])
        .says(&["30 3 * * *", "Next"]);
    assert_eq!(up.json(&["schedules", "pause", "nightly"])["schedule"]["paused"], true);
    assert_eq!(up.json(&["schedules", "resume", "nightly"])["next"].as_array().unwrap().len(), 5);
    up.windlass(&["schedules", "delete", "nightly"]).ok();
    // Tokens.
    let token = up.windlass(&["token", "create", "alice", "--role", "viewer", "--expires", "1h"]).ok();
    let me = up.json(&["token", "me", "--token", token.trim()]);
    assert_eq!((&me["principal"], &me["role"]), (&"alice".into(), &"viewer".into()));
    let refused = up.windlass(&["submit", "-p", "1", "--token", token.trim()]);
    assert_eq!(refused.code, 1);
    refused.says(&["not allowed", "windlass token create"]);
    let tokens = up.json(&["token", "list"]);
    let alice = tokens.as_array().unwrap().iter().find(|token| token["principal"] == "alice").unwrap();
    up.windlass(&["token", "revoke", alice["id"].as_str().unwrap()]).ok();
    assert_eq!(up.windlass(&["token", "me", "--token", token.trim()]).code, 1);
    // Artifacts.
    std::fs::write(up.home.path().join("scene.txt"), vec![b'x'; 300_000]).unwrap();
    let artifact = up.json(&["artifact", "put", "scene.txt", "--job", "last"]);
    let id = artifact["id"].as_str().unwrap();
    assert_eq!(up.json(&["artifact", "list", "--job", "last"])[0]["name"], "scene.txt");
    up.windlass(&["artifact", "get", id, "--to", "copy.txt"]).ok();
    assert_eq!(std::fs::read(up.home.path().join("copy.txt")).unwrap(), vec![b'x'; 300_000]);
    up.windlass(&["artifact", "get", id]).says(&["is there already"]);
    up.windlass(&["artifact", "delete", id]).ok();
    // The doctor, while all of it runs.
    let doctor = up.windlass(&["doctor"]);
    assert_eq!(doctor.code, 0, "{}", doctor.out);
    doctor.says(&["a server uses it", "knows this token as admin", "without a token"]);
}

#[test]
fn a_taken_port_is_explained() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = home();
    let ran = crate::support::alone(home.path(), &["up", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(ran.code, 1);
    ran.says(&["did not start", "--listen 127.0.0.1:0"]);
}

/// The blocks of commands in a page.
fn blocks(page: &str) -> Vec<String> {
    let mut parts = page.split("```sh\n").skip(1);
    let mut found = Vec::new();
    for part in parts.by_ref() {
        found.push(part.split("```").next().unwrap().to_owned());
    }
    found
}

/// Every command of the quickstart, as it stands, one after the other in one shell. Only the first, which builds and starts the
/// server, is done by the test.
#[test]
fn the_quickstart_is_true() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/quickstart.md")).unwrap();
    let blocks = blocks(&page);
    assert!(blocks.len() >= 4 && blocks[0].contains("windlass -- up"), "{blocks:?}");
    let up = Up::start();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    std::os::unix::fs::symlink(examples, up.home.path().join("examples")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    // What a comment promises to fail, fails with the code it names; everything else works.
    let mut script = "set -m\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for line in blocks[1..].iter().flat_map(|block| block.lines()).filter(|line| !line.trim().is_empty()) {
        let expected = match line {
            line if line.contains("exit code 3") => 3,
            _ => 0,
        };
        let name = line.replace('\'', " ");
        script += &format!("{line}\n[ $? = {expected} ] || {{ echo 'NOT SO: {name}'; exit 1; }}\n");
    }
    let mut command = windlass(up.home.path());
    let base: Vec<_> =
        command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
    command = Command::new("bash");
    for (name, value) in base {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(up.home.path()).arg("-c").arg(&script).env("PATH", path).env("WINDLASS_SERVER", &up.url);
    let ran = run(command, "");
    assert_eq!(ran.code, 0, "{}\n{}\n{script}", ran.out, ran.err);
    for word in ["bye", "worker offers gpu", r#"rendering {"scene": "a.blend"}"#, "{\"sum\": 42}", "nightly"] {
        assert!(ran.out.contains(word), "{word}\n{}\n{}", ran.out, ran.err);
    }
}
