use serde_json::json;
use windlass_plan::{meter::Meter, template::Template, vars::Vars};

fn vars() -> Vars {
    let mut vars = Vars::default();
    vars.set("input", json!({"n": 2, "list": [3, 1, 2]}));
    vars.set("steps", json!({"build": {"output": {"url": "u", "n": 7}, "state": "completed"}}));
    vars
}

#[test]
fn templates_keep_types_and_fill_texts() {
    let value = json!({"n": "${{ input.n }}", "t": "a ${{ input.n }}-${{ steps.build.output }}", "l": [1, "${{ input.list }}"], "p": "$plain {{ }}"});
    let template = Template::new(&value).unwrap();
    let expected = json!({"n": 2, "t": "a 2-{\"n\":7,\"url\":\"u\"}", "l": [1, [3, 1, 2]], "p": "$plain {{ }}"});
    assert_eq!(template.fill(&vars(), &Meter::default()).unwrap(), expected);
    assert!(Template::new(&json!({"a": [1, {"b": "x"}]})).unwrap().is_plain());
    let (path, why) = Template::new(&json!({"a": [1, {"b": "${{ 1 + }}"}]})).unwrap_err();
    assert_eq!(path, ".a[1].b");
    assert!(why.contains("not an expression"), "{why}");
    assert!(Template::new(&json!("${{ 1")).unwrap_err().1.contains("}}"));
}

#[test]
fn a_template_that_multiplies_its_input_is_given_up_before_it_is_large() {
    let mut vars = Vars::default();
    vars.set("input", json!("x".repeat(1 << 20)));
    let times = |text: &str| Template::new(&json!(vec![text; 8_000])).unwrap();
    let text = Template::new(&json!("${{ input }}".repeat(8_000))).unwrap();
    for template in [times("${{ input }}"), times("a ${{ input }}"), times("${{ input + input }}"), text] {
        let meter = Meter::default();
        let why = template.fill(&vars, &meter).unwrap_err();
        assert!(why.contains("bytes of memory") && meter.is_over(), "{why}");
    }
}
