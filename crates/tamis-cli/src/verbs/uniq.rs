//! `tamis uniq`: each line once.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use tamis::{AnyFilter, AnyParams, Filter, Hasher, Kind};

use super::Outcome;
use super::remove::cannot;
use crate::growing::{Growing, Growth, START};
use crate::keys::Keys;
use crate::progress::Progress;
use crate::recent::{Asked, Recent};
use crate::runs::Runs;
use crate::sizing::{Fixed, Hashing, Sizing};
use crate::store::{Loaded, is_stdio};
use crate::target::Target;
use crate::{numbers, show, sizing, store};

/// How many lines have their memory fetched before the first of them is looked up.
const AHEAD: usize = 16;

/// One new line in a million may be dropped.
const DEFAULT_RATE: f64 = 1e-6;

/// Print each line the first time it is seen
///
/// Unlike uniq(1) it needs no sorted input, and unlike sort -u it keeps the order and streams.
/// Without --within no line is printed twice.
///
/// A new line may be dropped, with probability --rate, because the filter takes it for one that it
/// has seen: one new line in a million unless you say otherwise. The kind is blocked-rank unless
/// you say otherwise. Memory grows with the number of different lines; for plain files it is
/// planned for all of their lines, repeats included. --within bounds it for endless streams.
///
/// From a pipe the filter starts small and is built anew, twice as large, whenever it is full (8
/// bytes for each different line are kept for that, in memory and then in a temporary file): the
/// rate holds however many lines come. A filter that was loaded with --filter cannot grow; a note
/// says if it is too full to keep its rate.
///
/// With --within 1h a line that was printed is suppressed for an hour, and for an hour and a
/// quarter at most; then it is printed again, but for --rate. (The time is cut into --steps.)
/// Memory follows the lines that are remembered.
#[derive(Args)]
#[command(mut_arg("rate", |arg| arg.help("Probability that a new line is dropped [default: 1e-6]")))]
#[command(mut_arg("kind", |arg| arg.help("Kind of filter [default: blocked-rank]")))]
#[command(after_help = "\
Examples:
  tamis uniq urls.txt > distinct.txt
  tamis uniq --jsonl url events.jsonl.zst   # the first event of each url
  tail -f app.log | tamis uniq --within 1h   # each line once an hour
  tamis uniq --within 10m --time at --jsonl user events.jsonl   # by the events' own clock
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

    /// Write the filter with all lines that were printed, or are in --filter, to this file
    #[arg(short, long, value_name = "FILTER")]
    output: Option<PathBuf>,

    /// Print a line again if it was not printed within this time, such as 10m, 1h or 7d
    #[arg(
        long,
        value_name = "TIME",
        value_parser = numbers::seconds,
        allow_hyphen_values = true,
        conflicts_with_all = [
            "filter", "output", "kind", "bits_per_key", "memory", "wire", "margin", "params", "fixed"
        ]
    )]
    within: Option<u64>,

    /// Into how many steps the time of --within is cut, 1 to 64: a line may be remembered for one
    /// step longer. More steps take more memory and time
    #[arg(long, value_name = "N", requires = "within", default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=64), allow_hyphen_values = true)]
    steps: u32,

    /// Take the time from this field of each JSON object, in seconds, and not from the clock when
    /// lines are read
    #[arg(long, value_name = "FIELD", requires = "within", requires = "jsonl")]
    time: Option<String>,

    #[command(flatten)]
    sizing: Sizing,

    #[command(flatten)]
    fixed: Fixed,

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
        if let Some(seconds) = self.within {
            return self.print_recent(seconds);
        }
        let target = self.output.as_deref().map(Target::new).transpose()?;
        let hasher = self.hashing.hasher()?;
        let empty = |keys| self.empty(hasher, keys);
        let (seen, mode) = match &self.filter {
            Some(path) => {
                store::one_stdin(path, &self.keys)?;
                let Loaded { filter, mode, .. } = store::load(path)?;
                let kind = filter.kind();
                if !kind.can_insert() {
                    bail!(cannot(kind, "take more keys", Kind::can_insert));
                }
                // Its keys are not known any more, so it cannot be built anew.
                (Growing::new(filter, Growth::Crowds, &empty), mode)
            }
            None => (self.start(&empty)?, self.hashing.mode()),
        };
        let filter = self.print_new(seen)?;
        show::note_if_crowded(&filter);
        if let Some(target) = target {
            target.write(&filter, mode)?;
        }
        Ok(Outcome::Fine)
    }

    /// Prints lines that were not printed within `seconds` seconds.
    fn print_recent(&self, seconds: u64) -> Result<Outcome> {
        if seconds == 0 {
            bail!("--within 0 remembers nothing; give a time such as 10m or 1h");
        }
        let mut recent = Recent::new(Asked {
            hasher: self.hashing.hasher()?,
            rate: self.sizing.rate_or(DEFAULT_RATE),
            keys: self.sizing.keys,
            lifetime: seconds.saturating_mul(1000),
            steps: self.steps,
        })?;
        let start = Instant::now();
        let progress = Progress::printing("reading", self.keys.size());
        self.keys.print_batches(recent.hasher(), progress, |batch, out| {
            if let Some(header) = batch.header {
                self.keys.write_line(out, header)?;
            }
            let arrival = start.elapsed().as_millis() as u64;
            for (lines, digests) in batch.lines.chunks(AHEAD).zip(batch.digests.chunks(AHEAD)) {
                for &digest in digests {
                    recent.prefetch(digest);
                }
                for (line, &digest) in lines.iter().zip(digests) {
                    let now = match &self.time {
                        Some(field) => Keys::time(line, field)?,
                        None => arrival,
                    };
                    if recent.is_new(digest, now)? {
                        self.keys.write_line(out, line)?;
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Outcome::Fine)
    }

    /// The filter to begin with, and what it does when it is full.
    fn start<'a>(&self, empty: &'a dyn Fn(u64) -> Result<AnyFilter>) -> Result<Growing<'a>> {
        let said = self.sizing.keys;
        if let (Some(keys), true) = (said, self.fixed.fixed) {
            return Ok(Growing::new(empty(keys)?, Growth::Stops, empty));
        }
        if let Some(lines) = self.keys.count()? {
            return Ok(Growing::new(empty(lines.max(said.unwrap_or(0)))?, Growth::Crowds, empty));
        }
        if self.sizing.follows_keys() {
            let growth = Growth::Doubles(Runs::default());
            return Ok(Growing::new(empty(said.unwrap_or(START))?, growth, empty));
        }
        let keys = said.context(
            "how many keys will come? A filter whose size is given cannot grow; say --keys, for \
             example --keys 10M, or give a --rate instead of the size",
        )?;
        Ok(Growing::new(empty(keys)?, Growth::Crowds, empty))
    }

    /// An empty filter for `keys` keys: `blocked-rank`, the smallest and quickest kind at the
    /// rates that matter here, or where its rate does not reach, `rank-indexed`.
    fn empty(&self, hasher: Hasher, keys: u64) -> Result<AnyFilter> {
        let goal = self.sizing.goal_or(keys, DEFAULT_RATE);
        let params = match self.sizing.kind {
            Some(kind) => AnyParams::plan(kind, &goal)?,
            None => AnyParams::plan(Kind::BlockedRank, &goal)
                .or_else(|_| AnyParams::plan(Kind::RankIndexed, &goal))?,
        };
        Ok(params.build(sizing::label(hasher, keys))?)
    }

    fn print_new(&self, mut seen: Growing) -> Result<AnyFilter> {
        let progress = Progress::printing("reading", self.keys.size());
        let mut number = 0;
        self.keys.print_batches(seen.filter.hasher(), progress, |batch, out| {
            if let Some(header) = batch.header {
                self.keys.write_line(out, header)?;
            }
            for (lines, digests) in batch.lines.chunks(AHEAD).zip(batch.digests.chunks(AHEAD)) {
                for &digest in digests {
                    seen.filter.prefetch(digest);
                }
                for (line, &digest) in lines.iter().zip(digests) {
                    number += 1;
                    // Repeats are not inserted, so that the filter's number of keys is that of
                    // distinct lines.
                    if !seen.filter.contains_digest(digest) {
                        seen.insert(digest, number)?;
                        self.keys.write_line(out, line)?;
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(seen.filter)
    }
}
