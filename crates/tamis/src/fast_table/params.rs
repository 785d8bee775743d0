//! The integers that fix a table.

use crate::spec::InvalidParam;

/// The most buckets of a table: they are numbered in 32 bits.
pub const MAX_BUCKETS: u64 = u32::MAX as u64;

/// The most buckets of a key.
pub const MAX_HASHES: u32 = 16;

/// Buckets for each key where a table is sized for so many keys.
const BUCKETS_PER_KEY: u64 = 4;

/// The number of hash functions with which a lookup reads the fewest nodes there (tested by
/// `the_best_number_of_functions`).
const HASHES: u32 = 3;

/// Layout of a [`FastTable`](super::FastTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableParams {
    buckets: u32,
    hashes: u32,
}

impl TableParams {
    /// `buckets` buckets, of which every key has `hashes`. A chained table uses the first of them only; a d-left table has `hashes` subtables.
    pub fn new(buckets: u64, hashes: u32) -> Result<Self, InvalidParam> {
        if !(1..=MAX_BUCKETS).contains(&buckets) {
            return Err(InvalidParam {
                name: "buckets",
                value: buckets,
                expected: "1 to 2^32 - 1",
            });
        }
        if !(1..=MAX_HASHES).contains(&hashes) {
            let value = hashes.into();
            return Err(InvalidParam { name: "hashes", value, expected: "1 to 16" });
        }
        Ok(Self { buckets: buckets as u32, hashes })
    }

    /// Four buckets a key and three hash functions: two bytes of counters a key, and 1.02 items read for a hit. Where there are
    /// more keys than that many buckets can be had for, the lists are longer.
    pub fn for_keys(keys: u64) -> Self {
        let buckets = keys.saturating_mul(BUCKETS_PER_KEY).clamp(16, MAX_BUCKETS);
        Self { buckets: buckets as u32, hashes: HASHES }
    }

    /// Twice the buckets, as far as they can be numbered.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { buckets: self.buckets.saturating_mul(2), ..self }
    }

    /// Buckets, m.
    pub fn buckets(&self) -> u64 {
        self.buckets.into()
    }

    /// Buckets of a key, k.
    pub fn hashes(&self) -> u32 {
        self.hashes
    }
}
