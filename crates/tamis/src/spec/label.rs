//! What stands on every filter.

use crate::digest::Hasher;

/// What stands on every filter's label, and at the head of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// Hash function and seed.
    pub hasher: Hasher,
    /// Insertions less removals.
    pub keys: u64,
    /// Keys planned for; 0 if nobody said.
    pub capacity: u64,
}

impl From<Hasher> for Label {
    fn from(hasher: Hasher) -> Self {
        Self { hasher, keys: 0, capacity: 0 }
    }
}

impl Label {
    /// A label for a filter of which so many keys are expected.
    pub fn planned(hasher: Hasher, capacity: u64) -> Self {
        Self { hasher, keys: 0, capacity }
    }

    /// Whether more keys are in than were planned for.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.capacity > 0 && self.keys > self.capacity
    }

    /// After merging a filter with that label into one with this label.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.keys = self.keys.saturating_add(other.keys);
        self.capacity = self.capacity.max(other.capacity);
    }
}
