//! `/api/v1/session`: signing in to the dashboard, and out again.

use crate::{
    app::App,
    ask::{Answer, Sent, ok},
    auth::{self, Caller, not_valid, system_namespace},
    convert,
    owners::oldest_beyond,
    problem::{Code, Problem, Result},
    route::{Access, Header, Route},
    secret::{self, Secret},
    session::{self, CODE_LIFE, PREFIX, cookie_name, page_key},
    streams::rights_changed,
    wire_time::text,
};
use axum::{
    extract::{FromRequest, Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use std::sync::Arc;
use windlass_api::session::{Session, SignIn, SignInCode};
use windlass_core::{
    Facet, Millis, Namespace,
    commands::{
        audited::Audited,
        tokens::{IssueToken, RevokeToken},
    },
    principal::{Role, SESSION, Token},
    record::Kind,
};
use windlass_engine::{records::readable, store::RecordQuery};

/// A working day; whoever needs longer signs in again.
const LIFE: Millis = Millis::from_secs(12 * 3_600);
/// Of one principal at a time.
const SESSIONS_MAX: usize = 100;
const KEY: Header = Header::text("Windlass-Page-Key", "`page_key` of the session, if the call comes with its cookie.");

pub fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/session", Access::Open, sign_in)
            .says("Exchange a token, or the code of a one-time link, for the dashboard's cookie")
            .takes::<SignIn>()
            .answers::<Session>(201)
            .refuses(&[Code::Unauthorized, Code::Forbidden, Code::ForeignOrigin, Code::Invalid]),
        Route::get("/api/v1/session", Access::Any, show)
            .says("Who is signed in")
            .answers::<Session>(200)
            .refuses(&[Code::Invalid]),
        Route::delete("/api/v1/session", Access::Any, sign_out)
            .says("Sign out: ends the session of the cookie")
            .reads(KEY)
            .answers_with(204, "")
            .refuses(&[Code::NotFound]),
        Route::post("/api/v1/session/codes", Access::Viewer, make_code)
            .says("Create a one-time code to sign in with as the caller")
            .answers::<SignInCode>(201),
    ]
}

async fn sign_in(State(app): State<App>, request: Request) -> Result<Response> {
    let name = cookie_name(&request);
    let secure = request.headers().get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let Sent(body) = Sent::<SignIn>::from_request(request, &app).await?;
    let caller = match (body.token, body.code) {
        (Some(token), None) => app.auth.caller(token.trim()).await?,
        (None, Some(code)) => app.codes.take(code.trim()).ok_or_else(|| {
            Problem::new(Code::Unauthorized, "the link was used already or is too old; make a new one, or use a token")
        })?,
        _ => return Err(Problem::invalid("token", "send either a token or a code")),
    };
    if caller.role == Role::Worker {
        let why = "a worker's token cannot sign in to the dashboard; use the token of a viewer, an editor or an admin";
        return Err(Problem::new(Code::Forbidden, why));
    }
    let token = issue(&app, &caller).await?;
    let session = about(&app, &caller, Some(token.reveal())).await?;
    let mut response = Answer(StatusCode::CREATED, session).into_response();
    let life = LIFE.0 / 1_000;
    let secure = if secure { "; Secure" } else { "" };
    // Without a path, so that browsers send it back to what lies beside this call, whatever prefix a proxy puts before it.
    let cookie = format!("{name}={}; HttpOnly; SameSite=Strict; Max-Age={life}{secure}", token.reveal());
    set_cookie(&mut response, &cookie)?;
    Ok(response)
}

fn set_cookie(response: &mut Response, cookie: &str) -> Result<()> {
    let value = HeaderValue::from_str(cookie).map_err(|_| Problem::new(Code::Internal, "the cookie is not legal"))?;
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(())
}

/// A principal that signs in once more than it may ends its oldest session.
async fn make_room(app: &App, caller: &Caller) -> Result<()> {
    let query = RecordQuery::all(system_namespace(), Token::KIND);
    let query = RecordQuery { facet: Some(Facet::new(SESSION, &caller.name)), ..query };
    let found = app.engine.records(&query).await?;
    let sessions = found.iter().filter_map(|record| Some((readable::<Token>(record)?.created_at, &record.key.key)));
    let oldest = oldest_beyond(sessions.collect(), SESSIONS_MAX - 1).into_iter();
    let revoke = |hash: &Arc<str>| RevokeToken { namespace: system_namespace(), hash: hash.clone() };
    let ended: Vec<_> = oldest.map(|hash| Audited::new(&caller.name, revoke(hash))).collect();
    if !ended.is_empty() {
        // Another sign-in may have ended one of them.
        app.engine.run_many(ended).await?;
        rights_changed(app).await;
    }
    Ok(())
}

async fn issue(app: &App, caller: &Caller) -> Result<Secret> {
    make_room(app, caller).await?;
    let token = secret::draw(PREFIX);
    let command = IssueToken {
        namespace: system_namespace(),
        principal: caller.name.clone(),
        hash: auth::hash(token.reveal()).into(),
        shown: secret::shown(&token).into(),
        expires_at: Some(app.engine.now().await? + LIFE),
        made_by: Some(caller.token.clone().ok_or_else(not_valid)?),
        session: true,
    };
    app.engine.run(Audited::new(&caller.name, command)).await?;
    // That it was unknown may be remembered.
    app.auth.forget();
    Ok(token)
}

async fn about(app: &App, caller: &Caller, token: Option<&str>) -> Result<Session> {
    Ok(Session {
        principal: caller.name.to_string(),
        role: convert::role(caller.role),
        namespaces: caller.namespaces.iter().map(Namespace::to_string).collect(),
        page_key: token.map(page_key),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: text(app.engine.now().await?),
    })
}

async fn show(State(app): State<App>, caller: Caller, request: Request) -> Result<Answer<Session>> {
    Ok(ok(about(&app, &caller, session::token(&request, false)?).await?))
}

async fn sign_out(State(app): State<App>, caller: Caller, request: Request) -> Result<Response> {
    let token = session::token(&request, false)?.ok_or_else(|| Problem::new(Code::NotFound, "there is no session"))?;
    let hash: Arc<str> = auth::hash(token).into();
    app.engine.run(Audited::new(&caller.name, RevokeToken { namespace: system_namespace(), hash })).await?;
    rights_changed(&app).await;
    let mut response = StatusCode::NO_CONTENT.into_response();
    set_cookie(&mut response, &format!("{}=; HttpOnly; SameSite=Strict; Max-Age=0", cookie_name(&request)))?;
    Ok(response)
}

async fn make_code(State(app): State<App>, caller: Caller) -> Result<Answer<SignInCode>> {
    let code = secret::draw("");
    app.codes.add(&code, caller);
    let expires_ms = u64::try_from(CODE_LIFE.as_millis()).unwrap_or(u64::MAX);
    Ok(Answer(StatusCode::CREATED, SignInCode { code: code.reveal().to_owned(), expires_ms }))
}
