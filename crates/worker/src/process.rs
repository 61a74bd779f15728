//! One command and everything it starts: begun in a group of its own, heard, and ended whole.

use crate::{group, guard::Guard};
use nix::{sys::signal::Signal, unistd::Pid};
use std::{
    fmt, io,
    os::fd::OwnedFd,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe,
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Whatever still holds a pipe after the command and its group are gone gets so long to say something.
const LAST_WORDS: Duration = Duration::from_millis(500);
const READ_BYTES: usize = 64 << 10;
/// No pipe holds more.
const PIPE_BYTES_MAX: usize = 1 << 20;

/// Somebody who takes what a command prints.
pub trait OutputSink: Send + 'static {
    fn hear(&mut self, bytes: &[u8]) -> impl Future<Output = ()> + Send;
    /// After the last byte.
    fn end(&mut self) -> impl Future<Output = ()> + Send;
}

/// What to run.
pub struct Start<'a> {
    /// With its arguments, folder and environment; the rest is done here.
    pub command: Command,
    pub stdin: Vec<u8>,
    /// In the environment of all it starts, so that they are found wherever they went: unlike every other attempt's.
    pub mark: &'a str,
    pub guard: Option<&'a Guard>,
}

#[derive(Debug)]
pub enum Broken {
    NotStarted(io::Error),
    Unseen(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::NotStarted(error) => write!(f, "cannot be started: {error}"),
            Broken::Unseen(why) => write!(f, "the command's end cannot be seen: {why}"),
        }
    }
}

/// Runs it to its end, which comes by itself or after `stop`, which says how long it may take to end when asked to. One sink
/// hears both outputs in their order; two hear one each, standard output first. They are given back.
pub async fn run<E: OutputSink>(
    start: Start<'_>,
    ears: Vec<E>,
    stop: impl Future<Output = Duration>,
) -> Result<(ExitStatus, Vec<E>), Broken> {
    let Start { command, stdin, mark, guard } = start;
    if let Some(guard) = guard {
        guard.starts(mark);
    }
    let started = spawn(command, mark, ears.len() > 1);
    if let (Err(_), Some(guard)) = (&started, guard) {
        guard.failed(mark);
    }
    let (mut child, readers) = started.map_err(Broken::NotStarted)?;
    let group = Pid::from_raw(child.id().and_then(|id| i32::try_from(id).ok()).expect("it was not waited for yet"));
    if let Some(guard) = guard {
        guard.begins(group, mark);
    }
    feed(&mut child, stdin);
    let over = CancellationToken::new();
    let heard: Vec<_> =
        ears.into_iter().zip(readers).map(|(sink, reader)| tokio::spawn(listen(sink, reader, over.clone()))).collect();
    let status = follow(&mut child, group, stop).await;
    let marked = mark.to_owned();
    drop(tokio::task::spawn_blocking(move || group::kill_rest(group, &marked)).await);
    let ears = last_words(heard, &over).await;
    if let Some(guard) = guard {
        guard.ended(group);
    }
    let status = status.map_err(|error| Broken::Unseen(error.to_string()))?;
    Ok((status, ears.map_err(Broken::Unseen)?))
}

fn spawn(mut command: Command, mark: &str, apart: bool) -> io::Result<(Child, Vec<pipe::Receiver>)> {
    let (reader, writer) = io::pipe()?;
    let mut readers = vec![reader];
    if apart {
        let (reader, errors) = io::pipe()?;
        command.stderr(errors);
        readers.push(reader);
    } else {
        command.stderr(writer.try_clone()?);
    }
    command.stdout(writer).stdin(Stdio::piped()).process_group(0).kill_on_drop(true).env(group::MARK, mark);
    let child = command.spawn()?;
    // The command holds the other ends of the pipes; they must close with it.
    drop(command);
    let readers = readers.into_iter().map(|reader| pipe::Receiver::from_owned_fd(OwnedFd::from(reader)));
    Ok((child, readers.collect::<io::Result<_>>()?))
}

/// A command that does not read its input is none of our business.
fn feed(child: &mut Child, input: Vec<u8>) {
    if let Some(mut stdin) = child.stdin.take() {
        tokio::spawn(async move { drop(stdin.write_all(&input).await) });
    }
}

/// Waits until the command has ended, and sees to it that it does.
async fn follow(child: &mut Child, group: Pid, stop: impl Future<Output = Duration>) -> io::Result<ExitStatus> {
    let grace = tokio::select! {
        status = child.wait() => return status,
        grace = stop => grace,
    };
    group::signal(group, Signal::SIGTERM);
    if let Ok(status) = timeout(grace, child.wait()).await {
        return status;
    }
    group::signal(group, Signal::SIGKILL);
    child.wait().await
}

async fn last_words<E>(heard: Vec<JoinHandle<E>>, over: &CancellationToken) -> Result<Vec<E>, String> {
    let mut ears = Vec::with_capacity(heard.len());
    for mut one in heard {
        let sink = match timeout(LAST_WORDS, &mut one).await {
            Ok(sink) => sink,
            Err(_) => {
                over.cancel();
                one.await
            }
        };
        ears.push(sink.map_err(|error| error.to_string())?);
    }
    Ok(ears)
}

/// Reads until nobody can write any more. A task of its own: what was read is also said, however long the server takes.
async fn listen<E: OutputSink>(mut sink: E, mut reader: pipe::Receiver, over: CancellationToken) -> E {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = tokio::select! {
            biased;
            read = reader.read(&mut buffer) => read.unwrap_or(0),
            () = over.cancelled() => break,
        };
        if count == 0 {
            break;
        }
        sink.hear(&buffer[..count]).await;
        if over.is_cancelled() {
            // Somebody who got away still writes; what the command itself left in the pipe is read, and no more.
            for _ in 0..PIPE_BYTES_MAX / READ_BYTES {
                let Ok(count @ 1..) = reader.try_read(&mut buffer) else { break };
                sink.hear(&buffer[..count]).await;
            }
            break;
        }
    }
    sink.end().await;
    sink
}
