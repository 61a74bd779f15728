//! Items, revisions and projects: what they hold, and which names are names.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;
use windlass_core::{Refusal, Timestamp};

/// Part numbers that are also words in paths, where they could not be told apart.
pub const RESERVED: [&str; 5] = ["by-uuid", "expanded", "flat", "merge", "where-used"];

/// Kept under its part number, which never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    pub id: Uuid,
    pub part_number: String,
    pub item_type: String,
    pub schema: String,
    pub category: Option<String>,
    pub description: String,
    pub properties: Map<String, Value>,
    /// Codes, sorted.
    pub projects: Vec<String>,
    /// The highest one; numbers go up by one from 1.
    pub current_revision: u32,
    pub created_at: Timestamp,
    pub created_by: String,
    pub updated_at: Timestamp,
    pub updated_by: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Revision {
    pub id: Uuid,
    pub number: u32,
    pub comment: String,
    pub properties: Map<String, Value>,
    pub created_at: Timestamp,
    pub created_by: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Project {
    pub id: Uuid,
    pub code: String,
    pub name: String,
    pub description: String,
    pub created_at: Timestamp,
}

/// A pattern made of one set of first characters, one of others, and a length.
fn fits(text: &str, first: impl Fn(u8) -> bool, other: impl Fn(u8) -> bool, max: usize) -> bool {
    let bytes = text.as_bytes();
    (1..=max).contains(&bytes.len()) && first(bytes[0]) && bytes[1..].iter().all(|&byte| other(byte))
}

/// `A-Z a-z 0-9 . _ -`, the first a letter or digit: part numbers, names of definitions, commands and runners.
pub fn is_plain_name(text: &str, max: usize) -> bool {
    let other = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    fits(text, |byte| byte.is_ascii_alphanumeric(), other, max)
}

/// As a plain name, and `:`.
pub fn is_tag(text: &str) -> bool {
    let other = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    fits(text, |byte| byte.is_ascii_alphanumeric(), other, 64)
}

pub fn check_part_number(text: &str) -> Result<(), Refusal> {
    if RESERVED.contains(&text) {
        return Err(Refusal::invalid(
            "part_number",
            format!("{text:?} is a word in paths and cannot be a part number"),
        ));
    }
    if is_plain_name(text, 64) {
        return Ok(());
    }
    let why = format!("{text:?} is no part number: 1 to 64 of A-Z a-z 0-9 . _ -, starting with a letter or digit");
    Err(Refusal::invalid("part_number", why))
}

pub fn check_item_type(text: &str) -> Result<(), Refusal> {
    let other = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if fits(text, |byte| byte.is_ascii_lowercase(), other, 32) {
        return Ok(());
    }
    let why = format!("{text:?} is no item type: 1 to 32 of a-z 0-9 _ -, starting with a letter");
    Err(Refusal::invalid("item_type", why))
}

pub fn check_schema(text: &str) -> Result<(), Refusal> {
    if (1..=64).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Refusal::invalid("schema", "a schema's name has 1 to 64 characters".into()))
}

pub fn check_category(text: &str) -> Result<(), Refusal> {
    let any = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    if fits(text, any, any, 8) {
        return Ok(());
    }
    Err(Refusal::invalid("category", format!("{text:?} is no category: 1 to 8 of A-Z 0-9")))
}

pub fn check_project_code(text: &str) -> Result<(), Refusal> {
    let first = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    if fits(text, first, |byte| first(byte) || b"_-".contains(&byte), 32) {
        return Ok(());
    }
    let why = format!("{text:?} is no project code: 1 to 32 of A-Z 0-9 _ -, starting with a letter or digit");
    Err(Refusal::invalid("code", why))
}

/// The part number made for the n-th item of a category.
pub fn numbered(category: &str, n: u64) -> String {
    format!("{category}-{n:04}")
}
