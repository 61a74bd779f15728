//! `windlass history`: how it went.

use super::{Context, Done};
use crate::{
    fail::code,
    output::{Rows, cell},
    times,
};
use clap::Args;
use windlass_api::overview::{Point, ReadHistory, Span};

/// What was done, by the minute for a day or by the hour for a month.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass history                      the last hour, by the minute
  windlass history --last 24            the last 24 lines instead of the last 60
  windlass history --month              by the hour, for 30 days
  windlass history -d render            jobs of one definition, by the hour
  windlass history -o jsonl             every figure, for programs")]
pub struct History {
    /// By the hour, for 30 days.
    #[arg(long)]
    month: bool,
    /// Only jobs of this definition that ended with a report of their worker, by the hour.
    #[arg(short, long, value_name = "NAME")]
    definition: Option<String>,
    /// Show so many of the latest lines. Not for JSON, which has all.
    #[arg(long, value_name = "COUNT", default_value_t = 60)]
    last: usize,
}

impl History {
    pub async fn run(self, context: &Context) -> Done {
        let span = if self.month { Span::Month } else { Span::Day };
        let query = ReadHistory { namespace: None, span: Some(span), definition: self.definition, max_age_ms: None };
        let history = context.client()?.history(&query).await?;
        let shown = &history.points[history.points.len().saturating_sub(self.last)..];
        context.format.many(if context.format.is_table() { shown } else { &history.points }, || table(shown))?;
        Ok(code::OK)
    }
}

fn table(points: &[Point]) -> Rows {
    let heads = ["FROM", "SUBMITTED", "CLAIMED", "COMPLETED", "FAILED", "WAIT P50", "WAIT P95", "RUN P50", "RUN P95"];
    let mut rows = Rows::new(&heads, "Nothing was done in this time.");
    let length = |ms: Option<u64>| cell(ms.map(times::short).unwrap_or_default());
    for point in points {
        let counts = [point.submitted, point.claimed, point.completed, point.failed];
        let mut cells = vec![cell(times::localised(&point.at))];
        cells.extend(counts.map(|count| cell(count.to_string())));
        cells.extend([point.wait_p50_ms, point.wait_p95_ms, point.run_p50_ms, point.run_p95_ms].map(length));
        rows.add(cells);
    }
    rows
}
