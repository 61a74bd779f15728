//! What clients say.

use serde::Deserialize;

/// Bytes of the name of a room: the longest full name, and a word before it.
const NAME_MAX: usize = 256;
/// Where everybody who looks at a room also hears of what concerns all rooms.
const GLOBAL: &str = "@global";

/// Everything that any of the events carries.
#[derive(Deserialize)]
pub struct Said {
    job_name: Option<String>,
    provider_name: Option<String>,
    room_id: Option<String>,
    client_type: Option<String>,
    worker_id: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    Enter {
        room: String,
        worker: Option<String>,
    },
    Leave {
        room: String,
    },
    /// Status of tasks and lists that have changed. Front ends also hear of what concerns all rooms.
    Watch {
        id: String,
        also: Option<String>,
    },
    Unwatch {
        id: String,
    },
}

/// The room in which a room's changes are told.
pub fn watched(room: &str) -> String {
    format!("room:{room}")
}

pub fn of_job(name: &str) -> String {
    format!("jobs:{name}")
}

pub fn of_provider(name: &str) -> String {
    format!("providers:{name}")
}

impl Said {
    /// None: an event that nobody knows, or that lacks something.
    pub fn wish(self, event: &str) -> Option<Wish> {
        let short = |name: Option<String>| name.filter(|name| !name.is_empty() && name.len() <= NAME_MAX);
        let (job, provider, room) = (short(self.job_name), short(self.provider_name), short(self.room_id));
        let worker = short(self.worker_id);
        Some(match event {
            "join_job_room" => Wish::Enter { room: of_job(&job?), worker },
            "leave_job_room" => Wish::Leave { room: of_job(&job?) },
            "join_provider_room" => Wish::Enter { room: of_provider(&provider?), worker },
            "leave_provider_room" => Wish::Leave { room: of_provider(&provider?) },
            "room_join" => {
                let is_page = self.client_type.as_deref().unwrap_or("frontend") == "frontend";
                Wish::Watch { id: room?, also: is_page.then(|| GLOBAL.to_owned()) }
            }
            "room_leave" => Wish::Unwatch { id: room? },
            _ => return None,
        })
    }
}
