//! `windlass top` in a real terminal of 80×24, made by `script`, and read as a terminal reads it.

use crate::support::{ADMIN, Server, program, windlass};
use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};
use windlass_api::lease::{AppendLog, Claim};

const ROWS: usize = 24;
const COLUMNS: usize = 80;
const PATIENCE: Duration = Duration::from_secs(20);

/// What is on the screen, by the few sequences that the program uses.
struct Screen {
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    /// Bytes of a sequence that is not whole yet.
    begun: Vec<char>,
    has_colours: bool,
}

impl Screen {
    fn new() -> Self {
        Self { cells: vec![vec![' '; COLUMNS]; ROWS], at: (0, 0), begun: Vec::new(), has_colours: false }
    }

    fn put(&mut self, char: char) {
        match (self.begun.as_slice(), char) {
            ([], '\u{1b}') | (['\u{1b}'], '[') => self.begun.push(char),
            (['\u{1b}'], _) => self.begun.clear(),
            (['\u{1b}', ..], '@'..='~') => self.sequence(char),
            (['\u{1b}', ..], _) => self.begun.push(char),
            (_, '\r') => self.at.1 = 0,
            (_, '\n') => self.at.0 = (self.at.0 + 1).min(ROWS - 1),
            _ => {
                assert!(self.at.1 < COLUMNS, "wider than the terminal: {:?}", self.text());
                self.cells[self.at.0][self.at.1] = char;
                self.at.1 += 1;
            }
        }
    }

    fn sequence(&mut self, end: char) {
        let numbers: String = self.begun[2..].iter().collect();
        let numbers: Vec<usize> = numbers.split(';').map(|number| number.parse().unwrap_or(0)).collect();
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0).max(1) - 1;
        match end {
            'H' => self.at = (number(0).min(ROWS - 1), number(1)),
            'J' => self.cells = vec![vec![' '; COLUMNS]; ROWS],
            'm' => {
                self.has_colours |= numbers.iter().any(|code| matches!(code, 30..=38 | 40..=48 | 90..=97 | 100..=107))
            }
            _ => {}
        }
        self.begun.clear();
    }

    fn text(&self) -> String {
        self.cells.iter().map(|row| row.iter().collect::<String>()).collect::<Vec<_>>().join("\n")
    }
}

struct Top {
    child: Child,
    keys: ChildStdin,
    screen: Arc<(Mutex<Screen>, Condvar)>,
}

impl Top {
    fn start(server: &Server, no_colour: bool) -> Self {
        let mut command: Command = windlass(server.home.path());
        let inner = format!("stty rows {ROWS} cols {COLUMNS}; exec {} top", program().display());
        command = {
            let mut outer = Command::new("script");
            outer.args(["-qec", &inner, "/dev/null"]);
            for (name, value) in command.get_envs() {
                value.map(|value| outer.env(name, value));
            }
            outer
        };
        command.env("TERM", "xterm-256color").env("WINDLASS_SERVER", &server.url).env("WINDLASS_TOKEN", ADMIN);
        if no_colour {
            command.env("NO_COLOR", "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new((Mutex::new(Screen::new()), Condvar::new()));
        let seen = screen.clone();
        thread::spawn(move || {
            let (mut bytes, mut rest) = ([0; 4096], Vec::new());
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                rest.extend_from_slice(&bytes[..count]);
                // A character may be cut in two.
                let whole = match std::str::from_utf8(&rest) {
                    Ok(text) => text.len(),
                    Err(error) => error.valid_up_to(),
                };
                let text = String::from_utf8(rest.drain(..whole).collect()).unwrap();
                let mut screen = seen.0.lock().unwrap();
                text.chars().for_each(|char| screen.put(char));
                seen.1.notify_all();
            }
        });
        Self { child, keys, screen }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    #[track_caller]
    fn sees(&self, words: &[&str]) {
        let (screen, drawn) = &*self.screen;
        let lacks = |screen: &mut Screen| !words.iter().all(|word| screen.text().contains(word));
        let (screen, waited) = drawn.wait_timeout_while(screen.lock().unwrap(), PATIENCE, lacks).unwrap();
        let text = screen.text();
        drop(screen);
        assert!(!waited.timed_out(), "{words:?} is not on the screen:\n{text}");
    }

    fn ends(mut self) -> bool {
        self.press("q");
        self.child.wait().unwrap();
        self.screen.0.lock().unwrap().has_colours
    }
}

/// Whatever a test came to, nothing of it is left running.
impl Drop for Top {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn top_shows_jobs_their_logs_and_why_they_wait_and_cancels_and_retries_by_key() {
    let server = Server::start();
    server.json(&["submit", "--name", "needs a gpu", "--tag", "gpu"]);
    server.json(&["submit", "--name", "talks", "--tag", "cpu"]);
    server.work(async |client| {
        let claim = Claim { worker: "w".into(), tags: Some(vec!["cpu".into()]), max: Some(1), ..Claim::default() };
        let claimed = client.claim(&claim).await.unwrap();
        let lease = claimed.leases[0].lease.clone();
        let data = "hello from the job\n".to_owned();
        client.append_log(&AppendLog { lease, data, stream: None, time_ms: None, chunks: vec![] }).await.unwrap();
    });
    let mut top = Top::start(&server, false);
    top.sees(&["Jobs", "needs a gpu", "talks", "Tab view"]);
    // The newest is first: its log.
    top.press("\r");
    top.sees(&[" Log ", "hello from the job"]);
    top.press("\u{1b}");
    top.sees(&["Tab view", "needs a gpu"]);
    top.press("j\r");
    top.sees(&["pending", "gpu", "No registered worker"]);
    top.press("c");
    top.sees(&["Cancel job"]);
    top.press("y");
    top.sees(&["cancelled"]);
    top.press("r");
    top.sees(&["again?"]);
    top.press("y");
    top.press("\u{1b}");
    let until = Instant::now() + PATIENCE;
    while server.json(&["jobs", "--state", "pending"]).as_array().unwrap().is_empty() {
        assert!(Instant::now() < until, "it was not retried");
    }
    // What cannot be done is said: the job that talks still runs.
    top.press("/talks\r");
    top.sees(&["Jobs: talks"]);
    top.press("r");
    top.sees(&["again?"]);
    top.press("y");
    top.sees(&["Refused:"]);
    assert!(top.ends(), "states have colours");
}

#[test]
fn top_works_without_colours() {
    let server = Server::start();
    server.json(&["submit", "--name", "waits", "--tag", "gpu"]);
    let mut top = Top::start(&server, true);
    top.sees(&["Jobs", "waits", "pending"]);
    top.press("\t");
    top.sees(&[" Workers "]);
    top.press("\t");
    top.sees(&[" Lanes ", "gpu", "No worker"]);
    assert!(!top.ends(), "no colours were asked for");
}
