//! `/ui/`: the dashboard, whose pages lie at `/ui/n/NAMESPACE/…`. Its files are built from `web/` and kept here compressed, so that the program needs nothing else.

pub mod files;

use crate::{
    app::App,
    ask::Path,
    problem::{Code, Problem, Result},
    route::{Access, Route},
};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, header};

/// One file of the dashboard.
pub struct File {
    /// Its name has the hash of what it holds, but for the page itself.
    pub name: &'static str,
    pub content: &'static str,
    /// Compressed with gzip.
    pub bytes: &'static [u8],
}

/// Scripts, styles and pictures from this server only; nothing inline, and nothing may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";
pub const PAGE: &str = include_str!("built/index.html");
/// Where the page says how far up the dashboard begins.
pub const BASE: &str = "{{base}}";

pub fn routes() -> Vec<Route> {
    let page = |path| Route::get(path, Access::Open, page).says("The dashboard").answers_with(200, "text/html");
    vec![
        page("/ui/"),
        page("/ui/{page}"),
        page("/ui/{page}/{name}"),
        page("/ui/{page}/{name}/{more}"),
        page("/ui/n/{namespace}/{page}/{name}"),
        Route::get("/ui/assets/{file}", Access::Open, file)
            .says("A file of the dashboard")
            .answers_with(200, "text/javascript")
            .refuses(&[Code::NotFound]),
    ]
}

/// Shows browsers the way to the dashboard. Everybody else gets what the path answers.
pub fn way(request: &Request) -> Option<Response> {
    let to = match request.uri().path() {
        "/" if wants_page(request) => "ui/",
        "/ui" => "ui/",
        _ => return None,
    };
    let reads = *request.method() == Method::GET || *request.method() == Method::HEAD;
    // Relative, so that it stays right behind a prefix.
    reads.then(|| (StatusCode::SEE_OTHER, [(header::LOCATION, to)]).into_response())
}

fn wants_page(request: &Request) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|part| part.trim().split(';').next() == Some("text/html"))
}

/// Every address of the dashboard is the same page, which then shows what the address names.
async fn page(State(_): State<App>, request: Request) -> Response {
    let deep = request.uri().path().trim_start_matches("/ui/").matches('/').count();
    let base = if deep == 0 { "./".to_owned() } else { "../".repeat(deep) };
    let mut response = PAGE.replace(BASE, &base).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Always compressed: there is no browser that cannot read it.
async fn file(Path(name): Path<String>) -> Result<Response> {
    let file = files::FILES.iter().find(|file| file.name == name);
    let file = file.ok_or_else(|| Problem::not_found("file", &name))?;
    let mut response = file.bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.content));
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    Ok(response)
}
