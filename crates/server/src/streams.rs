//! Who has how many streams open, and that none of them, and no wait and no socket, outlives the rights it was opened with.
//!
//! All of these are open for minutes, so what its token stood for is looked at again: at once when rights were changed on this server, and
//! every few seconds for what another server changed and for tokens that run out. Streams of other tokens go on.

use crate::{
    admins::Lookup,
    app::App,
    auth::Caller,
    problem::{Code, Problem, Result},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use windlass_core::RecordKey;
use windlass_engine::Error;

/// Open at a time for one principal and those it made tokens for.
pub const STREAMS_MAX: usize = 64;
/// So long a stream goes on at most after its token was ended by another server or ran out.
const LOOK_EVERY: Duration = Duration::from_secs(3);

#[derive(Default)]
pub struct Streams {
    open: Mutex<Open>,
    /// One look at a time, however many tokens end at once. Counts those that have begun.
    looking: tokio::sync::Mutex<()>,
    looks: AtomicU64,
}

#[derive(Default)]
struct Open {
    by_name: HashMap<Arc<str>, usize>,
    by_credential: HashMap<RecordKey, Listening>,
    is_watched: bool,
    last: u64,
}

/// The open streams of one token, or of one user of a dialect.
struct Listening {
    /// Streams that were opened with other rights belong to an earlier one.
    number: u64,
    count: usize,
    caller: Caller,
    ended: CancellationToken,
}

/// A place among a principal's streams.
pub struct StreamPermit {
    app: App,
    /// Whose share it counts to.
    name: Option<Arc<str>>,
    /// What the caller was admitted with, and the number of its [`Listening`].
    listening: Option<(RecordKey, u64)>,
    /// The rights it was opened with are gone.
    pub ended: CancellationToken,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.app.streams.leave(self);
    }
}

impl Streams {
    pub fn enter(&self, app: &App, caller: &Caller) -> Result<StreamPermit> {
        let mut open = self.open.lock();
        let count = open.by_name.entry(caller.root.clone()).or_default();
        if *count >= STREAMS_MAX {
            let why = format!("{} has {count} streams open, and may have no more", caller.root);
            return Err(Problem::new(Code::TooMany, why).retry_after(1_000));
        }
        *count += 1;
        Ok(open.permit(app, caller, Some(caller.root.clone())))
    }

    /// For a wait or a socket, which have limits of their own.
    pub fn watch(&self, app: &App, caller: &Caller) -> StreamPermit {
        self.open.lock().permit(app, caller, None)
    }

    fn leave(&self, permit: &StreamPermit) {
        let mut open = self.open.lock();
        if let Some(name) = &permit.name
            && let Some(count) = open.by_name.get_mut(name)
        {
            *count -= 1;
            if *count == 0 {
                open.by_name.remove(name);
            }
        }
        let Some((key, number)) = &permit.listening else { return };
        if let Some(listening) = open.by_credential.get_mut(key).filter(|listening| listening.number == *number) {
            listening.count -= 1;
            if listening.count == 0 {
                open.by_credential.remove(key);
            }
        }
    }

    /// Ends the streams of tokens that no longer stand for what they were opened with.
    pub async fn look(&self, app: &App) -> Result<(), Error> {
        let before = self.looks.load(Relaxed);
        let _turn = self.looking.lock().await;
        if self.looks.load(Relaxed) > before {
            // One that began after this call has seen all that this one would.
            return Ok(());
        }
        self.looks.store(before + 1, Relaxed);
        let listening: Vec<_> = self
            .open
            .lock()
            .by_credential
            .iter()
            .map(|(key, one)| (key.clone(), one.number, one.caller.clone()))
            .collect();
        if listening.is_empty() {
            return Ok(());
        }
        let mut lookup = Lookup::new(&app.engine).await?;
        for (key, number, caller) in listening {
            if !lookup.still_holds(&caller).await? {
                self.end(&key, number);
            }
        }
        Ok(())
    }

    fn end(&self, key: &RecordKey, number: u64) {
        let mut open = self.open.lock();
        if open.by_credential.get(key).is_some_and(|listening| listening.number == number)
            && let Some(listening) = open.by_credential.remove(key)
        {
            listening.ended.cancel();
        }
    }

    /// Whether there is anybody left to look after; if not, whoever opens the next stream sees to it.
    fn is_quiet(&self) -> bool {
        let mut open = self.open.lock();
        open.is_watched = !open.by_credential.is_empty();
        !open.is_watched
    }
}

impl Open {
    fn permit(&mut self, app: &App, caller: &Caller, name: Option<Arc<str>>) -> StreamPermit {
        let app = app.itself();
        let Some(key) = caller.credential.as_ref().map(|credential| credential.key()) else {
            return StreamPermit { app, name, listening: None, ended: CancellationToken::new() };
        };
        let (number, ended) = self.listen(key, caller);
        if !std::mem::replace(&mut self.is_watched, true) {
            tokio::spawn(watch(app.clone()));
        }
        StreamPermit { app, name, listening: Some((key.clone(), number)), ended }
    }

    fn listen(&mut self, key: &RecordKey, caller: &Caller) -> (u64, CancellationToken) {
        if let Some(known) = self.by_credential.get_mut(key) {
            if known.caller.credential == caller.credential {
                known.count += 1;
                return (known.number, known.ended.clone());
            }
            known.ended.cancel();
        }
        self.last += 1;
        let (number, ended) = (self.last, CancellationToken::new());
        let listening = Listening { number, count: 1, caller: caller.clone(), ended: ended.clone() };
        self.by_credential.insert(key.clone(), listening);
        (number, ended)
    }
}

async fn watch(app: App) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = app.drain.cancelled() => return,
        }
        if let Err(error) = app.streams.look(&app).await {
            tracing::warn!(%error, "whether the tokens of open streams still hold cannot be told now");
        }
        if app.streams.is_quiet() {
            return;
        }
    }
}

/// After a token was ended or a principal changed: nothing that was let in before is taken for granted, and nothing that was decided
/// before is written after this.
pub async fn rights_changed(app: &App) {
    app.auth.forget();
    if let Err(error) = app.engine.store().outlast_batches().await {
        tracing::warn!(%error, "batches that were under way when rights were changed may be written a moment later");
    }
    if let Err(error) = app.streams.look(app).await {
        tracing::warn!(%error, "streams of ended tokens end a little later");
    }
}
