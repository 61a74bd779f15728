//! `windlass completions` and `windlass man`: what the shell and the system want to know about the command line.

use super::Done;
use crate::{complete::VARIABLE, fail::code, output::say_raw};
use anyhow::Context as _;
use clap::Command;
use clap_complete::env::Shells;
use std::{fs, path::Path};

/// The script asks `windlass` itself what may come next, see [`crate::complete`].
pub fn completions(shell: clap_complete::Shell) -> Done {
    let (mut script, name) = (Vec::new(), shell.to_string());
    let shells = Shells::builtins();
    let shell = shells.completer(&name).with_context(|| format!("no completions for {name}"))?;
    shell.write_registration(VARIABLE, "windlass", "windlass", "windlass", &mut script)?;
    say_raw(&script)?;
    Ok(code::OK)
}

/// A page for the program and one for each command.
pub fn man(command: Command, folder: &Path) -> Done {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    clap_mangen::generate_to(command, folder).with_context(|| format!("{} cannot be written", folder.display()))?;
    Ok(code::OK)
}
