//! beanstalkd with a sync for each write, under the same load: a durable queue that does less (no leases that are checked at
//! the report, no events, no namespaces) over a protocol that costs less.

use super::RoundFigures;
use crate::bench::{figures::Latency, http::subject::cpu_of};
use anyhow::{Context, bail, ensure};
use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::mpsc,
    task::JoinSet,
    time::sleep,
};

/// As long as those of the others.
const PAYLOAD: &str =
    r#"{"input":"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"}"#;
const START: Duration = Duration::from_secs(10);
/// Time for a waiting worker to be heard before the next job comes.
const HEAD_START: Duration = Duration::from_millis(5);

pub struct Beanstalkd {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Drop for Beanstalkd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Beanstalkd {
    pub async fn start(program: &Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let mut command = Command::new(program);
        command.args(["-l", "127.0.0.1", "-p", &port, "-f", "0", "-b"]).arg(folder.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn();
        let child = child.with_context(|| format!("{} cannot be started", program.display()))?;
        let this = Self { child, address: format!("127.0.0.1:{port}"), _folder: folder };
        let begun = Instant::now();
        while TcpStream::connect(&this.address).await.is_err() {
            ensure!(begun.elapsed() < START, "beanstalkd does not listen");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(this)
    }

    pub async fn turn(&self, connections: usize, jobs: usize, pickups: usize) -> anyhow::Result<RoundFigures> {
        let (submit, submit_us) = self.phase(connections, jobs, false).await?;
        let (drain, drain_us) = self.phase(connections, jobs, true).await?;
        let mut picked = self.pickups(pickups).await?;
        Ok(RoundFigures {
            submit_per_s: jobs as f64 / submit.as_secs_f64(),
            drain_per_s: jobs as f64 / drain.as_secs_f64(),
            submit_us,
            drain_us,
            pickup_p50_ms: Latency::of(&mut picked).p50_ms,
        })
    }

    /// How long it took, and the microseconds of processor time a job.
    async fn phase(&self, connections: usize, jobs: usize, drain: bool) -> anyhow::Result<(Duration, f64)> {
        let (left, mut tasks) = (Arc::new(AtomicUsize::new(jobs)), JoinSet::new());
        let mut lines = Vec::new();
        for _ in 0..connections {
            lines.push(Line::open(&self.address).await?);
        }
        let (begun, before) = (Instant::now(), cpu_of(&self.child));
        for mut line in lines {
            let left = left.clone();
            tasks.spawn(async move {
                let take = |left: usize| left.checked_sub(1);
                while left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok() {
                    if drain { line.work_one().await? } else { line.put().await? }
                }
                anyhow::Ok(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        let spent = cpu_of(&self.child).zip(before).map_or(Duration::ZERO, |(now, then)| now.saturating_sub(then));
        Ok((begun.elapsed(), spent.as_secs_f64() * 1e6 / jobs as f64))
    }

    async fn pickups(&self, count: usize) -> anyhow::Result<Vec<Duration>> {
        let (mut putter, mut worker) = (Line::open(&self.address).await?, Line::open(&self.address).await?);
        let (seen, mut picked) = mpsc::unbounded_channel();
        let waiting = tokio::spawn(async move {
            for _ in 0..count {
                let job = worker.reserve().await?;
                seen.send(Instant::now())?;
                worker.delete(&job).await?;
            }
            anyhow::Ok(())
        });
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            sleep(HEAD_START).await;
            let begun = Instant::now();
            putter.put().await?;
            let Some(now) = picked.recv().await else { break };
            times.push(now.saturating_duration_since(begun));
        }
        waiting.await??;
        Ok(times)
    }
}

/// One connection.
struct Line {
    stream: BufReader<TcpStream>,
    answer: String,
}

impl Line {
    async fn open(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), answer: String::new() })
    }

    /// The words of the answer's first line; the first must be this one.
    async fn ask(&mut self, question: &str, expected: &str) -> anyhow::Result<Vec<&str>> {
        self.stream.write_all(question.as_bytes()).await?;
        self.answer.clear();
        self.stream.read_line(&mut self.answer).await?;
        let words: Vec<&str> = self.answer.split_whitespace().collect();
        if words.first() != Some(&expected) {
            bail!("beanstalkd answered {:?}", self.answer.trim_end());
        }
        Ok(words)
    }

    async fn put(&mut self) -> anyhow::Result<()> {
        let question = format!("put 100 0 60 {}\r\n{PAYLOAD}\r\n", PAYLOAD.len());
        self.ask(&question, "INSERTED").await.map(drop)
    }

    async fn reserve(&mut self) -> anyhow::Result<String> {
        let words = self.ask("reserve\r\n", "RESERVED").await?;
        let [_, id, bytes] = words[..] else { bail!("no job in the answer") };
        let (id, bytes) = (id.to_owned(), bytes.parse::<usize>()?);
        let mut body = vec![0; bytes + 2];
        self.stream.read_exact(&mut body).await?;
        Ok(id)
    }

    async fn delete(&mut self, id: &str) -> anyhow::Result<()> {
        self.ask(&format!("delete {id}\r\n"), "DELETED").await.map(drop)
    }

    async fn work_one(&mut self) -> anyhow::Result<()> {
        let id = self.reserve().await?;
        self.delete(&id).await
    }
}
