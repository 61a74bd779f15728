use serde_json::{Value, json};
use windlass_plan::neops::document::Document;
use windlass_server::dialects::neops::definitions::schema::SCHEMA;

fn small() -> Value {
    json!({"type": "workflow", "label": "hello", "name": "hello", "package": "wf.example", "majorVersion": 1,
        "minorVersion": 0, "patchVersion": 0, "seedEntity": "global",
        "steps": [{"type": "functionBlock", "label": "echo", "functionBlock": "fb.example/echo:1"}]})
}

/// The schema and the reader are two ways to say the same.
#[test]
fn the_schema_accepts_what_is_read_and_nothing_else() {
    let validator = jsonschema::draft7::new(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let jmes = json!({"type": "jmes", "jmes": "a"});
    let cron = json!({"title": "t", "description": "d", "query": "q", "concurrency": false, "enabled": true, "crontab": {
        "second": "0", "minute": "0", "hour": "0", "dayOfMonth": "1", "month": "1", "dayOfWeek": "*", "timezone": "UTC"}});
    let inner = json!({"type": "workflow", "label": "in", "name": "in", "steps": [
        {"type": "workflowReference", "label": "r", "workflow": "p/n:1.2", "strategy": "embed"}]});
    let block =
        json!({"type": "functionBlock", "label": "b", "functionBlock": "p/n:1.2.3", "condition": jmes, "delay": 3});
    let table = [
        ("/description", json!("d"), true),
        ("/description", json!(7), false),
        ("/label", json!("steps"), false),
        ("/label", json!("1a"), false),
        ("/name", json!("a/b"), false),
        ("/name", json!(""), false),
        ("/majorVersion", json!("1"), false),
        ("/majorVersion", json!(-1), false),
        ("/seedEntity", json!("planet"), false),
        ("/steps", json!([]), false),
        ("/steps", json!([inner, block]), true),
        ("/steps", json!([{"type": "functionBlock", "label": "b", "functionBlock": "p/n"}]), false),
        ("/steps", json!([{"type": "loop", "label": "b"}]), false),
        ("/steps", json!([{"type": "workflow", "label": "in", "name": "in", "steps": []}]), false),
        ("/condition", jmes.clone(), true),
        ("/condition", json!("a"), false),
        ("/assert", json!([jmes]), true),
        ("/assert", json!([{"type": "jmes"}]), false),
        ("/cron", json!([cron]), true),
        ("/cron", json!([{"title": "t"}]), false),
        ("/acquire", json!([{"type": "elastic", "entity": "device", "query": "q", "limit": 3}]), true),
        ("/acquire", json!([{"type": "expansion", "entity": "interface", "expandFromSeedEntity": true}]), true),
        ("/acquire", json!([{"type": "context", "entity": "device"}]), true),
        ("/acquire", json!([{"type": "reference", "entity": "device", "label": "x"}]), true),
        ("/acquire", json!([{"type": "magic", "entity": "device"}]), false),
        ("/retryConfig", json!({"maxRetries": 3}), true),
        ("/retryConfig", json!({}), false),
        ("/repeatConfig", json!({"repeats": 101}), false),
        ("/config", json!({"executionStrategy": {"parallel": true}}), true),
        ("/config", json!({"executionStrategy": {"parallel": 1}}), false),
        ("/unknown", json!(1), true),
    ];
    for (pointer, value, expected) in table {
        let mut document = small();
        document[&pointer[1..]] = value;
        assert_eq!(validator.is_valid(&document), expected, "schema: {pointer} {document}");
        assert_eq!(Document::read(&document).is_ok(), expected, "reader: {pointer} {document}");
    }
}
