//! Publishing a version of a workflow.

use super::{
    super::{
        Neops,
        body::{Json, Sent},
        error::{HttpError, Result},
        namespace,
        runs::By,
    },
    DOCUMENT, TRIES, WORKFLOW, busy, name_of,
    rows::{Entry, VERSIONS_MAX, Workflow},
    show, written,
};
use crate::{calendar::Calendar, schema};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_core::{
    Refusal,
    commands::{all::All, audited::Audited, records::Expect},
};
use windlass_plan::neops::{
    compare::{Finding, Level},
    document::Document,
    publish::{self, PublishOutcome, PublishRequest, Verdict},
    read::{Fault, FaultKind},
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    workflow: Value,
    increment: Option<bool>,
    dry_run: Option<bool>,
    accept_bump: Option<String>,
}

/// What was asked for, read and found in order.
struct Wish {
    value: Value,
    document: Document,
    advice: Vec<Finding>,
    increment: bool,
    accept: Option<Level>,
}

pub async fn publish(State(neops): State<Neops>, by: By, Sent(body): Sent<Body>) -> Result<Response> {
    let (increment, dry) = (body.increment.unwrap_or_default(), body.dry_run.unwrap_or_default());
    let (declared, workflow) = (declared(&body.workflow), body.workflow);
    let read = match accept(body.accept_bump.as_deref()) {
        Ok(accept) => {
            let read = neops.aside.run(&namespace(), move || read(workflow)).await?;
            read.map(|(value, document)| (value, document, accept))
        }
        Err(error) => Err(error),
    };
    let (value, document, accept) = match read {
        Err(error) if dry && error.status == StatusCode::BAD_REQUEST => {
            return Ok(dry_refusal(&declared, &error).into_response());
        }
        read => read?,
    };
    let wish = Wish { value, advice: publish::advice(&document), document, increment, accept };
    for _ in 0..TRIES {
        let (kept, verdict) = decide(&neops, &wish).await?;
        if dry {
            return Ok(dry_run(&verdict, &wish).into_response());
        }
        let answer = answer(&verdict, &wish)?;
        if matches!(verdict.outcome, PublishOutcome::Unchanged) || write(&neops, &wish, kept, &verdict, &by).await? {
            return Ok(answer.into_response());
        }
    }
    Err(busy())
}

fn accept(text: Option<&str>) -> Result<Option<Level>> {
    match text {
        None => Ok(None),
        Some("patch") => Ok(Some(Level::Patch)),
        Some("minor") => Ok(Some(Level::Minor)),
        Some(other) => Err(bad("InvalidParameter", format!("acceptBump must be patch or minor, not {other:?}"))
            .with("hint", "Leave acceptBump out, or set it to the step that the version takes.")),
    }
}

fn bad(code: &str, message: String) -> HttpError {
    HttpError::typed(StatusCode::BAD_REQUEST, code, message)
}

fn read(value: Value) -> Result<(Value, Document)> {
    let document = Document::read(&value).map_err(|faults| faulty(&faults))?;
    if let Some(parameters) = &document.parameter_schema {
        schema::check_value("parameterSchema", parameters, None)?;
    }
    for (at, cron) in document.cron.iter().enumerate() {
        let checked = Calendar::new(&cron.cron, Some(&cron.time_zone));
        checked.map_err(|problem| HttpError::bad(format!("cron[{at}].crontab {}", problem.0.detail)))?;
    }
    Ok((value, document))
}

/// Labels that are used twice have an error of their own; whatever else is wrong goes first.
fn faulty(faults: &[Fault]) -> HttpError {
    let shape: Vec<String> =
        faults.iter().filter(|fault| fault.kind == FaultKind::Shape).map(|fault| format!("workflow.{fault}")).collect();
    if !shape.is_empty() {
        return HttpError::bad(shape.join("; "));
    }
    let twice: Vec<String> = faults.iter().map(|fault| format!("workflow.{fault}")).collect();
    bad("InvalidDocument", twice.join("; ")).with("hint", "Give each step a label of its own.")
}

type Found = Option<windlass_engine::records::Kept<Workflow>>;

async fn decide(neops: &Neops, wish: &Wish) -> Result<(Found, Verdict)> {
    let reference = wish.document.reference();
    let kept = WORKFLOW.find(neops, &name_of(&reference)).await?;
    let held = kept.as_ref().map(|kept| kept.value.held()).unwrap_or_default();
    let mut documents = BTreeMap::new();
    for version in publish::wanted(&held, wish.document.version) {
        let id = format!("{}:{version}", name_of(&reference));
        documents.extend(DOCUMENT.find(neops, &id).await?.map(|found| (version, found.value)));
    }
    let (document, version) = (wish.value.clone(), wish.document.version);
    let (increment, accept) = (wish.increment, wish.accept);
    let decide =
        move || publish::decide(&PublishRequest { document: &document, version, increment, accept }, &held, &documents);
    Ok((kept, neops.aside.run(&namespace(), decide).await?))
}

/// False: somebody else was faster.
async fn write(neops: &Neops, wish: &Wish, kept: Found, verdict: &Verdict, by: &By) -> Result<bool> {
    let reference = windlass_plan::neops::reference::Reference {
        minor: Some(verdict.version.minor),
        patch: Some(verdict.version.patch),
        ..wish.document.reference()
    };
    let is_new = kept.is_none();
    if is_new {
        room_for_one(neops).await?;
    }
    let now = neops.engine.now().await?;
    let expect = kept.as_ref().map_or(Expect::Nothing, windlass_engine::records::Kept::unchanged);
    let mut workflow = kept.map(|kept| kept.value).unwrap_or_default();
    let mut commands = Vec::new();
    if let Some(entry) = workflow.entry_mut(&reference) {
        (entry.deleted_at, entry.updated_at) = (None, now);
    } else {
        if workflow.versions.len() >= VERSIONS_MAX {
            return Err(HttpError::bad(format!(
                "a workflow has at most {VERSIONS_MAX} versions, deleted ones included"
            )));
        }
        let cron = !wish.document.cron.is_empty();
        let (created_at, updated_at, deleted_at) = (now, now, None);
        let (version, seed, by) = (verdict.version, wish.document.seed, by.0.clone());
        workflow.add(Entry { version, seed, created_at, updated_at, deleted_at, by, cron });
        let document = publish::renumbered(wish.value.clone(), version);
        commands.push(DOCUMENT.put(&reference.to_string(), &document, Expect::Nothing).into());
    }
    commands.push(WORKFLOW.put(&name_of(&reference), &workflow, expect).into());
    let act = Audited::told(&by.name(), "workflow_published", reference.to_string(), All { commands });
    let done = written(neops.engine.run(act).await)?;
    if is_new && done {
        one_more(neops);
    }
    neops.own.scheduler.notify_one();
    Ok(done)
}

/// Workflows stay, deleted ones too, so they are counted once. Other servers count for themselves: a few more than allowed may
/// slip through until they start again.
async fn room_for_one(neops: &Neops) -> Result<()> {
    let known = *neops.own.workflows.lock();
    let count = match known {
        Some(count) => count,
        None => {
            let mut count = 0;
            WORKFLOW
                .each(neops, None, |_| {
                    count += 1;
                    true
                })
                .await?;
            *neops.own.workflows.lock() = Some(count);
            count
        }
    };
    let max = neops.engine.settings().limits.definitions_max;
    if count < max {
        return Ok(());
    }
    let (what, setting) = ("workflows", "definitions_per_namespace_max");
    Err(Refusal::TooMany { what, namespace: namespace().to_string(), max, setting }.into())
}

fn one_more(neops: &Neops) {
    if let Some(count) = neops.own.workflows.lock().as_mut() {
        *count += 1;
    }
}

/// What stands in every answer: what the version is, how it compares, and what was found.
fn common(verdict: &Verdict, wish: &Wish) -> Value {
    let all: Vec<Finding> = verdict.findings.iter().chain(&wish.advice).cloned().collect();
    json!({"version": verdict.version.to_string(), "bump": show::level(verdict.bump), "floor": show::level(verdict.floor),
        "findings": show::findings(&all)})
}

fn answer(verdict: &Verdict, wish: &Wish) -> Result<Json<Value>> {
    let mut body = common(verdict, wish);
    body["id"] = json!(format!("{}:{}", name_of(&wish.document.reference()), verdict.version));
    let (status, text) = match verdict.outcome {
        PublishOutcome::Published { accepted } => {
            if let Some(accepted) = accepted {
                body["acceptedBump"] = json!(accepted.as_str());
            }
            (StatusCode::CREATED, "published")
        }
        PublishOutcome::Revived => {
            body["revived"] = json!(true);
            (StatusCode::CREATED, "published")
        }
        PublishOutcome::Unchanged => (StatusCode::OK, "unchanged"),
        _ => return Err(refused(verdict, wish)),
    };
    body["status"] = json!(text);
    Ok(Json(status, body))
}

fn refused(verdict: &Verdict, wish: &Wish) -> HttpError {
    let (declared, suggested) = (wish.document.version, verdict.suggested.to_string());
    let code = code(verdict.outcome);
    let rejection = |status, message: String, hint: String| HttpError::typed(status, code, message).with("hint", hint);
    let found = || show::findings(&verdict.findings);
    match verdict.outcome {
        PublishOutcome::Taken | PublishOutcome::Deleted => {
            let what =
                if verdict.outcome == PublishOutcome::Deleted { "was published and deleted" } else { "is published" };
            let message = format!("version {declared} {what} with another document; published documents never change");
            rejection(StatusCode::CONFLICT, message, format!("Publish it as {suggested}."))
                .with("suggestedVersion", suggested)
                .with("findings", found())
        }
        PublishOutcome::AcceptMismatch { sent, expected } => {
            let (sent, expected) = (sent.as_str(), expected.as_str());
            let message = format!("acceptBump is {sent}, but version {declared} is a {expected} step");
            rejection(StatusCode::BAD_REQUEST, message, format!("Send acceptBump {expected}, or another version."))
                .with("sent", sent)
                .with("expected", expected)
                .with("retryWith", json!({"acceptBump": expected}))
        }
        _ => {
            let (floor, bump) = (show::level(verdict.floor), show::level(verdict.bump));
            let explicit = verdict.outcome == PublishOutcome::MajorRequiresExplicit;
            let message = match explicit {
                true => "the changes call for a new major, which is never assigned by increment".to_owned(),
                false => format!(
                    "version {declared} is a {} step, but the changes call for {}",
                    bump.unwrap_or_default(),
                    floor.unwrap_or_default()
                ),
            };
            let retry = if explicit { Some("minor") } else { bump };
            let rejected = rejection(
                StatusCode::UNPROCESSABLE_ENTITY,
                message,
                format!("Publish it as {suggested}, or insist with acceptBump."),
            )
            .with("floor", floor)
            .with("suggestedVersion", suggested)
            .with("findings", found())
            .with("retryWith", json!({"acceptBump": retry}));
            let rejected = if explicit { rejected } else { rejected.with("declaredBump", bump) };
            match verdict.alternative {
                Some(version) => rejected.with("alternativeVersion", version.to_string()),
                None => rejected,
            }
        }
    }
}

fn code(outcome: PublishOutcome) -> &'static str {
    match outcome {
        PublishOutcome::Published { .. } | PublishOutcome::Revived => "published",
        PublishOutcome::Unchanged => "unchanged",
        PublishOutcome::Taken => "VersionAlreadyPublished",
        PublishOutcome::Deleted => "VersionDeleted",
        PublishOutcome::BelowFloor => "BelowFloor",
        PublishOutcome::MajorRequiresExplicit => "MajorRequiresExplicit",
        PublishOutcome::AcceptMismatch { .. } => "AcceptBumpMismatch",
    }
}

/// The version a document says it is, as far as it says one.
fn declared(workflow: &Value) -> String {
    let number = |field: &str| workflow.get(field).and_then(Value::as_u64).unwrap_or_default();
    format!("{}.{}.{}", number("majorVersion"), number("minorVersion"), number("patchVersion"))
}

/// What would be refused before any version is looked at.
fn dry_refusal(declared: &str, error: &HttpError) -> Json<Value> {
    let code = error.code().unwrap_or("InvalidDocument");
    let finding = json!({"code": code, "path": "/", "message": error.message, "level": "major"});
    super::super::body::ok(json!({
        "dryRun": true, "version": declared, "bump": null, "floor": null, "findings": [finding], "wouldStatus": code,
        "suggestedVersion": declared, "wouldRevive": false, "wouldExceedLicense": false,
    }))
}

/// What would happen. Whatever it is, the answer is 200.
fn dry_run(verdict: &Verdict, wish: &Wish) -> Json<Value> {
    let mut body = common(verdict, wish);
    let more = json!({
        "dryRun": true, "wouldStatus": code(verdict.outcome), "declaredBump": show::level(verdict.bump),
        "suggestedVersion": verdict.suggested.to_string(), "wouldRevive": verdict.outcome == PublishOutcome::Revived,
        "wouldExceedLicense": false,
    });
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    if let Some(version) = verdict.alternative {
        body["alternativeVersion"] = json!(version.to_string());
    }
    super::super::body::ok(body)
}
