use clap::{CommandFactory, Parser};
use windlass_cli::cli::Cli;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

/// The reference is what the program itself says. `WINDLASS_WRITE_DOCS=1 cargo test -p windlass-cli` writes it anew.
#[test]
fn the_reference_is_what_the_program_says() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let mut page = String::from(
        "# The command line\n\nEvery command and its options, as `--help` shows them. Written by a test from the program itself.\n",
    );
    let mut command = Cli::command().term_width(100);
    command.build();
    describe(&mut command, "windlass", &mut page);
    if std::env::var_os("WINDLASS_WRITE_DOCS").is_some() {
        std::fs::write(file, &page).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(kept == page, "docs/cli.md is not what the program says; WINDLASS_WRITE_DOCS=1 writes it anew");
}

/// The words of a command line, up to what is no part of the command: a comment, a description, a pipe.
fn words(line: &str) -> Vec<String> {
    // What a command in it prints is one word.
    let mut line = line.to_owned();
    while let Some((start, end)) = line.find("$(").and_then(|at| Some((at, at + line[at..].find(')')? + 1))) {
        line.replace_range(start..end, "x");
    }
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, quote) {
            (_, Some(mark)) if char == mark => quote = None,
            ('\'' | '"', None) => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (' ', None) => {
                words.extend(word.take());
                if matches!(chars.peek(), Some(' ' | '#' | '|' | '>' | '&' | ';')) {
                    return words;
                }
            }
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

/// Whole lines in blocks, and mentions in running text, which may leave things out.
fn printed(page: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut lines, mut mentions, mut inside) = (Vec::new(), Vec::new(), false);
    for line in page.lines() {
        let start = line.trim_start().trim_start_matches("$ ");
        match (line.trim_start().starts_with("```"), inside) {
            (true, _) => inside = !inside,
            (false, true) => lines.extend(start.starts_with("windlass ").then_some(start)),
            (false, false) => {
                mentions.extend(line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("windlass ")));
            }
        }
    }
    (lines, mentions)
}

#[test]
fn every_command_line_in_the_docs_can_be_read() {
    use clap::error::ErrorKind;
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|file| file.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut count = 0;
    for path in
        docs.chain(["README.md", "CONTRIBUTING.md", "deploy/README.md", "bench/README.md"].map(|name| root.join(name)))
    {
        let page = std::fs::read_to_string(&path).unwrap();
        let (lines, mentions) = printed(&page);
        let all = lines.into_iter().map(|line| (line, true)).chain(mentions.into_iter().map(|line| (line, false)));
        // Neither what leaves something out nor what stands for any command.
        for (line, whole) in all.filter(|(line, _)| !line.contains('…') && !line.contains(" COMMAND")) {
            let wrong = match Cli::try_parse_from(words(line)) {
                Ok(_) => None,
                Err(error) => match error.kind() {
                    ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => None,
                    ErrorKind::MissingRequiredArgument
                    | ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                        if !whole =>
                    {
                        None
                    }
                    _ => Some(error.to_string()),
                },
            };
            assert_eq!(wrong, None, "{}: {line}", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "only {count} lines were found");
}

fn describe(command: &mut clap::Command, name: &str, page: &mut String) {
    // What every command takes is told once, at the top.
    let once = |arg: clap::Arg| if arg.is_global_set() && name != "windlass" { arg.hide(true) } else { arg };
    let help = command.clone().term_width(100).mut_args(once).render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end());
    for sub in command.get_subcommands_mut().filter(|sub| !sub.is_hide_set()) {
        let name = format!("{name} {}", sub.get_name());
        describe(sub, &name, page);
    }
}
