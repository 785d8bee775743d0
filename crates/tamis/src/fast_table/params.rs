//! The integers that fix a table.

use crate::spec::{InvalidParam, require};

/// The most buckets of a table. They are numbered in 32 bits.
pub const MAX_BUCKETS: u64 = u32::MAX as u64;

/// The most buckets of a key.
pub const MAX_HASHES: u32 = 16;

/// Buckets for each key in a table that is sized for a number of keys.
const BUCKETS_PER_KEY: u64 = 4;

/// Hash functions of such a table: with three a lookup reads the fewest nodes (tested by
/// `the_best_number_of_functions`).
const HASHES: u32 = 3;

/// The params of a [`FastTable`](super::FastTable), which fix its layout.
///
/// ```
/// use tamis::fast_table::TableParams;
/// let params = TableParams::for_keys(1_000);
/// assert_eq!((params.buckets(), params.hashes()), (4_000, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableParams {
    buckets: u32,
    hashes: u32,
}

impl TableParams {
    /// `buckets` buckets, of which every key has `hashes`. A chained table uses only the first of
    /// them; a d-left table has `hashes` subtables.
    pub fn new(buckets: u64, hashes: u32) -> Result<Self, InvalidParam> {
        require((1..=MAX_BUCKETS).contains(&buckets), "buckets", buckets, "1 to 2^32 - 1")?;
        require((1..=MAX_HASHES).contains(&hashes), "hashes", hashes, "1 to 16")?;
        Ok(Self { buckets: buckets as u32, hashes })
    }

    /// Four buckets for each key and three hash functions: two bytes of counters for each key,
    /// and 1.02 items read for a present key. The number of buckets is limited to 2^32 - 1; with
    /// more keys the lists are longer.
    pub fn for_keys(keys: u64) -> Self {
        let buckets = keys.saturating_mul(BUCKETS_PER_KEY).clamp(16, MAX_BUCKETS);
        Self { buckets: buckets as u32, hashes: HASHES }
    }

    /// Twice the buckets, but no more than 32 bits can number.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { buckets: self.buckets.saturating_mul(2), ..self }
    }

    /// The number of buckets, m.
    pub fn buckets(&self) -> u64 {
        self.buckets.into()
    }

    /// Buckets of each key, k.
    pub fn hashes(&self) -> u32 {
        self.hashes
    }
}
