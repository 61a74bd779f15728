//! JSON Schemas of definitions: compiled once per version, kept for the versions in use.
//!
//! Nothing is ever fetched: a reference out of the schema is refused when the definition is written. Patterns run on an
//! engine without backtracking, so that no payload can make them slow.

use crate::problem::Problem;
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};
use windlass_api::definition::DefinitionBody;
use windlass_core::{
    JobId, JobKey, Namespace, Payload,
    definition::{Definition, version_key},
    job::DefinitionRef,
};
use windlass_engine::Engine;

/// Compiled versions kept; the one unused for longest goes first.
const KEPT: usize = 256;
/// Jobs remembered to have no definition; twice as many at most.
const PLAIN: usize = 50_000;

/// A definition's version, ready for use.
pub struct Compiled {
    pub body: DefinitionBody,
    payload: Option<jsonschema::Validator>,
    result: Option<jsonschema::Validator>,
}

impl Compiled {
    pub fn new(body: DefinitionBody) -> Result<Self, Problem> {
        let payload = body.payload_schema.as_ref().map(|schema| compile("payload_schema", schema)).transpose()?;
        let result = body.result_schema.as_ref().map(|schema| compile("result_schema", schema)).transpose()?;
        Ok(Self { body, payload, result })
    }

    pub fn check_payload(&self, payload: &Payload) -> Result<(), Problem> {
        self.payload.as_ref().map_or(Ok(()), |schema| check(schema, payload))
    }

    pub fn check_result(&self, result: &Payload) -> Result<(), Problem> {
        self.result.as_ref().map_or(Ok(()), |schema| check(schema, result))
    }
}

fn compile(field: &'static str, schema: &serde_json::Value) -> Result<jsonschema::Validator, Problem> {
    let options = jsonschema::options().offline().with_pattern_options(jsonschema::PatternOptions::regex());
    options.build(schema).map_err(|error| {
        let at = error.instance_path().as_str();
        Problem::invalid(format!("{field}{at}"), format!("this is no JSON Schema that can be used: {error}"))
    })
}

/// Whether a schema can be used, and whether a value meets it.
pub fn check_value(field: &'static str, schema: &serde_json::Value, value: Option<&Payload>) -> Result<(), Problem> {
    let compiled = compile(field, schema)?;
    value.map_or(Ok(()), |value| check(&compiled, value))
}

/// The first thing wrong, with the pointer to it.
fn check(schema: &jsonschema::Validator, json: &Payload) -> Result<(), Problem> {
    let bytes = if json.is_empty() { b"null" } else { json.as_bytes() };
    let value: serde_json::Value = serde_json::from_slice(bytes)
        .map_err(|error| Problem::new("schema", format!("this is no JSON: {error}")).at(""))?;
    schema.validate(&value).map_err(|error| {
        let pointer = error.instance_path().as_str().to_owned();
        let shown: String = error.to_string().chars().take(500).collect();
        Problem::new("schema", shown).at(pointer)
    })
}

type Key = (Namespace, Arc<str>, u32);

/// What is known about definitions and about the jobs made from them. Both never change, so nothing in here goes stale.
#[derive(Default)]
pub struct Schemas {
    compiled: Mutex<Kept>,
    plain: Mutex<Plain>,
}

#[derive(Default)]
struct Kept {
    uses: u64,
    versions: HashMap<Key, (u64, Arc<Compiled>)>,
}

/// Jobs that were claimed here and have no definition, so that their completion needs no look at them.
#[derive(Default)]
struct Plain {
    recent: HashSet<JobId>,
    older: HashSet<JobId>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Schemas {
    /// The version a reference points at.
    pub async fn get(
        &self,
        engine: &Engine,
        namespace: &Namespace,
        reference: &DefinitionRef,
    ) -> Result<Arc<Compiled>, Problem> {
        let key = (namespace.clone(), reference.name.clone(), reference.version);
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let stored = version_key(&reference.name, reference.version);
        let found = engine.read_record::<Definition>(namespace, &stored).await?;
        let shown = format!("{}@{}", reference.name, reference.version);
        let found = found.ok_or_else(|| Problem::not_found("definition", &shown).at("definition"))?;
        let body = serde_json::from_str(&found.body)
            .map_err(|error| Problem::new("damaged", format!("the definition {shown} cannot be read: {error}")))?;
        let compiled = Arc::new(Compiled::new(body)?);
        self.keep(key, compiled.clone());
        Ok(compiled)
    }

    fn known(&self, key: &Key) -> Option<Arc<Compiled>> {
        let mut kept = lock(&self.compiled);
        kept.uses += 1;
        let now = kept.uses;
        let (used, compiled) = kept.versions.get_mut(key)?;
        *used = now;
        Some(compiled.clone())
    }

    fn keep(&self, key: Key, compiled: Arc<Compiled>) {
        let mut kept = lock(&self.compiled);
        if kept.versions.len() >= KEPT {
            let oldest = kept.versions.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| kept.versions.remove(&oldest));
        }
        let now = kept.uses;
        kept.versions.insert(key, (now, compiled));
    }

    /// Remembers that a claimed job has no definition.
    pub fn note_plain(&self, job: JobId) {
        let mut plain = lock(&self.plain);
        if plain.recent.len() >= PLAIN {
            plain.older = std::mem::take(&mut plain.recent);
        }
        plain.recent.insert(job);
    }

    fn is_plain(&self, job: &JobId) -> bool {
        let plain = lock(&self.plain);
        plain.recent.contains(job) || plain.older.contains(job)
    }

    /// Whether a result is one that the job's definition allows. Jobs that are gone are left to the rules to refuse.
    pub async fn check_result(&self, engine: &Engine, key: &JobKey, result: &Payload) -> Result<(), Problem> {
        if self.is_plain(&key.id) {
            return Ok(());
        }
        let Some(job) = engine.store().job(key).await? else { return Ok(()) };
        match &job.spec.definition {
            Some(definition) => self.get(engine, &key.namespace, definition).await?.check_result(result),
            None => {
                self.note_plain(key.id);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compiled(schema: serde_json::Value) -> Result<Compiled, Problem> {
        Compiled::new(DefinitionBody { payload_schema: Some(schema), ..DefinitionBody::default() })
    }

    #[test]
    fn the_pointer_leads_to_what_is_wrong() {
        let schema = json!({"type": "object", "required": ["to"], "properties": {
            "to": {"type": "array", "items": {"type": "string"}}, "a/b": {"type": "integer"}}});
        let compiled = compiled(schema).unwrap();
        let table = [
            (r#"{"to": ["x"]}"#, None),
            (r#"{"to": ["x", 7]}"#, Some("/to/1")),
            (r#"{"to": [], "a/b": "no"}"#, Some("/a~1b")),
            (r#"{}"#, Some("")),
            ("", Some("")),
        ];
        for (payload, field) in table {
            let problem = compiled.check_payload(&payload.into()).err();
            assert_eq!(problem.as_ref().and_then(|problem| problem.0.field.as_deref()), field, "{payload}");
            assert!(problem.is_none_or(|problem| problem.0.code() == "schema"));
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_when_it_is_written() {
        let bad = [
            json!({"type": "strnig"}),
            json!({"$ref": "http://127.0.0.1:1/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"pattern": "(a+)+\\1$"}),
            json!(7),
        ];
        for schema in bad {
            let problem = compiled(schema.clone()).err().unwrap_or_else(|| panic!("{schema}"));
            assert!(problem.0.field.unwrap().starts_with("payload_schema"), "{schema}");
        }
        assert!(compiled(json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}})).is_ok());
    }

    #[test]
    fn only_the_versions_in_use_are_kept() {
        let schemas = Schemas::default();
        let key = |version| (Namespace::default(), Arc::from("d"), version);
        for version in 0..KEPT as u32 + 10 {
            schemas.keep(key(version), Arc::new(compiled(json!({})).unwrap()));
            schemas.known(&key(0));
        }
        assert!(schemas.known(&key(0)).is_some() && schemas.known(&key(1)).is_none());
        assert_eq!(lock(&schemas.compiled).versions.len(), KEPT);
    }
}
