//! A job's state as it stands on the wire.

use windlass_api::job::State as Wire;
use windlass_core::State;

pub fn wire_state(state: State) -> Wire {
    match state {
        State::Blocked => Wire::Blocked,
        State::Scheduled => Wire::Scheduled,
        State::Pending => Wire::Pending,
        State::Claimed => Wire::Claimed,
        State::Running => Wire::Running,
        State::Completed => Wire::Completed,
        State::Failed => Wire::Failed,
        State::Cancelled => Wire::Cancelled,
        State::Skipped => Wire::Skipped,
    }
}
