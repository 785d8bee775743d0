//! What a user asked for when a filter was made.

use tamis::{Digest, Hasher};

/// Which commands a filter answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// BF.*: a set; keys are never removed.
    Bloom,
    /// CF.*: a multiset; keys can be removed and counted.
    Cuckoo,
}

/// What a user asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) family: Family,
    pub(crate) rate: f64,
    /// Keys of the first layer of a set; of a multiset, those that are expected.
    pub(crate) capacity: u64,
    /// How many times larger each next layer of a set is; 0 if the filter may not grow.
    pub(crate) expansion: u32,
    /// Reported to clients of cuckoo filters, and without meaning here.
    pub(crate) bucket_size: u16,
    /// As `bucket_size`.
    pub(crate) max_iterations: u16,
    pub(crate) hasher: Hasher,
}

impl Asked {
    /// The digest of an item.
    pub(crate) fn digest(&self, item: &[u8]) -> Digest {
        self.hasher.digest_bytes(item)
    }
}
