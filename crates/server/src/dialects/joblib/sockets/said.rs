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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_clients_say_is_understood_or_overlooked() {
        let wish = |event: &str, data: serde_json::Value| serde_json::from_value::<Said>(data).ok()?.wish(event);
        let (room, worker) = ("jobs:@global:modifiers:Rotate".to_owned(), Some("w".to_owned()));
        let said = json!({"job_name": "@global:modifiers:Rotate", "worker_id": "w"});
        assert_eq!(wish("join_job_room", said.clone()), Some(Wish::Enter { room: room.clone(), worker }));
        assert_eq!(wish("leave_job_room", said.clone()), Some(Wish::Leave { room }));
        let watch = |also: Option<&str>| Some(Wish::Watch { id: "r1".into(), also: also.map(str::to_owned) });
        assert_eq!(wish("room_join", json!({"room_id": "r1"})), watch(Some("@global")));
        assert_eq!(wish("room_join", json!({"room_id": "r1", "client_type": "pyclient"})), watch(None));
        for (event, data) in [
            ("join_provider_room", said.clone()),
            ("task_available", said),
            ("room_join", json!({"room_id": "x".repeat(300)})),
            ("room_join", json!({"room_id": 7})),
            ("room_join", json!(["r1"])),
            ("room_leave", json!({"room_id": ""})),
        ] {
            assert_eq!(wish(event, data.clone()), None, "{event} {data}");
        }
    }
}
