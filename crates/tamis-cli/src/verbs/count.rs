//! `tamis count`: how often is each line in?

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use tamis::{Filter, Kind};

use super::Outcome;
use super::remove::cannot;
use crate::keys::Keys;
use crate::progress::Progress;
use crate::store;

/// Print how often each line is in the set
///
/// Prints COUNT, a tab and the line. A count is too high for about a share of the keys, the
/// filter's rate, and never too low unless it is saturated: then the largest value is printed
/// with a plus, such as 15+.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis build --kind rank-counting -o hits.tamis requests.txt
  sort -u requests.txt | tamis count hits.tamis | sort -rn | head")]
pub(crate) struct Count {
    /// Filter to ask; - is stdin, and the keys must then come from files
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Print a JSON object for each line: key (invalid UTF-8 replaced) and count (null if
    /// saturated)
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    keys: Keys,
}

#[derive(Serialize)]
struct Fact<'a> {
    key: &'a str,
    count: Option<u64>,
}

impl Count {
    pub(crate) fn run(self) -> Result<Outcome> {
        store::one_stdin(&self.filter, &self.keys)?;
        self.keys.check(None)?;
        let filter = store::load(&self.filter)?.filter;
        let counters =
            filter.as_count().with_context(|| cannot(filter.kind(), "count", Kind::can_count))?;
        let saturated = counters.max_count().saturating_add(1);
        let progress = Progress::printing("counting", self.keys.size());
        self.keys.print_batches(filter.hasher(), progress, |batch, out| {
            let lines = batch.lines.iter().zip(batch.keys);
            for ((line, key), &digest) in lines.zip(batch.digests) {
                let count = counters.count_digest(digest);
                if self.json {
                    let key = &String::from_utf8_lossy(key);
                    serde_json::to_writer(&mut *out, &Fact { key, count })
                        .map_err(std::io::Error::from)?;
                    out.write_all(b"\n")?;
                    continue;
                }
                match count {
                    Some(count) => write!(out, "{count}\t")?,
                    None => write!(out, "{saturated}+\t")?,
                }
                self.keys.write_line(out, line)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Outcome::Fine)
    }
}
