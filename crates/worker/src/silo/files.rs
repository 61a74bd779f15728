//! Files that a job reads, and the one it leaves.
//!
//! Both are streamed, and checked by their digests. Names come from the server and from definitions: none of them leads out of
//! the job's own folders.

use super::{
    calls::{Backoff, Job, Server, Trouble, escape},
    config::Fetch,
    stop::Stop,
};
use crate::{digest::digest, folder::Folder};
use futures_util::TryStreamExt;
use reqwest::{Body, Method, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    io,
    path::{Component, Path, PathBuf},
};
use tokio::{fs::File, io::AsyncWriteExt, time::sleep};
use tokio_util::io::ReaderStream;

const TEMPLATE: &str = "output_key_template";
const PATH_BYTES_MAX: usize = 1_000;

/// A file of a revision the job is about.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Input {
    /// Of the item it belongs to, where that is not the job's own.
    pub part_number: Option<String>,
    pub name: String,
    pub size: u64,
    pub sha256: String,
    /// Below the folder the command starts in.
    #[serde(skip_deserializing)]
    pub path: String,
}

impl Input {
    fn path(&self) -> String {
        match &self.part_number {
            Some(part) => format!("parts/{part}/{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Where the command may leave a file, and what the server will know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub key: String,
    pub file: PathBuf,
}

fn is_below(name: &str) -> bool {
    let path = Path::new(name);
    !name.is_empty()
        && name.len() <= PATH_BYTES_MAX
        && !name.contains('\0')
        && path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// What the definition's template says for this job; none where there is none.
pub fn output(job: &Job, folder: &Path) -> Result<Option<Output>, String> {
    let template = match job.args.get(TEMPLATE) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(template)) => template,
        Some(other) => return Err(format!("args.{TEMPLATE}: must be text, not {other}")),
    };
    let revision = job.revision_number.map(|number| number.to_string());
    let mut key = template.clone();
    for (name, value) in [("{part_number}", job.part_number.as_ref()), ("{revision}", revision.as_ref())] {
        match value {
            Some(value) => key = key.replace(name, value),
            None if key.contains(name) => return Err(format!("args.{TEMPLATE}: the job has no {name}")),
            None => {}
        }
    }
    if !is_below(&key) {
        return Err(format!("args.{TEMPLATE}: {key:?} is not a relative path"));
    }
    Ok(Some(Output { file: folder.join(&key), key }))
}

fn unwritten(path: &Path) -> impl Fn(io::Error) -> String + '_ {
    move |error| format!("{} cannot be written: {error}", path.display())
}

/// Repeats what may succeed later, until the job has to end.
macro_rules! insist {
    ($stop:expr, $call:expr) => {{
        let mut backoff = Backoff::default();
        loop {
            match $call.await {
                Err(Trouble::Later(why)) => {
                    tokio::select! {
                        () = sleep(backoff.wait()) => {}
                        () = $stop.over() => break Err(Trouble::Later(why)),
                    }
                }
                answer => break answer,
            }
        }
    }};
}

/// Files of the job's item and revision into the folder the command starts in, those of other items of its scope into
/// `parts/PART_NUMBER` there.
pub async fn fetch(
    server: &Server,
    job: &Job,
    which: Fetch,
    folder: &Folder,
    stop: &Stop,
) -> Result<Vec<Input>, Trouble> {
    let query: &[(&str, &str)] = match which {
        Fetch::None => return Ok(Vec::new()),
        Fetch::Item if job.part_number.is_none() => return Ok(Vec::new()),
        Fetch::Item => &[],
        Fetch::Scope => &[("scope", "all")],
    };
    let mut inputs = match insist!(stop, list(server, job, query)) {
        // A server without files.
        Err(Trouble::Refused(404, _)) => return Ok(Vec::new()),
        inputs => inputs?,
    };
    for input in &mut inputs {
        input.part_number.take_if(|part| job.part_number.as_ref() == Some(part));
        input.path = input.path();
        if !is_below(&input.path) {
            return Err(Trouble::Refused(0, format!("a file of the revision is called {:?}", input.path)));
        }
        insist!(stop, download(server, job, input, &folder.files().join(&input.path)))?;
    }
    Ok(inputs)
}

async fn list(server: &Server, job: &Job, query: &[(&str, &str)]) -> Result<Vec<Input>, Trouble> {
    let response = server.send(server.client.plain_request(Method::GET, &job.path("files")).query(query)).await?;
    let body = response.bytes().await.map_err(|error| server.unheard(&error))?;
    serde_json::from_slice(&body).map_err(|error| Trouble::Refused(0, format!("the list of files: {error}")))
}

async fn download(server: &Server, job: &Job, input: &Input, to: &Path) -> Result<(), Trouble> {
    let path = job.path(&format!("files/{}", escape(&input.name)));
    let of_scope: Vec<_> = input.part_number.iter().map(|part| ("part_number", part)).collect();
    let mut response = server.send(server.client.plain_request(Method::GET, &path).query(&of_scope)).await?;
    let broken = |error: io::Error| Trouble::Refused(0, unwritten(to)(error));
    if let Some(parent) = to.parent() {
        tokio::fs::create_dir_all(parent).await.map_err(broken)?;
    }
    let mut file = File::create(to).await.map_err(broken)?;
    let mut hash = Sha256::new();
    while let Some(piece) = response.chunk().await.map_err(|error| server.unheard(&error))? {
        hash.update(&piece);
        file.write_all(&piece).await.map_err(broken)?;
    }
    file.flush().await.map_err(broken)?;
    match windlass_sdk::api::hex(&hash.finalize()) == input.sha256 {
        true => Ok(()),
        false => Err(Trouble::Later(format!("{} came with another digest", input.name))),
    }
}

/// What the command left there, told to the server: key, size and digest. None: it left nothing.
pub async fn leave(server: &Server, job: &Job, output: &Output, stop: &Stop) -> Result<Option<Value>, Trouble> {
    let unread = |why: &dyn std::fmt::Display| Trouble::Refused(0, format!("the output {} {why}", output.key));
    match tokio::fs::symlink_metadata(&output.file).await {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => return Err(unread(&"is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unread(&error)),
    }
    let (size, sha256) = digest(&output.file).await.map_err(|error| unread(&error))?;
    insist!(stop, upload(server, job, output, size, &sha256))?;
    Ok(Some(json!({"key": output.key, "size": size, "sha256": sha256})))
}

async fn upload(server: &Server, job: &Job, output: &Output, size: u64, sha256: &str) -> Result<(), Trouble> {
    let path = job.path(&format!("artifacts/{}", escape(&output.key)));
    let file = File::open(&output.file).await;
    let file = file.map_err(|error| Trouble::Refused(0, format!("the output {}: {error}", output.key)))?;
    let pieces = ReaderStream::with_capacity(file, 256 << 10).map_err(|error| error.to_string());
    let request = server.client.plain_request(Method::PUT, &path).query(&[("sha256", sha256)]);
    let request = request
        .header(header::CONTENT_LENGTH, size)
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .body(Body::wrap_stream(pieces));
    server.send(request).await.map(drop)
}
