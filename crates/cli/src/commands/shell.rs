//! `windlass completions` and `windlass man`: what the shell and the system want to know about the command line.

use super::Done;
use crate::{fail::code, output::say_raw};
use anyhow::Context as _;
use clap::Command;
use std::{fs, path::Path};

pub fn completions(mut command: Command, shell: clap_complete::Shell) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "windlass", &mut script);
    say_raw(&script)?;
    Ok(code::OK)
}

/// A page for the program and one for each command.
pub fn man(command: Command, folder: &Path) -> Done {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    clap_mangen::generate_to(command, folder).with_context(|| format!("{} cannot be written", folder.display()))?;
    Ok(code::OK)
}
