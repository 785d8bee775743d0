//! `tamis build`: a new filter from lines.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{Outcome, add};
use crate::keys::Keys;
use crate::progress::Progress;
use crate::show;
use crate::sizing::{Hashing, Sizing};
use crate::target::Target;

/// Build a filter from lines
///
/// Inserts every line. Kind `bloom` and a rate of 1% unless other options say more. More lines than planned are
/// no error, but the rate rises above the one asked for.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis build --rate 0.1% -o words.tamis /usr/share/dict/words
  zcat urls.gz | tamis build --kind blocked --keys 10M --memory 16MiB -o urls.tamis")]
pub(crate) struct Build {
    /// File to write the filter to; - is stdout
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,

    #[command(flatten)]
    sizing: Sizing,

    #[command(flatten)]
    hashing: Hashing,

    #[command(flatten)]
    keys: Keys,
}

impl Build {
    pub(crate) fn run(self) -> Result<Outcome> {
        self.keys.check(Some(&self.output))?;
        let target = Target::new(&self.output)?;
        let (params, label) = self.sizing.plan(&self.hashing, &self.keys)?;
        let progress = Progress::quiet("building", self.keys.size());
        let filter = if params.kind().can_insert() {
            let mut filter = params.build(label)?;
            add::insert_lines(&mut filter, &self.keys, progress)?;
            filter
        } else {
            // Built once from all keys: eight bytes a key meanwhile.
            let mut digests = Vec::new();
            self.keys.each_batch(label.hasher, progress, |batch| {
                digests.extend(batch.digests);
                Ok(ControlFlow::Continue(()))
            })?;
            params.build_from(label, &digests)?
        };
        show::note_if_crowded(&filter);
        target.write(&filter, self.hashing.mode())?;
        Ok(Outcome::Fine)
    }
}
