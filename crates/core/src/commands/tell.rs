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
