//! One method per call of the native API.

use crate::{Error, address::Address, certificate};
use reqwest::{Method, RequestBuilder, Response, header};
use serde::{Serialize, de::DeserializeOwned};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;
use windlass_api::{
    Problem,
    definition::{Definition, DefinitionBody},
    event::Event,
    job::{CancelJob, CancelMode, Job, ListJobs, RetryJob, SubmitJob, SubmitMany, Submitted, SubmittedMany},
    lease::{
        AppendLog, Batch, BatchDone, Claim, Claimed, Complete, Ended, Fail, LeaseOnly, Logged, Release, Renewed,
        ReportProgress, Sync, Synced,
    },
    log::{LogMatches, LogPage, SearchLog},
    overview::{DefinitionFigures, Dialects, History, Namespaces, Overview, ReadHistory, Settings, WorkerFigures},
    page::{Page, Paging},
    schedule::{PutSchedule, Schedule},
    session::SignInCode,
    stats::{CountJobs, JobCounts, Stats},
    token::{ChangePrincipal, CreateToken, CreatedToken, EndPrincipal, Force, Me, Principal, Token},
    why::Why,
    worker::{DrainWorker, RegisterWorker, WatchWorker, Worker, WorkerName, WorkerNews},
};

/// Waits are added to this.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    /// Name and password out of the address, for servers behind something that asks for them.
    basic: Option<(String, String)>,
    namespace: String,
}

/// How to reach a server.
#[derive(Clone, Default)]
pub struct ClientBuilder {
    base: String,
    token: Option<String>,
    namespace: Option<String>,
    root_pem: Option<Vec<u8>>,
}

impl ClientBuilder {
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
    /// Trust this certificate authority as well (PEM).
    pub fn root_certificate(mut self, pem: Vec<u8>) -> Self {
        self.root_pem = Some(pem);
        self
    }

    pub fn build(self) -> Result<Client, Error> {
        // Fails only where a provider is set already, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let setup = |error: reqwest::Error| Error::Setup(format!("the HTTP client cannot start: {error}"));
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")));
        if let Some(pem) = &self.root_pem {
            http = http.add_root_certificate(reqwest::Certificate::from_pem(pem).map_err(setup)?);
        }
        let Address { base, basic, token } = Address::parse(&self.base)?;
        if base.starts_with("http://") {
            // Reading what the system trusts is most of what a short command would do, and redirects are not followed.
            http = http.tls_certs_only([]);
        }
        let namespace = self.namespace.unwrap_or_else(|| "default".into());
        let inner = Inner { http: http.build().map_err(setup)?, base, token: self.token.or(token), basic, namespace };
        Ok(Client { inner: Arc::new(inner) })
    }
}

impl Client {
    /// `base`: the server's address, such as `http://127.0.0.1:3000`.
    pub fn builder(base: impl Into<String>) -> ClientBuilder {
        ClientBuilder { base: base.into(), ..ClientBuilder::default() }
    }

    pub fn base(&self) -> &str {
        &self.inner.base
    }

    pub fn namespace(&self) -> &str {
        &self.inner.namespace
    }

    /// A request to one of the API's paths, with token and namespace. For calls this client has no method for.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.plain_request(method, path).query(&[("namespace", &self.inner.namespace)])
    }

    /// For protocols without namespaces: with the token, and with nothing else of the native API.
    pub fn plain_request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.inner.http.request(method, format!("{}{path}", self.inner.base));
        match (&self.inner.token, &self.inner.basic) {
            (Some(token), _) => request.bearer_auth(token),
            (None, Some((name, password))) => request.basic_auth(name, Some(password)),
            (None, None) => request,
        }
    }

    /// Sends, and turns a problem document into an error.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let is_problem = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/problem+json"));
        let retry_after = retry_after(response.headers());
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) if is_problem => Err(Error::Problem(Box::new(problem))),
            _ => Err(Error::Confused { url: self.inner.base.clone(), why: format!("status {status}"), retry_after }),
        }
    }

    pub(crate) fn unreachable(&self, error: &reqwest::Error) -> Error {
        if let Some(why) = certificate::complaint(error) {
            return Error::Certificate { url: self.inner.base.clone(), why };
        }
        // The innermost cause says what happened; the outer layers repeat the address.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Error::Unreachable { url: self.inner.base.clone(), why: cause.to_string() }
    }

    pub(crate) async fn json<T: DeserializeOwned>(&self, request: RequestBuilder, wait: Duration) -> Result<T, Error> {
        self.read_json(request.timeout(TIMEOUT + wait)).await
    }

    /// For calls whose length depends on what is sent: only the connection has a time limit.
    pub(crate) async fn read_json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let response = self.send(request).await?;
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body).map_err(|error| Error::Confused {
            url: self.inner.base.clone(),
            why: error.to_string(),
            retry_after: None,
        })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, query: &impl Serialize) -> Result<T, Error> {
        self.json(self.request(Method::GET, path).query(query), Duration::ZERO).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> Result<T, Error> {
        self.json(self.request(Method::POST, path).json(body), Duration::ZERO).await
    }

    async fn post_and_wait<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        wait_ms: Option<u64>,
    ) -> Result<T, Error> {
        let wait = Duration::from_millis(wait_ms.unwrap_or_default());
        self.json(self.request(Method::POST, path).json(body), wait).await
    }

    pub(crate) async fn done(&self, request: RequestBuilder) -> Result<(), Error> {
        self.send(request.timeout(TIMEOUT)).await.map(drop)
    }

    pub async fn submit(&self, job: &SubmitJob) -> Result<Submitted, Error> {
        self.post("/api/v1/jobs", job).await
    }
    pub async fn submit_many(&self, jobs: &SubmitMany) -> Result<SubmittedMany, Error> {
        self.post("/api/v1/jobs/batch", jobs).await
    }
    pub async fn job(&self, id: Uuid) -> Result<Job, Error> {
        self.get(&format!("/api/v1/jobs/{id}"), &()).await
    }
    pub async fn jobs(&self, query: &ListJobs) -> Result<Page<Job>, Error> {
        self.get("/api/v1/jobs", query).await
    }
    /// Waits for the job's end, at most a minute, and gives it as it is then.
    pub async fn wait(&self, id: Uuid, wait: Duration) -> Result<Job, Error> {
        let path = format!("/api/v1/jobs/{id}/wait");
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(60_000);
        self.json(self.request(Method::GET, &path).query(&[("wait_ms", wait_ms)]), wait).await
    }
    pub async fn cancel(&self, id: Uuid) -> Result<Job, Error> {
        self.cancel_as(id, None).await
    }
    /// Cancels a job that runs in this way, whatever the job itself says.
    pub async fn cancel_as(&self, id: Uuid, mode: Option<CancelMode>) -> Result<Job, Error> {
        let query = CancelJob { mode, namespace: None };
        let request = self.request(Method::POST, &format!("/api/v1/jobs/{id}/cancel")).query(&query);
        self.json(request, Duration::ZERO).await
    }
    /// Runs a finished job again, as a new job. Refused if it was retried before.
    pub async fn retry(&self, id: Uuid) -> Result<Submitted, Error> {
        self.retry_as(id, false).await
    }
    /// The same; with `again` also if it was retried before.
    pub async fn retry_as(&self, id: Uuid, again: bool) -> Result<Submitted, Error> {
        let query = RetryJob { again, namespace: None };
        let request = self.request(Method::POST, &format!("/api/v1/jobs/{id}/retry")).query(&query);
        self.json(request, Duration::ZERO).await
    }
    pub async fn why(&self, id: Uuid) -> Result<Why, Error> {
        self.get(&format!("/api/v1/jobs/{id}/why"), &()).await
    }
    /// Log pieces after `after`; waits for some if there are none.
    pub async fn log(&self, id: Uuid, after: u64, wait: Duration) -> Result<LogPage, Error> {
        let path = format!("/api/v1/jobs/{id}/logs");
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(60_000);
        self.json(self.request(Method::GET, &path).query(&[("after", after), ("wait_ms", wait_ms)]), wait).await
    }

    /// Lines of a log that contain a text, from a part of the log: go on with `next`.
    pub async fn search_log(&self, id: Uuid, search: &SearchLog) -> Result<LogMatches, Error> {
        self.get(&format!("/api/v1/jobs/{id}/logs/search"), search).await
    }

    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        self.post_and_wait("/api/v1/leases/claim", claim, claim.wait_ms).await
    }
    pub async fn renew(&self, lease: &LeaseOnly) -> Result<Renewed, Error> {
        self.post("/api/v1/leases/renew", lease).await
    }
    pub async fn progress(&self, progress: &ReportProgress) -> Result<Renewed, Error> {
        self.post("/api/v1/leases/progress", progress).await
    }
    pub async fn append_log(&self, log: &AppendLog) -> Result<Logged, Error> {
        self.post("/api/v1/leases/logs", log).await
    }
    pub async fn complete(&self, report: &Complete) -> Result<Ended, Error> {
        let wait = report.next.as_ref().and_then(|next| next.wait_ms);
        self.post_and_wait("/api/v1/leases/complete", report, wait).await
    }
    pub async fn fail(&self, report: &Fail) -> Result<Ended, Error> {
        let wait = report.next.as_ref().and_then(|next| next.wait_ms);
        self.post_and_wait("/api/v1/leases/fail", report, wait).await
    }
    pub async fn release(&self, release: &Release) -> Result<Ended, Error> {
        self.post("/api/v1/leases/release", release).await
    }
    pub async fn sync(&self, sync: &Sync) -> Result<Synced, Error> {
        self.post("/api/v1/leases/sync", sync).await
    }
    pub async fn batch(&self, batch: &Batch) -> Result<BatchDone, Error> {
        let wait = batch.claim.as_ref().and_then(|claim| claim.wait_ms);
        self.post_and_wait("/api/v1/leases/batch", batch, wait).await
    }

    pub async fn register(&self, worker: &RegisterWorker) -> Result<Worker, Error> {
        self.post("/api/v1/workers/register", worker).await
    }
    pub async fn heartbeat(&self, worker: &WorkerName) -> Result<Worker, Error> {
        self.post("/api/v1/workers/heartbeat", worker).await
    }
    pub async fn unregister(&self, worker: &WorkerName) -> Result<(), Error> {
        self.done(self.request(Method::POST, "/api/v1/workers/unregister").json(worker)).await
    }
    /// Waits until there may be news for a worker.
    pub async fn watch_worker(&self, watch: &WatchWorker) -> Result<WorkerNews, Error> {
        self.post_and_wait("/api/v1/workers/watch", watch, watch.wait_ms).await
    }
    pub async fn workers(&self, paging: &Paging) -> Result<Page<Worker>, Error> {
        self.get("/api/v1/workers", paging).await
    }
    pub async fn worker(&self, name: &str) -> Result<Worker, Error> {
        self.get(&format!("/api/v1/workers/{}", escape(name)), &()).await
    }
    pub async fn drain(&self, name: &str, draining: bool) -> Result<Worker, Error> {
        let body = DrainWorker { draining: Some(draining) };
        self.post(&format!("/api/v1/workers/{}/drain", escape(name)), &body).await
    }
    pub async fn delete_worker(&self, name: &str) -> Result<(), Error> {
        self.done(self.request(Method::DELETE, &format!("/api/v1/workers/{}", escape(name)))).await
    }

    pub async fn definitions(&self, paging: &Paging) -> Result<Page<Definition>, Error> {
        self.get("/api/v1/definitions", paging).await
    }
    pub async fn definition(&self, name: &str) -> Result<Definition, Error> {
        self.get(&format!("/api/v1/definitions/{}", escape(name)), &()).await
    }
    /// All versions, the first one first.
    pub async fn definition_versions(&self, name: &str, paging: &Paging) -> Result<Page<Definition>, Error> {
        self.get(&format!("/api/v1/definitions/{}/versions", escape(name)), paging).await
    }
    pub async fn put_definition(&self, name: &str, body: &DefinitionBody) -> Result<Definition, Error> {
        let path = format!("/api/v1/definitions/{}", escape(name));
        self.json(self.request(Method::PUT, &path).json(body), Duration::ZERO).await
    }
    pub async fn delete_definition(&self, name: &str) -> Result<(), Error> {
        self.done(self.request(Method::DELETE, &format!("/api/v1/definitions/{}", escape(name)))).await
    }

    pub async fn schedules(&self, paging: &Paging) -> Result<Page<Schedule>, Error> {
        self.get("/api/v1/schedules", paging).await
    }
    pub async fn schedule(&self, name: &str) -> Result<Schedule, Error> {
        self.get(&format!("/api/v1/schedules/{}", escape(name)), &()).await
    }
    pub async fn put_schedule(&self, name: &str, body: &PutSchedule) -> Result<Schedule, Error> {
        let path = format!("/api/v1/schedules/{}", escape(name));
        self.json(self.request(Method::PUT, &path).json(body), Duration::ZERO).await
    }
    /// Creates the schedule's job now.
    pub async fn run_schedule(&self, name: &str) -> Result<Submitted, Error> {
        self.post(&format!("/api/v1/schedules/{}/run", escape(name)), &()).await
    }
    pub async fn delete_schedule(&self, name: &str) -> Result<(), Error> {
        self.done(self.request(Method::DELETE, &format!("/api/v1/schedules/{}", escape(name)))).await
    }

    pub async fn me(&self) -> Result<Me, Error> {
        self.get("/api/v1/me", &()).await
    }
    /// What operators did, newest first. For admins.
    pub async fn audit(&self, paging: &Paging) -> Result<Page<Event>, Error> {
        self.get("/api/v1/audit", paging).await
    }
    pub async fn tokens(&self, paging: &Paging) -> Result<Page<Token>, Error> {
        self.get("/api/v1/tokens", paging).await
    }
    pub async fn create_token(&self, token: &CreateToken) -> Result<CreatedToken, Error> {
        self.post("/api/v1/tokens", token).await
    }
    /// `force`: also if no admin of all namespaces is left with a valid token.
    pub async fn revoke_token(&self, id: &str, force: bool) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &format!("/api/v1/tokens/{}", escape(id)));
        self.done(request.query(&Force { force })).await
    }
    pub async fn principals(&self, paging: &Paging) -> Result<Page<Principal>, Error> {
        self.get("/api/v1/principals", paging).await
    }
    pub async fn change_principal(
        &self,
        name: &str,
        change: &ChangePrincipal,
        force: bool,
    ) -> Result<Principal, Error> {
        let request = self.request(Method::PUT, &format!("/api/v1/principals/{}", escape(name)));
        self.json(request.query(&Force { force }).json(change), Duration::ZERO).await
    }
    /// Disables it, or removes it.
    pub async fn end_principal(&self, name: &str, how: &EndPrincipal) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &format!("/api/v1/principals/{}", escape(name)));
        self.done(request.query(how)).await
    }
    pub async fn enable_principal(&self, name: &str) -> Result<Principal, Error> {
        self.post(&format!("/api/v1/principals/{}/enable", escape(name)), &()).await
    }
    /// A code that signs in to the dashboard once, as the caller.
    pub async fn sign_in_code(&self) -> Result<SignInCode, Error> {
        self.post("/api/v1/session/codes", &serde_json::json!({})).await
    }
    pub async fn overview(&self) -> Result<Overview, Error> {
        self.get("/api/v1/overview", &()).await
    }
    pub async fn history(&self, query: &ReadHistory) -> Result<History, Error> {
        self.get("/api/v1/history", query).await
    }
    pub async fn definition_figures(&self, name: &str) -> Result<DefinitionFigures, Error> {
        self.get(&format!("/api/v1/definitions/{}/figures", escape(name)), &()).await
    }
    pub async fn worker_figures(&self, name: &str) -> Result<WorkerFigures, Error> {
        self.get(&format!("/api/v1/workers/{}/figures", escape(name)), &()).await
    }
    pub async fn namespaces(&self) -> Result<Namespaces, Error> {
        self.get("/api/v1/namespaces", &()).await
    }
    pub async fn dialects(&self) -> Result<Dialects, Error> {
        self.get("/api/v1/dialects", &()).await
    }
    pub async fn settings(&self) -> Result<Settings, Error> {
        self.get("/api/v1/settings", &()).await
    }
    pub async fn job_counts(&self, query: &CountJobs) -> Result<JobCounts, Error> {
        self.get("/api/v1/jobs/counts", query).await
    }
    pub async fn stats(&self) -> Result<Stats, Error> {
        self.get("/api/v1/stats", &()).await
    }
}

/// What a proxy in front of the server asks for; the server's own problems say it more exactly.
fn retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// A name as one segment of a path.
pub(crate) fn escape(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_one_segment() {
        assert_eq!(escape("a/b c@1"), "a%2Fb%20c%401");
        assert_eq!(escape("é"), "%C3%A9");
    }
}
