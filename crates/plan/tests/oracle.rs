//! Random workflows, run on the rules in random orders with the planner beside them, end as a naive oracle says.

use crate::{
    seeds,
    world::{Dice, World},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_core::run::RunState;

#[derive(Clone, Debug)]
struct Drawn {
    needs: Vec<usize>,
    when: &'static str,
    /// None: no condition.
    holds: Option<bool>,
    /// None: no map. Which items fail.
    items: Option<Vec<bool>>,
    fails: bool,
    undo: bool,
}

fn draw(dice: &mut Dice) -> Vec<Drawn> {
    let count = 1 + dice.below(12);
    let step = |at: usize| {
        let needs: Vec<usize> = (0..at).filter(|_| dice.one_in(at / 2 + 1)).collect();
        let when = match dice.below(6) {
            0 => "always",
            1 if !needs.is_empty() => "on_failure",
            _ => "success",
        };
        let holds = dice.one_in(4).then(|| !dice.one_in(3));
        let width = dice.below(4);
        let items = dice.one_in(5).then(|| (0..width).map(|_| dice.one_in(5)).collect());
        Drawn { when, holds, items, fails: dice.one_in(6), undo: dice.one_in(3), needs }
    };
    (0..count).map(step).collect()
}

fn name(at: usize) -> String {
    format!("s{at}")
}

fn definition(steps: &[Drawn]) -> String {
    let step = |(at, step): (usize, &Drawn)| {
        let needs: Vec<String> = step.needs.iter().map(|&need| name(need)).collect();
        let mut body = json!({"needs": needs, "when": step.when, "retry": {"attempts": 1}});
        if step.holds.is_some() {
            body["if"] = json!(format!("input.holds[{at}]"));
        }
        if let Some(items) = &step.items {
            body["map"] = json!({"over": format!("[{}]", vec!["0"; items.len()].join(","))});
            body["payload"] = json!("${{ index }}");
        }
        if step.undo {
            body["compensate"] = json!({"payload": "${{ output }}"});
        }
        (name(at), body)
    };
    json!({"steps": steps.iter().enumerate().map(step).collect::<Map<_, _>>()}).to_string()
}

/// The state of every step and item.
fn oracle(steps: &[Drawn]) -> BTreeMap<String, &'static str> {
    // How each step ended, and whether that is, or comes from, a failure.
    let mut ends: Vec<(&'static str, bool)> = Vec::new();
    let mut all = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        let failed = step.needs.iter().any(|&need| ends[need].1);
        let skipped = step.needs.iter().any(|&need| ends[need].0 != "completed");
        let end = match step.when {
            "success" if failed => ("skipped", true),
            "success" if skipped => ("skipped", false),
            "on_failure" if !failed => ("skipped", false),
            _ if step.holds == Some(false) => ("skipped", false),
            _ => {
                for (item, fails) in step.items.iter().flatten().enumerate() {
                    all.insert(format!("{}[{item}]", name(at)), if *fails { "failed" } else { "completed" });
                }
                let fails = step.items.as_ref().map_or(step.fails, |items| items.contains(&true));
                if fails { ("failed", true) } else { ("completed", false) }
            }
        };
        all.insert(name(at), end.0);
        ends.push(end);
    }
    all
}

/// The step and the item that a job's name stands for.
fn parse(job: &str) -> (usize, Option<usize>) {
    let (step, item) = job[1..].split_once('[').map_or((&job[1..], None), |(step, item)| (step, Some(item)));
    (step.parse().unwrap(), item.map(|item| item.trim_end_matches(']').parse().unwrap()))
}

fn fails(steps: &[Drawn], job: &str) -> bool {
    match parse(job) {
        (at, Some(item)) => steps[at].items.as_ref().unwrap()[item],
        (at, None) => steps[at].fails,
    }
}

#[test]
fn runs_end_as_the_oracle_says_whatever_order_they_run_in() {
    for seed in seeds::of(0..300) {
        let mut dice = Dice::new(seed);
        let steps = draw(&mut dice);
        let holds: Vec<bool> = steps.iter().map(|step| step.holds.unwrap_or(true)).collect();
        let source = definition(&steps);
        let mut world = World::start(&source, json!({"holds": holds}));
        let mut done: Vec<String> = Vec::new();
        world.work(&mut dice, |job| {
            let completes = job.starts_with("~undo/") || !fails(&steps, job);
            done.extend(completes.then(|| job.to_owned()));
            completes
        });
        let told = format!("seed {seed}: {source}");
        let states = world.states().into_iter().filter(|(name, _)| !name.starts_with("~undo/"));
        let expected = oracle(&steps);
        assert_eq!(states.collect::<BTreeMap<_, _>>(), expected, "{told}");
        let failed = expected.values().any(|state| *state == "failed");
        assert_eq!(world.run().state(), if failed { RunState::Failed } else { RunState::Completed }, "{told}");
        check_undone(&steps, &done, failed, &told);
    }
}

/// What was done last is undone first, once each, and nothing else is.
fn check_undone(steps: &[Drawn], done: &[String], failed: bool, told: &str) {
    let first = done.iter().position(|job| job.starts_with("~undo/")).unwrap_or(done.len());
    let (forward, back) = done.split_at(first);
    let undone = forward.iter().rev().filter(|job| failed && steps[parse(job).0].undo);
    assert_eq!(back, undone.map(|job| format!("~undo/{job}")).collect::<Vec<_>>(), "{told}");
}

#[test]
fn work_grows_with_the_steps_and_not_faster() {
    let chain = |count: usize, staged: bool| {
        let step = |at: usize| {
            let mut body = json!({});
            if at > 0 {
                body["needs"] = json!(format!("s{}", at - 1));
            }
            if staged && at > 0 {
                body["payload"] = json!(format!("${{{{ steps.s{}.output }}}}", at - 1));
            }
            (format!("s{at}"), body)
        };
        json!({"steps": (0..count).map(step).collect::<Map<_, _>>()}).to_string()
    };
    for staged in [false, true] {
        let cost = |count: usize| {
            let mut world = World::start(&chain(count, staged), Value::Null);
            world.work(&mut Dice::new(1), |_| true);
            assert_eq!(world.run().state(), RunState::Completed);
            assert_eq!(world.turns, if staged { count - 1 } else { 0 }, "what holds no expression needs no turn");
            world.tables.loaded_jobs + world.facts
        };
        let (small, large) = (cost(150), cost(1_500));
        assert!(large < small * 12, "{small} rows for 150 steps, {large} for 1,500; staged: {staged}");
    }
}

#[test]
fn a_wide_map_costs_in_proportion() {
    let source = json!({"steps": {
        "m": {"map": {"over": "input"}, "payload": {"n": "${{ item }}"}},
        "z": {"needs": "m", "payload": "${{ size(steps.m.output) }}"},
    }});
    let cost = |count: usize| {
        let mut world = World::start(&source.to_string(), json!((0..count).collect::<Vec<_>>()));
        world.work(&mut Dice::new(1), |_| true);
        assert_eq!((world.run().state(), world.turns), (RunState::Completed, 3));
        world.tables.loaded_jobs + world.facts
    };
    let (small, large) = (cost(900), cost(9_000));
    assert!(large < small * 12, "{small} rows for 900 items, {large} for 9,000");
}
