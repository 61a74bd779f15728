//! The zndraw-joblib protocol, call by call.

mod limits;
mod providers;
mod roles;
mod sessions;
mod tasks;
mod users;

use crate::support::{Answer, Server};
use axum::body::Body;
use http::{Method, Request, header};
use serde_json::{Value, json};
use windlass_server::{Options, config::values::Values, listener::Peer};

/// Where a caller is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum From {
    Here,
    Elsewhere,
}

pub fn request(from: From, method: Method, path: &str, token: Option<&str>) -> http::request::Builder {
    let address = if from == From::Here { "127.0.0.1:9" } else { "10.0.0.9:9" };
    let peer = Peer { address: address.parse().unwrap(), local: "127.0.0.1:3000".parse().unwrap(), tls: false };
    let request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:3000").extension(peer);
    token.into_iter().fold(request, |request, token| request.header(header::AUTHORIZATION, format!("Bearer {token}")))
}

pub async fn call(
    server: &Server,
    from: From,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: Option<Value>,
) -> Answer {
    let request = request(from, method, path, token);
    let request = match body {
        Some(body) => request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string())),
        None => request.body(Body::empty()),
    };
    server.call(request.unwrap()).await
}

/// From this machine, with a token.
pub async fn send(server: &Server, method: Method, path: &str, token: &str, body: Option<Value>) -> Answer {
    call(server, From::Here, method, path, Some(token), body).await
}

pub async fn with(values: Values) -> Server {
    Server::with(Options { values, ..Options::default() }).await
}

pub async fn register(server: &Server, email: &str, password: &str) -> Value {
    let body = json!({"email": email, "password": password});
    call(server, From::Here, Method::POST, "/auth/register", None, Some(body)).await.expect(201)
}

pub async fn log_in(server: &Server, from: From, username: &str, password: &str) -> Answer {
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("username", username)
        .append_pair("password", password)
        .finish();
    let request = request(from, Method::POST, "/auth/jwt/login", None);
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    server.call(request.body(Body::from(form)).unwrap()).await
}

pub async fn token(server: &Server, email: &str, password: &str) -> String {
    let told = log_in(server, From::Here, email, password).await.expect(200);
    assert_eq!(told["token_type"], "bearer");
    told["access_token"].as_str().unwrap().to_owned()
}

/// A user whom somebody registered from this machine, so a superuser as long as no default admin is set.
pub async fn superuser(server: &Server, name: &str) -> String {
    let email = format!("{name}@example.org");
    register(server, &email, "correct horse").await;
    token(server, &email, "correct horse").await
}
