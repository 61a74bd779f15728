//! `windlass workflow` against the real server, with a real worker.

use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Output},
};
use windlass_e2e::{ADMIN, Server, Worker, program};
use windlass_engine::testing::eventually;

const BUILD: &str = "windlass: workflow\nname: build\nsteps:\n  make:\n    run: echo made\n  test:\n    needs: make\n    run: echo tested\n  docs:\n    needs: make\n    run: echo written\n  pack:\n    needs: [test, docs]\n    run: echo packed\n";
const FLAKY: &str = "steps:\n  fine:\n    run: echo fine\n  bad:\n    needs: fine\n    run: test -e FLAG || { echo no luck; exit 1; }\n    retry: {attempts: 1}\n  after:\n    needs: bad\n    run: echo after\n";
const RELEASE: &str = "name: release\nsteps:\n  build:\n    run: echo ${{ input.version }} > OUT\n  approve:\n    needs: build\n    wait: {approval: true}\n  paid:\n    needs: approve\n    wait: {event: paid}\n  ship:\n    needs: paid\n    run: echo shipped >> OUT\n";
const GRAPH: &str = "name: my ci\non: push\nenv: {GREETING: hello}\njobs:\n  lint:\n    run: echo $GREETING\n  test:\n    needs: lint\n    steps:\n      - run: echo one\n      - run: echo two\n";

/// A server, a worker and a folder with these files.
struct Site {
    server: Server,
    _worker: Worker,
    folder: tempfile::TempDir,
}

struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    #[track_caller]
    fn says(&self, words: &[&str]) -> &Self {
        for word in words {
            assert!(self.out.contains(word) || self.err.contains(word), "{word:?} is not in: {}{}", self.out, self.err);
        }
        self
    }
    #[track_caller]
    fn ends(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }
    #[track_caller]
    fn json(&self) -> Value {
        self.ends(0);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

impl Site {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&folder.path().join("data"), None).await;
        let worker = Worker::start(&server.url, &server.worker_token().await, "w", 2, &[]);
        let at = |name: &str| folder.path().join(name).display().to_string();
        for (name, text) in [("build.yml", BUILD), ("flaky.yml", FLAKY), ("release.yml", RELEASE), ("ci.yml", GRAPH)] {
            let text = text.replace("FLAG", &at("flag")).replace("OUT", &at("out"));
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { server, _worker: worker, folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let home = self.path();
        command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("WINDLASS_SERVER", &self.server.url).env("WINDLASS_TOKEN", ADMIN).current_dir(home);
        command
    }

    async fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.command(program("windlass"));
        command.arg("workflow").args(args);
        finished(command).await
    }

    /// Until what `workflow show last` says holds this.
    async fn shows(&self, word: &str) -> Ran {
        let shown = async || Some(self.run(&["show", "last"]).await).filter(|shown| shown.out.contains(word));
        eventually(format!("{word:?} is shown"), shown).await
    }
}

async fn finished(mut command: Command) -> Ran {
    let Output { status, stdout, stderr } =
        tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: status.code().unwrap_or(-1), out: text(stdout), err: text(stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_run_watched_shown_and_drawn() {
    let place = Site::start().await;
    let watched = place.run(&["run", "build.yml", "--watch"]).await;
    watched.ends(0).says(&["✓ make", "✓ test", "✓ docs", "✓ pack", "steps 4/4", "completed after"]);
    assert!(!watched.out.contains('\x1b'), "no terminal, no tricks: {}", watched.out);
    let run = place.run(&["show", "last", "-o", "json"]).await.json();
    assert_eq!((&run["state"], run["steps"].as_array().unwrap().len()), (&"completed".into(), 4));
    let id = run["id"].as_str().unwrap();
    place.run(&["show", &id[..13]]).await.ends(0).says(&["completed", "4/4", "✓ make"]);
    place.run(&["list"]).await.ends(0).says(&["RUN", "WORKFLOW", id, "4/4"]);
    assert_eq!(place.run(&["list", "--state", "failed", "-o", "json"]).await.json(), serde_json::json!([]));
    let text = place.run(&["graph", "last"]).await;
    text.ends(0).says(&["1  ✓ make", "3  ✓ pack", "after docs, test"]);
    let svg = place.run(&["graph", "last", "--as", "svg"]).await;
    assert!(svg.out.starts_with("<svg ") && svg.out.matches("<rect").count() == 5, "{}", svg.out);
    assert_eq!(svg.out.matches("<path").count(), 4);
    place.run(&["graph", "last", "--as", "dot"]).await.ends(0).says(&["digraph", "n0 -> n1"]);
    // A file of workflow-graph's runs the same way, from standard input as well.
    place.run(&["run", "ci.yml", "--watch"]).await.ends(0).says(&["✓ lint", "✓ test"]);
    // On a terminal the tree is drawn in place.
    let mut script = place.command("script");
    let line = format!("{} workflow run build.yml --watch", program("windlass").display());
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
    let seen = finished(script).await;
    seen.ends(0).says(&["\x1b[", "✓ pack", "4/4", "██████████████████████████████"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_says_why_and_goes_on_after_a_retry() {
    let place = Site::start().await;
    let failed = place.run(&["run", "flaky.yml", "--watch"]).await;
    failed.ends(3).says(&["✓ fine", "✗ bad", "exit code 1", "- after", "failed"]);
    place.run(&["show", "last"]).await.ends(0).says(&["3/3", "1 failed", "1 skipped"]);
    std::fs::write(place.path().join("flag"), "").unwrap();
    let again = place.run(&["retry", "last", "-o", "json"]).await.json();
    place.run(&["watch", "last"]).await.ends(0).says(&["✓ bad", "✓ after"]);
    let run = place.run(&["show", "last", "-o", "json"]).await.json();
    assert_eq!((&run["id"], &run["state"]), (&again["id"], &"completed".into()));
    place.run(&["show", "last"]).await.says(&["Goes on from", "kept from the run before"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_workflow_takes_input_and_waits_for_people_and_events() {
    let place = Site::start().await;
    place.run(&["apply", "release.yml", "--check"]).await.ends(0).says(&["release: valid, 4 steps"]);
    place.run(&["stored"]).await.ends(0).says(&["No stored workflows"]);
    place.run(&["apply", "release.yml"]).await.ends(0).says(&["release@1: 4 steps"]);
    place.run(&["stored"]).await.ends(0).says(&["release"]);
    place.run(&["run", "release", "--input", "version=1.2.3"]).await.ends(0);
    place.shows("waits for approval: windlass workflow approve").await;
    place.run(&["approve", "last", "--comment", "fine"]).await.ends(0).says(&["approve is approved"]);
    place.shows("waits for paid: windlass workflow signal").await;
    place.run(&["approve", "last"]).await.ends(1).says(&["no step of this run waits for approval"]);
    place.run(&["signal", "last", "paid", "--payload", "{\"amount\": 12}"]).await.ends(0).says(&["one step goes on"]);
    place.run(&["watch", "last"]).await.ends(0);
    assert_eq!(std::fs::read_to_string(place.path().join("out")).unwrap(), "1.2.3\nshipped\n");
    // A run that is cancelled, and one that is turned down.
    place.run(&["run", "release", "--input", "{\"version\": 2}"]).await.ends(0);
    place.shows("waits for approval").await;
    place.run(&["cancel", "last"]).await.ends(0);
    place.run(&["watch", "last"]).await.ends(4).says(&["cancelled"]);
    place.run(&["run", "release", "--input", "version=3"]).await.ends(0);
    place.shows("waits for approval").await;
    place.run(&["reject", "last", "approve"]).await.ends(0).says(&["rejected"]);
    place.run(&["watch", "last"]).await.ends(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told_with_what_to_do() {
    let place = Site::start().await;
    place.run(&["show", "last"]).await.ends(1).says(&["there is no run", "windlass workflow run FILE"]);
    place.run(&["show", "xyz"]).await.ends(1).says(&["is no run id"]);
    place.run(&["run", "none.yml"]).await.ends(1).says(&["there is no file none.yml"]);
    place.run(&["run", "none"]).await.ends(1).says(&["there is no file none"]);
    std::fs::write(place.path().join("bad.yml"), "steps:\n  a:\n    needs: z\n    run: ls\n").unwrap();
    place.run(&["run", "bad.yml"]).await.ends(1).says(&["line 3", "z"]);
    place
        .run(&["run", "build.yml", "--input", "nonsense"])
        .await
        .ends(1)
        .says(&["neither a JSON object nor name=value"]);
    place.run(&["list", "--state", "nonsense"]).await.ends(2);
    // The same key, the same run.
    let first = place.run(&["run", "build.yml", "--key", "k", "-o", "json"]).await.json();
    let second = place.run(&["run", "build.yml", "--key", "k", "-o", "json"]).await.json();
    assert_eq!((&first["id"], second["existing"].as_bool()), (&second["id"], Some(true)));
}
