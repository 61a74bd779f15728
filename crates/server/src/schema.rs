//! JSON Schemas of definitions: compiled once per version, kept for the versions in use.
//!
//! Nothing is ever fetched: a reference out of the schema is refused when the definition is written. Patterns run on an
//! engine without backtracking. What a check costs is known before it is begun, and what costs more than a moment is done
//! aside.

pub mod cost;
pub mod fits;
pub mod pair;
mod work;

use crate::{
    aside::Aside,
    problem::{Code, Problem, Result},
};
use cost::Cost;
use fits::Fit;
use parking_lot::Mutex;
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};
use windlass_api::definition::DefinitionBody;
use windlass_core::{
    JobId, JobKey, Namespace, Payload,
    cache::Cache,
    definition::{Definition, version_key},
    job::DefinitionRef,
};
use windlass_engine::Engine;
use windlass_plan::meter::weight_of_text;

/// Compiled versions kept, and the memory they take, about. Whichever namespace has most loses the one it has not used for
/// longest.
pub const KEPT: usize = 256;
const KEPT_BYTES: usize = 64 << 20;
/// Jobs remembered to have no definition; twice as many at most.
const PLAIN: usize = 50_000;
/// Steps of one check, or of all checks of one request.
pub const STEPS_MAX: u64 = 10_000_000;
/// Steps of a check that is done on the spot: less than a millisecond. Values of more bytes are not read there.
const STEPS_HERE: u64 = 4_000;
const BYTES_HERE: usize = 16 << 10;
/// Steps up to which it is told what is wrong; beyond that, only that something is.
const STEPS_TOLD: u64 = 500_000;
/// Bytes that may be copied to tell it, and on the spot.
const COPIED_MAX: u64 = 64 << 20;
const COPIED_HERE: u64 = 512 << 10;
/// Bytes of a compiled pattern.
const PATTERN_BYTES: usize = 256 << 10;

/// A definition's version, ready for use.
pub struct Compiled {
    pub body: DefinitionBody,
    payload: Option<Schema>,
    result: Option<Schema>,
}

/// Which of a definition's schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Payload,
    Result,
}

impl Compiled {
    pub fn new(body: DefinitionBody) -> Result<Self> {
        let payload = body.payload_schema.as_ref().map(|schema| Schema::new("payload_schema", schema)).transpose()?;
        let result = body.result_schema.as_ref().map(|schema| Schema::new("result_schema", schema)).transpose()?;
        Ok(Self { body, payload, result })
    }

    fn schema(&self, part: Part) -> Option<&Schema> {
        match part {
            Part::Payload => self.payload.as_ref(),
            Part::Result => self.result.as_ref(),
        }
    }

    pub fn bytes(&self) -> usize {
        let schemas = [&self.payload, &self.result].into_iter().flatten();
        4_096 + schemas.map(|schema| schema.fit.bytes).sum::<usize>()
    }

    pub fn check_payload(&self, payload: &Payload) -> Result<()> {
        let mut left = STEPS_MAX;
        self.payload.as_ref().map_or(Ok(()), |schema| schema.check(payload, &mut left))
    }
}

/// A schema that can be checked within limits.
pub struct Schema {
    validator: jsonschema::Validator,
    fit: Fit,
}

impl Schema {
    pub fn new(field: &'static str, schema: &Value) -> Result<Self> {
        let fit = fits::check(field, schema)?;
        let patterns = jsonschema::PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(4 * PATTERN_BYTES);
        // The library would compile the values themselves, whatever they are.
        let is_pattern = |text: &str| windlass_plan::pattern::get(text).is_ok();
        let options = jsonschema::options().offline().with_pattern_options(patterns).with_format("regex", is_pattern);
        let validator = options.build(&fit.root).map_err(|error| {
            let at = error.instance_path().as_str();
            let shown: String = error.to_string().chars().take(500).collect();
            Problem::invalid(format!("{field}{at}"), format!("this is not a usable JSON Schema: {shown}"))
        })?;
        Ok(Self { validator, fit })
    }

    /// The first thing wrong, with the pointer to it. The steps are taken from those that are left.
    fn check(&self, json: &Payload, left: &mut u64) -> Result<()> {
        let value = read(json)?;
        let cost = cost::of(&self.fit, &value, *left);
        let cost = cost.map_err(|over| Problem::new(Code::Schema, over.why(STEPS_MAX)).at(over.pointer))?;
        *left -= cost.steps;
        let told = cost.steps <= STEPS_TOLD && copied(cost, json) <= COPIED_MAX;
        self.decide(&value, told)
    }

    /// None: it would take longer than a moment.
    pub fn check_here(&self, json: &Payload) -> Option<(Result<()>, u64)> {
        if json.len() > BYTES_HERE {
            return None;
        }
        let value = match read(json) {
            Ok(value) => value,
            Err(problem) => return Some((Err(problem), 0)),
        };
        let cost = cost::of(&self.fit, &value, STEPS_HERE).ok()?;
        (copied(cost, json) <= COPIED_HERE).then(|| (self.decide(&value, true), cost.steps))
    }

    fn decide(&self, value: &Value, told: bool) -> Result<()> {
        if !told {
            let why = "this does not meet its schema; it is too large to tell where";
            return if self.validator.is_valid(value) { Ok(()) } else { Err(Problem::new(Code::Schema, why).at("")) };
        }
        self.validator.validate(value).map_err(|error| {
            let pointer = error.instance_path().as_str().to_owned();
            let shown: String = error.to_string().chars().take(500).collect();
            Problem::new(Code::Schema, shown).at(pointer)
        })
    }
}

/// Bytes that may be copied to tell what is wrong.
fn copied(cost: Cost, json: &Payload) -> u64 {
    if cost.copies == 0 { 0 } else { cost.copies.saturating_mul(weight_of_text(json.as_bytes())) }
}

fn read(json: &Payload) -> Result<Value> {
    let bytes = if json.is_empty() { b"null" } else { json.as_bytes() };
    serde_json::from_slice(bytes)
        .map_err(|error| Problem::new(Code::Schema, format!("this is not valid JSON: {error}")).at(""))
}

/// Whether a schema can be used, and whether a value meets it. Both may take long.
pub fn check_value(field: &'static str, schema: &Value, value: Option<&Payload>) -> Result<()> {
    let compiled = Schema::new(field, schema)?;
    value.map_or(Ok(()), |value| compiled.check(value, &mut { STEPS_MAX }))
}

type Key = (Namespace, Arc<str>, u32);

/// What is known about definitions and about the jobs made from them. Both never change, so nothing in here goes stale.
pub struct Schemas {
    engine: Engine,
    aside: Arc<Aside>,
    compiled: Mutex<Versions>,
    /// Jobs that were claimed here and have no definition, so that their completion needs no look at them.
    plain: Mutex<Cache<JobId, ()>>,
}

/// The versions in use.
#[derive(Default)]
pub struct Versions {
    uses: u64,
    versions: HashMap<Key, (u64, Arc<Compiled>)>,
    bytes: HashMap<Namespace, usize>,
}

impl Versions {
    pub fn get(&mut self, key: &Key) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let (used, compiled) = self.versions.get_mut(key)?;
        *used = self.uses;
        Some(compiled.clone())
    }

    pub fn put(&mut self, key: Key, compiled: Arc<Compiled>) {
        self.remove(&key);
        *self.bytes.entry(key.0.clone()).or_default() += compiled.bytes();
        self.versions.insert(key, (self.uses, compiled));
        while self.is_over()
            && let Some(oldest) = self.next_to_go()
        {
            self.remove(&oldest);
        }
    }

    fn is_over(&self) -> bool {
        self.versions.len() > KEPT || (self.versions.len() > 1 && self.bytes() > KEPT_BYTES)
    }

    /// The memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes.values().sum()
    }

    fn remove(&mut self, key: &Key) {
        let Some((_, gone)) = self.versions.remove(key) else { return };
        let left = self.bytes.entry(key.0.clone()).or_default();
        *left = left.saturating_sub(gone.bytes());
        if *left == 0 {
            self.bytes.remove(&key.0);
        }
    }

    /// What goes first.
    fn next_to_go(&self) -> Option<Key> {
        let (largest, _) = self.bytes.iter().max_by_key(|(_, bytes)| **bytes)?;
        let own = self.versions.iter().filter(|((namespace, ..), _)| namespace == largest);
        own.min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone())
    }
}

impl Schemas {
    pub fn new(engine: Engine, aside: Arc<Aside>) -> Self {
        Self { engine, aside, compiled: Mutex::default(), plain: Mutex::new(Cache::new(PLAIN, PLAIN)) }
    }

    /// Whether a value is one that a definition allows: found out on the spot if that takes no longer than a moment.
    pub async fn check(
        &self,
        namespace: &Namespace,
        definition: &Arc<Compiled>,
        part: Part,
        json: &Payload,
    ) -> Result<()> {
        let Some(schema) = definition.schema(part) else { return Ok(()) };
        if let Some((checked, steps)) = schema.check_here(json) {
            if steps > STEPS_HERE / 4 {
                // Of many in a row, each lets others go first.
                tokio::task::yield_now().await;
            }
            return checked;
        }
        let (definition, json) = (definition.clone(), json.clone());
        let check = move || definition.schema(part).map_or(Ok(()), |schema| schema.check(&json, &mut { STEPS_MAX }));
        self.aside.run(namespace, check).await?
    }

    /// Whether all payloads are ones that their definitions allow; otherwise which is the first that is not.
    pub async fn check_all(
        &self,
        namespace: &Namespace,
        all: Vec<(Arc<Compiled>, Payload)>,
    ) -> Result<Result<(), (usize, Problem)>> {
        let check = move || {
            let mut left = STEPS_MAX;
            for (at, (definition, payload)) in all.iter().enumerate() {
                let schema = definition.schema(Part::Payload);
                schema.map_or(Ok(()), |schema| schema.check(payload, &mut left)).map_err(|problem| (at, problem))?;
            }
            Ok(())
        };
        self.aside.run(namespace, check).await
    }

    /// The version a reference points at.
    pub async fn get(&self, namespace: &Namespace, reference: &DefinitionRef) -> Result<Arc<Compiled>> {
        let key = (namespace.clone(), reference.name.clone(), reference.version);
        if let Some(known) = self.compiled.lock().get(&key) {
            return Ok(known);
        }
        let stored = version_key(&reference.name, reference.version);
        let found = self.engine.read_record::<Definition>(namespace, &stored).await?;
        let shown = format!("{}@{}", reference.name, reference.version);
        let found = found.ok_or_else(|| Problem::not_found("definition", &shown).at("definition"))?;
        let compile = move || {
            let body = serde_json::from_str(&found.body).map_err(|error| {
                Problem::new(Code::Damaged, format!("the definition {shown} cannot be read: {error}"))
            })?;
            Compiled::new(body)
        };
        let compiled = Arc::new(self.aside.run(namespace, compile).await??);
        self.compiled.lock().put(key, compiled.clone());
        Ok(compiled)
    }

    /// Remembers that a claimed job has no definition.
    pub fn note_plain(&self, job: JobId) {
        self.plain.lock().put(job, (), 1);
    }

    fn is_plain(&self, job: &JobId) -> bool {
        self.plain.lock().get(job).is_some()
    }

    /// Whether a result is one that the job's definition allows. Jobs that are gone are left to the rules to refuse.
    pub async fn check_result(&self, key: &JobKey, result: &Payload) -> Result<()> {
        if self.is_plain(&key.id) {
            return Ok(());
        }
        let Some(job) = self.engine.store().job(key).await? else { return Ok(()) };
        match &job.spec.definition {
            Some(definition) => {
                let definition = self.get(&key.namespace, definition).await?;
                self.check(&key.namespace, &definition, Part::Result, result).await
            }
            None => {
                self.note_plain(key.id);
                Ok(())
            }
        }
    }
}
