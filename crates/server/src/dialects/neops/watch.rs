//! How workers and jobs stand, for whoever runs the server: who is there, what waits for whom, and what to do about it.

use super::{Neops, namespace, workers};
use crate::problem::Problem;
use std::collections::VecDeque;
use windlass_api::{count_of, overview::Sign};
use windlass_core::{
    Job, Millis, Timestamp,
    worker::{Liveness, Worker},
};

/// Function blocks that jobs wait for, of those that have waited longest.
const BLOCKS_MAX: usize = 20;
/// Jobs looked at to find them.
const HEADS_MAX: usize = 200;
pub const DEPTH_MAX: usize = 10_000;
/// So many jobs may wait for each worker before more workers are called for. A worker of the original takes at least two seconds
/// for a job, so that the last of them waits for twenty.
const EACH_MAX: usize = 10;
/// So often in an hour a worker may come back before the network is suspected.
const RETURNS_MAX: usize = 3;
pub const RETURNS_KEPT: usize = 1_000;
pub const HOUR: Millis = Millis::from_secs(3_600);

/// When workers came back lately, by name, as this server heard them.
#[derive(Default)]
pub struct Returns(VecDeque<(Timestamp, String)>);

impl Returns {
    pub fn note(&mut self, at: Timestamp, worker: &str) {
        if self.0.len() == RETURNS_KEPT {
            self.0.pop_front();
        }
        self.0.push_back((at, worker.to_owned()));
    }

    pub fn since(&mut self, from: Timestamp) -> usize {
        while self.0.front().is_some_and(|(at, _)| *at < from) {
            self.0.pop_front();
        }
        self.0.len()
    }

    fn last(&self) -> &str {
        self.0.back().map_or("", |(_, worker)| worker)
    }
}

pub fn start_worker(tags: &[&str]) -> String {
    format!("neops_worker with the function block {} in its DIR_FUNCTION_BLOCKS", tags.join(", "))
}

/// What waits for a function block, and who serves it.
#[derive(Debug, PartialEq, Eq)]
pub struct Demand {
    pub block: String,
    pub waiting: usize,
    pub online: usize,
    /// Serving it, but not heard for too long.
    pub quiet: usize,
}

pub async fn signs(neops: Neops) -> Result<Vec<Sign>, Problem> {
    let now = neops.engine.now().await?;
    let all = workers::there(&neops).await?;
    let mut signs: Vec<Sign> = presence(&all, now).into_iter().collect();
    signs.extend(returns(&mut neops.own.returns.lock(), now));
    let mut heads: Vec<Job> = Vec::new();
    for head in neops.engine.store().queue_heads(&namespace(), HEADS_MAX).await? {
        if heads.len() < BLOCKS_MAX && heads.iter().all(|known| known.lane != head.lane) {
            heads.push(head);
        }
    }
    for head in heads {
        let block: String = head.spec.tags.iter().collect::<Vec<_>>().join(", ");
        let serving: Vec<&Worker> = all.iter().filter(|worker| head.spec.tags.subset_of(&worker.tags)).collect();
        let online = serving.iter().filter(|worker| worker.liveness(now) == Liveness::Online).count();
        // All of its kind go before one that would be the very last.
        let last = Job { priority: i32::MAX, seq: i64::MAX, ..head };
        let waiting = neops.engine.store().ahead(&last, DEPTH_MAX).await?;
        signs.push(demand(&Demand { block, waiting, online, quiet: serving.len() - online }));
    }
    Ok(signs)
}

/// None where the protocol is not used.
fn presence(all: &[Worker], now: Timestamp) -> Option<Sign> {
    let count = |wanted| all.iter().filter(|worker| worker.liveness(now) == wanted).count();
    let (online, unreachable, offline) =
        (count(Liveness::Online), count(Liveness::Unreachable), count(Liveness::Offline));
    let text = format!("{online} online, {unreachable} unreachable, {offline} offline");
    let advice = (unreachable > 0).then(|| {
        "Unreachable workers get no jobs: look at the network between them and the server, and for function blocks that \
         block their process."
            .to_owned()
    });
    (!all.is_empty()).then(|| Sign { what: "workers".into(), text, advice })
}

pub fn returns(returns: &mut Returns, now: Timestamp) -> Option<Sign> {
    let count = returns.since(Timestamp(now.0 - HOUR.0));
    let text = format!("workers came back {count} times in the last hour, {} last", returns.last());
    let advice = "Look at the network between them and the server, or raise WORKER_UNREACHABLE_THRESHOLD_MS.";
    (count > RETURNS_MAX).then(|| Sign { what: "workers".into(), text, advice: Some(advice.into()) })
}

pub fn demand(demand: &Demand) -> Sign {
    let (block, waiting, online, quiet) = (&demand.block, demand.waiting, demand.online, demand.quiet);
    let more = if waiting >= DEPTH_MAX { "at least " } else { "" };
    let wait = if waiting == 1 { "1 job waits".to_owned() } else { format!("{more}{waiting} jobs wait") };
    let serve = if online == 1 { "serves" } else { "serve" };
    let text = format!("{wait} for {block}, which {} {serve}", count_of(online, "online worker"));
    let advice = match (online, quiet) {
        (0, 0) => Some(format!("Start {}.", start_worker(&[block]))),
        (0, quiet) => {
            let (serve, are) = if quiet == 1 { ("serves", "is") } else { ("serve", "are") };
            let workers = count_of(quiet, "worker");
            Some(format!("{workers} {serve} it and {are} not heard: look at the network, or start others."))
        }
        _ if waiting > online * EACH_MAX => Some("Add workers that serve it.".to_owned()),
        _ => None,
    };
    Sign { what: "waiting".into(), text, advice }
}
