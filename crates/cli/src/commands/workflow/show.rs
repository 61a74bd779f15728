//! Runs and their steps as people read them.

use super::draw::sign;
use crate::{
    commands::{Context, Done, all},
    fail::code,
    output::{Colour, Facts, Rows, cell, clean, cut},
    times,
};
use windlass_api::{
    job::State,
    workflow::{Run, RunState, Step, WaitsFor},
};
use windlass_sdk::Client;

const ERROR_LETTERS: usize = 80;

pub fn list(runs: &[Run], now: jiff::Timestamp) -> Rows {
    let empty = "No runs. Start one: windlass workflow run FILE";
    let mut rows = Rows::new(&["RUN", "WORKFLOW…", "STATE", "STEPS", "STARTED", "TOOK"], empty);
    for run in runs {
        let ended = run.finished_at.as_deref().and_then(|end| times::between(&run.created_at, end));
        rows.add(vec![
            cell(run.id.to_string()),
            cell(run.workflow.as_deref().unwrap_or_default()),
            cell(run.state.name()).colour(colour(run.state)),
            cell(progress(run)),
            cell(times::relative(&run.created_at, now)),
            cell(ended.unwrap_or_default()),
        ]);
    }
    rows
}

fn colour(state: RunState) -> Colour {
    match state {
        RunState::Running => Colour::Blue,
        RunState::Completed => Colour::Green,
        RunState::Failed => Colour::Red,
        RunState::Cancelled => Colour::Grey,
    }
}

/// `12/20, 1 failed`.
pub fn progress(run: &Run) -> String {
    let mut text = format!("{}/{}", run.total.saturating_sub(run.open), run.total);
    for (count, what) in [(run.failed, "failed"), (run.cancelled, "cancelled"), (run.skipped, "skipped")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}

/// Facts, then the steps.
pub fn run(run: &Run, now: jiff::Timestamp) -> String {
    let mut facts = Facts::default();
    facts
        .add("Run", run.id.to_string())
        .add("Workflow", run.workflow.as_deref().unwrap_or_default())
        .add("State", run.state.name())
        .add("Steps", progress(run))
        .add("Started", times::both(&run.created_at, now))
        .add("Ended", times::maybe_both(run.finished_at.as_deref(), now))
        .add("Owner", run.owner.as_deref().unwrap_or_default())
        .add("Cancelled by", run.cancelled_by.as_deref().unwrap_or_default())
        .add("Goes on from", run.retry_of.map(|id| id.to_string()).unwrap_or_default());
    // With the id for `windlass logs` and `windlass show`.
    let with_job = |step: &Step| format!("{}  {}", line(step, run, now), step.job);
    let steps: Vec<String> = in_order(&run.steps).into_iter().map(with_job).collect();
    format!("{}\n\n{}", facts.text(), steps.join("\n"))
}

/// What belongs to a step (its items, the steps of its sub-workflow) comes right behind it.
pub fn in_order(steps: &[Step]) -> Vec<&Step> {
    let root = |step: &Step| step.name.split(['/', '[']).next().unwrap_or_default().to_owned();
    let mut order: Vec<String> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for step in steps {
        let root = root(step);
        if !known.contains_key(&root) {
            known.insert(root.clone(), order.len());
            order.push(root);
        }
    }
    let mut sorted: Vec<&Step> = steps.iter().collect();
    sorted.sort_by_key(|step| (known[&root(step)], depth(&step.name) > 0));
    sorted
}

/// How deep a step is: items and steps of sub-workflows are below theirs.
fn depth(name: &str) -> usize {
    name.matches(['/', '[']).count()
}

/// One step: a sign, its name, how long, and what it waits for or why it ended so.
pub fn line(step: &Step, run: &Run, now: jiff::Timestamp) -> String {
    let indent = "  ".repeat(depth(&step.name));
    let took = match (step.duration_ms, &step.started_at) {
        (Some(millis), _) => times::short(millis),
        (None, Some(started)) if !step.state.is_final() => {
            times::between(started, &now.to_string()).unwrap_or_default()
        }
        _ => String::new(),
    };
    let mut parts = vec![format!("{indent}{} {}", sign(step.state), clean(&step.name))];
    parts.extend(Some(took).filter(|took| !took.is_empty()));
    if step.attempt > 1 {
        parts.push(format!("attempt {}", step.attempt));
    }
    parts.extend(about(step, run));
    parts.join("  ")
}

fn about(step: &Step, run: &Run) -> Option<String> {
    if let Some(error) = step.error.as_ref().filter(|_| step.state.is_final()) {
        let text = if error.message.is_empty() { &error.reason } else { &error.message };
        return Some(clean(&cut(text, ERROR_LETTERS)));
    }
    if step.kept_from.is_some() {
        return Some("kept from the run before".into());
    }
    if step.state.is_final() {
        return None;
    }
    match (&step.waits_for, &step.worker) {
        (Some(WaitsFor::Approval), _) if waits_for_approval(step) => {
            Some(format!("waits for approval: windlass workflow approve {} {}", short_id(run), clean(&step.name)))
        }
        (Some(WaitsFor::Event), _) if step.state != State::Blocked || open_parents(step, run).is_empty() => {
            let event = step.event.as_deref().unwrap_or("an event");
            Some(format!("waits for {}: windlass workflow signal {} {0}", clean(event), short_id(run)))
        }
        (_, Some(worker)) => Some(format!("on {}", clean(worker))),
        _ => {
            let parents = open_parents(step, run);
            match parents.len() {
                0 if step.state == State::Pending => Some("waits for a worker".into()),
                0 => None,
                1..=3 => Some(format!("after {}", parents.join(", "))),
                more => Some(format!("after {} and {} more", parents[..2].join(", "), more - 2)),
            }
        }
    }
}

fn short_id(run: &Run) -> String {
    let id = run.id.to_string();
    id[..13].to_owned()
}

/// Its turn has come, and somebody has to say yes.
pub fn waits_for_approval(step: &Step) -> bool {
    step.waits_for == Some(WaitsFor::Approval) && !step.state.is_final()
}

fn open_parents(step: &Step, run: &Run) -> Vec<String> {
    let open = run.steps.iter().filter(|other| step.after.contains(&other.job) && !other.state.is_final());
    open.map(|other| clean(&other.name)).collect()
}

pub async fn stored(context: &Context, client: &Client) -> Done {
    let all = all(async |paging| client.workflows(&paging).await).await?;
    let now = times::now();
    context.format.many(&all, || {
        let empty = "No stored workflows. Store one: windlass workflow apply FILE";
        let mut rows = Rows::new(&["NAME", "VERSION", "STEPS", "STORED", "DESCRIPTION…"], empty);
        for workflow in &all {
            rows.add(vec![
                cell(&workflow.name),
                cell(workflow.version.to_string()),
                cell(workflow.steps.to_string()),
                cell(times::relative(&workflow.created_at, now)),
                cell(cut(&workflow.description, ERROR_LETTERS)),
            ]);
        }
        rows
    })?;
    Ok(code::OK)
}
