//! `tamis build`: a new filter from lines.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use tamis::{AnyFilter, AnyParams, Digest, Hasher, Insert, Kind, Plan};

use super::Outcome;
use crate::keys::Keys;
use crate::progress::Progress;
use crate::sizing::{Fixed, one_too_many};
use crate::spool::Spool;
use crate::target::Target;
use crate::wishes::Wanted;
use crate::{show, sizing};

/// Build a filter from lines
///
/// Inserts every line. The kind is `bloom` and the rate 1% unless options say otherwise; with
/// --auto, or with needs and limits, it is the kind that meets them best (`tamis plan` shows all
/// that do). Without --keys the filter is planned for all lines that come, also from a pipe.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis build --rate 0.1% -o words.tamis /usr/share/dict/words
  tamis build --auto --ops insert,remove --rate 0.1% -o users.tamis users.txt
  tamis build --csv email --rate 1e-4 -o mails.tamis users.csv.gz
  crawl | tamis build --kind blocked -o urls.tamis")]
pub(crate) struct Build {
    /// File to write the filter to; - is stdout
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,

    /// Choose the kind that meets the goal best, and say which
    #[arg(long, conflicts_with = "kind")]
    auto: bool,

    #[command(flatten)]
    wanted: Wanted,

    #[command(flatten)]
    fixed: Fixed,

    #[command(flatten)]
    keys: Keys,
}

/// A filter that answers yes for more absent keys than this is of no use.
const USELESS: f64 = 0.5;

/// What takes digests, some at a time.
type Take<'a> = dyn FnMut(&[Digest]) -> Result<()> + 'a;

impl Build {
    pub(crate) fn run(self) -> Result<Outcome> {
        self.keys.check(Some(&self.output))?;
        let target = Target::new(&self.output)?;
        let hasher = self.wanted.hashing.hasher()?;
        let said = self.wanted.sizing.keys;
        let counted = if self.fixed.fixed { said } else { self.keys.count()? };
        let filter = if let Some(lines) = counted {
            let keys = self.planned(lines);
            self.build(keys, hasher, |take| self.each_batch(hasher, take))?
        } else {
            let (mut spool, mut lines) = (Spool::default(), 0);
            self.each_batch(hasher, &mut |digests| {
                lines += digests.len() as u64;
                spool.extend(digests)
            })?;
            self.build(self.planned(lines), hasher, |take| spool.read(take))?
        };
        show::note_if_crowded(&filter);
        target.write(&filter, self.wanted.hashing.mode())?;
        Ok(Outcome::Fine)
    }

    /// The keys to plan for: those that were said, or those that came, if they are more.
    fn planned(&self, lines: u64) -> u64 {
        let said = self.wanted.sizing.keys.unwrap_or(0);
        if said > 0 && lines > said {
            show::note(&format_args!(
                "{lines} keys came, more than --keys {said}; the filter is planned for all of them"
            ));
        }
        said.max(lines)
    }

    /// Hands on the digests of the input.
    fn each_batch(&self, hasher: Hasher, take: &mut Take) -> Result<()> {
        let most = self.wanted.sizing.keys.filter(|_| self.fixed.fixed);
        let mut lines = 0;
        let progress = Progress::quiet("building", self.keys.size());
        self.keys.each_batch(hasher, progress, |batch| {
            lines += batch.digests.len() as u64;
            if let Some(most) = most.filter(|&most| lines > most) {
                return Err(one_too_many(most + 1, most));
            }
            take(batch.digests)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The filter for `keys` keys, with all digests in it that `each` hands on.
    fn build(
        &self,
        keys: u64,
        hasher: Hasher,
        each: impl FnOnce(&mut Take) -> Result<()>,
    ) -> Result<AnyFilter> {
        let (params, label) = (self.plan(keys)?, sizing::label(hasher, keys));
        if params.kind().can_insert() {
            let mut filter = params.build(label)?;
            each(&mut |digests| Ok(filter.insert_many(digests)?))?;
            return Ok(filter);
        }
        // This kind is built once, from all keys: they take eight bytes each meanwhile.
        let mut all = Vec::new();
        each(&mut |digests| {
            all.extend(digests);
            Ok(())
        })?;
        Ok(params.build_from(label, &all)?)
    }

    /// The layout: of the kind that was named, or of the one that meets the goal best.
    fn plan(&self, keys: u64) -> Result<AnyParams> {
        let goal = self.wanted.goal(keys);
        let kind = match self.wanted.sizing.kind {
            None if !self.auto && self.wanted.wishes.is_empty() => Some(Kind::Bloom),
            kind => kind,
        };
        let plan = if let Some(kind) = kind {
            Plan::of(kind, &goal)?
        } else {
            let best = tamis::choose(&goal)?.swap_remove(0);
            show::note(&format_args!("{}: {}", best.params.kind().name(), best.reason));
            best
        };
        if keys > 0 && plan.predicted.rate > USELESS {
            bail!(
                "such a filter for {keys} keys would answer yes for {} of absent keys; give it \
                 more memory, or say a --rate",
                show::rate(plan.predicted.rate)
            );
        }
        Ok(plan.params)
    }
}
