//! The rules: what items, bills of material and graphs hold, and what follows from it. Pure: no I/O, no clock, no randomness.
//!
//! Whoever writes what was worked out here names the versions it looked at, so that a rule that was met when it was checked is
//! still met when the change is written.

pub mod bom;
pub mod features;
pub mod item;
pub mod trigger;

/// Keeps stored records short: a field at its default is not written at all.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
