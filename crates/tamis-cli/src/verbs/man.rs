//! `tamis man`: manual pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};

use super::{Cli, Outcome};
use crate::show;

/// Print the manual page, or write one for every verb
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis man | man -l -
  tamis man --dir ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Write tamis.1 and a page for every verb into this folder
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<Outcome> {
        if let Some(dir) = &self.dir {
            clap_mangen::generate_to(Cli::command(), dir)
                .with_context(|| format!("cannot write pages into {}", dir.display()))?;
            return Ok(Outcome::Fine);
        }
        let mut out = show::output();
        clap_mangen::Man::new(Cli::command()).render(&mut out)?;
        std::io::Write::flush(&mut out)?;
        Ok(Outcome::Fine)
    }
}
