//! What becomes of a run that fails: whether anything was done that has to be undone, and in which order.

use std::collections::BTreeMap;

/// An execute job, the last of its tries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran<Id> {
    pub job: Id,
    /// Its place among the steps.
    pub step: usize,
    /// A worker had it, or one of its tries.
    pub claimed: bool,
    pub pure: bool,
    pub reversible: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<Id> {
    /// Nothing can have happened.
    Safe,
    /// To be undone, one wave after the other.
    RollBack(Vec<Vec<Id>>),
    /// Something happened that nothing undoes, so nothing is.
    Blocked,
}

/// Waves are the steps in reverse order; what a worker began counts as done, whatever came of it.
pub fn classify<Id: Clone>(ran: &[Ran<Id>]) -> Verdict<Id> {
    let done: Vec<&Ran<Id>> = ran.iter().filter(|ran| ran.claimed && !ran.pure).collect();
    if done.is_empty() {
        return Verdict::Safe;
    }
    if done.iter().any(|ran| !ran.reversible) {
        return Verdict::Blocked;
    }
    let mut waves: BTreeMap<usize, Vec<Id>> = BTreeMap::new();
    for ran in done {
        waves.entry(ran.step).or_default().push(ran.job.clone());
    }
    Verdict::RollBack(waves.into_values().rev().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `2c-r`: step 2, claimed, not pure, reversible.
    fn ran(text: &str) -> Vec<Ran<String>> {
        let one = |word: &str| Ran {
            job: word.to_owned(),
            step: word[..1].parse().unwrap(),
            claimed: word.contains('c'),
            pure: word.contains('p'),
            reversible: word.contains('r'),
        };
        text.split_whitespace().map(one).collect()
    }

    #[test]
    fn only_what_was_begun_and_is_not_pure_counts() {
        let waves = |waves: &[&[&str]]| {
            let wave = |wave: &&[&str]| wave.iter().map(|job| (*job).to_owned()).collect();
            Verdict::RollBack(waves.iter().map(wave).collect())
        };
        let table = [
            ("", Verdict::Safe),
            ("0cp 1cpr 2", Verdict::Safe),
            ("0r 1", Verdict::Safe),
            ("0cr", waves(&[&["0cr"]])),
            ("0cr 1cp 2cr1 2cr2 2r3 4r", waves(&[&["2cr1", "2cr2"], &["0cr"]])),
            ("0cr 1c 2cr", Verdict::Blocked),
            ("0cr 1 2cr", waves(&[&["2cr"], &["0cr"]])),
        ];
        for (text, expected) in table {
            assert_eq!(classify(&ran(text)), expected, "{text}");
        }
    }
}
