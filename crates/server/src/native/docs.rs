//! `/docs`: the API's description for people, and the error reference. Self-contained: nothing is fetched from elsewhere.

use crate::{
    problem::Code,
    route::{Access, Route},
};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, header};

/// Scripts and styles from this server only, and nothing may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// As `openapi.rs` makes it; a test compares the two.
pub const DESCRIPTION: &str = include_str!("../../../../docs/openapi.json");

pub fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/openapi.json", Access::Open, openapi)
            .says("This description")
            .answers_with(200, "application/json"),
        Route::get("/docs", Access::Open, page).says("The description for people").answers_with(200, "text/html"),
        Route::get("/docs/docs.js", Access::Open, script)
            .says("Script of the page")
            .answers_with(200, "text/javascript"),
        Route::get("/docs/docs.css", Access::Open, style).says("Style sheet of the page").answers_with(200, "text/css"),
        Route::get("/docs/errors", Access::Open, errors)
            .says("Every kind of error, and what to do about it")
            .answers_with(200, "text/html"),
    ]
}

fn serve(content: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = body.into().into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

async fn openapi() -> Response {
    serve("application/json", DESCRIPTION)
}

async fn page() -> Response {
    serve("text/html; charset=utf-8", include_str!("../docs/docs.html"))
}

async fn script() -> Response {
    serve("text/javascript; charset=utf-8", include_str!("../docs/docs.js"))
}

async fn style() -> Response {
    serve("text/css; charset=utf-8", include_str!("../docs/docs.css"))
}

async fn errors() -> Response {
    serve("text/html; charset=utf-8", error_page())
}

pub fn error_page() -> String {
    let mut rows = String::new();
    for kind in Code::ALL {
        let (code, title, advice) = (escape(kind.name()), escape(kind.title()), escape(kind.advice()));
        rows += &format!(
            "<section id=\"{code}\"><h2><a href=\"#{code}\">{code}</a> <small>{}</small></h2>\
             <p><strong>{title}.</strong> {advice}</p></section>\n",
            kind.status()
        );
    }
    include_str!("../docs/errors.html").replace("{{errors}}", &rows)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
