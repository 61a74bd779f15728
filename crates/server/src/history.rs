//! Writes down what was done: each minute for a day, each hour for a month.
//!
//! One record holds the minutes of an hour, another the hours of a day; both expire by themselves, so what is kept has a bound.
//! Several servers add to the same record, one after the other. Where nothing was done nothing is written.

use crate::{
    app::App,
    auth::{hash, system_namespace},
    problem::Result,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};
use tokio::time::sleep;
use windlass_core::{
    JobId, Millis, Namespace, Record, RecordKey, Refusal, Timestamp,
    commands::records::{Expect, PutRecord},
};
use windlass_engine::{
    Error,
    history::{Figures, MINUTE_MS, Minute, RECENT_MAX, Whose},
    store::RecordQuery,
};

pub mod workers;

const KIND: &str = "history";
const EVERY: Duration = Duration::from_secs(60);
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const MINUTES_KEPT: Millis = Millis(26 * HOUR_MS);
const HOURS_KEPT: Millis = Millis(32 * DAY_MS);
/// How often it is tried again when another server was faster.
const TRIES: usize = 5;
/// Definitions of one day that are looked at together.
const DEFINITIONS_MAX: usize = 500;

/// The rows of one record, by when they begin, in steps of a minute or an hour.
#[derive(Default, Serialize, Deserialize)]
struct Sheet {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Arc<str>>,
    /// The jobs of the definition that ended last, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    recent: Vec<JobId>,
    rows: BTreeMap<i64, Figures>,
}

/// The name of a sheet: the minutes of an hour, or the hours of a day.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    whose: Whose,
    by_minute: bool,
    number: i64,
}

impl Name {
    fn new(whose: &Whose, by_minute: bool, minute: Minute) -> Self {
        let length = if by_minute { HOUR_MS } else { DAY_MS };
        Self { whose: whose.clone(), by_minute, number: minute * MINUTE_MS / length }
    }

    /// No namespace has a `~` in its name. Definitions, of which only hours are kept, must not lie between those of their namespace.
    fn prefix(&self) -> String {
        let namespace = &self.whose.namespace;
        match &self.whose.definition {
            None if self.by_minute => format!("m~{namespace}~"),
            None => format!("h~{namespace}~"),
            Some(name) => format!("d~{namespace}~{}~", &hash(name)[..32]),
        }
    }

    fn key(&self) -> RecordKey {
        let key = format!("{}{:010}", self.prefix(), self.number).into();
        RecordKey { namespace: system_namespace(), kind: KIND.into(), key }
    }

    /// Sheets of definitions are found by their day.
    fn parent(&self) -> Option<Arc<str>> {
        self.whose.definition.is_some().then(|| parent(&self.whose.namespace, self.number))
    }

    fn expires_at(&self) -> Timestamp {
        match self.by_minute {
            true => Timestamp((self.number + 1) * HOUR_MS) + MINUTES_KEPT,
            false => Timestamp((self.number + 1) * DAY_MS) + HOURS_KEPT,
        }
    }
}

fn parent(namespace: &Namespace, day: i64) -> Arc<str> {
    format!("{namespace}~{day}").into()
}

/// Runs until the server stops, and writes down the rest then.
pub async fn run(app: App) {
    loop {
        let stops = tokio::select! {
            () = sleep(EVERY) => false,
            () = app.drain.cancelled() => true,
        };
        write_down(&app).await;
        if stops {
            return;
        }
    }
}

/// One after the other, namespaces before definitions: until its turn comes, each is found in what the engine holds.
pub async fn write_down(app: &App) {
    for whose in app.engine.history().whose() {
        let mut sheets: HashMap<Name, Vec<(Minute, Figures)>> = HashMap::new();
        for (minute, figures) in app.engine.history().take(&whose) {
            if whose.definition.is_none() {
                sheets.entry(Name::new(&whose, true, minute)).or_default().push((minute, figures.clone()));
            }
            sheets.entry(Name::new(&whose, false, minute)).or_default().push((minute, figures));
        }
        for (name, rows) in sheets {
            if let Err(problem) = add(app, &name, &rows).await {
                tracing::warn!(problem = %problem.0, "figures of some minutes are lost");
            }
        }
    }
    workers::write_down(app).await;
}

async fn add(app: &App, name: &Name, rows: &[(Minute, Figures)]) -> Result<()> {
    let fill = |sheet: &mut Sheet| {
        sheet.definition = name.whose.definition.clone();
        let step = if name.by_minute { MINUTE_MS } else { HOUR_MS };
        for (minute, figures) in rows {
            sheet.recent.extend(&figures.recent);
            let row = sheet.rows.entry(minute * MINUTE_MS / step).or_default();
            row.add(figures);
            row.recent.clear();
        }
        sheet.recent.drain(..sheet.recent.len().saturating_sub(RECENT_MAX));
    };
    change(app, &name.key(), name.parent(), name.expires_at(), fill).await
}

/// Reads a record, adds to it and writes it, again if another server was faster.
async fn change<T: Default + Serialize + DeserializeOwned>(
    app: &App,
    key: &RecordKey,
    parent: Option<Arc<str>>,
    expires_at: Timestamp,
    fill: impl Fn(&mut T),
) -> Result<()> {
    let mut tries = TRIES;
    loop {
        let found = app.engine.store().record(key).await?;
        let mut value = found.as_ref().map_or_else(T::default, read);
        fill(&mut value);
        let put = PutRecord {
            key: key.clone(),
            expect: found.map_or(Expect::Nothing, |found| Expect::Version(found.version)),
            parent: parent.clone(),
            value: serde_json::to_string(&value).unwrap_or_default().into(),
            facets: Vec::new(),
            expires_at: Some(expires_at),
        };
        tries -= 1;
        match app.engine.run(put).await {
            Err(Error::Refused(Refusal::VersionMismatch { .. } | Refusal::Exists { .. })) if tries > 0 => {}
            done => return Ok(done.map(drop)?),
        }
    }
}

fn read<T: Default + DeserializeOwned>(record: &Record) -> T {
    serde_json::from_str(&record.value).unwrap_or_default()
}

/// What was done since then, by when it began, in steps of so many milliseconds.
pub async fn rows(app: &App, whose: &Whose, by_minute: bool, since: Timestamp) -> Result<BTreeMap<i64, Figures>> {
    Ok(told(app, whose, by_minute, since).await?.0)
}

/// The same, and the jobs that ended last, the last one first.
pub async fn told(
    app: &App,
    whose: &Whose,
    by_minute: bool,
    since: Timestamp,
) -> Result<(BTreeMap<i64, Figures>, Vec<JobId>)> {
    let name = Name::new(whose, by_minute, since.0 / MINUTE_MS);
    let prefix = name.prefix();
    let query = RecordQuery {
        namespace: system_namespace(),
        kind: KIND.into(),
        parent: None,
        facet: None,
        after: Some(format!("{prefix}{:010}", name.number - 1).into()),
        limit: 40,
    };
    let step = if by_minute { MINUTE_MS } else { HOUR_MS };
    let mut found: BTreeMap<i64, Figures> = BTreeMap::new();
    let mut recent = Vec::new();
    for record in app.engine.store().records(&query).await?.iter().filter(|record| record.key.key.starts_with(&prefix))
    {
        let sheet: Sheet = read(record);
        recent.extend(sheet.recent);
        for (at, figures) in sheet.rows {
            found.entry(at).or_default().add(&figures);
        }
    }
    let mut held = app.engine.history().look(whose);
    held.sort_by_key(|(minute, _)| *minute);
    for (minute, figures) in held {
        recent.extend(&figures.recent);
        found.entry(minute * MINUTE_MS / step).or_default().add(&figures);
    }
    found.retain(|at, _| (at + 1) * step > since.0);
    Ok((found, recent.into_iter().rev().take(RECENT_MAX).collect()))
}

/// What became of all jobs of a namespace in the time that [`definitions`] tells of.
pub async fn lately(app: &App, namespace: &Namespace, now: Timestamp) -> Result<Figures> {
    let since = Timestamp((now.0 / HOUR_MS - 1) * HOUR_MS);
    let whose = Whose { namespace: namespace.clone(), definition: None };
    let mut sum = Figures::default();
    rows(app, &whose, false, since).await?.values().for_each(|figures| sum.add(figures));
    Ok(sum)
}

/// What became of the jobs of each definition since an hour ago, or up to two.
pub async fn definitions(app: &App, namespace: &Namespace, now: Timestamp) -> Result<BTreeMap<Arc<str>, Figures>> {
    let hour = now.0 / HOUR_MS;
    let mut found: BTreeMap<Arc<str>, Figures> = BTreeMap::new();
    for day in
        [(hour - 1) * HOUR_MS / DAY_MS, hour * HOUR_MS / DAY_MS].into_iter().collect::<std::collections::BTreeSet<_>>()
    {
        let query = RecordQuery {
            parent: Some(parent(namespace, day)),
            limit: DEFINITIONS_MAX,
            ..RecordQuery::all(system_namespace(), KIND)
        };
        for sheet in app.engine.store().records(&query).await?.iter().map(read::<Sheet>) {
            let Some(definition) = sheet.definition else { continue };
            let late = sheet.rows.range(hour - 1..);
            late.for_each(|(_, figures)| found.entry(definition.clone()).or_default().add(figures));
        }
    }
    for (name, figures) in app.engine.history().definitions(namespace) {
        found.entry(name).or_default().add(&figures);
    }
    Ok(found)
}
