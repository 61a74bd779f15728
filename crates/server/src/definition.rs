//! What a definition may be, what a job takes from it, and which version is the latest.

use crate::{
    app::App,
    convert,
    problem::{Code, Problem, Result},
    schema::Compiled,
};
use std::sync::Arc;
use windlass_api::{definition::DefinitionBody, job::SubmitJob};
use windlass_core::{
    JobId, Limits, Namespace, Refusal,
    definition::{Definition, DefinitionHead, version_key},
};

/// A definition as text, schemas included.
pub const BYTES_MAX: usize = 256 << 10;

/// Everything that can be wrong with a definition is found when it is written, not when a job is made from it.
pub fn check(name: &str, body: &DefinitionBody, limits: &Limits) -> Result<()> {
    if name.contains('@') {
        return Err(Problem::invalid("name", "may not hold an @: that is how a version is named"));
    }
    let size = serde_json::to_vec(body).map_or(usize::MAX, |bytes| bytes.len());
    if size > BYTES_MAX {
        return Err(Problem::new(Code::TooLarge, format!("{size} bytes; a definition may have {BYTES_MAX}")).at("body"));
    }
    let compiled = Compiled::new(body.clone())?;
    let job = convert::new_job(&fill(&SubmitJob::default(), body)?, JobId::from_u128(0), None, None)?;
    job.check(limits).map_err(|refusal| match refusal {
        Refusal::Invalid { field: "name", .. } => Problem::from(refusal).at("job_name"),
        other => other.into(),
    })?;
    match body.payload {
        Some(_) => compiled.check_payload(&job.payload).map_err(|problem| {
            let at = problem.0.field.clone().unwrap_or_default();
            problem.at(format!("payload{at}"))
        }),
        None => Ok(()),
    }
}

/// The text of a definition that was found in order, aside.
pub async fn checked(app: &App, namespace: &Namespace, name: &str, body: DefinitionBody) -> Result<Arc<str>> {
    let (name, limits) = (name.to_owned(), app.engine.settings().limits);
    let work = move || check(&name, &body, &limits).and_then(|()| stored(&body));
    app.aside.run(namespace, work).await?
}

/// A job with its definition's settings where it is silent itself.
pub fn fill(job: &SubmitJob, body: &DefinitionBody) -> Result<SubmitJob> {
    let payload = match (&job.payload, &body.payload) {
        (Some(own), _) => Some(own.clone()),
        (None, Some(value)) => Some(
            serde_json::value::to_raw_value(value).map_err(|error| Problem::new(Code::Internal, error.to_string()))?,
        ),
        (None, None) => None,
    };
    Ok(SubmitJob { payload, settings: job.settings.clone().or(&body.settings()), ..job.clone() })
}

/// The same body makes the same text, so that writing it again is recognised.
fn stored(body: &DefinitionBody) -> Result<Arc<str>> {
    let text = body.text().map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    Ok(text.into())
}

/// The latest version, unless the definition is deleted.
pub async fn latest(app: &App, namespace: &Namespace, name: &str) -> Result<Option<Definition>> {
    let head = app.engine.read_record::<DefinitionHead>(namespace, name).await?;
    match head.filter(|head| head.deleted_at.is_none()) {
        Some(head) => Ok(app.engine.read_record::<Definition>(namespace, &version_key(name, head.latest)).await?),
        None => Ok(None),
    }
}
