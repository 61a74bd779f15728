//! How an engine starts: the threads and tasks that do what it does by itself.

use crate::{
    after::After,
    batcher::Batcher,
    engine::{Engine, Inner},
    error::Error,
    grace,
    heavy::Heavy,
    intake::Intake,
    quota::Usage,
    settings::Settings,
    stalls,
    store::{Bell, Store, StoreError},
    sweeper,
};
use parking_lot::Mutex;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};
use tokio::sync::{mpsc, watch};

impl Engine {
    /// Starts the batcher and, unless the settings say otherwise, the sweeper.
    pub async fn start(store: Arc<dyn Store>, settings: Settings) -> Result<Self, Error> {
        let inner = Arc::new(Inner {
            intake: Arc::new(Intake::new(&settings)),
            heavy: Heavy::default(),
            crowd: Arc::default(),
            usage: Usage::default(),
            after: Arc::new(After::new(settings.poll_every)),
            stalls: Arc::default(),
            deaf: AtomicBool::new(settings.poll_every.is_some()),
            stopping: watch::Sender::new(false),
            store,
            settings,
        });
        let batcher = inner
            .batcher()
            .spawn()
            .map_err(|error| StoreError::Unavailable(format!("no thread for the batcher: {error}")))?;
        let engine = Self { inner, batcher: Arc::new(Mutex::new(Some(batcher))), by: None };
        if engine.inner.settings.grace {
            engine.grant_grace().await?;
            if !engine.inner.store.others() {
                grace::excuse_workers(&engine, None).await?;
            }
        }
        if engine.inner.settings.sweep_every.is_some() {
            sweeper::spawn(&engine);
            if engine.inner.settings.grace {
                let inner = &engine.inner;
                stalls::spawn(&inner.stalls, inner.intake.queue.clone(), inner.after.clone());
            }
        }
        if let Some(bells) = engine.inner.store.bells() {
            engine.inner.deaf.store(false, Ordering::Relaxed);
            tokio::spawn(hear(Arc::downgrade(&engine.inner.after), bells));
        }
        Ok(engine)
    }
}

impl Inner {
    fn batcher(&self) -> Batcher {
        Batcher {
            store: self.store.clone(),
            settings: self.settings.clone(),
            intake: self.intake.clone(),
            crowd: self.crowd.clone(),
            after: self.after.clone(),
            stalls: self.stalls.clone(),
        }
    }
}

/// Passes on what other servers on the same store did.
async fn hear(after: Weak<After>, mut bells: mpsc::Receiver<Bell>) {
    while let Some(bell) = bells.recv().await {
        let Some(after) = after.upgrade() else { return };
        match bell {
            Bell::Wakes(wakes) => after.waiters.wake(&wakes),
            Bell::Notices(workers) => after.notices.post(workers),
            Bell::Ended(subjects) => after.bulletin.post_hints(&subjects),
            Bell::Something => {
                after.waiters.wake_all();
                after.notices.post_all();
            }
        }
        after.feed.ring_bell();
    }
}
