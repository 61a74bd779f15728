//! Waiting for what comes true sooner or later: the one place where tests pause between two looks.

use std::{fmt::Display, time::Duration};

/// A minute at least, as machines stall: a test that waits for a condition fails because it never comes, not because it is late.
const LOOKS_MAX: usize = 1_300;

/// Most things come at once; what does not is not to be slowed down by looking.
fn pause(looks: usize) -> Duration {
    Duration::from_millis(if looks < 40 { 5 } else { 50 })
}

/// Looks until there is something.
///
/// # Panics
/// When nothing has come for a minute.
pub async fn eventually<T>(what: impl Display, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    for looks in 0..LOOKS_MAX {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(pause(looks)).await; // The pause between two looks.
    }
    panic!("it never came true: {what}");
}

/// The same where nothing is asynchronous.
///
/// # Panics
/// When nothing has come for a minute.
pub fn eventually_blocking<T>(what: impl Display, mut look: impl FnMut() -> Option<T>) -> T {
    for looks in 0..LOOKS_MAX {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(pause(looks)); // The pause between two looks.
    }
    panic!("it never came true: {what}");
}
