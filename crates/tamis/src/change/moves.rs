//! Identities that are removed and inserted.

use alloc::vec::Vec;

use crate::entry::Entry;

/// A removal: entry number `position` of the base, `count` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone {
    pub(super) position: u64,
    pub(super) count: u64,
}

/// What is removed and what is inserted, each in order.
///
/// What is removed is an entry of the base, so its position among these says it in far fewer bits
/// than its identity would. After joining two deltas only the identities are known; after
/// decoding, only the positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Entries in the base, if positions are known.
    pub(super) base_entries: u64,
    /// What is removed, by position in the base.
    pub(super) gone: Option<Vec<Gone>>,
    /// What is removed, by identity.
    pub(super) removed: Option<Vec<Entry>>,
    /// What comes.
    pub(super) inserted: Vec<Entry>,
}

impl Moves {
    pub(crate) fn between(
        old: impl Iterator<Item = Entry>,
        new: impl Iterator<Item = Entry>,
    ) -> Self {
        let (mut gone, mut removed, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        let mut rest = new.peekable();
        let mut base_entries = 0;
        for entry in old {
            while let Some(before) = rest.next_if(|next| next.key() < entry.key()) {
                inserted.push(before);
            }
            let kept = rest.next_if(|next| next.key() == entry.key()).map_or(0, |same| same.count);
            if kept > entry.count {
                inserted.push(Entry { count: kept - entry.count, ..entry });
            } else if kept < entry.count {
                let count = entry.count - kept;
                gone.push(Gone { position: base_entries, count });
                removed.push(Entry { count, ..entry });
            }
            base_entries += 1;
        }
        inserted.extend(rest);
        Self { base_entries, gone: Some(gone), removed: Some(removed), inserted }
    }

    /// Both changes, one after the other; `None` if one of them knows what it removes by position
    /// only.
    pub(crate) fn then(&self, next: &Self) -> Option<Self> {
        let (first, second) = (self.removed.as_ref()?, next.removed.as_ref()?);
        // Insertions count up, removals down; what cancels out is left out.
        let up = self.inserted.iter().chain(&next.inserted).map(|entry| (*entry, 1));
        let down = first.iter().chain(second).map(|entry| (*entry, -1));
        let mut all: Vec<(Entry, i8)> = up.chain(down).collect();
        all.sort_by_key(|(entry, _)| entry.key());
        let (mut removed, mut inserted) = (Vec::new(), Vec::new());
        for run in all.chunk_by(|a, b| a.0.key() == b.0.key()) {
            let net: i128 =
                run.iter().map(|(entry, sign)| i128::from(*sign) * i128::from(entry.count)).sum();
            let entry = Entry { count: net.unsigned_abs() as u64, ..run[0].0 };
            if net > 0 {
                inserted.push(entry);
            } else if net < 0 {
                removed.push(entry);
            }
        }
        Some(Self { base_entries: 0, gone: None, removed: Some(removed), inserted })
    }

    /// Whether it says by identity what is removed.
    pub(crate) fn is_resolved(&self) -> bool {
        self.removed.is_some()
    }

    /// What is removed by identity, for a base with these entries, all of which are read.
    pub(crate) fn resolved(&self, base: impl Iterator<Item = Entry>) -> Result<Self, &'static str> {
        let removed = Some(self.named(base)?);
        Ok(Self { removed, ..self.clone() })
    }

    fn named(&self, base: impl Iterator<Item = Entry>) -> Result<Vec<Entry>, &'static str> {
        let gone = self.gone.as_deref().unwrap_or_default();
        let mut rest = gone.iter().peekable();
        let (mut removed, mut position) = (Vec::with_capacity(gone.len()), 0);
        base.for_each(|entry| {
            let is_gone = |gone: &&Gone| gone.position == position && gone.count <= entry.count;
            if let Some(gone) = rest.next_if(is_gone) {
                removed.push(Entry { count: gone.count, ..entry });
            }
            position += 1;
        });
        if self.base_entries != position {
            return Err("the base has another number of identities");
        }
        if rest.next().is_none() { Ok(removed) } else { Err("more is removed than is in") }
    }

    /// How many entries are removed, and how many are inserted.
    pub(super) fn sizes(&self) -> (u64, u64) {
        let gone = self.gone.as_ref().map(Vec::len);
        let removed = self.removed.as_ref().map_or(0, Vec::len);
        (gone.unwrap_or(removed) as u64, self.inserted.len() as u64)
    }

    /// How many identities are removed, and how many are inserted.
    pub fn count(&self) -> (u64, u64) {
        // Bytes may claim any counts.
        let sum = |entries: &[Entry]| {
            entries.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.count))
        };
        let gone = self.gone.as_deref().unwrap_or_default();
        let gone = gone.iter().fold(0, |sum: u64, gone| sum.saturating_add(gone.count));
        (self.removed.as_deref().map_or(gone, sum), sum(&self.inserted))
    }

    /// What is removed, if it is known by identity, and what is inserted.
    pub(crate) fn entries(&self) -> (Option<&[Entry]>, &[Entry]) {
        (self.removed.as_deref(), &self.inserted)
    }
}
