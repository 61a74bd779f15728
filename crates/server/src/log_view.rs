//! The line that stands in a log where a part of it is missing.

use windlass_core::log_count::LogGap;

pub fn missing(gap: LogGap) -> String {
    match gap.bytes {
        Some(bytes) if bytes > 0 => {
            format!("[windlass: {bytes} bytes are missing here, because the log had reached its limit (job_log_max)]\n")
        }
        _ => "[windlass: a part is missing here that was dropped before it was read, because the log had reached its limit \
              (job_log_max)]\n"
            .into(),
    }
}
