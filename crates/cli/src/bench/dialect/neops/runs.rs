//! Runs of one step, which are an acquire job and an execute job, beside runs of a native workflow of two steps.

use super::{
    super::super::{
        figures::Latency,
        http::{
            connection::{Address, Connection},
            subject::Subject,
        },
    },
    super::cycle::{self, Cycle},
    NeopsBench,
    calls::{Block, Caller, Worker},
};
use anyhow::{Context, ensure};
use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
struct Figures {
    base_url: String,
    /// `neops`, or `native` for our own API.
    api: &'static str,
    round: usize,
    connections: usize,
    /// From the submit of a run until it has ended.
    runs_per_s: f64,
    run: Latency,
    /// Processor time of the server for each run, where it was started for the purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ms: Option<f64>,
}

impl NeopsBench {
    pub(super) async fn runs(&self) -> anyhow::Result<()> {
        let mut addresses = self.base_url.iter().map(|url| Address::parse(url)).collect::<Result<Vec<_>, _>>()?;
        let tokens: Vec<String> = self.token.clone().into_iter().collect();
        let native = match addresses.is_empty() || !tokens.is_empty() {
            true => Subject::all(&self.base_url[..self.base_url.len().min(1)], &tokens, None).await?.pop(),
            false => None,
        };
        if let Some(subject) = native.as_ref().filter(|_| addresses.is_empty()) {
            addresses.push(subject.address.clone());
        }
        for round in 1..=self.rounds {
            for address in &addresses {
                let mut callers = Vec::new();
                for number in 0..self.connections {
                    callers.push(Neops::open(address, number).await?);
                }
                self.measure((address, native.as_ref()), "neops", round, callers).await?;
            }
            if let Some(subject) = &native {
                let mut callers = Vec::new();
                for number in 0..self.connections {
                    callers.push(Native::open(subject, number).await?);
                }
                self.measure((&subject.address, native.as_ref()), "native", round, callers).await?;
            }
        }
        if let Some(subject) = &native {
            subject.clean_up().await;
        }
        Ok(())
    }

    async fn measure<C: Cycle>(
        &self,
        (address, subject): (&Address, Option<&Subject>),
        api: &'static str,
        round: usize,
        callers: Vec<C>,
    ) -> anyhow::Result<()> {
        let cpu = || subject.and_then(Subject::cpu).map(|cpu| cpu.as_secs_f64() * 1_000.0);
        let before = cpu();
        let (runs_per_s, run) = cycle::all(api, self.runs, callers).await?;
        let cpu_ms = before.zip(cpu()).map(|(before, after)| (after - before) / self.runs as f64);
        let base_url = address.to_string();
        let text = format!(
            "{address} {api} round {round}: {runs_per_s:.0} runs/s (p50 {:.2} ms, p99 {:.2} ms){}",
            run.p50_ms,
            run.p99_ms,
            cpu_ms.map(|cpu| format!("; {cpu:.2} ms of processor time each")).unwrap_or_default()
        );
        let figures = Figures { base_url, api, round, connections: self.connections, runs_per_s, run, cpu_ms };
        self.say(&figures, &text)
    }
}

/// A worker with a block of its own, and somebody who starts runs of it.
struct Neops {
    worker: Worker,
    caller: Caller,
    name: String,
}

impl Neops {
    async fn open(address: &Address, number: usize) -> anyhow::Result<Self> {
        let name = format!("echo-{number}");
        let worker = Worker::open(address, &[Block::pure(&name)]).await?;
        let mut caller = Caller::open(address).await?;
        caller.publish(&name, "global", std::slice::from_ref(&name)).await?;
        Ok(Self { worker, caller, name })
    }
}

impl Cycle for Neops {
    async fn cycle(&mut self) -> anyhow::Result<()> {
        let run = self.caller.start(&self.name, &[]).await?;
        self.worker.work().await?;
        self.worker.work().await?;
        self.caller.ends(&run).await
    }
}

/// The same of the native API.
struct Native {
    people: Connection,
    worker: Connection,
    start: String,
    claim: String,
    namespace: String,
}

impl Native {
    async fn open(subject: &Subject, number: usize) -> anyhow::Result<Self> {
        let mut people = Connection::open(&subject.address, &subject.token).await?;
        let worker = Connection::open(&subject.address, &subject.worker_token).await?;
        let (name, namespace) = (format!("two-{number}"), subject.namespace.clone());
        let workflow = json!({"windlass": "workflow", "steps": {"a": {"tags": [name], "payload": {}},
            "b": {"needs": "a", "tags": [name], "payload": {}}}});
        let at = format!("/api/v1/workflows/{name}?namespace={namespace}");
        let (status, answer) = people.call(Method::PUT, &at, workflow.to_string()).await?;
        ensure!(status.is_success(), "{at} answered {status}: {}", String::from_utf8_lossy(&answer));
        let claim = json!({"worker": format!("bench-{number}"), "tags": [name], "wait_ms": 10_000}).to_string();
        let start = format!("/api/v1/workflows/{name}/runs?namespace={namespace}");
        Ok(Self { people, worker, start, claim, namespace })
    }
}

impl Cycle for Native {
    async fn cycle(&mut self) -> anyhow::Result<()> {
        let at = |path: &str| format!("/api/v1/{path}?namespace={}", self.namespace);
        self.people.post(&self.start, "{}").await?;
        for _ in 0..2 {
            let claimed: Value =
                serde_json::from_slice(&self.worker.post(&at("leases/claim"), self.claim.clone()).await?)?;
            let lease = claimed["leases"][0]["lease"].as_str().context("a step cannot be claimed")?;
            self.worker.post(&at("leases/complete"), json!({ "lease": lease }).to_string()).await?;
        }
        Ok(())
    }
}
