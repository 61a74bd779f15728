//! Items: what there is to compute on.

use super::{
    body::{Json, Listed, Params, Path, Raw, Who, created, ok, page, time},
    error::No,
    files, graphs, namespace,
    store::{self, Change, Kept, Of, Put},
};
use crate::app::App;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
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

pub async fn find(app: &App, part: &str) -> Result<Kept<Item>, No> {
    store::get::<Item>(app, store::ITEM, part).await?.ok_or_else(|| No::missing("item", part))
}

/// By part number or by id.
pub async fn find_any(app: &App, name: &str) -> Result<Option<Kept<Item>>, No> {
    match store::get::<Item>(app, store::ITEM, name).await? {
        Some(found) => Ok(Some(found)),
        None => Ok(store::list::<Item>(app, store::ITEM, Of::With("id", &name.to_lowercase())).await?.pop()),
    }
}

pub fn put(item: &Item, expect: Expect) -> Result<Command, No> {
    let id = item.id.to_string();
    let put = Put::new(store::ITEM, &item.part_number, expect).facet("id", &id);
    put.facet("type", &item.item_type).facet("schema", &item.schema).value(item)
}

pub fn put_revision(item: &Item, revision: &Revision) -> Result<Command, No> {
    let key = format!("{}/{:010}", item.part_number, revision.number);
    Put::new(store::REVISION, &key, Expect::Nothing).under(&item.part_number).value(revision)
}

pub fn show(item: &Item) -> Value {
    json!({
        "id": item.id,
        "part_number": item.part_number,
        "item_type": item.item_type,
        "schema": item.schema,
        "category": item.category,
        "description": item.description,
        "properties": item.properties,
        "projects": item.projects,
        "current_revision": item.current_revision,
        "created_at": time(item.created_at),
        "updated_at": time(item.updated_at),
        "created_by": item.created_by,
        "updated_by": item.updated_by,
    })
}

#[derive(Deserialize)]
struct Create {
    part_number: Option<String>,
    item_type: Option<String>,
    schema: Option<String>,
    category: Option<String>,
    description: Option<String>,
    properties: Option<Map<String, Value>>,
    projects: Option<Vec<String>>,
}

impl Create {
    fn check(&self) -> Result<(), No> {
        self.part_number.as_deref().map_or(Ok(()), item::check_part_number)?;
        self.item_type.as_deref().map_or(Ok(()), item::check_item_type)?;
        self.schema.as_deref().map_or(Ok(()), item::check_schema)?;
        self.category.as_deref().map_or(Ok(()), item::check_category)?;
        check_description(self.description.as_deref())?;
        if self.part_number.is_none() && self.category.is_none() {
            return Err(No::invalid("part_number: give one, or a category to number the item by"));
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

fn check_description(text: Option<&str>) -> Result<(), No> {
    match text {
        Some(text) if text.len() > DESCRIPTION_BYTES_MAX => {
            Err(No::invalid(format!("description: may have {DESCRIPTION_BYTES_MAX} bytes")))
        }
        _ => Ok(()),
    }
}

/// Sorted, each once, and all there.
async fn known_projects(app: &App, codes: Option<&Vec<String>>) -> Result<Vec<String>, No> {
    let mut codes = codes.cloned().unwrap_or_default();
    codes.sort();
    codes.dedup();
    if codes.len() > PROJECTS_MAX {
        return Err(No::invalid(format!("projects: an item may be in {PROJECTS_MAX}")));
    }
    for code in &codes {
        super::projects::find(app, code).await?;
    }
    Ok(codes)
}

fn member(code: &str, part: &str) -> String {
    format!("{code}/{part}")
}

/// Records that say which projects an item is in.
fn memberships(part: &str, before: &[String], after: &[String]) -> Result<Vec<Command>, No> {
    let mut commands = Vec::new();
    for code in after.iter().filter(|code| !before.contains(code)) {
        commands.push(Put::new(store::MEMBER, &member(code, part), Expect::Anything).under(code).value(&part)?);
    }
    let gone = before.iter().filter(|code| !after.contains(code));
    commands.extend(gone.map(|code| store::delete(store::MEMBER, &member(code, part), Expect::Anything)));
    Ok(commands)
}

/// The next number of a category, and the record that keeps it. Numbers somebody took by hand are passed over.
async fn next_number(app: &App, schema: &str, category: &str) -> Result<(String, Command), No> {
    let key = format!("{schema}/{category}");
    let counter = store::get::<u64>(app, store::COUNTER, &key).await?;
    let mut n = counter.as_ref().map_or(1, |counter| counter.value + 1);
    while store::get::<Item>(app, store::ITEM, &item::numbered(category, n)).await?.is_some() {
        n += 1;
    }
    let put = Put::new(store::COUNTER, &key, store::as_found(counter.as_ref())).value(&n)?;
    Ok((item::numbered(category, n), put))
}

pub async fn create(State(app): State<App>, Who(caller): Who, raw: Raw) -> Result<Json<Value>, No> {
    let body: Create = raw.parse()?;
    body.check()?;
    let made = store::settle!(&app, {
        let projects = known_projects(&app, body.projects.as_ref()).await?;
        let (now, mut commands) = (app.engine.now().await?, Vec::new());
        let part = match (&body.part_number, &body.category) {
            (Some(part), _) => part.clone(),
            (None, Some(category)) => {
                let (part, count) = next_number(&app, body.schema.as_deref().unwrap_or("default"), category).await?;
                commands.push(count);
                part
            }
            (None, None) => return Err(No::invalid("category: needed to number the item")),
        };
        if store::get::<Item>(&app, store::ITEM, &part).await?.is_some() {
            return Err(No::conflict(format!("the item {part} exists already")));
        }
        let item = body.item(part, projects, &caller.name, now);
        let first = Revision {
            id: ids::job_id().0,
            number: 1,
            comment: String::new(),
            properties: Map::new(),
            created_at: now,
            created_by: caller.name.to_string(),
        };
        commands.extend([put(&item, Expect::Nothing)?, put_revision(&item, &first)?]);
        commands.extend(memberships(&item.part_number, &[], &item.projects)?);
        commands.push(store::tell("item.created", &about(&item)));
        Ok(Change { commands, answer: item })
    })?;
    Ok(created(show(&made)))
}

fn about(item: &Item) -> Value {
    // An event has a limit, and a description says enough with its beginning.
    let description: String = item.description.chars().take(1_000).collect();
    json!({"id": item.id, "part_number": item.part_number, "description": description, "item_type": item.item_type})
}

pub async fn list(State(app): State<App>, params: Params) -> Result<Listed<Value>, No> {
    let paging = params.page()?;
    let search = params.get("search").map(str::to_lowercase);
    let fits = |item: &Item| {
        let same = |name: &str, value: &str| params.get(name).is_none_or(|wanted| wanted == value);
        let found = |text: &str| search.as_ref().is_none_or(|search| text.to_lowercase().contains(search));
        same("item_type", &item.item_type)
            && same("schema", &item.schema)
            && params.get("project").is_none_or(|code| item.projects.iter().any(|project| project == code))
            && (found(&item.part_number) || found(&item.description))
    };
    let all = store::list::<Item>(&app, store::ITEM, Of::All).await?;
    let mut found: Vec<Item> = all.into_iter().map(|kept| kept.value).filter(fits).collect();
    found.sort_by_key(|item| std::cmp::Reverse((item.created_at, item.id)));
    let Listed(items, total) = page(found, paging);
    Ok(Listed(items.iter().map(show).collect(), total))
}

pub async fn one(State(app): State<App>, Path(part): Path<String>) -> Result<Json<Value>, No> {
    Ok(ok(show(&find(&app, &part).await?.value)))
}

pub async fn by_uuid(State(app): State<App>, Path(id): Path<String>) -> Result<Json<Value>, No> {
    let missing = || No::missing("item", &id);
    let id = windlass_api::Uuid::parse_str(&id).map_err(|_| missing())?.to_string();
    let found = store::list::<Item>(&app, store::ITEM, Of::With("id", &id)).await?.pop();
    Ok(ok(show(&found.ok_or_else(missing)?.value)))
}

#[derive(Deserialize)]
struct Update {
    description: Option<String>,
    item_type: Option<String>,
    properties: Option<Map<String, Value>>,
    projects: Option<Vec<String>>,
}

pub async fn update(
    State(app): State<App>,
    Who(caller): Who,
    Path(part): Path<String>,
    raw: Raw,
) -> Result<Json<Value>, No> {
    find(&app, &part).await?;
    let body: Update = raw.parse()?;
    body.item_type.as_deref().map_or(Ok(()), item::check_item_type)?;
    check_description(body.description.as_deref())?;
    let item = store::settle!(&app, {
        let kept = find(&app, &part).await?;
        let before = kept.value.clone();
        let projects = match &body.projects {
            Some(_) => known_projects(&app, body.projects.as_ref()).await?,
            None => before.projects.clone(),
        };
        let item = Item {
            description: body.description.clone().unwrap_or_else(|| before.description.clone()),
            item_type: body.item_type.clone().unwrap_or_else(|| before.item_type.clone()),
            properties: body.properties.clone().unwrap_or_else(|| before.properties.clone()),
            projects,
            updated_at: app.engine.now().await?,
            updated_by: caller.name.to_string(),
            ..before.clone()
        };
        let mut commands = vec![put(&item, kept.unchanged())?];
        commands.extend(memberships(&part, &before.projects, &item.projects)?);
        let told = json!({"id": item.id, "part_number": part, "revision": item.current_revision});
        commands.push(store::tell("item.updated", &told));
        Ok(Change { commands, answer: item })
    })?;
    Ok(ok(show(&item)))
}

/// Its revisions, files, rows and graphs go with it; jobs that wait for a runner are cancelled.
pub async fn delete(State(app): State<App>, Path(part): Path<String>) -> Result<StatusCode, No> {
    let contents = store::settle!(&app, {
        let kept = find(&app, &part).await?;
        if store::has(&app, store::BOM, Of::With("child", &part)).await? {
            return Err(No::conflict(format!("{part} is part of other items; take it out of their BOM first")));
        }
        let mut commands = vec![store::delete(store::ITEM, &part, kept.unchanged())];
        for revision in store::list::<Value>(&app, store::REVISION, Of::Under(&part)).await? {
            commands.push(store::delete(store::REVISION, &revision.key, Expect::Anything));
        }
        commands.extend(memberships(&part, &kept.value.projects, &[])?);
        // The epoch also keeps anybody from making it a child meanwhile.
        commands.push(super::bom::touch(&app).await?);
        for row in store::list::<Value>(&app, store::BOM, Of::Under(&part)).await? {
            commands.push(store::delete(store::BOM, &row.key, Expect::Anything));
        }
        for session in store::list::<Value>(&app, store::SESSION, Of::Under(&part)).await? {
            commands.push(store::delete(store::SESSION, &session.key, session.unchanged()));
        }
        commands.extend(graphs::remove(&app, &part).await?);
        let (forget, contents) = files::forget(&app, &part).await?;
        commands.extend(forget);
        commands.extend(cancel_pending(&app, &kept.value).await?);
        commands.push(store::tell("item.deleted", &json!({"id": kept.value.id, "part_number": part})));
        Ok(Change { commands, answer: contents })
    })?;
    files::remove(&app, contents).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn cancel_pending(app: &App, item: &Item) -> Result<Vec<Command>, No> {
    let query = JobQuery {
        namespace: Some(namespace()),
        states: vec![JobState::Pending],
        facet: Some(Facet::new("item", &item.id.to_string())),
        limit: PENDING_MAX,
        ..JobQuery::default()
    };
    let found = app.engine.store().jobs(&query).await?;
    let cancel = |id| Cancel { namespace: namespace(), job: id, by: "system".into() }.into();
    Ok(found.into_iter().map(|job| cancel(job.key.id)).collect())
}
