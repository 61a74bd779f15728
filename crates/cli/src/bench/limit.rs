//! What the store itself can do: claim and complete in bare loops of prepared statements, nothing around them.

use crate::bench::{StoreKind, target::Target, work::progress};
use anyhow::Context;
use rusqlite::{Connection, params};
use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tokio_postgres::NoTls;

/// Long enough to be steady, short enough not to bore.
const RAW_JOBS: usize = 100_000;
const RAW_TIME: Duration = Duration::from_secs(5);

/// Jobs claimed and completed per second, `group` of them in one transaction.
pub async fn measure(target: &Target, group: usize) -> anyhow::Result<f64> {
    match target.kind {
        StoreKind::Memory => Ok(0.0),
        StoreKind::Embedded => embedded(&target.folder, group),
        StoreKind::Postgres => postgres(target.url.as_deref().context("the target has a database")?, group).await,
    }
}

fn embedded(folder: &Path, group: usize) -> anyhow::Result<f64> {
    let file = folder.join("limit.db");
    // Of a run before.
    if file.exists() {
        std::fs::remove_file(&file)?;
    }
    let mut db = Connection::open(file)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    db.pragma_update(None, "synchronous", "full")?;
    db.execute_batch(
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, priority INTEGER, state INTEGER, worker TEXT, payload TEXT);
         CREATE INDEX ready ON jobs (priority, id) WHERE state = 0;",
    )?;
    fill_embedded(&mut db)?;
    let bar = progress("limit", RAW_JOBS);
    let begun = Instant::now();
    let mut done = 0;
    while done + group <= RAW_JOBS && begun.elapsed() < RAW_TIME {
        let claimed = claim_embedded(&mut db, group)?;
        complete_embedded(&mut db, &claimed)?;
        done += claimed.len();
        bar.set_position(done as u64);
    }
    bar.finish_and_clear();
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

fn fill_embedded(db: &mut Connection) -> rusqlite::Result<()> {
    let fill = db.transaction()?;
    {
        let mut insert = fill.prepare("INSERT INTO jobs (priority, state, payload) VALUES (100, 0, ?1)")?;
        for _ in 0..RAW_JOBS {
            insert.execute(params!["x".repeat(100)])?;
        }
    }
    fill.commit()
}

fn claim_embedded(db: &mut Connection, group: usize) -> rusqlite::Result<Vec<i64>> {
    let claim = db.transaction()?;
    let mut ids = Vec::with_capacity(group);
    {
        let mut next = claim.prepare_cached(
            "UPDATE jobs SET state = 1, worker = 'w' WHERE id =
             (SELECT id FROM jobs WHERE state = 0 ORDER BY priority, id LIMIT 1) RETURNING id",
        )?;
        for _ in 0..group {
            ids.push(next.query_row([], |row| row.get(0))?);
        }
    }
    claim.commit()?;
    Ok(ids)
}

fn complete_embedded(db: &mut Connection, ids: &[i64]) -> rusqlite::Result<()> {
    let complete = db.transaction()?;
    {
        let mut done = complete.prepare_cached("UPDATE jobs SET state = 2 WHERE id = ?1 AND state = 1")?;
        for id in ids {
            done.execute([id])?;
        }
    }
    complete.commit()
}

const RAW_TABLE: &str = "
    DROP TABLE IF EXISTS public.bench_jobs;
    CREATE TABLE public.bench_jobs (id bigserial PRIMARY KEY, priority int NOT NULL, state int NOT NULL, worker text, payload text);
    CREATE INDEX bench_ready ON public.bench_jobs (priority, id) WHERE state = 0;
    INSERT INTO public.bench_jobs (priority, state, payload) SELECT 100, 0, repeat('x', 100) FROM generate_series(1, 100000);
    ANALYZE public.bench_jobs;";

async fn postgres(url: &str, group: usize) -> anyhow::Result<f64> {
    let (admin, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    admin.batch_execute(RAW_TABLE).await?;
    let begun = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let url = url.to_owned();
        tasks.spawn(async move { postgres_loop(&url, group, begun).await });
    }
    let mut done = 0;
    while let Some(task) = tasks.join_next().await {
        done += task??;
    }
    let rate = done as f64 / begun.elapsed().as_secs_f64();
    admin.batch_execute("DROP TABLE public.bench_jobs").await?;
    Ok(rate)
}

async fn postgres_loop(url: &str, group: usize, begun: Instant) -> anyhow::Result<usize> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    let claim = client
        .prepare(
            "UPDATE public.bench_jobs SET state = 1, worker = 'w' WHERE id IN
             (SELECT id FROM public.bench_jobs WHERE state = 0 ORDER BY priority, id LIMIT $1 FOR UPDATE SKIP LOCKED)
             RETURNING id",
        )
        .await?;
    let complete = client.prepare("UPDATE public.bench_jobs SET state = 2 WHERE id = ANY($1)").await?;
    let mut done = 0;
    while begun.elapsed() < RAW_TIME {
        let rows = client.query(&claim, &[&(group as i64)]).await?;
        if rows.is_empty() {
            break;
        }
        let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        client.execute(&complete, &[&ids]).await?;
        done += ids.len();
    }
    Ok(done)
}

/// What pgbench comes to with one job per transaction and 16 clients: what a queue built the plain way reaches.
pub struct Pgbench {
    /// Every statement is parsed and planned anew, as pgbench does by default.
    pub simple_per_s: f64,
    /// Statements are prepared once.
    pub prepared_per_s: f64,
}

/// None without pgbench.
pub fn pgbench(target: &Target) -> anyhow::Result<Option<Pgbench>> {
    let Some(url) = target.url.as_deref() else { return Ok(None) };
    let program = match &target.cluster {
        Some(cluster) => cluster.bin("pgbench"),
        None => "pgbench".into(),
    };
    let script = target.folder.with_extension("pgbench");
    if let Some(parent) = script.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&script, PGBENCH)?;
    let rate = |protocol| pgbench_rate(&program, &script, url, protocol);
    let (simple, prepared) = (rate("simple"), rate("prepared"));
    Ok(simple.zip(prepared).map(|(simple_per_s, prepared_per_s)| Pgbench { simple_per_s, prepared_per_s }))
}

fn pgbench_rate(program: &Path, script: &Path, url: &str, protocol: &str) -> Option<f64> {
    let mut setup = Command::new(program.with_file_name("psql"));
    setup.args([url, "-q", "-c", RAW_TABLE]).stderr(Stdio::null());
    setup.status().ok().filter(|status| status.success())?;
    let run = Command::new(program)
        .args(["-n", "-M", protocol, "-c", "16", "-j", "2", "-T", "5", "-f"])
        .args([script.as_os_str(), url.as_ref()])
        .output();
    let text = String::from_utf8_lossy(&run.ok()?.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("tps = ")?.split_whitespace().next()?.parse().ok())
}

const PGBENCH: &str = "
UPDATE public.bench_jobs SET state = 1, worker = 'w' WHERE id =
 (SELECT id FROM public.bench_jobs WHERE state = 0 ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id \\gset
UPDATE public.bench_jobs SET state = 2 WHERE id = :id;
";
