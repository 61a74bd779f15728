//! Items: found, listed newest first, made, changed, deleted.

pub use crate::item_rows::{by_id, find, find_any, put, put_revision};
use crate::{
    Error, Part, Products, bom, files, graphs, projects,
    records::{self, Change, Kept, Of, Put},
    rules::item::{self, Item, Revision},
    write_change,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use uuid::Uuid;
use windlass_core::{
    Command, Facet, Refusal, State as JobState, Timestamp,
    commands::{cancel::Cancel, records::Expect},
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

/// Its place among all items: ids grow with time, and so their complements fall.
fn age_key(item: &Item) -> String {
    format!("{:032x}", !item.id.as_u128())
}

fn put_age(products: &Products, item: &Item) -> Result<Command, Error> {
    let key = age_key(item);
    let put = Put::new(products, records::ITEM_AGE, &key, Expect::Anything);
    put.facet("type", &item.item_type).facet("schema", &item.schema).value(&item.part_number)
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
async fn behind(products: &Products, index: &[Kept<String>]) -> Result<Vec<Item>, Error> {
    let mut found = Vec::with_capacity(index.len());
    for at in index {
        found.extend(records::get(products, records::ITEM, &at.value).await?.map(|kept| kept.value));
    }
    Ok(found)
}

/// Newest first, from `offset` on, with the count of all. Reads the page and, where the index does not say enough, every item.
pub async fn some(products: &Products, wanted: &Wanted, offset: usize, limit: usize) -> Result<Part<Item>, Error> {
    let (mut found, mut seen, mut after) = (Vec::new(), 0, None);
    let indexed = wanted.is_indexed();
    loop {
        let index = records::page(products, records::ITEM_AGE, wanted.index(), after, PAGE).await?;
        let more = index.len() == PAGE;
        after = index.last().map(|last| last.key.clone());
        if indexed {
            let from = offset.saturating_sub(seen).min(index.len());
            let to = (from + limit - found.len()).min(index.len());
            found.extend(behind(products, &index[from..to]).await?);
            seen += index.len();
            if found.len() == limit || !more {
                let total = records::count(products, records::ITEM_AGE, wanted.index()).await?;
                return Ok(Part { found, total });
            }
            continue;
        }
        for item in behind(products, &index).await?.into_iter().filter(|item| wanted.fits(item)) {
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
    products: &Products,
    wanted: &Wanted,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(Vec<Item>, Option<String>), Error> {
    let (mut found, mut looked, mut after) = (Vec::new(), 0, cursor.map(Arc::<str>::from));
    loop {
        let size = if wanted.is_indexed() { limit - found.len() } else { PAGE };
        let index = records::page(products, records::ITEM_AGE, wanted.index(), after, size).await?;
        let more = index.len() == size;
        looked += index.len();
        for at in &index {
            let item = records::get(products, records::ITEM, &at.value).await?;
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
    pub fn check(&self) -> Result<(), Error> {
        self.part_number.as_deref().map_or(Ok(()), item::check_part_number)?;
        self.item_type.as_deref().map_or(Ok(()), item::check_item_type)?;
        self.schema.as_deref().map_or(Ok(()), item::check_schema)?;
        self.category.as_deref().map_or(Ok(()), item::check_category)?;
        check_description(self.description.as_deref())?;
        if self.part_number.is_none() && self.category.is_none() {
            return Err(Error::invalid("part_number", "give one, or a category to number the item by"));
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

fn check_description(text: Option<&str>) -> Result<(), Error> {
    match text {
        Some(text) if text.len() > DESCRIPTION_BYTES_MAX => {
            Err(Error::invalid("description", format!("may have {DESCRIPTION_BYTES_MAX} bytes")))
        }
        _ => Ok(()),
    }
}

/// Sorted, each once, and all there.
async fn known_projects(products: &Products, codes: Option<&Vec<String>>) -> Result<Vec<String>, Error> {
    let mut codes = codes.cloned().unwrap_or_default();
    codes.sort();
    codes.dedup();
    if codes.len() > PROJECTS_MAX {
        return Err(Error::invalid("projects", format!("an item may be in {PROJECTS_MAX}")));
    }
    for code in &codes {
        projects::find(products, code).await?;
    }
    Ok(codes)
}

fn member(code: &str, part: &str) -> String {
    format!("{code}/{part}")
}

/// Records that say which projects an item is in.
fn memberships(products: &Products, part: &str, before: &[String], after: &[String]) -> Result<Vec<Command>, Error> {
    let mut commands = Vec::new();
    for code in after.iter().filter(|code| !before.contains(code)) {
        commands.push(
            Put::new(products, records::MEMBER, &member(code, part), Expect::Anything)
                .under(code)
                .value(&part.to_owned())?,
        );
    }
    let gone = before.iter().filter(|code| !after.contains(code));
    commands.extend(gone.map(|code| records::delete(products, records::MEMBER, &member(code, part), Expect::Anything)));
    Ok(commands)
}

/// The next number of a category, and the record that keeps it. Numbers somebody took by hand are passed over.
async fn next_number(products: &Products, schema: &str, category: &str) -> Result<(String, Command), Error> {
    let key = format!("{schema}/{category}");
    let counter = records::get(products, records::COUNTER, &key).await?;
    let mut n = counter.as_ref().map_or(1, |counter| counter.value + 1);
    while records::get(products, records::ITEM, &item::numbered(category, n)).await?.is_some() {
        n += 1;
    }
    let put = Put::new(products, records::COUNTER, &key, records::as_found(counter.as_ref())).value(&n)?;
    Ok((item::numbered(category, n), put))
}

pub async fn create(products: &Products, by: &Arc<str>, new: &NewItem) -> Result<Item, Error> {
    new.check()?;
    write_change!(products, Error, {
        let projects = known_projects(products, new.projects.as_ref()).await?;
        let (now, mut commands) = (products.engine().now().await?, Vec::new());
        let part = match (&new.part_number, &new.category) {
            (Some(part), _) => part.clone(),
            (None, category) => {
                let schema = new.schema.as_deref().unwrap_or("default");
                let (part, count) = next_number(products, schema, category.as_deref().unwrap_or_default()).await?;
                commands.push(count);
                part
            }
        };
        if records::get(products, records::ITEM, &part).await?.is_some() {
            return Err(Refusal::Exists { what: "item", name: part }.into());
        }
        let item = new.item(part, projects, by, now);
        let first = Revision {
            id: ids::job_id().0,
            number: 1,
            comment: String::new(),
            properties: Map::new(),
            created_at: now,
            created_by: by.to_string(),
        };
        commands.extend([
            put(products, &item, Expect::Nothing)?,
            put_age(products, &item)?,
            put_revision(products, &item, &first)?,
        ]);
        commands.extend(memberships(products, &item.part_number, &[], &item.projects)?);
        commands.push(records::tell(products, "item.created", &about(&item)));
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

pub async fn update(products: &Products, by: &Arc<str>, part: &str, change: &ItemChange) -> Result<Item, Error> {
    change.item_type.as_deref().map_or(Ok(()), item::check_item_type)?;
    check_description(change.description.as_deref())?;
    write_change!(products, Error, {
        let kept = find(products, part).await?;
        let before = kept.value.clone();
        let projects = match &change.projects {
            Some(_) => known_projects(products, change.projects.as_ref()).await?,
            None => before.projects.clone(),
        };
        let item = Item {
            description: change.description.clone().unwrap_or_else(|| before.description.clone()),
            item_type: change.item_type.clone().unwrap_or_else(|| before.item_type.clone()),
            properties: change.properties.clone().unwrap_or_else(|| before.properties.clone()),
            projects,
            updated_at: products.engine().now().await?,
            updated_by: by.to_string(),
            ..before.clone()
        };
        let mut commands = vec![put(products, &item, kept.unchanged())?];
        if item.item_type != before.item_type {
            commands.push(put_age(products, &item)?);
        }
        commands.extend(memberships(products, part, &before.projects, &item.projects)?);
        let told = json!({"id": item.id, "part_number": part, "revision": item.current_revision});
        commands.push(records::tell(products, "item.updated", &told));
        Ok(Change { commands, answer: item })
    })
}

/// Its revisions, files, rows, locks and graphs go with it; jobs that wait for a worker are cancelled. Answers with the contents
/// of its files, which nobody knows any more.
pub async fn delete(products: &Products, part: &str) -> Result<Vec<Uuid>, Error> {
    write_change!(products, Error, {
        let kept = find(products, part).await?;
        if records::has(products, records::BOM, Of::With("child", part)).await? {
            return Err(Error::Contained { part: part.to_owned() });
        }
        let age = age_key(&kept.value);
        let mut commands = vec![
            records::delete(products, records::ITEM, part, kept.unchanged()),
            records::delete(products, records::ITEM_AGE, &age, Expect::Anything),
        ];
        commands.extend(records::delete_all(products, records::REVISION, Of::Under(part)).await?);
        commands.extend(memberships(products, part, &kept.value.projects, &[])?);
        // The epoch also keeps anybody from making it a child meanwhile.
        commands.push(bom::touch(products).await?);
        commands.extend(records::delete_all(products, records::BOM, Of::Under(part)).await?);
        for session in records::raw(products, crate::edits::SESSION, Of::Under(part)).await? {
            let unchanged = Expect::Version(session.version);
            commands.push(records::delete(products, crate::edits::SESSION, &session.key.key, unchanged));
        }
        commands.extend(graphs::remove(products, part).await?);
        let (forget, contents) = files::forget(products, part).await?;
        commands.extend(forget);
        commands.extend(cancel_pending(products, &kept.value).await?);
        commands.push(records::tell(products, "item.deleted", &json!({"id": kept.value.id, "part_number": part})));
        Ok(Change { commands, answer: contents })
    })
}

async fn cancel_pending(products: &Products, item: &Item) -> Result<Vec<Command>, Error> {
    let query = JobQuery {
        namespace: Some(products.namespace().clone()),
        states: vec![JobState::Pending],
        facet: Some(Facet::new("item", &item.id.to_string())),
        limit: PENDING_MAX,
        ..JobQuery::default()
    };
    let found = products.engine().store().jobs(&query).await?;
    let cancel = |id| {
        Cancel { namespace: products.namespace().clone(), job: id, by: "system".into(), mode: None, message: "".into() }
            .into()
    };
    Ok(found.into_iter().map(|job| cancel(job.key.id)).collect())
}
