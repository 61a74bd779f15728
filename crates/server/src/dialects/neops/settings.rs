//! What an operator can set about this dialect, under our names and under those its users know.

use crate::{
    config::{
        adjusted::{Adjusted, follows, limited},
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

/// What is in effect where that is not what was written.
pub fn adjusted(read: &Values) -> Vec<Adjusted> {
    let now = Settings::read(read);
    let all = [
        limited(read, neops_worker_unreachable, now.unreachable),
        follows(read, neops_worker_offline, now.offline, "three times neops_worker_unreachable"),
        limited(read, neops_worker_delete, now.delete_by_hand),
        follows(read, neops_job_stuck, now.stuck, "twice neops_worker_offline"),
        follows(read, neops_job_pending, now.pending, "five times neops_job_stuck"),
    ];
    all.into_iter().flatten().collect()
}

/// A plain number of milliseconds.
pub fn millis(text: &str) -> Result<String, String> {
    let millis: u64 = text.trim().parse().map_err(|_| format!("{text:?} is not a number of milliseconds"))?;
    Ok(format!("{millis}ms"))
}

/// A number of bytes, or one with `kb` or `mb`, which are powers of two there.
pub fn bytes(text: &str) -> Result<String, String> {
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
