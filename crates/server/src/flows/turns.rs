//! Which turns come next: namespaces in turn, and within each its runs.

use crate::{
    app::App,
    planned::Unit,
    problem::{Code, Problem, Result},
};
use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};
use windlass_core::{
    Namespace, RunId,
    record::Kind,
    stage::{self, Turn},
};
use windlass_engine::store::RecordQuery;

/// Turns of one namespace that are looked at at a time.
const PAGE: usize = 500;
/// Runs whose last turn is remembered.
const REMEMBERED: usize = 10_000;
/// Greater than every key that begins as this one.
const END: char = '\u{7f}';

/// Where the next look at each namespace begins, so that a run with turns all the time does not keep the others waiting.
#[derive(Default)]
pub struct NextRuns(HashMap<Namespace, RunId>);

/// What waits to be decided, a list for each namespace, and whether that is all there is.
pub async fn find(app: &App, next_runs: &mut NextRuns) -> Result<(Vec<Vec<Unit>>, bool)> {
    let mut lists: Vec<Vec<Unit>> = Vec::new();
    let all = page(app, None, PAGE).await?;
    if all.len() < PAGE {
        next_runs.0.clear();
        return Ok((by_namespace(all), true));
    }
    let mut after: Option<Arc<str>> = None;
    while let Some(first) = page(app, after.take(), 1).await?.pop() {
        let namespace = first.turn.namespace;
        let mut turns = Vec::new();
        if let Some(run) = next_runs.0.get(&namespace) {
            let from = format!("{namespace}/{run}/{END}");
            turns = page(app, Some(from.into()), PAGE).await?;
            turns.retain(|turn| turn.namespace == namespace);
        }
        if turns.is_empty() {
            turns = page(app, Some(format!("{namespace}/").into()), PAGE).await?;
            turns.retain(|turn| turn.namespace == namespace);
        }
        let units = by_run(turns);
        match units.last() {
            Some(last) => drop(next_runs.0.insert(namespace.clone(), last.run)),
            None => drop(next_runs.0.remove(&namespace)),
        }
        lists.push(units);
        after = Some(format!("{namespace}/{END}").into());
    }
    Ok((lists, false))
}

/// A turn, and how often it was told.
pub struct Found {
    pub turn: Turn,
    pub version: u64,
}

impl std::ops::Deref for Found {
    type Target = Turn;
    fn deref(&self) -> &Turn {
        &self.turn
    }
}

async fn page(app: &App, after: Option<Arc<str>>, limit: usize) -> Result<Vec<Found>> {
    let query = RecordQuery { after, limit, ..RecordQuery::all(stage::system_namespace(), Turn::KIND) };
    let found = app.engine.store().records(&query).await?;
    let turn = |text: &str| serde_json::from_str(text).map_err(|error| Problem::new(Code::Damaged, error.to_string()));
    found.into_iter().map(|record| Ok(Found { turn: turn(&record.value)?, version: record.version })).collect()
}

pub fn by_namespace(turns: Vec<Found>) -> Vec<Vec<Unit>> {
    let mut lists: Vec<Vec<Unit>> = Vec::new();
    for unit in by_run(turns) {
        match lists.last_mut().filter(|list| list.last().is_some_and(|last| last.namespace == unit.namespace)) {
            Some(list) => list.push(unit),
            None => lists.push(vec![unit]),
        }
    }
    lists
}

fn by_run(turns: Vec<Found>) -> Vec<Unit> {
    let mut found: Vec<Unit> = Vec::new();
    for Found { turn, version } in turns {
        let mut hasher = DefaultHasher::new();
        (turn.job, version).hash(&mut hasher);
        let mark = hasher.finish();
        match found.last_mut().filter(|unit| unit.run == turn.run) {
            Some(unit) => {
                unit.jobs.push(turn.job);
                unit.mark = unit.mark.rotate_left(1) ^ mark;
            }
            None => found.push(Unit { namespace: turn.namespace, run: turn.run, jobs: vec![turn.job], mark }),
        }
    }
    found
}

/// Who was served when.
#[derive(Default)]
pub struct Served {
    times: u64,
    namespaces: HashMap<Namespace, u64>,
    runs: HashMap<RunId, u64>,
}

impl Served {
    pub fn note(&mut self, unit: &Unit) {
        self.times += 1;
        if self.runs.len() >= REMEMBERED {
            self.runs.clear();
            self.namespaces.clear();
        }
        self.namespaces.insert(unit.namespace.clone(), self.times);
        self.runs.insert(unit.run, self.times);
    }

    /// One run of every namespace, then another of each, and so on; those first that were served longest ago.
    pub fn order(&self, mut lists: Vec<Vec<Unit>>) -> VecDeque<Unit> {
        let last = |list: &Vec<Unit>| list.first().and_then(|unit| self.namespaces.get(&unit.namespace).copied());
        lists.sort_by_key(|list| last(list).unwrap_or(0));
        for list in &mut lists {
            list.sort_by_key(|unit| self.runs.get(&unit.run).copied().unwrap_or(0));
        }
        let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
        let mut all = VecDeque::new();
        while !lists.is_empty() {
            lists.retain_mut(|list| list.next().map(|unit| all.push_back(unit)).is_some());
        }
        all
    }
}
