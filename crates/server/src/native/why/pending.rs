//! Why nobody has taken a job that could run.

use super::{
    AHEAD_MAX, Facts, LOOK_MAX, NAMED_MAX, Seen,
    explain::{cause, command, word},
};
use crate::wire_time::text;
use windlass_api::why::Cause;
use windlass_core::worker::Liveness;

pub(super) fn pending(facts: &Facts) -> Vec<Cause> {
    let able: Vec<&Seen> =
        facts.workers.iter().filter(|seen| seen.fits(&facts.job) && !seen.is_forgotten(facts.now)).collect();
    let (ready, mut quiet): (Vec<&Seen>, Vec<&Seen>) = able.into_iter().partition(|seen| seen.takes_jobs(facts.now));
    // What is drained can be had back at once, and what was heard last is likeliest to return.
    quiet.sort_by_key(|seen| (!is_drained(facts, seen), std::cmp::Reverse(seen.worker.last_seen)));
    let free: Vec<&Seen> = ready.iter().copied().filter(|seen| !seen.is_busy()).collect();
    let mut causes = Vec::new();
    if free.is_empty() && facts.waiting == 0 {
        if !ready.is_empty() || !facts.strangers.is_empty() {
            causes.push(workers_busy(facts, &ready));
        }
        if !quiet.is_empty() {
            causes.push(workers_offline(facts, &quiet));
        }
        if causes.is_empty() {
            causes.push(no_worker_offers(facts));
        }
    }
    if facts.ahead > 0 {
        causes.push(jobs_ahead(facts));
    }
    if causes.is_empty() {
        causes.push(next(facts, &free));
    }
    causes
}

/// Alive, and kept from claiming by its drain alone.
fn is_drained(facts: &Facts, seen: &Seen) -> bool {
    seen.worker.draining && seen.worker.liveness(facts.now) == Liveness::Online
}

/// How a worker that would fit is started.
fn another(facts: &Facts) -> String {
    if let Some(start) = &facts.start {
        return start.clone();
    }
    let tags: String = facts.job.spec.tags.iter().map(|tag| format!(" --tag {}", word(tag))).collect();
    command(&facts.job, &format!("worker{tags} --allow-commands"))
}

fn ids(workers: &[&Seen]) -> Vec<String> {
    workers.iter().take(NAMED_MAX).map(|seen| seen.worker.id.to_string()).collect()
}

fn some(named: Vec<String>) -> String {
    let more = named.len().saturating_sub(3);
    let first = named.into_iter().take(3).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{first} and {more} others") } else { first }
}

fn workers_busy(facts: &Facts, ready: &[&Seen]) -> Cause {
    let stranger = |job: &windlass_core::Job| {
        let since = job.live.claimed_at.map(|at| format!(" since {}", text(at))).unwrap_or_default();
        let worker = job.holder().map(ToString::to_string).unwrap_or_default();
        format!("{worker} (not registered, with job {}{since})", job.key.id)
    };
    let busy = |seen: &&Seen| {
        if let (true, Some(job)) = (seen.worker.unregistered, seen.held.first()) {
            return stranger(job);
        }
        let slots = seen.worker.slots.max(1);
        // It has nothing free since it took the last of them.
        let since = seen.held.iter().filter_map(|job| job.live.claimed_at).max();
        let since = since.map(|at| format!(" since {}", text(at))).unwrap_or_default();
        let first = seen.held.first().map(|job| format!(", for example with job {}", job.key.id)).unwrap_or_default();
        format!("{} ({} of {slots}{since}{first})", seen.worker.id, seen.held.len())
    };
    let named: Vec<String> = ready.iter().map(busy).chain(facts.strangers.iter().map(stranger)).collect();
    let words = format!("All workers that fit are busy: {}.", some(named));
    let strangers = facts.strangers.iter().filter_map(|job| job.holder()).map(ToString::to_string);
    let workers = ids(ready).into_iter().chain(strangers).take(NAMED_MAX).collect();
    let held = ready.iter().flat_map(|seen| &seen.held).chain(&facts.strangers);
    let jobs = held.take(NAMED_MAX).map(|job| job.key.id.0).collect();
    let slots = if facts.start.is_some() { "" } else { ", or one with more --slots" };
    let help = Some(format!("Start another worker{slots}: {}", another(facts)));
    Cause { workers, jobs, help, ..cause("workers_busy", words) }
}

fn workers_offline(facts: &Facts, quiet: &[&Seen]) -> Cause {
    let state = |seen: &&Seen| {
        let worker = &seen.worker;
        match (worker.draining, worker.liveness(facts.now)) {
            (true, Liveness::Online) => format!("{} is draining", worker.id),
            (_, liveness) => format!("{} has been {} since {}", worker.id, liveness.name(), text(worker.last_seen)),
        }
    };
    let named = quiet.iter().map(state).collect();
    let words = format!("Workers with the required tags exist, but none of them takes jobs now: {}.", some(named));
    let help = match quiet.iter().find(|seen| is_drained(facts, seen)) {
        Some(seen) => {
            let line = format!("workers undrain {}", word(seen.worker.id.as_str()));
            format!("End the drain: {}", command(&facts.job, &line))
        }
        None => format!("Start it again, or another one: {}", another(facts)),
    };
    Cause { workers: ids(quiet), help: Some(help), ..cause("workers_offline", words) }
}

fn no_worker_offers(facts: &Facts) -> Cause {
    let required = &facts.job.spec.tags;
    let (registered, unregistered): (Vec<&Seen>, Vec<&Seen>) =
        facts.workers.iter().partition(|seen| !seen.worker.unregistered);
    let offered = |tag: &&str| !registered.iter().any(|seen| seen.worker.tags.contains(tag));
    let missing: Vec<&str> = required.iter().filter(offered).collect();
    let of = if facts.workers.len() >= LOOK_MAX { format!(" among the first {LOOK_MAX}") } else { String::new() };
    let what = match missing.as_slice() {
        _ if facts.workers.is_empty() || required.is_empty() => "No worker is registered in this namespace".to_owned(),
        [] => format!(
            "No registered worker{of} offers all of {} together",
            required.iter().collect::<Vec<_>>().join(", ")
        ),
        missing => format!("No registered worker{of} offers {}", missing.join(", ")),
    };
    let unknown: Vec<&Seen> = unregistered.into_iter().filter(|seen| seen.is_unknown(facts.now)).collect();
    let others = match unknown.as_slice() {
        [] => ", and no unregistered worker that could take it waits or works.".to_owned(),
        unknown => format!(
            ". Workers that claim without having registered take it if they offer its tags then: {}.",
            some(ids(unknown))
        ),
    };
    let words = format!("{what}{others}");
    Cause { help: Some(format!("Start one: {}", another(facts))), ..cause("no_worker_offers", words) }
}

fn jobs_ahead(facts: &Facts) -> Cause {
    let more = if facts.ahead >= AHEAD_MAX { "at least " } else { "" };
    let words = match facts.ahead {
        1 => "One job with the same tags goes first.".to_owned(),
        ahead => format!("{more}{ahead} jobs with the same tags go first."),
    };
    let help =
        format!("Show them: {}; start another worker: {}", command(&facts.job, "jobs --state pending"), another(facts));
    Cause { help: Some(help), ..cause("jobs_ahead", words) }
}

fn next(facts: &Facts, free: &[&Seen]) -> Cause {
    let heard = |seen: &&Seen| format!("{} (last seen at {})", seen.worker.id, text(seen.worker.last_seen));
    let words = match (free, facts.waiting) {
        ([], _) => "It is next: a worker that is not registered waits for such a job.".to_owned(),
        (free, 0) => {
            let named = some(free.iter().map(heard).collect());
            format!("It is next: the first worker that claims gets it. Free, but not claiming at the moment: {named}.")
        }
        (_, _) => "It is next: a worker that waits for such a job is about to get it.".to_owned(),
    };
    Cause { workers: ids(free), ..cause("ready", words) }
}
