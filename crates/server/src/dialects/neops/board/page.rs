//! A page of jobs, by many filters, with what there is to choose from.

use super::{
    facets,
    list::{self, every, query, rows},
    show::{Row, Status},
};
use crate::{
    app::App,
    dialects::neops::{
        HttpError, Result,
        body::{Json, Params, ok},
        cursor::Cursor,
        job::{BLOCK, RUN},
        listing::LIST_MAX,
        namespace, results,
    },
};
use axum::extract::State;
use serde_json::{Value, json};
use windlass_core::{Facet, JobId, JobKey, Timestamp};

const LIMIT: u64 = 50;
const LIMIT_MAX: u64 = 200;
/// Result data of one page.
const DATA_MAX: usize = 1 << 20;

pub const STATES: [&str; 7] = ["pending", "polled", "success", "success-ack", "failed", "failed-ack", "canceled"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Created,
    Label,
    Block,
}

struct Order {
    by: By,
    descending: bool,
}

impl Order {
    fn read(params: &Params) -> Result<Self> {
        let text = params.get("sort").unwrap_or("createdAt:asc");
        let (name, direction) = text.split_once(':').unwrap_or((text, "asc"));
        let by = match name {
            "createdAt" => Some(By::Created),
            "stepLabel" => Some(By::Label),
            "functionBlockId" => Some(By::Block),
            _ => None,
        };
        let bad = || {
            HttpError::bad(format!("sort: {text:?} is not createdAt, stepLabel or functionBlockId with :asc or :desc"))
        };
        let descending = match direction {
            "asc" => false,
            "desc" => true,
            _ => return Err(bad()),
        };
        Ok(Self { by: by.ok_or_else(bad)?, descending })
    }

    fn key(&self, row: &Row) -> (String, String) {
        let first = match self.by {
            By::Created => format!("{:020}", row.created.0.max(0)),
            By::Label => row.step_label.clone(),
            By::Block => row.function_block_id.to_string(),
        };
        (first, row.job_id.clone())
    }
}

/// A filter: its name, and what a row has there.
type Field = (&'static str, fn(&Row) -> Option<String>);

pub const FIELDS: [Field; 10] = [
    ("id", |row| Some(row.job_id.clone())),
    ("status", |row| Some(row.status.as_str().into())),
    ("state", |row| Some(row.state().into())),
    ("stepLabel", |row| Some(row.step_label.clone())),
    ("resultStatus", |row| row.result_status.clone()),
    ("workflowExecutionId", |row| Some(row.workflow_execution_id.clone())),
    ("functionBlockId", |row| Some(row.function_block_id.to_string())),
    ("type", |row| Some(row.r#type.as_str().into())),
    ("workerId", |row| row.worker_id.clone()),
    ("entityId", |row| row.entity_id.map(|id| id.to_string())),
];

pub struct Filters<'a> {
    params: &'a Params,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
    changed: Option<Timestamp>,
    text: Option<String>,
}

impl<'a> Filters<'a> {
    fn read(params: &'a Params) -> Result<Self> {
        let words = [("status", &Status::ALL.map(Status::as_str)[..]), ("state", &STATES[..])];
        for (name, known) in words {
            if let Some(odd) = params.all(name).find(|word| !known.contains(word)) {
                return Err(HttpError::bad(format!("{name}: {odd:?} is none of {}", known.join(", "))));
            }
        }
        Ok(Self {
            params,
            after: params.time("createdAfter")?,
            before: params.time("createdBefore")?,
            changed: params.time("changedSince")?,
            text: params.get("q").map(str::to_lowercase).filter(|text| !text.is_empty()),
        })
    }

    /// `but`: whatever is asked for under this name.
    pub fn fit(&self, row: &Row, but: Option<&str>) -> bool {
        let fields = FIELDS.iter().filter(|(name, _)| Some(*name) != but);
        let mut fields = fields.filter(|(name, _)| self.params.get(name).is_some());
        fields.all(|(name, of)| of(row).is_some_and(|is| self.params.all(name).any(|wanted| wanted == is)))
            && self.after.is_none_or(|after| row.created >= after)
            && self.before.is_none_or(|before| row.created < before)
            && self.changed.is_none_or(|since| row.updated >= since)
            && self.text.as_ref().is_none_or(|text| {
                let id = row.function_block_id.to_lowercase();
                row.step_label.to_lowercase().contains(text) || id.contains(text) || row.job_id.contains(text)
            })
    }
}

/// The narrowest index that fits.
fn facet(params: &Params) -> Facet {
    let only = |name: &str| {
        let mut all = params.all(name);
        all.next().filter(|_| all.next().is_none()).map(str::to_owned)
    };
    let run = only("workflowExecutionId").map(|run| Facet::new(RUN, &run));
    run.or_else(|| only("functionBlockId").map(|block| Facet::new(BLOCK, &block))).unwrap_or_else(every)
}

pub async fn page(State(app): State<App>, params: Params) -> Result<Json<Value>> {
    of(&app, &params, facet(&params)).await
}

/// A page of those that have the facet. Only the newest of very many are looked at.
pub async fn of(app: &App, params: &Params, facet: Facet) -> Result<Json<Value>> {
    let (order, filters) = (Order::read(params)?, Filters::read(params)?);
    let limit = params.number("limit", 0, LIMIT_MAX)?.unwrap_or(LIMIT) as usize;
    let most = params.number("facetLimit", 1, LIMIT_MAX)?.unwrap_or(20) as usize;
    let cursor = params.get("cursor").map(Cursor::read).transpose()?;
    let (jobs, more) = list::read(app, query(facet, Vec::new()), LIST_MAX, |_| true).await?;
    let all = rows(app, &jobs).await?;
    let includes: Vec<&str> = params.all("include").flat_map(|words| words.split(',')).collect();
    let mut page = json!({});
    if includes.contains(&"facets") {
        page["facets"] = facets::of(&all, &filters, most, more);
    }
    let mut fitting: Vec<Row> = all.into_iter().filter(|row| filters.fit(row, None)).collect();
    if includes.contains(&"histogram") {
        let rows = fitting.iter().map(|row| (row.created, row.state()));
        page["histogram"] = crate::dialects::neops::histogram::of(rows.collect());
    }
    page["total"] = fitting.len().into();
    fitting.sort_by_cached_key(|row| order.key(row));
    if order.descending {
        fitting.reverse();
    }
    let passed = |row: &Row| {
        let key = order.key(row);
        cursor.as_ref().is_some_and(|Cursor(last)| if order.descending { key >= *last } else { key <= *last })
    };
    let mut items: Vec<Row> = fitting.into_iter().skip_while(passed).take(limit + 1).collect();
    let next = (items.len() > limit && limit > 0).then(|| Cursor(order.key(&items[limit - 1])).text());
    items.truncate(limit);
    if includes.contains(&"result") {
        add_results(app, &mut items).await?;
    }
    page["nextCursor"] = next.into();
    page["items"] = serde_json::to_value(items).map_err(|error| HttpError::bad(error.to_string()))?;
    Ok(ok(page))
}

/// As far as there is room for it in an answer.
async fn add_results(app: &App, items: &mut [Row]) -> Result<()> {
    let mut left = DATA_MAX;
    for row in items.iter_mut().filter(|row| row.result_status.is_some()) {
        let Ok(id) = row.job_id.parse() else { continue };
        let kept = match left {
            0 => None,
            _ => results::small(app, &JobKey::new(&namespace(), JobId(id)), left).await?,
        };
        match kept {
            Some((kept, bytes)) => {
                left = left.saturating_sub(bytes);
                (row.result_data, row.result_data_omitted) = (kept.data, Some(false));
            }
            None => row.result_data_omitted = Some(true),
        }
    }
    Ok(())
}
