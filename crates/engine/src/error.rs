//! Why a call came to nothing.

use crate::store::StoreError;
use thiserror::Error;
use windlass_core::Refusal;

#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The rules said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Too much is waiting already. Nothing was done; come back in a moment.
    #[error("the server is busy; try again in a moment")]
    Overloaded,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine is shutting down. Nothing was done.
    #[error("the server is shutting down")]
    Closed,
}
