//! What a filter carries beside params and content.

use crate::digest::Hasher;

/// What every filter carries beside its params and its content. It is stored in the header.
///
/// ```
/// use tamis::{Bloom, Filter, Goal, Hasher, Label, Stored};
/// let params = Bloom::plan(&Goal::rate(1_000, 0.01))?;
/// let mut filter = Bloom::new(params, Label::planned(Hasher::xxh3(7), 1_000))?;
/// filter.insert("apple");
/// assert_eq!((filter.keys(), filter.capacity()), (1, 1_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// Hash function and seed.
    pub hasher: Hasher,
    /// Insertions less removals.
    pub keys: u64,
    /// How many keys the filter was planned for; 0 if that was not said.
    pub capacity: u64,
}

impl From<Hasher> for Label {
    fn from(hasher: Hasher) -> Self {
        Self { hasher, keys: 0, capacity: 0 }
    }
}

impl Label {
    /// The label of an empty filter that was planned for `capacity` keys.
    pub fn planned(hasher: Hasher, capacity: u64) -> Self {
        Self { hasher, keys: 0, capacity }
    }

    /// Whether there are more keys than the filter was planned for.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.capacity > 0 && self.keys > self.capacity
    }

    /// Makes this the label of a filter into which one with the label `other` was merged.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.keys = self.keys.saturating_add(other.keys);
        self.capacity = self.capacity.max(other.capacity);
    }
}
