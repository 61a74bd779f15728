//! Workflows and runs: one method per call.

use crate::{Client, Error, client::escape};
use reqwest::{Method, header};
use std::time::Duration;
use uuid::Uuid;
use windlass_api::{
    page::{Page, Paging},
    workflow::{Decide, InlineRun, ListRuns, Run, Signal, Signalled, StartRun, StartedRun, Step, Workflow},
};

impl Client {
    /// Writes a workflow from its YAML or JSON text. `dry_run`: only checks it.
    pub async fn put_workflow(&self, name: &str, source: &str, dry_run: bool) -> Result<Workflow, Error> {
        let request = self.request(Method::PUT, &format!("/api/v1/workflows/{}", escape(name)));
        self.send_workflow(request, source, dry_run).await
    }
    /// Writes a workflow under the name its text gives.
    pub async fn create_workflow(&self, source: &str, dry_run: bool) -> Result<Workflow, Error> {
        self.send_workflow(self.request(Method::POST, "/api/v1/workflows"), source, dry_run).await
    }
    async fn send_workflow(
        &self,
        request: reqwest::RequestBuilder,
        source: &str,
        dry_run: bool,
    ) -> Result<Workflow, Error> {
        let request = request.query(&[("dry_run", dry_run)]).header(header::CONTENT_TYPE, "application/yaml");
        self.json(request.body(source.to_owned()), Duration::ZERO).await
    }
    pub async fn workflows(&self, paging: &Paging) -> Result<Page<Workflow>, Error> {
        self.get("/api/v1/workflows", paging).await
    }
    pub async fn workflow(&self, name: &str) -> Result<Workflow, Error> {
        self.get(&format!("/api/v1/workflows/{}", escape(name)), &()).await
    }
    pub async fn workflow_version(&self, name: &str, version: u32) -> Result<Workflow, Error> {
        self.get(&format!("/api/v1/workflows/{}/versions/{version}", escape(name)), &()).await
    }

    /// Starts a run of a stored workflow.
    pub async fn start_workflow(&self, name: &str, start: &StartRun) -> Result<StartedRun, Error> {
        self.post(&format!("/api/v1/workflows/{}/runs", escape(name)), start).await
    }
    /// Starts a run of a definition that is not stored.
    pub async fn start_run(&self, start: &InlineRun) -> Result<StartedRun, Error> {
        self.post("/api/v1/runs", start).await
    }
    /// Newest first.
    pub async fn runs(&self, query: &ListRuns) -> Result<Page<Run>, Error> {
        self.get("/api/v1/runs", query).await
    }
    pub async fn run(&self, id: Uuid) -> Result<Run, Error> {
        self.get(&format!("/api/v1/runs/{id}"), &()).await
    }
    pub async fn run_steps(&self, id: Uuid, paging: &Paging) -> Result<Page<Step>, Error> {
        self.get(&format!("/api/v1/runs/{id}/steps"), paging).await
    }
    /// Waits for the run's end, at most a minute, and gives it as it is then.
    pub async fn wait_run(&self, id: Uuid, wait: Duration) -> Result<Run, Error> {
        let path = format!("/api/v1/runs/{id}/wait");
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).min(60_000);
        self.json(self.request(Method::GET, &path).query(&[("wait_ms", wait_ms)]), wait).await
    }
    pub async fn cancel_run(&self, id: Uuid) -> Result<Run, Error> {
        self.post(&format!("/api/v1/runs/{id}/cancel"), &()).await
    }
    /// Goes on from what did not complete, as a new run that keeps the results there are.
    pub async fn retry_run(&self, id: Uuid) -> Result<StartedRun, Error> {
        self.post(&format!("/api/v1/runs/{id}/retry"), &()).await
    }
    pub async fn approve_step(&self, id: Uuid, step: &str, decide: &Decide) -> Result<Step, Error> {
        self.post(&format!("/api/v1/runs/{id}/steps/{}/approve", escape(step)), decide).await
    }
    pub async fn reject_step(&self, id: Uuid, step: &str, decide: &Decide) -> Result<Step, Error> {
        self.post(&format!("/api/v1/runs/{id}/steps/{}/reject", escape(step)), decide).await
    }
    /// Tells a run that something happened.
    pub async fn signal_run(&self, id: Uuid, signal: &Signal) -> Result<Signalled, Error> {
        self.post(&format!("/api/v1/runs/{id}/events"), signal).await
    }
}
