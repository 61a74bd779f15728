use std::{sync::Arc, time::Duration};
use windlass_core::{
    Job, LeaseId, RecordKey, Tags, WorkerId,
    commands::{
        claim::Claim,
        holder::Holder,
        release::Release,
        submit::{NewJob, Submit},
    },
    credential::Credential,
};
use windlass_engine::{Engine, Error, Settings, clock::System, ids, memory::Memory};
use windlass_server::dialects::joblib::{
    namespace,
    show::STATUSES,
    tasks::{allowed, find, is_late, policy, shift},
    who::Who,
};

async fn claimed(engine: &Engine, worker: &str) -> Job {
    let worker = WorkerId::new(worker).unwrap();
    let claim = Claim::new(&namespace(), worker, Tags::default(), ids::secrets(1));
    *engine.claim(claim, Duration::ZERO).await.unwrap().remove(0).job
}

#[tokio::test]
async fn a_task_that_another_worker_holds_by_now_is_left_to_it() {
    let store = Arc::new(Memory::new(Arc::new(System::default())));
    let engine = Engine::start(store, Settings::default()).await.unwrap();
    let job = NewJob { policy: policy(), ..NewJob::new(ids::job_id()) };
    engine.run(Submit { namespace: namespace(), job }).await.unwrap();
    let seen = claimed(&engine, "first").await;
    let lease = LeaseId::new(seen.key.id, seen.live.lease.as_ref().unwrap().secret);
    engine.run(Release { holder: Holder::lease(&namespace(), lease) }).await.unwrap();
    let now = claimed(&engine, "second").await;
    let key = RecordKey { namespace: namespace(), kind: "user".into(), key: "u".into() };
    let who = Who::of(Who::user(ids::secret(), false, Credential::record(key, 1)));
    for to in ["running", "failed", "cancelled"] {
        let moved = shift(&engine, &seen, to, "", &who).await;
        assert!(matches!(&moved, Err(Error::Refused(refusal)) if is_late(refusal)), "{to}: {moved:?}");
    }
    assert_eq!(find(&engine, now.key.id).await.unwrap_or_else(|_| panic!()), now);
}

#[test]
fn tasks_move_forward_only() {
    let moves = STATUSES.iter().flat_map(|from| STATUSES.iter().map(move |to| (*from, *to)));
    let allowed: Vec<_> = moves.filter(|(from, to)| allowed(from, to)).collect();
    assert_eq!(allowed.len(), 7);
    assert!(!allowed.contains(&("claimed", "completed")) && !allowed.contains(&("pending", "claimed")));
}
