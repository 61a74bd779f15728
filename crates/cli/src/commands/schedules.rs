//! `windlass schedules`: jobs made again and again.

use super::{Context, Done, all, options::JobOptions};
use crate::{
    fail::code,
    ids,
    output::{Facts, Rows, cell},
    times,
};
use clap::{Args, Subcommand};
use windlass_api::{
    job::State,
    schedule::{Missed, PutSchedule, Schedule},
};

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass schedules set nightly --cron '30 3 * * *' --time-zone Europe/Berlin --shell 'make report'
  windlass schedules set beat --every 10s -d heartbeat
  windlass schedules                 list schedules with their next times
  windlass schedules run nightly     create its job now
  windlass schedules pause nightly")]
pub enum SchedulesCommand {
    /// List schedules by name. This is the default.
    List,
    /// Show a schedule with its next times.
    Show {
        name: String,
    },
    Set(Box<Set>),
    /// Create a schedule's job now. Its times stay, and a paused schedule stays paused.
    Run {
        name: String,
    },
    /// Pause a schedule: it creates no jobs.
    Pause {
        name: String,
    },
    /// Resume a paused schedule.
    Resume {
        name: String,
    },
    /// Delete a schedule. Jobs it created stay.
    Delete {
        name: String,
    },
}

/// Create or replace a schedule.
#[derive(Args)]
pub struct Set {
    name: String,
    /// Cron expression: five fields (minute, hour, day, month, weekday), six with seconds first, or a shortcut such as @daily.
    #[arg(long, value_name = "CRON", required_unless_present = "every", conflicts_with = "every")]
    cron: Option<String>,
    /// The time zone of --cron, such as Europe/Berlin [default: UTC].
    #[arg(long, value_name = "ZONE", requires = "cron")]
    time_zone: Option<String>,
    /// Fixed interval: 10s, 5m, 1h.
    #[arg(long, value_name = "TIME", value_parser = times::length)]
    every: Option<u64>,
    /// Drop runs that were missed while no server was up. Default: one job makes up for all of them.
    #[arg(long)]
    skip_missed: bool,
    /// Create the schedule paused.
    #[arg(long)]
    paused: bool,
    #[command(flatten)]
    job: JobOptions,
}

impl SchedulesCommand {
    pub async fn run(self, context: &Context) -> Done {
        match self {
            SchedulesCommand::List => return list(context).await,
            SchedulesCommand::Show { name } => show(context, &context.client()?.schedule(&name).await?)?,
            SchedulesCommand::Set(set) => set.run(context).await?,
            SchedulesCommand::Run { name } => {
                let made = context.client()?.run_schedule(&name).await?;
                context.format.one(&made, || made.id.to_string())?;
            }
            SchedulesCommand::Pause { name } => pause(context, &name, true).await?,
            SchedulesCommand::Resume { name } => pause(context, &name, false).await?,
            SchedulesCommand::Delete { name } => {
                context.client()?.delete_schedule(&name).await?;
                context.format.done("deleted", || format!("{name} deleted; jobs it created stay"))?;
            }
        }
        Ok(code::OK)
    }
}

impl Set {
    async fn run(&self, context: &Context) -> anyhow::Result<()> {
        let client = context.client()?;
        let after = ids::jobs(&client, &self.job.after).await?;
        let body = PutSchedule {
            cron: self.cron.clone(),
            time_zone: self.time_zone.clone(),
            every_ms: self.every,
            missed: if self.skip_missed { Missed::Skip } else { Missed::Once },
            paused: self.paused,
            job: self.job.job(after)?,
        };
        show(context, &client.put_schedule(&self.name, &body).await?)
    }
}

async fn pause(context: &Context, name: &str, paused: bool) -> anyhow::Result<()> {
    let client = context.client()?;
    let body = PutSchedule { paused, ..client.schedule(name).await?.schedule };
    show(context, &client.put_schedule(name, &body).await?)
}

async fn list(context: &Context) -> Done {
    let client = context.client()?;
    let found = all(async |paging| client.schedules(&paging).await).await?;
    context.format.many(&found, || table(&found))?;
    Ok(code::OK)
}

fn when(schedule: &PutSchedule) -> String {
    match (&schedule.cron, schedule.every_ms) {
        (Some(cron), _) => format!("{cron} {}", schedule.time_zone.as_deref().unwrap_or("UTC")),
        (None, Some(every)) => format!("every {}", times::short(every)),
        (None, None) => String::new(),
    }
}

fn next(schedule: &Schedule, now: jiff::Timestamp) -> String {
    if schedule.schedule.paused {
        return "paused".into();
    }
    times::maybe_relative(schedule.next.first().map(String::as_str), now)
}

fn table(schedules: &[Schedule]) -> Rows {
    let now = times::now();
    let empty = "No schedules. Make one: windlass schedules set NAME --every 1h --shell 'echo hello'";
    let mut rows = Rows::new(&["NAME", "WHEN", "NEXT", "MADE", "DEFINITION"], empty);
    for schedule in schedules {
        rows.add(vec![
            cell(&schedule.name),
            cell(when(&schedule.schedule)),
            cell(next(schedule, now)),
            cell(schedule.fired.to_string()),
            cell(schedule.schedule.job.definition.as_deref().unwrap_or_default()),
        ]);
    }
    rows
}

fn show(context: &Context, schedule: &Schedule) -> anyhow::Result<()> {
    context.format.one(schedule, || {
        let now = times::now();
        let mut facts = Facts::default();
        facts.add("Schedule", &schedule.name).add("When", when(&schedule.schedule));
        facts.add("Jobs made", schedule.fired.to_string());
        facts.add("State", if schedule.schedule.paused { "paused" } else { "active" });
        for time in &schedule.next {
            facts.add("Next", times::both(time, now));
        }
        for firing in &schedule.recent {
            let state = firing.state.map_or("no longer kept", State::name);
            facts.add("Made", format!("{}  {}  {state}", times::both(&firing.at, now), firing.job));
        }
        facts.add("Job", serde_json::to_string(&schedule.schedule.job).unwrap_or_default());
        facts.text()
    })
}
