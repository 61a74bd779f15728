use windlass_plan::{
    format::{self, Fault},
    workflow::{STEPS_MAX, Workflow},
};

fn faults(text: &str) -> Vec<Fault> {
    Workflow::parse(text).err().unwrap_or_else(|| panic!("{text} is taken"))
}

#[test]
fn what_is_wrong_is_told_with_place_and_field() {
    let table = [
        ("steps: {}", 0, "steps", "at least one"),
        ("steps:\n  a: {needs: z}\n", 2, "steps.a.needs", "no step \"z\""),
        ("steps:\n  a: {needs: a}\n", 2, "steps.a.needs", "a -> a"),
        ("steps:\n  a: {needs: c}\n  b: {needs: a}\n  c: {needs: b}\n", 0, "needs", "->"),
        ("steps:\n  a: {}\n  a: {}\n", 3, "", "duplicate"),
        ("steps:\n  a/b: {}\n", 2, "steps.a/b", "not an id"),
        ("steps:\n  a:\n    if: input.\n", 3, "steps.a.if", "not an expression"),
        ("steps:\n  a:\n    if: nobody == 1\n", 3, "steps.a.if", "\"nobody\""),
        ("steps:\n  a: {}\n  b: {if: steps.a.output}\n", 3, "steps.b", "add it to `needs`"),
        ("steps:\n  b: {if: steps.z.output}\n", 2, "steps.b", "does not exist"),
        ("steps:\n  a:\n    payload: {x: ['${{ 1 + }}']}\n", 3, "steps.a.payload.x[0]", "not an expression"),
        ("steps:\n  a: {payload: 1, run: x}\n", 2, "steps.a", "at most one"),
        ("steps:\n  a: {when: on_failure}\n", 2, "steps.a.when", "can fail"),
        ("steps:\n  a: {wait: {}}\n", 2, "steps.a.wait", "exactly one"),
        ("steps:\n  a: {wait: {event: e, approval: true}}\n", 2, "steps.a.wait", "exactly one"),
        ("steps:\n  a: {wait: {for: 1s}, map: {over: '[1]'}}\n", 2, "steps.a.map", "no items"),
        ("steps:\n  a: {input: {}}\n", 2, "steps.a.input", "`workflow`"),
        ("steps:\n  a: {timeout: 10}\n", 2, "", "not a duration"),
        ("steps:\n  a: {name: \"a\\tb\"}\n", 2, "steps.a.name", "control character"),
        ("steps:\n  a: {retry: {attempts: 0}}\n", 2, "steps.a.retry.attempts", "at least 1"),
        ("steps:\n  a: {compensate: {}}\n", 2, "steps.a.compensate", "exactly one"),
        ("steps:\n  a: {nonsense: 1}\n", 2, "", "nonsense"),
        ("outputs: {x: '${{ steps.z.output }}'}\nsteps:\n  a: {}\n", 1, "outputs", "no step \"z\""),
        ("windlass: job\nsteps:\n  a: {}\n", 1, "windlass", "workflow"),
        ("name: a b\nsteps:\n  a: {}\n", 1, "name", "not a name"),
        ("steps: [a, b]\n", 1, "", "mapping"),
        ("x: &a 1\nsteps: {a: {payload: *a}}\n", 0, "", ""),
    ];
    for (text, line, field, why) in table {
        let faults = faults(text);
        let first = &faults[0];
        assert!(line == 0 || first.line == line, "{first} is not in line {line}: {text}");
        assert!(first.field.contains(field) && first.text.contains(why), "{first:?}: {text}");
    }
    let two = faults("steps:\n  a: {needs: y}\n  b: {needs: z}\n");
    assert_eq!(two.iter().map(|fault| fault.line).collect::<Vec<_>>(), [2, 3], "all at once");
}

#[test]
fn what_cannot_be_read_is_told_at_once_with_all_that_is_wrong_beside_it() {
    let text = "windlass: workflow
naem: x
max_parallel: many
steps:
  a:
    run: 5
    timeout: 5
    retyr: {attempts: 2}
  b:
    needs: [c]
    run: x
    pending_timeout: soon
    retry: {attempts: 2, backoff: 1, tries: 3}
  d:
    wait: {for: 1}
  e: {needs: {}, if: steps.a.output.x}
  f: {needs: a, map: {over: '[1]', max_parallel: x}}
  a/b: 7
";
    let found: Vec<(u64, String)> =
        faults(text).into_iter().map(|fault| (fault.line, format!("{}: {}", fault.field, fault.text))).collect();
    let expected = [
        (2, "naem"),
        (3, "max_parallel"),
        (7, "steps.a.timeout: \"5\" is not a duration: it has no unit"),
        (8, "retyr"),
        (10, "steps.b.needs: there is no step \"c\""),
        (12, "steps.b.pending_timeout: \"soon\" is not a duration"),
        (13, "steps.b.retry: \"1\" is not a duration"),
        (13, "steps.b.retry: unknown field `tries`"),
        (15, "steps.d.wait: \"1\" is not a duration"),
        (16, "steps.e.needs"),
        (17, "steps.f.map"),
        (18, "steps.a/b: \"a/b\" is not an id"),
        (18, "steps.a/b"),
    ];
    let lines = |found: &[(u64, String)]| found.iter().map(|(line, _)| *line).collect::<Vec<_>>();
    assert_eq!(lines(&found), expected.map(|(line, _)| line), "{found:#?}");
    for (line, why) in expected {
        assert!(found.iter().any(|(at, text)| *at == line && text.contains(why)), "{line}: {why}: {found:#?}");
    }
    assert!(found.iter().all(|(_, text)| !text.contains("at line") && !text.contains("column")), "{found:#?}");
}

#[test]
fn a_large_file_of_mistakes_is_told_soon() {
    let steps: String = (0..9_000).map(|at| format!("  s{at}: {{nonsense: {at}, timeout: soon}}\n")).collect();
    let started = std::time::Instant::now();
    assert_eq!(faults(&format!("steps:\n{steps}")).len(), 20);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn a_definition_reads_as_written() {
    let text = "
name: all
defaults: {tags: [linux], retry: {attempts: 2}}
steps:
  a: {run: make}
  b: {needs: a, tags: [mac], timeout: 2h, payload: {x: 1}}
  c: {needs: [a, b, a], if: '${{ steps.a.output.ok }}'}
";
    let made = Workflow::parse(text).unwrap();
    assert_eq!(made.steps[1].settings.tags.as_deref(), Some(&["mac".to_owned()][..]));
    assert_eq!(made.steps[1].settings.retry.as_ref().unwrap().attempts, Some(2));
    assert_eq!(made.steps[1].settings.timeout_ms, Some(7_200_000));
    assert_eq!((made.steps[2].needs.as_slice(), made.steps[2].is_staged()), (&[0, 1][..], true));
    assert!(!made.steps[0].is_staged() && !made.steps[1].is_staged());
    assert!(Workflow::parse(r#"{"steps": {"a": {"payload": {"n": "y"}}}}"#).is_ok(), "JSON as well");
}

#[test]
fn what_is_too_much_is_refused_soon() {
    let many: String = (0..=STEPS_MAX).map(|at| format!("  s{at}: {{}}\n")).collect();
    assert!(faults(&format!("steps:\n{many}"))[0].text.contains("at most 10000"));
    let deep = format!("steps:\n  a: {{payload: {}1{}}}\n", "[".repeat(100), "]".repeat(100));
    assert_eq!(faults(&deep).len(), 1);
    assert!(faults(&"x".repeat(format::BYTES_MAX + 1))[0].text.contains("bytes"));
    let large: String = (0..2_000).map(|at| format!("  s{at}: {{if: 'matches(input, \"a{at}\")'}}\n")).collect();
    assert!(faults(&format!("steps:\n{large}"))[0].text.contains("patterns"));
}

#[test]
fn ours_is_told_from_others() {
    let ours =
        ["windlass: workflow\nsteps: {}\n", "steps:\n  a: {}\n", r#"{"steps": {}}"#, "windlass: workflow\n  bad: [\n"];
    let others = ["name: CI\non: push\njobs: {}\n", "tags: [gpu]\n", "", "- a\n"];
    assert!(ours.iter().all(|text| format::is_native(text)));
    assert!(others.iter().all(|text| !format::is_native(text)));
}
