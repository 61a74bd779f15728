//! A workflow as people keep it: a file of ours, or one of a dialect's, which becomes one of ours.

use crate::dialects;
use anyhow::{Context, bail};
use serde_json::Value;
use std::{io::Read, path::Path};
use windlass_api::RawValue;

const BYTES_MAX: u64 = 4 << 20;

pub enum Definition {
    /// As it was written: the server names the lines where something is wrong.
    Native(String),
    Converted(Value),
}

impl Definition {
    pub fn parts(self) -> (Option<String>, Option<Box<RawValue>>) {
        match self {
            Definition::Native(source) => (Some(source), None),
            Definition::Converted(value) => (None, RawValue::from_string(value.to_string()).ok()),
        }
    }

    /// What it says about a run's input. None: nothing, or the file cannot be read, which the server explains better.
    pub fn input_schema(&self) -> Option<Value> {
        match self {
            Definition::Native(source) => input_schema(source),
            Definition::Converted(_) => None,
        }
    }

    pub fn source(self) -> String {
        match self {
            Definition::Native(source) => source,
            Definition::Converted(value) => value.to_string(),
        }
    }
}

/// Of a workflow in the native format.
pub fn input_schema(source: &str) -> Option<Value> {
    windlass_plan::format::read(source).ok()?.input_schema.map(|schema| schema.value)
}

/// None: there is no such file.
pub fn read(what: &str) -> anyhow::Result<Option<Definition>> {
    let mut text = String::new();
    if what == "-" {
        std::io::stdin().take(BYTES_MAX + 1).read_to_string(&mut text).context("standard input cannot be read")?;
    } else if Path::new(what).is_file() {
        let file = std::fs::File::open(what).with_context(|| format!("{what} cannot be read"))?;
        file.take(BYTES_MAX + 1).read_to_string(&mut text).with_context(|| format!("{what} cannot be read"))?;
    } else if what.contains(['/', '.']) {
        bail!("there is no file {what}");
    } else {
        return Ok(None);
    }
    if text.len() as u64 > BYTES_MAX {
        bail!("{what} is larger than {BYTES_MAX} bytes, the limit for a workflow file");
    }
    parse(text).map(Some).with_context(|| format!("{what} is not a workflow"))
}

fn parse(text: String) -> anyhow::Result<Definition> {
    match dialects::workflow(&text) {
        Some(converted) => converted.map(Definition::Converted),
        None => Ok(Definition::Native(text)),
    }
}
