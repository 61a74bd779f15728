//! Throwaway PostgreSQL clusters for tests and benchmarks: the real thing, in a folder that goes away with the process.
//!
//! A cluster is stopped by a small shell that waits for the end of a pipe only this process can write to. It therefore
//! stops when the process ends in whatever way, also by `kill -9`, and no cluster is left behind by a killed test.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

mod pooler;

pub use pooler::Pooler;

/// Settings suited to tests: durable like production, but small.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 128MB
max_wal_size = 4GB
max_connections = 100
fsync = on
logging_collector = off
";

/// Names a folder from which processes copy their clusters. The first that finds none there leaves one, so that `initdb`, half a second of
/// processor time, runs once and not for each test.
const TEMPLATE: &str = "WINDLASS_CLUSTER_TEMPLATE";

/// Names the folder that clusters are made in. Default: the system's folder for temporary files.
const FOLDER: &str = "WINDLASS_CLUSTERS";

/// How often a start is tried with another port: between choosing one and using it, somebody else may take it.
const STARTS_MAX: usize = 8;

pub struct Cluster {
    bin: PathBuf,
    folder: PathBuf,
    port: u16,
    user: Option<&'static str>,
    watchdog: Option<(Child, ChildStdin)>,
}

impl Cluster {
    /// A fresh cluster of its own.
    ///
    /// # Panics
    /// If there is no PostgreSQL here, or it does not start: a test cannot go on without.
    pub fn start() -> Self {
        let bin =
            find_bin().expect("PostgreSQL 15 or newer is needed: initdb is neither on PATH nor in /usr/lib/postgresql");
        let user = other_user();
        let folder = fresh_folder(user);
        let mut cluster = Self { bin, folder, port: 0, user, watchdog: None };
        cluster.watchdog = Some(cluster.watch());
        cluster.init();
        for _ in 0..STARTS_MAX {
            cluster.port = free_port();
            cluster.configure();
            if cluster.try_start() {
                return cluster;
            }
        }
        panic!("PostgreSQL did not start:\n{}", cluster.log());
    }

    /// One cluster for the whole process; tests that use it make databases of their own.
    pub fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(Cluster::start)
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn create_database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE \"{name}\""));
        self.url(name)
    }

    /// A database with a name nobody else in this cluster uses, and language-aware sorting: whoever relies on byte
    /// order has to say so.
    pub fn fresh_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let like = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'";
        self.sql("postgres", &format!("CREATE DATABASE {name} {like}"));
        self.url(&name)
    }

    /// Runs a statement with `psql`, and gives back what it printed.
    pub fn sql(&self, database: &str, statement: &str) -> String {
        let mut command = Command::new(self.bin.join("psql"));
        command.args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database), "-c", statement]);
        let output = command.output().expect("psql can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        assert!(output.status.success(), "{statement}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// As if the power had failed: nothing is written out, and recovery runs at the next start.
    pub fn stop_immediate(&self) {
        let output = self.pg_ctl(&["stop", "-m", "immediate", "-w"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// On the same port, so that whoever was connected can come back.
    pub fn start_again(&self) {
        for _ in 0..STARTS_MAX {
            if self.try_start() {
                return;
            }
            sleep(Duration::from_millis(250)); // PostgreSQL starts in its own time.
        }
        panic!("PostgreSQL did not start again:\n{}", self.log());
    }

    /// Switches encryption on, with this certificate and key (PEM).
    pub fn encrypt(&self, certificate: &str, key: &str) {
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let file = self.data().join(name);
            fs::write(&file, text).expect("the cluster's folder can be written to");
            let mut permissions = fs::metadata(&file).expect("it was just written").permissions();
            std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o600);
            fs::set_permissions(&file, permissions).expect("it was just written");
            if let Some(user) = self.user {
                let status = Command::new("chown").arg(user).arg(&file).status().expect("chown can be started");
                assert!(status.success(), "{name} could not be given to {user}");
            }
        }
        self.sql("postgres", "ALTER SYSTEM SET ssl = on");
        self.sql("postgres", "SELECT pg_reload_conf()");
        wait_until("encryption", || self.sql("postgres", "SHOW ssl") == "on");
    }

    /// What the server wrote to its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    pub fn bin(&self, program: &str) -> PathBuf {
        self.bin.join(program)
    }

    /// Processor time all server processes have used so far. On a busy machine it says more than rates do.
    pub fn cpu_time(&self) -> Duration {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let postmaster = file.lines().next().unwrap_or_default().to_owned();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ticks = processes.filter_map(|process| {
            let stat = fs::read_to_string(process.path().join("stat")).ok()?;
            // The name in parentheses may hold blanks; what follows it does not. Then state, parent, …
            let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
            let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
            if process.file_name().to_str() == Some(&postmaster) {
                // Those that have ended count with the one that started them.
                return Some(number(11)? + number(12)? + number(13)? + number(14)?);
            }
            (fields.get(1) == Some(&postmaster.as_str())).then_some(number(11)? + number(12)?)
        });
        Duration::from_millis(ticks.sum::<u64>() * 10)
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn init(&self) {
        let template = std::env::var_os(TEMPLATE).map(PathBuf::from);
        match &template {
            Some(template) if template.exists() => copy(template, &self.data()),
            _ => self.init_anew(),
        }
        if let Some(template) = template.filter(|template| !template.exists()) {
            let part = template.with_extension(std::process::id().to_string());
            copy(&self.data(), &part);
            // Somebody else may have been first.
            if fs::rename(&part, &template).is_err() {
                drop(fs::remove_dir_all(&part));
            }
        }
    }

    fn init_anew(&self) {
        let data = self.data().display().to_string();
        let args = ["-D", &data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"];
        let output = self.as_user(&self.bin.join("initdb")).args(args).output().expect("initdb can be started");
        assert!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn configure(&self) {
        let text = format!("{SETTINGS}port = {}\n", self.port);
        fs::write(self.data().join("postgresql.auto.conf"), text).expect("the new cluster's folder can be written to");
    }

    fn try_start(&self) -> bool {
        let log = self.folder.join("log").display().to_string();
        self.pg_ctl(&["start", "-w", "-t", "60", "-l", &log]).status.success()
    }

    fn pg_ctl(&self, args: &[&str]) -> Output {
        let mut command = self.as_user(&self.bin.join("pg_ctl"));
        command.arg("-D").arg(self.data()).args(args);
        // The server inherits these, and must not keep a pipe of ours open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().expect("pg_ctl can be started");
        Output { status, stdout: Vec::new(), stderr: self.log().into_bytes() }
    }

    /// PostgreSQL refuses to run as root.
    fn as_user(&self, program: &Path) -> Command {
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir("/");
        command
    }

    /// Waits for the end of its input, which comes when this process closes it or dies; then cleans up.
    fn watch(&self) -> (Child, ChildStdin) {
        use std::os::unix::process::CommandExt;
        let script = "cat >/dev/null; pid=$(head -n 1 \"$1/data/postmaster.pid\" 2>/dev/null); \
                      if [ -n \"$pid\" ]; then kill -QUIT \"$pid\"; \
                      n=0; while kill -0 \"$pid\" 2>/dev/null && [ $n -lt 100 ]; do sleep 0.05; n=$((n+1)); done; fi; \
                      rm -rf \"$1\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&self.folder).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("sh can be started");
        let pipe = child.stdin.take().expect("its input was asked to be a pipe");
        (child, pipe)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some((mut child, pipe)) = self.watchdog.take() {
            drop(pipe);
            let _ = child.wait();
        }
    }
}

/// With its owner, which is not always us.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp can be started");
    assert!(status.success(), "{} could not be copied to {}", from.display(), to.display());
}

fn find_bin() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut packaged: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    packaged.sort();
    places.extend(packaged.into_iter().rev());
    let whole = |place: &PathBuf| ["initdb", "pg_ctl", "psql"].iter().all(|name| place.join(name).exists());
    places.into_iter().find(whole)
}

/// Whom to be instead of root.
fn other_user() -> Option<&'static str> {
    let id = |args: &[&str]| Command::new("id").args(args).output().ok().filter(|output| output.status.success());
    let is_root = id(&["-u"]).is_some_and(|output| output.stdout.trim_ascii() == b"0");
    is_root.then(|| if id(&["postgres"]).is_some() { "postgres" } else { "nobody" })
}

fn fresh_folder(user: Option<&str>) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let place = std::env::var_os(FOLDER).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = place.join(format!("windlass-pg-{}-{number}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("the temporary folder can be written to");
    if let Some(user) = user {
        let status = Command::new("chown").arg(user).arg(&folder).status().expect("chown can be started");
        assert!(status.success(), "{} could not be given to {user}", folder.display());
    }
    folder
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// Waits until `ready` says so.
///
/// # Panics
/// After a minute.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen in a minute");
        sleep(Duration::from_millis(5)); // The pause between two looks; benchmarks wait for clusters as well.
    }
}
