//! The configuration file: YAML, or TOML where its name ends so. Flat, but for the blocks that dialects bring along.

use super::{
    ConfigError,
    table::{Foreign, From, Table},
};
use serde_json::Value;
use std::{collections::BTreeMap, path::Path};
use windlass_yaml::Booleans;

const BYTES_MAX: usize = 256 << 10;

/// One entry as it stands in the file, under our name for it.
#[derive(Debug)]
pub struct Entry {
    pub setting: &'static str,
    pub text: String,
    pub line: usize,
    /// Written in another program's words; gives way to our own.
    pub foreign: bool,
}

pub fn read(path: &Path, text: &str, table: &Table) -> Result<Vec<Entry>, ConfigError> {
    let foreign = &table.foreign;
    let file = File { path, text };
    let mut entries = Vec::new();
    for (key, value) in file.parse()? {
        let line = file.line_of(&key, 1);
        if let Some(setting) = table.find(&key) {
            let text = flat(&value).ok_or_else(|| file.wrong(line, format!("{key} takes a single value")))?;
            entries.push(Entry { setting: setting.name, text, line, foreign: false });
        } else if let Some(meant) =
            foreign.iter().find(|foreign| matches!(foreign.from, From::Plain(name) if name == key))
        {
            let text = flat(&value).ok_or_else(|| file.wrong(line, format!("{key} takes a single value")))?;
            let text = (meant.convert)(&text).map_err(|why| file.wrong(line, format!("{key}: {why}")))?;
            entries.push(Entry { setting: meant.to.name, text, line, foreign: true });
        } else if is_block(foreign, &key) {
            file.read_block(&key, value, line, foreign, &mut entries)?;
        } else {
            let blocks = foreign.iter().filter_map(|foreign| block_of(foreign.from));
            let known = table.settings.iter().map(|setting| setting.name).chain(blocks);
            return Err(file.wrong(line, unknown(&key, known)));
        }
    }
    Ok(entries)
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn parse(&self) -> Result<BTreeMap<String, Value>, ConfigError> {
        let failed = |why: String| ConfigError::File { path: self.path.into(), why };
        if self.text.len() > BYTES_MAX {
            return Err(failed(format!("it is larger than {BYTES_MAX} bytes")));
        }
        if self.path.extension().is_some_and(|ending| ending == "toml") {
            return toml::from_str(self.text).map_err(|error| failed(error.to_string()));
        }
        if self.text.lines().all(|line| line.trim().is_empty() || line.trim().starts_with('#')) {
            return Ok(BTreeMap::new());
        }
        windlass_yaml::read(self.text, BYTES_MAX, Booleans::Loose).map_err(|fault| failed(fault.to_string()))
    }

    fn read_block(
        &self,
        block: &str,
        value: Value,
        line: usize,
        foreign: &[Foreign],
        entries: &mut Vec<Entry>,
    ) -> Result<(), ConfigError> {
        let Value::Object(keys) = value else {
            return Err(self.wrong(line, format!("{block} is a block of settings, not a value")));
        };
        for (key, value) in keys {
            let line = self.line_within(&key, line);
            let meant = foreign.iter().find(|foreign| is(foreign.from, block, &key));
            let Some(meant) = meant else {
                let known = foreign.iter().filter_map(|foreign| match foreign.from {
                    From::Key { block: of, key } if of == block => Some(key),
                    _ => None,
                });
                return Err(self.wrong(line, unknown(&key, known)));
            };
            let text = flat(&value).ok_or_else(|| self.wrong(line, format!("{block}.{key} takes a single value")))?;
            let text = (meant.convert)(&text).map_err(|why| self.wrong(line, format!("{block}.{key}: {why}")))?;
            entries.push(Entry { setting: meant.to.name, text, line, foreign: true });
        }
        Ok(())
    }

    /// The parsers tell values, not where they stood; keys are words, so looking for them finds them.
    fn line_of(&self, key: &str, from: usize) -> usize {
        let begins = |line: &str| {
            let line = line.trim_start().trim_start_matches(['"', '\'', '[']);
            let rest = line.strip_prefix(key).map(|rest| rest.trim_start_matches(['"', '\'']).trim_start());
            rest.is_some_and(|rest| rest.starts_with([':', '=', ']']))
        };
        let found = self.text.lines().enumerate().skip(from - 1).find(|(_, line)| begins(line));
        found.map_or(from, |(at, _)| at + 1)
    }

    /// Below the line the block begins on, or on that line: `jobs: {directory: x}`.
    fn line_within(&self, key: &str, block: usize) -> usize {
        let begins = self.text.lines().nth(block - 1).unwrap_or_default();
        let beside = begins.split_once('{').is_some_and(|(_, inside)| inside.contains(key));
        if beside { block } else { self.line_of(key, block + 1) }
    }

    fn wrong(&self, line: usize, why: String) -> ConfigError {
        ConfigError::Line { path: self.path.into(), line, why }
    }
}

fn block_of(from: From) -> Option<&'static str> {
    match from {
        From::Key { block, .. } => Some(block),
        From::Variable(_) | From::Plain(_) => None,
    }
}

fn is_block(foreign: &[Foreign], name: &str) -> bool {
    foreign.iter().any(|foreign| block_of(foreign.from) == Some(name))
}

fn is(from: From, in_block: &str, with_key: &str) -> bool {
    matches!(from, From::Key { block, key } if block == in_block && key == with_key)
}

fn flat(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(|item| flat(item).filter(|_| !item.is_array())).collect();
            Some(items?.join(","))
        }
        Value::Object(_) => None,
    }
}

fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    let nearest = known.map(|name| (distance(key, name), name)).min();
    match nearest {
        Some((steps, name)) if steps <= 2 + name.len() / 3 => {
            format!("there is no setting {key:?}; did you mean {name:?}?")
        }
        _ => format!("there is no setting {key:?}; `windlass config show` lists all there are"),
    }
}

/// Letters to change, add or remove to get from one to the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().take(100).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *known);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}
