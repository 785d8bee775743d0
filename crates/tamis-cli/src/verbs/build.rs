//! `tamis build`: a new filter from lines.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tamis::{AnyParams, Kind, Plan};

use super::{Outcome, add};
use crate::keys::Keys;
use crate::progress::Progress;
use crate::show;
use crate::target::Target;
use crate::wishes::Wanted;

/// Build a filter from lines
///
/// Inserts every line. The kind is `bloom` and the rate 1% unless options say otherwise; with
/// --auto, or with needs and limits, it is the kind that meets them best (`tamis plan` shows all
/// that do). More lines than planned are no error, but raise the rate above the one asked for.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis build --rate 0.1% -o words.tamis /usr/share/dict/words
  tamis build --auto --ops insert,remove --rate 0.1% -o users.tamis users.txt
  zcat urls.gz | tamis build --kind blocked --keys 10M --memory 16MiB -o urls.tamis")]
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
    keys: Keys,
}

impl Build {
    pub(crate) fn run(self) -> Result<Outcome> {
        self.keys.check(Some(&self.output))?;
        let target = Target::new(&self.output)?;
        let Wanted { sizing, hashing, .. } = &self.wanted;
        let planned = sizing.planned_keys(&self.keys)?;
        let (params, label) = (self.plan(planned)?, hashing.label(planned)?);
        let progress = Progress::quiet("building", self.keys.size());
        let filter = if params.kind().can_insert() {
            let mut filter = params.build(label)?;
            add::insert_lines(&mut filter, &self.keys, progress)?;
            filter
        } else {
            // This kind is built once, from all keys: they take eight bytes each meanwhile.
            let mut digests = Vec::new();
            self.keys.each_batch(label.hasher, progress, |batch| {
                digests.extend(batch.digests);
                Ok(ControlFlow::Continue(()))
            })?;
            params.build_from(label, &digests)?
        };
        show::note_if_crowded(&filter);
        target.write(&filter, hashing.mode())?;
        Ok(Outcome::Fine)
    }

    /// The layout: of the kind that was named, or of the one that meets the goal best.
    fn plan(&self, keys: u64) -> Result<AnyParams> {
        let goal = self.wanted.goal(keys);
        let kind = match self.wanted.sizing.kind {
            None if !self.auto && self.wanted.wishes.is_empty() => Some(Kind::Bloom),
            kind => kind,
        };
        if let Some(kind) = kind {
            return Ok(Plan::of(kind, &goal)?.params);
        }
        let best = tamis::choose(&goal)?.swap_remove(0);
        show::note(&format_args!("{}: {}", best.params.kind().name(), best.reason));
        Ok(best.params)
    }
}
