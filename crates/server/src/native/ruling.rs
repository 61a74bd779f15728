//! What tokens and principals have in common: over whom an admin rules, what it may see of them, and that somebody stays who can
//! give rights back.

use super::{jobs::page_size, records_page};
use crate::{
    admins,
    app::App,
    auth::{Caller, system_namespace},
    problem::{Code, Problem, Result},
};
use std::sync::Arc;
use windlass_api::page::{Page, Paging};
use windlass_core::{
    Command, Namespace, Record, Refusal,
    commands::{all::All, tokens::NeedAdmin},
    principal::Token,
};

/// Rows looked at for one page by an admin of some namespaces, who sees few of them.
const SCAN_MAX: usize = 100_000;
const SCAN_STEP: u32 = 1_000;

/// Whether an admin may make, list and end what stands for a principal with these namespaces.
pub fn rules(caller: &Caller, namespaces: &[Namespace]) -> bool {
    let within = |namespace: &Namespace| caller.namespaces.contains(namespace);
    caller.namespaces.is_empty() || (!namespaces.is_empty() && namespaces.iter().all(within))
}

/// Rows in the order of their keys, looked through for those that a caller may see.
pub struct Scan {
    step: Paging,
    looked: usize,
    is_over: bool,
}

impl Scan {
    pub fn new(cursor: Option<String>) -> Self {
        Self { step: Paging { limit: Some(SCAN_STEP), cursor }, looked: 0, is_over: false }
    }

    pub async fn next(&mut self, app: &App, kind: &str) -> Result<Option<Vec<Record>>> {
        if self.is_over {
            return Ok(None);
        }
        if self.looked >= SCAN_MAX {
            let why = format!(
                "there are more than {SCAN_MAX} rows to look through for those of this token's namespaces; ask with a token that \
                 is not limited to namespaces"
            );
            return Err(Problem::new(Code::TooMany, why));
        }
        let (found, next) = records_page(app, &system_namespace(), kind, &self.step).await?;
        self.looked += found.len();
        self.is_over = next.is_none();
        self.step.cursor = next;
        Ok(Some(found))
    }
}

/// A page of what a caller may see. The next one begins after the last that was shown, so that a cursor tells nothing of others.
pub struct Shown<T> {
    items: Vec<T>,
    limit: usize,
    last: Option<Arc<str>>,
    is_full: bool,
}

impl<T> Shown<T> {
    pub fn new(limit: Option<u32>) -> Result<Self> {
        Ok(Self { items: Vec::new(), limit: page_size(limit)?, last: None, is_full: false })
    }

    /// False: there is no room, but something to show.
    pub fn add(&mut self, key: &Arc<str>, item: T) -> bool {
        self.is_full = self.items.len() == self.limit;
        if !self.is_full {
            self.items.push(item);
            self.last = Some(key.clone());
        }
        !self.is_full
    }

    pub fn page(self, cursor: impl FnOnce(Arc<str>) -> String) -> Page<T> {
        Page { items: self.items, next: self.last.filter(|_| self.is_full).map(cursor) }
    }
}

/// The command, refused if nobody were left to undo it: `but` is no admin after it, and `stays` tells which tokens are valid. An admin of some namespaces
/// rules over none of everything, so there is nothing to look for.
pub async fn sparing(
    app: &App,
    caller: &Caller,
    force: bool,
    command: Command,
    but: Option<&Arc<str>>,
    stays: impl Fn(&str, &Token) -> bool,
) -> Result<Command> {
    if force || !caller.rules_all() {
        return Ok(command);
    }
    let found = admins::find(&app.engine, caller.token.as_ref(), but, stays).await?;
    let hash = found.ok_or_else(|| Problem::from(Refusal::LastAdmin))?;
    Ok(All { commands: vec![command, NeedAdmin { namespace: system_namespace(), hash }.into()] }.into())
}
