//! One run over many devices, beside one over a tenth of them: what it takes for each device must not grow with their number.

use super::{
    super::super::http::{connection::Connection, subject::Subject},
    NeopsBench,
    calls::{Block, Caller, Worker},
};
use anyhow::{Context, ensure};
use http::Method;
use serde::Serialize;
use serde_json::json;
use std::time::Instant;
use tokio::task::JoinSet;

const NAME: &str = "set";

#[derive(Serialize)]
struct Figures {
    devices: usize,
    round: usize,
    seconds: f64,
    /// Of the server.
    cpu_s: f64,
    memory_before_mb: f64,
    memory_peak_mb: f64,
    stored_mb: f64,
    /// What workers were sent.
    polled_mb: f64,
}

impl NeopsBench {
    pub(super) async fn over_devices(&self) -> anyhow::Result<()> {
        for round in 1..=self.rounds {
            for devices in [self.devices / 10, self.devices] {
                let figures = self.over(devices.max(1), round).await?;
                let text = format!(
                    "{} devices round {round}: {:.2} s, {:.2} s of processor time, memory {:.0} -> {:.0} MB at most, {:.1} MB stored, {:.0} MB sent to workers",
                    figures.devices,
                    figures.seconds,
                    figures.cpu_s,
                    figures.memory_before_mb,
                    figures.memory_peak_mb,
                    figures.stored_mb,
                    figures.polled_mb
                );
                self.say(&figures, &text)?;
            }
        }
        Ok(())
    }

    async fn over(&self, devices: usize, round: usize) -> anyhow::Result<Figures> {
        let subject = Subject::all(&[], &[], None).await?.pop().context("there is no server")?;
        let ids: Vec<u64> = (1..=devices as u64).collect();
        let mut admin = Connection::open(&subject.address, &subject.token).await?;
        for id in &ids {
            let facts = json!({"version": "17.3.1", "uptime": 123_456, "serial": format!("FOC{id:08}"), "text": "x".repeat(200)});
            let device = json!({"id": id, "hostname": format!("switch-{id}"), "ip": "10.0.0.1", "password": "secret", "facts": facts});
            let (status, answer) =
                admin.call(Method::PUT, &format!("/api/v1/entities/device/{id}"), device.to_string()).await?;
            ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&answer));
        }
        let block = || Block { name: NAME.into(), on: "device", pure: false };
        let mut workers = Vec::new();
        for _ in 0..self.connections {
            workers.push(Worker::open(&subject.address, &[block()]).await?);
        }
        let mut caller = Caller::open(&subject.address).await?;
        caller.publish(NAME, "device", &[NAME.into()]).await?;
        let looked = |what: Option<f64>| what.context("this needs /proc");
        let (memory, cpu, stored) =
            (looked(subject.memory_mb())?, subject.cpu().unwrap_or_default(), subject.stored_mb());
        let begun = Instant::now();
        let run = caller.start(NAME, &ids).await?;
        // The acquire job, and one for each device.
        let jobs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(devices + 1));
        let mut tasks = JoinSet::new();
        for mut worker in workers {
            let jobs = jobs.clone();
            tasks.spawn(async move {
                let (mut bytes, relaxed) = (0, std::sync::atomic::Ordering::Relaxed);
                while jobs.load(relaxed) > 0 {
                    let (job, size) = worker.poll().await?;
                    bytes += size;
                    match job {
                        Some(job) => {
                            worker.push(&job, r#"{"done":true}"#).await?;
                            jobs.fetch_sub(1, relaxed);
                        }
                        None => tokio::time::sleep(std::time::Duration::from_millis(2)).await,
                    }
                }
                anyhow::Ok(bytes)
            });
        }
        let mut polled = 0;
        while let Some(task) = tasks.join_next().await {
            polled += task??;
        }
        caller.ends(&run).await?;
        let seconds = begun.elapsed().as_secs_f64();
        Ok(Figures {
            devices,
            round,
            seconds,
            cpu_s: (subject.cpu().unwrap_or_default() - cpu).as_secs_f64(),
            memory_before_mb: memory,
            memory_peak_mb: looked(subject.memory_peak_mb())?,
            stored_mb: subject.stored_mb() - stored,
            polled_mb: polled as f64 / 1e6,
        })
    }
}
