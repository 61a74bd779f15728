//! Small payloads stand in the rows of their jobs, larger ones apart. Nobody who reads them can tell.

use crate::support::{claim, complete, leases_of, ns, quiet, run, submit};
use windlass_core::{
    Command, JobId, JobKey, Reply,
    commands::{
        retry::Retry,
        submit::{NewJob, Submit},
    },
};
use windlass_engine::store::Store;
use windlass_stores::{postgres::Postgres, testing::Cluster};

/// Around the largest size that stands in a row.
const SIZES: [usize; 6] = [0, 1, 255, 256, 257, 100_000];

fn key(id: u128) -> JobKey {
    JobKey::new(&ns(), JobId::from_u128(id))
}

fn text(size: usize) -> String {
    "windlass".chars().cycle().take(size).collect()
}

fn sized(id: u128, size: usize) -> Submit {
    let job = NewJob { payload: text(size).as_str().into(), ..NewJob::new(JobId::from_u128(id)) };
    Submit { namespace: ns(), job }
}

async fn open() -> (Postgres, String) {
    let url = Cluster::shared().fresh_database();
    let database = url.rsplit('/').next().unwrap().to_owned();
    (Postgres::connect(quiet(url)).await.unwrap(), database)
}

/// What a claim for all of them hands out, by id.
async fn claimed(store: &Postgres, secret: u128, count: u128) -> Vec<(u128, usize)> {
    let replies = run(store, vec![claim("w", secret, count).into()]).await.unwrap().replies;
    let Ok(Reply::Leases(leased)) = &replies[0] else { panic!("{replies:?}") };
    let sizes = leased.iter().map(|one| {
        assert_eq!(one.payload.as_bytes(), text(one.payload.len()).as_bytes());
        (one.lease.job.0.as_u128(), one.payload.len())
    });
    let sizes = sizes.collect();
    let ends = leases_of(&replies).into_iter().map(|lease| complete(lease, "done").into()).collect();
    run(store, ends).await.unwrap();
    sizes
}

async fn all_are_read_back(store: &Postgres, sizes: &[(u128, usize)]) {
    for &(id, size) in sizes {
        assert_eq!(store.body(&key(id)).await.unwrap().unwrap().payload.as_bytes(), text(size).as_bytes(), "{id}");
    }
    let keys: Vec<JobKey> = sizes.iter().map(|(id, _)| key(*id)).collect();
    let small = store.small_payloads(&keys, 256).await.unwrap();
    let small: Vec<(u128, usize)> = small.iter().map(|(key, data)| (key.id.0.as_u128(), data.len())).collect();
    let expected = sizes.iter().filter(|(_, size)| (1..=256).contains(size)).copied().collect::<Vec<_>>();
    assert_eq!(small, expected);
}

#[tokio::test]
async fn payloads_of_all_sizes_are_read_back_while_their_job_waits_and_after_it_ended() {
    let (store, database) = open().await;
    // The first batch looks and writes its lane down, the second is written at once.
    let mut jobs = Vec::new();
    for batch in [10, 20] {
        let new: Vec<(u128, usize)> = SIZES.iter().zip(batch..).map(|(size, id)| (id, *size)).collect();
        run(&store, new.iter().map(|&(id, size)| sized(id, size).into()).collect()).await.unwrap();
        jobs.extend(new);
    }
    let apart = "SELECT count(*), min(octet_length(data)) FROM windlass.payloads";
    assert_eq!(Cluster::shared().sql(&database, apart), "4|257");
    all_are_read_back(&store, &jobs).await;
    assert_eq!(claimed(&store, 1, 12).await, jobs);
    all_are_read_back(&store, &jobs).await;
    // A retry takes over what the ended job was given.
    let again =
        |id: u128| Retry { namespace: ns(), job: JobId::from_u128(id), id: JobId::from_u128(100 + id), again: false };
    run(&store, jobs.iter().map(|(id, _)| Command::from(again(*id))).collect()).await.unwrap();
    assert_eq!(claimed(&store, 2, 12).await, jobs.iter().map(|(id, size)| (100 + id, *size)).collect::<Vec<_>>());
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// As the version before left it.
const OLD_DATABASE: &str = "
INSERT INTO windlass.payloads SELECT namespace, id, payload FROM windlass.jobs WHERE payload IS NOT NULL
UNION ALL SELECT namespace, id, payload FROM windlass.jobs_done WHERE payload IS NOT NULL;
ALTER TABLE windlass.jobs DROP COLUMN payload;
ALTER TABLE windlass.jobs SET (fillfactor = 70);
ALTER TABLE windlass.jobs_done DROP COLUMN payload;
ALTER TABLE windlass.events DROP COLUMN version;
UPDATE windlass.meta SET value = 5 WHERE name IN ('schema_version', 'min_reader');";

#[tokio::test]
async fn jobs_from_before_payloads_were_in_rows_keep_theirs() {
    let (store, database) = open().await;
    let jobs: Vec<(u128, usize)> = SIZES.iter().zip(1..).map(|(size, id)| (id, *size)).collect();
    run(&store, jobs.iter().map(|&(id, size)| sized(id, size).into()).collect()).await.unwrap();
    let ended = claimed(&store, 1, 3).await;
    drop(store);
    let sql = |text: &str| Cluster::shared().sql(&database, text);
    sql(OLD_DATABASE);
    let old = "INSERT INTO windlass.events (at, count, batch, body, counts) VALUES (1, 0, gen_random_uuid(), '', '')";
    sql(old);
    let url = Cluster::shared().url(&database);
    let opened = [0; 3].map(|_| tokio::spawn(Postgres::connect(quiet(url.clone()))));
    for store in opened {
        all_are_read_back(&store.await.unwrap().unwrap(), &jobs).await;
    }
    let store = Postgres::connect(quiet(url)).await.unwrap();
    run(&store, vec![submit(50).into()]).await.unwrap();
    assert_eq!(claimed(&store, 2, 3).await, jobs[3..]);
    all_are_read_back(&store, &jobs).await;
    assert_eq!((ended.len(), store.check().await.unwrap()), (3, Vec::<String>::new()));
    // An older server that still runs would hand out jobs without their payloads, so nothing it writes is accepted.
    let refused = "DO $$ BEGIN {old}; RAISE 'it was accepted'; EXCEPTION WHEN not_null_violation THEN NULL; END $$";
    sql(&refused.replace("{old}", old));
}
