//! `/api/v1/principals`: whom tokens stand for, and what they may do.

use super::ruling::{Scan, Shown, rules, sparing};
use crate::{
    app::App,
    ask::{Answer, Path, Query, Sent, ok},
    auth::{Caller, system_namespace},
    convert,
    problem::{Code, Problem, Result},
    route::{Access, Route},
    streams::rights_changed,
    wire_time::text,
};
use axum::extract::State;
use http::StatusCode;
use std::sync::Arc;
use windlass_api::{
    page::{Page, Paging},
    token::{ChangePrincipal as Change, EndPrincipal, Force, Principal},
};
use windlass_core::{
    Command, Namespace,
    commands::{
        audited::Audited,
        principals::{ChangePrincipal, DeletePrincipal, DisablePrincipal, EnablePrincipal},
    },
    principal::Principal as Row,
    record::Kind,
};

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/principals", Access::Admin, principals)
            .says("List principals by name")
            .query::<Paging>()
            .answers::<Page<Principal>>(200)
            .refuses(&[Code::Invalid, Code::TooMany]),
        Route::put("/api/v1/principals/{name}", Access::Admin, change)
            .says("Change the role or the namespaces of a principal; its tokens follow at once")
            .query::<Force>()
            .takes::<Change>()
            .answers::<Principal>(200)
            .refuses(&[Code::NotFound, Code::Invalid, Code::TooLarge, Code::LastAdmin]),
        Route::delete("/api/v1/principals/{name}", Access::Admin, disable)
            .says("Disable or delete a principal; its tokens, and tokens created with those, are revoked")
            .query::<EndPrincipal>()
            .answers_with(204, "")
            .refuses(&[Code::NotFound, Code::Invalid, Code::LastAdmin]),
        Route::post("/api/v1/principals/{name}/enable", Access::Admin, enable)
            .says("Enable a disabled principal; its old tokens stay revoked")
            .answers::<Principal>(200)
            .refuses(&[Code::NotFound]),
    ]
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
    caller: Caller,
    Query(query): Query<Paging>,
) -> Result<Answer<Page<Principal>>> {
    let (mut shown, mut scan) = (Shown::new(query.limit)?, Scan::new(query.cursor));
    'all: while let Some(found) = scan.next(&app, Row::KIND).await? {
        for record in &found {
            let row = serde_json::from_str::<Row>(&record.value).ok().filter(|row| rules(&caller, &row.namespaces));
            if row.is_some_and(|row| !shown.add(&record.key.key, principal(&row))) {
                break 'all;
            }
        }
    }
    Ok(ok(shown.page(|name| name.to_string())))
}

/// The principal, if there is one that the caller rules over.
async fn ruled(app: &App, caller: &Caller, name: &str) -> Result<Row> {
    let row = app.engine.read_record::<Row>(&system_namespace(), name).await?;
    row.filter(|row| rules(caller, &row.namespaces)).ok_or_else(|| Problem::not_found("principal", name))
}

async fn disable(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(query): Query<EndPrincipal>,
) -> Result<StatusCode> {
    ruled(&app, &caller, &name).await?;
    if *name == *caller.name && !query.force {
        return Err(Problem::invalid("name", "that is you; let another admin do it, or say `force=true`"));
    }
    let name: Arc<str> = name.into();
    let command: Command = match query.remove {
        true => DeletePrincipal { namespace: system_namespace(), name: name.clone() }.into(),
        false => DisablePrincipal { namespace: system_namespace(), name: name.clone() }.into(),
    };
    let command = sparing(&app, &caller, query.force, command, None, |_, token| token.principal != name).await?;
    app.engine.run(Audited::new(&caller.name, command)).await?;
    rights_changed(&app).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    Query(query): Query<Force>,
    Sent(body): Sent<Change>,
) -> Result<Answer<Principal>> {
    let row = ruled(&app, &caller, &name).await?;
    let names = |names: Vec<String>| names.iter().map(|name| Namespace::new(name)).collect::<Result<Vec<_>, _>>();
    let namespaces = body.namespaces.map(names).transpose()?;
    if !rules(&caller, namespaces.as_ref().unwrap_or(&row.namespaces)) {
        return Err(Problem::new(Code::Forbidden, "a principal may not reach further than the one that changes it"));
    }
    let name: Arc<str> = name.into();
    let role = body.role.map(convert::role_back);
    let after = Row { role: role.unwrap_or(row.role), namespaces: namespaces.clone().unwrap_or(row.namespaces), ..row };
    let change = ChangePrincipal { namespace: system_namespace(), name: name.clone(), role, namespaces };
    let but = Some(&name).filter(|_| !after.rules_all());
    let command = sparing(&app, &caller, query.force, change.into(), but, |_, _| true).await?;
    app.engine.run(Audited::new(&caller.name, command)).await?;
    rights_changed(&app).await;
    Ok(ok(principal(&after)))
}

async fn enable(State(app): State<App>, caller: Caller, Path(name): Path<String>) -> Result<Answer<Principal>> {
    let row = ruled(&app, &caller, &name).await?;
    let enable = EnablePrincipal { namespace: system_namespace(), name: name.into() };
    app.engine.run(Audited::new(&caller.name, enable)).await?;
    Ok(ok(principal(&Row { disabled: false, ..row })))
}
