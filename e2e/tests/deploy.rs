//! The files in `deploy/`, started as far as that goes without systemd, a container engine or a cluster: their very command
//! lines, variables and folders, with the programs of this build in place of the installed ones.

use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use windlass_e2e::{ADMIN, program};
use windlass_engine::testing::eventually;
use windlass_sdk::{
    Client,
    api::{
        job::{Job, SubmitJob},
        token::{CreateToken, Role},
    },
};
use windlass_stores::testing::Cluster;

const PROGRAMS: [&str; 3] = ["windlass", "windlass-worker", "silorunner"];

type Variables = BTreeMap<String, String>;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program under way, ended with the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Started {
    fn new(line: &[String], variables: &Variables) -> Self {
        let name = Path::new(&line[0]).file_name().unwrap().to_str().unwrap();
        assert!(PROGRAMS.contains(&name), "{line:?}");
        let mut command = Command::new(program(name));
        command.args(&line[1..]).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).envs(variables);
        Self(command.stdout(Stdio::null()).spawn().expect("it starts"))
    }

    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

fn client(url: &str, token: &str) -> Client {
    Client::builder(url).token(token).build().unwrap()
}

async fn ready(url: &str, server: &mut Started) -> Client {
    let admin = client(url, ADMIN);
    let answers = async || {
        assert!(server.is_running(), "the server ended instead of serving");
        admin.jobs(&Default::default()).await.ok()
    };
    eventually(format!("the server answers at {url}"), answers).await;
    admin
}

async fn worker_token(admin: &Client, name: &str) -> String {
    let wanted = CreateToken { principal: name.into(), role: Role::Worker, namespaces: vec![], expires_ms: None };
    admin.create_token(&wanted).await.unwrap().token
}

/// A command is run to its end by the worker that was started.
async fn runs_a_command(admin: &Client, worker: &mut Started) {
    let payload = serde_json::from_value(json!({"command": ["sh", "-c", "echo hello"]})).unwrap();
    let job = admin.submit(&SubmitJob { payload: Some(payload), ..SubmitJob::default() }).await.unwrap();
    let ended = async || {
        assert!(worker.is_running(), "the worker ended");
        Some(admin.job(job.id).await.unwrap()).filter(|job: &Job| job.state.is_final())
    };
    let job = eventually("the job ends", ended).await;
    assert_eq!(job.state.name(), "completed", "{job:?}");
}

/// A unit's service: its keys with their values, in order.
fn unit(name: &str) -> Vec<(String, String)> {
    let text = file(&format!("systemd/{name}"));
    let service = text.split("[Service]").nth(1).unwrap().split("\n[").next().unwrap();
    let lines = service.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once('=').expect("KEY=VALUE")).map(|(key, value)| (key.into(), value.into())).collect()
}

/// Starts a unit: paths of the system lie in `root`, and what the unit needs of them is there.
fn start_unit(name: &str, root: &Path) -> Started {
    let here = |path: &str| format!("{}{path}", root.display());
    let mut variables = Variables::new();
    let mut line = Vec::new();
    for (key, value) in unit(name) {
        match key.as_str() {
            "StateDirectory" => fs::create_dir_all(here(&format!("/var/lib/{value}"))).unwrap(),
            "Environment" => {
                let (name, value) = value.split_once('=').unwrap();
                variables.insert(name.into(), if value.starts_with('/') { here(value) } else { value.into() });
            }
            "EnvironmentFile" => {
                let path = here(value.trim_start_matches('-'));
                let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
                let said = text.lines().filter_map(|line| line.split_once('='));
                variables.extend(said.map(|(name, value)| (name.to_owned(), value.to_owned())));
            }
            "ExecStart" => line = value.split(' ').map(str::to_owned).collect(),
            _ => {}
        }
    }
    for word in &mut line[1..] {
        if word.starts_with('/') {
            *word = here(word);
        }
    }
    Started::new(&line, &variables)
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_units_start_a_server_a_worker_and_a_runner_that_stay() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let url = format!("http://127.0.0.1:{}", port());
    let listen = url.trim_start_matches("http://");
    write(root, "/etc/windlass/server.env", &format!("WINDLASS_LISTEN={listen}\nWINDLASS_ADMIN_TOKEN={ADMIN}\n"));
    let mut server = start_unit("windlass.service", root);
    let admin = ready(&url, &mut server).await;
    let token = worker_token(&admin, "unit").await;
    write(root, "/etc/windlass/worker.env", &format!("WINDLASS_SERVER={url}\nWINDLASS_TOKEN={token}\n"));
    let mut worker = start_unit("windlass-worker.service", root);
    runs_a_command(&admin, &mut worker).await;

    let runner = admin.request("POST".parse().unwrap(), "/api/runners").json(&json!({"name": "r", "tags": ["linux"]}));
    let runner: Value = serde_json::from_slice(&admin.send(runner).await.unwrap().bytes().await.unwrap()).unwrap();
    let token = runner["token"].as_str().unwrap_or_else(|| panic!("{runner}"));
    write(root, "/etc/silo/runner.yaml", &format!("server_url: {url}\ntoken: {token}\nname: r\ntags: [linux]\n"));
    let mut silo = start_unit("silorunner.service", root);
    let online = async || {
        assert!(silo.is_running());
        let list = admin.send(admin.request("GET".parse().unwrap(), "/api/runners")).await.unwrap();
        String::from_utf8_lossy(&list.bytes().await.unwrap()).contains("\"online\"").then_some(())
    };
    eventually("the runner is online", online).await;
    assert!(server.is_running() && worker.is_running() && silo.is_running());
}

#[test]
#[cfg_attr(not(systemd), ignore = "there is no systemd-analyze here")]
fn systemd_finds_nothing_to_say_about_the_units() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["windlass.service", "windlass-worker.service", "silorunner.service"] {
        let text = file(&format!("systemd/{name}")).replace("/usr/local/bin/", "/bin/true /");
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let said = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        let about: Vec<&str> = said
            .lines()
            .filter(|line| line.contains(name) && (line.contains("Unknown") || line.contains("Failed to parse")))
            .collect();
        assert!(about.is_empty(), "{about:?}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `${NAME}`, `${NAME:-default}` and `${NAME:?why}`, as compose reads them.
fn filled(text: &str, known: &Variables) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    let (inside, after) = rest.split_once('}').expect("it is closed");
    let end = inside.find(':').unwrap_or(inside.len());
    let (name, otherwise) = inside.split_at(end);
    let value = known.get(name).filter(|value| !value.is_empty()).cloned();
    let value = value.unwrap_or_else(|| match otherwise.strip_prefix(":-") {
        Some(default) => default.to_owned(),
        None => panic!("{text}: {name} is not set"),
    });
    format!("{before}{value}{}", filled(after, known))
}

fn mapping(value: &Value, known: &Variables) -> Variables {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.clone(), filled(&text(value), known))).collect()
}

fn yaml(text: &str) -> Vec<Value> {
    let read = |document| windlass_yaml::read(document, 1 << 20, windlass_yaml::Booleans::Strict).unwrap();
    text.split("\n---\n").map(read).collect()
}

/// What an image says about how it is started: its line and its variables.
fn image(name: &str) -> (Vec<String>, Variables) {
    let text = file(&format!("docker/{name}"));
    let last = text.rsplit("\nFROM ").next().unwrap().to_owned();
    let list = |key: &str| -> Vec<String> {
        let line = last.lines().find_map(|line| line.strip_prefix(key));
        line.map_or_else(Vec::new, |list| serde_json::from_str(list).unwrap())
    };
    let words = [list("ENTRYPOINT "), list("CMD ")].concat();
    let line = words.into_iter().skip_while(|word| !PROGRAMS.contains(&word.as_str())).collect();
    let said = last.lines().filter_map(|line| line.strip_prefix("ENV ")).flat_map(str::split_whitespace);
    let said = said.filter_map(|pair| pair.split_once('='));
    (line, said.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// Folders of a container, in a folder of ours.
fn moved(variables: &mut Variables, folders: &BTreeMap<String, PathBuf>) {
    for value in variables.values_mut() {
        if let Some(here) = folders.get(value) {
            *value = here.to_string_lossy().into_owned();
        }
    }
    let left = variables.iter().find(|(_, value)| value.starts_with('/') && !Path::new(value.as_str()).exists());
    assert_eq!(left, None, "a folder that no volume provides");
}

/// The command lines in the comment at the top of a file; lines that end in a backslash go on in the next.
fn commands(text: &str) -> Vec<String> {
    let top = text.lines().take_while(|line| line.starts_with('#'));
    let lines: Vec<&str> = top.filter_map(|line| line.strip_prefix("#   ")).collect();
    lines.join("\n").replace("\\\n", " ").lines().map(str::to_owned).collect()
}

/// Stands in for docker: every compose command needs the variables that the file requires, and `exec` runs in the server's
/// environment.
const DOCKER: &str = r#"#!/bin/sh
[ "$1 $2 $3" = "compose -f deploy/docker/compose.yaml" ] || { echo "no such file: $*" >&2; exit 1; }
shift 3
for name in $NEEDED; do
  eval "value=\${$name:-}"
  [ -n "$value" ] || grep -q "^$name=." deploy/docker/.env 2>/dev/null || { echo "required variable $name is missing" >&2; exit 1; }
done
case "$*" in
  "exec -T server "*) shift 3; set -a; . ./server.env; exec "$@" ;;
  "up -d --wait" | "--profile worker up -d") echo "$*" >> up.log ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"#;

/// What the lines of the compose file's comment come to.
struct Compose {
    root: tempfile::TempDir,
    file: Value,
    database: String,
    url: String,
}

impl Compose {
    fn run(&self, line: &str) {
        let path = format!("{}:{}", self.root.path().join("bin").display(), std::env::var("PATH").unwrap());
        let done = Command::new("bash")
            .args(["-euc", line])
            .current_dir(self.root.path())
            .env("PATH", path)
            .env("NEEDED", COMPOSE_NEEDS.join(" "))
            .env_remove("WINDLASS_ADMIN_TOKEN")
            .output()
            .unwrap();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn variables(&self) -> Variables {
        let text = fs::read_to_string(self.root.path().join("deploy/docker/.env")).unwrap();
        text.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// A service as compose would start it.
    fn start(&self, name: &str, dockerfile: &str) -> (Started, Variables) {
        let service = &self.file["services"][name];
        let (mut line, mut variables) = image(dockerfile);
        if let Some(command) = service["command"].as_array() {
            line.extend(command.iter().map(text));
        }
        variables.extend(mapping(&service["environment"], &self.variables()));
        let folder = self.root.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        let folders = ["/var/lib/windlass", "/work"].map(|path| (path.to_owned(), folder.clone())).into();
        moved(&mut variables, &folders);
        for value in variables.values_mut() {
            *value = value
                .replace("http://server:3000", &self.url)
                .replace("0.0.0.0:3000", self.url.trim_start_matches("http://"));
            if value.starts_with("postgres://") {
                assert!(value.ends_with("@database/windlass"), "{value}");
                *value = self.database.clone();
            }
        }
        (Started::new(&line, &variables), variables)
    }
}

const COMPOSE_NEEDS: [&str; 1] = ["WINDLASS_ADMIN_TOKEN"];

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_the_compose_file_bring_up_a_server_and_a_worker() {
    let cluster = Cluster::start();
    let root = tempfile::tempdir().unwrap();
    let text = file("docker/compose.yaml");
    write(root.path(), "deploy/docker/compose.yaml", &text);
    write(root.path(), "bin/docker", DOCKER);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(root.path().join("bin/docker"), mode).unwrap();
    std::os::unix::fs::symlink(program("windlass"), root.path().join("bin/windlass")).unwrap();
    let required = text.lines().filter(|line| line.contains(":?") && !line.starts_with('#')).count();
    assert_eq!(required, COMPOSE_NEEDS.len(), "the stand-in asks for what the file asks for");
    let url = format!("http://127.0.0.1:{}", port());
    let file = yaml(&text).remove(0);
    let compose = Compose { root, file, database: cluster.fresh_database(), url };
    let lines = commands(&text);
    assert_eq!(lines.len(), 5, "{lines:?}");
    compose.run(&lines[0]);
    compose.run(&lines[1]);
    let (mut server, said) = compose.start("server", "Dockerfile");
    let admin = client(&compose.url, &said["WINDLASS_ADMIN_TOKEN"]);
    let answers = async || {
        assert!(server.is_running());
        admin.jobs(&Default::default()).await.ok()
    };
    eventually("the server answers", answers).await;
    // Inside the container the server is at its usual address.
    let inside = format!("WINDLASS_TOKEN={}\nWINDLASS_SERVER={}\n", said["WINDLASS_TOKEN"], compose.url);
    write(compose.root.path(), "server.env", &inside);
    // Two lines that share a variable.
    compose.run(&format!("{}; {}", lines[2], lines[3]));
    compose.run(&lines[4]);
    assert!(!compose.variables()["WINDLASS_WORKER_TOKEN"].contains(' '), "{:?}", compose.variables());
    let (mut worker, _) = compose.start("worker", "Dockerfile.worker");
    runs_a_command(&admin, &mut worker).await;
    assert_eq!(
        fs::read_to_string(compose.root.path().join("up.log")).unwrap(),
        "up -d --wait\n--profile worker up -d\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kubernetes_servers_share_jobs_and_artifacts() {
    let cluster = Cluster::start();
    let root = tempfile::tempdir().unwrap();
    let documents = yaml(&file("kubernetes/windlass.yaml"));
    let find = |kind: &str, name: &str| {
        let found = documents.iter().find(|one| one["kind"] == kind && one["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}")).clone()
    };
    let database = cluster.fresh_database();
    let mut secrets: Variables = [("windlass/database", database.as_str()), ("windlass/admin-token", ADMIN)]
        .map(|(a, b)| (a.into(), b.into()))
        .into();
    let deployment = find("Deployment", "windlass");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let mut servers = Vec::new();
    for replica in 0..2 {
        let url = format!("http://127.0.0.1:{}", port());
        let pod = root.path().join(format!("server-{replica}"));
        let (line, mut variables) = container(&deployment, "Dockerfile", &secrets, &pod, root.path(), &find);
        variables.insert("WINDLASS_LISTEN".into(), url.trim_start_matches("http://").into());
        let mut server = Started::new(&line, &variables);
        let admin = ready(&url, &mut server).await;
        servers.push((url, server, admin));
    }
    let [(url, _, one), (_, _, two)] = &servers[..] else { panic!() };
    let job = one.submit(&SubmitJob::default()).await.unwrap();
    two.cancel(job.id).await.unwrap();
    let path = "/api/v1/artifacts?name=hello.txt";
    let made = one.send(one.request("POST".parse().unwrap(), path).body("hello")).await.unwrap().bytes().await.unwrap();
    let made: Value = serde_json::from_slice(&made).unwrap();
    let content = format!("/api/v1/artifacts/{}/content", made["id"].as_str().unwrap());
    let read = two.send(two.request("GET".parse().unwrap(), &content)).await.unwrap().bytes().await.unwrap();
    assert_eq!(&read[..], b"hello", "what one took in the other gives out");

    secrets.insert("windlass-worker/token".into(), worker_token(one, "pods").await);
    let pod = root.path().join("worker");
    let deployment = find("Deployment", "windlass-worker");
    let (line, mut variables) = container(&deployment, "Dockerfile.worker", &secrets, &pod, root.path(), &find);
    assert_eq!(variables["WINDLASS_SERVER"], "http://windlass:3000");
    assert_eq!(find("Service", "windlass")["spec"]["ports"][0]["port"], 3000);
    variables.insert("WINDLASS_SERVER".into(), url.clone());
    let mut worker = Started::new(&line, &variables);
    runs_a_command(two, &mut worker).await;
}

/// The line and the variables of a deployment's one container, its volumes in folders of ours: those of a pod its own, those
/// that are claimed shared by all.
fn container(
    deployment: &Value,
    dockerfile: &str,
    secrets: &Variables,
    pod: &Path,
    shared: &Path,
    find: &dyn Fn(&str, &str) -> Value,
) -> (Vec<String>, Variables) {
    let spec = &deployment["spec"]["template"]["spec"];
    let one = &spec["containers"][0];
    let (mut line, mut variables) = image(dockerfile);
    line.truncate(1);
    line.extend(one["args"].as_array().unwrap().iter().map(text));
    for variable in one["env"].as_array().unwrap() {
        let from = &variable["valueFrom"]["secretKeyRef"];
        let value = match variable.get("value") {
            Some(value) => text(value),
            None => secrets[&format!("{}/{}", text(&from["name"]), text(&from["key"]))].clone(),
        };
        variables.insert(text(&variable["name"]), value);
    }
    let mut folders = BTreeMap::new();
    for mount in one["volumeMounts"].as_array().unwrap() {
        let volumes = spec["volumes"].as_array().unwrap();
        let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
        let folder = match volume["persistentVolumeClaim"]["claimName"].as_str() {
            Some(claim) => {
                let claim_modes = &find("PersistentVolumeClaim", claim)["spec"]["accessModes"];
                assert_eq!(*claim_modes, json!(["ReadWriteMany"]), "several pods write it");
                shared.join(claim)
            }
            None => pod.join(text(&mount["name"])),
        };
        fs::create_dir_all(&folder).unwrap();
        folders.insert(text(&mount["mountPath"]), folder);
    }
    moved(&mut variables, &folders);
    (line, variables)
}
