//! Where the fronts of lanes begin, so that a claim need not step over what was claimed before.
//!
//! A claimed job leaves its entry in the claim's index behind until nobody's snapshot can see it any more. While somebody keeps
//! a transaction open for minutes, those entries pile up at the very front, and every claim would visit them all. A lane's
//! mark says: nothing is pending below. It is read by the statement that claims, so the two never disagree; whoever queues a
//! job below moves it down in the same transaction.
//!
//! It is moved up in two steps, because a transaction that is about to commit cannot be seen. First the new place is
//! proposed, under an id of its own; from then on whoever queues below takes the proposal back. Then all transactions that had written jobs by
//! that time are waited for: what they queued can be seen now, and the mark goes no further than the first pending job.

use super::{connection::Pool, failure::Failure, rows::uuid_of, statements::Sql};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::mpsc, time::sleep};
use tokio_postgres::Row;
use uuid::Uuid;
use windlass_core::{Decision, Job, Lane, Namespace, State};

/// Marks on their way at once. More are left out: their lanes get another chance.
const WAITING_MAX: usize = 64;
/// Lanes counted at once, before counting starts afresh.
const LANES_MAX: usize = 4_096;
/// How long to wait for other transactions, a little longer each time.
const PAUSES: u32 = 12;

type QueuePosition = (i32, i64);

pub struct Marks {
    counts: Mutex<HashMap<(Namespace, Lane), (usize, QueuePosition)>>,
    every: usize,
    raises: mpsc::Sender<Raise>,
}

struct Raise {
    namespace: Namespace,
    lane: Lane,
    to: QueuePosition,
}

impl Marks {
    pub fn start(pool: Arc<Pool>, every: usize) -> Self {
        let (raises, mut asked) = mpsc::channel::<Raise>(WAITING_MAX);
        tokio::spawn(async move {
            while let Some(raise) = asked.recv().await {
                if let Err(failure) = raise.work(&pool).await {
                    tracing::debug!(?failure, "a lane's mark was left where it was");
                }
            }
        });
        Self { counts: Mutex::default(), every, raises }
    }

    /// Counts what a batch claims. Whether it is committed does not matter: a mark is checked before it is moved.
    pub fn count(&self, decision: &Decision) {
        let claimed = decision.jobs.iter().filter(|change| change.new.as_ref().is_some_and(|job| job.state.is_held()));
        let claimed = claimed.filter_map(|change| change.old.as_ref()).filter(|old| old.state == State::Pending);
        let mut counts = self.counts.lock();
        for job in claimed {
            self.count_one(&mut counts, job);
        }
    }

    fn count_one(&self, counts: &mut HashMap<(Namespace, Lane), (usize, QueuePosition)>, job: &Job) {
        if counts.len() >= LANES_MAX {
            counts.clear();
        }
        let place = (job.priority, job.seq);
        let lane = (job.key.namespace.clone(), job.lane);
        let (count, furthest) = counts.entry(lane.clone()).or_insert((0, place));
        (*count, *furthest) = (*count + 1, place.max(*furthest));
        if *count >= self.every {
            let to = *furthest;
            counts.remove(&lane);
            let _ = self.raises.try_send(Raise { namespace: lane.0, lane: lane.1, to });
        }
    }
}

impl Raise {
    async fn work(&self, pool: &Arc<Pool>) -> Result<(), Failure> {
        let connection = pool.take().await.map_err(Failure::Refused)?;
        let (namespace, lane, (priority, seq)) = (self.namespace.as_str(), uuid_of(self.lane), self.to);
        let by = Uuid::new_v4();
        connection.execute(Sql::ProposeMark, &[&namespace, &lane, &priority, &seq, &by]).await?;
        let waited_for = writers(&connection.query(Sql::JobWriters, &[]).await?)?;
        for pause in 1..=PAUSES {
            let open = writers(&connection.query(Sql::JobWriters, &[]).await?)?;
            if open.is_disjoint(&waited_for) {
                connection.execute(Sql::RaiseMark, &[&namespace, &lane, &priority, &seq, &by]).await?;
                break;
            }
            sleep(Duration::from_millis(2 << pause)).await;
        }
        connection.give_back();
        Ok(())
    }
}

fn writers(rows: &[Row]) -> Result<HashSet<String>, Failure> {
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}
