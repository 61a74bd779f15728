//! `windlass definitions`: recipes for jobs, from files or one by one.

use super::{Context, Done, all};
use crate::{
    fail::code,
    output::{Facts, Rows, cell, clean_lines, cut, note, say},
    times,
};
use anyhow::{Context as _, bail, ensure};
use clap::Subcommand;
use std::{
    fs,
    path::{Path, PathBuf},
};
use windlass_api::{
    count_of,
    definition::{Definition, DefinitionBody},
    overview::DefinitionFigures,
    page::Paging,
};
use windlass_core::Limits;
use windlass_server::{definitions, folders::InFile};

#[derive(Subcommand)]
#[command(
    after_help = "A definition file is YAML or JSON: `name` (the file's name where absent) and what every job made from it has.

  # render.yaml
  name: render
  description: One frame.
  tags: [gpu]
  timeout_ms: 600000
  retry: {attempts: 3, backoff_ms: 10000}
  payload_schema: {type: object, required: [frame]}

Examples:
  windlass definitions check jobs/     reads the files and says what is wrong with them
  windlass definitions apply jobs/     makes them known to the server; unchanged ones stay as they are
  windlass submit -d render -p '{\"frame\": 1}'"
)]
pub enum DefinitionsCommand {
    /// List definitions by name. This is the default.
    List,
    /// Show the latest version of a definition.
    Show { name: String },
    /// What became of a definition's jobs in the last day, how long they ran, and the last ones.
    Figures { name: String },
    /// List all versions of a definition, oldest first.
    Versions { name: String },
    /// Store the definitions in files or folders. An unchanged definition gets no new version.
    Apply {
        #[arg(required = true, value_name = "FILE|FOLDER")]
        paths: Vec<PathBuf>,
    },
    /// Check definitions in files or folders and report errors. Needs no server.
    Check {
        #[arg(required = true, value_name = "FILE|FOLDER")]
        paths: Vec<PathBuf>,
    },
    /// Delete a definition. Jobs created from it do not change.
    Delete { name: String },
}

impl DefinitionsCommand {
    pub async fn run(self, context: &Context) -> Done {
        match self {
            DefinitionsCommand::List => list(context).await,
            DefinitionsCommand::Show { name } => {
                let definition = context.client()?.definition(&name).await?;
                context.format.one(&definition, || text(&definition))?;
                Ok(code::OK)
            }
            DefinitionsCommand::Figures { name } => {
                let figures = context.client()?.definition_figures(&name).await?;
                context.format.one(&figures, || figures_text(&name, &figures))?;
                Ok(code::OK)
            }
            DefinitionsCommand::Versions { name } => {
                let page = context.client()?.definition_versions(&name, &Paging::default()).await?;
                context.format.many(&page.items, || table(&page.items))?;
                Ok(code::OK)
            }
            DefinitionsCommand::Apply { paths } => apply(context, &paths).await,
            DefinitionsCommand::Check { paths } => check(&paths),
            DefinitionsCommand::Delete { name } => {
                context.client()?.delete_definition(&name).await?;
                context.format.done("deleted", || format!("{name} deleted; jobs created from it do not change"))?;
                Ok(code::OK)
            }
        }
    }
}

async fn list(context: &Context) -> Done {
    let client = context.client()?;
    let found = all(async |paging| client.definitions(&paging).await).await?;
    context.format.many(&found, || table(&found))?;
    Ok(code::OK)
}

fn table(definitions: &[Definition]) -> Rows {
    let now = times::now();
    let mut rows = Rows::new(
        &["NAME", "VERSION", "CREATED", "TAGS…", "DESCRIPTION…"],
        "No definitions. Make some: windlass definitions apply FILE",
    );
    for definition in definitions {
        rows.add(vec![
            cell(&definition.name),
            cell(definition.version.to_string()),
            cell(times::relative(&definition.created_at, now)),
            cell(definition.body.settings().tags.unwrap_or_default().join(", ")),
            cell(cut(&definition.body.description, 60)),
        ]);
    }
    rows
}

fn text(definition: &Definition) -> String {
    let mut facts = Facts::default();
    facts.add("Definition", format!("{}@{}", definition.name, definition.version));
    facts.add("Created", times::both(&definition.created_at, times::now()));
    let body = serde_json::to_string_pretty(&definition.body).unwrap_or_default();
    format!("{}\n{}", facts.text(), clean_lines(&body))
}

fn figures_text(name: &str, figures: &DefinitionFigures) -> String {
    let ended = figures.completed + figures.failed;
    let mut facts = Facts::default();
    facts.add("Definition", name);
    facts.add("Last day", format!("{} completed, {} failed", figures.completed, figures.failed));
    if ended > 0 {
        facts.add("Succeeded", format!("{:.1} %", figures.completed as f64 * 100.0 / ended as f64));
    }
    facts.add("Half ran up to", figures.run_p50_ms.map(times::short).unwrap_or_default());
    facts.add("95 % ran up to", figures.run_p95_ms.map(times::short).unwrap_or_default());
    for job in &figures.recent {
        let ended = times::maybe_relative(job.finished_at.as_deref(), times::now());
        facts.add("Job", format!("{}  {}  {ended}", job.id, job.state.name()));
    }
    facts.text()
}

async fn apply(context: &Context, paths: &[PathBuf]) -> Done {
    let read = read_all(paths)?;
    let client = context.client()?;
    for (file, name, body) in &read {
        let before = match client.definition(name).await {
            Ok(definition) => Some(definition),
            Err(error) if error.status() == Some(404) => None,
            Err(error) => return Err(error.into()),
        };
        let (definition, what) = match before {
            Some(before) if before.body == *body => (before, "unchanged"),
            before => {
                let put = client
                    .put_definition(name, body)
                    .await
                    .with_context(|| format!("{} was refused", file.display()))?;
                (put, if before.is_some() { "changed" } else { "new" })
            }
        };
        context.format.one(&definition, || format!("{}@{}  {what}", definition.name, definition.version))?;
    }
    Ok(code::OK)
}

fn check(paths: &[PathBuf]) -> Done {
    let (mut good, mut bad) = (0, 0);
    for file in files(paths)? {
        match read_one(&file) {
            Ok((name, _)) => {
                good += 1;
                say(format!("{}: {name} is valid", file.display()))?;
            }
            Err(faults) => {
                bad += 1;
                note(listed(&faults));
            }
        }
    }
    ensure!(bad == 0, "{bad} of {} cannot be used", count_of(good + bad, "file"));
    Ok(code::OK)
}

/// All or none: half a folder is not what anybody meant.
fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, String, DefinitionBody)>> {
    let mut read: Vec<(PathBuf, String, DefinitionBody)> = Vec::new();
    let mut faults = Vec::new();
    for file in files(paths)? {
        let (name, body) = match read_one(&file) {
            Ok(found) => found,
            Err(more) => {
                faults.extend(more);
                continue;
            }
        };
        if let Some((other, ..)) = read.iter().find(|(_, known, _)| *known == name) {
            bail!("{} and {} both define {name}", other.display(), file.display());
        }
        read.push((file, name, body));
    }
    ensure!(faults.is_empty(), "nothing was applied:\n{}", listed(&faults));
    Ok(read)
}

fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        let about = fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
        if about.is_file() {
            found.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let mut inside = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        inside.retain(|file| file.is_file() && is_definition(file));
        inside.sort();
        ensure!(!inside.is_empty(), "{} holds no .yaml, .yml or .json file", path.display());
        found.extend(inside);
    }
    Ok(found)
}

fn is_definition(file: &Path) -> bool {
    file.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ["yaml", "yml", "json"].contains(&ending))
}

/// As the server reads them in its own folder.
fn read_one(file: &Path) -> Result<(String, DefinitionBody), Vec<InFile>> {
    definitions::read(file, &Limits::default())
}

/// One a line, and not without end.
fn listed(faults: &[InFile]) -> String {
    let mut lines: Vec<String> = faults.iter().take(definitions::FAULTS_MAX).map(ToString::to_string).collect();
    let more = faults.len().saturating_sub(lines.len());
    lines.extend((more > 0).then(|| format!("… and {more} more")));
    lines.join("\n")
}
