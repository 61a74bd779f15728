//! What an operator can set about this dialect, under our names and under those its users know.

use crate::{
    config::{
        table::{self, Foreign, From, Kind, NOTHING, Setting, as_it_is},
        values::Values,
    },
    settings,
};
use windlass_core::Millis;

settings! { TABLE:
    neops_worker_unreachable: Kind::Time, "2m", "How long after its last ping a neops worker gets no more jobs";
    neops_worker_offline: Kind::Time, "6m", "How long after its last ping a neops worker loses the jobs it holds. Default: three times neops_worker_unreachable";
    neops_worker_delete: Kind::Time, "1d", "How long a neops worker is offline before it is deleted";
    neops_worker_cleanup: Kind::Flag, "true", "Delete neops workers that are offline for neops_worker_delete";
    neops_job_stuck: Kind::Time, "12m", "How long a neops job may be worked on; then it fails, however alive its worker is. Default: twice neops_worker_offline";
    neops_job_pending: Kind::Time, "1h", "How long a neops job may wait for a worker; then it fails. Default: five times neops_job_stuck";
    neops_result_max: Kind::Bytes, "50MB", "Largest body with which a neops job's result or log is reported";
}

/// What an operator chose about this dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub unreachable: Millis,
    pub offline: Millis,
    /// From offline on. None: workers are never deleted by themselves.
    pub delete: Option<Millis>,
    /// What a clean-up by hand goes by.
    pub delete_by_hand: Millis,
    pub stuck: Millis,
    pub pending: Millis,
    pub result_max: usize,
    /// How long a deleted worker is remembered.
    pub kept: Millis,
}

impl Settings {
    pub fn read(read: &Values) -> Self {
        let second = Millis(1_000);
        let or = |setting: Setting, multiple: Millis| match read.is_chosen(setting) {
            true => read.millis(setting).max(second),
            false => multiple,
        };
        let times = |length: Millis, times: i64| Millis(length.0.saturating_mul(times));
        let unreachable = read.millis(neops_worker_unreachable).max(second);
        let offline = or(neops_worker_offline, times(unreachable, 3)).max(unreachable);
        let stuck = or(neops_job_stuck, times(offline, 2));
        let delete = read.millis(neops_worker_delete).max(second);
        Self {
            unreachable,
            offline,
            delete: read.flag(neops_worker_cleanup).then_some(delete),
            delete_by_hand: delete,
            stuck,
            pending: or(neops_job_pending, times(stuck, 5)),
            result_max: read.bytes(neops_result_max),
            kept: read.millis(table::retention).max(second),
        }
    }
}

/// A plain number of milliseconds.
fn millis(text: &str) -> Result<String, String> {
    let millis: u64 = text.trim().parse().map_err(|_| format!("{text:?} is not a number of milliseconds"))?;
    Ok(format!("{millis}ms"))
}

/// A number of bytes, or one with `kb` or `mb`, which are powers of two there.
fn bytes(text: &str) -> Result<String, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match lower[digits..].trim() {
        "" | "b" => "B",
        "kb" => "KiB",
        "mb" => "MiB",
        "gb" => "GiB",
        _ => return Err(format!("{text:?} is not a size such as 52428800 or 50mb")),
    };
    Ok(format!("{}{unit}", &lower[..digits]))
}

/// The names its users know. What is due is done when it is due, so the two intervals have nothing to say.
pub fn foreign() -> Vec<Foreign> {
    let variable = |name, to, convert| Foreign { from: From::Variable(name), to, convert };
    vec![
        variable("WORKER_UNREACHABLE_THRESHOLD_MS", neops_worker_unreachable, millis),
        variable("WORKER_OFFLINE_THRESHOLD_MS", neops_worker_offline, millis),
        variable("WORKER_OFFLINE_DELETE_THRESHOLD_MS", neops_worker_delete, millis),
        variable("WORKER_CLEANUP_ENABLED", neops_worker_cleanup, as_it_is),
        variable("WORKER_CLEANUP_INTERVAL_MS", NOTHING, millis),
        variable("BLACKBOARD_JOB_CHECK_INTERVAL", NOTHING, millis),
        variable("BLACKBOARD_STUCK_JOB_TIMEOUT", neops_job_stuck, millis),
        variable("BLACKBOARD_PENDING_JOB_TIMEOUT", neops_job_pending, millis),
        variable("MAX_REQUEST_BODY_SIZE", neops_result_max, bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
