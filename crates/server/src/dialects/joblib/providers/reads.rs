//! Asking a provider, and its answer.

use super::{
    super::{
        Joblib,
        body::{Params, Path, ok, path_id},
        error::{FORBIDDEN, PROVIDER_TIMEOUT, Result},
        fault::Fault,
        names::check_room,
        namespace, prefer, sockets,
        who::Who,
    },
    Provider, answers, in_room, question, with_id,
};
use crate::{ask, guard, read_permits::ReadPermit};
use axum::{
    body::Body,
    extract::{FromRequestParts, Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;
use windlass_core::{Command, commands::tell::Tell};

/// What is asked becomes part of an event, which may be so long.
const QUESTION_BYTES_MAX: usize = 16 << 10;
const HASH_BYTES_MAX: usize = 200;

/// What waits, and is told which reader waits for something to happen.
pub struct Waits(Option<ReadPermit>);

impl<S: Sync> FromRequestParts<S> for Waits {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(parts.extensions.get::<ReadPermit>().cloned()))
    }
}

pub async fn read_or_info(
    State(joblib): State<Joblib>,
    waits: Waits,
    Path((room, name)): Path<(String, String)>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response> {
    check_room(&room)?;
    match name.strip_suffix("/info") {
        Some(name) => Ok(ok(in_room(&joblib, &room, name).await?.value.show()).into_response()),
        None => read(&joblib, waits, &room, &name, &params, &headers).await,
    }
}

async fn read(
    joblib: &Joblib,
    waits: Waits,
    room: &str,
    name: &str,
    params: &Params,
    headers: &HeaderMap,
) -> Result<Response> {
    let provider = in_room(joblib, room, name).await?.value;
    let asked = question::canonical(&params.0);
    if asked.len() > QUESTION_BYTES_MAX {
        let why = format!("the parameters have more than {QUESTION_BYTES_MAX} bytes together");
        return Err(Fault::value(&["query"], why).into());
    }
    let hash = question::hash(&asked);
    let key = answers::key(name, &hash);
    if let Some(bytes) = answers::find(joblib, &key).await? {
        return Ok(answer(&provider, bytes, None));
    }
    let settings = &joblib.own.settings;
    let preferred = prefer::wait(headers).map(|seconds| prefer::bounded(seconds, settings.provider_wait_max));
    let wait = preferred.unwrap_or(settings.provider_wait);
    waits.0.iter().for_each(ReadPermit::leave);
    match ask_and_wait(joblib, &provider, &Question { asked, hash, key }, wait).await? {
        Some(bytes) => Ok(answer(&provider, bytes, preferred)),
        None => {
            let why = format!("Provider '{name}' did not respond within {}s", wait.as_secs());
            Err(PROVIDER_TIMEOUT.error(why).retry_after(2))
        }
    }
}

struct Question {
    asked: String,
    hash: String,
    key: String,
}

/// Listens before it asks, so that no answer is missed.
async fn ask_and_wait(
    joblib: &Joblib,
    provider: &Provider,
    question: &Question,
    wait: Duration,
) -> Result<Option<Bytes>> {
    let name = provider.full_name();
    let listening = sockets::listen(joblib).await;
    answers::ask(joblib, &question.key, request(&name, question)).await?;
    let answered = timeout(wait, async {
        loop {
            let mut awaited = listening.result(&name, &question.hash);
            if let Some(bytes) = answers::find(joblib, &question.key).await? {
                return Ok(bytes);
            }
            awaited.told().await;
        }
    });
    answered.await.ok().transpose()
}

/// Told to the provider's process by whichever server has its connection.
fn request(name: &str, question: &Question) -> Command {
    let say = json!({"request_id": question.hash, "provider_name": name, "params": question.asked});
    tell("provider_request", &json!({"room": name, "say": say}))
}

fn tell(topic: &str, data: &Value) -> Command {
    Tell { namespace: namespace(), topic: topic.into(), data: data.to_string().into() }.into()
}

/// The bytes as they came.
fn answer(provider: &Provider, bytes: Bytes, preferred: Option<Duration>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_str(&provider.content_type);
    headers.insert(header::CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    if let Some(wait) = preferred {
        headers.insert("preference-applied", prefer::applied(wait));
    }
    response
}

pub async fn upload(State(joblib): State<Joblib>, request: Request) -> Result<StatusCode> {
    let (mut parts, body) = request.into_parts();
    let Path(id): Path<String> = Path::from_request_parts(&mut parts, &joblib).await?;
    let who = Who::of(guard::caller(&parts)?);
    let hash = request_hash(&parts.headers)?;
    let provider = with_id(&joblib, path_id("provider_id", &id)?).await?.value;
    if provider.user_id != who.id && !who.superuser {
        return Err(FORBIDDEN.error("Not authorized to upload results for this provider"));
    }
    let bytes = ask::read(body).await?;
    let name = provider.full_name();
    let say = json!({"provider_name": name, "request_hash": hash});
    let ready = tell("provider_result_ready", &json!({"room": provider.room_id, "say": say}));
    answers::keep(&joblib, provider.user_id, &answers::key(&name, &hash), bytes, ready).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn request_hash(headers: &HeaderMap) -> Result<String, Fault> {
    let at = ["header", "x-request-hash"];
    let sent = headers.get("x-request-hash").ok_or_else(|| Fault::missing(&at, Value::Null))?;
    let hash = sent.to_str().ok().filter(|hash| hash.len() <= HASH_BYTES_MAX);
    hash.map(str::to_owned).ok_or_else(|| Fault::value(&at, "this is no hash"))
}
