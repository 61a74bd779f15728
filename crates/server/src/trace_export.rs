//! Sends spans as OTLP over HTTP, in JSON. Bounded: a collector that is slow or gone costs spans, never requests.
//!
//! By hand, because three kinds of spans do not pay for the build time of the OpenTelemetry crates.

use crate::trace::TraceParent;
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use windlass_core::Timestamp;

const QUEUE: usize = 4_096;
const BATCH: usize = 512;
const GATHER: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(5);
/// SPAN_KIND_SERVER.
const SERVER: u8 = 2;

pub struct Finished {
    pub context: TraceParent,
    pub parent: Option<u64>,
    pub name: &'static str,
    pub started: Timestamp,
    pub took: Duration,
    pub attributes: Vec<(&'static str, String)>,
}

enum Message {
    Span(Finished),
    Flush(oneshot::Sender<()>),
}

pub struct Exporter {
    queue: mpsc::Sender<Message>,
    dropped: AtomicU64,
}

impl Exporter {
    pub fn start(endpoint: &str) -> Result<Self, String> {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let url = reqwest::Url::parse(&url).map_err(|error| format!("{endpoint:?} is not a URL: {error}"))?;
        // An error only says that somebody chose a provider before.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = reqwest::Client::builder().timeout(PATIENCE).build();
        let client = client.map_err(|error| format!("no client for {endpoint:?}: {error}"))?;
        let (queue, messages) = mpsc::channel(QUEUE);
        tokio::spawn(export(messages, client, url));
        Ok(Self { queue, dropped: AtomicU64::new(0) })
    }

    pub fn send(&self, span: Finished) {
        if self.queue.try_send(Message::Span(span)).is_err() && self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("spans are dropped: the collector does not keep up");
        }
    }

    pub async fn flush(&self) {
        let (done, wait) = oneshot::channel();
        let asked = tokio::time::timeout(PATIENCE, self.queue.send(Message::Flush(done))).await;
        if asked.is_ok_and(|asked| asked.is_ok()) {
            drop(tokio::time::timeout(PATIENCE, wait).await);
        }
    }
}

async fn export(mut messages: mpsc::Receiver<Message>, client: reqwest::Client, url: reqwest::Url) {
    let mut failing = false;
    let mut batch = Vec::with_capacity(BATCH);
    while messages.recv_many(&mut batch, BATCH).await > 0 {
        let flushes = |batch: &[Message]| batch.iter().any(|message| matches!(message, Message::Flush(_)));
        if batch.len() < BATCH && !flushes(&batch) {
            let more = messages.recv_many(&mut batch, BATCH);
            drop(tokio::time::timeout(GATHER, more).await);
        }
        let (mut spans, mut waiting) = (Vec::new(), Vec::new());
        for message in batch.drain(..) {
            match message {
                Message::Span(span) => spans.push(span_json(&span)),
                Message::Flush(done) => waiting.push(done),
            }
        }
        if !spans.is_empty() {
            let sent = post(&client, &url, spans).await;
            // Once per outage, not once per batch.
            if let (Err(why), false) = (&sent, failing) {
                tracing::warn!(%why, "spans could not be sent");
            }
            failing = sent.is_err();
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
}

async fn post(client: &reqwest::Client, url: &reqwest::Url, spans: Vec<Value>) -> Result<(), String> {
    let service = json!([{"key": "service.name", "value": {"stringValue": "windlass"}}]);
    let scope = json!({"name": "windlass", "version": env!("CARGO_PKG_VERSION")});
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": service},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    let answer = client.post(url.clone()).json(&body).send().await;
    // The address may hold a key, so errors are told without it.
    let answer = answer.map_err(|error| error.without_url().to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("the collector answered {}", answer.status())) }
}

fn span_json(span: &Finished) -> Value {
    let start = i128::from(span.started.0) * 1_000_000;
    let end = start + span.took.as_nanos() as i128;
    let attributes: Vec<Value> =
        span.attributes.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect();
    let mut json = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": SERVER,
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": end.to_string(),
        "attributes": attributes,
    });
    if let Some(parent) = span.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    json
}
