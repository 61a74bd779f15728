//! Files that jobs read or leave, streamed both ways: never a whole file in memory.

use crate::{Client, Error};
use bytes::Bytes;
use futures_util::Stream;
use reqwest::{Body, Method, Response, header};
use uuid::Uuid;
use windlass_api::artifact::{Artifact, ListArtifacts, UploadArtifact};
use windlass_api::page::Page;

impl Client {
    pub async fn artifacts(&self, query: &ListArtifacts) -> Result<Page<Artifact>, Error> {
        self.get("/api/v1/artifacts", query).await
    }

    /// Uploads what `body` yields. `size` lets the server refuse before anything was sent.
    pub async fn upload<S, E>(
        &self,
        about: &UploadArtifact,
        content_type: Option<&str>,
        size: Option<u64>,
        body: S,
    ) -> Result<Artifact, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        self.upload_under(None, about, content_type, size, body).await
    }

    /// The same under the lease of the job it is for, which a worker has to name.
    pub async fn upload_under<S, E>(
        &self,
        lease: Option<&str>,
        about: &UploadArtifact,
        content_type: Option<&str>,
        size: Option<u64>,
        body: S,
    ) -> Result<Artifact, Error>
    where
        S: Stream<Item = Result<Bytes, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
    {
        let content_type = content_type.unwrap_or("application/octet-stream");
        let mut request = self.request(Method::POST, "/api/v1/artifacts").query(about);
        request = request.header(header::CONTENT_TYPE, content_type).body(Body::wrap_stream(body));
        if let Some(size) = size {
            request = request.header(header::CONTENT_LENGTH, size);
        }
        if let Some(lease) = lease {
            request = request.header("Windlass-Lease", lease);
        }
        self.read_json(request).await
    }

    pub async fn artifact(&self, id: Uuid) -> Result<Artifact, Error> {
        self.get(&format!("/api/v1/artifacts/{id}"), &()).await
    }

    /// The file itself.
    pub async fn download(&self, id: Uuid) -> Result<Download, Error> {
        let response = self.send(self.request(Method::GET, &format!("/api/v1/artifacts/{id}/content"))).await?;
        Ok(Download { response, url: self.base().to_owned() })
    }

    pub async fn delete_artifact(&self, id: Uuid) -> Result<(), Error> {
        self.done(self.request(Method::DELETE, &format!("/api/v1/artifacts/{id}"))).await
    }
}

/// A file on its way here.
pub struct Download {
    response: Response,
    url: String,
}

impl Download {
    pub fn size(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece; none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let failed = |error: reqwest::Error| Error::Unreachable { url: self.url.clone(), why: error.to_string() };
        self.response.chunk().await.map_err(failed)
    }
}
