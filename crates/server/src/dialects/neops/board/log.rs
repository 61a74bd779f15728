//! Lines about a job, also after its end.

use super::result::not_found;
use crate::{
    app::App,
    auth::Caller,
    dialects::neops::{
        Result,
        body::{Sent, empty, id},
        namespace,
    },
};
use axum::{extract::State, response::Response};
use http::StatusCode;
use serde::Deserialize;
use windlass_core::{
    Chunk, JobId, LogForm, LogStream, Refusal,
    commands::{
        append_log::AppendLog,
        holder::{Address, Holder},
    },
    log,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "asked for by the protocol, and known from the job")]
pub struct Line {
    workflow_id: String,
    job_id: String,
    function_block_id: String,
    log_entry: String,
    log_level: String,
    timestamp: String,
}

pub async fn append(State(app): State<App>, caller: Caller, Sent(line): Sent<Line>) -> Result<Response> {
    let job = JobId(id("jobId", &line.job_id)?);
    let time = crate::wire_time::parse("timestamp", &line.timestamp)?;
    let most = app.engine.settings().limits.log_piece_bytes_max;
    let stream = match line.log_level.to_ascii_lowercase().as_str() {
        "info" | "debug" | "trace" | "verbose" => LogStream::Out,
        _ => LogStream::Err,
    };
    let cut = move || {
        let text = format!("{} {}\n", line.log_level, line.log_entry);
        let stream = Some(stream);
        let time = u64::try_from(time.0).ok();
        let chunk = Chunk { stream, time, sequence: None, continues: false, data: text.as_bytes() };
        log::pieces_of([chunk], most)
    };
    let pieces = app.aside.run(&namespace(), cut).await?;
    let holder = Holder { namespace: namespace(), address: Address::Job(job), principal: Some(caller.name.clone()) };
    let append = |data| AppendLog { holder: holder.clone(), form: LogForm::Chunks, data };
    let replies = app.engine.run_many(pieces.into_iter().map(append).collect()).await?;
    match replies.into_iter().find_map(Result::err) {
        None => Ok(empty(StatusCode::CREATED)),
        Some(Refusal::NotFound { .. }) => Err(not_found(job)),
        Some(refusal) => Err(refusal.into()),
    }
}
