//! A filter from which keys can be removed, and that counts keys which come up to four times: the
//! d-left counting Bloom filter.
//!
//! Fingerprints are in d subtables, balanced so well that buckets almost never overflow.
//!
//! After F. Bonomi, M. Mitzenmacher, R. Panigrahy, S. Singh, G. Varghese, "An Improved
//! Construction for Counting Bloom Filters", ESA 2006. A key is kept as its *identity*, an integer
//! in [0, U). Each of d permutations of [0, U) gives the identity a bucket in one subtable and a
//! remainder. The remainder is put into the least loaded of the d buckets (the leftmost of
//! several), with a counter of two bits for equal identities.
//!
//! ```text
//! subtable 1   | bucket | bucket | ... (B buckets)   bucket     | cell | cell | ... (c cells)
//! subtable 2   | bucket | bucket | ...               cell       counter (2 bits) remainder value
//! ...                                                remainder  r bits; U = B 2^r identities
//! subtable d   | bucket | bucket | ...               overflow   entries that found no cell
//! ```
//!
//! At 1% a key takes 16.6 bits, less than half of a counting Bloom filter, and an operation reads
//! d buckets.
//!
//! ```
//! use tamis::DLeft;
//! let mut filter = DLeft::with_rate(1_000, 0.01)?;
//! filter.insert("apple")?;
//! filter.insert("apple")?;
//! assert_eq!(filter.count("apple"), Some(2));
//! filter.remove("apple")?;
//! assert!(filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When it fills up
//!
//! Tables are planned for 6.75 of 8 cells. If all d buckets of a key are full, a cell of the first
//! one moves to another of its own choices; if necessary, another cell moves out of that one
//! before. If that fails too, the key goes to the overflow, a sorted list of entries. When the
//! table holds as many identities as it has cells, it grows to twice the buckets, with remainders
//! one bit shorter: identities, and so answers, stay. [`grow`](crate::Stored::grow),
//! [`shrink`](crate::Stored::shrink) and `recut` change the layout when you ask for it, and need
//! no keys.
//!
//! A cell counts to four; further copies are counted in the overflow. So counts are never too low.
//! They are too high for about a share `rate` of the keys, those that share an identity with
//! another key.
//!
//! # Limits
//!
//! A key that is in more than four times takes an entry of 24 bytes in the overflow, and inserting
//! an entry there moves all entries behind it. That is good for a few such keys, not for many
//! ([`RankCounting`](crate::RankCounting) is for those). At most 2^62 identities, 8 subtables, 15
//! cells per bucket.
//!
//! Removing a key that was never inserted is refused if the filter answers no to it. If it answers
//! yes by mistake (with probability `rate`), one occurrence of another key with the same identity
//! is removed, and that key may then be missed. No filter can notice that; a counting Bloom filter
//! would harm up to k keys. Use a keyed hash if others choose the keys: in a universe of 2^25
//! identities collisions are easy to find.

mod bucket;
mod choices;
pub(crate) mod model;
mod params;
mod plan;
mod sections;
mod table;

use alloc::vec;
use alloc::vec::Vec;

pub use params::DLeftParams;

use self::table::Table;
use crate::digest::Digest;
use crate::identities::{Identities, Table as _};
use crate::spec::ResizeError;

/// A filter from which keys can be removed, and that counts keys which come up to four times.
/// [`BlockedRank`](crate::BlockedRank) takes less memory.
///
/// Remove only keys that are in; [the module](self) says how it works, and what it does with keys
/// that come more often.
pub type DLeft = Identities<Table>;

impl DLeft {
    /// How many buckets of each subtable hold 0, 1, 2, ... cells: what the paper's analysis is
    /// about.
    pub fn loads(&self) -> Vec<Vec<u64>> {
        let params = self.table.params();
        let of_subtable = |subtable: u64| {
            let mut loads = vec![0; params.cells() as usize + 1];
            let buckets = subtable * params.buckets()..(subtable + 1) * params.buckets();
            buckets.for_each(|bucket| loads[self.table.cells(bucket).count()] += 1);
            loads
        };
        (0..u64::from(params.subtables())).map(of_subtable).collect()
    }

    /// Whether one of the buckets of this digest has a free cell, so that inserting it needs no
    /// move.
    pub fn has_room(&self, digest: Digest) -> bool {
        self.table.has_room(self.table.place(digest))
    }

    /// Cuts the same memory into more cells, with remainders that are `dropped` bits shorter. That
    /// is room for more keys, at a rate that doubles with each bit.
    pub fn recut(&mut self, dropped: u32) -> Result<(), ResizeError> {
        let params = self.table.params().recut(dropped)?;
        self.table = self.table.coarser(params, dropped)?;
        Ok(())
    }
}
