//! The first token: somebody has to be able to make all the others.
//!
//! `WINDLASS_ADMIN_TOKEN`, where it is set, is the admin token, and nothing else that was one before is. Where it is not, it is
//! what `admin.token` in the data folder holds; without the file one is drawn and written there, readable by its owner only. A
//! running server looks at the file every few seconds: a replaced one counts from then on, a deleted one is drawn anew, and the
//! token it held before is void. Servers that share a store each keep a file of their own; what no server found in its file for
//! an hour is void.
//!
//! Tokens that were made with a replaced one stay valid; those made with a revoked one do not, and a file cannot bring it back.

use crate::{
    admins,
    app::App,
    auth::{hash, system_namespace},
    secret::{Secret, draw_token},
    streams::rights_changed,
};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use thiserror::Error;
use tokio::time::sleep;
use windlass_core::{
    Millis, Refusal, Timestamp,
    commands::{
        principals::{ChangePrincipal, CreatePrincipal, EnablePrincipal},
        tokens::{KeepToken, ReplaceToken},
    },
    principal::{Principal, Role, Token},
};
use windlass_engine::{Engine, Error as EngineError, records::readable, store::RecordQuery};

/// Shorter ones can be guessed.
pub const TOKEN_CHARS_MIN: usize = 16;
const ADMIN: &str = "admin";
const FILE: &str = "admin.token";
const VARIABLE: &str = "WINDLASS_ADMIN_TOKEN";
/// On a store that others use too, how long a token is valid after a server last saw it in its file, and how often it says so.
const SEEN_FOR: Millis = Millis::from_secs(3_600);
const SAY_SEEN_EVERY: Millis = Millis::from_secs(900);
const LOOK_EVERY: Duration = Duration::from_secs(3);

#[derive(Debug, Error)]
pub enum BootstrapError {
    #[error(
        "the admin token is shorter than {TOKEN_CHARS_MIN} characters; take a longer one, for example `openssl rand -hex 32`"
    )]
    TooShort,
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} holds no token; delete it, and a new one is written", path.display())]
    NoToken { path: PathBuf },
    #[error("the admin token could not be stored: {0}")]
    Engine(#[from] EngineError),
}

/// Where the admin token is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    Variable,
    File {
        path: PathBuf,
        new: bool,
    },
    /// Somebody disabled the principal or revoked the token that is set, and other admins are there.
    Nowhere,
}

/// Makes sure that there is an admin token. `alone`: no other server uses this store.
pub async fn admin(
    engine: &Engine,
    configured: Option<&Secret>,
    folder: &Path,
    alone: bool,
) -> Result<Admin, BootstrapError> {
    if configured.is_some_and(|token| token.reveal().chars().count() < TOKEN_CHARS_MIN) {
        return Err(BootstrapError::TooShort);
    }
    if !ensure_principal(engine).await? {
        tracing::warn!(
            "the principal {ADMIN} is disabled or not an admin of all namespaces; ask another admin to change that"
        );
        return Ok(Admin::Nowhere);
    }
    let Some(token) = configured else { return TokenFile { folder, alone }.look(engine).await };
    let known: Arc<str> = hash(token.reveal()).into();
    let own_file = read(&folder.join(FILE)).ok().flatten().map(|token| hash(token.reveal()));
    replace(engine, |key, token| match &*token.shown {
        VARIABLE => *key != *known,
        FILE => alone || token.kept.is_none_or(|kept| kept.until.is_none()) || own_file.as_deref() == Some(key),
        _ => false,
    })
    .await?;
    match keep(engine, &known, VARIABLE, None).await? {
        true => Ok(Admin::Variable),
        false => {
            tracing::warn!("the token in {VARIABLE} was revoked and stays invalid; set another one");
            Ok(Admin::Nowhere)
        }
    }
}

/// Whether there is a principal for the admin token. One that was taken away is brought back only if there is no other admin.
async fn ensure_principal(engine: &Engine) -> Result<bool, BootstrapError> {
    let create =
        CreatePrincipal { namespace: system_namespace(), name: ADMIN.into(), role: Role::Admin, namespaces: vec![] };
    match engine.run(create).await {
        Ok(_) => return Ok(true),
        Err(EngineError::Refused(Refusal::Exists { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    if engine.read_record::<Principal>(&system_namespace(), ADMIN).await?.is_some_and(|found| found.rules_all()) {
        return Ok(true);
    }
    if admins::find(engine, None, None, |_, _| true).await?.is_some() {
        return Ok(false);
    }
    tracing::warn!("no admin was left: the principal {ADMIN} is an admin again");
    let (role, namespaces) = (Some(Role::Admin), Some(vec![]));
    engine.run(EnablePrincipal { namespace: system_namespace(), name: ADMIN.into() }).await?;
    engine.run(ChangePrincipal { namespace: system_namespace(), name: ADMIN.into(), role, namespaces }).await?;
    Ok(true)
}

/// Makes a token valid; false if it was revoked.
async fn keep(engine: &Engine, hash: &Arc<str>, label: &str, until: Option<Timestamp>) -> Result<bool, BootstrapError> {
    let (principal, shown) = (ADMIN.into(), label.into());
    match engine.run(KeepToken { namespace: system_namespace(), principal, hash: hash.clone(), shown, until }).await {
        Ok(_) => Ok(true),
        Err(EngineError::Refused(Refusal::Forbidden { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Ends those of the admin's tokens that `goes` picks.
async fn replace(engine: &Engine, goes: impl Fn(&str, &Token) -> bool) -> Result<(), BootstrapError> {
    let mut pages = engine.pages(RecordQuery { parent: Some(ADMIN.into()), ..admins::tokens() });
    while let Some(page) = pages.next().await? {
        for record in &page {
            let Some(token) = readable::<Token>(record) else { continue };
            if !goes(&record.key.key, &token) {
                continue;
            }
            match engine.run(ReplaceToken { namespace: system_namespace(), hash: record.key.key.clone() }).await {
                Ok(_) | Err(EngineError::Refused(Refusal::NotFound { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// The file's folder, and whether what it holds is all there is.
#[derive(Clone, Copy)]
struct TokenFile<'a> {
    folder: &'a Path,
    alone: bool,
}

impl TokenFile<'_> {
    /// Makes the file's token valid, and others void that were in it.
    async fn look(self, engine: &Engine) -> Result<Admin, BootstrapError> {
        let path = self.folder.join(FILE);
        let (mut known, mut new) = self.held_or_new(false).await?;
        let now = engine.now().await?;
        let until = (!self.alone).then_some(now + SEEN_FOR);
        if !keep(engine, &known, FILE, until).await? {
            tracing::warn!(file = %path.display(), "the token in the file was revoked; a new one is written");
            (known, new) = self.held_or_new(true).await?;
            keep(engine, &known, FILE, until).await?;
        }
        replace(engine, |key, token| match &*token.shown {
            VARIABLE => true,
            FILE => *key != *known && (self.alone || !is_others(token, now)),
            _ => false,
        })
        .await?;
        Ok(Admin::File { path, new })
    }

    /// The hash of the file's token, and whether it was drawn just now.
    async fn held_or_new(self, new: bool) -> Result<(Arc<str>, bool), BootstrapError> {
        let folder = self.folder.to_owned();
        aside(move || {
            let path = folder.join(FILE);
            let held = if new { None } else { read(&path)? };
            let is_new = held.is_none();
            let token = held.map_or_else(|| write_new(&folder, &path), Ok)?;
            Ok((hash(token.reveal()).into(), is_new))
        })
        .await
    }
}

/// Another server may still have it in its file. What came with an import says nothing of when it was seen.
fn is_others(token: &Token, now: Timestamp) -> bool {
    token.kept.and_then(|kept| kept.until).is_some_and(|until| until > now)
}

/// Looks after the file while the server runs.
pub struct Watch {
    folder: PathBuf,
    alone: bool,
    /// The hash of the token it held, and when that was last said.
    seen: Option<(String, Timestamp)>,
    warned: bool,
}

impl Watch {
    /// None where the token is not in a file.
    pub fn new(admin: &Admin, alone: bool) -> Option<Self> {
        let Admin::File { path, .. } = admin else { return None };
        Some(Self { folder: path.parent()?.to_owned(), alone, seen: None, warned: false })
    }

    pub async fn run(mut self, app: App) {
        loop {
            match self.look(&app).await {
                Ok(()) => self.warned = false,
                Err(error) if !self.warned => {
                    self.warned = true;
                    tracing::warn!(%error, "the admin token could not be replaced; the previous one stays valid");
                }
                Err(_) => {}
            }
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                () = app.drain.cancelled() => return,
            }
        }
    }

    /// One look: a changed file counts from now on.
    pub async fn look(&mut self, app: &App) -> Result<(), BootstrapError> {
        // A folder that is away for a while is no wish for another token.
        if !self.folder.is_dir() {
            return Ok(());
        }
        let held = self.held().await?;
        let now = app.engine.now().await?;
        let before = self.seen.as_ref().map(|(before, _)| before.clone());
        let is_same = before.is_some() && held == before;
        if is_same && (self.alone || self.seen.as_ref().is_some_and(|(_, at)| now - *at < SAY_SEEN_EVERY)) {
            return Ok(());
        }
        TokenFile { folder: &self.folder, alone: self.alone }.look(&app.engine).await?;
        let held = self.held().await?;
        self.seen = held.clone().map(|held| (held, now));
        if before.is_none() || held == before {
            return Ok(());
        }
        // The one that was in this file, also where others have files of their own.
        replace(&app.engine, |key, _| before.as_deref() == Some(key)).await?;
        rights_changed(app).await;
        tracing::info!("the admin token file changed: its new content is the admin token");
        Ok(())
    }
}

impl Watch {
    async fn held(&self) -> Result<Option<String>, BootstrapError> {
        let path = self.folder.join(FILE);
        Ok(aside(move || read(&path)).await?.map(|token| hash(token.reveal())))
    }
}

/// A disk may take its time.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BootstrapError> + Send + 'static,
) -> Result<T, BootstrapError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(BootstrapError::File { path: FILE.into(), source: io::Error::other(error) }),
    }
}

fn read(path: &Path) -> Result<Option<Secret>, BootstrapError> {
    match fs::read_to_string(path) {
        Ok(text) if text.trim().chars().count() >= TOKEN_CHARS_MIN => Ok(Some(Secret::new(text.trim()))),
        Ok(_) => Err(BootstrapError::NoToken { path: path.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BootstrapError::File { path: path.into(), source }),
    }
}

/// Under another name first, so that a file of this name is always whole.
fn write_new(folder: &Path, path: &Path) -> Result<Secret, BootstrapError> {
    let token = draw_token(Role::Admin);
    let half = folder.join("admin.token.new");
    let written = (|| {
        fs::create_dir_all(folder)?;
        let _ = fs::remove_file(&half);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&half)?;
        writeln!(file, "{}", token.reveal())?;
        file.sync_all()?;
        fs::rename(&half, path)
    })();
    written.map_err(|source| BootstrapError::File { path: path.into(), source })?;
    Ok(token)
}
