//! An engine in memory, and items on it.

use async_trait::async_trait;
use std::sync::Arc;
use windlass_core::{JobId, Namespace, commands::submit::NewJob};
use windlass_engine::{Engine, Settings, clock, ids, memory::Memory};
use windlass_product::{
    Error, Fires, Products,
    items::{self, NewItem},
    rules::{item::Item, trigger::Trigger},
};

pub const ANN: &str = "ann";

pub async fn engine() -> Engine {
    let memory = Arc::new(Memory::new(Arc::new(clock::System::default())));
    Engine::start(memory, Settings::default()).await.unwrap()
}

pub fn products(engine: &Engine, namespace: &str, fires: Arc<dyn Fires>) -> Products {
    Products::new(engine.clone(), Namespace::new(namespace).unwrap(), Arc::default(), fires)
}

pub async fn part(products: &Products, name: &str) -> Item {
    let new = NewItem { part_number: Some(name.into()), ..NewItem::default() };
    items::create(products, &ANN.into(), &new).await.unwrap()
}

/// Jobs with these ids, or fresh ones, whatever happens.
pub struct Makes(Vec<Option<JobId>>);

impl Makes {
    pub fn fresh(count: usize) -> Arc<Self> {
        Arc::new(Self(vec![None; count]))
    }
    pub fn again(job: JobId) -> Arc<Self> {
        Arc::new(Self(vec![None, Some(job)]))
    }
}

#[async_trait]
impl Fires for Makes {
    async fn fire(&self, _: &Products, _: Trigger, _: &Item, _: &Arc<str>) -> Result<Vec<NewJob>, Error> {
        Ok(self.0.iter().map(|id| NewJob::new(id.unwrap_or_else(ids::job_id))).collect())
    }
}
