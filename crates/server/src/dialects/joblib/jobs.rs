//! Jobs of this protocol: extensions that workers serve. Kept as definitions; those who serve them are linked to them.

use super::{
    Joblib, Own,
    body::{Json, Params, Path, Sent, ok, page, paging},
    derived,
    error::{FORBIDDEN, HttpError, INVALID_CATEGORY, JOB_NOT_FOUND, Result, SCHEMA_CONFLICT},
    listing::{check_space, cut, live_jobs, seen_from, workers_of},
    names::{FullName, INTERNAL, check_room, check_writable, is_special},
    namespace,
    registration::{not_owned, registration},
    schema, tasks,
    who::Who,
    workers::{owner, worker_id},
};
use crate::{
    app::App,
    ask,
    dialect::Mount,
    route::{Access, Route},
};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use windlass_api::Uuid;
use windlass_core::{
    Refusal, WorkerId,
    commands::{ask::Both, link::Link},
    definition::{Definition, DefinitionHead, version_key},
};
use windlass_engine::{Error, ids};

pub fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.put("/v1/joblib/rooms/{room_id}/jobs", Access::EditorOrWorker, register).says("Serve a job"),
        on.get("/v1/joblib/rooms/{room_id}/jobs", Access::Any, list).says("Jobs seen in a room"),
        on.get("/v1/joblib/rooms/{room_id}/jobs/{*rest}", Access::Any, below).says("A job, or its tasks in a room"),
    ]
}

/// What is kept of a job.
#[derive(Serialize, Deserialize)]
struct Body {
    category: String,
    schema: Box<RawValue>,
}

#[derive(Serialize)]
struct JobResponse {
    id: Uuid,
    room_id: String,
    category: String,
    name: String,
    full_name: String,
    schema: Box<RawValue>,
    workers: Vec<WorkerId>,
    worker_id: Option<WorkerId>,
}

#[derive(Serialize)]
struct JobSummary {
    full_name: String,
    category: String,
    name: String,
    workers: Vec<WorkerId>,
}

async fn register(
    State(joblib): State<Joblib>,
    Path(room): Path<String>,
    who: Who,
    Sent(mut body): Sent,
) -> Result<Response> {
    let settings = &joblib.own.settings;
    check_writable(settings, &room)?;
    let (category, name) = (body.text("category"), body.text("name"));
    let (schema, worker) = (body.object(&["schema", "schema_"]), body.maybe_id("worker_id"));
    body.done()?;
    if is_special(&room) && !who.superuser {
        return Err(FORBIDDEN.error("Admin required for @global/@internal job registration"));
    }
    if !settings.categories.contains(&category) {
        return Err(INVALID_CATEGORY.error(not_in(&category, &settings.categories)));
    }
    let full = FullName::new(&room, &category, &name)?;
    check_space(&joblib, &full).await?;
    let schema = schema.unwrap_or_else(empty);
    let print = print(&joblib, schema.clone()).await?;
    let kept = Body { category: full.category.clone(), schema };
    let link = Link {
        namespace: namespace(),
        definition: full.to_string().into(),
        body: serde_json::to_string(&kept).unwrap_or_default().into(),
        print: print.into(),
        retires: room != INTERNAL,
        worker: WorkerId::trusted(""),
        principal: Some(owner(&who)),
    };
    let linked = match worker {
        Some(id) => joblib.engine.run(Link { worker: worker_id(id), ..link }).await,
        None => {
            let register = registration(&joblib, ids::secret(), who.id);
            let worker = register.worker.clone();
            joblib.engine.run(Both(register, Link { worker, ..link })).await.map(|(_, linked)| linked)
        }
    };
    let linked = linked.map_err(|error| refused(error, &full, worker))?;
    let status = if linked.created { StatusCode::CREATED } else { StatusCode::OK };
    let shown = show(&joblib, &full, &linked.definition, Some(linked.worker.id)).await?;
    Ok(Json(status, shown).into_response())
}

pub fn not_in(category: &str, allowed: &[String]) -> String {
    let quoted: Vec<String> = allowed.iter().map(|allowed| format!("'{allowed}'")).collect();
    format!("Category '{category}' not in allowed list: [{}]", quoted.join(", "))
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".into()).expect("an object")
}

/// A large schema is not taken apart by a thread that others wait for.
async fn print(joblib: &Joblib, schema: Box<RawValue>) -> Result<String> {
    match schema.get().len() {
        0..=ask::LARGE => Ok(schema::print(&schema)),
        _ => Ok(joblib.aside.run(&namespace(), move || schema::print(&schema)).await?),
    }
}

fn refused(error: Error, full: &FullName, worker: Option<Uuid>) -> HttpError {
    match (error, worker) {
        (Error::Refused(Refusal::Exists { .. }), _) => {
            SCHEMA_CONFLICT.error(format!("Schema mismatch for job '{full}'"))
        }
        (Error::Refused(Refusal::NotFound { .. } | Refusal::Forbidden { .. }), Some(id)) => not_owned(id),
        (other, _) => other.into(),
    }
}

async fn show(app: &App, full: &FullName, definition: &Definition, worker_id: Option<WorkerId>) -> Result<JobResponse> {
    let kept: Option<Body> = serde_json::from_str(&definition.body).ok();
    Ok(JobResponse {
        id: derived("job", &full.to_string()),
        room_id: full.room.clone(),
        category: full.category.clone(),
        name: full.name.clone(),
        full_name: full.to_string(),
        schema: kept.map_or_else(empty, |kept| kept.schema),
        workers: workers_of(app, &full.to_string()).await?,
        worker_id,
    })
}

/// The job that is called so, if it is in force.
pub async fn find(app: &App, name: &str) -> Result<(FullName, DefinitionHead)> {
    let full = parse(name)?;
    let head = app.engine.read_record::<DefinitionHead>(&namespace(), name).await?;
    let head = head.filter(|head| head.deleted_at.is_none()).ok_or_else(|| not_found(&full))?;
    Ok((full, head))
}

pub fn parse(name: &str) -> Result<FullName> {
    FullName::parse(name).ok_or_else(|| JOB_NOT_FOUND.error(format!("Invalid job name format: {name}")))
}

pub fn not_found(full: &FullName) -> HttpError {
    JOB_NOT_FOUND.error(format!("Job '{full}' not found"))
}

/// A page of jobs ends early behind so many ids of workers.
const PAGE_WORKERS_MAX: usize = 100_000;

/// Newest first. A job that came back has the place it had.
async fn list(State(app): State<App>, Path(room): Path<String>, params: Params) -> Result<Response> {
    check_room(&room)?;
    let paging = paging(&params)?;
    let mut jobs = Vec::new();
    for room in seen_from(&room) {
        jobs.extend(live_jobs(&app, room).await?);
    }
    jobs.sort_by(|(a, of_a), (b, of_b)| (of_b.created_at, b).cmp(&(of_a.created_at, a)));
    let (part, total) = cut(jobs, paging);
    let (mut items, mut listed) = (Vec::with_capacity(part.len()), 0);
    for (name, head) in part {
        if listed >= PAGE_WORKERS_MAX {
            break;
        }
        let Some(full) = FullName::parse(&name) else { continue };
        let workers = if head.links > 0 { workers_of(&app, &name).await? } else { Vec::new() };
        listed += workers.len();
        items.push(JobSummary { full_name: name.to_string(), category: full.category, name: full.name, workers });
    }
    Ok(page(items, total, paging).into_response())
}

/// What follows a job's name tells what is asked about it; the name itself may have slashes.
async fn below(State(app): State<App>, Path((room, rest)): Path<(String, String)>, params: Params) -> Result<Response> {
    check_room(&room)?;
    match rest.strip_suffix("/tasks") {
        Some(name) => tasks::of_job(&app, &room, name, &params).await,
        None => get(&app, &rest).await,
    }
}

async fn get(app: &App, name: &str) -> Result<Response> {
    let (full, head) = find(app, name).await?;
    let version = version_key(name, head.latest);
    let definition = app.engine.read_record::<Definition>(&namespace(), &version).await?;
    let definition = definition.ok_or_else(|| not_found(&full))?;
    Ok(ok(show(app, &full, &definition, None).await?).into_response())
}
