//! The API's description, made from the table of routes: OpenAPI 3.1, with one schema per type on the wire. What is made is stored in
//! `docs/openapi.json`, and that is served.

use super::codes::{IN_NAMESPACE, problems, resource};
use crate::route::{Access, Header, Reply, Route};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub fn document(routes: &[Route]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<windlass_api::Problem>();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in routes.iter().filter(|route| route.surface.is_native()) {
        let operation = operation(route, &mut generator, &problem.clone().to_value());
        paths.entry(route.path).or_default().insert(route.method.as_str().to_lowercase(), operation);
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A job server: workers pull jobs, hold them under leases, and report. \
                Times are RFC 3339 in UTC, lengths are whole milliseconds. Errors are problem documents (RFC 9457), \
                explained under /docs/errors. Every answer has an `X-Request-Id`: the caller's own, where it sent a short \
                plain one.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator, problem: &Value) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.doc.summary,
        "tags": [resource(route)],
        "x-access": format!("{:?}", route.access).to_lowercase(),
        "parameters": parameters(route, generator),
        "responses": responses(route, generator, problem),
    });
    if route.access == Access::Open {
        operation["security"] = json!([]);
    }
    if let Some((content, schema)) = &route.doc.body {
        let schema = schema.map_or_else(|| json!({}), |schema| schema.make(generator));
        // Nothing is as good as an empty object.
        let required = *content != "application/json" || !whole(&schema, generator)["required"].is_null();
        operation["requestBody"] = json!({"content": {(*content): {"schema": schema}}, "required": required});
    }
    operation
}

/// `GET /api/v1/jobs/{id}/why` is `get_jobs_id_why`.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1");
    let words = path.split(['/', '{', '}', '.', '-']).filter(|word| !word.is_empty());
    std::iter::once(route.method.as_str().to_lowercase().as_str()).chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(route: &Route, generator: &mut SchemaGenerator) -> Vec<Value> {
    let resource = resource(route);
    let mut found: Vec<Value> = route.path.split('/').filter_map(|part| path_parameter(resource, part)).collect();
    if let Some(query) = route.doc.query {
        let schema = query.make(generator);
        found.extend(query_parameters(&whole(&schema, generator)));
    }
    let named = found.iter().any(|parameter| parameter["name"] == "namespace");
    if !named && IN_NAMESPACE.contains(&resource) {
        found.push(json!({
            "name": "namespace", "in": "query", "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]{0,63}$"},
            "description": "Where; `default` where absent.",
        }));
    }
    found.extend(route.doc.headers.iter().map(header_parameter));
    found
}

/// What a schema that only refers to another one stands for.
fn whole(schema: &Value, generator: &SchemaGenerator) -> Value {
    let name = schema["$ref"].as_str().and_then(|at| at.rsplit('/').next()).unwrap_or_default();
    generator.definitions().get(name).unwrap_or(schema).clone()
}

fn header_parameter(header: &Header) -> Value {
    json!({"name": header.name, "in": "header", "schema": {"type": header.kind}, "description": header.says})
}

fn path_parameter(resource: &str, segment: &str) -> Option<Value> {
    let name = segment.strip_prefix('{')?.strip_suffix('}')?;
    let schema = match (resource, name) {
        (_, "version") => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
        ("jobs" | "artifacts", "id") => json!({"type": "string", "format": "uuid"}),
        ("tokens", "id") => json!({"type": "string", "pattern": "^[0-9a-f]{16}$"}),
        _ => json!({"type": "string"}),
    };
    Some(json!({"name": name, "in": "path", "required": true, "schema": schema}))
}

fn query_parameters(schema: &Value) -> Vec<Value> {
    let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        not_null(&mut schema);
        let mut parameter = json!({"name": name, "in": "query", "schema": schema});
        if required(name) {
            parameter["required"] = json!(true);
        }
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameter
    };
    schema["properties"].as_object().into_iter().flatten().map(parameter).collect()
}

/// A query has no null: what may be null in the type may be left out in the query.
fn not_null(schema: &mut Value) {
    if let Some(types) = schema["type"].as_array() {
        let rest: Vec<Value> = types.iter().filter(|one| *one != "null").cloned().collect();
        schema["type"] = if rest.len() == 1 { rest[0].clone() } else { Value::Array(rest) };
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("default");
    }
}

fn responses(route: &Route, generator: &mut SchemaGenerator, problem: &Value) -> Value {
    let mut responses: BTreeMap<String, Value> = BTreeMap::new();
    for reply in &route.doc.replies {
        let entry = responses.entry(reply.status.to_string()).or_insert_with(|| json!({"description": said(reply)}));
        if !reply.content.is_empty() {
            let schema = reply.schema.map_or_else(|| json!({}), |schema| schema.make(generator));
            entry["content"][reply.content] = json!({"schema": schema});
        }
    }
    for (status, codes) in problems(route) {
        let description = codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ");
        let content = json!({"application/problem+json": {"schema": problem}});
        responses.insert(status.to_string(), json!({"description": description, "content": content}));
    }
    json!(responses)
}

fn said(reply: &Reply) -> &'static str {
    match reply.status {
        201 => "Made.",
        204 => "Done.",
        _ => "As asked.",
    }
}
