use serde_json::{Value, json};
use windlass_plan::neops::{course::Course, document::Document, reference::EntityType};

fn course(steps: Value) -> Result<Course, String> {
    let document = json!({"type": "workflow", "label": "wf", "name": "n", "package": "p", "majorVersion": 1,
        "minorVersion": 0, "patchVersion": 0, "seedEntity": "device", "runOn": "device",
        "condition": {"type": "jmes", "jmes": "outer"}, "assert": [{"type": "jmes", "jmes": "first"}],
        "steps": steps});
    Course::of(&Document::read(&document).expect("a document"))
}

#[test]
fn embedded_steps_come_in_their_place_under_the_conditions_of_what_they_are_in() {
    let block = |label: &str| json!({"type": "functionBlock", "label": label, "functionBlock": "p/b:1"});
    let inner = json!({"type": "workflow", "label": "in", "name": "in", "runOn": "interface",
        "condition": {"type": "jmes", "jmes": "inner"}, "assert": [{"type": "jmes", "jmes": "checked"}],
        "steps": [block("b"), block("c")]});
    let made = course(json!([block("a"), inner, block("d")])).unwrap();
    let shown: Vec<String> = made
        .steps
        .iter()
        .map(|step| {
            let on = step.run_on.map_or("-", EntityType::as_str);
            format!("{} {} {} {on}", step.label, step.conditions.join("+"), step.asserts.join("+"))
        })
        .collect();
    let expected =
        ["a outer first device", "b outer+inner checked interface", "c outer+inner  interface", "d outer  device"];
    assert_eq!(shown, expected);
}

#[test]
fn a_workflow_that_refers_to_another_is_not_run() {
    let step = json!([{"type": "workflowReference", "label": "r", "workflow": "p/n:1", "strategy": "embed"}]);
    assert!(course(step).unwrap_err().contains("step r"));
}
