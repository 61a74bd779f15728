//! `/api/v1/items` and `/api/v1/projects`: what is made, its revisions, and what contains what. Every namespace has its own.

use super::jobs::page_size;
use crate::{
    app::App,
    ask::{Answer, Ask, Path, Query, Sent, ok},
    problem::{Code, Problem, Result},
    product::files,
    route::{Access, Route},
    wire_time::text,
};
use axum::extract::{FromRequestParts, State};
use http::{Method, StatusCode, request::Parts};
use windlass_api::{
    item::{
        BomDepth, BomRow, ChangedQuantity, CreateItem, CreateProject, CreateRevision, Item, Leaf, ListItems, MergeBom,
        MergedBom, Project, PutBomRow, Relation, Revision, SetOff, Source, UpdateItem,
    },
    page::{Page, Paging},
};
use windlass_product::{
    Fired, Products,
    bom::{self, Mode, NewRow},
    items::{self as kept, ItemChange, NewItem, Wanted},
    projects::{self, NewProject},
    records::{self, Of},
    revisions::{self, NewRevision},
    rules::{bom as rules, item as facts},
};

pub fn routes() -> Vec<Route> {
    [item_routes(), bom_routes(), project_routes()].concat()
}

fn item_routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/items", Access::Viewer, list)
            .says("List items, newest first")
            .query::<ListItems>()
            .answers::<Page<Item>>(200)
            .refuses(&[Code::Invalid]),
        Route::post("/api/v1/items", Access::Editor, create)
            .says("Create an item and its first revision")
            .takes::<CreateItem>()
            .answers::<Item>(201)
            .refuses(&[Code::Invalid, Code::Exists, Code::NotFound, Code::VersionMismatch]),
        Route::get("/api/v1/items/{part_number}", Access::Viewer, show)
            .says("One item")
            .answers::<Item>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::new(Method::PATCH, "/api/v1/items/{part_number}", Access::Editor, update)
            .says("Change an item; absent fields stay as they are")
            .takes::<UpdateItem>()
            .answers::<Item>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::VersionMismatch]),
        Route::delete("/api/v1/items/{part_number}", Access::Editor, delete)
            .says("Delete an item with its revisions, rows and graphs; its waiting jobs are cancelled")
            .answers_with(204, "")
            .refuses(&[Code::NotFound, Code::InUse, Code::Invalid, Code::VersionMismatch]),
        Route::get("/api/v1/items/{part_number}/revisions", Access::Viewer, list_revisions)
            .says("An item's revisions, newest first")
            .query::<Paging>()
            .answers::<Page<Revision>>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::post("/api/v1/items/{part_number}/revisions", Access::Editor, revise)
            .says("Create a revision and the jobs it triggers")
            .takes::<CreateRevision>()
            .answers::<Revision>(201)
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooLarge, Code::VersionMismatch]),
        Route::get("/api/v1/items/{part_number}/revisions/{revision}", Access::Viewer, show_revision)
            .says("One revision")
            .answers::<Revision>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
    ]
}

fn bom_routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/items/{part_number}/bom", Access::Viewer, list_bom)
            .says("What an item contains directly, by part number")
            .query::<Paging>()
            .answers::<Page<BomRow>>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
        Route::get("/api/v1/items/{part_number}/bom/levels", Access::Viewer, levels)
            .says("What an item contains on all levels, each parent before its children")
            .query::<BomDepth>()
            .answers::<Page<BomRow>>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooLarge]),
        Route::get("/api/v1/items/{part_number}/bom/leaves", Access::Viewer, leaves)
            .says("All parts without a bill of material of their own, with their total quantities")
            .answers::<Page<Leaf>>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::Cycle, Code::TooLarge]),
        Route::post("/api/v1/items/{part_number}/bom/merge", Access::Editor, merge)
            .behind()
            .says("Merge the contents of a CAD assembly, and create the jobs this triggers")
            .takes::<MergeBom>()
            .answers::<MergedBom>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::Cycle, Code::TooLarge, Code::VersionMismatch]),
        Route::put("/api/v1/items/{part_number}/bom/rows/{child}", Access::Editor, put_row)
            .says("Create or change a row")
            .takes::<PutBomRow>()
            .answers::<BomRow>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::Cycle, Code::TooLarge, Code::VersionMismatch]),
        Route::delete("/api/v1/items/{part_number}/bom/rows/{child}", Access::Editor, delete_row)
            .says("Delete a row")
            .answers_with(204, "")
            .refuses(&[Code::NotFound, Code::Invalid, Code::VersionMismatch]),
        Route::get("/api/v1/items/{part_number}/where-used", Access::Viewer, where_used)
            .says("What contains an item directly, by part number")
            .query::<Paging>()
            .answers::<Page<BomRow>>(200)
            .refuses(&[Code::NotFound, Code::Invalid]),
    ]
}

fn project_routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/projects", Access::Viewer, list_projects)
            .says("List projects by code")
            .query::<Paging>()
            .answers::<Page<Project>>(200)
            .refuses(&[Code::Invalid]),
        Route::post("/api/v1/projects", Access::Editor, create_project)
            .says("Create a project")
            .takes::<CreateProject>()
            .answers::<Project>(201)
            .refuses(&[Code::Invalid, Code::Exists, Code::VersionMismatch]),
    ]
}

/// The items that are asked about, and who asks.
pub struct Here {
    pub ask: Ask,
    pub products: Products,
}

impl FromRequestParts<App> for Here {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let ask = Ask::from_request_parts(parts, app).await?;
        let products = app.products(&ask.namespace);
        Ok(Self { ask, products })
    }
}

fn made<T>(body: T) -> Answer<T> {
    Answer(StatusCode::CREATED, body)
}

fn wire(item: facts::Item) -> Item {
    Item {
        id: item.id,
        part_number: item.part_number,
        item_type: item.item_type,
        schema: item.schema,
        category: item.category,
        description: item.description,
        properties: item.properties,
        projects: item.projects,
        revision: item.current_revision,
        created_at: text(item.created_at),
        created_by: item.created_by,
        updated_at: text(item.updated_at),
        updated_by: item.updated_by,
    }
}

async fn list(Here { products, .. }: Here, Query(query): Query<ListItems>) -> Result<Answer<Page<Item>>> {
    let limit = page_size(query.limit)?;
    let ListItems { item_type, schema, project, search, cursor, .. } = query;
    let wanted = Wanted { item_type, schema, project, search };
    let (found, next) = kept::page(&products, &wanted, cursor.as_deref(), limit).await?;
    Ok(ok(Page { items: found.into_iter().map(wire).collect(), next }))
}

async fn create(Here { ask, products }: Here, Sent(body): Sent<CreateItem>) -> Result<Answer<Item>> {
    let CreateItem { part_number, item_type, schema, category, description, properties, projects } = body;
    let new = NewItem { part_number, item_type, schema, category, description, properties, projects };
    Ok(made(wire(kept::create(&products, &ask.caller.name, &new).await?)))
}

async fn show(Here { products, .. }: Here, Path(part): Path<String>) -> Result<Answer<Item>> {
    Ok(ok(wire(kept::find(&products, &part).await?.value)))
}

async fn update(
    Here { ask, products }: Here,
    Path(part): Path<String>,
    Sent(body): Sent<UpdateItem>,
) -> Result<Answer<Item>> {
    let UpdateItem { item_type, description, properties, projects } = body;
    let change = ItemChange { description, item_type, properties, projects };
    Ok(ok(wire(kept::update(&products, &ask.caller.name, &part, &change).await?)))
}

async fn delete(State(app): State<App>, Here { products, .. }: Here, Path(part): Path<String>) -> Result<StatusCode> {
    files::delete_item(&app, &products, &part).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn wire_revision(part: &str, revision: facts::Revision, jobs: Vec<SetOff>) -> Revision {
    Revision {
        id: revision.id,
        part_number: part.to_owned(),
        revision: revision.number,
        comment: revision.comment,
        properties: revision.properties,
        created_at: text(revision.created_at),
        created_by: revision.created_by,
        jobs,
    }
}

fn set_off(fired: Vec<Fired>) -> Vec<SetOff> {
    let definition = |fired: &Fired| fired.definition.as_deref().unwrap_or_default().to_owned();
    fired.iter().map(|fired| SetOff { job: fired.job.0, definition: definition(fired) }).collect()
}

async fn list_revisions(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<Revision>>> {
    let (item, limit) = (kept::find(&products, &part).await?.value, page_size(query.limit)?);
    let wrong = |_| Problem::invalid("cursor", "hand back `next` as it came");
    let newest = query.cursor.map_or(Ok(u32::MAX), |cursor| cursor.parse().map_err(wrong))?;
    let found = revisions::page(&products, &item, newest, limit).await?;
    let next = found.last().map(|last| last.number - 1).filter(|next| *next > 0).map(|next| next.to_string());
    Ok(ok(Page { items: found.into_iter().map(|one| wire_revision(&part, one, Vec::new())).collect(), next }))
}

async fn revise(
    Here { ask, products }: Here,
    Path(part): Path<String>,
    Sent(body): Sent<CreateRevision>,
) -> Result<Answer<Revision>> {
    let new = NewRevision { comment: body.comment, properties: body.properties, quiet: body.quiet };
    let done = revisions::create(&products, &ask.caller.name, &part, &new).await?;
    Ok(made(wire_revision(&part, done.revision, set_off(done.fired))))
}

async fn show_revision(
    Here { products, .. }: Here,
    Path((part, number)): Path<(String, String)>,
) -> Result<Answer<Revision>> {
    let item = kept::find(&products, &part).await?.value;
    let number = number.parse().map_err(|_| Problem::not_found("revision", &number))?;
    Ok(ok(wire_revision(&part, revisions::find(&products, &item, number).await?, Vec::new())))
}

fn wire_row(parent: &str, row: &rules::Row, level: u32, child: Option<&facts::Item>) -> BomRow {
    BomRow {
        parent: parent.to_owned(),
        child: row.child.clone(),
        level,
        relation: match row.relation {
            rules::Relation::Component => Relation::Component,
            rules::Relation::Alternate => Relation::Alternate,
            rules::Relation::Reference => Relation::Reference,
        },
        quantity: row.quantity,
        unit: row.unit.clone(),
        designators: row.designators.clone(),
        source: match row.source {
            rules::Source::Manual => Source::Manual,
            rules::Source::Assembly => Source::Assembly,
        },
        item_type: child.map(|child| child.item_type.clone()),
        description: child.map(|child| child.description.clone()),
        revision: child.map(|child| child.current_revision),
    }
}

async fn list_bom(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<BomRow>>> {
    kept::find(&products, &part).await?;
    let limit = page_size(query.limit)?;
    let rows = bom::page(&products, &part, query.cursor.as_deref(), limit).await?;
    let known = bom::items_of(&products, rows.iter().map(|row| row.child.clone()).collect()).await?;
    let next = rows.last().filter(|_| rows.len() == limit).map(|row| row.child.clone());
    let items = rows.iter().map(|row| wire_row(&part, row, 1, known.get(&row.child))).collect();
    Ok(ok(Page { items, next }))
}

async fn levels(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Query(query): Query<BomDepth>,
) -> Result<Answer<Page<BomRow>>> {
    kept::find(&products, &part).await?;
    let depth = query.depth.unwrap_or(bom::DEPTH);
    if !(1..=bom::DEPTH_MAX).contains(&depth) {
        return Err(Problem::invalid("depth", format!("{depth} is not between 1 and {}", bom::DEPTH_MAX)));
    }
    let below = bom::below(&products, &part, depth).await?;
    let levels = below.expanded(&part, depth)?;
    let known = bom::items_of(&products, levels.iter().map(|level| level.row.child.clone()).collect()).await?;
    let row = |at: &rules::Level| wire_row(at.parent, at.row, at.level, known.get(&at.row.child));
    Ok(ok(Page { items: levels.iter().map(row).collect(), next: None }))
}

fn leaf((part_number, quantity): (String, f64)) -> Leaf {
    Leaf { part_number, quantity }
}

async fn leaves(Here { products, .. }: Here, Path(part): Path<String>) -> Result<Answer<Page<Leaf>>> {
    kept::find(&products, &part).await?;
    let found = bom::below(&products, &part, u32::MAX).await?.flat(&part)?;
    Ok(ok(Page { items: found.into_iter().map(leaf).collect(), next: None }))
}

async fn merge(
    Here { ask, products }: Here,
    Path(part): Path<String>,
    Sent(body): Sent<MergeBom>,
) -> Result<Answer<MergedBom>> {
    let entries = bom::entries(body.entries.into_iter().map(|entry| (entry.child, entry.quantity)))?;
    let done = bom::merge(&products, &ask.caller.name, &part, &entries).await?;
    let all = |list: Vec<(String, f64)>| list.into_iter().map(leaf).collect();
    let changed =
        |(part_number, before, quantity): (String, f64, f64)| ChangedQuantity { part_number, before, quantity };
    Ok(ok(MergedBom {
        added: all(done.merge.added),
        unreferenced: all(done.merge.removed),
        changed: done.merge.changed.into_iter().map(changed).collect(),
        unchanged: all(done.merge.unchanged),
        jobs: set_off(done.fired),
    }))
}

async fn put_row(
    Here { products, .. }: Here,
    Path((part, child)): Path<(String, String)>,
    Sent(body): Sent<PutBomRow>,
) -> Result<Answer<BomRow>> {
    let relation = body.relation.map(|relation| match relation {
        Relation::Component => rules::Relation::Component,
        Relation::Alternate => rules::Relation::Alternate,
        Relation::Reference => rules::Relation::Reference,
    });
    let new = NewRow { relation, quantity: body.quantity, unit: body.unit, designators: body.designators };
    let written = bom::write(&products, &part, &child, &new, Mode::Either).await?;
    Ok(ok(wire_row(&part, &written.row, 1, written.child.as_ref())))
}

async fn delete_row(Here { products, .. }: Here, Path((part, child)): Path<(String, String)>) -> Result<StatusCode> {
    kept::find(&products, &part).await?;
    bom::remove(&products, &part, &child).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn where_used(
    Here { products, .. }: Here,
    Path(part): Path<String>,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<BomRow>>> {
    let (item, limit) = (kept::find(&products, &part).await?.value, page_size(query.limit)?);
    let found = bom::users(&products, &part, query.cursor.as_deref(), limit).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|(parent, _)| parent.clone());
    let items = found.iter().map(|(parent, row)| wire_row(parent, row, 1, Some(&item))).collect();
    Ok(ok(Page { items, next }))
}

fn wire_project(project: facts::Project) -> Project {
    let facts::Project { id, code, name, description, created_at } = project;
    Project { id, code, name, description, created_at: text(created_at) }
}

async fn list_projects(Here { products, .. }: Here, Query(query): Query<Paging>) -> Result<Answer<Page<Project>>> {
    let limit = page_size(query.limit)?;
    let after = query.cursor.map(Into::into);
    let found = records::page(&products, records::PROJECT, Of::All, after, limit).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|last| last.key.to_string());
    Ok(ok(Page { items: found.into_iter().map(|kept| wire_project(kept.value)).collect(), next }))
}

async fn create_project(Here { products, .. }: Here, Sent(body): Sent<CreateProject>) -> Result<Answer<Project>> {
    let CreateProject { code, name, description } = body;
    let project = projects::create(&products, &NewProject { code, name, description }).await?;
    Ok(made(wire_project(project)))
}
