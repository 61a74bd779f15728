//! Runs in pages, with filters, counts and a histogram.

use super::row::{self, Row};
use crate::dialects::neops::{HttpError, Neops, Result, body::Params, histogram, listing::large, namespace};
use axum::{extract::State, response::Response};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_api::Uuid;
use windlass_core::Timestamp;

const LIMIT: u64 = 50;
const LIMIT_MAX: u64 = 200;
const FACETS: u64 = 50;
/// Runs that a page is picked from.
const LOOKED_AT: usize = 20_000;

/// A filter, and what of a run it is about.
type Filter = (&'static str, fn(&Row) -> Option<String>);

const FILTERS: [Filter; 8] = [
    ("status", |row| Some(row.status.as_str().to_owned())),
    ("reasonCode", |row| row.reason.as_ref().map(|(code, _)| code.clone())),
    ("unsafeCause", |row| row.unsafe_cause.clone()),
    ("workflowId", |row| Some(row.workflow_id.clone())),
    ("workflow", |row| row.workflow_id.rsplit_once(':').map(|(name, _)| name.to_owned())),
    ("startedBy", |row| row.started_by.clone()),
    ("triggerType", |row| Some(json!(row.trigger).as_str().unwrap_or_default().to_owned())),
    ("id", |row| Some(row.uuid.to_string())),
];

pub async fn page(State(neops): State<Neops>, params: Params) -> Result<Response> {
    let limit = params.number("limit", 0, LIMIT_MAX)?.unwrap_or(LIMIT) as usize;
    let (wanted, sort) = (Wanted::read(&params)?, Sort::read(params.get("sort"))?);
    let start = params.get("cursor").map(cursor).transpose()?;
    let asks = |part: &str| params.all("include").flat_map(|asked| asked.split(',')).any(|asked| asked == part);
    let facet_limit = params.number("facetLimit", 1, LIMIT_MAX)?.unwrap_or(FACETS) as usize;
    let (facets, histogram) = (asks("facets").then_some(facet_limit), asks("histogram"));
    let mut all = Vec::new();
    row::each(&neops, None, |(row, _)| {
        all.push(Light::new(row, &wanted));
        all.len() < LOOKED_AT
    })
    .await?;
    let pick = Pick { limit, wanted, sort, start, facets, histogram };
    let (mut body, shown) = neops.aside.run(&namespace(), move || pick.pick(&all)).await?;
    let mut items = Vec::with_capacity(shown.len());
    for run in shown {
        items.extend(row::find(&neops, run).await?.map(|kept| kept.value.head()));
    }
    body["items"] = Value::Array(items);
    large(&neops, StatusCode::OK, body).await
}

/// A run without what may be large, and what was found out before that went.
struct Light {
    row: Row,
    on_target: bool,
    locked: bool,
}

impl Light {
    fn new(mut row: Row, wanted: &Wanted) -> Self {
        let on_target = wanted.targets.is_empty() || wanted.targets.iter().any(|id| row.ids.contains(id));
        let locked = !row.held.is_empty();
        row.lighten();
        Self { row, on_target, locked }
    }
}

/// What is asked of all runs that were looked at.
struct Pick {
    limit: usize,
    wanted: Wanted,
    sort: Sort,
    start: Option<(String, i64, String)>,
    facets: Option<usize>,
    histogram: bool,
}

impl Pick {
    /// The page without its items, and which these are.
    fn pick(&self, all: &[Light]) -> (Value, Vec<Uuid>) {
        let sort = &self.sort;
        let mut rows: Vec<&Row> = all.iter().filter(|one| self.wanted.fits(one, None)).map(|one| &one.row).collect();
        rows.sort_by_cached_key(|row| sort.key(row));
        if sort.descending {
            rows.reverse();
        }
        let after = |row: &&Row| match &self.start {
            Some(start) if sort.descending => sort.key(row) < *start,
            Some(start) => sort.key(row) > *start,
            None => true,
        };
        let mut rest = rows.iter().copied().filter(after);
        let shown: Vec<&Row> = rest.by_ref().take(self.limit).collect();
        let next =
            rest.next().and(shown.last()).map(|last| BASE64_URL_SAFE_NO_PAD.encode(json!(sort.key(last)).to_string()));
        let mut body = json!({"items": [], "nextCursor": next, "total": rows.len()});
        if let Some(most) = self.facets {
            body["facets"] = facets(most, &self.wanted, all);
        }
        if self.histogram {
            body["histogram"] = histogram::of(rows.iter().map(|row| (row.created_at, row.status.as_str())).collect());
        }
        (body, shown.iter().map(|row| row.uuid).collect())
    }
}

fn cursor(text: &str) -> Result<(String, i64, String)> {
    let read = BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.ok_or_else(|| HttpError::bad("cursor is not one that a page gave"))
}

struct Sort {
    by_workflow: bool,
    descending: bool,
}

impl Sort {
    fn read(text: Option<&str>) -> Result<Self> {
        let (field, order) =
            text.unwrap_or("createdAt:desc").split_once(':').unwrap_or((text.unwrap_or_default(), "asc"));
        let (by_workflow, descending) = match (field, order) {
            ("createdAt", "asc") => (false, false),
            ("createdAt", "desc") => (false, true),
            ("workflow", "asc") => (true, false),
            ("workflow", "desc") => (true, true),
            _ => return Err(HttpError::bad("sort must be createdAt or workflow, with :asc or :desc")),
        };
        Ok(Self { by_workflow, descending })
    }

    fn key(&self, row: &Row) -> (String, i64, String) {
        let first = if self.by_workflow { row.workflow_id.clone() } else { String::new() };
        (first, row.created_at.0, row.uuid.to_string())
    }
}

/// Which runs are asked for.
struct Wanted {
    lists: Vec<Vec<String>>,
    targets: Vec<u64>,
    locked: Option<bool>,
    text: Option<String>,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
    changed: Option<Timestamp>,
}

impl Wanted {
    fn read(params: &Params) -> Result<Self> {
        let lists = FILTERS.iter().map(|(name, _)| params.all(name).map(str::to_owned).collect()).collect();
        let target =
            |text: &str| text.parse().map_err(|_| HttpError::bad(format!("target must be an id, not {text:?}")));
        let locked = params.get("cmsResourcesLocked").map(|_| params.flag("cmsResourcesLocked")).transpose()?;
        Ok(Self {
            lists,
            targets: params.all("target").map(target).collect::<Result<_>>()?,
            locked,
            text: params.get("q").map(str::to_lowercase),
            after: params.time("createdAfter")?,
            before: params.time("createdBefore")?,
            changed: params.time("changedSince")?,
        })
    }

    /// `but`: a filter that is left out.
    fn fits(&self, Light { row, on_target, locked }: &Light, but: Option<&str>) -> bool {
        let mut filters = FILTERS.iter().zip(&self.lists);
        filters.all(|((name, of), list)| {
            but == Some(name) || list.is_empty() || of(row).is_some_and(|value| list.contains(&value))
        }) && *on_target
            && self.locked.is_none_or(|wanted| wanted == *locked)
            && self.after.is_none_or(|at| row.created_at >= at)
            && self.before.is_none_or(|at| row.created_at < at)
            && self.changed.is_none_or(|at| row.updated_at >= at)
            && self
                .text
                .as_ref()
                .is_none_or(|text| row.workflow_id.to_lowercase().contains(text) || row.uuid.to_string().contains(text))
    }
}

fn facets(most: usize, wanted: &Wanted, rows: &[Light]) -> Value {
    let mut shown = Map::new();
    for (name, of) in FILTERS.iter().filter(|(name, _)| *name != "id") {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let fitting = rows.iter().filter(|one| wanted.fits(one, Some(name))).map(|one| &one.row);
        fitting.filter_map(of).for_each(|value| *counts.entry(value).or_default() += 1);
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let counts = counts.into_iter().take(most).map(|(value, count)| json!({"value": value, "count": count}));
        shown.insert((*name).into(), counts.collect());
    }
    Value::Object(shown)
}
