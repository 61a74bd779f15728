//! Draws everything that must be fresh: ids, lease secrets, seeds. The rules only ever see what was drawn here.

use uuid::{Builder, Uuid};
use windlass_core::{JobId, RunId};

/// Time-ordered, so that jobs made together lie together on disk.
pub fn job_id() -> JobId {
    JobId(Uuid::now_v7())
}

pub fn run_id() -> RunId {
    RunId(Uuid::now_v7())
}

/// 122 bits from the thread's cryptographic generator.
pub fn secret() -> Uuid {
    Builder::from_random_bytes(rand::random()).into_uuid()
}

pub fn secrets(count: usize) -> Vec<Uuid> {
    (0..count).map(|_| secret()).collect()
}

pub fn seed() -> u64 {
    rand::random()
}
