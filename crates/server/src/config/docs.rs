//! `docs/configuration.md`, made from the table.

use super::table::{From, Kind, Table};
use std::fmt::Write;

const INTRODUCTION: &str = "# Configuration

<!-- Made from crates/server/src/config/table.rs and the dialects' tables; a test keeps it current. -->

Every setting can be given as a flag of `windlass serve`, as an environment variable, or in a file named with `--config FILE` (or
`WINDLASS_CONFIG`). The file is YAML, or TOML if its name ends in `.toml`, with the names below as keys. Flags override variables,
variables override the file, and the file overrides defaults. An unknown key is an error; the message names its line and the nearest
known key. `windlass config show` prints every effective setting and its source (flag, variable, file and line, default). Secrets are
masked.

Write sizes like `64KiB` or `16MiB`, durations like `500ms`, `10s`, `5m`, `12h` or `7d`, and lists with commas (in a file also as
lists).

| setting | flag | variable | default | meaning |
|---|---|---|---|---|
";

pub fn markdown(table: &Table) -> String {
    let mut text = INTRODUCTION.to_owned();
    for setting in &table.settings {
        let default = match (setting.default, setting.kind) {
            ("", _) => String::new(),
            (default, _) => format!("`{default}`"),
        };
        let takes = if setting.kind == Kind::Flag { String::new() } else { " …".to_owned() };
        let flag = if setting.has_flag() { format!("`--{}{takes}`", setting.flag()) } else { String::new() };
        let (name, variable) = (setting.name, setting.variable());
        // Writing to a String does not fail.
        let _ = writeln!(text, "| `{name}` | {flag} | `{variable}` | {default} | {} |", setting.help);
    }
    text.push_str("\n## Dialects\n\nNames for the setting `dialects`:");
    let _ = writeln!(text, " `{}`.", table.dialects.join("`, `"));
    text.push_str("\n## Names from other programs\n\nThese names are accepted too. The names above override them.\n\n");
    text.push_str("| name | setting |\n|---|---|\n");
    for foreign in &table.foreign {
        let name = match foreign.from {
            From::Variable(name) => name.to_owned(),
            From::Plain(key) => format!("{key} (in the file)"),
            From::Key { block, key } => format!("{block}.{key} (in the file)"),
        };
        let _ = match foreign.to.name {
            "" => writeln!(text, "| `{name}` | none: it is checked and has no effect |"),
            to => writeln!(text, "| `{name}` | `{to}` |"),
        };
    }
    text
}
