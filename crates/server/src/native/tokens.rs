//! `/api/v1/tokens`, `/api/v1/principals` and `/api/v1/me`: who may call.
//!
//! A token is shown once and kept as its SHA-256. It is named by the first characters of that hash, from which it cannot
//! be told. An admin whose rights end at some namespaces rules over principals within them only.

use super::{convert, events::Who, records_page};
use crate::{
    app::App,
    ask::{Answer, Path, Query, Sent, ok},
    auth::{self, Caller, home},
    problem::Problem,
    route::{Access, Route},
    secret,
    wire_time::{maybe, millis, text},
};
use axum::extract::State;
use http::StatusCode;
use std::{collections::HashMap, sync::Arc};
use windlass_api::{
    page::{Page, Paging},
    token::{CreateToken, CreatedToken, Me, Principal, Token},
};
use windlass_core::{
    Command, Namespace,
    commands::{
        all::All,
        audited::Audited,
        principals::{CreatePrincipal, DisablePrincipal, EnablePrincipal, IssueToken, RevokeToken},
    },
    principal::{Principal as Row, Role, Token as TokenRow},
    record::Kind,
};

/// Of the hash: enough to name a token, of no use to guess it.
const ID_CHARACTERS: usize = 16;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/me", Access::Any, me).says("Who the token stands for").answers::<Me>(200),
        Route::post("/api/v1/tokens", Access::Admin, create)
            .says("Make a token, and its principal where there is none yet; the token is shown this once")
            .takes::<CreateToken>()
            .answers::<CreatedToken>(201)
            .refuses(&["invalid", "too-large", "exists", "forbidden"]),
        Route::get("/api/v1/tokens", Access::Admin, list)
            .says("List tokens, without what makes them valid")
            .query::<Paging>()
            .answers::<Page<Token>>(200)
            .refuses(&["invalid"]),
        Route::delete("/api/v1/tokens/{id}", Access::Admin, revoke)
            .says("Revoke a token")
            .answers_with(204, "")
            .refuses(&["not-found", "invalid"]),
        Route::get("/api/v1/principals", Access::Admin, principals)
            .says("List principals by name")
            .query::<Paging>()
            .answers::<Page<Principal>>(200)
            .refuses(&["invalid"]),
        Route::delete("/api/v1/principals/{name}", Access::Admin, disable)
            .says("Disable a principal; all its tokens end")
            .answers_with(204, "")
            .refuses(&["not-found", "invalid"]),
        Route::post("/api/v1/principals/{name}/enable", Access::Admin, enable)
            .says("Let a disabled principal have tokens again")
            .answers::<Principal>(200)
            .refuses(&["not-found"]),
    ]
}

async fn me(Who(caller): Who) -> Answer<Me> {
    let namespaces = caller.namespaces.iter().map(Namespace::to_string).collect();
    ok(Me { principal: caller.name.to_string(), role: convert::role(caller.role), namespaces })
}

/// Whether an admin may make, list and end what stands for a principal with these namespaces.
fn rules(caller: &Caller, namespaces: &[Namespace]) -> bool {
    let within = |namespace: &Namespace| caller.namespaces.contains(namespace);
    caller.namespaces.is_empty() || (!namespaces.is_empty() && namespaces.iter().all(within))
}

async fn create(
    State(app): State<App>,
    Who(caller): Who,
    Sent(body): Sent<CreateToken>,
) -> Result<Answer<CreatedToken>, Problem> {
    let role = convert::role_back(body.role);
    let namespaces = body.namespaces.iter().map(|name| Namespace::new(name)).collect::<Result<Vec<_>, _>>()?;
    let name: Arc<str> = body.principal.as_str().into();
    let known = app.engine.read_record::<Row>(&home(), &name).await?;
    if let Some(known) = &known
        && (known.role != role || (!namespaces.is_empty() && known.namespaces != namespaces))
    {
        let is = convert::role(known.role).name();
        let why = format!("the principal {name} exists with role {is}; its role and namespaces cannot be changed");
        return Err(Problem::new("exists", why).at("role"));
    }
    let namespaces = known.as_ref().map_or(namespaces, |known| known.namespaces.clone());
    if !rules(&caller, &namespaces) {
        return Err(Problem::new("forbidden", "a token may not reach further than the one that makes it"));
    }
    let token = secret::draw_token(role);
    let (hash, shown): (Arc<str>, Arc<str>) = (auth::hash(token.reveal()).into(), secret::shown(&token).into());
    let now = app.engine.now().await?;
    let expires_at = body.expires_ms.map(|length| now + millis(length));
    let issue =
        IssueToken { namespace: home(), principal: name.clone(), hash: hash.clone(), shown: shown.clone(), expires_at };
    let command: Command = match known {
        Some(_) => issue.into(),
        None => {
            let make = CreatePrincipal { namespace: home(), name: name.clone(), role, namespaces: namespaces.clone() };
            All { commands: vec![make.into(), issue.into()] }.into()
        }
    };
    app.engine.run(Audited::new(&caller.name, command)).await?;
    app.auth.forget();
    let row = TokenRow { principal: name, shown, created_at: now, expires_at, last_used: None };
    let about = wire(&hash, &row, role, &namespaces);
    Ok(Answer(StatusCode::CREATED, CreatedToken { token: token.reveal().to_owned(), about }))
}

fn wire(hash: &str, row: &TokenRow, role: Role, namespaces: &[Namespace]) -> Token {
    Token {
        id: hash.chars().take(ID_CHARACTERS).collect(),
        principal: row.principal.to_string(),
        role: convert::role(role),
        namespaces: namespaces.iter().map(Namespace::to_string).collect(),
        shown: row.shown.to_string(),
        created_at: text(row.created_at),
        expires_at: maybe(row.expires_at),
        last_used: maybe(row.last_used),
    }
}

async fn list(
    State(app): State<App>,
    Who(caller): Who,
    Query(mut query): Query<Paging>,
) -> Result<Answer<Page<Token>>, Problem> {
    // Whole hashes are nobody's business, so pages go on after the part that is shown.
    if let Some(cursor) = &mut query.cursor {
        cursor.push('g');
    }
    let (found, next) = records_page(&app, &home(), TokenRow::KIND, &query).await?;
    let now = app.engine.now().await?;
    let mut known: HashMap<Arc<str>, Option<Row>> = HashMap::new();
    let mut items = Vec::with_capacity(found.len());
    for record in &found {
        let Ok(row) = serde_json::from_str::<TokenRow>(&record.value) else { continue };
        if !known.contains_key(&row.principal) {
            let principal = app.engine.read_record::<Row>(&home(), &row.principal).await?;
            known.insert(row.principal.clone(), principal);
        }
        let Some(Some(principal)) = known.get(&row.principal) else { continue };
        if row.is_live(now) && rules(&caller, &principal.namespaces) {
            items.push(wire(&record.key.key, &row, principal.role, &principal.namespaces));
        }
    }
    let next = next.map(|hash| hash.chars().take(ID_CHARACTERS).collect());
    Ok(ok(Page { items, next }))
}

async fn revoke(State(app): State<App>, Who(caller): Who, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    if id.len() != ID_CHARACTERS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Problem::invalid("id", format!("a token's id has {ID_CHARACTERS} hexadecimal digits")));
    }
    let missing = || Problem::not_found("token", &id);
    let after = Paging { limit: Some(1), cursor: Some(id.clone()) };
    let (found, _) = records_page(&app, &home(), TokenRow::KIND, &after).await?;
    let found = found.first().filter(|record| record.key.key.starts_with(&id)).ok_or_else(missing)?;
    let row: TokenRow = serde_json::from_str(&found.value).map_err(|_| missing())?;
    let principal = app.engine.read_record::<Row>(&home(), &row.principal).await?;
    if !rules(&caller, principal.as_ref().map_or(&[], |principal| &principal.namespaces)) {
        return Err(missing());
    }
    let revoke = RevokeToken { namespace: home(), hash: found.key.key.clone() };
    app.engine.run(Audited::new(&caller.name, revoke)).await?;
    forget(&app);
    Ok(StatusCode::NO_CONTENT)
}

/// Nothing that was let in before is taken for granted.
fn forget(app: &App) {
    app.auth.forget();
    app.native.streams.end_all();
}

fn principal(row: &Row) -> Principal {
    Principal {
        name: row.name.to_string(),
        role: convert::role(row.role),
        namespaces: row.namespaces.iter().map(Namespace::to_string).collect(),
        disabled: row.disabled,
        created_at: text(row.created_at),
    }
}

async fn principals(
    State(app): State<App>,
    Who(caller): Who,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<Principal>>, Problem> {
    let (found, next) = records_page(&app, &home(), Row::KIND, &query).await?;
    let rows = found.iter().filter_map(|record| serde_json::from_str::<Row>(&record.value).ok());
    let items = rows.filter(|row| rules(&caller, &row.namespaces)).map(|row| principal(&row)).collect();
    Ok(ok(Page { items, next }))
}

/// The principal, if there is one that the caller rules over.
async fn ruled(app: &App, caller: &Caller, name: &str) -> Result<Row, Problem> {
    let row = app.engine.read_record::<Row>(&home(), name).await?;
    row.filter(|row| rules(caller, &row.namespaces)).ok_or_else(|| Problem::not_found("principal", name))
}

async fn disable(State(app): State<App>, Who(caller): Who, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    ruled(&app, &caller, &name).await?;
    if *name == *caller.name {
        return Err(Problem::invalid("name", "that is you; another admin has to do it"));
    }
    let disable = DisablePrincipal { namespace: home(), name: name.into() };
    app.engine.run(Audited::new(&caller.name, disable)).await?;
    forget(&app);
    Ok(StatusCode::NO_CONTENT)
}

async fn enable(
    State(app): State<App>,
    Who(caller): Who,
    Path(name): Path<String>,
) -> Result<Answer<Principal>, Problem> {
    let row = ruled(&app, &caller, &name).await?;
    let enable = EnablePrincipal { namespace: home(), name: name.into() };
    app.engine.run(Audited::new(&caller.name, enable)).await?;
    Ok(ok(principal(&Row { disabled: false, ..row })))
}
