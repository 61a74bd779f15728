//! `windlass top`: what is going on, in a terminal.
//!
//! What is shown is asked for once a second by a task of its own, so that keys are answered at once however slow the server is.

pub mod draw;
pub mod look;
pub mod view;

use crate::{
    commands::{Context, Done},
    fail::code,
};
use anyhow::Context as _;
use clap::Args;
use look::Seen;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;
use view::{Act, View};
use windlass_sdk::Client;

/// How long a key is waited for before the screen is drawn again.
const FRAME: Duration = Duration::from_millis(200);

/// Why the last thing asked for was not done, until the next key.
type Said = Arc<watch::Sender<Option<String>>>;

/// Live view of jobs, workers and lanes. Needs a terminal of at least 80×24; NO_COLOR is respected.
#[derive(Args)]
#[command(
    after_help = "Keys: Tab changes the view, arrows or j/k select, Enter opens a job, c cancels, r retries, / filters by name,
q quits."
)]
pub struct Top {
    /// Show only jobs in this state; several separated by commas.
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
}

impl Top {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        // Before the terminal is changed, so that a wrong token or address is said in the ordinary way.
        client.me().await?;
        let (wanted, wants) = watch::channel(look::Wanted { state: self.state, ..look::Wanted::default() });
        let (seen, sees) = watch::channel(Seen::default());
        let looking = tokio::spawn(look::run(client.clone(), wants, seen));
        let (acts, done) = mpsc::channel(16);
        let said = Said::new(watch::Sender::new(None));
        let acting = tokio::spawn(act(client, done, said.clone()));
        let shown = tokio::task::spawn_blocking(move || show(wanted, sees, acts, &said)).await;
        looking.abort();
        acting.abort();
        shown.context("the screen ended")??;
        Ok(code::OK)
    }
}

/// On a thread of its own: reading keys blocks.
fn show(
    wanted: watch::Sender<look::Wanted>,
    mut sees: watch::Receiver<Seen>,
    acts: mpsc::Sender<Act>,
    said: &Said,
) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init().context("this needs a terminal")?;
    let mut view = View::new(wanted.borrow().clone(), draw::Paint::of_environment());
    let ended = loop {
        view.see(&sees.borrow_and_update());
        view.said = said.borrow().clone();
        if let Err(error) = terminal.draw(|frame| draw::draw(frame, &mut view)) {
            break Err(error.into());
        }
        match event::poll(FRAME).and_then(|ready| if ready { event::read().map(Some) } else { Ok(None) }) {
            Ok(Some(Event::Key(key))) if key.kind != KeyEventKind::Release => {
                said.send_replace(None);
                if view.ends_with(&key) {
                    break Ok(());
                }
                if let Some(act) = view.key(&key) {
                    // A full queue: what was asked for is asked for already.
                    acts.try_send(act).ok();
                }
                wanted.send_if_modified(|wanted| {
                    let changed = *wanted != view.wanted;
                    wanted.clone_from(&view.wanted);
                    changed
                });
            }
            Ok(_) => {}
            Err(error) => break Err(error.into()),
        }
    };
    ratatui::restore();
    ended
}

async fn act(client: Client, mut acts: mpsc::Receiver<Act>, said: Said) {
    while let Some(act) = acts.recv().await {
        let done = match act {
            Act::Cancel(job) => client.cancel(job).await.map(|_| ()),
            Act::Retry(job) => client.retry(job).await.map(|_| ()),
        };
        // What came of it is seen with the next look; a refusal changes nothing, so it is said.
        said.send_replace(done.err().map(|error| format!("Refused: {error}")));
    }
}

pub(crate) fn short(id: Uuid) -> String {
    let text = id.to_string();
    text[text.len() - 8..].to_owned()
}
