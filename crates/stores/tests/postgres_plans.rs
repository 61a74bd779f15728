//! No statement of a batch, a sweep or the event feed reads a whole table, as PostgreSQL itself plans it for full tables.

use crate::support::quiet;
use windlass_stores::{
    postgres::{Postgres, statement_texts, writer_settings},
    testing::Cluster,
};

/// Thirty thousand rows of everything that grows: most jobs pending in 200 lanes, some held, some waiting for keys.
const FILL: &str = "
INSERT INTO windlass.jobs (namespace, id, lane, run, spec, seq, due, priority, state, worker, wait_key, live)
SELECT 'default', md5('job' || n)::uuid, md5('lane' || n % 200)::uuid,
       CASE WHEN n % 10 = 0 THEN md5('run' || n / 100)::uuid END, '{}', n,
       CASE WHEN n % 5 = 0 THEN n END, 100, CASE n % 10 WHEN 0 THEN 3 WHEN 1 THEN 0 ELSE 2 END,
       CASE WHEN n % 10 = 0 THEN 'worker ' || n % 1000 END, CASE WHEN n % 10 = 1 THEN 'key ' || n % 100 END, '{}'
FROM generate_series(1, 30000) n;
INSERT INTO windlass.jobs_done (namespace, id, run, spec, seq, due, priority, state, live)
SELECT 'default', md5('done' || n)::uuid, CASE WHEN n % 10 = 0 THEN md5('run' || n / 100)::uuid END, '{}', n, n, 100,
       CASE WHEN n % 50 = 0 THEN 6 ELSE 5 END, '{}'
FROM generate_series(1, 30000) n;
INSERT INTO windlass.payloads SELECT 'default', md5('job' || n)::uuid, 'x' FROM generate_series(1, 30000) n;
INSERT INTO windlass.attempts SELECT 'default', md5('done' || n)::uuid, 1, '{}' FROM generate_series(1, 30000) n;
INSERT INTO windlass.edges
SELECT 'default', md5('done' || n)::uuid, md5('job' || n)::uuid FROM generate_series(1, 30000) n;
INSERT INTO windlass.logs SELECT 'default', md5('done' || n)::uuid, 1, 1, 0, 'x' FROM generate_series(1, 30000) n;
INSERT INTO windlass.job_facets
SELECT 'default', 'room', 'r' || n % 1000, md5('job' || n)::uuid FROM generate_series(1, 30000) n;
INSERT INTO windlass.records (namespace, kind, key, parent, due, version, value)
SELECT 'default', 'worker', 'worker ' || n, CASE WHEN n % 2 = 0 THEN 'p' || n % 1000 END,
       CASE WHEN n % 3 = 0 THEN n END, 1, '{}'
FROM generate_series(1, 30000) n;
INSERT INTO windlass.record_facets
SELECT 'default', 'worker', 'site', 's' || n % 1000, 'worker ' || n FROM generate_series(1, 30000) n;
INSERT INTO windlass.events (first_no, at, count, batch, body, counts, version)
SELECT CASE WHEN n < 29990 THEN n ELSE 0 END, n, 1, md5('batch' || n)::uuid, '[]', '', 7 FROM generate_series(1, 30000) n;
INSERT INTO windlass.lanes
SELECT 'default', md5('lane' || n)::uuid, '[]', 0, n FROM generate_series(1, 10000) n;
";

/// Housekeeping that runs rarely and says in its file why it may look at everything.
const MAY_SCAN: [&str; 1] = ["trim_lanes"];

#[tokio::test]
async fn no_statement_reads_a_whole_table() {
    let cluster = Cluster::shared();
    let url = cluster.fresh_database();
    let database = url.rsplit('/').next().unwrap();
    drop(Postgres::connect(quiet(url.clone())).await.unwrap());
    cluster.sql(database, FILL);
    cluster.sql(database, "VACUUM ANALYZE");
    let mut bad = Vec::new();
    for (name, text) in statement_texts() {
        // The kept plan for unknown values, with the planner's own settings.
        let plan = plan_of(cluster, database, "SET plan_cache_mode = force_generic_plan", &text);
        let scans = ["jobs", "jobs_done", "records", "events", "payloads", "logs", "edges", "attempts"];
        let scans = scans.iter().filter(|table| plan.contains(&format!("Seq Scan on {table}")));
        let scans: Vec<&&str> = scans.collect();
        if !scans.is_empty() && !MAY_SCAN.contains(&name) {
            bad.push(format!("{name} scans {scans:?}:\n{plan}"));
        }
        if ["heads", "heads_one", "claim_known", "claim_known_one", "read_ahead", "busy_lanes", "check_nothing_waits"]
            .contains(&name)
            && !plan.contains("using jobs_claim")
        {
            bad.push(format!("{name} does not use its index:\n{plan}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}

fn plan_of(cluster: &Cluster, database: &str, settings: &str, text: &str) -> String {
    let parameters = (1..=40).filter(|n| text.contains(&format!("${n}"))).count();
    let values = vec!["NULL"; parameters].join(", ");
    let values = if values.is_empty() { values } else { format!("({values})") };
    cluster.sql(database, &format!("{settings}; PREPARE s AS {text}; EXPLAIN EXECUTE s{values}"))
}

/// Statements of every batch, with what must be looked up in an index and nowhere else.
const BY_KEY: [(&str, &str); 35] = [
    ("lock_jobs", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("lock_done", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("payloads", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("check_not_done", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("check_added", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("check_added", "Index Cond: ((namespace = l.namespace) AND (lane = l.lane))"),
    (
        "check_nothing_waits",
        "Index Cond: ((namespace = l.namespace) AND (lane = l.lane) AND (ROW(priority, seq) >= ROW(",
    ),
    ("check_nothing_waits", "Index Cond: ((namespace = k.namespace) AND (kind = k.kind) AND (key = k.key))"),
    ("update_jobs", "TID Cond: (ctid = k.at)"),
    ("update_and_tell", "TID Cond: (ctid = k.at)"),
    ("touch_jobs", "TID Cond: (ctid = k.at)"),
    ("finish_jobs", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("finish_jobs", "TID Cond: (ctid = COALESCE(k.at, (SubPlan 1)))"),
    ("finish_known", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("finish_known", "TID Cond: (ctid = (SubPlan "),
    ("update_done", "Index Cond: ((namespace = k.namespace) AND (id = k.id))"),
    ("lock_records", "Index Cond: ((namespace = k.namespace) AND (kind = k.kind) AND (key = k.key))"),
    ("share_records", "Index Cond: ((namespace = k.namespace) AND (kind = k.kind) AND (key = k.key))"),
    ("peek_records", "Index Cond: ((namespace = k.namespace) AND (kind = k.kind) AND (key = k.key))"),
    ("update_records", "Index Cond: ((namespace = k.namespace) AND (kind = k.kind) AND (key = k.key))"),
    ("delete_records", "Index Cond: ((namespace = k.namespace) AND (kind = k.kind) AND (key = k.key))"),
    ("children", "Index Cond: ((namespace = k.namespace) AND (parent = k.parent) AND (child >= k.first))"),
    ("held", "Index Cond: ((namespace = k.namespace) AND (worker = k.worker))"),
    ("run_jobs", "Index Cond: ((namespace = k.namespace) AND (run = k.run))"),
    ("heads", "Index Cond: ((namespace = $1) AND (id = h.id))"),
    ("heads_one", "Index Cond: ((namespace = $1) AND (lane = $2) AND (ROW(priority, seq) >= ROW("),
    ("claim_known_one", "Index Cond: ((namespace = $1) AND (lane = ($2)[1]) AND (ROW(priority, seq) >= ROW("),
    ("claim_known_one", "TID Cond: (ctid = k.at)"),
    ("claim_known_one", "Index Cond: ((namespace = w.namespace) AND (kind = w.kind) AND (key = w.key))"),
    ("claim_known", "Index Cond: ((namespace = $1) AND (id = h.id))"),
    ("claim_known", "TID Cond: (ctid = k.at)"),
    ("claim_known", "Index Cond: ((namespace = w.namespace) AND (kind = w.kind) AND (key = w.key))"),
    ("lane_fronts", "Index Cond: ((namespace = k.namespace) AND (lane = k.lane))"),
    ("lock_marks", "Index Cond: ((namespace = k.namespace) AND (lane = k.lane))"),
    ("lower_marks", "Index Cond: ((namespace = k.namespace) AND (lane = k.lane))"),
];

/// A plan is kept while its tables grow. The emptier they are when it is made, the cheaper it looks to read them whole.
#[tokio::test]
async fn plans_made_for_empty_tables_stay_right_when_they_fill() {
    let cluster = Cluster::shared();
    let url = cluster.fresh_database();
    let database = url.rsplit('/').next().unwrap();
    drop(Postgres::connect(quiet(url.clone())).await.unwrap());
    // Only now are they known to be empty; tables that were never looked at are taken to have some rows.
    cluster.sql(database, "VACUUM ANALYZE");
    let mut bad = Vec::new();
    for (name, cond) in BY_KEY {
        let (_, text) = statement_texts().into_iter().find(|(known, _)| *known == name).expect("a known statement");
        let plan = plan_of(cluster, database, &writer_settings(), &text);
        let by_key = plan.contains(cond);
        // Keys compared anywhere else are compared with every row of something; but where a row's place is known, with that
        // one row.
        let compared = |line: &str| line.contains("Filter:") && line.contains("id =") && !line.contains("IS TRUE");
        let compared = plan.lines().any(compared);
        if !by_key || compared || plan.contains("Seq Scan") {
            bad.push(format!("{name}:\n{plan}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}
