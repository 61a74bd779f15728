//! Answers that are lists, written while they are read: a long one takes no more memory than a short one.

use super::body::{HttpError, Result};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use std::io;
use tokio::sync::mpsc;

/// What is written at a time, and how many of these may wait for the reader.
pub const PART_BYTES: usize = 32 << 10;
pub const PARTS_WAITING: usize = 2;

/// A list that is being written.
pub struct Array {
    parts: mpsc::Sender<io::Result<Bytes>>,
    text: Vec<u8>,
    is_begun: bool,
}

/// The list that somebody writes. Half a list is none: where the writer fails the connection ends.
pub fn answer<F>(write: impl FnOnce(Array) -> F) -> Response
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (parts, queue) = mpsc::channel(PARTS_WAITING);
    let written = write(Array { parts: parts.clone(), text: Vec::from(b"["), is_begun: false });
    tokio::spawn(async move {
        if let Err(HttpError(status, why)) = written.await {
            drop(parts.send(Err(io::Error::other(format!("{status} {why}")))).await);
        }
    });
    let parts = stream::unfold(queue, |mut queue| async move { queue.recv().await.map(|part| (part, queue)) });
    let mut response = Body::from_stream(parts).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl Array {
    /// An error if nobody reads any more.
    pub async fn push(&mut self, one: &impl Serialize) -> Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            self.text.push(b',');
        }
        let failed = |error: serde_json::Error| HttpError(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
        serde_json::to_writer(&mut self.text, one).map_err(failed)?;
        if self.text.len() >= PART_BYTES { self.send().await } else { Ok(()) }
    }

    pub async fn end(mut self) -> Result<()> {
        self.text.push(b']');
        self.send().await
    }

    async fn send(&mut self) -> Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.text));
        self.parts.send(Ok(part)).await.map_err(|_| HttpError(StatusCode::GONE, "the reader is gone".to_owned()))
    }
}
