use windlass_cli::output::Facts;

#[test]
fn a_value_of_several_lines_cannot_pass_for_another_fact() {
    let mut facts = Facts::default();
    facts.add("State", "failed").add("Error", "exit code 1\nState  completed\x1b[2K\n");
    assert_eq!(facts.text(), "State  failed\nError  exit code 1\n       State  completed\\u001b[2K");
}
