use serde_json::{Value, json};
use std::path::Path;
use windlass_worker::silo::{calls::Job, files::output};

fn job(template: Value, part: Option<&str>) -> Job {
    let job = json!({"id": "i", "compute_command": "c", "args": {"output_key_template": template}, "part_number": part,
        "revision_number": part.map(|_| 3), "timeout_seconds": 1});
    serde_json::from_value(job).unwrap()
}

#[test]
fn templates_name_the_part_and_its_revision() {
    let folder = Path::new("/w");
    let found = output(&job(json!("exports/{part_number}_rev{revision}.step"), Some("F01-0001")), folder).unwrap();
    let found = found.unwrap();
    assert_eq!(found.key, "exports/F01-0001_rev3.step");
    assert_eq!(found.file, Path::new("/w/exports/F01-0001_rev3.step"));
    assert_eq!(output(&job(Value::Null, Some("a")), folder), Ok(None));
    assert_eq!(output(&job(json!("all.json"), None), folder).unwrap().unwrap().key, "all.json");
    for (template, part) in [
        (json!("../{part_number}"), Some("a")),
        (json!("/etc/x"), Some("a")),
        (json!(""), Some("a")),
        (json!("a/../../b"), Some("a")),
        (json!(5), Some("a")),
        (json!("{part_number}"), None),
    ] {
        let why = output(&job(template.clone(), part), folder).unwrap_err();
        assert!(why.starts_with("args.output_key_template: "), "{template}: {why}");
    }
}
