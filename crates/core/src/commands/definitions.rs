//! Put and delete definitions.

use super::{Decided, submit::check_size};
use crate::{
    desk::{Desk, Stop},
    model::{
        definition::{Definition, DefinitionHead, version_key},
        event::What,
        keys::Keys,
        name::{Namespace, check_name},
        record,
        refusal::Refusal,
    },
};
use std::sync::Arc;

/// The same body again changes nothing; another body becomes the next version. A deleted name comes back with it. What is put
/// so stays until it is deleted, whether or not workers are linked to it.
#[derive(Clone, Debug)]
pub struct PutDefinition {
    pub namespace: Namespace,
    pub name: Arc<str>,
    pub body: Arc<str>,
}

#[derive(Clone, Debug)]
pub struct DeleteDefinition {
    pub namespace: Namespace,
    pub name: Arc<str>,
}

impl PutDefinition {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<DefinitionHead>(&self.namespace, &self.name), true);
    }

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<Box<Definition>> {
        check_name("name", &self.name, &desk.limits())?;
        check_size("body", self.body.len(), desk.limits().record_bytes_max)?;
        let head = desk.get::<DefinitionHead>(&self.namespace, &self.name)?.unwrap_or_default();
        let (deleted, latest) = (head.deleted_at.is_some(), head.latest);
        if latest > 0 {
            let current = desk.peek::<Definition>(&self.namespace, &version_key(&self.name, latest))?;
            if let Some(current) = current.filter(|current| current.body == self.body) {
                if deleted {
                    let kept = DefinitionHead { retires: false, ..head.revived() };
                    desk.put(&self.namespace, &self.name, &kept)?;
                    desk.tell(&self.namespace, What::DefinitionPut { name: self.name.clone(), version: latest });
                }
                return Ok(Ok(Box::new(current)));
            }
        }
        let head = DefinitionHead { print: None, retires: false, ..head };
        let definition = next_version(desk, &self.namespace, &self.name, &self.body, head)?;
        Ok(Ok(Box::new(definition)))
    }
}

/// Writes the next version, which is in force from now on.
pub(crate) fn next_version(
    desk: &mut Desk,
    namespace: &Namespace,
    name: &Arc<str>,
    body: &Arc<str>,
    head: DefinitionHead,
) -> Result<Definition, Stop> {
    let version = head.latest + 1;
    let created_at = head.created_at.or((version == 1).then(|| desk.now()));
    let definition = Definition { name: name.clone(), version, body: body.clone(), created_at: desk.now() };
    desk.put(namespace, &version_key(name, version), &definition)?;
    desk.put(namespace, name, &DefinitionHead { latest: version, created_at, ..head.revived() })?;
    desk.tell(namespace, What::DefinitionPut { name: name.clone(), version });
    Ok(definition)
}

impl DeleteDefinition {
    pub(crate) fn keys(&self, keys: &mut Keys) {
        keys.want_record(record::key_of::<DefinitionHead>(&self.namespace, &self.name), true);
    }

    /// Soft: versions stay readable for the jobs that point at them.
    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let head = desk.get::<DefinitionHead>(&self.namespace, &self.name)?.filter(|head| head.deleted_at.is_none());
        let head = head.ok_or_else(|| Refusal::not_found("definition", &self.name))?;
        let gone = DefinitionHead { deleted_at: Some(desk.now()), ..head };
        desk.put(&self.namespace, &self.name, &gone)?;
        desk.tell(&self.namespace, What::DefinitionDeleted { name: self.name.clone() });
        Ok(Ok(()))
    }
}
