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
use windlass_api::Uuid;
use windlass_core::{
    Command, Refusal, Timestamp,
    commands::{all::All, records::Expect},
};
use windlass_engine::records::Kept;
use windlass_engine::{Error, ids};

const ANSWER: Records<ProviderResult> = Records::new("joblib_answer", namespace);
const PIECE: Records<String> = Records::new("joblib_answer_piece", namespace);
/// That a question was put to its provider.
const ASKED: Records<()> = Records::new("joblib_asked", namespace);

/// As text four thirds of it, which has to fit into a record.
const PIECE_BYTES: usize = 512 << 10;
/// Pieces outlive their answer by so much, for whoever has begun to read it.
const GRACE_MS: i64 = 60_000;
const ANSWERS_MAX: usize = 10_000;
/// A gigabyte.
const PIECES_MAX: usize = 2_048;
/// While it is read, an answer may be replaced.
const READS: usize = 4;

#[derive(Clone, Serialize, Deserialize)]
struct ProviderResult {
    /// Names its pieces.
    id: Uuid,
    pieces: usize,
    bytes: usize,
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

async fn check_room(app: &App, pieces: usize) -> Result<()> {
    let store = app.engine.store();
    let full = store.count_records(&ANSWER.query()).await? >= ANSWERS_MAX
        || store.count_records(&PIECE.query()).await? + pieces > PIECES_MAX;
    match full {
        true => {
            let why = "too many answers of providers are kept at present";
            Err(HttpError::plain(StatusCode::SERVICE_UNAVAILABLE, why).retry_after(30))
        }
        false => Ok(()),
    }
}

/// Keeps an answer; `tells` commits with it. Whoever waits may ask again from then on.
pub async fn keep(joblib: &Joblib, key: &str, bytes: Bytes, tells: Command) -> Result<()> {
    let pieces = bytes.len().div_ceil(PIECE_BYTES);
    check_room(joblib, pieces).await?;
    let until = Timestamp(joblib.engine.now().await?.0.saturating_add(joblib.own.settings.provider_result_kept.0));
    let answer = ProviderResult { id: ids::secret(), pieces, bytes: bytes.len() };
    for at in 0..pieces {
        let part = bytes.slice(at * PIECE_BYTES..bytes.len().min((at + 1) * PIECE_BYTES));
        let text = joblib.aside.run(&namespace(), move || BASE64_STANDARD.encode(part)).await?;
        let mut put = PIECE.put(&piece_key(answer.id, at), &text, Expect::Nothing);
        put.expires_at = Some(Timestamp(until.0.saturating_add(GRACE_MS)));
        joblib.engine.run(put).await?;
    }
    let before = ANSWER.find(joblib, key).await?;
    let mut put = ANSWER.put(key, &answer, Expect::Anything);
    put.expires_at = Some(until);
    joblib.engine.run(All { commands: vec![put.into(), tells] }).await?;
    forget(joblib, key, before).await
}

/// The question may be asked again, and what was there before takes no room.
async fn forget(joblib: &Joblib, key: &str, before: Option<Kept<ProviderResult>>) -> Result<()> {
    let mut gone = vec![ASKED.delete(key, Expect::Anything)];
    if let Some(Kept { value, .. }) = before {
        gone.extend((0..value.pieces).map(|at| PIECE.delete(&piece_key(value.id, at), Expect::Anything)));
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
