use crate::rules::story::{
    Answer, Story, after, backoff, bound, by, code, failure, id, keyed, ns, once, tries, worker,
};
use uuid::Uuid;
use windlass_core::{
    Command, LeaseId, Refusal, Reply, State,
    commands::{
        append_log::AppendLog,
        cancel::Cancel,
        complete::Complete,
        holder::{Address, Holder},
        holds::Holds,
        progress::ReportProgress,
        release::Release,
        renew::Renew,
        start::Start,
        submit::NewJob,
    },
    policy::CancelPolicy,
    reply::Ended,
};

/// Brings job 1 into a state. The lease is its own where it ever had one, made up where not.
fn in_state(state: &str) -> (Story, LeaseId) {
    let mut story = Story::new();
    let made_up = LeaseId::new(id(1), Uuid::from_u128(99));
    let lease = match state {
        "blocked (parents)" => {
            story.submit(NewJob { priority: 0, ..once(2) });
            story.submit(after(1, &[2]));
            made_up
        }
        "blocked (key)" => {
            story.submit(keyed(2, 1));
            story.submit(keyed(1, 1));
            made_up
        }
        "scheduled" => {
            let lease = story.submit_and_claim(backoff(1, 1_000));
            story.fail(lease).unwrap();
            made_up
        }
        "pending" => {
            story.submit(once(1));
            made_up
        }
        "claimed" | "running" | "draining" | "completed" | "failed" | "cancelled" => {
            let mut job = once(1);
            if state == "draining" {
                job.policy.cancel = CancelPolicy::Drain;
            }
            let lease = story.submit_and_claim(job);
            match state {
                "running" => drop(story.start(lease).unwrap()),
                "draining" | "cancelled" => drop(story.cancel(1).unwrap()),
                "completed" => drop(story.complete(lease).unwrap()),
                "failed" => drop(story.fail(lease).unwrap()),
                _ => {}
            }
            lease
        }
        "skipped" => {
            let parent = story.submit_and_claim(once(2));
            story.submit(after(1, &[2]));
            story.fail(parent).unwrap();
            made_up
        }
        other => panic!("{other}"),
    };
    (story, lease)
}

fn event(name: &str, lease: LeaseId) -> Command {
    let holder = Holder::lease(&ns(), lease);
    match name {
        "start" => Start { holder }.into(),
        "renew" => Renew { holder, length: None }.into(),
        "progress" => ReportProgress { holder, percent: 5.0, message: None }.into(),
        "log" => AppendLog::new(holder, "line").into(),
        "complete" => Complete { holder, result: "1".into() }.into(),
        "fail" => failure(lease).into(),
        "release" => Release { holder }.into(),
        "holds" => Holds { holder }.into(),
        "cancel" => Cancel { namespace: ns(), job: lease.job, by: "ann".into(), mode: None, message: "".into() }.into(),
        other => panic!("{other}"),
    }
}

fn told(answer: &Answer) -> &'static str {
    match answer {
        Ok(Reply::Ended(Ended { replayed: true, .. })) => "replayed",
        other => code(other),
    }
}

/// The table at the top of `job.rs`, event by event: the answer, and the state after it.
#[test]
fn every_event_in_every_state() {
    let table: &[(&str, Events)] = &[
        ("blocked (parents)", waiting("blocked", "not-held")),
        ("blocked (key)", waiting("blocked", "not-held")),
        ("scheduled", waiting("scheduled", "lease-lost")),
        ("pending", waiting("pending", "not-held")),
        ("claimed", held("claimed", "running", "ok")),
        ("running", held("running", "running", "already-started")),
        (
            "draining",
            [
                ("start", "ok", "running"),
                ("renew", "ok", "claimed"),
                ("progress", "ok", "running"),
                ("log", "ok", "claimed"),
                ("complete", "ok", "cancelled"),
                ("fail", "ok", "cancelled"),
                ("release", "ok", "cancelled"),
                ("holds", "ok", "claimed"),
                ("cancel", "ok", "claimed"),
            ],
        ),
        ("completed", ended("completed", "lease-lost", "replayed", "lease-lost")),
        ("failed", ended("failed", "lease-lost", "lease-lost", "replayed")),
        ("cancelled", ended("cancelled", "lease-lost", "lease-lost", "lease-lost")),
        ("skipped", ended("skipped", "not-held", "not-held", "not-held")),
    ];
    for (state, events) in table {
        for (name, answer, then) in events {
            let (mut story, lease) = in_state(state);
            let told = told(&story.run(event(name, lease)));
            assert_eq!((told, story.state(1).name()), (*answer, *then), "{name} of a job that is {state}");
        }
    }
}

type Events = [(&'static str, &'static str, &'static str); 9];

fn waiting(state: &'static str, refusal: &'static str) -> Events {
    ["start", "renew", "progress", "log", "complete", "fail", "release", "holds", "cancel"].map(|name| match name {
        "cancel" => (name, "ok", "cancelled"),
        _ => (name, refusal, state),
    })
}

fn held(state: &'static str, started: &'static str, start: &'static str) -> Events {
    [
        ("start", start, started),
        ("renew", "ok", state),
        ("progress", "ok", "running"),
        ("log", "ok", state),
        ("complete", "ok", "completed"),
        ("fail", "ok", "failed"),
        ("release", "ok", "pending"),
        ("holds", "ok", state),
        ("cancel", "ok", "cancelled"),
    ]
}

fn ended(state: &'static str, other: &'static str, complete: &'static str, fail: &'static str) -> Events {
    ["start", "renew", "progress", "log", "complete", "fail", "release", "holds", "cancel"].map(|name| match name {
        "complete" => (name, complete, state),
        "fail" => (name, fail, state),
        "cancel" => (name, "final", state),
        _ => (name, other, state),
    })
}

#[test]
fn who_may_report_on_a_job() {
    let owner = |name: &str| Address::Owner { job: id(1), principal: name.into() };
    let by_worker = |name: &str| Address::Worker { job: id(1), worker: worker(name) };
    let table = [
        (Address::Job(id(1)), None, "ok"),
        (Address::Job(id(1)), Some("p"), "ok"),
        (Address::Job(id(1)), Some("q"), "not-holder"),
        (Address::Job(id(7)), None, "not-found"),
        (by_worker("w"), None, "ok"),
        (by_worker("x"), None, "not-holder"),
        (owner("p"), None, "ok"),
        (owner("q"), None, "not-holder"),
    ];
    for (address, principal, expected) in table {
        let mut story = Story::new();
        story.submit(once(1));
        let mut claim = story.claim_command("w", 1);
        claim.principal = Some("p".into());
        story.run(claim).unwrap();
        let holder = Holder { principal: principal.map(Into::into), ..by(address.clone()) };
        let answer = story.run(Complete { holder, result: "".into() });
        assert_eq!(code(&answer), expected, "{address:?} by {principal:?}");
    }
}

#[test]
fn a_stranger_hears_whether_anybody_holds_the_job() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(tries(1, 2));
    let stranger = || by(Address::Worker { job: id(1), worker: worker("x") });
    assert_eq!(code(&story.run(Start { holder: stranger() })), "not-holder");
    story.fail(lease).unwrap();
    assert_eq!(code(&story.run(Start { holder: stranger() })), "not-held");
}

#[test]
fn a_late_report_is_refused_before_any_sweep_and_the_job_says_so() {
    for (attempts, then) in [(1, State::Failed), (2, State::Pending)] {
        let mut story = Story::new();
        let lease = story.submit_and_claim(tries(1, attempts));
        story.wait(29_999);
        story.renew(lease).unwrap();
        story.wait(30_000);
        assert_eq!(story.complete(lease), Err(Refusal::LeaseLost { state: then }));
        assert_eq!(story.state(1), then);
        assert_eq!(story.complete(lease), Err(Refusal::LeaseLost { state: then }), "and again");
    }
}

#[test]
fn an_old_lease_is_worth_nothing_once_there_is_a_new_one() {
    let mut story = Story::new();
    let old = story.submit_and_claim(tries(1, 3));
    story.wait(30_000);
    story.sweep();
    let new = story.claim("x");
    for name in ["start", "renew", "progress", "log", "complete", "fail", "release", "holds"] {
        assert_eq!(told(&story.run(event(name, old))), "lease-lost", "{name}");
    }
    assert_eq!(story.job(1).live.attempt, 2);
    story.complete(new).unwrap();
    assert_eq!(story.events(Some(1)), ["submitted", "claimed", "requeued", "claimed", "completed"]);
}

#[test]
fn any_report_keeps_a_worker_alive_where_any_call_counts() {
    for name in ["start", "renew", "progress", "log", "holds"] {
        let mut story = Story::new();
        let lease = story.submit_and_claim(bound(1));
        story.wait(80_000);
        story.run(event(name, lease)).unwrap();
        story.wait(80_000);
        story.sweep();
        assert!(story.state(1).is_held(), "{name} was a sign of life");
        story.wait(90_000);
        story.sweep();
        assert_eq!(story.state(1), State::Failed);
    }
}
