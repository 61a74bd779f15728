//! Items: found, listed newest first, made, changed, deleted.

use super::{
    Part, bom, files, graphs, namespace, projects,
    store::{self, Change, Kept, Of, Put},
};
use crate::{app::App, auth::Caller, content, problem::Problem};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Command, Facet, State as JobState, Timestamp,
    commands::{cancel::Cancel, records::Expect},
    product::item::{self, Item, Revision},
};
use windlass_engine::{ids, store::JobQuery};

const DESCRIPTION_BYTES_MAX: usize = 64 << 10;
const PROJECTS_MAX: usize = 200;
/// More of one item's jobs are not waiting at a time.
const PENDING_MAX: usize = 10_000;
/// Items looked at together while looking for some.
const PAGE: usize = 500;
/// Items one call looks at to fill its page; what is not found by then is on the next one.
const LOOKS_MAX: usize = 5_000;

pub async fn find(app: &App, part: &str) -> Result<Kept<Item>, Problem> {
    store::get::<Item>(app, store::ITEM, part).await?.ok_or_else(|| Problem::not_found("item", part))
}

/// By part number or by id.
pub async fn find_any(app: &App, name: &str) -> Result<Option<Kept<Item>>, Problem> {
    match store::get::<Item>(app, store::ITEM, name).await? {
        Some(found) => Ok(Some(found)),
        None => by_id(app, &name.to_lowercase()).await,
    }
}

pub async fn by_id(app: &App, id: &str) -> Result<Option<Kept<Item>>, Problem> {
    Ok(store::list::<Item>(app, store::ITEM, Of::With("id", id)).await?.pop())
}

pub fn put(item: &Item, expect: Expect) -> Result<Command, Problem> {
    let id = item.id.to_string();
    let put = Put::new(store::ITEM, &item.part_number, expect).facet("id", &id);
    put.facet("type", &item.item_type).facet("schema", &item.schema).value(item)
}

/// Its place among all items: ids grow with time, and so their complements fall.
fn age_key(item: &Item) -> String {
    format!("{:032x}", !item.id.as_u128())
}

fn put_age(item: &Item) -> Result<Command, Problem> {
    let key = age_key(item);
    let put = Put::new(store::ITEM_AGE, &key, Expect::Anything);
    put.facet("type", &item.item_type).facet("schema", &item.schema).value(&item.part_number)
}

pub fn put_revision(item: &Item, revision: &Revision) -> Result<Command, Problem> {
    let key = super::revisions::key(&item.part_number, revision.number);
    Put::new(store::REVISION, &key, Expect::Nothing).under(&item.part_number).value(revision)
}

/// Which items a list is about.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub item_type: Option<String>,
    pub schema: Option<String>,
    pub project: Option<String>,
    /// Part of the part number or the description, whatever its case.
    pub search: Option<String>,
}

impl Wanted {
    fn fits(&self, item: &Item) -> bool {
        let same = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        let search = self.search.as_ref().map(|search| search.to_lowercase());
        let found = |text: &str| search.as_ref().is_none_or(|search| text.to_lowercase().contains(search));
        same(&self.item_type, &item.item_type)
            && same(&self.schema, &item.schema)
            && self.project.as_ref().is_none_or(|code| item.projects.contains(code))
            && (found(&item.part_number) || found(&item.description))
    }

    fn index(&self) -> Of<'_> {
        match (&self.item_type, &self.schema) {
            (Some(kind), _) => Of::With("type", kind),
            (None, Some(schema)) => Of::With("schema", schema),
            (None, None) => Of::All,
        }
    }

    /// Whether the index alone says which items fit, so that none has to be read to be counted.
    fn is_indexed(&self) -> bool {
        let both = self.item_type.is_some() && self.schema.is_some();
        !both && self.project.is_none() && self.search.is_none()
    }
}

/// The items behind a page of the index; those that went meanwhile are left out.
async fn behind(app: &App, index: &[Kept<String>]) -> Result<Vec<Item>, Problem> {
    let mut found = Vec::with_capacity(index.len());
    for at in index {
        found.extend(store::get::<Item>(app, store::ITEM, &at.value).await?.map(|kept| kept.value));
    }
    Ok(found)
}

/// Newest first, from `offset` on, with the count of all. Reads the page and, where the index does not say enough, every item.
pub async fn some(app: &App, wanted: &Wanted, offset: usize, limit: usize) -> Result<Part<Item>, Problem> {
    let (mut found, mut seen, mut after) = (Vec::new(), 0, None);
    let indexed = wanted.is_indexed();
    loop {
        let index = store::page::<String>(app, store::ITEM_AGE, wanted.index(), after, PAGE).await?;
        let more = index.len() == PAGE;
        after = index.last().map(|last| last.key.clone());
        if indexed {
            let from = offset.saturating_sub(seen).min(index.len());
            let to = (from + limit - found.len()).min(index.len());
            found.extend(behind(app, &index[from..to]).await?);
            seen += index.len();
            if found.len() == limit || !more {
                let total = store::count(app, store::ITEM_AGE, wanted.index()).await?;
                return Ok(Part { found, total });
            }
            continue;
        }
        for item in behind(app, &index).await?.into_iter().filter(|item| wanted.fits(item)) {
            if seen >= offset && found.len() < limit {
                found.push(item);
            }
            seen += 1;
        }
        if !more {
            return Ok(Part { found, total: seen });
        }
    }
}

/// Newest first, after a place; and the place to go on from, where there may be more.
pub async fn page(
    app: &App,
    wanted: &Wanted,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(Vec<Item>, Option<String>), Problem> {
    let (mut found, mut looked, mut after) = (Vec::new(), 0, cursor.map(Arc::<str>::from));
    loop {
        let size = if wanted.is_indexed() { limit - found.len() } else { PAGE };
        let index = store::page::<String>(app, store::ITEM_AGE, wanted.index(), after, size).await?;
        let more = index.len() == size;
        looked += index.len();
        for at in &index {
            let item = store::get::<Item>(app, store::ITEM, &at.value).await?;
            found.extend(item.map(|kept| kept.value).filter(|item| wanted.fits(item)));
            if found.len() == limit {
                return Ok((found, Some(at.key.to_string())));
            }
        }
        after = index.last().map(|last| last.key.clone());
        if !more || looked >= LOOKS_MAX {
            return Ok((found, after.filter(|_| more).map(|key| key.to_string())));
        }
    }
}

/// An item to be.
#[derive(Clone, Debug, Default)]
pub struct NewItem {
    /// None: numbered by its category.
    pub part_number: Option<String>,
    pub item_type: Option<String>,
    pub schema: Option<String>,
    pub category: Option<String>,
    pub description: Option<String>,
    pub properties: Option<Map<String, Value>>,
    pub projects: Option<Vec<String>>,
}

impl NewItem {
    pub fn check(&self) -> Result<(), Problem> {
        self.part_number.as_deref().map_or(Ok(()), item::check_part_number)?;
        self.item_type.as_deref().map_or(Ok(()), item::check_item_type)?;
        self.schema.as_deref().map_or(Ok(()), item::check_schema)?;
        self.category.as_deref().map_or(Ok(()), item::check_category)?;
        check_description(self.description.as_deref())?;
        if self.part_number.is_none() && self.category.is_none() {
            return Err(Problem::invalid("part_number", "give one, or a category to number the item by"));
        }
        Ok(())
    }

    fn item(&self, part_number: String, projects: Vec<String>, by: &str, now: Timestamp) -> Item {
        Item {
            id: ids::job_id().0,
            part_number,
            item_type: self.item_type.clone().unwrap_or_else(|| "part".into()),
            schema: self.schema.clone().unwrap_or_else(|| "default".into()),
            category: self.category.clone(),
            description: self.description.clone().unwrap_or_default(),
            properties: self.properties.clone().unwrap_or_default(),
            projects,
            current_revision: 1,
            created_at: now,
            created_by: by.to_owned(),
            updated_at: now,
            updated_by: by.to_owned(),
        }
    }
}

fn check_description(text: Option<&str>) -> Result<(), Problem> {
    match text {
        Some(text) if text.len() > DESCRIPTION_BYTES_MAX => {
            Err(Problem::invalid("description", format!("may have {DESCRIPTION_BYTES_MAX} bytes")))
        }
        _ => Ok(()),
    }
}

/// Sorted, each once, and all there.
async fn known_projects(app: &App, codes: Option<&Vec<String>>) -> Result<Vec<String>, Problem> {
    let mut codes = codes.cloned().unwrap_or_default();
    codes.sort();
    codes.dedup();
    if codes.len() > PROJECTS_MAX {
        return Err(Problem::invalid("projects", format!("an item may be in {PROJECTS_MAX}")));
    }
    for code in &codes {
        projects::find(app, code).await?;
    }
    Ok(codes)
}

fn member(code: &str, part: &str) -> String {
    format!("{code}/{part}")
}

/// Records that say which projects an item is in.
fn memberships(part: &str, before: &[String], after: &[String]) -> Result<Vec<Command>, Problem> {
    let mut commands = Vec::new();
    for code in after.iter().filter(|code| !before.contains(code)) {
        commands.push(Put::new(store::MEMBER, &member(code, part), Expect::Anything).under(code).value(&part)?);
    }
    let gone = before.iter().filter(|code| !after.contains(code));
    commands.extend(gone.map(|code| store::delete(store::MEMBER, &member(code, part), Expect::Anything)));
    Ok(commands)
}

/// The next number of a category, and the record that keeps it. Numbers somebody took by hand are passed over.
async fn next_number(app: &App, schema: &str, category: &str) -> Result<(String, Command), Problem> {
    let key = format!("{schema}/{category}");
    let counter = store::get::<u64>(app, store::COUNTER, &key).await?;
    let mut n = counter.as_ref().map_or(1, |counter| counter.value + 1);
    while store::get::<Item>(app, store::ITEM, &item::numbered(category, n)).await?.is_some() {
        n += 1;
    }
    let put = Put::new(store::COUNTER, &key, store::as_found(counter.as_ref())).value(&n)?;
    Ok((item::numbered(category, n), put))
}

pub async fn create(app: &App, caller: &Caller, new: &NewItem) -> Result<Item, Problem> {
    new.check()?;
    store::settle!(app, Problem, {
        let projects = known_projects(app, new.projects.as_ref()).await?;
        let (now, mut commands) = (app.engine.now().await?, Vec::new());
        let part = match (&new.part_number, &new.category) {
            (Some(part), _) => part.clone(),
            (None, category) => {
                let schema = new.schema.as_deref().unwrap_or("default");
                let (part, count) = next_number(app, schema, category.as_deref().unwrap_or_default()).await?;
                commands.push(count);
                part
            }
        };
        if store::get::<Item>(app, store::ITEM, &part).await?.is_some() {
            return Err(Problem::new("exists", format!("the item {part} exists already")));
        }
        let item = new.item(part, projects, &caller.name, now);
        let first = Revision {
            id: ids::job_id().0,
            number: 1,
            comment: String::new(),
            properties: Map::new(),
            created_at: now,
            created_by: caller.name.to_string(),
        };
        commands.extend([put(&item, Expect::Nothing)?, put_age(&item)?, put_revision(&item, &first)?]);
        commands.extend(memberships(&item.part_number, &[], &item.projects)?);
        commands.push(store::tell("item.created", &about(&item)));
        Ok(Change { commands, answer: item })
    })
}

fn about(item: &Item) -> Value {
    // An event has a limit, and a description says enough with its beginning.
    let description: String = item.description.chars().take(1_000).collect();
    json!({"id": item.id, "part_number": item.part_number, "description": description, "item_type": item.item_type})
}

/// What to change about an item; what is absent stays.
#[derive(Clone, Debug, Default)]
pub struct ItemChange {
    pub description: Option<String>,
    pub item_type: Option<String>,
    pub properties: Option<Map<String, Value>>,
    pub projects: Option<Vec<String>>,
}

pub async fn update(app: &App, caller: &Caller, part: &str, change: &ItemChange) -> Result<Item, Problem> {
    change.item_type.as_deref().map_or(Ok(()), item::check_item_type)?;
    check_description(change.description.as_deref())?;
    store::settle!(app, Problem, {
        let kept = find(app, part).await?;
        let before = kept.value.clone();
        let projects = match &change.projects {
            Some(_) => known_projects(app, change.projects.as_ref()).await?,
            None => before.projects.clone(),
        };
        let item = Item {
            description: change.description.clone().unwrap_or_else(|| before.description.clone()),
            item_type: change.item_type.clone().unwrap_or_else(|| before.item_type.clone()),
            properties: change.properties.clone().unwrap_or_else(|| before.properties.clone()),
            projects,
            updated_at: app.engine.now().await?,
            updated_by: caller.name.to_string(),
            ..before.clone()
        };
        let mut commands = vec![put(&item, kept.unchanged())?];
        if item.item_type != before.item_type {
            commands.push(put_age(&item)?);
        }
        commands.extend(memberships(part, &before.projects, &item.projects)?);
        let told = json!({"id": item.id, "part_number": part, "revision": item.current_revision});
        commands.push(store::tell("item.updated", &told));
        Ok(Change { commands, answer: item })
    })
}

/// Its revisions, files, rows and graphs go with it; jobs that wait for a runner are cancelled.
pub async fn delete(app: &App, part: &str) -> Result<(), Problem> {
    let contents = async { files::forget(app, part).await.map(|(_, contents)| contents) };
    let contents = content::freeing(app, contents, || delete_records(app, part)).await?;
    files::remove(app, contents).await;
    Ok(())
}

/// The content of its files, which is to be removed.
async fn delete_records(app: &App, part: &str) -> Result<Vec<Uuid>, Problem> {
    store::settle!(app, Problem, {
        let kept = find(app, part).await?;
        if store::has(app, store::BOM, Of::With("child", part)).await? {
            let why = format!("{part} is part of other items; take it out of their BOM first");
            return Err(Problem::new("in-use", why));
        }
        let age = age_key(&kept.value);
        let mut commands = vec![
            store::delete(store::ITEM, part, kept.unchanged()),
            store::delete(store::ITEM_AGE, &age, Expect::Anything),
        ];
        for revision in store::list::<Value>(app, store::REVISION, Of::Under(part)).await? {
            commands.push(store::delete(store::REVISION, &revision.key, Expect::Anything));
        }
        commands.extend(memberships(part, &kept.value.projects, &[])?);
        // The epoch also keeps anybody from making it a child meanwhile.
        commands.push(bom::touch(app).await?);
        for row in store::list::<Value>(app, store::BOM, Of::Under(part)).await? {
            commands.push(store::delete(store::BOM, &row.key, Expect::Anything));
        }
        for session in store::list::<Value>(app, store::SESSION, Of::Under(part)).await? {
            commands.push(store::delete(store::SESSION, &session.key, session.unchanged()));
        }
        commands.extend(graphs::remove(app, part).await?);
        let (forget, contents) = files::forget(app, part).await?;
        commands.extend(forget);
        commands.extend(cancel_pending(app, &kept.value).await?);
        commands.push(store::tell("item.deleted", &json!({"id": kept.value.id, "part_number": part})));
        Ok(Change { commands, answer: contents })
    })
}

async fn cancel_pending(app: &App, item: &Item) -> Result<Vec<Command>, Problem> {
    let query = JobQuery {
        namespace: Some(namespace()),
        states: vec![JobState::Pending],
        facet: Some(Facet::new("item", &item.id.to_string())),
        limit: PENDING_MAX,
        ..JobQuery::default()
    };
    let found = app.engine.store().jobs(&query).await?;
    let cancel = |id| Cancel { namespace: namespace(), job: id, by: "system".into(), mode: None }.into();
    Ok(found.into_iter().map(|job| cancel(job.key.id)).collect())
}
