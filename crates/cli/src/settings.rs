//! The server's settings as flags, made from its table, and what they come to with variables and a file.

use crate::files;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use std::{env, path::PathBuf};
use windlass_server::config::{
    ConfigError, Effective, Sources, effective,
    table::{Kind, Setting, dialects as dialects_setting},
    without_effect,
};
use windlass_server::dialects;

/// Those that were given.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    given: Vec<(&'static str, String)>,
    file: Option<PathBuf>,
}

impl Settings {
    /// Print every effective setting and its source. Secrets are masked.
    pub fn effective(&self) -> Result<Vec<Effective>, ConfigError> {
        let file = self.file.clone().or_else(|| env::var_os("WINDLASS_CONFIG").map(PathBuf::from));
        let file = match file {
            Some(path) => match files::read_text(&path, files::SMALL_MAX) {
                Ok(text) => Some((path, text)),
                Err(error) => return Err(ConfigError::File { path, why: error.root_cause().to_string() }),
            },
            None => None,
        };
        let variable = |name: &str| env::var(name).ok();
        let sources = Sources { flags: self.given.clone(), file, variable: Some(&variable), table: dialects::table() };
        effective(&sources)
    }

    /// Variables that are set, that other programs know, and that change nothing here.
    pub fn without_effect() -> Vec<&'static str> {
        without_effect(&dialects::table(), &|name: &str| env::var(name).ok())
    }
}

fn flags() -> impl Iterator<Item = &'static Setting> {
    dialects::table().settings.into_iter().filter(|setting| setting.has_flag())
}

fn arg(setting: &'static Setting) -> Arg {
    // The command line is built once, and clap wants its words to live as long as the program.
    let (flag, variable): (&'static str, &'static str) = (setting.flag().leak(), setting.variable().leak());
    let default = if setting.default.is_empty() { String::new() } else { format!("; {} by default", setting.default) };
    let names = match setting.name == dialects_setting.name {
        true => format!(". Names: {}", dialects::table().dialects.join(", ")),
        false => String::new(),
    };
    let arg = Arg::new(setting.name).long(flag).help(format!("{}{names} [{variable}{default}]", setting.help));
    match setting.kind {
        Kind::Flag => arg.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL"),
        kind => arg.value_name(value_name(kind)),
    }
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Address => "HOST:PORT",
        Kind::Path => "PATH",
        Kind::Url => "URL",
        Kind::Count | Kind::Whole => "N",
        Kind::Bytes => "SIZE",
        Kind::Time => "TIME",
        Kind::List | Kind::Networks => "LIST",
        Kind::Choice(_) => "WORD",
        Kind::Flag => "BOOL",
        Kind::Text | Kind::Secret => "TEXT",
    }
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config").long("config").value_name("FILE").value_parser(value_parser!(PathBuf));
        let config = config.help("Settings as YAML, or as TOML where the name ends so [WINDLASS_CONFIG]");
        flags().fold(command.arg(config), |command, setting| command.arg(arg(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = flags()
            .filter_map(|setting| Some((setting.name, matches.get_one::<String>(setting.name)?.clone())))
            .collect();
        Ok(Self { given, file: matches.get_one::<PathBuf>("config").cloned() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
