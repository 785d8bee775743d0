//! `tamis verify`: is a filter file whole?

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::Outcome;
use crate::{show, store};

/// Check every checksum and every invariant of filter files
///
/// Prints `FILE: ok` for each file that is whole. For the others the error names the damaged
/// field, and the exit status is 2.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis verify words.tamis
  tamis verify --json *.tamis | jq '.[] | select(.ok | not)'")]
pub(crate) struct Verify {
    /// Filters to check; - is stdin
    #[arg(value_name = "FILTER", required = true)]
    filters: Vec<PathBuf>,

    /// Print a JSON array: file, ok, and `content_id` or error
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Fact {
    file: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Verify {
    pub(crate) fn run(self) -> Result<Outcome> {
        let mut facts = Vec::new();
        for path in &self.filters {
            let loaded = store::load(path);
            match &loaded {
                _ if self.json => {}
                Ok(_) => show::print(&format_args!("{}: ok", path.display()))?,
                Err(error) => show::complaint(error),
            }
            facts.push(Fact {
                file: path.display().to_string(),
                ok: loaded.is_ok(),
                error: loaded.as_ref().err().map(|error| format!("{:#}", error.root_cause())),
                content_id: loaded.ok().map(|loaded| loaded.filter.content_id().to_string()),
            });
        }
        if self.json {
            show::print_json(&facts)?;
        }
        if facts.iter().all(|fact| fact.ok) { Ok(Outcome::Fine) } else { Ok(Outcome::Wrong) }
    }
}
