//! `tamis merge`: one filter with the keys of several.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use super::Outcome;
use crate::show;
use crate::store::{self, Loaded, is_stdio};
use crate::target::Target;

/// Make one filter that holds the keys of several
///
/// All must agree in kind, params, hash function and seed: build them with the same options,
/// --keys included. Without --keys each is planned for its own lines, and filters of different
/// files seldom fit.
///
/// The result is the filter that inserting all their keys would give. Its rate is that of all keys
/// together: to keep the rate that you ask for, give each the sum of the keys as --keys.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis merge monday.tamis tuesday.tamis -o both.tamis
  tamis merge *.tamis -o - | ssh host 'cat > all.tamis'")]
pub(crate) struct Merge {
    /// Filters to merge; - is stdin
    #[arg(value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Another filter; may be repeated
    #[arg(long = "filter", value_name = "FILTER")]
    others: Vec<PathBuf>,

    /// File to write the merged filter to; - is stdout
    #[arg(short, long, value_name = "FILTER")]
    output: PathBuf,
}

impl Merge {
    pub(crate) fn run(self) -> Result<Outcome> {
        let all: Vec<_> = self.filters.iter().chain(&self.others).collect();
        let (Some((first, others)), 2..) = (all.split_first(), all.len()) else {
            bail!(
                "merging takes two filters or more, as in tamis merge a.tamis b.tamis -o c.tamis"
            );
        };
        if all.iter().filter(|path| is_stdio(path)).count() > 1 {
            bail!("only one filter can come from stdin");
        }
        let target = Target::new(&self.output)?;
        let Loaded { mut filter, mut mode, .. } = store::load(first)?;
        for path in others {
            let other = store::load(path)?;
            mode &= other.mode;
            filter.merge(&other.filter).with_context(|| {
                format!("cannot merge {} and {}", store::name(first), store::name(path))
            })?;
        }
        show::note_if_crowded(&filter);
        target.write(&filter, mode)?;
        Ok(Outcome::Fine)
    }
}
