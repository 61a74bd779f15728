//! What dialects bring to the command line. This list is the one place outside their folders that names them.

mod neops;
pub mod silo;
pub mod workflow_graph;

use crate::context::{Context, Done};
use clap::{ArgMatches, Command, FromArgMatches, Subcommand, error::ErrorKind};
use serde_json::Value;
use std::pin::Pin;

const ALL: &[&Part] = &[workflow_graph::PART, silo::PART, neops::PART];

type Convert = fn(&str) -> Option<anyhow::Result<Value>>;
type Running<'a> = Pin<Box<dyn Future<Output = Done> + 'a>>;

/// What one dialect brings along; each may be missing.
pub struct Part {
    /// `windlass NAME …`.
    noun: Option<Noun>,
    /// `windlass import NAME …`.
    import: Option<Noun>,
    /// Makes one of our workflows from one of its files. None: the text is no such file.
    workflow: Option<Convert>,
}

impl Part {
    const NOTHING: Part = Part { noun: None, import: None, workflow: None };
}

/// A command, and what it does.
pub struct Noun {
    name: &'static str,
    /// Adds its help and its arguments to a command of its name.
    about: fn(Command) -> Command,
    run: for<'a> fn(&'a ArgMatches, &'a Context) -> Running<'a>,
}

/// A file of some dialect's, as a workflow of ours. None: it is nobody's.
pub fn workflow(text: &str) -> Option<anyhow::Result<Value>> {
    ALL.iter().filter_map(|part| part.workflow).find_map(|convert| convert(text))
}

/// The one of a list that was asked for.
struct ChosenNoun(&'static Noun, ArgMatches);

impl ChosenNoun {
    fn of(nouns: impl Iterator<Item = &'static Noun>, matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(ErrorKind::MissingSubcommand);
        let (name, rest) = matches.subcommand().ok_or_else(missing)?;
        let noun = nouns.into_iter().find(|noun| noun.name == name).ok_or_else(missing)?;
        Ok(Self(noun, rest.clone()))
    }

    async fn run(&self, context: &Context) -> Done {
        (self.0.run)(&self.1, context).await
    }
}

fn add(nouns: impl Iterator<Item = &'static Noun>, command: Command) -> Command {
    nouns.fold(command, |command, noun| command.subcommand((noun.about)(Command::new(noun.name))))
}

/// A type that clap reads one of a list of nouns into.
macro_rules! one_of {
    ($name:ident, $list:expr) => {
        pub struct $name(ChosenNoun);

        impl $name {
            pub async fn run(self, context: &Context) -> Done {
                self.0.run(context).await
            }
        }

        impl FromArgMatches for $name {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                ChosenNoun::of($list, matches).map(Self)
            }
            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                Self::from_arg_matches(matches).map(|found| *self = found)
            }
        }

        impl Subcommand for $name {
            fn augment_subcommands(command: Command) -> Command {
                add($list, command)
            }
            fn augment_subcommands_for_update(command: Command) -> Command {
                add($list, command)
            }
            fn has_subcommand(name: &str) -> bool {
                $list.any(|noun| noun.name == name)
            }
        }
    };
}

one_of!(Nouns, ALL.iter().filter_map(|part| part.noun.as_ref()));
one_of!(Imports, ALL.iter().filter_map(|part| part.import.as_ref()));
