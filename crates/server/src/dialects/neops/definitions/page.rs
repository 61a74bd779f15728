//! Versions of workflows in pages, with filters and counts.

use super::{
    super::{
        body::{Params, ok, time},
        error::{HttpError, Result},
    },
    DOCUMENT, last,
    rows::{self, Row},
    show,
};
use crate::app::App;
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::{cmp::Ordering, collections::BTreeMap};
use windlass_core::Timestamp;
use windlass_plan::neops::reference::EntityType;

const LIMIT: u64 = 50;
const LIMIT_MAX: u64 = 200;
const FACETS: u64 = 50;

pub async fn page(State(app): State<App>, params: Params) -> Result<Response> {
    let limit = params.number("limit", 0, LIMIT_MAX)?.unwrap_or(LIMIT) as usize;
    let (wanted, sort) = (Wanted::read(&params)?, Sort::read(params.get("sort"))?);
    let start = params.get("cursor").map(|text| sort.position(text)).transpose()?;
    let mut all = wanted.versions(rows::all(&app).await?);
    let runs = last::runs(&app).await?;
    all.iter_mut().for_each(|row| row.last = last::of(row, &runs, wanted.latest_only));
    let mut rows: Vec<&Row> = all.iter().filter(|row| wanted.fits(row, None)).collect();
    rows.sort_by(|a, b| sort.compare(&Position::of(a, &sort), &Position::of(b, &sort)));
    let total = rows.len();
    let after = |row: &&Row| start.as_ref().is_none_or(|start| sort.compare(&Position::of(row, &sort), start).is_gt());
    let mut rest = rows.into_iter().filter(after);
    let shown: Vec<&Row> = rest.by_ref().take(limit).collect();
    let next = rest.next().and(shown.last()).map(|last| sort.cursor(&Position::of(last, &sort)));
    let mut items = Vec::with_capacity(shown.len());
    for row in shown {
        items.push(item(&app, row).await?);
    }
    let mut body = json!({"items": items, "nextCursor": next, "total": total});
    if params.all("include").any(|part| part == "facets") {
        body["facets"] = facets(&params, &wanted, &all)?;
    }
    Ok(ok(body).into_response())
}

async fn item(app: &App, row: &Row) -> Result<Value> {
    let document = DOCUMENT.find(app, &row.id).await?;
    let description = document.and_then(|found| found.value.get("description").cloned()).unwrap_or_default();
    let mut item = show::head(row);
    item["description"] = description;
    item["seedEntity"] = json!(row.entry.seed.as_str());
    item["lastRunAt"] = json!(row.last.as_ref().map(|last| time(last.created_at)));
    item["lastRun"] = row.last.as_ref().map_or(Value::Null, |last| last.shown.clone());
    Ok(item)
}

/// Which rows are asked for.
struct Wanted {
    ids: Vec<String>,
    packages: Vec<String>,
    seeds: Vec<String>,
    workflows: Vec<String>,
    text: Option<String>,
    latest_only: bool,
    find_deleted: bool,
    deleted: bool,
    ran_after: Option<Timestamp>,
    has_run: Option<bool>,
}

impl Wanted {
    fn read(params: &Params) -> Result<Self> {
        let list = |name| params.all(name).map(str::to_owned).collect::<Vec<_>>();
        let seeds = list("seedEntity");
        if let Some(odd) = seeds.iter().find(|seed| EntityType::parse(seed).is_none()) {
            return Err(HttpError::bad(format!("seedEntity must be an entity type, not {odd:?}")));
        }
        let latest_only = if params.get("latestOnly").is_none() { true } else { params.flag("latestOnly")? };
        let text = params.get("q").map(str::to_lowercase);
        Ok(Self {
            ids: list("id"),
            packages: list("package"),
            seeds,
            workflows: list("workflow"),
            text,
            latest_only,
            find_deleted: params.flag("findDeleted")?,
            deleted: params.flag("deleted")?,
            ran_after: params.time("ranAfter")?,
            has_run: params.get("hasRun").map(|_| params.flag("hasRun")).transpose()?,
        })
    }

    /// Those that may be rows at all: live ones, deleted ones, or the one that stands for its workflow.
    fn versions(&self, all: Vec<Row>) -> Vec<Row> {
        let mut by_name: BTreeMap<String, Vec<Row>> = BTreeMap::new();
        for row in all {
            by_name.entry(row.name.clone()).or_default().push(row);
        }
        by_name.into_values().flat_map(|versions| self.of_workflow(versions)).collect()
    }

    fn of_workflow(&self, versions: Vec<Row>) -> Vec<Row> {
        let (live, dead): (Vec<Row>, Vec<Row>) = versions.into_iter().partition(|row| row.entry.deleted_at.is_none());
        let mut rows = match (self.deleted, self.find_deleted, self.latest_only) {
            (true, _, true) if !live.is_empty() => Vec::new(),
            (true, ..) => dead,
            (false, true, true) if live.is_empty() => dead,
            (false, true, false) => [live, dead].concat(),
            (false, ..) => live,
        };
        if self.latest_only {
            rows = rows.into_iter().max_by_key(|row| row.entry.version).into_iter().collect();
        }
        rows
    }

    /// `but`: a filter that is left out.
    fn fits(&self, row: &Row, but: Option<&str>) -> bool {
        let one_of = |name: &str, list: &[String], value: &str| {
            but == Some(name) || list.is_empty() || list.iter().any(|wanted| wanted == value)
        };
        one_of("id", &self.ids, &row.id)
            && one_of("package", &self.packages, row.package())
            && one_of("seedEntity", &self.seeds, row.entry.seed.as_str())
            && one_of("workflow", &self.workflows, &row.name)
            && self.ran_after.is_none_or(|after| row.last.as_ref().is_some_and(|last| last.created_at >= after))
            && self.has_run.is_none_or(|has| has == row.last.is_some())
            && self.text.as_ref().is_none_or(|text| row.id.to_lowercase().contains(text))
    }
}

/// How many rows there are of each package and each type of entity, under all other filters.
fn facets(params: &Params, wanted: &Wanted, rows: &[Row]) -> Result<Value> {
    let most = params.number("facetLimit", 1, LIMIT_MAX)?.unwrap_or(FACETS) as usize;
    let search = params.get("facetQPackage").unwrap_or_default();
    let count = |name: &str, of: fn(&Row) -> &str| {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        rows.iter().filter(|row| wanted.fits(row, Some(name))).for_each(|row| *counts.entry(of(row)).or_default() += 1);
        let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    };
    let shown = |counts: Vec<(&str, usize)>| -> Vec<Value> {
        counts.into_iter().take(most).map(|(value, count)| json!({"value": value, "count": count})).collect()
    };
    let packages = count("package", Row::package).into_iter().filter(|(value, _)| value.contains(search)).collect();
    let seeds = count("seedEntity", |row| row.entry.seed.as_str());
    Ok(json!({"package": shown(packages), "seedEntity": shown(seeds)}))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Name,
    Package,
    Created,
    LastRun,
}

struct Sort {
    by: By,
    descending: bool,
}

/// Where a row stands in the order. Ids make it unique.
#[derive(Debug, PartialEq, Eq)]
struct Position {
    key: String,
    id: String,
}

impl Position {
    fn of(row: &Row, sort: &Sort) -> Self {
        let key = match sort.by {
            By::Name => row.own_name().to_owned(),
            By::Package => row.package().to_owned(),
            // As wide as times get, so that texts sort like numbers.
            By::Created => format!("{:020}", row.entry.created_at.0),
            By::LastRun => row.last.as_ref().map_or(String::new(), |last| format!("{:020}", last.created_at.0)),
        };
        Self { key, id: row.id.clone() }
    }
}

impl Sort {
    fn read(text: Option<&str>) -> Result<Self> {
        let text = text.unwrap_or("name:asc");
        let odd = || {
            HttpError::bad(format!("sort must be name, package, createdAt or lastRun with :asc or :desc, not {text:?}"))
        };
        let (field, order) = text.split_once(':').ok_or_else(odd)?;
        let by = match field {
            "name" => By::Name,
            "package" => By::Package,
            "createdAt" => By::Created,
            "lastRun" => By::LastRun,
            _ => return Err(odd()),
        };
        match order {
            "asc" | "desc" => Ok(Self { by, descending: order == "desc" }),
            _ => Err(odd()),
        }
    }

    fn compare(&self, a: &Position, b: &Position) -> Ordering {
        // Rows without a value come last, whichever way.
        let none = a.key.is_empty().cmp(&b.key.is_empty());
        let keys = none.then_with(|| if self.descending { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) });
        keys.then_with(|| a.id.cmp(&b.id))
    }

    fn cursor(&self, position: &Position) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(json!([position.key, position.id]).to_string())
    }

    fn position(&self, cursor: &str) -> Result<Position> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok();
        let parts: Option<(String, String)> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let (key, id) = parts.ok_or_else(|| HttpError::bad("cursor is not one that a page answered with"))?;
        Ok(Position { key, id })
    }
}
