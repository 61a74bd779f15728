//! What `top` shows, asked of the server.

use std::time::Duration;
use tokio::{sync::watch, time::timeout};
use uuid::Uuid;
use windlass_api::{
    job::{Job, ListJobs},
    overview::{History, Overview, Point, ReadHistory},
    page::Paging,
    why::Why,
    worker::Worker,
};
use windlass_sdk::{Client, Error};

const EVERY: Duration = Duration::from_secs(1);
const JOBS: u32 = 200;
const WORKERS: u32 = 200;
/// Of a log's end. More is for `windlass logs`.
const LINES: usize = 500;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub state: Option<String>,
    /// The beginning of a name.
    pub name: String,
    pub job: Option<Uuid>,
}

#[derive(Clone, Default)]
pub struct Seen {
    pub overview: Overview,
    pub last: Point,
    pub jobs: Vec<Job>,
    pub workers: Vec<Worker>,
    pub job: Option<Opened>,
    pub error: Option<String>,
}

#[derive(Clone)]
pub struct Opened {
    pub job: Job,
    pub why: Option<Why>,
    pub log: Vec<String>,
}

/// Until it is aborted.
pub async fn run(client: Client, mut wants: watch::Receiver<Wanted>, seen: watch::Sender<Seen>) {
    loop {
        let wanted = wants.borrow_and_update().clone();
        match look(&client, &wanted).await {
            Ok(fresh) => drop(seen.send_replace(fresh)),
            Err(error) => seen.send_modify(|seen| seen.error = Some(error.to_string())),
        }
        // At once when something else is wanted.
        drop(timeout(EVERY, wants.changed()).await);
    }
}

async fn look(client: &Client, wanted: &Wanted) -> Result<Seen, Error> {
    let jobs = ListJobs {
        state: wanted.state.clone(),
        name: Some(wanted.name.clone()).filter(|name| !name.is_empty()),
        commands: true,
        limit: Some(JOBS),
        ..ListJobs::default()
    };
    let paging = Paging { limit: Some(WORKERS), ..Paging::default() };
    let History { points, .. } = client.history(&ReadHistory::default()).await?;
    Ok(Seen {
        overview: client.overview().await?,
        last: points.into_iter().last().unwrap_or_default(),
        jobs: client.jobs(&jobs).await?.items,
        workers: client.workers(&paging).await?.items,
        job: match wanted.job {
            Some(id) => Some(open(client, id).await?),
            None => None,
        },
        error: None,
    })
}

async fn open(client: &Client, id: Uuid) -> Result<Opened, Error> {
    let job = client.job(id).await?;
    let why = if job.state.is_final() { None } else { Some(client.why(id).await?) };
    let (mut text, mut after) = (String::new(), 0);
    loop {
        let page = client.log(id, after, Duration::ZERO).await?;
        page.pieces.iter().for_each(|piece| text += &piece.data);
        if page.next == after {
            break;
        }
        after = page.next;
        // Only its end is shown.
        let keep = text.len().saturating_sub(LINES * 200);
        text.drain(..text.ceil_char_boundary(keep));
    }
    let lines: Vec<&str> = text.lines().collect();
    let log = lines[lines.len().saturating_sub(LINES)..].iter().map(|line| plain(line)).collect();
    Ok(Opened { job, why, log })
}

/// Without colours, and with nothing that could move the cursor.
pub fn plain(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        if char == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            while chars.next().is_some_and(|next| !next.is_ascii_alphabetic()) {}
        } else {
            text.push(char);
        }
    }
    crate::output::clean(&text)
}
