use windlass_core::Millis;
use windlass_server::{
    config::values::Values,
    dialects::neops::settings::{
        Settings, bytes, millis, neops_job_stuck, neops_worker_cleanup, neops_worker_unreachable,
    },
};

#[test]
fn what_is_left_out_follows_the_multiples() {
    let minutes = |minutes: i64| Millis(minutes * 60_000);
    let usual = Settings::read(&Values::default());
    assert_eq!(
        [usual.unreachable, usual.offline, usual.stuck, usual.pending],
        [minutes(2), minutes(6), minutes(12), minutes(60)]
    );
    assert_eq!(usual.delete, Some(minutes(24 * 60)));
    let short = Settings::read(&Values::default().with(neops_worker_unreachable, "1s"));
    assert_eq!([short.offline, short.stuck, short.pending], [Millis(3_000), Millis(6_000), Millis(30_000)]);
    let own = Values::default().with(neops_job_stuck, "2s").with(neops_worker_cleanup, "false");
    let own = Settings::read(&own);
    assert_eq!((own.stuck, own.pending, own.delete), (Millis(2_000), Millis(10_000), None));
}

#[test]
fn values_are_read_as_the_original_writes_them() {
    assert_eq!((millis("120000").unwrap(), bytes("50mb").unwrap()), ("120000ms".into(), "50MiB".into()));
    assert_eq!((bytes("1024").unwrap(), bytes("7 KB").unwrap()), ("1024B".into(), "7KiB".into()));
    assert!(millis("2m").is_err() && millis("-1").is_err() && bytes("lots").is_err());
}
