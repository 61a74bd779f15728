//! What happened, in the words of this protocol. It says what the event says, not what has become of the task since.

use super::{
    super::{body::time, names::FullName, show},
    said::{of_job, of_provider, watched},
};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_core::{Event, Job, JobId, Timestamp, What, WorkerId, link};

/// One message to everybody in a room.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub room: String,
    pub name: &'static str,
    pub data: Value,
}

/// Lists that have to be read again. One change may make many of these, so equal ones are told once.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stale {
    pub room: String,
    pub name: &'static str,
}

/// What a task keeps from its beginning to its end, and what was heard of it so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub name: Arc<str>,
    pub room: Arc<str>,
    pub created_at: Timestamp,
    pub worker: Option<WorkerId>,
    pub started_at: Option<Timestamp>,
}

impl Task {
    /// None: a job that did not come over this protocol.
    pub fn of(job: &Job) -> Option<Self> {
        Some(Self {
            name: Some(show::name_of(job)).filter(|name| !name.is_empty())?.into(),
            room: show::room_of(job).into(),
            created_at: job.spec.created_at,
            worker: job.live.lease.as_ref().map(|lease| lease.worker.clone()),
            started_at: job.live.started_at,
        })
    }

    pub fn available(&self, id: JobId) -> Message {
        let data = json!({"job_name": self.name, "room_id": self.room, "task_id": id.to_string()});
        Message { room: of_job(&self.name), name: "task_available", data }
    }

    pub fn status(&self, id: JobId, now: &Now) -> Message {
        let at = |moment: Option<Timestamp>| moment.map(time);
        let held = now.status != "pending";
        let data = json!({
            "id": id.to_string(),
            "name": self.name,
            "room_id": self.room,
            "status": now.status,
            "created_at": time(self.created_at),
            "started_at": at(now.started_at),
            "completed_at": at(now.completed_at),
            "queue_position": now.queue_position,
            "worker_id": now.worker.as_ref().or(self.worker.as_ref().filter(|_| held)).map(WorkerId::as_str),
            "error": now.error,
        });
        Message { room: watched(&self.room), name: "task_status_event", data }
    }
}

/// What an event says about a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Now {
    pub status: &'static str,
    pub worker: Option<WorkerId>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub queue_position: Option<usize>,
    pub error: Option<String>,
}

impl Now {
    /// None: nothing that is told. What the event does not say itself is left to be filled in.
    pub fn of(event: &Event, task: &Task) -> Option<Self> {
        let now = |status: &'static str| Self { status, ..Self::default() };
        let ended = |status: &'static str, error: Option<String>| {
            let started_at = task.started_at;
            Self { completed_at: Some(event.at), started_at, error, ..now(status) }
        };
        let words = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        Some(match &event.what {
            What::Submitted { .. } => now("pending"),
            What::Claimed { worker, .. } => Self { worker: Some(worker.clone()), ..now("claimed") },
            What::Started { .. } => Self { started_at: Some(event.at), ..now("running") },
            What::Completed { .. } => ended("completed", None),
            What::Failed { reason, message, .. } => ended("failed", words(&show::failure(*reason, message))),
            What::Cancelled { message, .. } => ended("cancelled", words(message)),
            // Of jobs, what a task never does; of everything else, what is told as a list that is stale, or not at all.
            What::Ready { .. }
            | What::Progress { .. }
            | What::Requeued { .. }
            | What::Released { .. }
            | What::CancelRequested { .. }
            | What::Skipped { .. }
            | What::WorkerRegistered { .. }
            | What::WorkerOnline { .. }
            | What::WorkerUnreachable { .. }
            | What::WorkerOffline { .. }
            | What::WorkerDraining { .. }
            | What::WorkerUndrained { .. }
            | What::WorkerDeleted { .. }
            | What::RunStarted { .. }
            | What::RunGrew { .. }
            | What::RunFinished { .. }
            | What::DefinitionPut { .. }
            | What::DefinitionDeleted { .. }
            | What::Linked { .. }
            | What::Unlinked { .. }
            | What::RecordPut { .. }
            | What::RecordDeleted { .. }
            | What::Told { .. }
            | What::Audit { .. } => return None,
        })
    }
}

/// The list that an event makes stale, if it does.
pub fn stale(what: &What) -> Option<Stale> {
    let (of, name) = if let What::Linked { definition: name, .. }
    | What::Unlinked { definition: name, .. }
    | What::DefinitionDeleted { name } = what
    {
        (name, "jobs_invalidate")
    } else if let What::RecordPut { kind, key } | What::RecordDeleted { kind, key } = what
        && **kind == *link::TIED
    {
        (key, "providers_invalidate")
    } else {
        return None;
    };
    Some(Stale { room: watched(&FullName::parse(of)?.room), name })
}

/// What the dialect told itself about providers: to whom, and what.
pub fn of_providers(topic: &str, data: &str) -> Option<Message> {
    let mut told: Value = serde_json::from_str(data).ok()?;
    let room = told.get("room")?.as_str()?.to_owned();
    let data = told.get_mut("say")?.take();
    match topic {
        "provider_request" => Some(Message { room: of_provider(&room), name: "provider_request", data }),
        "provider_result_ready" => Some(Message { room: watched(&room), name: "provider_result_ready", data }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::{Namespace, Reason};

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
            let said =
                ["status", "worker_id", "started_at", "completed_at", "error"].map(|key| message.data[key].clone());
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
}
