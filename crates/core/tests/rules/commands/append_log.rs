use crate::rules::story::{Story, code, id, ns, once, tries};
use windlass_core::{
    Millis, Reply, State,
    commands::{
        append_log::AppendLog,
        holder::{Address, Holder},
    },
    reply::Logged,
};

#[test]
fn beyond_the_cap_the_beginning_and_the_newest_part_are_kept() {
    let mut story = Story::new();
    (story.tables.limits.log_bytes_max, story.tables.limits.log_piece_bytes_max) = (10, 8);
    let lease = story.submit_and_claim(once(1));
    let append = |text: &str| AppendLog::new(Holder::lease(&ns(), lease), text);
    for (text, dropped_bytes) in [("1234", 0), ("567é", 0), ("x", 0), ("", 0), ("yy", 5), ("z34567é", 10)] {
        let Ok(Reply::Logged(Logged { dropped_bytes: told, cancelled: false, .. })) = story.run(append(text)) else {
            panic!("{text}");
        };
        assert_eq!(told, dropped_bytes, "{text}");
    }
    assert_eq!(code(&story.run(append("123456789"))), "too-large");
    let kept: Vec<(u64, &[u8])> =
        story.tables.logs.values().flatten().map(|append| (append.piece, append.data.as_bytes())).collect();
    assert_eq!(kept, [(1, &b"1234"[..]), (5, "4567é".as_bytes())]);
}

/// However large the pieces are beside the cap, a reader of all there is finds out how much is missing.
#[test]
fn whatever_is_missing_is_said_once_between_what_is_there() {
    for (cap, pieces) in
        [(10, &[8, 8, 3][..]), (4, &[8]), (4, &[1, 8, 1]), (4, &[2, 8, 8]), (6, &[3, 8, 1, 1]), (0, &[3, 3])]
    {
        let mut story = Story::new();
        (story.tables.limits.log_bytes_max, story.tables.limits.log_piece_bytes_max) = (cap, 8);
        let lease = story.submit_and_claim(once(1));
        for &length in pieces {
            story.run(AppendLog::new(Holder::lease(&ns(), lease), "x".repeat(length).as_str())).unwrap();
        }
        let count = &story.job(1).live.log;
        let (mut after, mut said) = (0, 0);
        for append in story.tables.logs.values().flatten() {
            said += count.gap(after, append.piece).map_or(0, |gap| gap.bytes.unwrap_or(0));
            after = append.piece;
        }
        said += if count.ends_short() { count.dropped_bytes } else { 0 };
        let kept: usize = story.tables.logs.values().flatten().map(|append| append.data.len()).sum();
        let written: usize = pieces.iter().sum();
        assert_eq!(said, (written - kept) as u64, "a cap of {cap}, {pieces:?}");
    }
}

#[test]
fn a_line_that_names_the_job_is_taken_after_its_end_and_one_under_a_lease_is_not() {
    let mut story = Story::new();
    let lease = story.submit_and_claim(once(1));
    story.complete(lease).unwrap();
    let by_job = Holder { address: Address::Job(lease.job), ..Holder::lease(&ns(), lease) };
    story.run(AppendLog::new(by_job.clone(), "late")).unwrap();
    assert_eq!(story.job(1).live.log.pieces, 1);
    assert_eq!(code(&story.run(AppendLog::new(Holder::lease(&ns(), lease), "late"))), "lease-lost");
    story.submit(once(2));
    let unclaimed = Holder { address: Address::Job(id(2)), ..by_job };
    assert_eq!(code(&story.run(AppendLog::new(unclaimed, "early"))), "not-held");
}

#[test]
fn a_cap_of_nothing_keeps_nothing_and_counts() {
    let mut story = Story::new();
    story.tables.limits.log_bytes_max = 0;
    let lease = story.submit_and_claim(once(1));
    let reply = story.run(AppendLog::new(Holder::lease(&ns(), lease), "abc"));
    assert!(matches!(reply, Ok(Reply::Logged(Logged { dropped_bytes: 3, .. }))), "{reply:?}");
    assert_eq!(story.tables.logs.values().flatten().count(), 0);
}

/// What a program prints when it is stopped at its deadline, the server has to take although the attempt is over.
#[test]
fn the_last_words_of_an_attempt_that_ran_out_of_time_are_kept() {
    let append = |lease| AppendLog::new(Holder::lease(&ns(), lease), "bye");
    let job = |attempts, total: bool| {
        let mut job = tries(1, attempts);
        let limit = Some(Millis(10_000));
        if total {
            job.policy.total_deadline = limit
        } else {
            job.policy.hard_deadline = limit
        }
        job
    };
    for (attempts, total, state) in [(1, false, State::Failed), (2, false, State::Pending), (2, true, State::Failed)] {
        let mut story = Story::new();
        let lease = story.submit_and_claim(job(attempts, total));
        story.wait(10_000);
        story.run(append(lease)).unwrap();
        assert_eq!((story.state(1), story.job(1).live.log.bytes), (state, 3), "also without a sweep before");
        assert_eq!(code(&story.complete(lease)), "lease-lost", "but nothing else");
        story.wait(59_999);
        story.run(append(lease)).unwrap();
        story.wait(1);
        assert_eq!(code(&story.run(append(lease))), "lease-lost", "not for ever");
    }
    // Not under a lease that another attempt has replaced, nor after any other end.
    let mut story = Story::new();
    let lease = story.submit_and_claim(job(2, false));
    story.wait(10_000);
    story.sweep();
    story.claim("other");
    assert_eq!(code(&story.run(append(lease))), "lease-lost");
    for how in ["completed", "failed"] {
        let mut story = Story::new();
        let lease = story.submit_and_claim(job(2, false));
        match how {
            "completed" => story.complete(lease).unwrap(),
            _ => story.fail(lease).unwrap(),
        };
        story.wait(10_000);
        assert_eq!(code(&story.run(append(lease))), "lease-lost", "{how}");
    }
}
