//! Items, bills of material and graphs as the surfaces here reach them: each in the namespace it is asked about.
//!
//! The native API and dialects are ways to the same records: a change made by one is seen by the other, sets off the same jobs and
//! tells the same events. What they are and how they change is `windlass_product`'s; here are the bytes of their files.

pub mod files;

use crate::{app::App, problem::Problem};
use std::sync::Arc;
use windlass_core::Namespace;
use windlass_product::{Error, Nothing, Products};

/// What all namespaces share.
pub type Shared = Arc<windlass_product::Shared>;

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
            Error::RowExists { .. } => Problem::new("exists", text),
            Error::Contained { .. } => Problem::new("in-use", text),
            Error::Outrun(_) => Problem::new("version-mismatch", text),
            Error::Damaged { .. } => Problem::new("damaged", text),
            Error::Unwritable(_) => Problem::new("internal", text),
        }
    }
}
