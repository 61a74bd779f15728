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
const KEPT: usize = 1_000;
const KEPT_BYTES: usize = 2 << 20;
/// Patterns written out in one workflow, and their KiB when they are compiled.
const WRITTEN_MAX: usize = 100;
const WRITTEN_KIB_MAX: u64 = 4_096;

/// Steps a byte of text costs with the largest pattern.
pub(crate) const PRICE_MAX: u64 = (SIZES[SIZES.len() - 1] >> 10) as u64;
/// Steps a byte of a pattern costs that has to be compiled.
pub const COMPILE_PRICE: u64 = 500;

#[derive(Debug)]
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

type Made = Result<Arc<Pattern>, Arc<Wrong>>;

fn too_large<T>(why: String) -> Result<T, Arc<Wrong>> {
    Err(Arc::new(Wrong { why, too_large: true }))
}

struct PatternCache {
    made: Cache<String, Made>,
    /// All that somebody may still use, so that a crowd of others does not have these compiled again.
    used: HashMap<String, Weak<Pattern>>,
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
    fn get(&mut self, text: &str) -> Option<Made> {
        self.made.get(&text.to_owned()).or_else(|| self.used.get(text)?.upgrade().map(Ok))
    }

    fn put(&mut self, text: &str, made: Made) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compiled_within_limits_and_kept_whatever_came_of_it() {
        assert!(get("^[a-z]+$").unwrap().is_match("abc"));
        assert!(get("^[a-z]+$").unwrap().price() < get("^[a-z]{1000}$").unwrap().price());
        assert_eq!(get("^[a-z]+$").unwrap().price(), get(r"^\w+\pL*\p{Greek}*$").unwrap().price());
        let table = [
            (r"(\pL{30}){6}[k]".to_owned(), "compiled"),
            ("(((((a{20}){20}){20}){20}){20})".to_owned(), "compiled"),
            (r"\pL".repeat(17), "classes"),
            ("a".repeat(1_001), "1000 bytes"),
            ("(".repeat(400) + &")".repeat(400), "pattern"),
            ("(a".to_owned(), "pattern"),
        ];
        for (text, why) in table {
            for _ in 0..2 {
                let told = get(&text).unwrap_err();
                assert!(told.why.contains(why), "{told}");
            }
        }
        let first = get("kept").unwrap();
        assert!(Arc::ptr_eq(&first, &get("kept").unwrap()), "compiled once");
    }

    #[test]
    fn a_pattern_in_use_is_not_compiled_again_however_many_others_come() {
        let mut kept = PatternCache::default();
        let made = |size| Ok(Arc::new(Pattern { regex: Regex::new("a").unwrap(), size, places: size }));
        let own: Made = made(1);
        kept.put("own", own.clone());
        for at in 0..3 * KEPT {
            kept.put(&format!("other{at}"), made(64 << 10));
        }
        assert!(kept.made.get(&"own".to_owned()).is_none());
        assert!(Arc::ptr_eq(&kept.get("own").unwrap().unwrap(), own.as_ref().unwrap()));
        drop(own);
        assert!(kept.get("own").is_none(), "nor is it kept when nobody uses it");
        let others = kept.used.values().filter(|made| made.strong_count() > 0).count();
        let most = 2 * KEPT_BYTES / (64 << 10);
        assert!(others <= most && kept.used.len() <= 4 * most, "{others} of {}", kept.used.len());
    }

    #[test]
    fn a_workflow_has_so_many_patterns_and_no_more() {
        let mut written = Written::default();
        (0..WRITTEN_MAX).for_each(|at| drop(written.get(&format!("({at}"))));
        assert!(written.get("a").unwrap_err().contains("100 patterns"), "those that are wrong cost most");
        let mut written = Written::default();
        let large = (0..WRITTEN_MAX).find_map(|at| written.get(&format!("a{{2000}}{at}")).err());
        assert!(large.unwrap().contains("KiB"));
    }
}
