//! A run as it goes: a tree that changes in place on a terminal, a line for every change elsewhere.

use super::{LOOK, exit_code, show, whole};
use crate::{
    commands::Done,
    output::{Format, on_terminal, say, say_raw},
    times,
};
use std::{collections::HashMap, time::Duration};
use windlass_api::{
    Uuid,
    job::State,
    workflow::{Run, Step},
};
use windlass_sdk::{Client, Error};

/// Lines of a tree that is drawn again and again; what scrolled away could not be.
const LINES_MAX: usize = 30;
const TRIES: u32 = 20;

pub async fn until_done(client: &Client, id: Uuid, format: Format) -> Done {
    let mut view: Box<dyn View + Send> = match format {
        Format::Table if on_terminal() => Box::new(Tree { lines: 0 }),
        Format::Table => Box::new(Changes { seen: HashMap::new(), count: 0 }),
        Format::Json => Box::new(Nothing),
        Format::Jsonl => Box::new(Documents { seen: HashMap::new() }),
    };
    let (mut failures, mut first) = (0, true);
    loop {
        match whole(client, id).await {
            Ok(run) => {
                (failures, first) = (0, false);
                view.show(&run)?;
                if run.state.is_final() {
                    return end(&run, format);
                }
            }
            Err(error) if !first && failures < TRIES && is_temporary(&error) => failures += 1,
            Err(error) => return Err(error),
        }
        // The end is heard of at once; changes before it within half a second.
        if let Err(error) = client.wait_run(id, LOOK).await {
            let pause = if error.is_temporary() { Duration::from_secs(1) } else { LOOK };
            tokio::time::sleep(pause).await;
        }
    }
}

/// A server that is away for a moment is waited for.
fn is_temporary(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Error>().is_some_and(Error::is_temporary)
}

fn end(run: &Run, format: Format) -> Done {
    match format {
        Format::Table => {
            let took = run.finished_at.as_deref().and_then(|end| times::between(&run.created_at, end));
            let took = took.map(|took| format!(" after {took}")).unwrap_or_default();
            say(format!("{}  {}{took}, steps {}", run.id, run.state.name(), show::progress(run)))?;
        }
        Format::Json => format.one(run, String::new)?,
        Format::Jsonl => {}
    }
    Ok(exit_code(run.state))
}

trait View {
    fn show(&mut self, run: &Run) -> anyhow::Result<()>;
}

struct Nothing;

impl View for Nothing {
    fn show(&mut self, _: &Run) -> anyhow::Result<()> {
        Ok(())
    }
}

struct Tree {
    /// Drawn the last time.
    lines: usize,
}

impl View for Tree {
    fn show(&mut self, run: &Run) -> anyhow::Result<()> {
        let lines = tree(run, times::now(), LINES_MAX);
        let back = if self.lines > 0 { format!("\x1b[{}A\r\x1b[J", self.lines) } else { String::new() };
        self.lines = lines.len();
        // One write, so that nothing is seen half-drawn. Lines are cut rather than broken, because only then are they as many as they look.
        let text: String = lines.iter().map(|line| format!("\x1b[?7l{line}\x1b[?7h\n")).collect();
        say_raw(format!("{back}{text}").as_bytes())
    }
}

/// The steps as a tree; where there are too many, those that have ended well give way first, then those that wait.
pub fn tree(run: &Run, now: jiff::Timestamp, max: usize) -> Vec<String> {
    let mut steps = show::in_order(&run.steps);
    let total = steps.len();
    let keep: [fn(&Step) -> bool; 2] = [
        |step| !matches!(step.state, State::Completed | State::Skipped),
        |step| matches!(step.state, State::Running | State::Claimed | State::Failed) || step.waits_for.is_some(),
    ];
    for keep in keep {
        if steps.len() > max {
            steps.retain(|step| keep(step));
        }
    }
    steps.truncate(max);
    let mut lines: Vec<String> = steps.iter().map(|step| show::line(step, run, now)).collect();
    if steps.len() < total {
        lines.push(format!("  … and {} more", total - steps.len()));
    }
    lines.push(bar(run));
    lines
}

/// `[██████····] 12/20, 1 failed`.
fn bar(run: &Run) -> String {
    const WIDTH: usize = 30;
    let done = run.total.saturating_sub(run.open) as usize;
    let full = (done * WIDTH).checked_div(run.total as usize).unwrap_or(0);
    format!("[{}{}] {}", "█".repeat(full), "·".repeat(WIDTH - full), show::progress(run))
}

struct Changes {
    seen: HashMap<Uuid, State>,
    count: u32,
}

impl View for Changes {
    fn show(&mut self, run: &Run) -> anyhow::Result<()> {
        let now = times::now();
        for step in changed(&mut self.seen, run) {
            say(format!("{}  {}", step.state.name(), show::line(step, run, now)))?;
        }
        let done = run.total.saturating_sub(run.open);
        if std::mem::replace(&mut self.count, done) != done {
            say(format!("steps {}", show::progress(run)))?;
        }
        Ok(())
    }
}

struct Documents {
    seen: HashMap<Uuid, State>,
}

impl View for Documents {
    fn show(&mut self, run: &Run) -> anyhow::Result<()> {
        let changed = changed(&mut self.seen, run);
        changed.into_iter().try_for_each(|step| say(serde_json::to_string(step)?))
    }
}

/// Steps whose state is not what it was when they were last shown. That a step is not its turn yet is no news.
pub fn changed<'a>(seen: &mut HashMap<Uuid, State>, run: &'a Run) -> Vec<&'a Step> {
    let news = |step: &&Step| {
        let before = seen.insert(step.job, step.state);
        before != Some(step.state) && !(before.is_none() && step.state == State::Blocked && step.waits_for.is_none())
    };
    run.steps.iter().filter(news).collect()
}
