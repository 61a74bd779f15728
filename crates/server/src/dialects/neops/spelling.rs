//! Paths as this protocol's callers spell them: literal parts in any case, and a slash at the end or none. Names keep theirs.

use super::{Own, Settings};
use crate::{config::values::Values, dialect::Mount};
use std::sync::{Arc, OnceLock};

/// Paths of this surface, and the one it shares with all others.
fn paths() -> Vec<Vec<&'static str>> {
    let own = Own::new(Settings::read(&Values::default()));
    let routes = super::routes(&Mount(Arc::new(own)));
    let paths = routes.iter().map(|route| route.path).filter(|path| *path != "/");
    paths.chain(["/health"]).map(|path| path.split('/').skip(1).collect()).collect()
}

/// None: it is spelt as the table has it, or is none of these.
pub fn respell(path: &str) -> Option<String> {
    static PATHS: OnceLock<Vec<Vec<&str>>> = OnceLock::new();
    let trimmed = path.strip_prefix('/')?.strip_suffix('/').unwrap_or(&path[1..]);
    let parts: Vec<&str> = trimmed.split('/').collect();
    let fits = |table: &&Vec<&'static str>| {
        table.len() == parts.len() && table.iter().zip(&parts).all(|(table, part)| fits(table, part))
    };
    // A literal goes before a name, as in the table of routes.
    let literals = |table: &&Vec<&'static str>| table.iter().map(|part| !is_name(part)).collect::<Vec<_>>();
    let table = PATHS.get_or_init(paths).iter().filter(fits).max_by_key(literals)?;
    let spelt = table.iter().zip(&parts).map(|(table, part)| if is_name(table) { *part } else { *table });
    let spelt = spelt.fold(String::new(), |path, part| path + "/" + part);
    (spelt != path).then_some(spelt)
}

fn is_name(part: &str) -> bool {
    part.starts_with('{')
}

fn fits(table: &str, part: &str) -> bool {
    if is_name(table) { !part.is_empty() } else { table.eq_ignore_ascii_case(part) }
}
