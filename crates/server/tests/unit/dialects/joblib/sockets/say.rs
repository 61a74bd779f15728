use serde_json::{Value, json};
use windlass_core::{Event, JobId, Namespace, Reason, Timestamp, What, WorkerId, link};
use windlass_server::dialects::joblib::{
    body::time,
    sockets::say::{Now, Stale, Task, of_providers, stale},
};

fn event(at: i64, what: What) -> Event {
    Event { namespace: Namespace::new("joblib").unwrap(), at: Timestamp(at), what }
}

fn task() -> Task {
    let worker = Some(WorkerId::new("w1").unwrap());
    let (name, room) = ("@global:modifiers:Rotate".into(), "r1".into());
    Task { name, room, created_at: Timestamp(0), worker, started_at: Some(Timestamp(2_000)) }
}

#[test]
fn a_status_is_what_the_event_says_however_far_the_task_has_got() {
    let (job, worker) = (JobId::from_u128(7), WorkerId::new("w1").unwrap());
    let failed = |reason| What::Failed { job, reason, message: "ouch".into() };
    let table = [
        (What::Submitted { job }, json!(["pending", null, null, null, null])),
        (What::Claimed { job, worker, attempt: 1 }, json!(["claimed", "w1", null, null, null])),
        (What::Started { job }, json!(["running", "w1", 3, null, null])),
        (What::Completed { job }, json!(["completed", "w1", 2, 3, null])),
        (failed(Reason::Reported), json!(["failed", "w1", 2, 3, "ouch"])),
        (failed(Reason::WorkerRemoved), json!(["failed", "w1", 2, 3, "Worker disconnected"])),
    ];
    for (what, [status, worker, started, completed, error]) in table.map(|(what, row)| {
        let row: [Value; 5] = serde_json::from_value(row).unwrap();
        (what, row)
    }) {
        let now = Now::of(&event(3_000, what), &task()).unwrap();
        let message = task().status(job, &now);
        let second = |value: &Value| value.as_i64().map_or(Value::Null, |n| time(Timestamp(n * 1_000)).into());
        let said = ["status", "worker_id", "started_at", "completed_at", "error"].map(|key| message.data[key].clone());
        assert_eq!(said, [status, worker, second(&started), second(&completed), error]);
        assert_eq!((message.room.as_str(), message.name), ("room:r1", "task_status_event"));
        assert_eq!(message.data.as_object().unwrap().len(), 10, "unset fields are there as null");
    }
}

#[test]
fn lists_are_stale_in_the_room_of_the_name() {
    let linked = What::Linked { definition: "r1:modifiers:A:b/c".into(), worker: WorkerId::new("w").unwrap() };
    assert_eq!(stale(&linked), Some(Stale { room: "room:r1".into(), name: "jobs_invalidate" }));
    let tied = |kind: &str| What::RecordDeleted { kind: kind.into(), key: "@global:fs:x".into() };
    let expected = Stale { room: "room:@global".into(), name: "providers_invalidate" };
    assert_eq!((stale(&tied(link::TIED)), stale(&tied("user"))), (Some(expected), None));
}

#[test]
fn what_providers_are_asked_goes_out_as_it_is() {
    let data = json!({"room": "r1:fs:x", "say": {"request_id": "1", "params": "{}"}}).to_string();
    let message = of_providers("provider_request", &data).unwrap();
    assert_eq!(message.room, "providers:r1:fs:x");
    assert_eq!(message.data, json!({"request_id": "1", "params": "{}"}));
    assert_eq!(of_providers("something", &data), None);
    assert_eq!(of_providers("provider_request", "junk"), None);
}
