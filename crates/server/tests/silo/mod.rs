//! Silo's protocol, call by call, over real HTTP.

mod dag;
mod definitions;
mod events;
mod files;
mod items;
mod jobs;
mod refusals;
mod sessions;
mod story;

use crate::{
    socket::Listening,
    support::{Server, token},
};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use windlass_core::principal::Role;
use windlass_server::{Options, Service, config::values::Values, listener};

/// A server with a folder of definitions.
pub struct Silo {
    pub listening: Listening,
    pub folder: tempfile::TempDir,
    http: Client,
}

pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        if status >= 400 {
            assert!(self.body["error"].is_string() && self.body["message"].is_string(), "{}", self.body);
        }
        self.body
    }

    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, self.body["error"].as_str()), (status, Some(code)), "{}", self.body);
        self.body
    }
}

pub const VALIDATE: &str = include_str!("../../../../examples/silo/assembly-validate.yaml");
pub const EXPORT: &str = include_str!("../../../../examples/silo/part-export-step.yaml");

/// A definition that is fired by hand.
pub fn manual(name: &str, rest: &str) -> String {
    format!("job:\n  name: {name}\n  trigger: {{type: manual}}\n  compute: {{type: custom, command: c}}\n{rest}")
}

impl Silo {
    pub async fn start(files: &[(&str, &str)]) -> Self {
        Self::with(files, Values::default()).await
    }

    pub async fn with(files: &[(&str, &str)], values: Values) -> Self {
        // Another test may have been first.
        drop(rustls::crypto::ring::default_provider().install_default());
        let folder = tempfile::tempdir().unwrap();
        let values = values.with(windlass_server::dialects::silo::settings::silo_jobs, folder.path().to_str().unwrap());
        let server = Server::with(Options { values, ..Options::default() }).await;
        let service = Service::new(server.app.clone());
        let listening = crate::socket::listen_with(server, service, listener::Limits::default()).await;
        let silo = Self { listening, folder, http: Client::new() };
        for (name, text) in files {
            silo.write(name, text);
        }
        silo.admin("POST", "/api/job-definitions/reload", json!({})).await.expect(200);
        silo
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    pub fn app(&self) -> &windlass_server::App {
        &self.listening.server.app
    }

    pub fn request(&self, token: &str, method: &str, path: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.listening.address);
        self.http.request(method.parse::<Method>().unwrap(), url).bearer_auth(token)
    }

    pub async fn call(&self, token: &str, method: &str, path: &str, body: Value) -> Answer {
        let mut request = self.request(token, method, path);
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Answer { status, headers, body }
    }

    pub async fn admin(&self, method: &str, path: &str, body: Value) -> Answer {
        self.call(&token(Role::Admin), method, path, body).await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.call(&token(Role::Viewer), "GET", path, Value::Null).await.expect(200)
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(&token(Role::Editor), "POST", path, body).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.call(&token(Role::Editor), "PUT", path, body).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call(&token(Role::Editor), "DELETE", path, Value::Null).await
    }

    pub async fn item(&self, part: &str, kind: &str) -> Value {
        self.post("/api/items", json!({"part_number": part, "item_type": kind})).await.expect(201)
    }

    /// A runner's token.
    pub async fn runner(&self, name: &str, tags: &[&str]) -> String {
        let made = self.admin("POST", "/api/runners", json!({"name": name, "tags": tags})).await.expect(201);
        made["token"].as_str().unwrap().to_owned()
    }

    /// A job's id.
    pub async fn job(&self, definition: &str, part: &str) -> String {
        let body = json!({"definition_name": definition, "part_number": part});
        text(&self.post("/api/jobs", body).await.expect(201)["id"])
    }

    pub async fn claim(&self, runner: &str) -> Option<Value> {
        let answer = self.call(runner, "POST", "/api/runner/claim", Value::Null).await;
        if answer.status == 204 { None } else { Some(answer.expect(200)) }
    }

    /// A report on a job.
    pub async fn report(&self, runner: &str, job: &str, what: &str, body: Value) -> Answer {
        let method = if matches!(what, "progress" | "dag") { "PUT" } else { "POST" };
        self.call(runner, method, &format!("/api/runner/jobs/{job}/{what}"), body).await
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string")).to_owned()
}

/// One field of each.
pub fn all<'a>(list: &'a Value, field: &str) -> Vec<&'a Value> {
    list.as_array().unwrap().iter().map(|one| &one[field]).collect()
}
