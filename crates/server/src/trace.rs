//! Traces that follow a job from submit over its workers to its end.
//!
//! A caller's `traceparent` (W3C Trace Context) is kept on the job and handed to the worker that claims it, whether or not
//! this server sends spans anywhere. With an endpoint it draws one where a caller has none, and sends spans of its own.

use crate::{
    route::Header,
    trace_export::{Exporter, Finished},
};
use http::HeaderMap;
use serde::Deserialize;
use std::{fmt, sync::Arc, time::Instant};
use windlass_core::{Job, Leased, Timestamp, commands::submit::NewJob};
use windlass_engine::clock::{Clock, System};

/// Which trace, and which span of it is the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: u128,
    pub span: u64,
    pub flags: u8,
}

const SAMPLED: u8 = 1;

pub const TRACEPARENT: Header =
    Header::text("traceparent", "The trace the jobs belong to (W3C Trace Context); handed to their workers.");

impl TraceParent {
    /// `00-TRACE-SPAN-FLAGS`; versions to come may add more behind that.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut part = |length: usize| {
            let part = parts.next()?;
            let digits = part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            (part.len() == length && digits).then_some(part)
        };
        let (version, trace, span, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        let more = parts.next().is_some();
        let parent = Self {
            trace: u128::from_str_radix(trace, 16).ok()?,
            span: u64::from_str_radix(span, 16).ok()?,
            flags: u8::from_str_radix(flags, 16).ok()?,
        };
        let legal = version != "ff" && !(version == "00" && more) && parent.trace != 0 && parent.span != 0;
        legal.then_some(parent)
    }

    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace)
    }

    fn draw() -> Self {
        Self { trace: rand::random::<u128>() | 1, span: draw_span(), flags: SAMPLED }
    }
}

fn draw_span() -> u64 {
    rand::random::<u64>() | 1
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

pub fn parent(headers: &HeaderMap) -> Option<TraceParent> {
    // As its specification wants it, a broken one is as good as none.
    TraceParent::parse(TRACEPARENT.of(headers).ok()??)
}

/// The trace a job belongs to, from what it carries along.
pub fn of_extra(extra: Option<&str>) -> Option<TraceParent> {
    #[derive(Deserialize)]
    struct Extra {
        traceparent: Option<String>,
    }
    let extra = extra.filter(|extra| extra.contains("traceparent"))?;
    TraceParent::parse(&serde_json::from_str::<Extra>(extra).ok()?.traceparent?)
}

/// Where spans go; nowhere by default.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<Exporter>>);

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Traces(on)" } else { "Traces(off)" })
    }
}

impl Traces {
    /// To a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`.
    pub fn to(endpoint: &str) -> Result<Self, String> {
        Ok(Self(Some(Arc::new(Exporter::start(endpoint)?))))
    }

    /// Sends what is still here.
    pub async fn flush(&self) {
        if let Some(exporter) = &self.0 {
            exporter.flush().await;
        }
    }

    /// A span that ends when it is dropped.
    pub fn begin(&self, name: &'static str, parent: Option<TraceParent>) -> Span {
        let Some(exporter) = &self.0 else { return Span { context: parent, open: None } };
        let context = match parent {
            Some(parent) => TraceParent { span: draw_span(), ..parent },
            None => TraceParent::draw(),
        };
        let finished = Finished {
            context,
            parent: parent.map(|parent| parent.span),
            name,
            started: System::default().now(),
            took: Default::default(),
            attributes: Vec::new(),
        };
        Span { context: Some(context), open: Some((exporter.clone(), Instant::now(), finished)) }
    }

    /// One short span per job that was handed out.
    pub fn claimed(&self, leases: &[Leased]) {
        if self.0.is_some() {
            leases.iter().for_each(|leased| self.about("claim", &leased.job, leased.job.live.claimed_at));
        }
    }

    /// The end of an attempt, as its worker reported it.
    pub fn ended(&self, name: &'static str, job: &Job) {
        if self.0.is_some() {
            self.about(name, job, job.live.finished_at);
        }
    }

    fn about(&self, name: &'static str, job: &Job, at: Option<Timestamp>) {
        let Some(parent) = of_extra(job.spec.extra.as_deref()) else { return };
        let mut span = self.begin(name, Some(parent));
        span.note("windlass.job", job.key.id);
        span.note("windlass.namespace", &job.key.namespace);
        span.note("windlass.attempt", job.live.attempt);
        span.note("windlass.state", job.state.name());
        if let (Some((_, _, finished)), Some(at)) = (&mut span.open, at) {
            finished.started = at;
        }
    }
}

pub struct Span {
    context: Option<TraceParent>,
    open: Option<(Arc<Exporter>, Instant, Finished)>,
}

impl Span {
    pub fn note(&mut self, key: &'static str, value: impl fmt::Display) {
        if let Some((_, _, finished)) = &mut self.open {
            finished.attributes.push((key, value.to_string()));
        }
    }

    /// Lets a job carry its trace along.
    pub fn stamp(&mut self, job: &mut NewJob) {
        if let (Some(context), None) = (self.context, &job.extra) {
            job.extra = Some(format!(r#"{{"traceparent":"{context}"}}"#).into());
            self.note("windlass.job", job.id);
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some((exporter, began, mut finished)) = self.open.take() {
            finished.took = began.elapsed();
            exporter.send(finished);
        }
    }
}
