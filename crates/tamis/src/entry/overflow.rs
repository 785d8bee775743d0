//! The overflow of a fingerprint structure: a sorted list of the entries that found no cell. Every
//! operation consults it while it is not empty.
//!
//! It is almost always empty: structures are planned so that only keys that an adversary chose,
//! one key inserted many times, or far more keys than planned come here.

use alloc::vec::Vec;
use core::ops::Range;

use super::{ENTRY_BYTES, Entry};
use crate::spec::Budget;

/// The list, in order of identity and value, every pair once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    entries: Vec<Entry>,
    /// The most entries; unlimited except while a table is read.
    most: usize,
}

impl Default for Overflow {
    fn default() -> Self {
        Self::from_entries(Vec::new())
    }
}

impl Overflow {
    /// These entries, which must be in order, every pair of identity and value once, with counts
    /// above 0.
    pub(crate) fn from_entries(entries: Vec<Entry>) -> Self {
        Self { entries, most: usize::MAX }
    }

    /// From here to [`end_reading`](Self::end_reading), takes no more entries than `budget` has
    /// memory for.
    pub(crate) fn begin_reading(&mut self, budget: &Budget) {
        // When a list doubles, its old and its new memory exist at once. There may be a second
        // list, of what comes here.
        self.most = (budget.left() / (6 * ENTRY_BYTES)) as usize;
    }

    /// The most entries that this list, or one of what comes here, may take.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Takes any number of entries again.
    pub(crate) fn end_reading(&mut self) {
        self.most = usize::MAX;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Different entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bits of heap memory held.
    pub(crate) fn footprint(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>()) as u64 * 8
    }

    /// Bits of heap memory for about `entries` entries that come one by one: a vector starts with
    /// four and doubles.
    pub(crate) fn planned_bits(entries: f64) -> u64 {
        match libm::round(entries) as u64 {
            0 => 0,
            entries => entries.next_power_of_two().max(4) * size_of::<Entry>() as u64 * 8,
        }
    }

    /// Where the entries are whose identities are in a range.
    fn places(&self, identities: Range<u64>) -> Range<usize> {
        let from = self.entries.partition_point(|entry| entry.identity < identities.start);
        let rest = &self.entries[from..];
        from..from + rest.partition_point(|entry| entry.identity < identities.end)
    }

    /// The entries whose identities are in a range.
    pub(crate) fn range(&self, identities: Range<u64>) -> &[Entry] {
        &self.entries[self.places(identities)]
    }

    /// Removes the entries whose identities are in a range.
    pub(crate) fn drain(&mut self, identities: Range<u64>) -> alloc::vec::Drain<'_, Entry> {
        let places = self.places(identities);
        self.entries.drain(places)
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries of one identity.
    pub(crate) fn of(&self, identity: u64) -> &[Entry] {
        self.range(identity..identity + 1)
    }

    /// How often an identity is in, with any value.
    pub(crate) fn count(&self, identity: u64) -> u64 {
        let counts = self.of(identity).iter().map(|entry| entry.count);
        // Bytes may claim any counts.
        counts.fold(0, u64::saturating_add)
    }

    fn find(&self, identity: u64, value: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&(identity, value), Entry::key)
    }

    /// Adds to the count of an entry; false, and nothing changed, if there is no memory.
    pub(crate) fn add(&mut self, identity: u64, value: u64, count: u64) -> bool {
        match self.find(identity, value) {
            Ok(at) => self.entries[at].count = self.entries[at].count.saturating_add(count),
            Err(at) => {
                if self.entries.len() >= self.most || self.entries.try_reserve(1).is_err() {
                    return false;
                }
                self.entries.insert(at, Entry { identity, value, count });
            }
        }
        true
    }

    /// Fills an empty list with `entries`, which must be as [`from_entries`](Self::from_entries)
    /// wants them; false if they are too many.
    pub(crate) fn fill(&mut self, entries: Vec<Entry>) -> bool {
        debug_assert!(self.is_empty());
        let fits = entries.len() <= self.most;
        if fits {
            self.entries = entries;
        }
        fits
    }

    /// Removes one occurrence; false if there is none.
    pub(crate) fn take(&mut self, identity: u64, value: u64) -> bool {
        self.take_up_to(identity, value, 1) == 1
    }

    /// Removes `count` occurrences, or all if there are fewer; returns how many.
    pub(crate) fn take_up_to(&mut self, identity: u64, value: u64, count: u64) -> u64 {
        let Ok(at) = self.find(identity, value) else { return 0 };
        let taken = count.min(self.entries[at].count);
        self.entries[at].count -= taken;
        if self.entries[at].count == 0 {
            self.entries.remove(at);
            if self.entries.is_empty() {
                self.entries = Vec::new(); // An empty list holds no memory.
            }
        }
        taken
    }

    pub(crate) fn clear(&mut self) {
        self.entries = Vec::new();
    }
}
