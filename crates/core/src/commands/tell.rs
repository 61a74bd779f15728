//! Tell something in a dialect's own words, beside the change it is about: both commit together, or neither does.

use super::{Decided, submit::check_size};
use crate::{
    desk::Desk,
    model::{
        event::What,
        keys::Keys,
        name::{Namespace, check_name},
    },
};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Tell {
    pub namespace: Namespace,
    pub topic: Arc<str>,
    /// JSON text.
    pub data: Arc<str>,
}

impl Tell {
    pub(crate) fn keys(&self, _: &mut Keys) {}

    pub(crate) fn decide(&self, desk: &mut Desk) -> Decided<()> {
        let limits = desk.limits();
        check_name("topic", &self.topic, &limits)?;
        check_size("data", self.data.len(), limits.extra_bytes_max)?;
        desk.tell(&self.namespace, What::Told { topic: self.topic.clone(), data: self.data.clone() });
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{
        all::All,
        records::{DeleteRecord, Expect},
        testing::{Story, code, ns},
    };

    #[test]
    fn it_is_told_only_if_what_it_is_about_was_done() {
        let mut story = Story::new();
        let tell = |topic: &str, size| Tell { namespace: ns(), topic: topic.into(), data: "x".repeat(size).into() };
        assert_eq!(code(&story.run(tell("item.created", 2))), "ok");
        let key = crate::model::keys::RecordKey { namespace: ns(), kind: "item".into(), key: "ghost".into() };
        let delete = DeleteRecord { key, expect: Expect::Anything };
        let both = All { commands: vec![tell("item.deleted", 2).into(), delete.into()] };
        assert_eq!(code(&story.run(both)), "not-found");
        assert_eq!(story.events(None), ["told"]);
        assert_eq!(code(&story.run(tell("", 2))), "invalid");
        assert_eq!(code(&story.run(tell("item.created", 70_000))), "too-large");
    }
}
