//! Why a call came to nothing.

use windlass_core::Refusal;
use windlass_engine::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rule said no, or the engine could not do it.
    #[error(transparent)]
    Engine(#[from] windlass_engine::Error),
    #[error("{child} is in the BOM of {parent} already")]
    RowExists { parent: String, child: String },
    #[error("{part} is part of other items; take it out of their BOM first")]
    Contained { part: String },
    /// Others changed the same records again and again.
    #[error("{0}; try again")]
    Outrun(&'static str),
    #[error("the stored {what} cannot be read: {why}")]
    Damaged { what: String, why: String },
    #[error(transparent)]
    Unwritable(#[from] serde_json::Error),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Engine(refusal.into())
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl Error {
    pub fn not_found(what: &'static str, name: impl ToString) -> Self {
        Refusal::not_found(what, name).into()
    }

    pub fn invalid(field: &'static str, why: impl Into<String>) -> Self {
        Refusal::invalid(field, why.into()).into()
    }
}
