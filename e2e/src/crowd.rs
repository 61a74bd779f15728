//! Many connections at once, with exactly the bytes on them that a test wants, and what they cost the server.

use crate::{Server, program::ADMIN};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::{
    fs,
    io::ErrorKind,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};

/// Lets this process, and the servers it starts, open as many files as the machine allows.
pub fn many_files() -> usize {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("limits can be read");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("a limit may be raised as far as it goes");
    usize::try_from(hard).unwrap_or(usize::MAX)
}

/// Memory and processor time of a process, as the kernel counts them.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub kib: u64,
    pub cpu: Duration,
}

impl Cost {
    pub fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
        let fields: Vec<u64> =
            stat.rsplit(") ").next().unwrap_or_default().split(' ').filter_map(|field| field.parse().ok()).collect();
        // Without the state's letter, user and system time are the eleventh and twelfth; a tick is 10 ms.
        let ticks = fields[10] + fields[11];
        Self { kib: kib.expect("a process has memory"), cpu: Duration::from_millis(ticks * 10) }
    }
}

/// So many connections that have all sent the same and now do nothing.
pub async fn crowd(server: &Server, count: usize, bytes: &str) -> Vec<TcpStream> {
    let mut all = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = TcpStream::connect(server.address()).await.expect("the server accepts");
        stream.write_all(bytes.as_bytes()).await.expect("the server reads");
        all.push(stream);
    }
    all
}

/// Sends a request as careful clients do: not further than until the server answers, which may refuse what it has not read.
pub async fn send(server: &Server, bytes: &str) -> TcpStream {
    let stream = TcpStream::connect(server.address()).await.expect("the server accepts");
    let mut rest = bytes.as_bytes();
    while !rest.is_empty() {
        tokio::select! {
            biased;
            _ = stream.readable() => break,
            _ = stream.writable() => match stream.try_write(rest) {
                Ok(sent) => rest = &rest[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => break,
            },
        }
    }
    stream
}

/// A request as a client with a token sends it.
pub fn request(server: &Server, method: &str, path: &str, token: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n{body}",
        server.address(),
        body.len()
    )
}

/// Reads one answer with a length; none where the connection ends or nothing comes for so long.
pub async fn answer(stream: &mut TcpStream, patience: Duration) -> Option<String> {
    let mut all = Vec::new();
    let mut piece = [0; 4_096];
    let until = Instant::now() + patience;
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if length.is_none_or(|length| body.len() >= length) {
                return Some(text);
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        match timeout(left, stream.read(&mut piece)).await {
            Ok(Ok(count @ 1..)) => all.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}

/// Well-behaved clients: they submit jobs one after the other, and note how long each answer took.
pub fn good_clients(server: &Server, count: usize, each: usize, pause: Duration) -> JoinHandle<Vec<Duration>> {
    let text = request(server, "POST", "/api/v1/jobs", ADMIN, r#"{"tags": ["nobody"]}"#);
    let address = server.address().to_owned();
    tokio::spawn(async move {
        let clients: Vec<_> =
            (0..count).map(|_| tokio::spawn(good(address.clone(), text.clone(), each, pause))).collect();
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.await.expect("a good client is served"));
        }
        times.sort_unstable();
        times
    })
}

async fn good(address: String, text: String, each: usize, pause: Duration) -> Vec<Duration> {
    let mut stream = TcpStream::connect(&address).await.expect("good clients are let in");
    let mut times = Vec::with_capacity(each);
    for _ in 0..each {
        let began = Instant::now();
        stream.write_all(text.as_bytes()).await.expect("good clients are listened to");
        let answer = answer(&mut stream, Duration::from_secs(10)).await.expect("good clients are answered");
        assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
        times.push(began.elapsed());
        tokio::time::sleep(pause).await; // The pace of a client.
    }
    times
}

/// Of sorted times.
pub fn p99(times: &[Duration]) -> Duration {
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}
