//! Items, bills of material and graphs as the surfaces here reach them: each in the namespace it is asked about.
//!
//! The native API and dialects are ways to the same records: a change made by one is seen by the other, sets off the same jobs and
//! tells the same events. What they are and how they change is `windlass_product`'s; here are the bytes of their files.

pub mod files;

use crate::{
    app::App,
    problem::{Code, Problem},
};
use std::sync::Arc;
use windlass_core::Namespace;
use windlass_product::{Error, Nothing, Products};

impl App {
    /// The items of a namespace.
    pub fn products(&self, namespace: &Namespace) -> Products {
        let fires = self.dialects.fires(self, namespace).unwrap_or_else(|| Arc::new(Nothing));
        Products::new(self.engine.clone(), namespace.clone(), self.product.clone(), fires)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Engine(error) => error.into(),
            Error::RowExists { .. } => Problem::new(Code::Exists, text),
            Error::Contained { .. } => Problem::new(Code::InUse, text),
            Error::Outrun(_) => Problem::new(Code::VersionMismatch, text),
            Error::Damaged { .. } => Problem::new(Code::Damaged, text),
            Error::Unwritable(_) => Problem::new(Code::Internal, text),
        }
    }
}
