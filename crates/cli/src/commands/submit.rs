//! `windlass submit`: one job, or many from a file.

use super::{
    Context, Done, logs,
    options::JobOptions,
    outcomes::{AwaitedJobs, Outcomes},
    show, wait,
};
use crate::{
    fail::code,
    ids,
    output::{self, Format, note, say},
    times,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    time::Duration,
};
use windlass_api::{
    Code, RawValue, Uuid, count_of,
    job::{Answer, SubmitJob, SubmitMany, Submitted},
};
use windlass_sdk::Client;

/// Jobs and bytes of one request; a server takes somewhat more.
const BATCH_JOBS: usize = 500;
const BATCH_BYTES: usize = 8 << 20;
/// A line longer than this is no job.
const LINE_MAX: usize = 8 << 20;
const TRIES: u32 = 6;

const NOTHING: &str =
    "windlass submit: there is nothing to submit. Say what the job is: --shell TEXT, --command -- PROGRAM, \
    --payload JSON or --definition NAME; for many jobs: --from FILE.
For example:
  windlass submit --shell 'echo hello' --follow
A job without a payload, for a worker that needs none: windlass submit --payload null";

#[derive(Args)]
#[command(after_help = "Examples:
  windlass submit -p '{\"frames\": 24}' --tag gpu         a job for a worker that offers `gpu`
  windlass submit --shell 'make report' --follow         a command, with its log live
  windlass submit --command --wait -- ffmpeg -i a.mov b.mp4
  windlass submit -d render -p @scene.json --facet shot=s010
  windlass submit --after last --delay 5m -p 1           in five minutes at the earliest, after the last job completed
  windlass submit --from jobs.jsonl                      many jobs, one per line, in the format of the API
  seq 1000 | windlass submit --from - --payloads -t cpu  many: one payload a line
  windlass submit --from jobs.jsonl --wait               and wait for all; the errors are grouped at the end

Exit codes: 0 submitted (with --wait or --follow: completed), 1 error,
with --wait or --follow: 3 failed or skipped, 4 cancelled, 5 not done in time. With --from, 1 also if a line was refused.")]
pub struct Submit {
    /// Idempotency key: if the same job is submitted again with the same key, the first job is returned.
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Wait until the job has ended; with --from, until all have.
    #[arg(short, long)]
    wait: bool,
    /// Show the log live and wait until the job has ended.
    #[arg(long, conflicts_with = "from")]
    follow: bool,
    /// Wait at most this long.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    wait_timeout: Option<u64>,
    /// Submit one job for each line of a file (JSON Lines); - reads standard input. The options above apply to lines that do
    /// not set them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["payload", "command", "shell", "key"])]
    from: Option<PathBuf>,
    /// Each line of --from is only a payload, not a whole job.
    #[arg(long, requires = "from")]
    payloads: bool,
    #[command(flatten)]
    job: JobOptions,
}

impl Submit {
    pub async fn run(self, context: &Context) -> Done {
        if self.from.is_none() && !self.job.says_what() {
            note(NOTHING);
            return Ok(code::USAGE);
        }
        let client = context.client()?;
        let after = ids::jobs(&client, &self.job.after).await?;
        let mut job = self.job.job(after)?;
        if let Some(file) = &self.from {
            let awaited = if self.wait { Some(AwaitedJobs::listen(&client).await) } else { None };
            let limit = self.wait_timeout.map(Duration::from_millis);
            let many = Many { client, defaults: job, payloads: self.payloads, format: context.format, awaited, limit };
            return many.run(file).await;
        }
        job.idempotency_key = self.key.clone();
        let submitted = client.submit(&job).await?;
        ids::remember(&client, submitted.id);
        if self.wait || self.follow {
            return self.stay(context, &client, &submitted).await;
        }
        context.format.one(&submitted, || told(&submitted))?;
        Ok(code::OK)
    }

    async fn stay(&self, context: &Context, client: &Client, submitted: &Submitted) -> Done {
        let timeout = self.wait_timeout.map(Duration::from_millis);
        if self.follow {
            if context.format.is_table() {
                note(told(submitted));
            }
            wait::telling(client, submitted.id, logs::follow(client, submitted.id, context.format, timeout)).await?;
        }
        let done = wait::until_done(client, submitted.id, timeout);
        let (job, code) = wait::telling(client, submitted.id, done).await?;
        match context.format {
            Format::Table if self.follow => note(show::ending(&job)),
            Format::Table => say(show::ending(&job))?,
            format => format.one(&job, String::new)?,
        }
        Ok(code)
    }
}

fn told(submitted: &Submitted) -> String {
    let note = if submitted.existing { " (submitted before with this key)" } else { "" };
    format!("{}  {}{note}", submitted.id, submitted.state.name())
}

/// Many jobs, in batches, each line told apart.
struct Many {
    client: Client,
    defaults: SubmitJob,
    payloads: bool,
    format: Format,
    /// With --wait.
    awaited: Option<AwaitedJobs>,
    limit: Option<Duration>,
}

/// What programs are told.
#[derive(serde::Serialize)]
struct SubmitSummary<'a> {
    submitted: usize,
    refused: usize,
    #[serde(flatten)]
    outcomes: &'a Option<Outcomes>,
}

#[derive(Default)]
struct Tally {
    submitted: usize,
    refused: usize,
    last: Option<Uuid>,
}

impl Many {
    async fn run(&self, file: &std::path::Path) -> Done {
        let (mut reader, total): (Box<dyn BufRead>, Option<u64>) = if file.as_os_str() == "-" {
            (Box::new(BufReader::new(std::io::stdin())), None)
        } else {
            let opened = std::fs::File::open(file).with_context(|| format!("{} cannot be read", file.display()))?;
            let total = count_lines(file)?;
            (Box::new(BufReader::new(opened)), Some(total))
        };
        let bar = output::bar(total, "submitting");
        let (mut tally, mut batch, mut bytes, mut number) = (Tally::default(), Vec::new(), 0, 0);
        loop {
            let mut line = String::new();
            let read = std::io::Read::take(&mut reader, LINE_MAX as u64).read_line(&mut line)?;
            ensure!(read < LINE_MAX, "line {} of {} is too long", number + 1, file.display());
            number += 1;
            if !line.trim().is_empty() {
                let job = self.parse(line.trim()).with_context(|| {
                    let so_far = tally.submitted;
                    format!("line {number} of {} is not a job ({so_far} were submitted before it)", file.display())
                })?;
                bytes += line.len();
                batch.push((number, job));
            }
            let at_end = read == 0;
            if batch.len() >= BATCH_JOBS || bytes >= BATCH_BYTES || (at_end && !batch.is_empty()) {
                bar.inc(batch.len() as u64);
                self.send(std::mem::take(&mut batch), &mut tally).await?;
                bytes = 0;
            }
            if at_end {
                break;
            }
        }
        bar.finish_and_clear();
        if let Some(awaited) = &self.awaited {
            let bar = output::bar(Some(tally.submitted as u64), "waiting");
            let waited = awaited.wait(self.limit, |ended| bar.set_position(ended)).await;
            bar.finish_and_clear();
            waited.context("the jobs were submitted, but it is not known how they ended")?;
        }
        self.finish(&tally)
    }

    fn finish(&self, tally: &Tally) -> Done {
        if let Some(last) = tally.last {
            ids::remember(&self.client, last);
        }
        let outcomes = self.awaited.as_ref().map(AwaitedJobs::outcomes);
        let mut summary = format!("{} submitted, {} refused", count_of(tally.submitted, "job"), tally.refused);
        summary.extend(outcomes.iter().map(|outcomes| format!("\n{}", outcomes.text())));
        match self.format {
            Format::Jsonl => note(summary),
            format => format.one(
                &SubmitSummary { submitted: tally.submitted, refused: tally.refused, outcomes: &outcomes },
                || summary,
            )?,
        }
        let code = outcomes.map_or(code::OK, |outcomes| outcomes.exit_code());
        Ok(if tally.refused == 0 { code } else { code::ERROR })
    }

    /// Ids are drawn here, so that a batch whose reply was lost can be sent again without making its jobs twice.
    fn parse(&self, line: &str) -> anyhow::Result<SubmitJob> {
        let mut job = if self.payloads {
            SubmitJob { payload: Some(RawValue::from_string(line.to_owned())?), ..self.defaults.clone() }
        } else {
            fill(serde_json::from_str(line)?, &self.defaults)
        };
        job.id.get_or_insert_with(|| windlass_engine::ids::job_id().0);
        Ok(job)
    }

    async fn send(&self, batch: Vec<(usize, SubmitJob)>, tally: &mut Tally) -> anyhow::Result<()> {
        let (numbers, jobs): (Vec<usize>, Vec<SubmitJob>) = batch.into_iter().unzip();
        let ids: Vec<Option<Uuid>> = jobs.iter().map(|job| job.id).collect();
        if let Some(awaited) = &self.awaited {
            ids.iter().flatten().try_for_each(|&id| awaited.expect(id))?;
        }
        let request = SubmitMany { jobs, atomic: false };
        // A server that was never there is not waited for long.
        let tries_max = if tally.submitted > 0 { TRIES } else { 3 };
        let mut tries = 1;
        let answers = loop {
            match self.client.submit_many(&request).await {
                Ok(answers) => break answers.jobs,
                Err(error) if error.is_temporary() && tries < tries_max => {
                    let pause = error.retry_after().unwrap_or(Duration::from_millis(200 << tries));
                    tokio::time::sleep(pause.min(Duration::from_secs(30))).await;
                    tries += 1;
                }
                Err(error) => {
                    let context = format!(
                        "the batch from line {} was not acknowledged; {} were submitted before it",
                        numbers[0], tally.submitted
                    );
                    return Err(anyhow::Error::new(error).context(context));
                }
            }
        };
        for ((number, id), answer) in numbers.into_iter().zip(ids).zip(answers) {
            self.count(tally, number, id, answer, tries > 1)?;
        }
        Ok(())
    }

    fn count(
        &self,
        tally: &mut Tally,
        number: usize,
        id: Option<Uuid>,
        answer: Answer<Submitted>,
        again: bool,
    ) -> anyhow::Result<()> {
        match answer.ok() {
            Ok(submitted) => {
                tally.submitted += 1;
                self.note_other(id, (id != Some(submitted.id)).then_some(Some(submitted.id)));
                tally.last = Some(submitted.id);
                if self.format == Format::Jsonl {
                    say(serde_json::to_string(&submitted)?)?;
                }
            }
            // The reply of an earlier try was lost, but the job was not.
            Err(problem) if again && problem.is(Code::Exists) => {
                tally.submitted += 1;
                tally.last = id;
            }
            Err(problem) => {
                tally.refused += 1;
                self.note_other(id, Some(None));
                note(format!("line {number}: {problem}"));
            }
        }
        Ok(())
    }

    /// What is waited for in place of a job that was not made.
    fn note_other(&self, id: Option<Uuid>, other: Option<Option<Uuid>>) {
        if let (Some(awaited), Some(id), Some(other)) = (&self.awaited, id, other) {
            awaited.replace(id, other);
        }
    }
}

/// What a line leaves open comes from the options.
fn fill(job: SubmitJob, defaults: &SubmitJob) -> SubmitJob {
    let d = defaults.clone();
    let mut facets = d.facets;
    facets.extend(job.facets);
    SubmitJob {
        definition: job.definition.or(d.definition),
        payload: job.payload.or(d.payload),
        run_at: job.run_at.or(d.run_at.filter(|_| job.delay_ms.is_none())),
        delay_ms: job.delay_ms.or(d.delay_ms),
        after: if job.after.is_empty() { d.after } else { job.after },
        when_parent_fails: job.when_parent_fails.or(d.when_parent_fails),
        facets,
        cancel: job.cancel.or(d.cancel),
        settings: job.settings.or(&d.settings),
        ..job
    }
}

fn count_lines(file: &std::path::Path) -> anyhow::Result<u64> {
    use std::io::Read;
    let (mut opened, mut buffer, mut lines) = (std::fs::File::open(file)?, vec![0; 1 << 16], 0);
    loop {
        let read = opened.read(&mut buffer)?;
        if read == 0 {
            return Ok(lines);
        }
        lines += buffer[..read].iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
}
