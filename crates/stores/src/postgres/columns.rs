//! The columns of a job, each stated once. Statements name them by placeholders:
//!
//! - `{job t}`, `{done t}`: what a job is read from, of an unfinished or a finished row called `t`.
//! - `{insert}`, `{update}`, `{finish}`: the columns that a new, a changed and a finished job is written to. With `from 3`
//!   as parameters from `$3` on, with `set` as assignments from `k`, with `of k` as columns of `k`.

use super::{rows::uuid_of, write::json};
use tokio_postgres::types::ToSql;
use windlass_core::Job;

pub type Column = Box<dyn ToSql + Sync + Send>;

/// What [`super::rows::Names::job`] reads a job from, in this order.
const READ: [&str; 9] = ["namespace", "id", "lane", "priority", "seq", "state", "due", "spec", "live"];
/// How many that are; a statement's further columns follow.
pub const READ_COUNT: usize = READ.len();

/// A column of jobs: its name, its type, and its values.
pub struct JobColumn(&'static str, &'static str, fn(&[&Job]) -> Column);

const NAMESPACE: JobColumn = JobColumn("namespace", "text", |jobs| column(jobs, |job| job.key.namespace.to_string()));
const ID: JobColumn = JobColumn("id", "uuid", |jobs| column(jobs, |job| job.key.id.0));
const LANE: JobColumn = JobColumn("lane", "uuid", |jobs| column(jobs, |job| uuid_of(job.lane)));
const RUN: JobColumn = JobColumn("run", "uuid", |jobs| column(jobs, |job| job.run().map(|run| run.0)));
const SPEC: JobColumn = JobColumn("spec", "text", |jobs| column(jobs, |job| json(&*job.spec)));
const SEQ: JobColumn = JobColumn("seq", "bigint", |jobs| column(jobs, |job| job.seq));
const DUE: JobColumn = JobColumn("due", "bigint", |jobs| column(jobs, |job| job.due.map(|due| due.0)));
const PRIORITY: JobColumn = JobColumn("priority", "integer", |jobs| column(jobs, |job| job.priority));
const STATE: JobColumn = JobColumn("state", "smallint", |jobs| column(jobs, |job| job.state.code()));
/// The hot table takes no finished job; one that ends as it begins is on its way through.
const FIRST_STATE: JobColumn =
    JobColumn("state", "smallint", |jobs| column(jobs, |job| if job.state.is_final() { 0 } else { job.state.code() }));
const WORKER: JobColumn = JobColumn("worker", "text", |jobs| column(jobs, |job| job.holder().map(ToString::to_string)));
const WAIT_KEY: JobColumn =
    JobColumn("wait_key", "text", |jobs| column(jobs, |job| job.waits_for_key().map(ToString::to_string)));
const LIVE: JobColumn = JobColumn("live", "text", |jobs| column(jobs, |job| json(&job.live)));

pub const INSERT: &[JobColumn] =
    &[NAMESPACE, ID, LANE, RUN, SPEC, SEQ, DUE, PRIORITY, FIRST_STATE, WORKER, WAIT_KEY, LIVE];
/// The row is found by other parameters before these.
pub const UPDATE: &[JobColumn] = &[SEQ, DUE, PRIORITY, STATE, WORKER, WAIT_KEY, LIVE];
pub const FINISH: &[JobColumn] = &[SEQ, DUE, PRIORITY, STATE, LIVE];

pub fn column<T, V>(items: &[T], value: impl Fn(&T) -> V) -> Column
where
    Vec<V>: ToSql + Sync + Send + 'static,
{
    Box::new(items.iter().map(value).collect::<Vec<V>>())
}

pub fn values<'a>(columns: &'a [JobColumn], jobs: &'a [&Job]) -> impl Iterator<Item = Column> + 'a {
    columns.iter().map(|JobColumn(_, _, values)| values(jobs))
}

/// What a job is read from, of the row called `row`. Finished jobs are kept without their lane.
pub fn read(row: &str, finished: bool) -> String {
    let column = |name: &&str| match *name {
        "lane" if finished => "NULL::uuid AS lane".to_owned(),
        name => format!("{row}.{name}"),
    };
    READ.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// A statement with its placeholders filled in.
pub fn filled(text: &str) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (placeholder, rest) = part.split_once('}').expect("statements close what they open");
        filled += &meant(placeholder);
        filled += rest;
    }
    filled
}

fn meant(placeholder: &str) -> String {
    let (list, form) = placeholder.split_once(' ').unwrap_or((placeholder, ""));
    let columns = match list {
        "job" => return read(form, false),
        "done" => return read(form, true),
        "insert" => INSERT,
        "update" => UPDATE,
        "finish" => FINISH,
        other => panic!("no columns are called {other:?}"),
    };
    let (form, detail) = form.split_once(' ').unwrap_or((form, ""));
    let first: usize = detail.parse().unwrap_or(1);
    let one = |(at, JobColumn(name, kind, _)): (usize, &JobColumn)| match form {
        "from" => format!("${}::{kind}[]", first + at),
        "set" => format!("{name} = k.{name}"),
        "of" => format!("{detail}.{name}"),
        _ => (*name).to_owned(),
    };
    columns.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_the_lists() {
        let text = filled("SET {finish set} FROM unnest({finish from 3}) AS k ({finish}) RETURNING {finish of k}");
        let expected = "SET seq = k.seq, due = k.due, priority = k.priority, state = k.state, live = k.live \
                        FROM unnest($3::bigint[], $4::bigint[], $5::integer[], $6::smallint[], $7::text[]) \
                        AS k (seq, due, priority, state, live) RETURNING k.seq, k.due, k.priority, k.state, k.live";
        assert_eq!(text, expected);
        assert!(filled("{done t}").starts_with("t.namespace, t.id, NULL::uuid AS lane, t.priority"));
    }
}
