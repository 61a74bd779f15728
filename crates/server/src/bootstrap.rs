//! The first token: somebody has to be able to make all the others.
//!
//! `WINDLASS_ADMIN_TOKEN`, where it is set, is valid and replaces the one that was set before. Where it is not, a start on a
//! data folder without `admin.token` draws one and writes it there, readable by its owner only; as long as the file is
//! there, its token is valid. Deleting the file and starting again replaces it.

use crate::{
    auth::{hash, home},
    secret::{Secret, draw_token},
};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use thiserror::Error;
use windlass_core::{
    Refusal,
    commands::principals::{CreatePrincipal, IssueToken, RevokeToken},
    principal::{Principal, Role, Token},
    record::Kind,
};
use windlass_engine::{Engine, Error as EngineError, store::RecordQuery};

/// Shorter ones can be guessed.
pub const TOKEN_CHARS_MIN: usize = 16;
const ADMIN: &str = "admin";
const FILE: &str = "admin.token";
const VARIABLE: &str = "WINDLASS_ADMIN_TOKEN";
const TOKENS_MAX: usize = 1_000;

#[derive(Debug, Error)]
pub enum BootstrapError {
    #[error(
        "the admin token is shorter than {TOKEN_CHARS_MIN} characters; take a longer one, for example `openssl rand -hex 32`"
    )]
    TooShort,
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} holds no token; delete it, and the next start writes a new one", path.display())]
    NoToken { path: PathBuf },
    #[error("the principal {ADMIN:?} is disabled or no admin; set {VARIABLE} on another database, or restore a backup")]
    NotAdmin,
    #[error("the admin token could not be stored: {0}")]
    Engine(#[from] EngineError),
}

/// Where the admin token is to be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admin {
    Variable,
    File { path: PathBuf, new: bool },
}

/// Makes sure that there is an admin token. `alone`: no other server uses this store, so older tokens of the file are void.
pub async fn admin(
    engine: &Engine,
    configured: Option<&Secret>,
    folder: &Path,
    alone: bool,
) -> Result<Admin, BootstrapError> {
    ensure_principal(engine).await?;
    if let Some(token) = configured {
        if token.reveal().chars().count() < TOKEN_CHARS_MIN {
            return Err(BootstrapError::TooShort);
        }
        ensure_token(engine, token, VARIABLE, true).await?;
        return Ok(Admin::Variable);
    }
    revoke_others(engine, VARIABLE, "").await?;
    let path = folder.join(FILE);
    let (token, new) = match read(&path)? {
        Some(token) => (token, false),
        None => (write_new(folder, &path)?, true),
    };
    ensure_token(engine, &token, FILE, alone).await?;
    Ok(Admin::File { path, new })
}

async fn ensure_principal(engine: &Engine) -> Result<(), BootstrapError> {
    let create = CreatePrincipal { namespace: home(), name: ADMIN.into(), role: Role::Admin, namespaces: vec![] };
    match engine.run(create).await {
        Ok(_) => Ok(()),
        Err(EngineError::Refused(Refusal::Exists { .. })) => {
            let found = engine.read_record::<Principal>(&home(), ADMIN).await?;
            let usable = found.is_some_and(|found| found.role == Role::Admin && !found.disabled);
            if usable { Ok(()) } else { Err(BootstrapError::NotAdmin) }
        }
        Err(error) => Err(error.into()),
    }
}

async fn ensure_token(engine: &Engine, token: &Secret, label: &str, alone: bool) -> Result<(), BootstrapError> {
    let hash: Arc<str> = hash(token.reveal()).into();
    if alone {
        revoke_others(engine, label, &hash).await?;
    }
    let issue = IssueToken { namespace: home(), principal: ADMIN.into(), hash, shown: label.into(), expires_at: None };
    match engine.run(issue).await {
        Ok(_) | Err(EngineError::Refused(Refusal::Exists { .. })) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn revoke_others(engine: &Engine, label: &str, keep: &str) -> Result<(), BootstrapError> {
    let query = RecordQuery {
        namespace: home(),
        kind: Token::KIND.into(),
        parent: Some(ADMIN.into()),
        facet: None,
        after: None,
        limit: TOKENS_MAX,
    };
    let found = engine.store().records(&query).await.map_err(EngineError::from)?;
    for record in found.iter().filter(|record| &*record.key.key != keep) {
        let token = serde_json::from_str::<Token>(&record.value);
        if token.is_ok_and(|token| &*token.shown == label) {
            let revoke = RevokeToken { namespace: home(), hash: record.key.key.clone() };
            match engine.run(revoke).await {
                Ok(_) | Err(EngineError::Refused(Refusal::NotFound { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
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
