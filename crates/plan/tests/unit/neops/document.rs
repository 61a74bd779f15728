use super::put;
use serde_json::{Value, json};
use windlass_plan::neops::{
    acquire::By,
    document::{DEPTH_MAX, Document, EXPRESSION_BYTES_MAX, STEPS_MAX, Strategy, Work},
    read::FaultKind,
    reference::{EntityType, Reference},
};

fn small() -> Value {
    json!({"type": "workflow", "label": "hello", "name": "hello", "package": "wf.example", "majorVersion": 1,
        "minorVersion": 0, "patchVersion": 0, "seedEntity": "global",
        "steps": [{"type": "functionBlock", "label": "echo", "functionBlock": "fb.example/echo:1",
            "parameters": {"message": "{{ parameters.who }}"}}]})
}

/// The small document with another value at this pointer; without it if that is null.
fn with(pointer: &str, value: Value) -> Value {
    let mut document = small();
    put(&mut document, pointer, value);
    document
}

fn faults(document: &Value) -> Vec<String> {
    Document::read(document).expect_err("faulty").iter().map(ToString::to_string).collect()
}

#[test]
fn the_smallest_document_is_read() {
    let made = Document::read(&small()).unwrap();
    assert_eq!(made.id(), "wf.example/hello:1.0.0");
    assert_eq!(made.seed, EntityType::Global);
    assert_eq!(made.steps[0].work, Work::Block(Reference::parse("fb.example/echo:1").unwrap()));
    assert_eq!(made.steps[0].common.parameters["message"], json!("{{ parameters.who }}"));
}

#[test]
fn everything_a_document_may_say_is_read() {
    let jmes = |text: &str| json!({"type": "jmes", "jmes": text});
    let mut document = small();
    let whole = json!({"description": "d", "parameterSchema": {"type": "object"}, "hideForExecution": false, "$schema": "s",
        "config": {"executionStrategy": {"parallel": true}}, "condition": jmes("a"), "assert": [jmes("b"), jmes("c")],
        "runOn": "device", "rawParameters": {"r": 1}, "delay": 0, "unknown": {"is": "ignored"},
        "acquire": [{"type": "elastic", "entity": "device", "query": "q", "limit": "{{ parameters.n }}", "assertNotEmpty": true},
            {"type": "expansion", "entity": "interface", "expandFromSeedEntity": true},
            {"type": "context", "entity": "device", "filter": "state == 'UP'"},
            {"type": "reference", "entity": "device", "label": "echo"}],
        "cron": [{"title": "t", "description": "d", "query": "q", "concurrency": false, "enabled": true,
            "crontab": {"second": "0", "minute": "*/5", "hour": "*", "dayOfMonth": "*", "month": "*", "dayOfWeek": "1-5",
                "timezone": "Europe/Berlin"}}],
        "steps": [{"type": "workflow", "label": "inner", "name": "inner", "continueOnError": true, "delay": 1,
            "retryConfig": {"maxRetries": 3, "delay": 0.5}, "repeatConfig": {"repeats": 2},
            "steps": [{"type": "workflowReference", "label": "other", "workflow": "p/n:1.2", "strategy": "dispatch"}]}]});
    document.as_object_mut().unwrap().extend(whole.as_object().unwrap().clone());
    let made = Document::read(&document).unwrap();
    assert!(made.parallel);
    assert_eq!(
        (made.common.condition.as_deref(), &made.common.asserts[..]),
        (Some("a"), &["b".into(), "c".into()][..])
    );
    assert_eq!(made.common.run_on, Some(EntityType::Device));
    assert!(made.common.acquire[0].not_empty && !made.common.acquire[1].not_empty);
    assert_eq!(made.common.acquire[1].by, By::Expansion { from_seed: true });
    assert_eq!((&*made.cron[0].cron, &*made.cron[0].time_zone), ("0 */5 * * * 1-5", "Europe/Berlin"));
    let Work::Embedded { steps, .. } = &made.steps[0].work else { panic!("{made:?}") };
    assert!(matches!(&steps[0].work, Work::Workflow { strategy: Strategy::Dispatch, .. }));
    assert_eq!(made.steps[0].common.unheeded, ["continueOnError", "delay", "retryConfig", "repeatConfig"]);
    let mut seen = Vec::new();
    made.each(&mut |place, step| seen.push(format!("{place} {}", step.label)));
    assert_eq!(seen, ["steps[0] inner", "steps[0].steps[0] other"]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let step = "/steps/0";
    let table = [
        (with("/label", json!("steps")), "label must have letters"),
        (with("/label", json!(null)), "label is missing"),
        (with("/name", json!("a/b")), "name must not contain '/' or ':'"),
        (with("/name", json!("x".repeat(101))), "name must have 1 to 100 characters"),
        (with("/package", json!("")), "package must have 1 to 100 characters"),
        (with("/majorVersion", json!("1")), "majorVersion must be a whole number"),
        (with("/minorVersion", json!(1.5)), "minorVersion must be a whole number"),
        (with("/patchVersion", json!(-1)), "patchVersion must be a whole number"),
        (with("/seedEntity", json!("planet")), "seedEntity must be one of global"),
        (with("/type", json!("functionBlock")), "type must be \"workflow\""),
        (with("/steps", json!([])), "steps must have at least one step"),
        (with("/steps", json!({})), "steps must be a list"),
        (with("/steps", json!(null)), "steps is missing"),
        (with("/steps", json!([7])), "steps[0] must be an object"),
        (with("/hideForExecution", json!("true")), "hideForExecution must be true or false"),
        (with("/delay", json!(601)), "delay must be between 0 and 600"),
        (with("/description", json!("x".repeat(1001))), "description must have 0 to 1000 characters"),
        (
            with("/config", json!({"executionStrategy": {"parallel": 1}})),
            "config.executionStrategy.parallel must be true",
        ),
        (with("/condition", json!("a == b")), "condition must be an object"),
        (with("/assert", json!([{"type": "jmes"}])), "assert[0].jmes is missing"),
        (with("/acquire", json!([{"type": "magic", "entity": "device"}])), "acquire[0].type must be elastic"),
        (with("/acquire", json!([{"type": "elastic", "entity": "device"}])), "acquire[0].query is missing"),
        (with("/retryConfig", json!({"maxRetries": 0})), "retryConfig.maxRetries must be between 1 and 100"),
        (with("/cron", json!([{"title": "t"}])), "cron[0].description is missing"),
        (with(&format!("{step}/label"), json!("1st")), "steps[0].label must have letters"),
        (with(&format!("{step}/functionBlock"), json!("fb.example/echo")), "steps[0].functionBlock must look like"),
        (with(&format!("{step}/functionBlock"), json!(null)), "steps[0].functionBlock is missing"),
        (with(&format!("{step}/type"), json!("loop")), "steps[0].type must be functionBlock"),
        (with(&format!("{step}/parameters"), json!([])), "steps[0].parameters must be an object"),
        (with(&format!("{step}/runOn"), json!(1)), "steps[0].runOn must be a string"),
    ];
    for (document, expected) in table {
        let found = faults(&document);
        assert!(found.iter().any(|fault| fault.starts_with(expected)), "{expected}: {found:?}");
    }
    assert_eq!(faults(&json!([])), ["must be an object"]);
    assert!(faults(&json!({})).len() >= 8, "all at once");
}

#[test]
fn a_label_has_one_owner_in_the_whole_workflow() {
    let block = |label: &str| json!({"type": "functionBlock", "label": label, "functionBlock": "p/n:1"});
    let inner = json!({"type": "workflow", "label": "inner", "name": "i", "steps": [block("a")]});
    for steps in [json!([block("a"), inner]), json!([block("a"), block("a")]), json!([block("hello")])] {
        let found = Document::read(&with("/steps", steps)).unwrap_err();
        assert_eq!(found.iter().map(|fault| fault.kind).collect::<Vec<_>>(), [FaultKind::Twice]);
        assert!(found[0].place.ends_with("label"), "{found:?}");
    }
}

#[test]
fn documents_have_bounds() {
    let block = |at: usize| json!({"type": "functionBlock", "label": format!("s{at}"), "functionBlock": "p/n:1"});
    let many: Vec<Value> = (0..=STEPS_MAX).map(block).collect();
    assert!(faults(&with("/steps", json!(many)))[0].contains("at most 1000"));
    assert!(Document::read(&with("/steps", json!(many[1..]))).is_ok());
    let mut deep = block(0);
    for at in 1..=DEPTH_MAX + 1 {
        deep = json!({"type": "workflow", "label": format!("w{at}"), "name": "w", "steps": [deep]});
    }
    assert!(faults(&with("/steps", json!([deep])))[0].contains("16 deep"));
    let long = json!({"type": "jmes", "jmes": "a".repeat(EXPRESSION_BYTES_MAX + 1)});
    assert!(faults(&with("/condition", long))[0].starts_with("condition.jmes must have at most 4096 bytes"));
}
