//! What a shell may offer for a word that is being typed. States are known; ids and names are asked of the server that the line
//! names, for less than a second. If the server is away, nothing is offered and nothing is said.

use crate::{output::clean, remote::Remote};
use clap::{Arg, Args as _, Command, FromArgMatches};
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate},
};
use std::{ffi::OsStr, time::Duration};
use windlass_api::{
    job::{ListJobs, State},
    page::Paging,
    workflow::ListRuns,
};
use windlass_sdk::{Client, Error};

/// Set by the scripts that `windlass completions` prints.
pub const VARIABLE: &str = "WINDLASS_COMPLETE";
const PATIENCE: Duration = Duration::from_millis(800);
const OFFERED_MAX: u32 = 50;
const STATES: [State; 9] = [
    State::Blocked,
    State::Scheduled,
    State::Pending,
    State::Claimed,
    State::Running,
    State::Completed,
    State::Failed,
    State::Cancelled,
    State::Skipped,
];

/// Answers a shell and ends the program, if it is a shell that asks.
pub fn answer_if_asked(command: fn() -> Command) {
    CompleteEnv::with_factory(|| offering(command(), "")).var(VARIABLE).bin("windlass").complete();
}

/// What a value is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompletionValues {
    States,
    Namespaces,
    Jobs,
    Runs,
    Workers,
    Definitions,
    Schedules,
}

/// The command line, with what there is to choose from. `path`: the commands above, such as `workers `.
fn offering(command: Command, path: &str) -> Command {
    let own = path.to_owned();
    let command = command.mut_args(|arg| match values(&own, &arg) {
        Some(values) => arg.add(ArgValueCompleter::new(move |typed: &OsStr| offer(values, typed))),
        None => arg,
    });
    command.mut_subcommands(|inner| {
        let path = format!("{path}{} ", inner.get_name());
        offering(inner, &path)
    })
}

fn values(path: &str, arg: &Arg) -> Option<CompletionValues> {
    match arg.get_id().as_str() {
        "namespace" => return Some(CompletionValues::Namespaces),
        "definition" => return Some(CompletionValues::Definitions),
        "state" if path == "jobs " => return Some(CompletionValues::States),
        "after" if path == "submit " => return Some(CompletionValues::Jobs),
        "id" | "ids" | "job" | "jobs" | "name" | "names" if arg.is_positional() => {}
        _ => return None,
    }
    let (command, verb) = path.trim_end().split_once(' ').unwrap_or((path.trim_end(), ""));
    match (command, verb) {
        ("job" | "logs" | "cancel" | "retry" | "why", _) => Some(CompletionValues::Jobs),
        ("workers", _) => Some(CompletionValues::Workers),
        ("definitions", _) => Some(CompletionValues::Definitions),
        ("schedules", _) => Some(CompletionValues::Schedules),
        ("workflow", "show" | "watch" | "cancel" | "retry" | "approve" | "reject" | "signal") => {
            Some(CompletionValues::Runs)
        }
        _ => None,
    }
}

fn offer(values: CompletionValues, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    // States may be a list.
    let before = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
    let found = match values {
        CompletionValues::States => {
            STATES.iter().map(|state| (format!("{before}{}", state.name()), String::new())).collect()
        }
        _ => asked(values, &typed).unwrap_or_default(),
    };
    let fitting =
        found.into_iter().filter(|(value, _)| value.starts_with(&*typed) && !value.contains(char::is_control));
    fitting
        .take(OFFERED_MAX as usize)
        .map(|(value, about)| CompletionCandidate::new(value).help((!about.is_empty()).then(|| clean(&about).into())))
        .collect()
}

/// None: the server could not be asked.
fn asked(values: CompletionValues, typed: &str) -> Option<Vec<(String, String)>> {
    let remote = named(std::env::args().skip_while(|word| word != "--").skip(2))?;
    let client = remote.or_variables(|name| std::env::var_os(name)).ok()?.client().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, ask(&client, values, typed)).await });
    answer.ok()?.ok()
}

async fn ask(client: &Client, values: CompletionValues, typed: &str) -> Result<Vec<(String, String)>, Error> {
    let paging = Paging { limit: Some(500), ..Paging::default() };
    Ok(match values {
        CompletionValues::States => Vec::new(),
        CompletionValues::Namespaces => {
            client.namespaces().await?.items.into_iter().map(|name| (name, String::new())).collect()
        }
        CompletionValues::Jobs => {
            let id = Some(typed.to_owned()).filter(|typed| !typed.is_empty());
            let query = ListJobs { id, limit: Some(OFFERED_MAX), ..ListJobs::default() };
            let about = |state: State, name: Option<String>| format!("{} {}", state.name(), name.unwrap_or_default());
            let jobs = client.jobs(&query).await?.items;
            jobs.into_iter().map(|job| (job.id.to_string(), about(job.state, job.name))).collect()
        }
        CompletionValues::Runs => {
            let query = ListRuns { limit: Some(OFFERED_MAX), ..ListRuns::default() };
            let runs = client.runs(&query).await?.items;
            let about = |run: &windlass_api::workflow::Run| {
                format!("{} {}", run.state.name(), run.workflow.as_deref().unwrap_or_default())
            };
            runs.iter().map(|run| (run.id.to_string(), about(run))).collect()
        }
        CompletionValues::Workers => names(client.workers(&paging).await?.items, |worker| worker.worker),
        CompletionValues::Definitions => names(client.definitions(&paging).await?.items, |definition| definition.name),
        CompletionValues::Schedules => names(client.schedules(&paging).await?.items, |schedule| schedule.name),
    })
}

fn names<T>(items: Vec<T>, name: impl Fn(T) -> String) -> Vec<(String, String)> {
    items.into_iter().map(|item| (name(item), String::new())).collect()
}

/// How the line says to connect. The rest of it is unfinished, so only these options are read.
fn named(words: impl Iterator<Item = String>) -> Option<Remote> {
    let command = Remote::augment_args(Command::new("windlass").no_binary_name(true).disable_help_flag(true));
    let longs: Vec<String> = command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
    let (mut said, mut words) = (Vec::new(), words.peekable());
    while let Some(word) = words.next() {
        let whole = longs.iter().any(|long| word.starts_with(&format!("{long}=")))
            || (word.starts_with("-n") && word.len() > 2);
        if whole {
            said.push(word);
        } else if (longs.contains(&word) || word == "-n")
            && let Some(value) = words.next()
            && words.peek().is_some()
        {
            said.extend([word, value]);
        }
    }
    Remote::from_arg_matches(&command.try_get_matches_from(said).ok()?).ok()
}
