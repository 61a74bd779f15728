use clap::{CommandFactory, Parser};
use std::fs;
use windlass_worker::args::{Args, Cli, Config};

fn parse(line: &[&str]) -> Args {
    Cli::try_parse_from([&["windlass-worker"], line].concat()).unwrap().args
}

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn a_path_to_a_program_is_meant_from_here() {
    let program = |text: &str| parse(&["--exec", text, "./a"]).program().unwrap();
    let here = std::env::current_dir().unwrap();
    assert_eq!(program("./x.sh"), [here.join("x.sh").to_str().unwrap(), "./a"]);
    assert_eq!(
        (program("sort"), program("/bin/sort")),
        (vec!["sort".into(), "./a".into()], vec!["/bin/sort".into(), "./a".into()])
    );
}

#[test]
fn exec_takes_the_rest_of_the_line() {
    let args = parse(&["--slots", "3", "--tag", "a,b", "--tag", "c", "--exec", "sort", "-n", "--once"]);
    assert_eq!((args.slots, args.tags), (3, vec!["a".to_owned(), "b".into(), "c".into()]));
    assert_eq!((args.exec, args.once), (vec!["sort".to_owned(), "-n".into(), "--once".into()], false));
}

#[test]
fn a_worker_without_anything_to_run_says_what_is_missing() {
    let error = parse(&[]).config().unwrap_err().to_string();
    assert!(error.contains("--exec") && error.contains("--allow-commands"), "{error}");
    parse(&["--allow-commands"]).config().unwrap();
    parse(&["--dialect", "workflow-graph"]).config().unwrap();
}

#[test]
fn the_configuration_names_programs_by_definition() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("worker.toml");
    let read = |text: &str| {
        fs::write(&file, text).unwrap();
        Config::read(&file)
    };
    let text = "[definitions.resize]\ncommand = [\"resize\", \"-v\"]\nenv = { A = \"b\" }\n\n[definitions.\"x@2\"]\nshell = \"ls\"\n";
    let config = read(text).unwrap();
    assert_eq!(config.definitions["resize"].command.as_ref().unwrap(), &["resize", "-v"]);
    assert_eq!(config.definitions["x@2"].shell.as_deref(), Some("ls"));
    assert!(read("[definitions.resize]\n").unwrap_err().to_string().contains("resize needs either"));
    assert!(read("[definition.resize]\n").is_err(), "a misspelt heading is no silent nothing");
}
