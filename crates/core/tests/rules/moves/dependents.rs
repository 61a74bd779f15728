use crate::rules::story::{Story, after, graph, id, ns, once};
use windlass_core::{
    Command, State,
    commands::{cancel::Cancel, due::Due},
    keys::JobKey,
    policy::ParentPolicy,
};

/// Most jobs that the end of one job may change in one transaction, outside runs.
const PIECE: usize = 64;

/// Jobs 1, 2, …, each after the one before.
fn chain(length: u128) -> Story {
    let mut story = Story::new();
    let submit = |number| if number == 1 { once(1) } else { after(number, &[number - 1]) };
    submit_all(&mut story, (1..=length).map(submit));
    story
}

/// Jobs 2, 3, …, all after job 1.
fn fan(width: u128) -> Story {
    let mut story = Story::new();
    story.submit(once(1));
    submit_all(&mut story, (2..=width + 1).map(|number| after(number, &[1])));
    story
}

fn submit_all(story: &mut Story, jobs: impl Iterator<Item = windlass_core::commands::submit::NewJob>) {
    let submit = |job| windlass_core::commands::submit::Submit { namespace: ns(), job }.into();
    let all: Vec<Command> = jobs.map(submit).collect();
    assert!(story.batch(all).iter().all(Result::is_ok));
}

fn count(story: &Story, state: State) -> usize {
    story.tables.jobs.values().filter(|job| job.state == state).count()
}

/// What it took: transactions, loads and loaded rows.
struct Cost {
    batches: usize,
    loads: usize,
    rows: usize,
}

/// Cancels job 1 and sweeps until nothing is due; no transaction may change more than a piece.
fn cancel_all(story: &mut Story) -> Cost {
    let (loads, rows) = (story.tables.loads, story.tables.loaded_jobs);
    let mut batches = 1;
    let mut ended = 0;
    story.cancel(1).unwrap();
    loop {
        let skipped = count(story, State::Skipped);
        assert!(skipped - ended <= PIECE, "{} jobs in one transaction", skipped - ended);
        ended = skipped;
        let due = story.tables.due(story.now);
        if due.is_empty() {
            break;
        }
        batches += 1;
        assert!(story.batch(due.into_iter().map(Command::from).collect()).iter().all(Result::is_ok));
    }
    Cost { batches, loads: story.tables.loads - loads, rows: story.tables.loaded_jobs - rows }
}

fn costs(make: impl Fn(u128) -> Story) -> [Cost; 2] {
    [2_000, 8_000].map(|length| {
        let mut story = make(length);
        let cost = cancel_all(&mut story);
        assert_eq!(count(&story, State::Blocked) + count(&story, State::Pending), 0, "everything has ended");
        println!("{length} jobs: {} transactions, {} loads, {} rows", cost.batches, cost.loads, cost.rows);
        cost
    })
}

#[test]
fn the_end_of_a_chain_of_jobs_costs_in_proportion_to_its_length() {
    let [short, long] = costs(chain);
    assert!(long.batches <= short.batches * 5 && long.loads <= short.loads * 5 && long.rows <= short.rows * 5);
    assert!(long.rows <= 8_000 * 3 && long.loads <= 8_000 * 3, "{} rows in {} loads", long.rows, long.loads);
}

#[test]
fn the_end_of_a_job_with_many_dependents_costs_in_proportion_to_their_number() {
    let [few, many] = costs(fan);
    assert!(many.batches <= few.batches * 5 && many.loads <= few.loads * 5 && many.rows <= few.rows * 5);
    assert!(many.rows <= 8_000 * 3, "{} rows", many.rows);
}

/// What callers may rely on: as far as this, all that follows from an end is there with the end itself.
#[test]
fn short_chains_and_small_fans_end_with_the_job_that_they_wait_for() {
    for mut story in [chain(16), fan(PIECE as u128)] {
        let jobs = story.tables.jobs.len();
        story.cancel(1).unwrap();
        assert_eq!(count(&story, State::Skipped), jobs - 1);
        assert!(!story.job(1).live.must_pass_on);
        assert!(story.tables.due(story.now).is_empty(), "and nothing is left to do");
    }
}

#[test]
fn between_two_pieces_the_rest_is_blocked_and_the_job_before_it_is_due_now() {
    let mut story = chain(200);
    story.cancel(1).unwrap();
    let skipped = count(&story, State::Skipped) as u128;
    let last = story.job(1 + skipped);
    assert!(last.live.must_pass_on && last.due == Some(story.now));
    assert_eq!(story.state(2 + skipped), State::Blocked);
    // A piece more, later: due again behind all that came due meanwhile.
    story.wait(5);
    story.run(Due::Job(JobKey::new(&ns(), id(1 + skipped)))).unwrap();
    assert!(!story.job(1 + skipped).live.must_pass_on);
    let further = count(&story, State::Skipped) as u128;
    assert_eq!(story.job(1 + further).due, Some(story.now));
    story.sweep();
    assert_eq!(count(&story, State::Skipped), 199);
}

#[test]
fn a_wide_fan_is_continued_where_it_stopped_and_each_dependent_hears_once() {
    let mut story = fan(200);
    // It needs another job beside, so that hearing twice would let it go on.
    story.submit(once(500));
    let mut both = after(501, &[1, 500]);
    both.policy.parents = ParentPolicy::RunAnyway;
    story.submit(both);
    story.cancel(1).unwrap();
    assert_eq!(count(&story, State::Skipped), PIECE);
    let due = story.job(1).due;
    assert_eq!(due, Some(story.now));
    story.wait(7);
    story.run(Due::Job(JobKey::new(&ns(), id(1)))).unwrap();
    assert_eq!(count(&story, State::Skipped), 2 * PIECE);
    assert_eq!(story.job(1).due, Some(story.now), "behind all that came due meanwhile");
    story.sweep();
    assert_eq!(count(&story, State::Skipped), 200);
    assert_eq!((story.state(501), story.job(501).live.waiting), (State::Blocked, 1));
    story.cancel(500).unwrap();
    assert_eq!(story.state(501), State::Pending);
}

#[test]
fn a_job_submitted_or_cancelled_between_two_pieces_fares_as_it_would_before_or_after() {
    let mut story = chain(200);
    story.cancel(1).unwrap();
    assert_eq!(story.submit(after(300, &[200])), State::Blocked, "the one before it has not heard yet");
    assert_eq!(story.submit(after(301, &[1])), State::Skipped, "this one knows at once");
    story.cancel(100).unwrap();
    assert_eq!(story.state(100), State::Cancelled);
    story.sweep();
    assert_eq!((story.state(99), story.state(101), story.state(300)), (State::Skipped, State::Skipped, State::Skipped));
    assert_eq!(story.state(100), State::Cancelled, "a final job never changes");
}

#[test]
fn what_a_fan_waits_for_may_end_well_and_all_of_it_becomes_ready() {
    let mut story = fan(200);
    let lease = story.claim("w");
    story.complete(lease).unwrap();
    assert_eq!(count(&story, State::Pending), PIECE);
    story.sweep();
    assert_eq!(count(&story, State::Pending), 200);
}

/// However many ends are in one batch, others wait for a few pieces at most.
#[test]
fn many_ends_in_one_batch_share_what_a_batch_passes_on() {
    let mut story = Story::new();
    submit_all(&mut story, (1..=50).map(once));
    for parent in 1..=50 {
        submit_all(&mut story, (0..100).map(|at| after(1_000 * parent + at, &[parent])));
    }
    let cancel =
        |number| Cancel { namespace: ns(), job: id(number), by: "ann".into(), mode: None, message: "".into() }.into();
    story.batch((1..=50).map(cancel).collect());
    let skipped = count(&story, State::Skipped);
    assert!((4 * PIECE..=4 * PIECE + PIECE + 50 * 4).contains(&skipped), "{skipped}");
    let all_heard = (1..=50).all(|parent| story.state(1_000 * parent) == State::Skipped);
    assert!(all_heard, "and each goes on a little");
    story.sweep();
    assert_eq!(count(&story, State::Skipped), 5_000);
}

/// A run's steps follow its failure at once, whatever its shape: its protocol may say so.
#[test]
fn a_run_ends_in_one_transaction() {
    let mut story = Story::new();
    let lines: Vec<String> = (0..3_000)
        .map(|at| match at {
            0 => "s0".into(),
            1..1_000 => format!("s{at}: s{}", at - 1),
            _ => format!("s{at}: s0"),
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    story.run(graph(1, &lines, |_, _| {})).unwrap();
    story.cancel(1).unwrap();
    assert_eq!(count(&story, State::Skipped), 2_999);
}
