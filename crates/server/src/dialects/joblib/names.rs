//! Rooms, and the full names of jobs and providers: room, category and name, with colons between them.

use super::{
    error::{HttpError, INVALID_ROOM_ID, Result},
    fault::Fault,
    settings::Settings,
};
use http::StatusCode;
use std::fmt;

pub const GLOBAL: &str = "@global";
pub const INTERNAL: &str = "@internal";

const FULL_NAME_BYTES_MAX: usize = 250;
const ROOM_BYTES_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullName {
    pub room: String,
    pub category: String,
    /// May hold colons and slashes itself.
    pub name: String,
}

impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.room, self.category, self.name)
    }
}

impl FullName {
    /// Of something that is to be registered, so it has to fit.
    pub fn new(room: &str, category: &str, name: &str) -> Result<Self> {
        let full = Self { room: room.to_owned(), category: category.to_owned(), name: name.to_owned() };
        let text = full.to_string();
        if text.len() > FULL_NAME_BYTES_MAX || text.chars().any(char::is_control) {
            let why =
                format!("room, category and name have at most {FULL_NAME_BYTES_MAX} bytes, and no control characters");
            return Err(Fault::value(&["body", "name"], why).into());
        }
        Ok(full)
    }

    /// None: it has fewer than three parts.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next().map(str::to_owned);
        Some(Self { room: next()?, category: next()?, name: next()? })
    }
}

pub fn is_special(room: &str) -> bool {
    room == GLOBAL || room == INTERNAL
}

pub fn check_room(room: &str) -> Result<()> {
    if !is_special(room) && (room.is_empty() || room.contains(['@', ':'])) {
        return Err(INVALID_ROOM_ID.error(format!("Room ID '{room}' contains invalid characters (@ or :)")));
    }
    if room.len() > ROOM_BYTES_MAX || room.chars().any(char::is_control) {
        let why = format!("a room has at most {ROOM_BYTES_MAX} bytes, and no control characters");
        return Err(Fault::value(&["path", "room_id"], why).into());
    }
    Ok(())
}

/// For what registers or submits something in a room.
pub fn check_writable(settings: &Settings, room: &str) -> Result<()> {
    check_room(room)?;
    match settings.locked_rooms.iter().any(|locked| locked == room) {
        true => Err(HttpError::plain(StatusCode::LOCKED, format!("Room '{room}' is locked"))),
        false => Ok(()),
    }
}
