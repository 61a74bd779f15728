use super::{NOW, facts, job, told};
use windlass_api::Uuid;
use windlass_core::{
    Job, JobId, Lease, Millis, State as JobState, Timestamp, WorkerId,
    job::Live,
    policy::WorkerPolicy,
    worker::{Liveness, Worker},
};
use windlass_server::native::why::{AHEAD_MAX, Facts, Seen};

fn seen(name: &str, tags: &[&str], silent: i64, draining: bool) -> Seen {
    let worker = Worker {
        id: WorkerId::trusted(name),
        tags: tags.iter().copied().collect(),
        slots: 1,
        owner: None,
        registered_at: NOW,
        last_seen: Timestamp(NOW.0 - silent),
        doubt_until: None,
        declared: Liveness::Online,
        away: false,
        draining,
        unregistered: false,
        policy: WorkerPolicy::default(),
        extra: None,
    };
    Seen { worker, held: Vec::new(), looked: true, holds_alike: false }
}

/// Held by `worker` for so many milliseconds.
fn taken(worker: &str, tags: &[&str], ago: i64) -> Job {
    let lease = Lease {
        secret: Uuid::from_u128(9),
        worker: WorkerId::trusted(worker),
        principal: None,
        length: Millis(1),
        until: None,
        deadline: None,
    };
    let live = Live { lease: Some(lease), claimed_at: Some(Timestamp(NOW.0 - ago)), ..Live::default() };
    let mut job = job(JobState::Running, tags, live);
    job.key.id = JobId::from_u128(2);
    job
}

fn gpu_job() -> Job {
    job(JobState::Pending, &["gpu"], Live::default())
}

/// Workers and jobs ahead; codes, and words of the summary and of what helps.
type Case = (Vec<Seen>, usize, &'static [&'static str], &'static str, &'static str);

#[test]
fn a_pending_job_waits_for_workers_or_for_its_turn() {
    let gpu = |silent, draining| seen("g", &["gpu"], silent, draining);
    let table: Vec<Case> = vec![
        (vec![], 0, &["no_worker_offers"], "No worker is registered", "windlass worker --tag gpu --allow-commands"),
        (vec![seen("c", &["cpu"], 0, false)], 0, &["no_worker_offers"], "offers gpu", "windlass worker --tag gpu"),
        (vec![gpu(0, false)], 0, &["ready"], "g (last seen at 2025-11-15T12:00:00.000Z)", ""),
        (vec![gpu(0, false)], 7, &["jobs_ahead"], "7 jobs", "windlass jobs --state pending"),
        (vec![gpu(0, false)], AHEAD_MAX, &["jobs_ahead"], "at least 1000 jobs", ""),
        (
            vec![gpu(600_000, false)],
            0,
            &["workers_offline"],
            "g has been offline since 2025-11-15T11:50:00.000Z",
            "windlass worker --tag gpu",
        ),
        (vec![gpu(0, true)], 3, &["workers_offline", "jobs_ahead"], "g is draining", "windlass workers undrain g"),
        (vec![gpu(600_000, false), seen("h", &["gpu", "x"], 0, false)], 0, &["ready"], "It is next", ""),
    ];
    for (workers, ahead, codes, words, help) in table {
        let (found, summary, helps) = told(&facts(gpu_job(), workers, ahead));
        assert_eq!(found, codes, "{summary}");
        assert!(summary.contains(words), "{summary}");
        assert!(helps.contains(help), "{helps}");
    }
    let both = job(JobState::Pending, &["cpu", "gpu"], Live::default());
    let apart = vec![seen("c", &["cpu"], 0, false), seen("g", &["gpu"], 0, false)];
    assert!(told(&facts(both, apart, 0)).1.contains("all of cpu, gpu together"));
}

#[test]
fn it_is_not_called_next_while_all_workers_that_fit_are_busy_or_dead() {
    let busy = Seen { held: vec![taken("g", &["gpu"], 60_000)], ..seen("g", &["gpu"], 0, false) };
    let dead = seen("h", &["gpu"], 600_000, false);
    let (codes, summary, help) = told(&facts(gpu_job(), vec![busy, dead], 0));
    assert_eq!(codes, ["workers_busy", "workers_offline"]);
    assert!(summary.contains("g (1 of 1 since 2025-11-15T11:59:00.000Z, for example with job"), "{summary}");
    assert!(help.contains("windlass worker --tag gpu --allow-commands"), "{help}");
    let half = Seen { held: vec![taken("g", &["gpu"], 60_000)], ..seen("g", &["gpu"], 0, false) };
    let half = Seen { worker: Worker { slots: 2, ..half.worker }, ..half };
    assert_eq!(told(&facts(gpu_job(), vec![half], 0)).0, ["ready"]);
}

#[test]
fn a_drained_worker_is_named_before_those_that_are_offline() {
    let mut workers: Vec<Seen> = (0..5).map(|n| seen(&format!("a{n}"), &["gpu"], 900_000 - n, false)).collect();
    workers.push(seen("z", &["gpu"], 0, true));
    let (codes, summary, help) = told(&facts(gpu_job(), workers, 0));
    assert_eq!(codes, ["workers_offline"]);
    assert!(summary.contains("now: z is draining, a4 has been offline since"), "{summary}");
    assert!(help.contains("windlass workers undrain z"), "{help}");
}

#[test]
fn of_a_worker_that_never_registered_only_what_it_holds_says_what_it_takes() {
    let script = |silent, held: Vec<Job>| {
        let known = seen("curl", &[], silent, false);
        let holds_alike = !held.is_empty();
        Seen { worker: Worker { unregistered: true, slots: 0, ..known.worker }, held, holds_alike, ..known }
    };
    let (codes, summary, _) = told(&facts(gpu_job(), vec![script(0, vec![taken("curl", &["gpu"], 60_000)])], 0));
    assert_eq!(codes, ["workers_busy"]);
    assert!(summary.contains("curl (not registered, with job"), "{summary}");
    let (codes, summary, _) = told(&facts(gpu_job(), vec![script(0, Vec::new())], 0));
    assert_eq!(codes, ["no_worker_offers"]);
    assert!(
        summary.contains("No registered worker offers gpu. ") && summary.contains("offer its tags then: curl"),
        "{summary}"
    );
    // One that has gone says nothing about any job, not even about one that needs no tags.
    let plain = job(JobState::Pending, &[], Live::default());
    let (codes, summary, _) = told(&facts(plain, vec![script(600_000, Vec::new())], 0));
    assert_eq!(codes, ["no_worker_offers"], "{summary}");
}

#[test]
fn workers_that_did_not_register_count_while_they_wait_or_work() {
    let mut working = facts(gpu_job(), vec![seen("c", &["cpu"], 0, false)], 0);
    working.strangers = vec![taken("curl", &["gpu"], 60_000)];
    let (codes, summary, _) = told(&working);
    assert_eq!(codes, ["workers_busy"]);
    assert!(summary.contains("curl (not registered, with job") && summary.contains("11:59:00"), "{summary}");
    let mut waiting = facts(gpu_job(), Vec::new(), 0);
    waiting.waiting = 1;
    let (codes, summary, _) = told(&waiting);
    assert_eq!(codes, ["ready"]);
    assert!(summary.contains("not registered waits"), "{summary}");
}

#[test]
fn names_in_commands_are_quoted_for_the_shell() {
    let odd = job(JobState::Pending, &["a b'c;$(x)"], Live::default());
    assert!(told(&facts(odd, Vec::new(), 0)).2.contains("--tag 'a b'\\''c;$(x)' --allow-commands"));
    let theirs = Facts { start: Some("their own worker".into()), ..facts(gpu_job(), Vec::new(), 0) };
    assert_eq!(told(&theirs).2, "Start one: their own worker");
}
