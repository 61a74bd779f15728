//! Answers that are made once for all who ask: open pages ask for the same again and again.

use crate::{
    ask::ok,
    problem::{Code, Problem, Result},
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderValue, header};
use parking_lot::Mutex;
use serde::Serialize;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Questions whose answers are kept, and the largest answer that is.
const KEPT_MAX: usize = 100;
const BYTES_MAX: usize = 256 << 10;
/// Older answers are of no use to a page.
const AGE_MS_MAX: u64 = 5_000;

type Slot = Arc<tokio::sync::Mutex<Option<(Instant, Bytes)>>>;

#[derive(Default)]
pub struct Once(Mutex<HashMap<String, Slot>>);

impl Once {
    /// The answer to a question: one that is no older, or a new one. Whoever asks while it is made waits for it.
    pub async fn answer<T: Serialize>(
        &self,
        question: String,
        age: Duration,
        make: impl Future<Output = Result<T>>,
    ) -> Result<Response> {
        let slot = self.slot(question);
        let mut kept = slot.lock().await;
        if let Some((_, bytes)) = kept.as_ref().filter(|(at, _)| at.elapsed() < age) {
            return Ok(json(bytes.clone()));
        }
        let made = make.await?;
        let bytes = serde_json::to_vec(&made);
        let bytes = Bytes::from(bytes.map_err(|error| Problem::new(Code::Internal, error.to_string()))?);
        *kept = (bytes.len() <= BYTES_MAX).then(|| (Instant::now(), bytes.clone()));
        Ok(json(bytes))
    }

    /// The same where an answer may be as old as the caller says, and is made for it alone where it says nothing.
    pub async fn or_fresh<T: Serialize>(
        &self,
        question: impl FnOnce() -> String,
        max_age_ms: Option<u64>,
        make: impl Future<Output = Result<T>>,
    ) -> Result<Response> {
        match age(max_age_ms)? {
            Some(age) => self.answer(question(), age, make).await,
            None => Ok(ok(make.await?).into_response()),
        }
    }

    fn slot(&self, question: String) -> Slot {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT_MAX && !kept.contains_key(&question) {
            kept.clear();
        }
        kept.entry(question).or_default().clone()
    }
}

fn json(bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().reserve(6);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// How old an answer the caller takes, if it says.
fn age(max_age_ms: Option<u64>) -> Result<Option<Duration>> {
    match max_age_ms {
        Some(ms) if ms > AGE_MS_MAX => Err(Problem::invalid("max_age_ms", format!("{ms} is more than {AGE_MS_MAX}"))),
        ms => Ok(ms.filter(|ms| *ms > 0).map(Duration::from_millis)),
    }
}
