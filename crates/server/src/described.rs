//! How the API's description comes by the schemas of bodies and queries.
//!
//! They are made from the types by code that is as large as the handlers, and needed only to write the description. So that code is
//! behind a feature for the tests: one of them makes the description, and compares it with the stored one, which is what is served.

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
