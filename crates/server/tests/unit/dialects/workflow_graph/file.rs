use windlass_server::dialects::workflow_graph::file::parse;

#[test]
fn a_file_becomes_the_workflow_it_describes() {
    let text = "
name: CI
on: [push, pull_request]
env:
  LEVEL: 3
  WHO: it's me
jobs:
  test:
    run: |
      cargo test
  lint:
    name: Lint it
    labels: [docker]
    retries: 2
    steps:
      - name: it's clippy
        run: cargo clippy
      - uses: nothing
      - run: cargo fmt
        env: {A: true}
  ship:
    needs: [test, lint]
    run: ./ship
";
    let made = parse(text).unwrap();
    assert_eq!((made.name.as_str(), made.trigger.as_str()), ("CI", "on: [push, pull_request]"));
    let exports = r"export LEVEL='3' && export WHO='it'\''s me' && ";
    assert_eq!(made.jobs[0].command, format!("{exports}cargo test"));
    let steps =
        r"echo '=== it'\''s clippy ===' && cargo clippy && export A='true' && echo '=== step 3 ===' && cargo fmt";
    assert_eq!(made.jobs[1].command, format!("{exports}{steps}"));
    assert_eq!((made.jobs[1].name.as_str(), made.jobs[1].max_retries), ("Lint it", 2));
    assert_eq!(made.jobs[2].depends_on, ["test", "lint"]);
    let json = r#"{"name": "j", "on": "push", "jobs": {"a": {"run": "true"}}}"#;
    assert_eq!(parse(json).unwrap().trigger, "on: push");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let table = [
        ("name: x\non: push\njobs:\n  a:\n    needs: zz\n    run: x\n", 5, "'a' depends on 'zz'"),
        ("name: x\non: push\njobs:\n  a:\n    labels: []\n", 5, "either 'run' or 'steps'"),
        ("name: x\non: push\njobs:\n  a: {run: x, retries: -1}\n", 4, ""),
        ("name: x\non: push\n", 1, "jobs"),
        ("name: x\non: push\njobs:\n  a: {run: x, needs: b}\n  b: {run: x, needs: a}\n", 0, "cycle"),
        ("name: x\non: push\njobs:\n  a: {run: x}\n  a: {run: y}\n", 5, ""),
        ("name: &a x\non: *a\njobs: {}\n", 0, ""),
    ];
    for (text, line, expected) in table {
        let fault = parse(text).expect_err(text);
        assert!(fault.text.contains(expected), "{fault}");
        assert!(line == 0 || fault.line.abs_diff(line) <= 1, "{fault} is not near line {line}");
    }
}
