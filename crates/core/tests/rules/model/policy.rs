use windlass_core::{
    Limits, Millis, Refusal,
    policy::{Backoff, JobPolicy, LeaseLength, LeasePolicy, RetryPolicy},
};

#[test]
fn backoff_grows_to_its_cap_and_jitter_only_shortens() {
    let plain = Backoff::Exponential { base: Millis(100), cap: Millis(1_000), jitter_percent: 0 };
    let waits: Vec<i64> = (1..=6).map(|retry| plain.delay(retry, 7).0).collect();
    assert_eq!(waits, [100, 200, 400, 800, 1_000, 1_000]);
    let jittered = Backoff::Exponential { base: Millis(100), cap: Millis(1_000), jitter_percent: 50 };
    for seed in 0..1_000 {
        let wait = jittered.delay(5, seed).0;
        assert!((500..=1_000).contains(&wait), "{wait}");
    }
    assert_eq!(jittered.delay(u32::MAX, 1), jittered.delay(u32::MAX, 1), "same seed, same wait");
}

#[test]
fn impossible_policies_are_refused_by_field() {
    let limits = Limits::default();
    let cases: Vec<(&str, JobPolicy)> = vec![
        (
            "policy.retry.attempts",
            JobPolicy { retry: RetryPolicy { attempts: 0, ..Default::default() }, ..Default::default() },
        ),
        (
            "policy.retry.losses_max",
            JobPolicy { retry: RetryPolicy { losses_max: 0, ..Default::default() }, ..Default::default() },
        ),
        ("policy.hard_deadline", JobPolicy { hard_deadline: Some(Millis(-1)), ..Default::default() }),
        ("policy.pending_deadline", JobPolicy { pending_deadline: Some(Millis(0)), ..Default::default() }),
        ("policy.retention", JobPolicy { retention: Some(Millis(i64::MAX)), ..Default::default() }),
        (
            "policy.lease.length",
            JobPolicy {
                lease: LeasePolicy { length: LeaseLength::FromDeadline, ..Default::default() },
                ..Default::default()
            },
        ),
        (
            "policy.retry.backoff",
            JobPolicy {
                retry: RetryPolicy { backoff: Backoff::Fixed(Millis(-5)), ..Default::default() },
                ..Default::default()
            },
        ),
    ];
    for (field, policy) in cases {
        match policy.check(&limits) {
            Err(Refusal::Invalid { field: named, .. }) => assert_eq!(named, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    assert_eq!(JobPolicy::default().check(&limits), Ok(()));
}
