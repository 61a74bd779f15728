//! `/api/v1/tokens` and `/api/v1/me`: who may call.
//!
//! A token is shown once and kept as its SHA-256. It is named by the first characters of that hash, from which it cannot
//! be told. An admin whose rights end at some namespaces rules over principals within them only, and learns of no others.
//!
//! What a token makes ends with it. What would leave nobody to make tokens is refused unless `force` says that it is meant.

use super::{
    records_page,
    ruling::{Scan, Shown, rules, sparing},
};
use crate::{
    admins::Lookup,
    app::App,
    ask::{Answer, Path, Query, Sent, ok},
    auth::{self, Caller, system_namespace},
    convert,
    problem::{Code, Problem, Result},
    route::{Access, Route},
    secret,
    streams::rights_changed,
    wire_time::{maybe, millis, text},
};
use axum::extract::State;
use http::StatusCode;
use std::sync::Arc;
use windlass_api::{
    page::{Page, Paging},
    token::{CreateToken, CreatedToken, Force, Me, Token},
};
use windlass_core::{
    Namespace,
    commands::{
        ask::Both,
        audited::Audited,
        principals::CreatePrincipal,
        tokens::{IssueToken, RevokeToken},
    },
    principal::{Principal as Row, Token as TokenRow},
    record::Kind,
};

/// Of the hash: enough to name a token, of no use to guess it.
const ID_CHARACTERS: usize = 16;

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/me", Access::Any, me).says("The principal and the rights of the token").answers::<Me>(200),
        Route::post("/api/v1/tokens", Access::Admin, create)
            .says("Create a token, and its principal if it does not exist; the token is shown only once")
            .takes::<CreateToken>()
            .answers::<CreatedToken>(201)
            .refuses(&[Code::Invalid, Code::TooLarge, Code::Exists, Code::Forbidden]),
        Route::get("/api/v1/tokens", Access::Admin, list)
            .says("List tokens, without the secrets")
            .query::<Paging>()
            .answers::<Page<Token>>(200)
            .refuses(&[Code::Invalid, Code::TooMany]),
        Route::delete("/api/v1/tokens/{id}", Access::Admin, revoke)
            .says("Revoke a token; tokens created with it are revoked too")
            .query::<Force>()
            .answers_with(204, "")
            .refuses(&[Code::NotFound, Code::Invalid, Code::LastAdmin]),
    ]
}

async fn me(caller: Caller) -> Answer<Me> {
    let namespaces = caller.namespaces.iter().map(Namespace::to_string).collect();
    ok(Me { principal: caller.name.to_string(), role: convert::role(caller.role), namespaces })
}

async fn create(State(app): State<App>, caller: Caller, Sent(body): Sent<CreateToken>) -> Result<Answer<CreatedToken>> {
    let role = convert::role_back(body.role);
    let namespaces = body.namespaces.iter().map(|name| Namespace::new(name)).collect::<Result<Vec<_>, _>>()?;
    let name: Arc<str> = body.principal.as_str().into();
    let known = app.engine.read_record::<Row>(&system_namespace(), &name).await?;
    // What the caller asks for, before what is there: of principals that it does not rule over it learns nothing.
    let reaches = known.as_ref().is_none_or(|known| rules(&caller, &known.namespaces));
    if !reaches || (known.is_none() || !namespaces.is_empty()) && !rules(&caller, &namespaces) {
        return Err(Problem::new(Code::Forbidden, "a token may not reach further than the one that makes it"));
    }
    if let Some(known) = &known
        && (known.role != role || (!namespaces.is_empty() && known.namespaces != namespaces))
    {
        let is = convert::role(known.role).name();
        let why = format!(
            "the principal {name} exists with role {is}; `windlass principal change` (PUT /api/v1/principals/{name}) gives it \
             another role or other namespaces"
        );
        return Err(Problem::new(Code::Exists, why).at("role"));
    }
    let namespaces = known.as_ref().map_or(namespaces, |known| known.namespaces.clone());
    let token = secret::draw_token(role);
    let (hash, shown): (Arc<str>, Arc<str>) = (auth::hash(token.reveal()).into(), secret::shown(&token).into());
    let now = app.engine.now().await?;
    let expires_at = body.expires_ms.map(|length| now + millis(length));
    let issue = IssueToken {
        namespace: system_namespace(),
        principal: name.clone(),
        hash: hash.clone(),
        shown,
        expires_at,
        made_by: caller.token.clone(),
        session: false,
    };
    let made = match known {
        Some(_) => app.engine.run(Audited::new(&caller.name, issue)).await?,
        None => {
            let make = CreatePrincipal { namespace: system_namespace(), name, role, namespaces };
            app.engine.run(Audited::new(&caller.name, Both(make, issue))).await?.1
        }
    };
    app.auth.forget();
    let about = wire(&caller, &hash, &made.token, &made.principal);
    Ok(Answer(StatusCode::CREATED, CreatedToken { token: token.reveal().to_owned(), about }))
}

fn id_of(hash: &str) -> String {
    hash.chars().take(ID_CHARACTERS).collect()
}

fn wire(caller: &Caller, hash: &str, row: &TokenRow, principal: &Row) -> Token {
    Token {
        id: id_of(hash),
        principal: row.principal.to_string(),
        role: convert::role(principal.role),
        namespaces: principal.namespaces.iter().map(Namespace::to_string).collect(),
        shown: row.shown.to_string(),
        created_at: text(row.created_at),
        expires_at: maybe(row.expires_at),
        last_used: maybe(row.last_used),
        made_by: row.made_by.last().filter(|_| caller.rules_all()).map(|hash| id_of(hash)),
    }
}

async fn list(State(app): State<App>, caller: Caller, Query(query): Query<Paging>) -> Result<Answer<Page<Token>>> {
    let mut shown = Shown::new(query.limit)?;
    // Whole hashes are nobody's business, so pages go on after the part that is shown.
    let mut scan = Scan::new(query.cursor.map(|cursor| cursor + "g"));
    let mut lookup = Lookup::new(&app.engine).await?;
    'all: while let Some(found) = scan.next(&app, TokenRow::KIND).await? {
        for record in &found {
            let Ok(row) = serde_json::from_str::<TokenRow>(&record.value) else { continue };
            if !lookup.is_valid(&row, |_, _| true).await? {
                continue;
            }
            let principal = lookup.principal(&row.principal).await?.filter(|found| rules(&caller, &found.namespaces));
            let item = principal.map(|principal| wire(&caller, &record.key.key, &row, principal));
            if item.is_some_and(|item| !shown.add(&record.key.key, item)) {
                break 'all;
            }
        }
    }
    Ok(ok(shown.page(|hash| id_of(&hash))))
}

async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<Force>,
) -> Result<StatusCode> {
    if id.len() != ID_CHARACTERS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Problem::invalid("id", format!("a token's id has {ID_CHARACTERS} hexadecimal digits")));
    }
    let missing = || Problem::not_found("token", &id);
    let after = Paging { limit: Some(1), cursor: Some(id.clone()) };
    let (found, _) = records_page(&app, &system_namespace(), TokenRow::KIND, &after).await?;
    let found = found.first().filter(|record| record.key.key.starts_with(&id)).ok_or_else(missing)?;
    let row: TokenRow = serde_json::from_str(&found.value).map_err(|_| missing())?;
    let principal = app.engine.read_record::<Row>(&system_namespace(), &row.principal).await?;
    if !rules(&caller, principal.as_ref().map_or(&[], |principal| &principal.namespaces)) {
        return Err(missing());
    }
    let hash = found.key.key.clone();
    let revoke = RevokeToken { namespace: system_namespace(), hash: hash.clone() };
    let command = sparing(&app, &caller, query.force, revoke.into(), None, |key, _| *key != *hash).await?;
    app.engine.run(Audited::new(&caller.name, command)).await?;
    rights_changed(&app).await;
    Ok(StatusCode::NO_CONTENT)
}
