//! Jobs as people see and make them.

use super::{
    body::{Json, Listed, Params, Path, Raw, created, ok, time},
    definitions::{self, ScopeKind},
    error::{HttpError, Result},
    namespace, products,
    show::{self, runner},
    trigger::{self, Target, TriggerOptions},
};
use crate::{app::App, auth::Caller, log_view};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass_api::Uuid;
use windlass_core::{Facet, Job, JobKey, State as JobState, commands::cancel::Cancel};
use windlass_engine::store::JobQuery;
use windlass_product::{Fired, Products, items, projects, revisions, rules::trigger::Trigger};

const PAGE: usize = 1_000;
/// What a count goes up to.
const COUNT_MAX: usize = 10_000_000;
const LOG_LIMIT: u64 = 1_000;
const LOG_LIMIT_MAX: u64 = 10_000;
const LOG_BYTES: usize = 4 << 20;

/// What an answer says of jobs it set off.
pub fn triggered(fired: &[Fired]) -> Value {
    let one = |fired: &Fired| json!({"id": fired.job.to_string(), "definition_name": fired.definition});
    fired.iter().map(one).collect()
}

#[derive(Deserialize)]
struct Create {
    definition_name: String,
    part_number: Option<String>,
    item_id: Option<String>,
    project: Option<String>,
    revision_number: Option<u32>,
    args: Option<Map<String, Value>>,
    priority: Option<i32>,
}

pub async fn create(State(app): State<App>, caller: Caller, raw: Raw) -> Result<Json<Value>> {
    let body: Create = raw.parse(&app).await?;
    if body.priority.is_some_and(|priority| !(-1_000_000..=1_000_000).contains(&priority)) {
        return Err(HttpError::invalid("priority: must be between -1000000 and 1000000"));
    }
    let args = body.args.clone().unwrap_or_default();
    if json!(args).to_string().len() > definitions::file::ARGS_BYTES_MAX {
        return Err(HttpError::invalid(format!("args: may have {} bytes", definitions::file::ARGS_BYTES_MAX)));
    }
    let definition = definitions::find(&app, &body.definition_name).await?;
    let products = products(&app);
    let target = target(&products, &body, definition.definition.scope.kind).await?;
    let asked = TriggerOptions { args, priority: body.priority };
    let made = trigger::make(&products, &definition, Trigger::Manual, &target, &caller.name, &asked).await?;
    let key = JobKey::new(&namespace(), made.id);
    app.engine.run(trigger::submit(made)).await?;
    let job = app.engine.store().job(&key).await?.ok_or_else(|| HttpError::missing("job", key.id))?;
    Ok(created(show::whole(&app, &job).await?))
}

async fn target(products: &Products, body: &Create, scope: ScopeKind) -> Result<Target> {
    if scope == ScopeKind::Project {
        let code =
            body.project.as_ref().ok_or_else(|| HttpError::invalid("project: a job of this definition needs one"))?;
        projects::find(products, code).await?;
        return Ok(Target { item: None, revision: None, project: Some(code.clone()) });
    }
    let item = match (&body.part_number, &body.item_id) {
        (Some(part), _) => items::find(products, part).await?,
        (None, Some(id)) => items::find_any(products, id).await?.ok_or_else(|| HttpError::missing("item", id))?,
        (None, None) => {
            return Err(HttpError::invalid("part_number: a job of this definition needs one, or an item_id"));
        }
    };
    if let Some(number) = body.revision_number {
        revisions::find(products, &item.value, number).await?;
    }
    Ok(Target { item: Some(item.value), revision: body.revision_number, project: None })
}

/// What a list is narrowed by, beside what the store does itself.
struct Filter {
    query: JobQuery,
    definition: Option<String>,
    runner: Option<String>,
}

impl Filter {
    fn new(params: &Params) -> Result<Self> {
        let mut query = JobQuery { namespace: Some(namespace()), limit: PAGE, ..JobQuery::default() };
        for word in params.get("status").into_iter().flat_map(|words| words.split(',')) {
            let unknown = || HttpError::invalid(format!("status: {word:?} is no status"));
            query.states.extend(show::states(word.trim()).ok_or_else(unknown)?);
        }
        let item = params.any(&["item", "item_id", "part_number"]).map(|name| match Uuid::parse_str(name) {
            Ok(id) => Facet::new("item", &id.to_string()),
            Err(_) => Facet::new("part", name),
        });
        let definition = params.any(&["definition", "definition_name"]).map(str::to_owned);
        let by_definition = definition.as_ref().map(|name| Facet::new("definition", name));
        query.facet = item.or(by_definition);
        Ok(Self { query, definition, runner: params.get("runner_id").map(str::to_owned) })
    }

    fn fits(&self, job: &Job) -> bool {
        let named = |job: &Job| job.spec.definition.as_ref().map(|definition| definition.name.to_string());
        let held = |job: &Job| job.live.lease.as_ref().map(|lease| runner(&lease.worker).1.to_owned());
        (self.definition.is_none() || named(job) == self.definition)
            && (self.runner.is_none() || held(job) == self.runner)
    }

    /// Whether the store's own count is the count.
    fn is_exact(&self) -> bool {
        let by_item = self.query.facet.as_ref().is_some_and(|facet| &*facet.name != "definition");
        self.runner.is_none() && !(by_item && self.definition.is_some())
    }
}

pub async fn list(State(app): State<App>, params: Params) -> Result<Listed<Value>> {
    let (offset, limit) = params.page()?;
    let mut filter = Filter::new(&params)?;
    let count = match filter.is_exact() {
        true => Some(app.engine.store().count(&filter.query, COUNT_MAX).await?),
        false => None,
    };
    let (mut found, mut seen) = (Vec::new(), 0);
    loop {
        let jobs = app.engine.store().jobs(&filter.query).await?;
        let last = jobs.last().map(|job| (job.key.namespace.clone(), job.key.id));
        let more = jobs.len() == PAGE;
        for job in jobs.into_iter().filter(|job| filter.fits(job)) {
            if seen >= offset && found.len() < limit {
                found.push(job);
            }
            seen += 1;
        }
        if !more || (found.len() == limit && count.is_some()) {
            break;
        }
        filter.query.before = last;
    }
    let mut shown = Vec::with_capacity(found.len());
    for job in &found {
        shown.push(show::in_list(&app, job).await?);
    }
    Ok(Listed(shown, count.unwrap_or(seen)))
}

pub async fn one(State(app): State<App>, Path(id): Path<String>) -> Result<Json<Value>> {
    let job = show::find(&app, &id).await?;
    Ok(ok(show::whole(&app, &job).await?))
}

/// `claim` is a place of another protocol, and no job.
pub async fn no_job() -> HttpError {
    HttpError::missing("job", "claim")
}

pub async fn cancel(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<Value>> {
    let job = show::find(&app, &id).await?;
    app.engine
        .run(Cancel {
            namespace: namespace(),
            job: job.key.id,
            by: caller.name.clone(),
            mode: None,
            message: "".into(),
        })
        .await?;
    one(State(app), Path(id)).await
}

/// One entry as it is kept: a piece of the job's log.
#[derive(serde::Serialize, Deserialize)]
pub struct Entry {
    pub level: String,
    pub message: String,
    pub metadata: Map<String, Value>,
}

fn plain_entry(level: &str, message: String) -> Entry {
    Entry { level: level.into(), message, metadata: Map::new() }
}

pub fn show_entry(job: &str, id: u64, at: windlass_core::Timestamp, entry: &Entry) -> Value {
    let Entry { level, message, metadata } = entry;
    json!({"id": id, "job_id": job, "timestamp": time(at), "level": level, "message": message, "metadata": metadata})
}

pub async fn logs(State(app): State<App>, Path(id): Path<String>, params: Params) -> Result<Json<Vec<Value>>> {
    let job = show::find(&app, &id).await?;
    let mut after = params.number("after", 0, u64::MAX)?.unwrap_or(0);
    let limit = params.number("limit", 1, LOG_LIMIT_MAX)?.unwrap_or(LOG_LIMIT) as usize;
    let (mut entries, mut seen) = (Vec::new(), after);
    while entries.len() < limit {
        let pieces = app.engine.store().read_log(&job.key, after, LOG_BYTES).await?;
        let Some(last) = pieces.last() else { break };
        after = last.piece;
        for piece in &pieces {
            if let Some(gap) = job.live.log.gap(seen, piece.piece) {
                let entry = plain_entry("warn", log_view::missing(gap).trim_end().into());
                entries.push(show_entry(&id, piece.piece - 1, piece.at, &entry));
            }
            seen = piece.piece;
            // An entry that is longer than all a log may have is cut.
            let cut = |_| plain_entry("info", String::from_utf8_lossy(&piece.text()).into_owned());
            let entry = serde_json::from_slice(&piece.text()).unwrap_or_else(cut);
            entries.push(show_entry(&id, piece.piece, piece.at, &entry));
        }
        entries.truncate(limit);
    }
    Ok(ok(entries))
}

/// Whether a job of a definition is still under way for a target.
pub async fn is_open(app: &App, facet: Facet) -> Result<bool> {
    let states = vec![JobState::Blocked, JobState::Scheduled, JobState::Pending, JobState::Claimed, JobState::Running];
    let query = JobQuery { namespace: Some(namespace()), states, facet: Some(facet), limit: 1, ..JobQuery::default() };
    Ok(!app.engine.store().jobs(&query).await?.is_empty())
}
