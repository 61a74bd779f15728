//! Link a worker to a definition, which is made or brought back with it.

use super::{Decided, definitions::next_version, submit::check_size, workers};
use crate::{
    desk::{Desk, Stop},
    model::{
        definition::{Definition, DefinitionHead, version_key},
        event::What,
        keys::Keys,
        link::{self, link_key},
        name::{Namespace, Tags, WorkerId, check_name},
        record::key_of,
        refusal::Refusal,
        reply::Linked,
        worker::Worker,
    },
    moves::liveness,
};
use std::sync::Arc;

/// Puts the definition, refuses another body while it is in force, and adds its name to what the worker offers. The worker is
/// not taken as seen or registered again.
#[derive(Clone, Debug)]
pub struct Link {
    pub namespace: Namespace,
    pub definition: Arc<str>,
    /// JSON text; the rules never look into it.
    pub body: Arc<str>,
    /// Bodies with the same print are the same, however they are written.
    pub print: Arc<str>,
    /// The definition is deleted when its last link is gone and none of its jobs is pending.
    pub retires: bool,
    pub worker: WorkerId,
    /// Who says so, where tokens are in force.
    pub principal: Option<Arc<str>>,
}

impl Link {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        workers::want(&self.namespace, &self.worker, keys);
        keys.want_record(key_of::<DefinitionHead>(&self.namespace, &self.definition), true);
        // Most links are the first of their definition and write this, or find it there.
        keys.want_record(key_of::<Definition>(&self.namespace, &version_key(&self.definition, 1)), true);
        keys.want_record(key_of::<link::Link>(&self.namespace, &link_key(&self.worker, &self.definition)), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Linked> {
        let limits = desk.limits();
        check_name("definition", &self.definition, &limits)?;
        check_name("print", &self.print, &limits)?;
        check_size("body", self.body.len(), limits.record_bytes_max)?;
        let (definition, created) = self.put_definition(desk)?;
        let mut worker = workers::known(desk, &self.namespace, &self.worker, self.principal.as_ref())?;
        self.put_link(desk)?;
        self.offer(desk, &mut worker)?;
        let (definition_name, worker_id) = (self.definition.clone(), self.worker.clone());
        desk.tell(&self.namespace, What::Linked { definition: definition_name, worker: worker_id });
        Ok(Ok(Linked { definition: Box::new(definition), created, worker: Box::new(worker) }))
    }

    /// The definition in force, and whether it was not before.
    fn put_definition(&self, desk: &mut Desk) -> Result<(Definition, bool), Stop> {
        let head = desk.get::<DefinitionHead>(&self.namespace, &self.definition)?.unwrap_or_default();
        let in_force = head.latest > 0 && head.deleted_at.is_none();
        let current = match head.latest {
            0 => None,
            latest => desk.peek::<Definition>(&self.namespace, &version_key(&self.definition, latest))?,
        };
        let same = |current: &Definition| head.print.as_ref() == Some(&self.print) || current.body == self.body;
        let current = current.filter(same);
        let (retired, last) = (head.retires, head.latest);
        let wanted = DefinitionHead { retires: self.retires, print: Some(self.print.clone()), ..head };
        match current {
            Some(current) if in_force => Ok((current, false)),
            None if in_force => Err(Refusal::Exists { what: "definition", name: self.definition.to_string() }.into()),
            Some(current) => {
                desk.put(&self.namespace, &self.definition, &wanted.revived())?;
                let version = current.version;
                desk.tell(&self.namespace, What::DefinitionPut { name: self.definition.clone(), version });
                Ok((current, true))
            }
            None => {
                if retired {
                    self.drop_version(desk, last)?;
                }
                Ok((next_version(desk, &self.namespace, &self.definition, &self.body, wanted)?, true))
            }
        }
    }

    /// Whoever retires and comes back with other bodies, again and again, leaves one version behind, not all of them. What was
    /// put by hand stays for the jobs that name it.
    fn drop_version(&self, desk: &mut Desk, version: u32) -> Result<(), Stop> {
        desk.delete_record(&key_of::<Definition>(&self.namespace, &version_key(&self.definition, version)))
    }

    fn put_link(&self, desk: &mut Desk) -> Result<(), Stop> {
        let key = link_key(&self.worker, &self.definition);
        if desk.get::<link::Link>(&self.namespace, &key)?.is_some() {
            return Ok(());
        }
        let link = link::Link { worker: self.worker.clone(), definition: self.definition.clone() };
        desk.put(&self.namespace, &key, &link)?;
        if let Some(mut head) = desk.get::<DefinitionHead>(&self.namespace, &self.definition)? {
            head.links += 1;
            desk.put(&self.namespace, &self.definition, &head)?;
        }
        Ok(())
    }

    fn offer(&self, desk: &mut Desk, worker: &mut Worker) -> Result<(), Stop> {
        let doubted = liveness::trust(worker);
        if !worker.tags.contains(&self.definition) {
            let limits = desk.limits();
            worker.tags = worker.tags.iter().chain([&*self.definition]).collect::<Tags>();
            worker.tags.check("tags", limits.worker_tags_max, &limits)?;
        } else if !doubted {
            return Ok(());
        }
        desk.put(&self.namespace, self.worker.as_str(), worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commands::{
            definitions::{DeleteDefinition, PutDefinition},
            records::{Expect, PutRecord},
            testing::{Story, bound, code, leases, ns, registration, worker},
        },
        model::{
            job::{DefinitionRef, Reason},
            keys::RecordKey,
            link::{TIED, tags_of},
            policy::{AliveBy, Unregister, WorkerPolicy},
            record::Kind,
            reply::Reply,
            time::Millis,
        },
    };

    const MINUTE: Millis = Millis::from_secs(60);

    fn policy() -> WorkerPolicy {
        WorkerPolicy {
            alive_by: AliveBy::Heartbeat,
            unregister: Unregister::Fail,
            offline_after: MINUTE,
            delete_after: Some(MINUTE),
            ..WorkerPolicy::default()
        }
    }

    fn link(name: &str, definition: &str, body: &str) -> Link {
        Link {
            namespace: ns(),
            definition: definition.into(),
            body: body.into(),
            print: body.to_uppercase().as_str().into(),
            retires: true,
            worker: worker(name),
            principal: None,
        }
    }

    fn served(number: u128, definition: &str) -> crate::commands::submit::NewJob {
        let mut job = bound(number);
        job.tags = tags_of(definition);
        job.definition = Some(DefinitionRef { name: definition.into(), version: 1 });
        job
    }

    fn head(story: &Story, name: &str) -> DefinitionHead {
        story.typed(name).unwrap()
    }

    #[test]
    fn a_refused_link_leaves_nothing_behind() {
        let mut story = Story::new();
        story.run(RegisterWorker { owner: Some("ann".into()), ..registration("w", policy()) }).unwrap();
        let table = [
            (link("ghost", "d", "a"), "not-found"),
            (Link { principal: Some("bob".into()), ..link("w", "d", "a") }, "forbidden"),
            (link("w", "", "a"), "invalid"),
            (link("w", "d", &"x".repeat((1 << 20) + 1)), "too-large"),
        ];
        for (command, expected) in table {
            assert_eq!(code(&story.run(command)), expected);
        }
        assert!(story.typed::<DefinitionHead>("d").is_none());
        assert_eq!(story.events(None), ["worker_registered"]);
    }

    #[test]
    fn bodies_with_the_same_print_are_the_same() {
        let mut story = Story::new();
        story.register("w", policy()).unwrap();
        for (body, expected) in [("a", "ok"), ("A", "ok"), ("b", "exists"), ("a", "ok")] {
            assert_eq!(code(&story.run(link("w", "d", body))), expected, "{body}");
        }
        assert_eq!((head(&story, "d").links, head(&story, "d").latest), (1, 1));
    }

    #[test]
    fn a_worker_with_many_links_and_jobs_goes_in_few_loads_and_takes_its_definitions_along() {
        let mut story = Story::new();
        story.register("w", policy()).unwrap();
        for number in 0..300 {
            story.run(link("w", &format!("d{number}"), "{}")).unwrap();
        }
        for number in 0..100 {
            story.submit(served(number + 1, &format!("d{number}")));
        }
        let mut claim = story.claim_command("w", 60);
        claim.offer = crate::commands::claim::Offer::Registered;
        assert_eq!(leases(&story.run(claim)).len(), 60);
        let key = RecordKey { namespace: ns(), kind: TIED.into(), key: "files".into() };
        let parent = Some("w".into());
        let tie =
            PutRecord { key, expect: Expect::Anything, parent, value: "1".into(), facets: vec![], expires_at: None };
        story.run(tie).unwrap();
        let before = story.tables.loads;
        story.unregister("w", Unregister::Fail).unwrap();
        assert!(story.tables.loads - before <= 5, "{} loads", story.tables.loads - before);
        assert_eq!(story.reason(1), Some(Reason::WorkerRemoved));
        let kept = (0..300).filter(|number| head(&story, &format!("d{number}")).deleted_at.is_none()).count();
        assert_eq!(kept, 40, "those whose jobs still wait");
        assert!(story.tables.record(&ns(), TIED, "files").is_none());
        let told = story.events(None);
        let count = |name: &str| told.iter().filter(|told| **told == name).count();
        assert_eq!((count("unlinked"), count("definition_deleted"), count("record_deleted")), (300, 260, 1));
    }

    #[test]
    fn many_links_at_once_are_decided_in_few_loads() {
        let mut story = Story::new();
        story.register("w", policy()).unwrap();
        let before = story.tables.loads;
        let commands = (0..300).map(|number| link("w", &format!("d{number}"), "{}").into()).collect();
        story.run(crate::commands::all::All { commands }).unwrap();
        assert!(story.tables.loads - before <= 3, "{} loads", story.tables.loads - before);
    }

    #[test]
    fn what_retired_is_forgotten_after_its_time_unless_it_came_back() {
        let mut story = Story::new();
        let retention = story.tables.limits.retention.0;
        for name in ["gone", "back"] {
            story.register("w", policy()).unwrap();
            story.run(link("w", name, "{}")).unwrap();
            story.unregister("w", Unregister::Fail).unwrap();
        }
        story.register("w", policy()).unwrap();
        story.run(link("w", "back", "other")).unwrap();
        story.wait(retention);
        story
            .run(crate::commands::workers::Heartbeat { namespace: ns(), worker: worker("w"), principal: None })
            .unwrap();
        story.sweep();
        assert!(story.typed::<DefinitionHead>("gone").is_none());
        assert_eq!(head(&story, "back").latest, 2);
        let versions = story.tables.records.keys().filter(|key| &*key.kind == Definition::KIND);
        let versions: Vec<_> = versions.map(|key| key.key.to_string()).collect();
        assert_eq!(versions, [version_key("back", 2)], "an older version goes with the body that replaced it");
    }

    #[test]
    fn a_version_that_was_put_by_hand_outlives_the_link_that_replaces_it() {
        let mut story = Story::new();
        let (namespace, name) = (ns(), Arc::<str>::from("d"));
        story.run(PutDefinition { namespace: namespace.clone(), name: name.clone(), body: "a".into() }).unwrap();
        story.run(DeleteDefinition { namespace, name }).unwrap();
        story.register("w", policy()).unwrap();
        story.run(link("w", "d", "b")).unwrap();
        assert_eq!(head(&story, "d").latest, 2);
        assert!(story.typed::<Definition>(&version_key("d", 1)).is_some());
    }

    #[test]
    fn the_last_two_jobs_end_in_one_batch_and_so_does_the_definition() {
        let mut story = Story::new();
        story.register("w", policy()).unwrap();
        story.run(link("w", "d", "{}")).unwrap();
        for number in 1..=3 {
            story.submit(served(number, "d"));
        }
        story.unregister("w", Unregister::Fail).unwrap();
        let cancel = |number| {
            let (namespace, job) = (ns(), crate::commands::testing::id(number));
            crate::commands::cancel::Cancel { namespace, job, by: "ann".into(), mode: None, message: "".into() }.into()
        };
        story.batch(vec![cancel(1), cancel(2)]);
        assert_eq!(head(&story, "d").deleted_at, None);
        let submit = crate::commands::submit::Submit { namespace: ns(), job: served(4, "d") };
        let answers = story.batch(vec![cancel(3), submit.into()]);
        assert_eq!(code(&answers[1]), "not-found", "it came after the end");
        assert!(head(&story, "d").deleted_at.is_some());
        story.register("w", policy()).unwrap();
        match story.run(link("w", "d", "{}")) {
            Ok(Reply::Linked(linked)) => assert!(linked.created),
            other => panic!("{other:?}"),
        }
    }

    use crate::commands::workers::RegisterWorker;
}
