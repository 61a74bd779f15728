//! `windlass up --demo`: a believable fleet, so that there is something to look at on every page.
//!
//! Everything goes through the server like anybody else's: jobs that succeed, fail and are retried, workers that come and go, runs
//! with many items and an approval, a schedule, and a stuck job of every kind that `why` can explain.

mod fleet;
mod items;
mod stuck;

use anyhow::Context as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use windlass_api::{
    definition::DefinitionBody,
    job::SubmitJob,
    schedule::PutSchedule,
    token::{CreateToken, Role},
    workflow::{ListRuns, RunState, StartRun},
};
use windlass_sdk::Client;

/// Between two groups of jobs.
const JOBS_EVERY: Duration = Duration::from_millis(1_200);
/// Groups of jobs between two runs.
const RUN_EVERY: u64 = 12;
/// Runs that may wait for somebody at a time.
const RUNS_MAX: usize = 4;

const ALBUM: &str = "\
windlass: workflow
name: album
description: Resizes the photos of an album, asks before it is published, and announces it.
steps:
  collect:
    name: collect photos
    tags: [render]
    payload: {seconds: 1, result: {photos: [beach, boat, harbour, lighthouse, gulls, storm]}}
  resize:
    needs: collect
    tags: [render]
    map: {over: steps.collect.output.photos}
    payload: {seconds: 2, photo: '${{ item }}', fails_once: '${{ item == \"storm\" }}'}
  contact-sheet:
    needs: resize
    definition: render-frame
    payload: {scene: contact-sheet, frames: 6, seconds: 1}
  approve:
    needs: contact-sheet
    wait: {approval: true}
  publish:
    needs: approve
    tags: [mail]
    payload: {seconds: 1}
    compensate: {payload: {seconds: 1}}
  announce:
    needs: publish
    definition: send-mail
    payload: {to: friends@example.org, subject: New album, seconds: 1}
";

/// Sets everything up, then goes on until it is stopped.
pub async fn run(client: Client, url: String, stop: CancellationToken) {
    if let Err(error) = tokio::select! {
        done = play(&client, &url, &stop) => done,
        () = stop.cancelled() => Ok(()),
    } {
        eprintln!("windlass: the demo stopped: {error:#}");
    }
}

async fn play(client: &Client, url: &str, stop: &CancellationToken) -> anyhow::Result<()> {
    define(client).await.context("could not store the demo's definitions")?;
    let token = client
        .create_token(&CreateToken {
            principal: "demo-fleet".into(),
            role: Role::Worker,
            namespaces: Vec::new(),
            expires_ms: Some(24 * 3_600_000),
        })
        .await?
        .token;
    let worker = Client::builder(url).token(token).build()?;
    fleet::start(&worker, stop);
    stuck::submit(client, &worker).await.context("could not submit the demo's stuck jobs")?;
    for round in 0_u64.. {
        if round.is_multiple_of(RUN_EVERY) {
            start_run(client).await?;
        }
        for job in jobs(round) {
            submit(client, job).await?;
        }
        sleep(JOBS_EVERY).await;
    }
    Ok(())
}

pub(crate) async fn submit(client: &Client, job: Value) -> anyhow::Result<uuid::Uuid> {
    let job: SubmitJob = serde_json::from_value(job)?;
    Ok(client.submit(&job).await?.id)
}

fn jobs(round: u64) -> Vec<Value> {
    let frame = json!({"definition": "render-frame", "name": format!("frame {round}"),
        "payload": {"scene": "harbour", "frames": 1 + round % 5, "seconds": 0.5 + (round % 4) as f64},
        "facets": {"project": "short-film"}});
    let mail = json!({"definition": "send-mail", "payload": {"to": format!("user{}@example.org", round % 17),
        "subject": "Your invoice", "seconds": 0.3, "fails": round.is_multiple_of(4)}});
    let thumbnail = json!({"name": format!("thumbnail {round}"), "tags": ["render"], "priority": 200,
        "payload": {"seconds": 0.8, "fails_once": round.is_multiple_of(6)}});
    match round % 3 {
        0 => vec![frame, mail],
        1 => vec![frame, thumbnail],
        _ => vec![mail, thumbnail],
    }
}

async fn define(client: &Client) -> anyhow::Result<()> {
    let render = json!({
        "description": "Renders frames of a scene.", "tags": ["render"], "timeout_ms": 120_000, "retry": {"attempts": 3},
        "payload": {"scene": "harbour", "frames": 3, "seconds": 2},
        "payload_schema": {"type": "object", "required": ["scene", "frames"], "properties": {
            "scene": {"type": "string", "enum": ["harbour", "lighthouse", "contact-sheet"], "description": "What to draw."},
            "frames": {"type": "integer", "minimum": 1, "maximum": 100, "default": 3},
            "quality": {"type": "string", "enum": ["draft", "final"], "default": "draft"},
            "seconds": {"type": "number", "minimum": 0, "description": "How long it takes."}}}});
    let mail = json!({
        "description": "Sends a mail. The provider is down now and then.", "tags": ["mail"], "timeout_ms": 30_000,
        "retry": {"attempts": 2, "backoff_ms": 2_000},
        "payload_schema": {"type": "object", "required": ["to"], "properties": {
            "to": {"type": "string"}, "subject": {"type": "string"}, "fails": {"type": "boolean"},
            "seconds": {"type": "number"}}}});
    // Two versions, so that there is a difference to see.
    let mut first = render.clone();
    first["description"] = json!("Renders one frame.");
    for (name, body) in [("render-frame", first), ("render-frame", render), ("send-mail", mail)] {
        let body: DefinitionBody = serde_json::from_value(body)?;
        client.put_definition(name, &body).await?;
    }
    client.put_workflow("album", ALBUM, false).await?;
    let schedule: PutSchedule = serde_json::from_value(json!({"every_ms": 15_000,
        "job": {"definition": "send-mail", "name": "digest", "payload": {"to": "team@example.org", "seconds": 0.5}}}))?;
    client.put_schedule("digest", &schedule).await?;
    let nightly: PutSchedule = serde_json::from_value(json!({"cron": "0 2 * * *", "time_zone": "Europe/Berlin",
        "job": {"definition": "render-frame", "name": "nightly", "payload": {"scene": "harbour", "frames": 100}}}))?;
    client.put_schedule("nightly-render", &nightly).await?;
    items::make(client).await
}

async fn start_run(client: &Client) -> anyhow::Result<()> {
    let running = ListRuns { state: Some(RunState::Running), limit: Some(100), ..ListRuns::default() };
    if client.runs(&running).await?.items.len() < RUNS_MAX {
        client.start_workflow("album", &StartRun::default()).await?;
    }
    Ok(())
}
