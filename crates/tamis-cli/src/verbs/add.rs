//! `tamis add`: inserts lines into a filter.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use tamis::{AnyFilter, Filter, Kind, Operation};

use super::Outcome;
use super::build::USELESS;
use super::remove::cannot;
use crate::keys::Keys;
use crate::progress::Progress;
use crate::show;
use crate::store::{self, Loaded, is_stdio};
use crate::target::Target;

/// Add lines to a filter
///
/// The file is replaced in one step. A program that reads it meanwhile sees all of the new lines
/// or none; other runs of tamis that change it wait. A run that is killed may leave a file
/// .NAME.tamis-* beside it, which can be deleted.
#[derive(Args)]
#[command(after_help = "\
Examples:
  echo tamis | tamis add words.tamis
  tamis add words.tamis -o more.tamis new-words.txt")]
pub(crate) struct Add {
    #[command(flatten)]
    place: Place,

    /// Write the filter even if it then answers yes for more than half of all absent keys
    #[arg(long)]
    overfill: bool,

    #[command(flatten)]
    keys: Keys,
}

/// A filter to change, and where the changed one goes.
#[derive(Args)]
pub(crate) struct Place {
    /// Filter to change
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Write the changed filter to this file and leave FILTER as it is; - is stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Place {
    /// The filter, and the target of the changed one.
    pub(crate) fn open(&self, keys: &Keys) -> Result<(Loaded, Target)> {
        store::one_stdin(&self.filter, keys)?;
        let output = match &self.output {
            Some(output) => output,
            None if is_stdio(&self.filter) => {
                bail!("a filter from stdin has no file to change; name one with -o")
            }
            None => &self.filter,
        };
        keys.check(Some(output))?;
        let target = Target::new(output)?;
        Ok((store::load(&self.filter)?, target))
    }
}

impl Add {
    pub(crate) fn run(self) -> Result<Outcome> {
        let (Loaded { mut filter, mode, .. }, target) = self.place.open(&self.keys)?;
        let progress = Progress::quiet("adding", self.keys.size());
        insert_lines(&mut filter, &self.keys, progress)?;
        let (rate, keys) = (filter.rate(), filter.keys());
        if rate > USELESS && !filter.kind().can(Operation::Grow) && !self.overfill {
            bail!(
                "{} would answer yes for {} of absent keys; build a larger one with tamis build \
                 --keys {keys}, or say --overfill to write this one",
                store::name(&self.place.filter),
                show::rate(rate)
            );
        }
        show::note_if_crowded(&filter);
        target.write(&filter, mode)?;
        Ok(Outcome::Fine)
    }
}

/// Inserts every line.
pub(crate) fn insert_lines(filter: &mut AnyFilter, keys: &Keys, progress: Progress) -> Result<()> {
    let (hasher, kind) = (filter.hasher(), filter.kind());
    let insert =
        filter.as_insert().with_context(|| cannot(kind, "take more keys", Kind::can_insert))?;
    keys.each_batch(hasher, progress, |batch| {
        insert.insert_many(batch.digests)?;
        Ok(ControlFlow::Continue(()))
    })
}
