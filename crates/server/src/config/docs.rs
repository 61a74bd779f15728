//! `docs/configuration.md`, made from the table.

use super::table::{From, Kind, Table};
use std::fmt::Write;

const INTRODUCTION: &str = "# Configuration

<!-- Made from crates/server/src/config/table.rs and the dialects' tables; a test keeps it current. -->

Every setting can be given as a flag of `windlass serve`, as an environment variable, or in a file named with `--config FILE`
(or `WINDLASS_CONFIG`): YAML, or TOML where the name ends in `.toml`, with the names below as keys. Flags win over variables,
variables over the file, the file over defaults. A key that does not exist is an error that names its line and the nearest key
that does. `windlass config show` prints what holds and where it comes from; secrets are not shown.

Sizes are written like `64KiB` or `16MiB`, times like `500ms`, `10s`, `5m`, `12h` or `7d`, lists with commas (in a file also as
lists).

| setting | flag | variable | default | what it is for |
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
    text.push_str("\n## Dialects\n\nWhat `dialects` may name, each with its own settings above:");
    let _ = writeln!(text, " `{}`.", table.dialects.join("`, `"));
    text.push_str("\n## Names of other programs\n\nFor people who come from there. Our own names win over these.\n\n");
    text.push_str("| name | setting |\n|---|---|\n");
    for foreign in &table.foreign {
        let name = match foreign.from {
            From::Variable(name) => name.to_owned(),
            From::Plain(key) => format!("{key} (in the file)"),
            From::Key { block, key } => format!("{block}.{key} (in the file)"),
        };
        let _ = writeln!(text, "| `{name}` | `{}` |", foreign.to);
    }
    text
}
