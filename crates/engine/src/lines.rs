//! Requests that wait to be run, in a line for each namespace. Whoever was served longest ago is next.

use crate::request::Request;
use std::collections::VecDeque;
use windlass_core::{Command, Namespace};

/// What the server has to do by itself has twice the room of a namespace: what a namespace makes comes due as well.
const OWN: usize = 2;

/// None: the server's own work.
type Whose = Option<Namespace>;

#[derive(Default)]
pub struct Lines {
    of: foldhash::HashMap<Whose, VecDeque<Request>>,
    /// Those who wait, each once.
    turns: VecDeque<Whose>,
    len: usize,
}

/// What still fits into a batch.
pub struct Space {
    pub count: usize,
    pub bytes: usize,
    /// Commands that one namespace may have in it.
    pub each: usize,
}

/// Looking up a token is part of every call, whoever makes it: it must not look like a second namespace at work.
pub fn whose(request: &Request) -> Whose {
    match request.commands.first() {
        Some(Command::Due(_) | Command::Grace(_) | Command::UseToken(_)) | None => None,
        Some(command) => command.namespace().cloned(),
    }
}

impl Lines {
    pub fn push(&mut self, request: Request) {
        let whose = whose(&request);
        self.len += 1;
        match self.of.get_mut(&whose) {
            Some(line) => line.push_back(request),
            None => {
                self.turns.push_back(whose.clone());
                self.of.insert(whose, VecDeque::from([request]));
            }
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.turns.iter().flatten()
    }

    /// Once around: each line gives what it may.
    pub fn take(&mut self, batch: &mut Vec<Request>, space: &mut Space) {
        for _ in 0..self.turns.len() {
            let Some(whose) = self.turns.front() else { return };
            let Some(line) = self.of.get_mut(whose) else { return };
            let before = line.len();
            let is_full = fill(batch, line, whose.is_none(), space);
            self.len -= before - line.len();
            if line.is_empty() {
                self.of.remove(whose);
                self.turns.pop_front();
            } else if !is_full || line.len() < before {
                self.turns.rotate_left(1);
            }
            if is_full {
                return;
            }
        }
    }
}

/// Takes from the front while there is room; what is too large for any batch goes alone. True: the batch is full.
fn fill(batch: &mut Vec<Request>, line: &mut VecDeque<Request>, own: bool, space: &mut Space) -> bool {
    let mut each = space.each.saturating_mul(if own { OWN } else { 1 });
    let mut first = true;
    while let Some(request) = line.front() {
        if request.is_abandoned() {
            line.pop_front();
            continue;
        }
        let (count, bytes) = (request.commands.len(), request.weight);
        if !batch.is_empty() && (count > space.count || bytes > space.bytes) {
            return true;
        }
        if !first && count > each {
            return false;
        }
        first = false;
        each = each.saturating_sub(count);
        space.count = space.count.saturating_sub(count);
        space.bytes = space.bytes.saturating_sub(bytes);
        batch.extend(line.pop_front());
    }
    false
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
        Request { commands, by: None, reply: oneshot::channel().0, room, abandon: None, weight }
    }

    fn taken(lines: &mut Lines, count: usize, each: usize) -> Vec<(String, usize)> {
        let mut batch = Vec::new();
        lines.take(&mut batch, &mut Space { count, bytes: usize::MAX, each });
        let shown = |request: &Request| (whose(request).unwrap().to_string(), request.commands.len());
        batch.iter().map(shown).collect()
    }

    fn names(shown: &[(String, usize)]) -> Vec<(&str, usize)> {
        shown.iter().map(|(name, count)| (name.as_str(), *count)).collect()
    }

    #[test]
    fn a_namespace_that_sends_little_does_not_wait_behind_one_that_sends_much() {
        let mut lines = Lines::default();
        for (name, count) in [("much", 9), ("much", 2), ("much", 1), ("little", 1), ("much", 1), ("little", 2)] {
            lines.push(request(name, count));
        }
        assert_eq!(names(&taken(&mut lines, 100, 10)), [("much", 9), ("little", 1), ("little", 2)]);
        assert_eq!(names(&taken(&mut lines, 100, 10)), [("much", 2), ("much", 1), ("much", 1)]);
        assert!(lines.is_empty() && lines.of.is_empty() && lines.turns.is_empty(), "nothing is kept of those who left");
    }

    #[test]
    fn whoever_found_the_batch_full_is_first_in_the_next_one() {
        let mut lines = Lines::default();
        for (name, count) in [("a", 2), ("b", 3), ("c", 2), ("a", 1), ("c", 4)] {
            lines.push(request(name, count));
        }
        assert_eq!(names(&taken(&mut lines, 4, 2)), [("a", 2)]);
        assert_eq!(lines.len(), 4);
        assert_eq!(names(&taken(&mut lines, 4, 9)), [("b", 3)], "c does not fit beside it");
        assert_eq!(names(&taken(&mut lines, 4, 9)), [("c", 2)], "its next one does not fit");
        assert_eq!(names(&taken(&mut lines, 4, 9)), [("a", 1)]);
        assert_eq!(names(&taken(&mut lines, 1, 1)), [("c", 4)], "too large for any, so alone");
        assert!(lines.is_empty());
    }

    #[test]
    fn a_claim_that_nobody_waits_for_is_not_run() {
        let mut lines = Lines::default();
        let mut gone = request("a", 1);
        gone.abandon = Some(Namespace::new("a").unwrap());
        lines.push(gone);
        lines.push(request("a", 2));
        assert_eq!(names(&taken(&mut lines, 9, 9)), [("a", 2)]);
        assert!(lines.is_empty());
    }
}
