//! `/api/auth`: who is calling, and tokens for people and tools.
//!
//! A token is a principal of its own, whose name is what is recorded as the author of things.

use super::{
    body::{Json, Listed, Params, Path, Raw, created, ok, page, time},
    error::{HttpError, Result},
    namespace, products,
};
use crate::{
    app::App,
    auth::{self, Caller, system_namespace},
    problem::Problem,
    streams::rights_changed,
};
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_api::Uuid;
use windlass_core::{
    Refusal, Timestamp,
    commands::{
        all::All,
        audited::Audited,
        principals::{CreatePrincipal, DeletePrincipal, EnablePrincipal},
        records::Expect,
        tokens::IssueToken,
    },
    principal::{self, Principal, Role},
    record::Kind,
};
use windlass_engine::{Error, ids, store::RecordQuery};
use windlass_product::records::{self, Kept, Of, Put};

const TOKEN: records::Kind<Token> = records::Kind::new("silo_token");

const PREFIX: &str = "silo_";
const SHOWN_CHARACTERS: usize = 12;
const NAME_CHARS_MAX: usize = 64;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Token {
    id: Uuid,
    name: String,
    role: Role,
    token_prefix: String,
    created_at: Timestamp,
    created_by: String,
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Viewer => "viewer",
        Role::Editor => "editor",
        Role::Admin => "admin",
        Role::Worker => "runner",
    }
}

fn show(token: &Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "role": role_name(token.role),
        "token_prefix": token.token_prefix,
        "created_at": time(token.created_at),
    })
}

pub async fn me(caller: Caller) -> Json<Value> {
    ok(json!({"name": caller.name, "role": role_name(caller.role)}))
}

#[derive(Deserialize)]
struct Create {
    name: String,
    role: Option<String>,
}

fn asked_role(body: &Create, caller: &Caller) -> Result<Role> {
    let role = match body.role.as_deref() {
        None => caller.role,
        Some("viewer") => Role::Viewer,
        Some("editor") => Role::Editor,
        Some("admin") => Role::Admin,
        Some(other) => return Err(HttpError::invalid(format!("role: {other:?} is none of viewer, editor, admin"))),
    };
    if !caller.role.includes(role) {
        return Err(HttpError::forbidden("a token may not do more than the one that makes it"));
    }
    Ok(role)
}

pub async fn create(State(app): State<App>, caller: Caller, raw: Raw) -> Result<Json<Value>> {
    let body: Create = raw.parse(&app).await?;
    let fits = (1..=NAME_CHARS_MAX).contains(&body.name.chars().count())
        && body.name.len() <= 200
        && !body.name.chars().any(|c| c.is_control() || c == '/');
    if !fits {
        return Err(HttpError::invalid(format!("name: must have 1 to {NAME_CHARS_MAX} characters, and no slash")));
    }
    let role = asked_role(&body, &caller)?;
    let random: [u8; 32] = rand::random();
    let text = format!("{PREFIX}{}", windlass_api::hex(&random));
    let token = Token {
        id: ids::job_id().0,
        name: body.name,
        role,
        token_prefix: text.chars().take(SHOWN_CHARACTERS).collect(),
        created_at: app.engine.now().await?,
        created_by: caller.name.to_string(),
    };
    issue(&app, &caller, &token, &text).await?;
    let mut shown = show(&token);
    shown["token"] = json!(text);
    Ok(created(shown))
}

async fn issue(app: &App, caller: &Caller, token: &Token, text: &str) -> Result<()> {
    let name: Arc<str> = token.name.as_str().into();
    let taken = || HttpError::conflict(format!("the name {} is taken", token.name));
    // Deleting a token frees its name. Older versions only disabled it, as an admin may have done on purpose: only an admin gets
    // such a one back, with the rights it had.
    let known = app.engine.read_record::<Principal>(&system_namespace(), &name).await?;
    let namespaces = vec![namespace()];
    let open = match &known {
        Some(known)
            if !known.disabled
                || caller.role != Role::Admin
                || known.role != token.role
                || known.namespaces != namespaces =>
        {
            return Err(taken());
        }
        Some(_) => EnablePrincipal { namespace: system_namespace(), name: name.clone() }.into(),
        None => {
            CreatePrincipal { namespace: system_namespace(), name: name.clone(), role: token.role, namespaces }.into()
        }
    };
    let id = token.id.to_string();
    let put = Put::new(&products(app), TOKEN, &token.name, Expect::Nothing).facet("id", &id).value(token)?;
    let issue = IssueToken {
        namespace: system_namespace(),
        principal: name,
        hash: auth::hash(text).into(),
        shown: token.token_prefix.as_str().into(),
        expires_at: None,
        made_by: caller.token.clone(),
        session: false,
    };
    match app.engine.run(Audited::new(&caller.name, All { commands: vec![put, open, issue.into()] })).await {
        Ok(_) => Ok(()),
        Err(Error::Refused(Refusal::Exists { .. })) => Err(taken()),
        Err(error) => Err(error.into()),
    }
}

/// Those a caller made, and its own; an admin's are all.
fn is_own(caller: &Caller, token: &Token) -> bool {
    caller.role == Role::Admin || *token.created_by == *caller.name || *token.name == *caller.name
}

pub async fn list(State(app): State<App>, caller: Caller, params: Params) -> Result<Listed<Value>> {
    let paging = params.page()?;
    let mut found = records::list(&products(&app), TOKEN, Of::All).await?;
    found.retain(|kept| is_own(&caller, &kept.value));
    let Listed(found, total) = page(found, paging);
    Ok(Listed(found.iter().map(|kept| show(&kept.value)).collect(), total))
}

async fn find(app: &App, id: &str) -> Result<Kept<Token>> {
    let missing = || HttpError::missing("token", id);
    let id = Uuid::parse_str(id).map_err(|_| missing())?.to_string();
    records::list(&products(app), TOKEN, Of::With("id", &id)).await?.pop().ok_or_else(missing)
}

pub async fn delete(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<StatusCode> {
    let found = find(&app, &id).await?;
    if !is_own(&caller, &found.value) {
        return Err(HttpError::forbidden("only its owner, or an admin, deletes a token"));
    }
    app.engine.run(Audited::new(&caller.name, removal(&app, &found).await?)).await?;
    rights_changed(&app).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes away what is kept of a token, and its principal.
async fn removal(app: &App, found: &Kept<Token>) -> Result<All, Problem> {
    let mut commands = vec![records::delete(&products(app), TOKEN, &found.key, found.unchanged())];
    // Where somebody deleted the principal itself, its name may be another's by now.
    let known = app.engine.read_record::<Principal>(&system_namespace(), &found.value.name).await?;
    if known.is_some_and(|known| *known.namespaces == [namespace()]) {
        commands.push(DeletePrincipal { namespace: system_namespace(), name: found.value.name.as_str().into() }.into());
    }
    Ok(All { commands })
}

/// Removes those that ended with what they were made with, or ran out: what they stood for has no token left, and their names are free
/// again. Principals that somebody disabled are left to whoever did.
pub async fn sweep(app: &App) -> Result<(), Problem> {
    for found in records::list(&products(app), TOKEN, Of::All).await? {
        let name: Arc<str> = found.value.name.as_str().into();
        let known = app.engine.read_record::<Principal>(&system_namespace(), &name).await?;
        let query = RecordQuery {
            parent: Some(name),
            limit: 1,
            ..RecordQuery::all(system_namespace(), principal::Token::KIND)
        };
        let is_void = known.is_none_or(|known| !known.disabled) && app.engine.store().records(&query).await?.is_empty();
        if is_void {
            match app.engine.run(removal(app, &found).await?).await {
                Ok(_) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
