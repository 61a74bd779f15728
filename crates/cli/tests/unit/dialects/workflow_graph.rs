use serde_json::json;
use windlass_cli::dialects::workflow_graph::convert;

#[test]
fn its_files_become_ours() {
    let text = "name: my ci\non: push\njobs:\n  a:\n    run: make\n  b:\n    needs: a\n    run: make test\n    labels: [gpu]\n    retries: 2\n";
    let expected = json!({"name": "my-ci", "steps": {"a": {"run": "make"},
        "b": {"run": "make test", "needs": ["a"], "tags": ["gpu"], "retry": {"attempts": 3}}}});
    assert_eq!(convert(text).unwrap().unwrap(), expected);
    assert!(convert("name: x\nsteps:\n  a: {run: ls}\n").is_none());
    let error = convert("name: x\non: push\njobs:\n  a: {run: ls, needs: z}\n").unwrap().unwrap_err().to_string();
    assert!(error.contains("line 4"), "{error}");
}
