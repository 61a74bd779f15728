use serde_json::json;
use windlass_server::dialects::joblib::sockets::said::{Said, Wish};

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
