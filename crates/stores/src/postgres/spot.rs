//! Where a row stands in its table (`ctid`).
//!
//! Whoever has a row locked finds it there again without going through an index: nobody else can give it another version,
//! and nothing that moves rows gets past the lock on the table. Never kept beyond the transaction that has the lock.

use std::{collections::HashMap, error::Error};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use windlass_core::JobKey;

/// Of the jobs a batch has locked.
pub type Spots = HashMap<JobKey, Spot, foldhash::fast::RandomState>;

/// Block and item, as PostgreSQL sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot([u8; 6]);

impl<'a> FromSql<'a> for Spot {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TID
    }
}

impl ToSql for Spot {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TID
    }

    to_sql_checked!();
}
