//! How workers and jobs stand, for whoever runs the server: who is there, what waits for whom, and what to do about it.

use super::{Neops, namespace, workers};
use crate::problem::Problem;
use std::collections::VecDeque;
use windlass_api::overview::Sign;
use windlass_core::{
    Job, Millis, Timestamp,
    worker::{Liveness, Worker},
};

/// Function blocks that jobs wait for, of those that have waited longest.
const BLOCKS_MAX: usize = 20;
/// Jobs looked at to find them.
const HEADS_MAX: usize = 200;
const DEPTH_MAX: usize = 10_000;
/// So many jobs may wait for each worker before more workers are called for. A worker of the original takes at least two seconds
/// for a job, so that the last of them waits for twenty.
const EACH_MAX: usize = 10;
/// So often in an hour a worker may come back before the network is suspected.
const RETURNS_MAX: usize = 3;
const RETURNS_KEPT: usize = 1_000;
const HOUR: Millis = Millis::from_secs(3_600);

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

    fn since(&mut self, from: Timestamp) -> usize {
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
struct Demand {
    block: String,
    waiting: usize,
    online: usize,
    /// Serving it, but not heard for too long.
    quiet: usize,
}

pub async fn signs(neops: Neops) -> Result<Vec<Sign>, Problem> {
    let now = neops.engine.now().await?;
    let all = workers::there(&neops).await?;
    let mut signs = vec![presence(&all, now)];
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

fn presence(all: &[Worker], now: Timestamp) -> Sign {
    let count = |wanted| all.iter().filter(|worker| worker.liveness(now) == wanted).count();
    let (online, unreachable, offline) =
        (count(Liveness::Online), count(Liveness::Unreachable), count(Liveness::Offline));
    let text = format!("{online} online, {unreachable} unreachable, {offline} offline");
    let advice = (unreachable > 0).then(|| {
        "Unreachable workers get no jobs: look at the network between them and the server, and for function blocks that \
         block their process."
            .to_owned()
    });
    Sign { what: "workers".into(), text, advice }
}

fn returns(returns: &mut Returns, now: Timestamp) -> Option<Sign> {
    let count = returns.since(Timestamp(now.0 - HOUR.0));
    let text = format!("workers came back {count} times in the last hour, {} last", returns.last());
    let advice = "Look at the network between them and the server, or raise WORKER_UNREACHABLE_THRESHOLD_MS.";
    (count > RETURNS_MAX).then(|| Sign { what: "workers".into(), text, advice: Some(advice.into()) })
}

fn demand(demand: &Demand) -> Sign {
    let Demand { block, waiting, online, quiet } = demand;
    let more = if *waiting >= DEPTH_MAX { "at least " } else { "" };
    let text = format!("{more}{waiting} jobs wait for {block}, which {online} online workers serve");
    let advice = match (online, quiet) {
        (0, 0) => Some(format!("Start {}.", start_worker(&[block]))),
        (0, quiet) => {
            Some(format!("{quiet} workers serve it and are not heard: look at the network, or start others."))
        }
        _ if *waiting > online * EACH_MAX => Some("Add workers that serve it.".to_owned()),
        _ => None,
    };
    Sign { what: "waiting".into(), text, advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_says_whether_workers_or_the_network_are_wanted() {
        let table = [
            ((5, 1, 0), "5 jobs wait for p/b:1.0.0, which 1 online workers serve", ""),
            ((11, 1, 0), "11 jobs", "Add workers"),
            ((20, 2, 5), "20 jobs", ""),
            ((1, 0, 0), "which 0 online", "Start neops_worker with the function block p/b:1.0.0"),
            ((1, 0, 2), "which 0 online", "2 workers serve it and are not heard: look at the network"),
            ((DEPTH_MAX, 1, 0), "at least 10000 jobs", "Add workers"),
        ];
        for ((waiting, online, quiet), text, advice) in table {
            let sign = demand(&Demand { block: "p/b:1.0.0".into(), waiting, online, quiet });
            assert!(sign.text.contains(text), "{sign:?}");
            assert_eq!(sign.advice.is_some(), !advice.is_empty(), "{sign:?}");
            assert!(sign.advice.unwrap_or_default().contains(advice));
        }
    }

    #[test]
    fn workers_that_keep_coming_back_point_to_the_network() {
        let mut seen = Returns::default();
        for at in [0, 1, 2, 3] {
            seen.note(Timestamp(at), "w");
        }
        let sign = returns(&mut seen, Timestamp(HOUR.0)).unwrap();
        assert!(sign.text.contains("4 times") && sign.advice.unwrap().contains("network"), "{}", sign.text);
        assert_eq!(returns(&mut seen, Timestamp(HOUR.0 + 1)), None, "three in an hour are no sign");
        for at in 0..2 * RETURNS_KEPT as i64 {
            seen.note(Timestamp(at), "w");
        }
        assert_eq!(seen.0.len(), RETURNS_KEPT);
    }
}
