//! `tamis check`: which lines may be in the set?

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tamis::Filter;

use super::Outcome;
use crate::keys::{Batch, Keys};
use crate::progress::Progress;
use crate::show::Output;
use crate::{show, store};

/// Print the lines that may be in the set
///
/// A line that is in the set is always printed, as long as only lines that are in were removed. A
/// line that is not is printed with a small probability, the filter's rate. Exits 0 if a line was
/// selected, 1 if none was, 2 on an error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis check words.tamis text.txt          # lines that are probably words
  tamis check words.tamis --key tamis       # one key; the exit status tells
  tamis check -v -d, -f2 seen.tamis log.csv # lines whose second field is certainly new")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Check {
    /// Filter to ask; - is stdin, and the keys must then come from files
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Select the lines that are certainly not in the set
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many lines were selected
    #[arg(short, long)]
    count: bool,

    /// Print nothing, and stop at the first selected line
    #[arg(short, long, conflicts_with_all = ["count", "json"])]
    quiet: bool,

    /// Print only the counts of lines, as JSON
    #[arg(long)]
    json: bool,

    /// Answer from the file in place, without reading and checking all of it first [default: for
    /// files above 64 MiB]
    ///
    /// The file must not be changed or cut while it is in use; otherwise answers may be wrong, or
    /// a signal ends the program. (Verbs of tamis replace files by renaming, which does no harm.)
    ///
    /// Only the header is checked then: damage behind it goes unnoticed, and answers may be wrong.
    /// --read checks every byte first, and `tamis verify` checks files by themselves.
    #[arg(long)]
    mmap: bool,

    /// Read and check the whole file first, however large
    #[arg(long, conflicts_with = "mmap")]
    read: bool,

    /// Ask for this key, and for no lines; may be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "files", allow_hyphen_values = true)]
    key: Vec<OsString>,

    #[command(flatten)]
    keys: Keys,
}

#[derive(Default, Serialize)]
struct Facts {
    lines: u64,
    selected: u64,
}

impl Check {
    pub(crate) fn run(self) -> Result<Outcome> {
        if self.key.is_empty() {
            store::one_stdin(&self.filter, &self.keys)?;
            self.keys.check(None)?;
        }
        let in_place = self.mmap || (!self.read && store::is_large(&self.filter));
        let filter = if in_place {
            store::open_in_place(&self.filter)?
        } else {
            store::load(&self.filter)?.filter
        };
        let print_lines = !(self.count || self.quiet || self.json);
        let progress = if print_lines { Progress::printing } else { Progress::quiet };
        let mut facts = Facts::default();
        let mut answers = Vec::new();
        let mut take = |batch: &Batch, out: &mut BufWriter<Output>| {
            answers.resize(batch.digests.len(), false);
            filter.contains_many(batch.digests, &mut answers);
            facts.lines += batch.lines.len() as u64;
            if let Some(header) = batch.header.filter(|_| print_lines) {
                self.keys.write_line(out, header)?;
            }
            for (line, &answer) in batch.lines.iter().zip(&answers) {
                if answer == self.invert {
                    continue;
                }
                facts.selected += 1;
                if print_lines {
                    self.keys.write_line(out, line)?;
                }
            }
            if self.quiet && facts.selected > 0 {
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        };
        if self.key.is_empty() {
            let progress = progress("checking", self.keys.size());
            self.keys.print_batches(filter.hasher(), progress, take)?;
        } else {
            let keys: Vec<_> = self.key.iter().map(|key| key.as_encoded_bytes()).collect();
            let mut out = show::output();
            let mut digests = Vec::new();
            let batch = self.keys.batch_of(&keys, filter.hasher(), &mut digests)?;
            let _ = take(&batch, &mut out)?;
            out.flush()?;
        }
        if self.json {
            show::print_json(&facts)?;
        } else if self.count {
            show::print(&facts.selected)?;
        }
        Ok(match facts.selected {
            0 => Outcome::Nothing,
            _ => Outcome::Fine,
        })
    }
}
