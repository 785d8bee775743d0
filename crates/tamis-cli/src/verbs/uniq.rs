//! `tamis uniq`: each line once.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use tamis::{Filter, Kind};

use super::Outcome;
use super::remove::cannot;
use crate::keys::Keys;
use crate::progress::Progress;
use crate::sizing::{Hashing, Sizing};
use crate::store::is_stdio;
use crate::target::Target;
use crate::{show, store};

/// How many lines have their memory fetched before the first of them is looked up.
const AHEAD: usize = 16;

/// Print each line the first time it is seen
///
/// Unlike uniq(1) it needs no sorted input, and unlike sort -u it keeps the order and streams. No
/// line is ever printed twice. But a new line may be dropped, with probability --rate, because the
/// filter takes it for one that it has seen: choose --rate with that in mind.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis uniq --rate 1e-6 urls.txt > distinct.txt
  crawl | tamis uniq --filter seen.tamis -o seen.tamis   # only what no earlier run has seen")]
pub(crate) struct Uniq {
    /// Start from this filter instead of an empty one: lines that it holds have been seen
    #[arg(
        long,
        value_name = "FILTER",
        conflicts_with_all = [
            "kind", "rate", "bits_per_key", "memory", "wire", "margin", "num_keys", "params", "seed",
            "hash", "random_seed"
        ]
    )]
    filter: Option<PathBuf>,

    /// Write the filter with all lines seen to this file
    #[arg(short, long, value_name = "FILTER")]
    output: Option<PathBuf>,

    #[command(flatten)]
    sizing: Sizing,

    #[command(flatten)]
    hashing: Hashing,

    #[command(flatten)]
    keys: Keys,
}

impl Uniq {
    pub(crate) fn run(self) -> Result<Outcome> {
        if self.output.as_deref().is_some_and(is_stdio) {
            bail!("stdout carries the lines; write the filter to a file with -o");
        }
        self.keys.check(self.output.as_deref())?;
        let target = self.output.as_deref().map(Target::new).transpose()?;
        let (mut filter, mode) = match &self.filter {
            Some(path) => {
                store::one_stdin(path, &self.keys)?;
                let loaded = store::load(path)?;
                (loaded.filter, loaded.mode)
            }
            None => (self.sizing.empty_filter(&self.hashing, &self.keys)?, self.hashing.mode()),
        };
        self.print_new(&mut filter)?;
        show::note_if_crowded(&filter);
        if let Some(target) = target {
            target.write(&filter, mode)?;
        }
        Ok(Outcome::Fine)
    }

    fn print_new(&self, filter: &mut tamis::AnyFilter) -> Result<()> {
        let (hasher, kind) = (filter.hasher(), filter.kind());
        let seen =
            filter.as_insert().with_context(|| cannot(kind, "take more keys", Kind::can_insert))?;
        let progress = Progress::printing("reading", self.keys.size());
        self.keys.print_batches(hasher, progress, |batch, out| {
            for (lines, digests) in batch.lines.chunks(AHEAD).zip(batch.digests.chunks(AHEAD)) {
                for &digest in digests {
                    seen.prefetch(digest);
                }
                for (line, &digest) in lines.iter().zip(digests) {
                    // Repeats are not inserted, so that the filter's number of keys is that of
                    // distinct lines.
                    if !seen.contains_digest(digest) {
                        seen.insert_digest(digest)?;
                        self.keys.write_line(out, line)?;
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}
