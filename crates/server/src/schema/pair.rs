//! Schemas of definitions whose bodies are a dialect's own: what goes in, and what comes out.

use super::{STEPS_MAX, Schema};
use crate::{aside::Aside, problem::Result};
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use windlass_core::{Namespace, Payload, cache::Cache};

const KEPT: usize = 1_000;
const KEPT_BYTES: usize = 32 << 20;

pub struct Pair {
    input: Schema,
    output: Schema,
}

impl Pair {
    /// Takes long. The names are those of the fields that the schemas came in.
    pub fn new(input: (&'static str, &Value), output: (&'static str, &Value)) -> Result<Self> {
        Ok(Self { input: Schema::new(input.0, input.1)?, output: Schema::new(output.0, output.1)? })
    }

    /// May take long.
    pub fn check_input(&self, json: &Payload) -> Result<()> {
        self.input.check(json, &mut { STEPS_MAX })
    }

    /// May take long.
    pub fn check_output(&self, json: &Payload) -> Result<()> {
        self.output.check(json, &mut { STEPS_MAX })
    }

    /// None: it would take longer than a moment.
    pub fn check_input_here(&self, json: &Payload) -> Option<Result<()>> {
        self.input.check_here(json).map(|(checked, _)| checked)
    }

    /// None: it would take longer than a moment.
    pub fn check_output_here(&self, json: &Payload) -> Option<Result<()>> {
        self.output.check_here(json).map(|(checked, _)| checked)
    }

    fn bytes(&self) -> usize {
        4_096 + self.input.fit.bytes + self.output.fit.bytes
    }
}

type Key = (Namespace, Arc<str>, u32);

/// Those in use. A version never changes, so nothing in here goes stale.
pub struct Pairs {
    aside: Arc<Aside>,
    known: Mutex<Cache<Key, Arc<Pair>>>,
}

impl Pairs {
    pub fn new(aside: Arc<Aside>) -> Self {
        Self { aside, known: Mutex::new(Cache::new(KEPT, KEPT_BYTES)) }
    }

    pub async fn get(&self, key: Key, make: impl FnOnce() -> Result<Pair> + Send + 'static) -> Result<Arc<Pair>> {
        if let Some(known) = self.known.lock().get(&key) {
            return Ok(known);
        }
        let made = Arc::new(self.aside.run(&key.0, make).await??);
        self.known.lock().put(key, made.clone(), made.bytes());
        Ok(made)
    }
}
