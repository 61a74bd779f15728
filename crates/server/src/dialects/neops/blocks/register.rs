//! A worker says which blocks it serves.

use super::{Body, compat, read, versions};
use crate::{
    app::App,
    auth::Caller,
    dialects::neops::{
        HttpError, Neops, Result,
        body::{Sent, Whole, empty, id},
        namespace,
    },
};
use axum::{extract::State, response::Response};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use windlass_core::{
    Refusal, WorkerId,
    commands::{ask::Both, definitions::PutDefinition, link::Link},
};
use windlass_engine::Error;
use windlass_plan::neops::reference::{EntityType, ID_BYTES_MAX, Reference, Version, is_name};

const TYPES: [&str; 5] = ["configure", "facts", "check", "execute", "none"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    name: String,
    package: String,
    major_version: Whole,
    minor_version: Whole,
    patch_version: Whole,
    worker_id: Option<String>,
    description: String,
    run_on: Option<String>,
    fb_type: String,
    #[serde(default)]
    markdown_help_text: String,
    #[serde(default)]
    deprecated: bool,
    parameter_json_schema: Map<String, Value>,
    result_data_json_schema: Map<String, Value>,
    #[serde(default)]
    is_idempotent: bool,
    #[serde(default)]
    is_pure: bool,
    #[serde(default)]
    reversible: bool,
}

impl Registration {
    fn reference(&self) -> Result<(Reference, Version)> {
        for (field, text) in [("package", &self.package), ("name", &self.name)] {
            if !is_name(text) || text.chars().any(char::is_control) {
                return Err(HttpError::bad(format!(
                    "{field}: {text:?} is empty, or has a slash, a colon or a control character"
                )));
            }
        }
        let number = |field: &str, Whole(number): Whole| {
            u32::try_from(number).map_err(|_| HttpError::bad(format!("{field}: {number} is too large")))
        };
        let version = Version::new(
            number("majorVersion", self.major_version)?,
            number("minorVersion", self.minor_version)?,
            number("patchVersion", self.patch_version)?,
        );
        let reference = Reference::exact(&self.package, &self.name, version);
        let length = reference.to_string().len();
        match length > ID_BYTES_MAX {
            true => Err(HttpError::bad(format!(
                "name: package, name and version have {length} bytes; {ID_BYTES_MAX} are possible"
            ))),
            false => Ok((reference, version)),
        }
    }

    fn body(self) -> Result<Body> {
        let run_on = self.run_on.unwrap_or_default();
        if !run_on.is_empty() && EntityType::parse(&run_on).is_none() {
            return Err(HttpError::bad(format!(
                "runOn: {run_on:?} is none of {}",
                EntityType::ALL.map(EntityType::as_str).join(", ")
            )));
        }
        if !TYPES.contains(&self.fb_type.as_str()) {
            return Err(HttpError::bad(format!("fbType: {:?} is none of {}", self.fb_type, TYPES.join(", "))));
        }
        Ok(Body {
            run_on,
            fb_type: self.fb_type,
            description: self.description,
            markdown_help_text: self.markdown_help_text,
            deprecated: self.deprecated,
            parameter_json_schema: Value::Object(self.parameter_json_schema),
            result_data_json_schema: Value::Object(self.result_data_json_schema),
            is_idempotent: self.is_idempotent,
            is_pure: self.is_pure,
            reversible: self.reversible,
        })
    }
}

/// Twice is as good as once, so this is never a conflict.
pub async fn register(State(neops): State<Neops>, caller: Caller, Sent(sent): Sent<Registration>) -> Result<Response> {
    let worker = sent.worker_id.as_deref().map(|worker| id("workerId", worker)).transpose()?;
    let (reference, version) = sent.reference()?;
    let body = sent.body()?;
    check(&neops, &reference, version, &body).await?;
    let text: Arc<str> = serde_json::to_string(&body).map_err(|error| HttpError::bad(error.to_string()))?.into();
    let name: Arc<str> = reference.to_string().into();
    let put = PutDefinition { namespace: namespace(), name: name.clone(), body: text.clone() };
    match worker {
        None => drop(neops.engine.run(put).await?),
        Some(worker) => {
            let link = link(name, text, WorkerId::trusted(&worker.to_string()), &caller);
            neops.engine.run(Both(put, link)).await.map_err(|error| match error {
                Error::Refused(Refusal::NotFound { what: "worker", .. }) => HttpError::no_worker(worker),
                other => other.into(),
            })?;
        }
    }
    Ok(empty(StatusCode::CREATED))
}

fn link(definition: Arc<str>, body: Arc<str>, worker: WorkerId, caller: &Caller) -> Link {
    let print = windlass_api::hex(&Sha256::digest(body.as_bytes())).into();
    Link {
        namespace: namespace(),
        definition,
        body,
        print,
        retires: false,
        worker,
        principal: Some(caller.name.clone()),
    }
}

/// Whether both schemas can be used, and those who call the block by its major are served as before.
async fn check(app: &App, reference: &Reference, version: Version, body: &Body) -> Result<()> {
    let mut there = Vec::new();
    for (other, head) in versions(app, &reference.package, &reference.name).await? {
        if head.deleted_at.is_none() && other.major == version.major {
            let id = Reference::exact(&reference.package, &reference.name, other).to_string();
            there.push((other, read(app, &id, &head).await?.0));
        }
    }
    let body = body.clone();
    let work = move || {
        body.compile()?;
        let there: Vec<_> = there.iter().map(|(version, body)| compat::There { version: *version, body }).collect();
        Ok::<_, crate::problem::Problem>(compat::conflict(version, &body, &there))
    };
    match app.aside.run(&namespace(), work).await?? {
        Some(why) => Err(HttpError::bad(why)),
        None => Ok(()),
    }
}
