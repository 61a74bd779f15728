use crate::rules::story::{Story, after, backoff, code, graph, leases, ns, once, registration, tags, worker};
use uuid::Uuid;
use windlass_core::{
    Command, LeaseId, Millis, Reason, State, Tags,
    commands::{
        claim::{Claim, Offer, Unknown},
        submit::{NewJob, Submit},
        workers::{DrainWorker, RegisterWorker},
    },
    policy::{LeaseLength, ParentPolicy, WorkerPolicy},
};

fn numbers(leases: &[LeaseId]) -> Vec<u128> {
    leases.iter().map(|lease| lease.job.0.as_u128()).collect()
}

#[test]
fn lower_priority_first_then_as_submitted_and_only_what_fits() {
    let mut story = Story::new();
    let job = |number, priority, required: &[&str]| NewJob { priority, tags: tags(required), ..once(number) };
    for job in [job(1, 5, &[]), job(2, 5, &["gpu"]), job(3, 1, &["gpu", "big"]), job(4, 0, &["arm"]), job(5, 5, &[])] {
        story.submit(job);
    }
    for (offered, expected) in
        [(vec!["gpu"], vec![1, 2, 5]), (vec!["big", "gpu"], vec![3]), (vec![], vec![]), (vec!["arm"], vec![4])]
    {
        let claim = Claim { offer: Offer::Tags(tags(&offered)), ..story.claim_command("w", 9) };
        let answer = story.run(claim);
        let got: Vec<_> = leases(&answer).iter().map(|leased| leased.lease).collect();
        assert_eq!(numbers(&got), expected, "{offered:?}");
    }
}

#[test]
fn a_registered_offer_can_be_narrowed_but_not_widened() {
    let mut story = Story::new();
    story.run(RegisterWorker { tags: tags(&["a", "b"]), ..registration("w", WorkerPolicy::default()) }).unwrap();
    for (number, tag) in [(1, "a"), (2, "b"), (3, "c")] {
        story.submit(NewJob { tags: tags(&[tag]), ..once(number) });
    }
    for (offer, expected) in [(Offer::Narrowed(tags(&["b", "c"])), vec![2]), (Offer::Registered, vec![1])] {
        let claim = Claim { offer: offer.clone(), unknown: Unknown::Refuse, ..story.claim_command("w", 9) };
        let answer = story.run(claim);
        let got: Vec<_> = leases(&answer).iter().map(|leased| leased.lease).collect();
        assert_eq!(numbers(&got), expected, "{offer:?}");
    }
    let stranger = Claim { unknown: Unknown::Refuse, ..story.claim_command("x", 1) };
    assert_eq!(code(&story.run(stranger)), "not-found");
}

#[test]
fn many_claims_in_one_batch_share_what_is_there() {
    let mut story = Story::new();
    for number in 1..=10 {
        story.submit(once(number));
    }
    let mut commands: Vec<Command> = Vec::new();
    for at in 0..8 {
        let offer = if at % 2 == 0 { Offer::Registered } else { Offer::Tags(Tags::default()) };
        commands.push(Claim { offer, ..story.claim_command(&format!("w{at}"), 2) }.into());
    }
    commands.extend((11..=12).map(|number| Submit { namespace: ns(), job: once(number) }.into()));
    let before = story.tables.loads;
    let answers = story.batch(commands);
    let mut got: Vec<u128> = Vec::new();
    for answer in &answers[..8] {
        got.extend(leases(answer).iter().map(|leased| leased.job.key.id.0.as_u128()));
    }
    assert_eq!(got, (1..=12).collect::<Vec<_>>(), "in order, each once, those of the batch last");
    assert!(story.tables.loads - before <= 4, "{} loads", story.tables.loads - before);
}

#[test]
fn jobs_that_become_ready_in_the_batch_are_claimed_in_it_in_few_round_trips() {
    let mut story = Story::new();
    for number in 1..=30 {
        story.submit(backoff(number, 100));
    }
    for lease in story.claims("w", 30) {
        story.fail(lease).unwrap();
    }
    story.wait(100);
    let mut commands: Vec<Command> = story.tables.due(story.now).into_iter().map(Into::into).collect();
    commands.extend((0..30).map(|_| Command::from(story.claim_command("w", 1))));
    let before = story.tables.loads;
    let answers = story.batch(commands);
    assert!(answers[30..].iter().all(|answer| leases(answer).len() == 1));
    assert!(story.tables.loads - before <= 4, "{} loads", story.tables.loads - before);
}

#[test]
fn a_repeated_request_gets_the_same_leases_while_they_live() {
    let mut story = Story::new();
    for number in 1..=4 {
        story.submit(once(number));
    }
    let ask = |story: &mut Story, name: &str, principal: Option<&str>| {
        let claim = story.claim_command(name, 2);
        let claim = Claim { request_id: Some("r".into()), principal: principal.map(Into::into), ..claim };
        let answer = story.run(claim);
        leases(&answer).iter().map(|leased| leased.lease).collect::<Vec<_>>()
    };
    let first = ask(&mut story, "w", None);
    assert_eq!((first.len(), ask(&mut story, "w", None)), (2, first.clone()));
    story.run(DrainWorker { namespace: ns(), worker: worker("w"), draining: true, principal: None }).unwrap();
    assert_eq!(ask(&mut story, "w", None), first, "also when it may claim no more");
    story.run(DrainWorker { namespace: ns(), worker: worker("w"), draining: false, principal: None }).unwrap();
    let other = ask(&mut story, "w", Some("eve"));
    assert_eq!(numbers(&other), [3, 4], "not for another principal");
    story.complete(first[0]).unwrap();
    story.wait(30_000);
    assert!(ask(&mut story, "w", None).is_empty(), "what ran out is not handed out again");
}

#[test]
fn a_request_id_is_remembered_as_long_as_its_last_leases() {
    let mut story = Story::new();
    let ask = |story: &mut Story| Claim { request_id: Some("r".into()), ..story.claim_command("w", 1) };
    story.submit(once(1));
    let claim = ask(&mut story);
    story.run(claim).unwrap();
    story.wait(80_000_000);
    story.sweep();
    story.submit(once(2));
    let claim = ask(&mut story);
    let lease = leases(&story.run(claim))[0].lease;
    for _ in 0..400 {
        story.wait(20_000);
        story.renew(lease).unwrap();
    }
    story.sweep();
    let claim = ask(&mut story);
    assert_eq!(leases(&story.run(claim))[0].lease, lease);
}

#[test]
fn nobody_claims_in_the_name_of_anothers_worker() {
    let mut story = Story::new();
    story.submit(once(1));
    let claim = |story: &mut Story, who: &str| Claim { principal: Some(who.into()), ..story.claim_command("w", 1) };
    let first = claim(&mut story, "ann");
    story.run(first).unwrap();
    let foreign = claim(&mut story, "bob");
    assert_eq!(code(&story.run(foreign)), "forbidden");
}

#[test]
fn leases_are_as_long_as_job_and_claimer_say() {
    let table = [
        (LeaseLength::Asked, None, None, 30_000),
        (LeaseLength::Asked, Some(5), None, 5),
        (LeaseLength::Fixed(Millis(7)), Some(5), None, 7),
        (LeaseLength::FromDeadline, Some(5), Some(9), 9),
    ];
    for (length, asked, deadline, expected) in table {
        let mut story = Story::new();
        let mut job = once(1);
        job.policy.lease.length = length;
        job.policy.hard_deadline = deadline.map(Millis);
        story.submit(job);
        let claim = Claim { lease: asked.map(Millis), ..story.claim_command("w", 1) };
        story.run(claim).unwrap();
        let lease = story.job(1).live.lease.clone().unwrap();
        assert_eq!(lease.until, Some(story.now + Millis(expected)), "{length:?}");
        assert_eq!(lease.deadline, deadline.map(|deadline| story.now + Millis(deadline)));
    }
}

#[test]
fn what_nobody_claimed_in_time_is_not_claimed_late() {
    let mut story = Story::new();
    let deadline = |number| {
        let mut job = once(number);
        job.policy.pending_deadline = Some(Millis(10));
        job
    };
    story.submit(deadline(1));
    story.submit(deadline(2));
    story.submit(after(3, &[1]));
    story.submit(once(4));
    story.wait(10);
    assert_eq!(numbers(&story.claims("w", 3)), [4]);
    assert_eq!(story.states(3), ["failed", "failed", "skipped"]);
    assert_eq!(story.reason(1), Some(Reason::PendingDeadlinePassed));
    story.submit(deadline(5));
    story.wait(10);
    assert_eq!(code(&story.cancel(5)), "final", "nor cancelled late");
    story.submit(deadline(6));
    story.wait(10);
    story.sweep();
    assert_eq!(story.state(6), State::Failed);
}

#[test]
fn a_claim_never_takes_what_the_end_of_another_ended() {
    let mut story = Story::new();
    let shape = |name: &str, job: &mut NewJob| match name {
        "late" => job.policy.pending_deadline = Some(Millis(10)),
        "child" => job.policy.parents = ParentPolicy::CancelRun,
        _ => {}
    };
    story.run(graph(1, &["late", "child: late", "free"], shape)).unwrap();
    story.wait(10);
    assert!(story.claims("w", 3).is_empty());
    assert_eq!(story.states(3), ["failed", "cancelled", "cancelled"]);
}

#[test]
fn impossible_claims_are_refused() {
    let mut story = Story::new();
    let claim = |story: &mut Story| story.claim_command("w", 1);
    let table = [
        Claim { secrets: vec![], ..claim(&mut story) },
        Claim { secrets: vec![Uuid::nil(); 1_001], ..claim(&mut story) },
        Claim { lease: Some(Millis(0)), ..claim(&mut story) },
        Claim { lease: Some(Millis(i64::MAX)), ..claim(&mut story) },
        Claim { request_id: Some("a\nb".into()), ..claim(&mut story) },
        Claim {
            unknown: Unknown::Create(WorkerPolicy { offline_after: Millis(0), ..WorkerPolicy::default() }),
            ..claim(&mut story)
        },
    ];
    for claim in table {
        assert_eq!(code(&story.run(claim.clone())), "invalid", "{claim:?}");
    }
    assert!(story.worker("w").is_none());
}
