//! `windlass artifact`: files that jobs read or leave.

use super::{Context, Done, all};
use crate::{
    fail::code,
    ids,
    output::{self, Facts, Rows, cell},
    times,
};
use anyhow::{Context as _, bail, ensure};
use clap::{Args, Subcommand};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncWriteExt},
};
use windlass_api::{
    Uuid,
    artifact::{Artifact, ListArtifacts, UploadArtifact},
    page::Paging,
};
use windlass_sdk::Client;

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass artifact put scene.blend --job last
  windlass artifact list --job last
  windlass artifact get 0190c0de-0000-7000-8000-000000000000 --to scene.blend")]
pub enum ArtifactCommand {
    Put(Put),
    Get(Get),
    /// List artifacts.
    List {
        /// Only artifacts of this job.
        #[arg(long, value_name = "ID")]
        job: Option<String>,
    },
    /// Delete artifacts.
    Delete {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<Uuid>,
    },
}

/// Upload a file.
///
/// Inside a job neither a token nor --job is needed: the command passes the file to its worker, which uploads it when the command
/// has ended.
#[derive(Args)]
pub struct Put {
    file: PathBuf,
    /// The job the artifact belongs to [default: inside a job, that job].
    #[arg(long, value_name = "ID")]
    job: Option<String>,
    /// The artifact's name [default: the file name].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The content type, such as image/png.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
}

/// Download an artifact and verify its digest.
#[derive(Args)]
pub struct Get {
    id: Uuid,
    /// The file to write [default: the artifact's name, in the current folder]. An existing file is not overwritten.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl ArtifactCommand {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        match self {
            ArtifactCommand::Put(put) => {
                if let Some(folder) = put.hand_over(context)? {
                    let what = format!("the worker uploads it from {} when the command has ended", folder.display());
                    context.format.done("handed over", || what)?;
                    return Ok(code::OK);
                }
                let artifact = put.run(&client).await?;
                context.format.one(&artifact, || text(&artifact))?;
            }
            ArtifactCommand::Get(get) => {
                let (artifact, file) = get.run(&client).await?;
                context.format.one(&artifact, || format!("{} ({})", file.display(), times::bytes(artifact.size)))?;
            }
            ArtifactCommand::List { job } => {
                let job = match job {
                    Some(text) => Some(ids::job(&client, &text).await?),
                    None => None,
                };
                let page = async |Paging { limit, cursor }| {
                    client.artifacts(&ListArtifacts { job, limit, cursor, ..ListArtifacts::default() }).await
                };
                let found = all(page).await?;
                context.format.many(&found, || table(&found))?;
            }
            ArtifactCommand::Delete { ids } => {
                for id in ids {
                    client.delete_artifact(id).await?;
                    context.format.done("deleted", || format!("{id} deleted"))?;
                }
            }
        }
        Ok(code::OK)
    }
}

/// What a worker tells the commands it runs.
const LEASE: &str = "WINDLASS_LEASE";
const JOB: &str = "WINDLASS_JOB_ID";
const FOLDER: &str = "WINDLASS_ARTIFACTS";

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Put {
    fn name(&self) -> Option<String> {
        self.name.clone().or_else(|| self.file.file_name().map(|name| name.to_string_lossy().into_owned()))
    }

    /// Whether it is for the job this command runs as.
    fn is_for_own_job(&self) -> bool {
        variable(JOB).is_some_and(|own| self.job.as_ref().is_none_or(|job| own.starts_with(&**job)))
    }

    /// Within a job and without a token: the file is left for the worker, which has one. None: it is uploaded from here.
    fn hand_over(&self, context: &Context) -> anyhow::Result<Option<PathBuf>> {
        let Some(folder) = variable(FOLDER).filter(|_| self.is_for_own_job()) else { return Ok(None) };
        if context.remote.find()?.endpoint.token.is_some() {
            return Ok(None);
        }
        ensure!(
            self.content_type.is_none(),
            "--content-type needs a token; a worker started with --pass-token gives one"
        );
        let name = self.name().unwrap_or_default();
        let plain = Path::new(&name).file_name().is_some_and(|plain| plain.to_str() == Some(&name));
        ensure!(plain, "{name:?} cannot be the name of a file; name it with --name");
        let to = Path::new(&folder).join(&name);
        ensure!(!to.exists(), "this job already has an artifact {name:?}; name another with --name");
        std::fs::copy(&self.file, &to).with_context(|| format!("{} cannot be read", self.file.display()))?;
        Ok(Some(folder.into()))
    }

    async fn run(&self, client: &Client) -> anyhow::Result<Artifact> {
        let unreadable = || format!("{} cannot be read", self.file.display());
        let name = self.name();
        let job = match &self.job {
            Some(text) => Some(ids::job(client, text).await?),
            None => variable(JOB).and_then(|own| own.parse().ok()),
        };
        // A worker's token is good for a job it holds, and the lease shows that it does.
        let lease = variable(LEASE).filter(|_| self.is_for_own_job());
        let sha256 = digest(&self.file).await.with_context(unreadable)?;
        let about = UploadArtifact { namespace: None, name: name.unwrap_or_default(), job, sha256: Some(sha256) };
        let file = File::open(&self.file).await.with_context(unreadable)?;
        let size = file.metadata().await.with_context(unreadable)?.len();
        let bar = output::bar(Some(size), "uploading");
        let told = bar.clone();
        let stream = tokio_util::io::ReaderStream::with_capacity(file, 64 << 10);
        let stream = futures_util::StreamExt::inspect(stream, move |piece| {
            told.inc(piece.as_ref().map_or(0, |bytes| bytes.len() as u64));
        });
        let (lease, kind) = (lease.as_deref(), self.content_type.as_deref());
        let artifact = client.upload_under(lease, &about, kind, Some(size), stream).await;
        bar.finish_and_clear();
        Ok(artifact?)
    }
}

impl Get {
    async fn run(&self, client: &Client) -> anyhow::Result<(Artifact, PathBuf)> {
        let artifact = client.artifact(self.id).await?;
        // The name comes from whoever uploaded it: it must not choose a folder.
        let name =
            Path::new(&artifact.name).file_name().map_or_else(|| PathBuf::from(self.id.to_string()), PathBuf::from);
        let file = self.to.clone().unwrap_or(name);
        ensure!(!file.exists(), "{} is there already; name another file with --to", file.display());
        let part = file.with_extension("part");
        let mut written = File::create(&part).await.with_context(|| format!("{} cannot be written", part.display()))?;
        let bar = output::bar(Some(artifact.size), "downloading");
        let (mut download, mut hash) = (client.download(self.id).await?, Sha256::new());
        while let Some(bytes) = download.next().await? {
            hash.update(&bytes);
            bar.inc(bytes.len() as u64);
            written.write_all(&bytes).await?;
        }
        written.sync_all().await?;
        bar.finish_and_clear();
        if windlass_api::hex(&hash.finalize()) != artifact.sha256 {
            let _ = tokio::fs::remove_file(&part).await;
            bail!("what arrived is not what was stored (its digest differs); try again");
        }
        tokio::fs::rename(&part, &file).await?;
        Ok((artifact, file))
    }
}

async fn digest(file: &Path) -> std::io::Result<String> {
    let (mut opened, mut hash, mut buffer) = (File::open(file).await?, Sha256::new(), vec![0; 64 << 10]);
    loop {
        let read = opened.read(&mut buffer).await?;
        if read == 0 {
            return Ok(windlass_api::hex(&hash.finalize()));
        }
        hash.update(&buffer[..read]);
    }
}

fn text(artifact: &Artifact) -> String {
    let mut facts = Facts::default();
    facts.add("Artifact", artifact.id.to_string()).add("Name", &artifact.name);
    facts.add("Size", times::bytes(artifact.size)).add("SHA-256", &artifact.sha256);
    facts.text()
}

fn table(artifacts: &[Artifact]) -> Rows {
    let now = times::now();
    let mut rows =
        Rows::new(&["ID", "NAME…", "SIZE", "CREATED", "JOB"], "No artifacts. Upload one: windlass artifact put FILE");
    for artifact in artifacts {
        rows.add(vec![
            cell(artifact.id.to_string()),
            cell(&artifact.name),
            cell(times::bytes(artifact.size)),
            cell(times::relative(&artifact.created_at, now)),
            cell(artifact.job.map(|job| job.to_string()).unwrap_or_default()),
        ]);
    }
    rows
}
