//! What found no cell: a sorted list beside the table, consulted by every operation while it is not empty.
//!
//! It is all but always empty. Buckets are planned to overflow with probability 10^-10; only keys that somebody
//! chooses, or one key inserted many times, come here.

use alloc::vec::Vec;

/// An identity with its value and how often it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spilled {
    pub(crate) identity: u64,
    pub(crate) value: u64,
    pub(crate) count: u64,
}

/// The list, in order of identity and value, every pair once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spill {
    entries: Vec<Spilled>,
}

impl Spill {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Different entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bits of heap memory held.
    pub(crate) fn footprint(&self) -> u64 {
        (self.entries.capacity() * size_of::<Spilled>()) as u64 * 8
    }

    /// The entries whose identities are in a range.
    pub(crate) fn range(&self, identities: core::ops::Range<u64>) -> &[Spilled] {
        let from = self.entries.partition_point(|entry| entry.identity < identities.start);
        let to = self.entries.partition_point(|entry| entry.identity < identities.end);
        &self.entries[from..to]
    }

    /// The entries of one identity.
    pub(crate) fn of(&self, identity: u64) -> &[Spilled] {
        self.range(identity..identity + 1)
    }

    fn find(&self, identity: u64, value: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&(identity, value), |entry| (entry.identity, entry.value))
    }

    /// Adds to the count of an entry; false, and nothing changed, if there is no memory.
    pub(crate) fn add(&mut self, identity: u64, value: u64, count: u64) -> bool {
        match self.find(identity, value) {
            Ok(at) => self.entries[at].count = self.entries[at].count.saturating_add(count),
            Err(at) => {
                if self.entries.try_reserve(1).is_err() {
                    return false;
                }
                self.entries.insert(at, Spilled { identity, value, count });
            }
        }
        true
    }

    /// Takes one away; false if there is none.
    pub(crate) fn take(&mut self, identity: u64, value: u64) -> bool {
        let Ok(at) = self.find(identity, value) else { return false };
        self.entries[at].count -= 1;
        if self.entries[at].count == 0 {
            self.entries.remove(at);
            if self.entries.is_empty() {
                self.entries = Vec::new(); // Memory that is not needed is not held.
            }
        }
        true
    }

    pub(crate) fn clear(&mut self) {
        self.entries = Vec::new();
    }
}
