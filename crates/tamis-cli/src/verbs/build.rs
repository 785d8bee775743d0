//! `tamis build`: a new filter from lines.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use tamis::{AnyFilter, AnyParams, Hasher, Insert, Kind, Plan};

use super::Outcome;
use crate::growing::{Each, Take, at_most, distinct};
use crate::keys::Keys;
use crate::progress::Progress;
use crate::sizing::Fixed;
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

    /// Choose the kind that meets the goal best, and say which. Without --ops insert it may be one
    /// that is built once, and that nothing can be added to later
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
pub(super) const USELESS: f64 = 0.5;

impl Build {
    pub(crate) fn run(self) -> Result<Outcome> {
        self.keys.check(Some(&self.output))?;
        let target = Target::new(&self.output)?;
        let hasher = self.wanted.hashing.hasher()?;
        let said = self.wanted.sizing.keys;
        let fixed = said.filter(|_| self.fixed.fixed);
        let mut read = |take: &mut Take| match fixed {
            Some(most) => at_most(most, hasher, &mut |take| self.read(hasher, take), take),
            None => self.read(hasher, take),
        };
        let counted = if fixed.is_some() { Some(0) } else { self.keys.count()? };
        let filter = if let Some(lines) = counted {
            self.build(self.planned(lines, hasher, &mut read)?, hasher, &mut read)?
        } else {
            let (mut spool, mut lines) = (Spool::default(), 0);
            read(&mut |digests| {
                lines += digests.len() as u64;
                spool.extend(digests)
            })?;
            let mut read = |take: &mut Take| spool.read(take);
            self.build(self.planned(lines, hasher, &mut read)?, hasher, &mut read)?
        };
        show::note_if_crowded(&filter);
        target.write(&filter, self.wanted.hashing.mode())?;
        Ok(Outcome::Fine)
    }

    /// The keys to plan for: those that were said, or those that came, if they are more.
    fn planned(&self, lines: u64, hasher: Hasher, each: &mut Each) -> Result<u64> {
        let Some(said) = self.wanted.sizing.keys.filter(|&said| lines > said) else {
            if lines == 0 && self.wanted.sizing.keys.is_none() {
                show::note(
                    &"no keys came; the filter is planned for 1 key: say --keys N if more are to \
                      be added",
                );
            }
            return Ok(self.wanted.sizing.keys.unwrap_or(lines));
        };
        // Repeats take no room, and perhaps they were left out of what was said.
        let keys = distinct(hasher, each)?;
        if keys > said {
            show::note(&format_args!(
                "{} keys came, more than --keys {said}; the filter is planned for all of them",
                about(keys, said)
            ));
        }
        Ok(said.max(keys))
    }

    /// Hands on the digests of the input.
    fn read(&self, hasher: Hasher, take: &mut Take) -> Result<()> {
        let progress = Progress::quiet("building", self.keys.size());
        self.keys.each_batch(hasher, progress, |batch| {
            take(batch.digests)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The filter for `keys` keys, with all digests in it that `each` hands on.
    fn build(&self, keys: u64, hasher: Hasher, each: &mut Each) -> Result<AnyFilter> {
        let (params, label) = (self.plan(keys)?, sizing::label(hasher, keys));
        if params.kind().can_insert() {
            let mut filter =
                params.build(label).map_err(|error| self.wanted.sizing.refused(error))?;
            each(&mut |digests| Ok(filter.insert_many(digests)?))?;
            return Ok(filter);
        }
        // This kind is built once, from all keys: they take eight bytes each meanwhile.
        let mut all = Vec::new();
        each(&mut |digests| {
            all.extend(digests);
            Ok(())
        })?;
        let _spinner = Progress::spinner("building");
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
            let kind = best.params.kind();
            let once = "; nothing can be added to it later (--ops insert takes a kind that can)";
            let once = if kind.can_insert() { "" } else { once };
            show::note(&format_args!("{}: {}{once}", kind.name(), best.reason));
            best
        };
        let asked = self.wanted.sizing.rate_or(0.0);
        if keys > 0 && plan.predicted.rate > USELESS && asked > USELESS {
            bail!(
                "a filter of rate {} is of no use; say a --rate of {} or less",
                show::short_rate(asked),
                show::short_rate(USELESS)
            );
        }
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

/// An estimate of more than `said` keys: in three digits, unless these are not more.
fn about(keys: u64, said: u64) -> String {
    let unit = 10_u64.pow(keys.checked_ilog10().unwrap_or(0).saturating_sub(2));
    let rounded = keys.saturating_add(unit / 2) / unit * unit;
    match if rounded > said { rounded } else { keys } {
        few @ ..1000 => few.to_string(),
        many => format!("about {many}"),
    }
}
