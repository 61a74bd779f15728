//! zndraw-joblib's protocol, beside its original server and beside the native API.

use super::{
    super::{
        Output,
        figures::Latency,
        http::{
            connection::{Address, Connection},
            pickup,
            subject::Subject,
        },
        work::progress,
    },
    cycle,
    joblib_calls::{Ears, Native, Room},
};
use clap::Args;
use serde::Serialize;
use std::time::{Duration, Instant};

/// How often the original client asks by itself.
const CLIENT_POLLS_MS: f64 = 2_000.0;

#[derive(Args)]
pub struct JoblibBench {
    /// Server to measure. Give two to compare them in turns.
    #[arg(long, value_name = "URL", required = true)]
    base_url: Vec<String>,
    /// User that is registered, unless there is one, and logs in.
    #[arg(long, default_value = "bench@example.org")]
    email: String,
    #[arg(long, default_value = "bench-password", hide_default_value = true)]
    password: String,
    /// An admin token of the first server. Then the native API is measured too.
    #[arg(long, env = "WINDLASS_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Full cycles in each round.
    #[arg(long, default_value_t = 2_000)]
    tasks: usize,
    /// Number of connections, each with one request at a time and a worker of its own.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Wake-ups in each round; 0 for servers without Socket.IO.
    #[arg(long, default_value_t = 200)]
    wakes: usize,
    /// Submit there instead, on another server of the same store: wake-ups then go from one server to another.
    #[arg(long, value_name = "URL")]
    submit_to: Option<String>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Serialize)]
struct Figures {
    base_url: String,
    /// `joblib`, or `native` for our own API.
    api: &'static str,
    round: usize,
    connections: usize,
    /// Submit + claim + running + completed.
    cycles_per_s: f64,
    cycle: Latency,
    /// From the first byte of a submit until the worker knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    wake: Option<Latency>,
    /// How long it would take a client that only polls, on average and at worst.
    polling: Latency,
}

impl JoblibBench {
    pub async fn run(self) -> anyhow::Result<()> {
        let addresses = self.base_url.iter().map(|url| Address::parse(url)).collect::<Result<Vec<_>, _>>()?;
        let tokens: Vec<String> = self.token.clone().into_iter().collect();
        let native = match tokens.is_empty() {
            true => None,
            false => Subject::all(&self.base_url[..1], &tokens, None).await?.pop(),
        };
        for round in 1..=self.rounds {
            for address in &addresses {
                self.say(&self.measure(address, round).await?)?;
            }
            if let Some(subject) = &native {
                self.say(&self.measure_native(subject, round).await?)?;
            }
        }
        if let Some(subject) = &native {
            subject.clean_up().await;
        }
        Ok(())
    }

    fn say(&self, figures: &Figures) -> anyhow::Result<()> {
        match self.output {
            Output::Json | Output::Jsonl => println!("{}", serde_json::to_string(figures)?),
            Output::Table => {
                let Figures { base_url, api, round, cycles_per_s, cycle, .. } = figures;
                print!(
                    "{base_url} {api} round {round}: {cycles_per_s:.0} cycles/s (p50 {:.2} ms, p99 {:.2} ms)",
                    cycle.p50_ms, cycle.p99_ms
                );
                match figures.wake {
                    Some(wake) => {
                        println!("; a worker knows after p50 {:.2} ms, p99 {:.2} ms", wake.p50_ms, wake.p99_ms)
                    }
                    None => println!(),
                }
            }
        }
        Ok(())
    }

    async fn measure(&self, address: &Address, round: usize) -> anyhow::Result<Figures> {
        let room = Room::enter(address, &self.email, &self.password).await?;
        let mut workers = Vec::new();
        for _ in 0..self.connections {
            workers.push(room.worker(address).await?);
        }
        let (cycles_per_s, cycle) = cycle::all("joblib", self.tasks, workers).await?;
        let wake = if self.wakes > 0 { Some(self.wakes(address, &room).await?) } else { None };
        Ok(self.figures(address.to_string(), "joblib", round, cycles_per_s, cycle, wake))
    }

    async fn measure_native(&self, subject: &Subject, round: usize) -> anyhow::Result<Figures> {
        let mut callers = Vec::new();
        for number in 0..self.connections {
            callers.push(Native::open(subject, number).await?);
        }
        let (cycles_per_s, cycle) = cycle::all("native", self.tasks, callers).await?;
        let wake =
            if self.wakes > 0 { Some(Latency::of(&mut pickup::measure(subject, self.wakes).await?)) } else { None };
        Ok(self.figures(subject.address.to_string(), "native", round, cycles_per_s, cycle, wake))
    }

    fn figures(
        &self,
        base_url: String,
        api: &'static str,
        round: usize,
        cycles_per_s: f64,
        cycle: Latency,
        wake: Option<Latency>,
    ) -> Figures {
        let polling = Latency { p50_ms: CLIENT_POLLS_MS / 2.0, p99_ms: CLIENT_POLLS_MS * 0.99 };
        Figures { base_url, api, round, connections: self.connections, cycles_per_s, cycle, wake, polling }
    }

    /// From the first byte of a submit to the wake-up, one after the other.
    async fn wakes(&self, address: &Address, room: &Room) -> anyhow::Result<Latency> {
        let submit_to = self.submit_to.as_deref().map(Address::parse).transpose()?;
        let mut submitting = Connection::open(submit_to.as_ref().unwrap_or(address), &room.token).await?;
        let mut worker = room.worker(address).await?;
        let mut ears = Ears::open(address, room, &worker.id).await?;
        let bar = progress("wake-ups", self.wakes);
        let mut times: Vec<Duration> = Vec::with_capacity(self.wakes);
        for _ in 0..self.wakes {
            let heard = tokio::spawn(ears.hears("task_available"));
            let begun = Instant::now();
            room.submit(&mut submitting).await?;
            let (back, at) = heard.await??;
            ears = back;
            times.push(at - begun);
            worker.work().await?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(Latency::of(&mut times))
    }
}
