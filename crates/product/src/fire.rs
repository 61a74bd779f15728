//! Jobs that a change sets off.

use crate::{
    Error, Products,
    rules::{item::Item, trigger::Trigger},
};
use async_trait::async_trait;
use std::sync::Arc;
use windlass_core::{
    Command, JobId,
    commands::submit::{NewJob, Submit},
};

/// Knows which jobs a change of an item sets off. It only makes them: they are submitted in the transaction that writes the
/// change, or not at all. A change that is worked out again asks again.
#[async_trait]
pub trait Fires: Send + Sync {
    async fn fire(
        &self,
        products: &Products,
        trigger: Trigger,
        item: &Item,
        by: &Arc<str>,
    ) -> Result<Vec<NewJob>, Error>;
}

/// Sets off nothing.
pub struct Nothing;

#[async_trait]
impl Fires for Nothing {
    async fn fire(&self, _: &Products, _: Trigger, _: &Item, _: &Arc<str>) -> Result<Vec<NewJob>, Error> {
        Ok(Vec::new())
    }
}

/// A job that was set off.
#[derive(Clone, Debug)]
pub struct Fired {
    pub job: JobId,
    /// The name of the definition that it was made from.
    pub definition: Option<Arc<str>>,
}

impl Products {
    /// The commands that submit what a change sets off, and what to tell about them.
    pub(crate) async fn fire(
        &self,
        trigger: Trigger,
        item: &Item,
        by: &Arc<str>,
    ) -> Result<(Vec<Command>, Vec<Fired>), Error> {
        let made = self.fires.fire(self, trigger, item, by).await?;
        let told =
            |job: &NewJob| Fired { job: job.id, definition: job.definition.as_ref().map(|one| one.name.clone()) };
        let fired = made.iter().map(told).collect();
        let submit = |job| Submit { namespace: self.namespace.clone(), job }.into();
        Ok((made.into_iter().map(submit).collect(), fired))
    }
}
