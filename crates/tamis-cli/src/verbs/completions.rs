//! `tamis completions`: for shells.

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Outcome};
use crate::show;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis
  tamis completions fish > ~/.config/fish/completions/tamis.fish")]
pub(crate) struct Completions {
    /// Shell to complete for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Outcome> {
        // Through a buffer of ours: clap_complete panics where a pipe is closed.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tamis", &mut script);
        show::print(&String::from_utf8_lossy(&script).trim_end())?;
        Ok(Outcome::Fine)
    }
}
