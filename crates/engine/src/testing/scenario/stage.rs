//! Plays a text line by line and compares what was answered with what the text says.

use super::{
    super::{Bench, Fresh, TestResult},
    check::Look,
    command::Builder,
    line::{self, Line, length},
    names::Names,
    options::Options,
    told,
};
use crate::clock::Clock;
use windlass_core::{Command, Leased, Namespace, Refusal, Reply, Timestamp};

pub(super) struct Stage {
    pub bench: Bench,
    pub names: Names,
    pub namespace: Namespace,
}

pub(super) async fn play(fresh: Fresh, text: &str) -> TestResult<()> {
    let mut stage = Stage { bench: Bench::new(fresh), names: Names::default(), namespace: Namespace::default() };
    for line in line::parse(text)? {
        if let Some(at) = line.at {
            stage.bench.set(at);
        }
        stage.line(&line).await.map_err(|why| at_line(&line, why))?;
    }
    Ok(())
}

/// Lines inside a block have named themselves already.
fn at_line(line: &Line, why: String) -> String {
    if why.starts_with("line ") { why } else { format!("line {}: {why}", line.number) }
}

impl Stage {
    async fn line(&mut self, line: &Line) -> TestResult<()> {
        match line.words.first().map(String::as_str) {
            Some("together") => self.batch(&line.block.iter().collect::<Vec<_>>()).await,
            Some("tick") => self.tick(line).await,
            Some("namespace") => {
                let name = line.words.get(1).ok_or("which namespace?")?;
                self.namespace = Namespace::new(name).map_err(|refusal| refusal.to_string())?;
                Ok(())
            }
            Some("limits") => self.set_limits(line),
            Some("stalled") => self.stalled(line),
            Some(word) if Look::knows(word, line) => Look { stage: self }.check(line).await,
            _ => self.batch(&[line]).await,
        }
    }

    async fn batch(&mut self, lines: &[&Line]) -> TestResult<()> {
        let commands: Vec<Command> = lines.iter().map(|line| self.build(line)).collect::<TestResult<_>>()?;
        let outcome = self.bench.run(commands).await?;
        for (line, reply) in lines.iter().zip(&outcome.replies) {
            self.compare(line, reply).map_err(|why| at_line(line, why))?;
        }
        Ok(())
    }

    fn build(&mut self, line: &Line) -> TestResult<Command> {
        let now = self.bench.clock.now();
        let mut builder = Builder { names: &mut self.names, namespace: &self.namespace, now };
        builder.command(line).map_err(|why| at_line(line, why))
    }

    fn compare(&mut self, line: &Line, reply: &Result<Reply, Refusal>) -> TestResult<()> {
        if let (Some(expected), Ok(Reply::Leases(leases))) = (&line.expect, reply) {
            return self.compare_leases(expected, leases);
        }
        let now = self.bench.clock.now();
        let answered = told::reply(reply, &self.names, now);
        let Some(expected) = &line.expect else {
            let why = reply.as_ref().err().map(|refusal| format!("it was refused: {answered} ({refusal})"));
            return why.map_or(Ok(()), Err);
        };
        let expected = expected.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(", ");
        if told::fits(&expected, &answered) {
            return Ok(());
        }
        let why = reply.as_ref().err().map(|refusal| format!(" ({refusal})")).unwrap_or_default();
        Err(format!("expected {expected:?}, answered {answered:?}{why}"))
    }

    /// `j1 as L1, new j2 as L2`, or `nothing`.
    fn compare_leases(&mut self, expected: &[Vec<String>], leases: &[Leased]) -> TestResult<()> {
        let nothing = expected.len() == 1 && expected[0] == ["nothing"];
        let wanted = if nothing { 0 } else { expected.len() };
        if wanted != leases.len() {
            let got: Vec<String> = leases.iter().map(|leased| self.names.job_name(leased.lease.job)).collect();
            return Err(format!("expected {wanted} leases, got {}: {got:?}", leases.len()));
        }
        for (clause, leased) in expected.iter().zip(leases) {
            let words: Vec<&str> = clause.iter().map(String::as_str).collect();
            let (job, lease) = match words[..] {
                [job, "as", lease] => (job, lease),
                ["new", job, "as", lease] => {
                    self.names.bind_job(job, leased.lease.job);
                    (job, lease)
                }
                _ => return Err(format!("write j1 as L1, not {:?}", clause.join(" "))),
            };
            let got = self.names.job_name(leased.lease.job);
            if got != job {
                return Err(format!("expected {job} to be claimed, got {got}"));
            }
            self.names.bind_lease(lease, leased.lease)?;
        }
        Ok(())
    }

    /// Sweeps, then looks at the states it names.
    async fn tick(&mut self, line: &Line) -> TestResult<()> {
        let swept = self.bench.tick().await?;
        for clause in line.expect.iter().flatten() {
            if clause == &["nothing"] {
                if swept > 0 {
                    return Err(format!("expected nothing to be due, {swept} rows were"));
                }
                continue;
            }
            Look { stage: self }.state(clause).await?;
        }
        Ok(())
    }

    /// How long the server did not respond, until now.
    fn stalled(&mut self, line: &Line) -> TestResult<()> {
        let length = length(line.words.get(1).ok_or("for how long?")?)?;
        let now = self.bench.clock.now();
        self.bench.stalls.push((Timestamp(now.0 - length.0), now));
        Ok(())
    }

    fn set_limits(&mut self, line: &Line) -> TestResult<()> {
        let mut options = Options::of(line);
        let limits = &mut self.bench.limits;
        limits.retention = options.length("retention")?.unwrap_or(limits.retention);
        limits.lease_default = options.length("lease")?.unwrap_or(limits.lease_default);
        limits.log_bytes_max = options.number("log")?.unwrap_or(limits.log_bytes_max);
        limits.log_piece_bytes_max = options.number("log-piece")?.unwrap_or(limits.log_piece_bytes_max);
        limits.payload_bytes_max = options.number("payload")?.unwrap_or(limits.payload_bytes_max);
        limits.claim_max = options.number("claim")?.unwrap_or(limits.claim_max);
        limits.nodes_max = options.number("nodes")?.unwrap_or(limits.nodes_max);
        limits.pass_on_max = options.number("pass-on")?.unwrap_or(limits.pass_on_max);
        limits.retries_per_second = options.number("retries")?.unwrap_or(limits.retries_per_second);
        options.finish()
    }
}
