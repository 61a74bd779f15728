//! What files may take of their disk.

/// Bytes; 0 is no limit.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    pub per_job: u64,
    pub per_namespace: u64,
    /// What files leave free on the disk they are on.
    pub reserve: u64,
}

impl Default for Files {
    fn default() -> Self {
        Self { per_job: 8 << 30, per_namespace: 64 << 30, reserve: 1 << 30 }
    }
}
