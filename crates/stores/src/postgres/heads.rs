//! The fronts of the lanes an offer can serve: the claim's selection, whose reference is `windlass_core::select`.
//!
//! The first look takes what is there in one round trip, and is all there is to it while there is enough work. Only when it
//! finds too little is the truth established: lanes that appeared meanwhile are read, and jobs that others have locked are
//! waited for, because their holder may still let go of them.

use super::{
    columns::READ_COUNT,
    connection::Connection,
    failure::Failure,
    lanes::Lanes,
    pipe::send,
    rows::{Names, payload},
    spot::Spot,
    statements::Sql,
};
use serde_json::from_str;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio_postgres::Row;
use uuid::Uuid;
use windlass_core::{Head, HeadQuery, Lane, Tags};

/// Up to so many lanes are all looked into at every claim.
const LANES_MAX: usize = 512;
/// Of more lanes than that, so many with the best known fronts.
const LANES_FIRST: usize = 256;
/// Lanes with work that are listed at most; with more, all lanes of the offer are looked into instead.
const BUSY_MAX: i64 = 20_000;
/// How many more jobs than wanted are read, since others may have locked some.
const SLACK: i64 = 16;
/// Every round waits for at least one other transaction, or reads four times as far.
const ROUNDS_MAX: usize = 64;

/// What the first look found; none where it did not look.
pub struct Look(Option<Vec<Found>>);

impl Look {
    pub fn found(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }

    /// As it is, for whoever need not wait for what others have locked.
    pub fn glanced(self) -> Result<Vec<Found>, Self> {
        self.0.ok_or(Self(None))
    }
}

/// The front of a lane, locked, and where it stands.
pub type Found = (Head, Spot);

/// Those that were taken, and how many there were to choose from.
type Fronts = (Vec<Found>, i64);

pub async fn first_look(
    connection: &Connection,
    lanes: &Lanes,
    query: &HeadQuery,
    count: usize,
) -> Result<Look, Failure> {
    let serving = lanes.serving(query);
    let namespace = query.namespace.as_str();
    let wanted = count as i64;
    match &serving[..] {
        [] => Ok(Look(None)),
        [one] => {
            let rows = connection.query(Sql::HeadsOne, &[&namespace, one, &wanted]).await?;
            Ok(Look(Some(read(&rows, READ_COUNT + 1)?)))
        }
        all if all.len() <= LANES_MAX => {
            Ok(Look(Some(heads(connection, namespace, all, wanted, wanted + SLACK).await?.0)))
        }
        all => match lanes.best_known(&query.namespace, all, LANES_FIRST) {
            Some(best) => Ok(Look(Some(heads(connection, namespace, &best, wanted, wanted + SLACK).await?.0))),
            None => Ok(Look(None)),
        },
    }
}

/// For whoever has work anyway: in one round trip all there is, also in lanes that appeared meanwhile, but for what others have
/// locked.
pub async fn glance(connection: &Connection, lanes: &Lanes, query: &HeadQuery, count: usize) -> Result<Look, Failure> {
    if lanes.serving(query).len() > LANES_MAX {
        return Ok(Look(None));
    }
    let wanted = count as i64;
    let (serving, looked) = refresh_and_look(connection, lanes, query, wanted, wanted + SLACK).await?;
    let nothing = serving.is_empty().then(Vec::new);
    Ok(Look(looked.map(|(found, _)| found).or(nothing)))
}

/// Enough, or all there is. `flights` counts how often that has to be waited for.
pub async fn look_until_enough(
    connection: &Connection,
    lanes: &Lanes,
    query: &HeadQuery,
    count: usize,
    look: Look,
    flights: &AtomicU64,
) -> Result<Vec<Found>, Failure> {
    if let Some(found) = look.0.filter(|found| found.len() >= count) {
        return Ok(found);
    }
    let fly = || flights.fetch_add(1, Ordering::Relaxed);
    let namespace = query.namespace.as_str();
    let wanted = count as i64;
    let mut limit = wanted + SLACK;
    fly();
    let (serving, mut looked) = refresh_and_look(connection, lanes, query, wanted, limit).await?;
    if serving.is_empty() {
        return Ok(Vec::new());
    }
    for _ in 0..ROUNDS_MAX {
        let (found, seen) = match looked.take() {
            Some(looked) => looked,
            None => {
                fly();
                heads(connection, namespace, &serving, wanted, limit).await?
            }
        };
        if found.len() >= count || found.len() as i64 == seen {
            return Ok(found);
        }
        if seen == limit {
            limit *= 4;
            continue;
        }
        let ours: Vec<Uuid> = found.iter().map(|(head, _)| head.job.key.id.0).collect();
        fly();
        connection.query(Sql::WaitForHead, &[&namespace, &&serving[..], &ours]).await?;
    }
    Err(Failure::Conflict("the jobs to be claimed were always locked by others".into()))
}

/// The lanes that are worth a look, and a look into them that was on its way while the lanes were read again. That look counts
/// only if no lane was added that the offer can serve.
async fn refresh_and_look(
    connection: &Connection,
    lanes: &Lanes,
    query: &HeadQuery,
    wanted: i64,
    limit: i64,
) -> Result<(Arc<[Uuid]>, Option<Fronts>), Failure> {
    let known = lanes.serving(query);
    let refreshed = send(refresh(connection, lanes));
    let all = (1..=LANES_MAX).contains(&known.len());
    let looked = all.then(|| send(heads(connection, query.namespace.as_str(), &known, wanted, limit)));
    refreshed.await?;
    let looked = match looked {
        Some(looked) => Some(looked.await?),
        None => None,
    };
    let serving = worth_a_look(connection, lanes, query).await?;
    let looked = looked.filter(|_| serving == known);
    Ok((serving, looked))
}

async fn heads(
    connection: &Connection,
    namespace: &str,
    lanes: &[Uuid],
    wanted: i64,
    limit: i64,
) -> Result<Fronts, Failure> {
    let rows = connection.query(Sql::Heads, &[&namespace, &lanes, &wanted, &limit]).await?;
    let seen = rows.first().map_or(Ok(0), |row| row.try_get(READ_COUNT + 1))?;
    // A single row without a job only carries the count.
    let taken: Vec<Row> =
        rows.into_iter().filter(|row| matches!(row.try_get::<_, Option<Uuid>>(1), Ok(Some(_)))).collect();
    Ok((read(&taken, READ_COUNT + 2)?, seen))
}

fn read(rows: &[Row], spot: usize) -> Result<Vec<Found>, Failure> {
    let mut names = Names::default();
    let found = |row: &Row| Ok((Head { job: names.job(row)?, payload: payload(row, READ_COUNT)? }, row.try_get(spot)?));
    rows.iter().map(found).collect()
}

/// Reads the lanes that appeared since they were last read.
pub async fn refresh(connection: &Connection, lanes: &Lanes) -> Result<(), Failure> {
    let since = lanes.horizon();
    let horizon = send(connection.query(Sql::Horizon, &[]));
    let added = send(async move { connection.query(Sql::ReadLanes, &[&since]).await });
    let horizon: i64 = horizon.await?.first().map_or(Ok(0), |row| row.try_get(0))?;
    let mut names = Names::default();
    for row in added.await? {
        let tags: Tags = from_str(row.try_get(2)?)?;
        lanes.learn(&names.get(row.try_get(0)?)?, Lane(row.try_get::<_, Uuid>(1)?.as_u128()), &tags);
    }
    lanes.read_up_to(horizon);
    Ok(())
}

/// All lanes of the offer, or of very many only those that have work now.
async fn worth_a_look(connection: &Connection, lanes: &Lanes, query: &HeadQuery) -> Result<Arc<[Uuid]>, Failure> {
    let serving = lanes.serving(query);
    if serving.len() <= LANES_MAX {
        return Ok(serving);
    }
    let rows = connection.query(Sql::BusyLanes, &[&query.namespace.as_str(), &BUSY_MAX]).await?;
    let mut busy = HashMap::with_capacity(rows.len());
    for row in &rows {
        busy.insert(row.try_get::<_, Uuid>(0)?, (row.try_get::<_, i32>(1)?, row.try_get::<_, i64>(2)?));
    }
    let complete = (rows.len() as i64) < BUSY_MAX;
    let working: Arc<[Uuid]> = serving.iter().filter(|lane| busy.contains_key(lane)).copied().collect();
    lanes.saw_busy(&query.namespace, busy);
    Ok(if complete { working } else { serving })
}
