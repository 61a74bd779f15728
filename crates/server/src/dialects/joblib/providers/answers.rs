//! What providers answered, kept for a while: the bytes as they came, in pieces that fit into records. Every server on the store has it.

use super::super::{
    Joblib,
    error::{HttpError, Result},
    namespace,
};
use crate::records::Records;
use crate::{app::App, auth, problem::Problem};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Arc};
use windlass_api::Uuid;
use windlass_core::{
    Command, Refusal, Timestamp,
    commands::{all::All, records::Expect},
};
use windlass_engine::{
    Error, ids,
    records::{Kept, readable},
    store::RecordQuery,
};

const ANSWER: Records<ProviderResult> = Records::new("joblib_answer", namespace);
const PIECE: Records<String> = Records::new("joblib_answer_piece", namespace);
/// That a question was put to its provider.
const ASKED: Records<()> = Records::new("joblib_asked", namespace);

/// As text four thirds of it, which has to fit into a record.
const PIECE_BYTES: usize = 512 << 10;
/// Pieces outlive their answer by so much, for whoever has begun to read it.
const GRACE_MS: i64 = 60_000;
/// A gigabyte, of all.
const PIECES_MAX: usize = 2_048;
/// Of one user: a quarter of it. An answer has at least one.
const PIECES_PER_USER: usize = 512;
/// While it is read, an answer may be replaced.
const READS: usize = 4;

#[derive(Clone, Serialize, Deserialize)]
struct ProviderResult {
    /// Names its pieces.
    id: Uuid,
    pieces: usize,
    bytes: usize,
    /// Absent for answers of earlier releases, which soon expire.
    #[serde(default)]
    since: Timestamp,
}

/// Under which a question is kept: names and hashes are too long together.
pub fn key(full_name: &str, hash: &str) -> String {
    auth::hash(&format!("{full_name}\n{hash}"))
}

fn piece_key(id: Uuid, at: usize) -> String {
    format!("{id}/{at}")
}

/// What is there for this question.
pub async fn find(joblib: &Joblib, key: &str) -> Result<Option<Bytes>, Problem> {
    for _ in 0..READS {
        let Some(answer) = ANSWER.find(joblib, key).await? else { return Ok(None) };
        if let Some(bytes) = read(joblib, &answer.value).await? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// None: it is gone meanwhile.
async fn read(joblib: &Joblib, answer: &ProviderResult) -> Result<Option<Bytes>, Problem> {
    let mut whole = BytesMut::with_capacity(answer.bytes);
    for at in 0..answer.pieces {
        let Some(piece) = PIECE.find(joblib, &piece_key(answer.id, at)).await? else { return Ok(None) };
        let decode = move || BASE64_STANDARD.decode(piece.value).unwrap_or_default();
        whole.extend_from_slice(&joblib.aside.run(&namespace(), decode).await?);
    }
    Ok(Some(whole.freeze()).filter(|whole| whole.len() == answer.bytes))
}

/// An answer more than its user may have takes the place of the user's oldest. Where all of them together take too much, it takes the
/// place of the oldest of the caller who has most. `replaces` goes in any case.
async fn make_room(app: &App, user: &str, pieces: usize, replaces: &str) -> Result<()> {
    let own = of(app, Some(user), replaces).await?;
    remove(app, beyond(own, PIECES_PER_USER.saturating_sub(pieces))).await?;
    while app.engine.store().count_records(&PIECE.query()).await? + pieces > PIECES_MAX {
        let mut by_user: HashMap<Arc<str>, Vec<KeptAnswer>> = HashMap::new();
        for stored in of(app, None, replaces).await? {
            by_user.entry(stored.user.clone()).or_default().push(stored);
        }
        let most = by_user.into_values().max_by_key(|stored| total(stored)).unwrap_or_default();
        let keep = total(&most).saturating_sub(pieces);
        if remove(app, beyond(most, keep)).await? == 0 {
            let why = "too many answers of providers are kept at present; try again when they have expired";
            return Err(HttpError::plain(StatusCode::SERVICE_UNAVAILABLE, why).retry_after(30));
        }
    }
    Ok(())
}

/// An answer that is kept, and whose it is.
struct KeptAnswer {
    key: Arc<str>,
    user: Arc<str>,
    answer: ProviderResult,
}

fn total(stored: &[KeptAnswer]) -> usize {
    stored.iter().map(|one| one.answer.pieces).sum()
}

/// The oldest, so many that what is left has at most so many pieces.
fn beyond(mut stored: Vec<KeptAnswer>, most: usize) -> Vec<KeptAnswer> {
    stored.sort_by_key(|one| one.answer.since);
    let (mut left, mut gone) = (total(&stored), 0);
    while left > most {
        left -= stored[gone].answer.pieces;
        gone += 1;
    }
    stored.truncate(gone);
    stored
}

/// All of them, or those of one user, but for the one with this key.
async fn of(app: &App, user: Option<&str>, but: &str) -> Result<Vec<KeptAnswer>> {
    let query = RecordQuery { parent: user.map(Into::into), ..ANSWER.query() };
    let mut pages = app.engine.pages(query);
    let mut found = Vec::new();
    while let Some(page) = pages.next().await? {
        let others = page.iter().filter(|record| *record.key.key != *but);
        found.extend(others.filter_map(|record| {
            let (key, user) = (record.key.key.clone(), record.parent.clone().unwrap_or_default());
            Some(KeptAnswer { key, user, answer: readable(record)? })
        }));
    }
    Ok(found)
}

async fn remove(app: &App, gone: Vec<KeptAnswer>) -> Result<usize> {
    let mut commands = Vec::new();
    for KeptAnswer { key, answer, .. } in &gone {
        commands.push(ANSWER.delete(key, Expect::Anything));
        commands.extend(piece_keys(answer).map(|piece| PIECE.delete(&piece, Expect::Anything)));
    }
    // What is not there any more need not go.
    app.engine.run_many(commands).await?;
    Ok(gone.len())
}

fn piece_keys(answer: &ProviderResult) -> impl Iterator<Item = String> {
    let id = answer.id;
    (0..answer.pieces).map(move |at| piece_key(id, at))
}

/// Keeps an answer; `tells` commits with it. Whoever waits may ask again from then on.
pub async fn keep(joblib: &Joblib, user: Uuid, key: &str, bytes: Bytes, tells: Command) -> Result<()> {
    let (pieces, user) = (bytes.len().div_ceil(PIECE_BYTES).max(1), user.to_string());
    make_room(joblib, &user, pieces, key).await?;
    let since = joblib.engine.now().await?;
    let until = Timestamp(since.0.saturating_add(joblib.own.settings.provider_result_kept.0));
    let answer = ProviderResult { id: ids::secret(), pieces, bytes: bytes.len(), since };
    for at in 0..pieces {
        let part = bytes.slice(at * PIECE_BYTES..bytes.len().min((at + 1) * PIECE_BYTES));
        let text = joblib.aside.run(&namespace(), move || BASE64_STANDARD.encode(part)).await?;
        let mut put = PIECE.put(&piece_key(answer.id, at), &text, Expect::Nothing);
        put.expires_at = Some(Timestamp(until.0.saturating_add(GRACE_MS)));
        joblib.engine.run(put).await?;
    }
    let before = ANSWER.find(joblib, key).await?;
    let mut put = ANSWER.put(key, &answer, Expect::Anything);
    (put.expires_at, put.parent) = (Some(until), Some(user.into()));
    joblib.engine.run(All { commands: vec![put.into(), tells] }).await?;
    forget(joblib, key, before).await
}

/// The question may be asked again, and what was there before takes no room.
async fn forget(joblib: &Joblib, key: &str, before: Option<Kept<ProviderResult>>) -> Result<()> {
    let mut gone = vec![ASKED.delete(key, Expect::Anything)];
    if let Some(Kept { value, .. }) = before {
        gone.extend(piece_keys(&value).map(|piece| PIECE.delete(&piece, Expect::Anything)));
    }
    // What is not there any more need not go.
    joblib.engine.run_many(gone).await?;
    Ok(())
}

/// Notes that a question is put to its provider, and puts it. False: somebody did so a moment ago.
pub async fn ask(joblib: &Joblib, key: &str, tells: Command) -> Result<bool> {
    let mut put = ASKED.put(key, &(), Expect::Nothing);
    let now = joblib.engine.now().await?;
    put.expires_at = Some(Timestamp(now.0.saturating_add(joblib.own.settings.provider_asked_for.0)));
    match joblib.engine.run(All { commands: vec![put.into(), tells] }).await {
        Ok(_) => Ok(true),
        Err(Error::Refused(Refusal::Exists { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
