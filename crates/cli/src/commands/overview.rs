//! `windlass overview`: what needs attention.

use super::{Context, Done};
use crate::{
    fail::code,
    output::{Facts, clean},
    times,
};
use windlass_api::{
    overview::{Overview, WaitingStep},
    stats::Count,
};

pub async fn run(context: &Context) -> Done {
    let overview = context.client()?.overview().await?;
    context.format.one(&overview, || text(&overview))?;
    Ok(code::OK)
}

fn count(count: &Count) -> String {
    format!("{}{}", count.count, if count.more { "+" } else { "" })
}

fn waiting(step: &WaitingStep) -> String {
    let run = step.run.to_string();
    let of = step.workflow.as_deref().map(|name| format!(" of {name}")).unwrap_or_default();
    match &step.event {
        Some(event) => format!("{}{of} waits for the event {event}: windlass workflow signal {run} {event}", step.step),
        None => format!("{}{of} waits for approval: windlass workflow approve {run} {}", step.step, step.step),
    }
}

fn text(overview: &Overview) -> String {
    let mut facts = Facts::default();
    facts.add("Namespace", &overview.namespace);
    let states = overview.jobs.iter().filter(|(_, number)| number.count > 0);
    let states: Vec<String> = states.map(|(state, number)| format!("{} {state}", count(number))).collect();
    facts.add("Jobs", states.join(", "));
    let workers: Vec<String> = overview.workers.iter().map(|(state, number)| format!("{number} {state}")).collect();
    facts.add("Workers", workers.join(", "));
    for lane in &overview.lanes {
        let tags = if lane.tags.is_empty() { "no tags".to_owned() } else { lane.tags.join(" ") };
        let since = times::maybe_relative(lane.since.as_deref(), times::now());
        let reason = lane.reason.as_deref().unwrap_or_default();
        facts.add(
            "Waiting",
            clean(&format!(
                "{} for {tags}, the oldest ({}) since {since}. {reason}",
                count(&lane.waiting),
                lane.oldest
            )),
        );
    }
    for one in &overview.failing {
        facts.add("Failing", clean(&format!("{}: {} of {}", one.definition, one.failed, one.failed + one.completed)));
    }
    if let Some(others) = &overview.failing_others {
        let all = others.failed + others.completed;
        facts.add("Failing", format!("jobs without a definition or a report: {} of {all}", others.failed));
    }
    for step in &overview.waiting_steps {
        facts.add("Waiting step", clean(&waiting(step)));
    }
    for worker in &overview.lost_workers {
        facts.add("Lost worker", clean(worker));
    }
    if overview.store_full {
        facts.add("Store", "full; it accepts no writes until there is room on its disk");
    }
    facts.text()
}
