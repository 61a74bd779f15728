//! `windlass up`: a server and a worker on this machine, ready to be tried.
//!
//! Both are this same program, started as children in process groups of their own: Ctrl-C reaches only this one, which then lets
//! the worker finish and report before it stops the server. Should this one be killed, they end by themselves ([`parent`]).

use crate::{
    commands::{Done, show, wait},
    demo,
    fail::code,
    ids,
    output::say,
    parent,
    profile::write_private,
    remote::{DATA, read_token},
    times,
};
use anyhow::{Context as _, bail};
use clap::Args;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use windlass_api::{
    job::{Job, ListJobs, SubmitJob},
    token::{CreateToken, Role},
};
use windlass_sdk::Client;

const READY: Duration = Duration::from_secs(60);
const FIRST_JOB: Duration = Duration::from_secs(20);
const WORKER_ENDS: Duration = Duration::from_secs(20);
const SERVER_ENDS: Duration = Duration::from_secs(40);
/// Lines of a log shown where something went wrong.
const TAIL: usize = 8;

/// Start a server and a worker here, to try things out.
///
/// The data is stored in ./.windlass, and the next `up` continues from there. The worker runs commands from jobs as your user, so
/// anybody who has the token can run programs on this machine; all other jobs are left to other workers. The server can be reached
/// only from this machine. Files in the definitions folder are reloaded when they change. For a server that others use, run
/// `windlass serve` and `windlass worker`.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass up
  windlass up --demo                                   with a made-up fleet to look at
  windlass up --listen 127.0.0.1:0 --data /tmp/try     use a free port and another folder")]
pub struct Up {
    /// Address to listen on; port 0 takes a free port.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:3000")]
    listen: String,
    /// Folder for the data.
    #[arg(long, value_name = "DIR", default_value = DATA)]
    data: PathBuf,
    /// Folder with definitions. If it does not exist, it is created with a sample.
    #[arg(long, value_name = "DIR", default_value = "definitions")]
    definitions: PathBuf,
    /// How many jobs the worker runs at a time.
    #[arg(long, value_name = "N", default_value_t = 4)]
    slots: u32,
    /// Also start a made-up fleet: workers that come and go, jobs that fail and wait, runs, schedules. To look around.
    #[arg(long)]
    demo: bool,
}

const SAMPLE: &str = "\
# A definition is a template for jobs. Settings of a job override those of its definition.
# The server reloads this file when it changes. Try it: windlass submit -d hello --follow
name: hello
description: Says hello and prints the time.
timeout_ms: 60000
retry: {attempts: 2, backoff_ms: 1000}
payload:
  shell: echo \"Hello from a definition.\"; date
";

const FIRST: &str = "echo \"Hello from $(uname -s).\"; for n in 1 2 3; do echo \"step $n of 3\"; done";

impl Up {
    pub async fn run(self) -> Done {
        // Before anything starts, so that an early Ctrl-C is not lost.
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        self.prepare()?;
        let mut server = self.start_server()?;
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        tokio::pin!(stop);
        let begun = tokio::select! {
            begun = self.begin(&mut server) => begun,
            () = &mut stop => {
                end(&mut server, SERVER_ENDS).await;
                return Ok(code::OK);
            }
        };
        let (mut worker, client) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                end(&mut server, SERVER_ENDS).await;
                return Err(error);
            }
        };
        let demo = CancellationToken::new();
        let fleet = self.demo.then(|| tokio::spawn(demo::run(client.clone(), client.base().to_owned(), demo.clone())));
        let died = tokio::select! {
            () = &mut stop => None,
            _ = server.wait() => Some(("server", self.log("server"))),
            _ = worker.wait() => Some(("worker", self.log("worker"))),
        };
        eprintln!("\nStopping: the worker finishes its jobs.");
        demo.cancel();
        if let Some(fleet) = fleet {
            drop(timeout(WORKER_ENDS, fleet).await);
        }
        end(&mut worker, WORKER_ENDS).await;
        end(&mut server, SERVER_ENDS).await;
        match died {
            None => Ok(code::OK),
            Some((what, log)) => bail!("the {what} stopped unexpectedly:\n{}", tail(&log)),
        }
    }

    fn prepare(&self) -> anyhow::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.data);
        made.with_context(|| format!("{} cannot be made", self.data.display()))?;
        if !self.definitions.exists() {
            fs::create_dir_all(&self.definitions)
                .with_context(|| format!("{} cannot be made", self.definitions.display()))?;
            fs::write(self.definitions.join("hello.yaml"), SAMPLE)?;
        }
        Ok(())
    }

    fn log(&self, what: &str) -> PathBuf {
        self.data.join(format!("{what}.log"))
    }

    /// This program again, with a log of its own. What the environment says about other servers is not for it.
    fn child(&self, what: &str) -> anyhow::Result<Command> {
        let log = self.log(what);
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&log);
        let opened: File = opened.with_context(|| format!("{} cannot be written", log.display()))?;
        let mut command = Command::new(std::env::current_exe()?);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WINDLASS_")) {
            command.env_remove(name);
        }
        command.stderr(opened).process_group(0);
        Ok(command)
    }

    fn start_server(&self) -> anyhow::Result<Child> {
        let mut command = self.child("server")?;
        command.args(["serve", "--listen", &self.listen]).arg("--data").arg(&self.data);
        command.arg("--definitions").arg(&self.definitions).stdout(Stdio::piped());
        Ok(parent::spawn(&mut command)?)
    }

    /// From a server that is starting to a first screen that shows something finished.
    async fn begin(&self, server: &mut Child) -> anyhow::Result<(Child, Client)> {
        let url = match timeout(READY, ready(server)).await {
            Ok(Some(url)) => url,
            _ => bail!(
                "the server did not start:\n{}\nIs the port taken? --listen 127.0.0.1:0 takes a free one.",
                tail(&self.log("server"))
            ),
        };
        let token_file = self.data.join("admin.token");
        let client = Client::builder(&url).token(read_token(&token_file)?).build()?;
        let worker_token = self.worker_token(&client, &url).await?;
        let mut command = self.child("worker")?;
        // Nor is a profile of this user's for it.
        command.env("WINDLASS_PROFILE", "").args([
            "worker",
            "--server",
            &url,
            "--allow-commands",
            "--give-back",
            "--name",
            "local",
        ]);
        command.args(["--slots", &self.slots.to_string()]).arg("--token-file").arg(&worker_token);
        command.arg("--work-dir").arg(std::path::absolute(self.data.join("work"))?).stdout(Stdio::null());
        let mut worker = parent::spawn(&mut command)?;
        let first = self.first_job(&client).await;
        match first {
            Ok(first) => {
                let code = client.sign_in_code().await?.code;
                say(self.screen(&url, &token_file, &code, first.as_ref()))?;
                Ok((worker, client))
            }
            Err(error) => {
                end(&mut worker, WORKER_ENDS).await;
                Err(error)
            }
        }
    }

    /// Kept between starts; made anew where the server does not know it.
    async fn worker_token(&self, client: &Client, url: &str) -> anyhow::Result<PathBuf> {
        let file = self.data.join("worker.token");
        if let Ok(token) = read_token(&file)
            && Client::builder(url).token(token).build()?.me().await.is_ok()
        {
            return Ok(file);
        }
        let request = CreateToken {
            principal: "local-worker".into(),
            role: Role::Worker,
            namespaces: Vec::new(),
            expires_ms: None,
        };
        let created = client.create_token(&request).await.context("could not create a token for the worker")?;
        write_private(&file, format!("{}\n", created.token).as_bytes())?;
        Ok(file)
    }

    /// One job on an empty server, so that there is something to see.
    async fn first_job(&self, client: &Client) -> anyhow::Result<Option<(Job, String)>> {
        let some = client.jobs(&ListJobs { limit: Some(1), ..ListJobs::default() }).await?;
        if !some.items.is_empty() {
            return Ok(None);
        }
        let payload = serde_json::value::to_raw_value(&serde_json::json!({ "shell": FIRST }))?;
        let submitted = client.submit(&SubmitJob { payload: Some(payload), ..SubmitJob::default() }).await?;
        ids::remember(client, submitted.id);
        let (job, _) = wait::until_done(client, submitted.id, Some(FIRST_JOB)).await?;
        let log = client.log(job.id, 0, Duration::ZERO).await?;
        let text: String = log.pieces.iter().map(|piece| piece.data.as_str()).collect();
        Ok(Some((job, text)))
    }

    fn screen(&self, url: &str, token: &Path, code: &str, first: Option<&(Job, String)>) -> String {
        let (token, data) = (token.display(), self.data.display());
        let mut text = format!(
            "Windlass is running.\n\n\
             \x20 Server       {url}  (API {url}/docs)\n\
             \x20 Dashboard    {url}/ui/#code={code}\n\
             \x20              (this link signs in once, within ten minutes; after that {url}/ui/ asks for the token)\n\
             \x20 Token        in {token}\n\
             \x20 Definitions  in {}/, read again when they change\n\
             \x20 Logs         {data}/server.log and {data}/worker.log\n",
            self.definitions.display()
        );
        if let Some((job, log)) = first {
            text += &format!("\nA first job ran:\n  {}\n", show::ending(job).lines().next().unwrap_or_default());
            text += &log.lines().map(|line| format!("  | {}\n", crate::output::clean(line))).collect::<String>();
        }
        let server = if url == crate::remote::SERVER { String::new() } else { format!(" --server {url}") };
        text += &format!(
            "\nTry, in another terminal here:\n\
             \x20 windlass submit --shell 'echo hello' --follow{server}\n\
             \x20 windlass jobs{server}\n\
             \x20 curl -sS -H \"Authorization: Bearer $(cat {token})\" -d '{{\"payload\": {{\"shell\": \"date\"}}}}' {url}/api/v1/jobs\n\
             \nCtrl-C stops it. Started at {}.",
            times::local(times::now())
        );
        text
    }
}

/// The address the server says it is ready on; none if it ended first.
async fn ready(server: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(server.stdout.take()?).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Some((_, rest)) = line.split_once("is ready on ") {
            // Goes on reading, so that the server never waits for room in the pipe.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return rest.split_whitespace().next().map(str::to_owned);
        }
    }
    None
}

/// Asks a child to end, and ends it where it does not.
async fn end(child: &mut Child, patience: Duration) {
    let Some(id) = child.id() else { return };
    let asked = i32::try_from(id).is_ok_and(|id| kill(Pid::from_raw(id), Signal::SIGTERM).is_ok());
    if !asked || timeout(patience, child.wait()).await.is_err() {
        drop(child.kill().await);
    }
}

fn tail(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}
