use windlass_core::Limits;
use windlass_server::{
    definition,
    definitions::{FAULTS_MAX, checked, parse},
};

#[test]
fn a_file_reads_with_or_without_its_name() {
    let (name, body) = parse("name: build\ntags: [gpu]\npayload: {n: 1}\nretry: {attempts: 2}\n").unwrap();
    assert_eq!((name.as_deref(), body.settings().tags), (Some("build"), Some(vec!["gpu".to_owned()])));
    let attempts = body.settings().retry.unwrap().attempts;
    assert_eq!((body.payload, attempts), (Some(serde_json::json!({"n": 1})), Some(2)));
    assert_eq!(parse(r#"{"description": "as JSON"}"#).unwrap().1.description, "as JSON");
}

#[test]
fn a_fault_names_its_place() {
    let table = [
        ("tags: [gpu\n", None),
        ("tags: [gpu]\npriority: high\n", Some(2)),
        ("tags: [gpu]\nretry:\n  attempts: 2\n  tires: 3\n", Some(4)),
        ("description: x\npayloadschema: {}\n", Some(2)),
    ];
    for (text, line) in table {
        let fault = parse(text).unwrap_err();
        assert!(!fault.text.is_empty());
        assert!(fault.line > 0 && line.is_none_or(|line| fault.line == line), "{text}: {fault}");
    }
}

#[test]
fn all_that_is_wrong_with_a_definition_is_told_at_once_with_its_place() {
    let text = "description: x\ntags: gpu\npriority: high\nretry:\n  attempts: many\n  tires: 3\n  backoff_ms: 5\npayloadschema: {}\n";
    let faults = checked(text, "x", &Limits::default()).unwrap_err();
    let places: Vec<(u64, &str)> = faults.iter().map(|fault| (fault.line, fault.field.as_str())).collect();
    let expected = [(2, "tags"), (3, "priority"), (5, "retry"), (6, "retry"), (8, "payloadschema")];
    assert_eq!(places, expected, "{faults:?}");
    assert!(faults[3].text.contains("tires") && (faults[3].line, faults[3].column) == (6, 3), "{faults:?}");
    // What is of the right kind but not allowed.
    let text = "timeout_ms: 99999999999999999\nlease_ms: 99999999999999999\npayload_schema: {type: 5}\n";
    let faults = checked(text, "x", &Limits::default()).unwrap_err();
    let lines: Vec<u64> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [1, 2, 3], "{faults:?}");
    // Each alone would do, together they do not.
    let text = "payload: {n: text}\npayload_schema: {properties: {n: {type: integer}}}\n";
    let faults = checked(text, "x", &Limits::default()).unwrap_err();
    assert_eq!((faults.len(), faults[0].line), (1, 1), "{faults:?}");
    let many: String = (0..50).map(|number| format!("unknown{number}: 1\n")).collect();
    assert_eq!(checked(&many, "x", &Limits::default()).unwrap_err().len(), FAULTS_MAX);
}

#[test]
fn bombs_are_refused() {
    let bomb = |levels: usize| {
        let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..levels {
            let alias = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", [alias.as_str(); 9].join(","));
        }
        text
    };
    let deep =
        |open: &str, close: &str, levels: usize| format!("payload: {}1{}\n", open.repeat(levels), close.repeat(levels));
    let bombs = [
        bomb(9),
        bomb(3),
        "payload: &a {b: *a}\n".into(),
        "payload: &a [1]\nretry: *a\n".into(),
        "x: &a {attempts: 1}\nretry: {<<: *a}\n".into(),
        deep("[", "]", 33),
        deep("[", "]", 100_000),
        deep("{a: ", "}", 10_000),
        format!("payload:\n{}", (0..2_000).map(|n| format!("{}a:\n", " ".repeat(n))).collect::<String>()),
        "description: \"".to_owned() + &"x".repeat(definition::BYTES_MAX) + "\"\n",
        format!("payload: [{}]\n", "[],".repeat(60_000)),
        "a\n---\nb\n".repeat(1_000),
    ];
    for text in bombs {
        assert!(parse(&text).is_err(), "{}", &text[..text.len().min(80)]);
    }
    assert!(parse(&deep("[", "]", 29)).is_ok());
}
