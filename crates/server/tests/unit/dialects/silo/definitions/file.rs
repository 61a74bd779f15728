use windlass_server::dialects::silo::definitions::{ScopeKind, file::parse};

const GOOD: &str = include_str!("../../../../../../../examples/silo/assembly-validate.yaml");
const EXPORT: &str = include_str!("../../../../../../../examples/silo/part-export-step.yaml");

#[test]
fn the_examples_read_as_they_are_written() {
    let validate = parse("assembly-validate.yaml", GOOD, 100).unwrap();
    assert_eq!((validate.timeout, validate.max_retries, validate.priority), (900, 2, 50));
    assert_eq!(validate.trigger.filter["item_type"], "assembly");
    assert_eq!(validate.scope.kind, ScopeKind::Assembly);
    assert_eq!(validate.runner.tags, ["create"]);
    let export = parse("part-export-step.yaml", EXPORT, 100).unwrap();
    assert_eq!(export.compute.args["output_key_template"], "exports/{part_number}_rev{revision}.step");
}

#[test]
fn defaults_are_filled_in() {
    let text = "job:\n  name: x\n  trigger: {type: manual}\n  compute: {type: custom, command: c}\n";
    let made = parse("x.yaml", text, 77).unwrap();
    assert_eq!((made.version, made.timeout, made.max_retries, made.priority), (1, 600, 1, 77));
    assert_eq!((made.scope.kind, made.description.as_str()), (ScopeKind::Item, ""));
    let under_runner = text.to_owned() + "  runner: {tags: [a, b, a], timeout: 5, priority: -3}\n";
    let made = parse("x.yaml", &under_runner, 77).unwrap();
    assert_eq!((made.timeout, made.priority, made.runner.tags), (5, -3, vec!["a".to_owned(), "b".to_owned()]));
}

/// Line, column, field.
type FaultAt = (u64, u64, Option<String>);

fn told(text: &str) -> Vec<FaultAt> {
    let faults = parse("bad.yaml", text, 100).expect_err(text);
    faults.into_iter().map(|fault| (fault.line, fault.column, fault.field)).collect()
}

#[test]
fn every_problem_is_told_with_its_place_and_its_field() {
    let field = |name: &str| Some(name.to_owned());
    let body = "job:\n  name: x\n  trigger:\n    type: manual\n  compute: {type: custom, command: c}\n";
    let table: Vec<(String, Vec<FaultAt>)> = vec![
        ("".into(), vec![(1, 1, None)]),
        ("# nothing\n\n".into(), vec![(1, 1, None)]),
        ("jobs: {}\n".into(), vec![(1, 1, field("jobs")), (1, 1, field("job"))]),
        (body.replace("manual", "manually"), vec![(4, 11, field("trigger.type"))]),
        (body.replace("name: x", "name: -x"), vec![(2, 9, field("name"))]),
        (body.replace("  name: x\n", ""), vec![(1, 1, field("name"))]),
        (body.replace("name: x", "name: 7"), vec![(2, 9, field("name"))]),
        (body.replace("command: c", "cmd: c"), vec![(5, 27, field("compute.cmd")), (5, 12, field("compute.command"))]),
        (body.to_owned() + "  timeout: 0\n", vec![(6, 12, field("timeout"))]),
        (body.to_owned() + "  timeout: soon\n", vec![(6, 12, field("timeout"))]),
        (body.to_owned() + "  version: 1.5\n", vec![(6, 12, field("version"))]),
        (body.to_owned() + "  retries: 3\n", vec![(6, 3, field("retries"))]),
        (body.to_owned() + "  timeout: 5\n  runner: {timeout: 6}\n", vec![(7, 21, field("runner.timeout"))]),
        (body.to_owned() + "  runner: {tags: [a, ' b']}\n", vec![(6, 22, field("runner.tags"))]),
        (body.to_owned() + "  runner: {tags: create}\n", vec![(6, 18, field("runner.tags"))]),
        (body.replace("type: manual", "type: manual\n    cron: '* * * * *'"), vec![(5, 5, field("trigger.cron"))]),
        (body.replace("type: manual", "type: schedule\n    cron: soon"), vec![(5, 11, field("trigger.cron"))]),
        (
            body.replace("type: manual", "type: schedule\n    cron: '@daily'\n    timezone: Mars/Base"),
            vec![(6, 15, field("trigger.timezone"))],
        ),
        (
            body.replace("type: manual", "type: manual\n    filter: {item_type: [a], colour: red}"),
            vec![(5, 30, field("trigger.filter.colour")), (5, 25, field("trigger.filter.item_type"))],
        ),
        (body.to_owned() + "  scope: {type: item, part_number: A}\n", vec![(6, 23, field("scope.part_number"))]),
        (body.to_owned() + "  scope: part\n", vec![(6, 10, field("scope"))]),
    ];
    for (text, expected) in table {
        assert_eq!(told(&text), expected, "{text}");
    }
    let both = told(&body.replace("name: x", "name: ''").replace("type: custom", "type: magic"));
    assert_eq!(both.len(), 2, "one record per problem");
}

#[test]
fn what_is_no_yaml_is_told_where_the_parser_stopped() {
    for (text, line) in [
        ("job:\n\tname: x\n", 2),
        ("job: {name: x\n", 0),
        ("job: {name: x}\njob: {name: y}\n", 2),
        ("job: {name: a}\n---\njob: {name: b}\n", 0),
        ("job: &a {name: *a}\n", 1),
    ] {
        let faults = told(text);
        assert_eq!(faults.len(), 1, "{text}: {faults:?}");
        assert!(faults[0].2.is_none() && (line == 0 || faults[0].0 == line), "{text}: {faults:?}");
    }
    let deep = format!("job: {}x{}\n", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(told(&deep).len(), 1);
}
