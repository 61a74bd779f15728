//! Schemas of bodies and queries, for the API's description.
//!
//! Making them takes code for every type on the wire, which only a test needs: it makes the description and compares it with the stored
//! one, which is what is served. So that code is behind a feature.

#[cfg(not(feature = "schema"))]
pub use without::{Described, Schema};

#[cfg(feature = "schema")]
pub use schemars::JsonSchema as Described;

/// Makes the schema of one type.
#[cfg(feature = "schema")]
#[derive(Clone, Copy)]
pub struct Schema(fn(&mut schemars::SchemaGenerator) -> schemars::Schema);

#[cfg(feature = "schema")]
impl Schema {
    pub fn of<T: Described>() -> Self {
        Self(|generator| generator.subschema_for::<T>())
    }

    pub fn make(self, generator: &mut schemars::SchemaGenerator) -> serde_json::Value {
        (self.0)(generator).to_value()
    }
}

#[cfg(not(feature = "schema"))]
mod without {
    /// Whatever can be a body or a query.
    pub trait Described {}

    impl<T> Described for T {}

    /// Stands for a schema that is not made.
    #[derive(Clone, Copy)]
    pub struct Schema;

    impl Schema {
        pub fn of<T: Described>() -> Self {
            Self
        }
    }
}
