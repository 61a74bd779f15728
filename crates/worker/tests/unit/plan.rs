use std::collections::BTreeMap;
use windlass_sdk::api::lease::Leased;
use windlass_worker::{
    args::{Config, Dialect, Entry},
    plan::{NoPlan, Rules, rest},
};

fn leased(payload: &str, definition: Option<&str>) -> Leased {
    let lease = serde_json::json!({"lease": "l", "job": "00000000-0000-0000-0000-000000000001", "attempt": 1,
        "definition": definition, "payload": serde_json::from_str::<serde_json::Value>(payload).unwrap()});
    serde_json::from_value::<Leased>(lease).unwrap()
}

fn open() -> Rules {
    Rules { allow_commands: true, ..Rules::default() }
}

#[test]
fn what_a_payload_may_say() {
    type Expected = Result<(&'static [&'static str], &'static str), &'static str>;
    let table: &[(&str, Expected)] = &[
        (r#"{"command":["a","b"]}"#, Ok((&["a", "b"], r#"{"command":["a","b"]}"#))),
        (r#"{"shell":"ls | wc","stdin":"text"}"#, Ok((&["/bin/sh", "-c", "ls | wc"], "text"))),
        (r#"{"command":["a"],"stdin":{"n":1}}"#, Ok((&["a"], r#"{"n":1}"#))),
        (r#"{"command":[]}"#, Err("needs either")),
        (r#"{"command":["a"],"shell":"b"}"#, Err("needs either")),
        (r#"{"command":"a"}"#, Err("is not a command")),
        ("null", Err("is not a command")),
        (r#"{"command":["a\u0000b"]}"#, Err("a zero byte")),
        (r#"{"command":["a"],"env":{"A=B":"c"}}"#, Err("the variable name \"A=B\"")),
        (r#"{"command":["a"],"env":{"WINDLASS_LEASE":"c"}}"#, Err("WINDLASS_LEASE")),
        (r#"{"command":["a"],"cwd":"../x"}"#, Err("below the working folder")),
        (r#"{"command":["a"],"cwd":"/x"}"#, Err("below the working folder")),
    ];
    for (payload, expected) in table {
        match (open().plan(&leased(payload, None)), expected) {
            (Ok(plan), Ok((argv, stdin))) => {
                assert_eq!(
                    (plan.argv.iter().map(String::as_str).collect::<Vec<_>>(), plan.stdin),
                    (argv.to_vec(), stdin.as_bytes().to_vec())
                );
            }
            (Err(NoPlan::Wrong(failure)), Err(part)) => {
                assert!(failure.permanent && failure.message.contains(part), "{payload}: {failure:?}");
            }
            (got, _) => panic!("{payload}: {got:?}"),
        }
    }
}

#[test]
fn a_job_of_a_workflow_graph_is_its_command() {
    let rules = Rules { dialect: Dialect::WorkflowGraph, ..Rules::default() };
    let payload = r#"{"command":"ls | wc","job_id":"a","upstream_outputs":{},"workflow_id":"w"}"#;
    let plan = rules.plan(&leased(payload, None)).unwrap();
    assert_eq!((plan.argv, plan.stdin), (vec!["/bin/sh".into(), "-c".into(), "ls | wc".into()], Vec::new()));
    let exec = Rules { exec: vec!["deploy".into()], ..rules };
    let plan = exec.plan(&leased(payload, None)).unwrap();
    assert_eq!((plan.argv, plan.stdin), (vec!["deploy".to_owned()], payload.as_bytes().to_vec()));
}

#[test]
fn what_the_operator_set_up_comes_first() {
    let entry = |program: &str| Entry { command: Some(vec![program.into()]), ..Entry::default() };
    let definitions = BTreeMap::from([("d".into(), entry("any")), ("d@2".into(), entry("second"))]);
    let rules = Rules { config: Config { definitions }, exec: vec!["exec".into()], ..open() };
    let payload = r#"{"command":["payload"]}"#;
    for (definition, program) in [(Some("d@1"), "any"), (Some("d@2"), "second"), (Some("e@1"), "exec"), (None, "exec")]
    {
        assert_eq!(rules.plan(&leased(payload, definition)).unwrap().argv, [program], "{definition:?}");
    }
    assert_eq!(open().plan(&leased(payload, Some("d@1"))).unwrap().argv, ["payload"]);
    let NoPlan::Wrong(refused) = Rules::default().plan(&leased(payload, Some("d@1"))).unwrap_err() else { panic!() };
    assert!(!refused.permanent && refused.message.contains("jobs of d@1"), "another worker may: {refused:?}");
}

/// What it is asked to run, and whether it gives that back.
#[test]
fn what_is_meant_for_other_workers_is_given_back_and_what_is_meant_for_this_one_is_not() {
    let rules = Rules { give_back: true, ..open() };
    let table = [
        (r#"{"numbers":[1,2]}"#, true),
        ("null", true),
        ("[1]", true),
        (r#""ls""#, true),
        (r#"{"command":"ls"}"#, false),
        (r#"{"shell":"ls"}"#, false),
        (r#"{"command":["ls"],"shell":"ls"}"#, false),
    ];
    for (payload, back) in table {
        let plan = rules.plan(&leased(payload, None));
        assert_eq!(matches!(plan, Err(NoPlan::NotMine(_))), back, "{payload}: {plan:?}");
    }
    let closed = Rules { give_back: true, ..Rules::default() };
    assert!(matches!(closed.plan(&leased(r#"{"shell":"ls"}"#, Some("d@1"))), Err(NoPlan::NotMine(_))));
}

#[test]
fn a_job_that_is_given_back_again_and_again_rests_longer_each_time_up_to_a_cap() {
    let rests: Vec<u128> = [1, 2, 3, 8, 9, 1_000, u32::MAX].map(|attempt| rest(attempt).as_millis()).into();
    assert_eq!(rests, [250, 500, 1_000, 30_000, 30_000, 30_000, 30_000]);
}
