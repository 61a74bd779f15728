//! `windlass item`: items, their revisions, and what contains what.

use super::{Context, Done, all, some};
use crate::{
    fail::code,
    output::{Facts, Rows, cell, clean, cut},
    times,
};
use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use windlass_api::{
    item::{BomDepth, BomRow, CreateItem, CreateRevision, Item, Leaf, ListItems, Relation, Revision},
    page::Paging,
};
use windlass_sdk::Client;

#[derive(Subcommand)]
#[command(after_help = "Examples:
  windlass item create ASM-001 --type assembly --description 'Gearbox'
  windlass item create --category F01                    numbered by the server: F01-0001, F01-0002, …
  windlass item list --type assembly --search gear
  windlass item revise ASM-001 -m 'new housing'          prints the jobs it triggers
  windlass item bom ASM-001 --tree                       all levels; --leaves: the parts to buy, with quantities
  windlass item where-used F01-0001

Each namespace has its own items. With --namespace silo they are those of Silo's protocol: changes made there are visible here, and the
other way round. `windlass import silo` brings in many.")]
pub enum ItemCommand {
    List(List),
    /// Show an item with its newest revisions.
    Show {
        #[arg(value_name = "PART_NUMBER")]
        part: String,
    },
    Create(Create),
    Revise(Revise),
    Bom(Bom),
    /// List the items that contain an item directly.
    WhereUsed {
        #[arg(value_name = "PART_NUMBER")]
        part: String,
    },
}

/// List items, newest first.
#[derive(Args)]
pub struct List {
    /// Only items of this type, such as part or assembly.
    #[arg(long = "type", value_name = "TYPE")]
    item_type: Option<String>,
    /// Only items of this numbering schema.
    #[arg(long)]
    schema: Option<String>,
    /// Only items of the project with this code.
    #[arg(long, value_name = "CODE")]
    project: Option<String>,
    /// Only items with this text in the part number or the description.
    #[arg(short, long, value_name = "TEXT")]
    search: Option<String>,
    /// Show at most this many.
    #[arg(short, long, value_name = "N", default_value_t = 50)]
    limit: u32,
}

/// Create an item and its first revision.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass item create ASM-001 --type assembly --property material=steel --property mass=2.5
  windlass item create --category F01 --project P1")]
pub struct Create {
    /// 1 to 64 of A-Z a-z 0-9 . _ -. Optional with --category.
    #[arg(value_name = "PART_NUMBER", required_unless_present = "category")]
    part: Option<String>,
    /// The type: part, assembly, drawing or any other word [default: part].
    #[arg(long = "type", value_name = "TYPE")]
    item_type: Option<String>,
    /// The numbering schema [default: default].
    #[arg(long)]
    schema: Option<String>,
    /// 1 to 8 of A-Z 0-9. Without a part number, the item gets the next number of this category.
    #[arg(long)]
    category: Option<String>,
    #[arg(short, long)]
    description: Option<String>,
    /// name=value with JSON or plain text (repeatable).
    #[arg(long = "property", value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// The code of a project the item belongs to (repeatable).
    #[arg(long = "project", value_name = "CODE")]
    projects: Vec<String>,
}

/// Create a revision of an item and the jobs it triggers.
#[derive(Args)]
#[command(after_help = "Example:
  windlass item revise ASM-001 -m 'new housing' -o json | jq -r '.jobs[].job'")]
pub struct Revise {
    #[arg(value_name = "PART_NUMBER")]
    part: String,
    /// What changed.
    #[arg(short = 'm', long, value_name = "TEXT")]
    comment: Option<String>,
    /// name=value with JSON or plain text (repeatable).
    #[arg(long = "property", value_name = "NAME=VALUE")]
    properties: Vec<String>,
    /// Trigger no jobs.
    #[arg(long)]
    quiet: bool,
}

/// Show the bill of material of an item: direct, all levels, or summed up.
#[derive(Args)]
#[command(after_help = "Examples:
  windlass item bom ASM-001
  windlass item bom ASM-001 --tree --depth 3
  windlass item bom ASM-001 --leaves -o json")]
pub struct Bom {
    #[arg(value_name = "PART_NUMBER")]
    part: String,
    /// All levels, as a tree.
    #[arg(long)]
    tree: bool,
    /// How many levels, 1 to 20.
    #[arg(long, value_name = "N", requires = "tree", default_value_t = 10)]
    depth: u32,
    /// Only parts without a bill of material of their own, with their total quantities.
    #[arg(long, conflicts_with = "tree")]
    leaves: bool,
}

impl ItemCommand {
    pub async fn run(self, context: &Context) -> Done {
        let client = context.client()?;
        match self {
            ItemCommand::List(list) => list.run(context, &client).await?,
            ItemCommand::Show { part } => show(context, &client, &part).await?,
            ItemCommand::Create(create) => {
                let item = client.create_item(&create.body()?).await?;
                context.format.one(&item, || format!("{}  {}", clean(&item.part_number), item.item_type))?;
            }
            ItemCommand::Revise(revise) => {
                let body = CreateRevision {
                    comment: revise.comment.clone(),
                    properties: unless_empty(properties(&revise.properties)?),
                    quiet: revise.quiet,
                };
                let made = client.create_revision(&revise.part, &body).await?;
                context.format.one(&made, || revised(&made))?;
            }
            ItemCommand::Bom(bom) => bom.run(context, &client).await?,
            ItemCommand::WhereUsed { part } => {
                let found = all(async |paging| client.where_used(&part, &paging).await).await?;
                context.format.many(&found, || users(&found))?;
            }
        }
        Ok(code::OK)
    }
}

fn unless_empty(map: Map<String, Value>) -> Option<Map<String, Value>> {
    (!map.is_empty()).then_some(map)
}

/// `name=value`: JSON where it is JSON, else text.
fn properties(given: &[String]) -> anyhow::Result<Map<String, Value>> {
    let one = |text: &String| {
        let (name, value) =
            text.split_once('=').with_context(|| format!("{text:?} is not a property; write name=value"))?;
        Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
    };
    given.iter().map(one).collect()
}

impl Create {
    fn body(&self) -> anyhow::Result<CreateItem> {
        Ok(CreateItem {
            part_number: self.part.clone(),
            item_type: self.item_type.clone(),
            schema: self.schema.clone(),
            category: self.category.clone(),
            description: self.description.clone(),
            properties: unless_empty(properties(&self.properties)?),
            projects: (!self.projects.is_empty()).then(|| self.projects.clone()),
        })
    }
}

impl List {
    async fn run(&self, context: &Context, client: &Client) -> anyhow::Result<()> {
        let page = async |Paging { limit, cursor }| {
            let query = ListItems {
                item_type: self.item_type.clone(),
                schema: self.schema.clone(),
                project: self.project.clone(),
                search: self.search.clone(),
                limit,
                cursor,
            };
            client.items(&query).await
        };
        let found = some(self.limit, page).await?;
        context.format.many(&found, || table(&found))
    }
}

fn table(items: &[Item]) -> Rows {
    let empty = "No items. Make one: windlass item create ASM-001 --type assembly";
    let mut rows = Rows::new(&["PART NUMBER", "TYPE", "REV", "PROJECTS…", "UPDATED", "DESCRIPTION…"], empty);
    let now = times::now();
    for item in items {
        rows.add(vec![
            cell(&item.part_number),
            cell(&item.item_type),
            cell(item.revision.to_string()),
            cell(item.projects.join(", ")),
            cell(times::relative(&item.updated_at, now)),
            cell(cut(&item.description, 60)),
        ]);
    }
    rows
}

async fn show(context: &Context, client: &Client, part: &str) -> anyhow::Result<()> {
    let item = client.item(part).await?;
    if !context.format.is_table() {
        return context.format.one(&item, String::new);
    }
    let newest = client.revisions(part, &Paging { limit: Some(5), cursor: None }).await?;
    context.format.one(&item, || facts(&item, &newest.items))
}

fn facts(item: &Item, newest: &[Revision]) -> String {
    let now = times::now();
    let mut facts = Facts::default();
    facts.add("Item", &item.part_number).add("Type", &item.item_type).add("Schema", &item.schema);
    facts.add("Category", item.category.as_deref().unwrap_or_default());
    facts.add("Description", &item.description).add("Projects", item.projects.join(", "));
    let properties: Vec<String> = item.properties.iter().map(|(name, value)| format!("{name}={value}")).collect();
    facts.add("Properties", properties.join(", "));
    let when = |time: &str, who: &str| format!("{} by {who}", times::both(time, now));
    facts.add("Created", when(&item.created_at, &item.created_by));
    facts.add("Updated", when(&item.updated_at, &item.updated_by));
    for revision in newest {
        let when = times::relative(&revision.created_at, now);
        let told = format!("{when} by {}  {}", revision.created_by, cut(&revision.comment, 80));
        facts.add(&format!("Revision {}", revision.revision), told.trim_end());
    }
    facts.text()
}

fn revised(made: &Revision) -> String {
    let mut text = format!("{} is at revision {}", clean(&made.part_number), made.revision);
    for job in &made.jobs {
        text += &format!("\n  job {}  {}", job.job, clean(&job.definition));
    }
    text
}

impl Bom {
    async fn run(&self, context: &Context, client: &Client) -> anyhow::Result<()> {
        if self.leaves {
            let found = client.bom_leaves(&self.part).await?.items;
            return context.format.many(&found, || leaves(&found));
        }
        if self.tree {
            let found = client.bom_levels(&self.part, &BomDepth { depth: Some(self.depth) }).await?.items;
            return match context.format.is_table() {
                true => crate::output::say(tree(&self.part, &found)),
                false => context.format.many(&found, || rows(&found)),
            };
        }
        let found = all(async |paging| client.bom(&self.part, &paging).await).await?;
        context.format.many(&found, || rows(&found))
    }
}

fn relation(relation: Relation) -> &'static str {
    match relation {
        Relation::Component => "component",
        Relation::Alternate => "alternate",
        Relation::Reference => "reference",
    }
}

fn rows(found: &[BomRow]) -> Rows {
    let mut rows = Rows::new(
        &["PART NUMBER", "QUANTITY", "UNIT", "RELATION", "TYPE", "REV", "DESCRIPTION…"],
        "It contains nothing.",
    );
    for row in found {
        rows.add(vec![
            cell(&row.child),
            cell(row.quantity.to_string()),
            cell(row.unit.as_deref().unwrap_or_default()),
            cell(relation(row.relation)),
            cell(row.item_type.as_deref().unwrap_or_default()),
            cell(row.revision.map(|revision| revision.to_string()).unwrap_or_default()),
            cell(cut(row.description.as_deref().unwrap_or_default(), 60)),
        ]);
    }
    rows
}

fn users(found: &[BomRow]) -> Rows {
    let mut rows = Rows::new(&["PART NUMBER", "QUANTITY", "RELATION"], "Nothing contains it.");
    for row in found {
        rows.add(vec![cell(&row.parent), cell(row.quantity.to_string()), cell(relation(row.relation))]);
    }
    rows
}

fn leaves(found: &[Leaf]) -> Rows {
    let mut rows = Rows::new(&["PART NUMBER", "QUANTITY"], "It contains nothing.");
    for leaf in found {
        rows.add(vec![cell(&leaf.part_number), cell(leaf.quantity.to_string())]);
    }
    rows
}

/// Rows come with each parent before what it contains, so their levels are enough to draw by.
fn tree(root: &str, found: &[BomRow]) -> String {
    let mut text = clean(root);
    for row in found {
        let indent = "  ".repeat(row.level as usize);
        let unit = row.unit.as_ref().map(|unit| format!(" {}", clean(unit))).unwrap_or_default();
        let other = match row.relation {
            Relation::Component => String::new(),
            other => format!("  ({})", relation(other)),
        };
        text += &format!("\n{indent}{}  x {}{unit}{other}", clean(&row.child), row.quantity);
    }
    text
}
