//! Whether several namespaces are at work, and what is fair between them then.

use crate::batcher::Request;
use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};
use windlass_core::{Command, Namespace};

/// How long somebody counts as being at work.
const REMEMBERED: Duration = Duration::from_secs(1);

/// Notes whose commands come by.
#[derive(Default)]
pub struct Sharing {
    last: Option<Namespace>,
    shared_until: Option<Instant>,
}

impl Sharing {
    pub fn see<'a>(&mut self, requests: impl Iterator<Item = &'a Request>) {
        let mut others = false;
        for namespace in requests.filter_map(of) {
            if self.last.as_ref() != Some(namespace) {
                others |= self.last.replace(namespace.clone()).is_some();
            }
        }
        if others {
            self.shared_until = Some(Instant::now() + REMEMBERED);
        }
    }

    pub fn is_shared(&self) -> bool {
        self.shared_until.is_some_and(|until| Instant::now() < until)
    }
}

fn of(request: &Request) -> Option<&Namespace> {
    request.commands.first().and_then(Command::namespace)
}

/// In the order in which everybody gets the same: whoever has less in front of it in its own namespace goes first. Within a
/// namespace the order stays.
pub fn in_turn(waiting: VecDeque<Request>) -> VecDeque<Request> {
    let mut ahead: HashMap<Option<Namespace>, usize> = HashMap::new();
    let ranked = waiting.into_iter().map(|request| {
        let ahead = ahead.entry(of(&request).cloned()).or_default();
        let rank = *ahead;
        *ahead += request.weight;
        (rank, request)
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, request)| request).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::{Semaphore, oneshot};
    use windlass_core::commands::tell::Tell;

    fn request(namespace: &str, commands: usize) -> Request {
        let namespace = Namespace::new(namespace).unwrap();
        let tell = |_| Tell { namespace: namespace.clone(), topic: "t".into(), data: "{}".into() }.into();
        let commands: Vec<Command> = (0..commands).map(tell).collect();
        let weight = commands.iter().map(Command::weight).sum();
        let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        Request { commands, reply: oneshot::channel().0, room, abandon: None, weight }
    }

    fn shown(requests: VecDeque<Request>) -> Vec<(String, usize)> {
        requests.iter().map(|request| (of(request).unwrap().to_string(), request.commands.len())).collect()
    }

    #[test]
    fn a_namespace_that_sends_little_does_not_wait_behind_one_that_sends_much() {
        let waiting = [request("much", 100), request("much", 90), request("much", 1), request("little", 1)];
        let order = shown(in_turn(waiting.into()));
        let expected = [("much", 100), ("little", 1), ("much", 90), ("much", 1)];
        assert_eq!(order, expected.map(|(name, count)| (name.to_string(), count)));
    }

    #[test]
    fn one_namespace_alone_shares_with_nobody() {
        let mut sharing = Sharing::default();
        sharing.see([request("a", 1), request("a", 2)].iter());
        sharing.see([request("a", 1)].iter());
        assert!(!sharing.is_shared());
        sharing.see([request("b", 1)].iter());
        assert!(sharing.is_shared());
    }
}
