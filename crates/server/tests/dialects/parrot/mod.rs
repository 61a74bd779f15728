//! A protocol that nobody speaks, as small as one can be that has everything: settings, a state, callers who say in a way of their
//! own who they are, errors in words of its own, paths in any spelling, and something it does by itself.

use axum::{Json, body::Body, extract::State, response::Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use windlass_core::{
    Namespace,
    commands::submit::{NewJob, Submit},
};
use windlass_engine::ids;
use windlass_server::{
    App,
    ask::Path,
    config::{
        table::{Foreign, From, Kind, as_it_is},
        values::Values,
    },
    dialect::{Dialect, Mount, Served, With},
    problem::Problem,
    route::{Access, Identify, Route, Rules, Surface},
    running::Running,
};

pub static DIALECT: Dialect = Dialect {
    surface: Surface { name: "loud_parrot", rules: Rules { namespace: Some("parrot"), refuse, ..Rules::OURS } },
    prefixes: &["/parrot/"],
    respell,
    settings: SETTINGS,
    foreign,
    adjusted: windlass_server::config::adjusted::none,
    start_worker: None,
    serve,
};

windlass_server::settings! { SETTINGS:
    loud_parrot_greeting: Kind::Text, "hello", "What it says first";
    loud_parrot_every: Kind::Time, "1h", "How often it says something by itself";
}

fn foreign() -> Vec<Foreign> {
    vec![Foreign { from: From::Variable("PARROT_GREETING"), to: loud_parrot_greeting, convert: as_it_is }]
}

struct Own {
    greeting: String,
    said: AtomicU64,
}

type Parrot = With<Own>;

fn serve(read: &Values) -> Served {
    let own = Arc::new(Own { greeting: read.text(loud_parrot_greeting).to_owned(), said: AtomicU64::default() });
    let every = read.time(loud_parrot_every);
    let routes = routes(&Mount(own.clone()));
    Served::new(routes).identifies(by_key()).starts(move |app| talk(With::new(app, own.clone()), every))
}

fn routes(on: &Mount<Own>) -> Vec<Route> {
    vec![
        on.get("/parrot/said", Access::Any, said),
        on.post("/parrot/say/{word}", Access::Editor, say),
        // Starts like a path of another dialect, with another name in the same place.
        on.get("/api/jobs/{feather}/colour", Access::Viewer, colour),
    ]
}

async fn said(State(parrot): State<Parrot>) -> Json<Value> {
    Json(json!({"greeting": parrot.own.greeting, "said": parrot.own.said.load(Relaxed)}))
}

async fn say(State(parrot): State<Parrot>, Path(word): Path<String>) -> Result<(StatusCode, Json<Value>), Problem> {
    let job = NewJob { payload: word.as_str().into(), ..NewJob::new(ids::job_id()) };
    parrot.engine.run(Submit { namespace: Namespace::new("parrot")?, job }).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"word": word}))))
}

async fn colour(State(_): State<App>, Path(feather): Path<String>) -> String {
    feather
}

/// Callers send their token in a header of its own.
fn by_key() -> Identify {
    Arc::new(|app, request| {
        let key = request.headers().get("x-parrot-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
        let app = app.clone();
        Box::pin(async move {
            match key {
                Some(key) => app.auth.caller(&key).await.map(Some),
                None => Ok(None),
            }
        })
    })
}

fn refuse(problem: &Problem, response: &mut Response) {
    let told = match problem.0.status {
        401 => "Unauthorized",
        404 => "Not Found",
        _ => &problem.0.detail,
    };
    *response.body_mut() = Body::from(json!({"detail": told}).to_string());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().remove(header::WWW_AUTHENTICATE);
}

/// In any case, and with a slash at the end or without.
fn respell(path: &str) -> Option<String> {
    let plain = path.trim_end_matches('/').to_lowercase();
    (plain.starts_with("/parrot/") && plain != path).then_some(plain)
}

async fn talk(parrot: Parrot, every: Duration) -> Running {
    let talking = async move {
        loop {
            tokio::time::sleep(every).await; // What a dialect does by itself, it does at its own pace.
            parrot.own.said.fetch_add(1, Relaxed);
        }
    };
    let mut running = Running::default();
    running.tasks.push(tokio::spawn(talking));
    running
}
