//! Patterns of expressions: compiled once, within limits, and what looking for one costs.
//!
//! The engine never backtracks, but it may keep as many places of a pattern in mind as the pattern has when it is written
//! out, for each byte of the text. So the price of a byte goes by the size of the compiled pattern, classes of characters
//! being one place each, however large they are.

use parking_lot::Mutex;
use regex::{Regex, RegexBuilder};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Weak},
};
use windlass_core::cache::Cache;

pub const LENGTH_MAX: usize = 1_000;
/// Classes such as `\pL` have hundreds of ranges each.
const CLASSES_MAX: usize = 16;
const NEST_MAX: u32 = 32;
/// Bytes a compiled pattern may have. The smallest that suffices sets the price.
const SIZES: [usize; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];
/// Compiled patterns that are kept although nobody uses them, and their bytes, in each generation of the cache.
pub const KEPT: usize = 1_000;
pub const KEPT_BYTES: usize = 2 << 20;
/// Patterns written out in one workflow, and their KiB when they are compiled.
pub const WRITTEN_MAX: usize = 100;
const WRITTEN_KIB_MAX: u64 = 4_096;

/// Steps a byte of text costs with the largest pattern.
pub(crate) const PRICE_MAX: u64 = (SIZES[SIZES.len() - 1] >> 10) as u64;
/// Steps a byte of a pattern costs that has to be compiled.
pub const COMPILE_PRICE: u64 = 500;

#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
    size: usize,
    places: usize,
}

impl Pattern {
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Steps for each byte of text.
    pub fn price(&self) -> u64 {
        (self.places >> 10) as u64
    }

    /// KiB of the compiled pattern, at most.
    pub fn kib(&self) -> u64 {
        (self.size >> 10) as u64
    }
}

/// Why a pattern cannot be used.
#[derive(Debug)]
pub struct Wrong {
    pub why: String,
    /// It would take too much; otherwise it cannot be read.
    pub too_large: bool,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}

pub type Made = Result<Arc<Pattern>, Arc<Wrong>>;

fn too_large<T>(why: String) -> Result<T, Arc<Wrong>> {
    Err(Arc::new(Wrong { why, too_large: true }))
}

pub struct PatternCache {
    pub made: Cache<String, Made>,
    /// All that somebody may still use, so that a crowd of others does not have these compiled again.
    pub used: HashMap<String, Weak<Pattern>>,
}

impl Default for PatternCache {
    fn default() -> Self {
        Self { made: Cache::new(KEPT, KEPT_BYTES), used: HashMap::new() }
    }
}

static ALL: LazyLock<Mutex<PatternCache>> = LazyLock::new(Mutex::default);

/// The patterns that are written out in one workflow. Those that cannot be used count as well: finding that out costs most.
#[derive(Debug, Default)]
pub struct Written {
    seen: usize,
    kib: u64,
}

impl Written {
    pub fn get(&mut self, text: &str) -> Result<Arc<Pattern>, String> {
        self.seen += 1;
        if self.seen > WRITTEN_MAX {
            return Err(format!("a workflow may have {WRITTEN_MAX} patterns, not more"));
        }
        if self.kib >= WRITTEN_KIB_MAX {
            return Err(format!(
                "the patterns of a workflow take more than {WRITTEN_KIB_MAX} KiB when they are compiled"
            ));
        }
        let made = get(text).map_err(|wrong| wrong.to_string())?;
        self.kib += made.kib();
        Ok(made)
    }
}

/// The compiled pattern, kept for the next time; what cannot be used is kept as well.
pub fn get(text: &str) -> Made {
    fits(text)?;
    if let Some(made) = ALL.lock().get(text) {
        return made;
    }
    let made = compile(text);
    ALL.lock().put(text, made.clone());
    made
}

/// Limits that a look at the text suffices for.
fn fits(text: &str) -> Result<(), Arc<Wrong>> {
    if text.len() > LENGTH_MAX {
        return too_large(format!("a pattern may have {LENGTH_MAX} bytes, not {}", text.len()));
    }
    let classes = text.match_indices("\\p").count() + text.match_indices("\\P").count();
    if classes > CLASSES_MAX {
        return too_large(format!("{text:?} has {classes} classes of characters (\\p); at most {CLASSES_MAX}"));
    }
    Ok(())
}

fn compile(text: &str) -> Made {
    match build(text) {
        Ok(Some((regex, size))) => {
            let places = build(&without_classes(text)).ok().flatten().map_or(size, |(_, places)| places.min(size));
            Ok(Arc::new(Pattern { regex, size, places }))
        }
        Ok(None) => {
            let most = SIZES[SIZES.len() - 1];
            too_large(format!(
                "the pattern {text:?} takes more than {most} bytes when it is compiled, the most that it may take"
            ))
        }
        Err(error) => {
            let told = error.to_string();
            let last = told.lines().last().unwrap_or("it cannot be read");
            Err(Arc::new(Wrong { why: format!("{text:?} is not a pattern: {last}"), too_large: false }))
        }
    }
}

/// With the smallest size that suffices; None: none does.
fn build(text: &str) -> Result<Option<(Regex, usize)>, regex::Error> {
    for size in SIZES {
        let made = RegexBuilder::new(text).size_limit(size).dfa_size_limit(4 * size).nest_limit(NEST_MAX).build();
        match made {
            Ok(regex) => return Ok(Some((regex, size))),
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The pattern with one letter in place of every class that has a name.
fn without_classes(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.chars());
    while let Some(sign) = rest.next() {
        match (sign, if sign == '\\' { rest.next() } else { None }) {
            ('.', _) | ('\\', Some('w' | 'W' | 'd' | 'D' | 's' | 'S')) => out.push('a'),
            ('\\', Some('p' | 'P')) => {
                if rest.next() == Some('{') {
                    rest.by_ref().find(|sign| *sign == '}');
                }
                out.push('a');
            }
            (sign, next) => {
                out.push(sign);
                out.extend(next);
            }
        }
    }
    out
}

impl PatternCache {
    pub fn get(&mut self, text: &str) -> Option<Made> {
        self.made.get(&text.to_owned()).or_else(|| self.used.get(text)?.upgrade().map(Ok))
    }

    pub fn put(&mut self, text: &str, made: Made) {
        if let Ok(made) = &made {
            if self.used.len().is_power_of_two() {
                self.used.retain(|_, made| made.strong_count() > 0);
            }
            self.used.insert(text.to_owned(), Arc::downgrade(made));
        }
        let weight = weight(text, &made);
        self.made.put(text.to_owned(), made, weight);
    }
}

fn weight(text: &str, made: &Made) -> usize {
    text.len() + 256 + made.as_ref().map_or_else(|wrong| wrong.why.len(), |pattern| pattern.size)
}
