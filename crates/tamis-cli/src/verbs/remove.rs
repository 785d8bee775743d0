//! `tamis remove`: removes lines from a filter.

use std::ops::ControlFlow;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use tamis::{Count, Digest, Filter, Kind};

use super::Outcome;
use super::add::Place;
use crate::keys::Keys;
use crate::progress::Progress;
use crate::show;
use crate::store::Loaded;

/// Remove lines from a filter
///
/// Every line removes one occurrence of its key. Exits 1 if a key was absent; the others are
/// removed all the same. Remove only keys that were added: an absent key that the filter takes for
/// a member, which happens at its rate, removes what other keys rely on, and these may be lost for
/// good, without an error.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis build --kind blocked-rank --keys 1M -o sessions.tamis started.txt
  tamis remove sessions.tamis ended.txt")]
pub(crate) struct Remove {
    #[command(flatten)]
    place: Place,

    /// Print the counts of removed and absent lines as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    keys: Keys,
}

#[derive(Default, Serialize)]
struct Facts {
    lines: u64,
    removed: u64,
    absent: u64,
    /// Whose counts are lost: they stay in.
    saturated: u64,
}

impl Remove {
    pub(crate) fn run(self) -> Result<Outcome> {
        let (Loaded { mut filter, mode, .. }, target) = self.place.open(&self.keys)?;
        let (hasher, kind) = (filter.hasher(), filter.kind());
        let cannot = || cannot(kind, "remove keys", Kind::can_remove);
        filter.as_remove().with_context(cannot)?;
        // Counts that can be lost.
        let largest = filter.as_count().map(Count::max_count).filter(|&largest| largest < u64::MAX);
        let mut facts = Facts::default();
        let progress = Progress::quiet("removing", self.keys.size());
        self.keys.each_batch(hasher, progress, |batch| {
            let removed = filter.as_remove().with_context(cannot)?.remove_many(batch.digests);
            facts.absent += batch.digests.len() as u64 - removed;
            let stays = |digest: &&Digest| filter.count_digest(**digest).is_none();
            let saturated =
                largest.map_or(0, |_| batch.digests.iter().filter(stays).count() as u64);
            facts.saturated += saturated;
            facts.removed += removed - saturated;
            Ok(ControlFlow::Continue(()))
        })?;
        facts.lines = facts.removed + facts.absent + facts.saturated;
        target.write(&filter, mode)?;
        if self.json {
            show::print_json(&facts)?;
        }
        let Facts { lines, absent, saturated, .. } = facts;
        if let Some(largest) = largest.filter(|_| saturated > 0) {
            let which = if saturated == 1 { "line has" } else { "lines have" };
            show::note(&format_args!(
                "{saturated} {which} reached the largest count, {}, and cannot be removed any more",
                largest + 1
            ));
        }
        if absent == 0 {
            return Ok(Outcome::Fine);
        }
        show::note(&format_args!("{absent} of {lines} lines were not in the filter"));
        Ok(Outcome::Nothing)
    }
}

/// Why a kind cannot do it, and which kinds can.
pub(crate) fn cannot(kind: Kind, what: &str, can: impl Fn(Kind) -> bool) -> String {
    let able: Vec<_> =
        Kind::ALL.iter().copied().filter(|&kind| can(kind)).map(Kind::name).collect();
    let able = able.join(", ");
    format!(
        "{} filters cannot {what}; kinds that can: {able} (see tamis build --kind)",
        kind.name()
    )
}
