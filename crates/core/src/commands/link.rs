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
