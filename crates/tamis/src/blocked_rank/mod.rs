//! A filter from which keys can be removed: about one cache line per lookup, 9.6 bits per key at
//! 1%.
//!
//! A key is kept as its *identity*, an integer in [0, U): block, location and fingerprint. The
//! fingerprints of a location are its *run*. A block holds the runs of its locations side by side,
//! in order, as far as there is room. The runs of the highest locations are in the back table:
//! fewer blocks with wider fingerprints; behind them a third level, and at the end a list, which
//! is almost always empty. A block knows which of its locations have keys, and which of these are
//! behind. So a lookup reads one block, and in up to a tenth of cases one of the next level: at
//! 1%, 1.19 cache lines for a key that is in and 1.13 for an absent key, on average. Removal of
//! keys that are in is exact.
//!
//! ```text
//! block       | occupied locations (L bits) | Z fingerprints | zeros | ends of runs (Z bits) |
//! back table  identities of the highest locations of blocks that are full
//! ```
//!
//! With a million keys, the back table included, a key takes 8.7 bits at a rate of 2%, 9.6 at 1%,
//! 11.5 at 0.3% and 13.3 at 0.1%. A block is a cache line. With larger blocks (`block`, in bits) a
//! key takes less memory and more time: with 16384 bits 8.7 at 1%. A plan has such blocks if the
//! user fixes `block`, or if [`Minimise::Memory`](crate::Minimise) is asked of
//! [`choose`](crate::choose).
//!
//! ```
//! use tamis::BlockedRank;
//! let mut filter = BlockedRank::with_rate(1_000, 0.01)?;
//! filter.insert("apple")?;
//! assert!(filter.contains("apple"));
//! filter.remove("apple")?;
//! assert!(!filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When it fills up
//!
//! When a block is full, its highest run moves to the back table. When removals make room, runs
//! come back. One key inserted very often ends up in the list, which counts. When the back table
//! is full, and there are enough keys to fill the blocks, the filter grows to twice the blocks,
//! with fingerprints one bit shorter: identities, and so answers, stay.
//!
//! # Limits
//!
//! At most 2^61 identities; fingerprints of 1 to 24 bits, and so rates from 2·10^-8 on.
//!
//! # Sources
//!
//! The blocks are the buckets of paper 000 (rank-indexed hashing), each in a cache line; that a
//! block is limited, and has a table behind it, is the idea of paper 001 (balanced Bloom filters).
//! `docs/papers/README.md` names the papers, `docs/decisions/0004-blocked-rank.md` the reasons.

mod block;
mod cells;
mod dense;
#[cfg(target_arch = "x86_64")]
mod eight;
pub(crate) mod ladder;
mod line;
mod machine;
mod map;
pub(crate) mod model;
mod params;
#[cfg(feature = "internals")]
pub(crate) mod parts;
mod place;
mod plan;
mod sections;
mod shape;
mod table;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use params::{BlockedMapParams, BlockedRankParams};

use self::map::MapTable;
use self::table::Table;
use crate::identities::{Identities, Table as _};
use crate::spec::{Absent, Full};

/// A filter from which keys can be removed and in which they can be counted. Start here if keys
/// come and go.
///
/// Remove only keys that are in. An absent key that the filter answers yes for, with probability
/// `rate`, takes away what another key relies on, and that one may be lost for good, without an
/// error. [The module](self) says how it works.
///
/// ```
/// use tamis::BlockedRank;
/// let mut online = BlockedRank::with_rate(1_000, 0.001)?;
/// online.insert("ada")?;
/// online.insert("ada")?;
/// assert_eq!(online.count("ada"), Some(2));
/// online.remove("ada")?;
/// assert!(online.contains("ada"));
/// online.remove("ada")?;
/// assert!(!online.contains("ada"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type BlockedRank = Identities<Table>;

/// A filter that keeps a small value for each key: 1 to 32 bits, 8 unless others are asked for.
/// Keys can be removed.
///
/// See its method `values` for what happens when two keys share an identity. Identities and values
/// together have at most 61 bits.
///
/// ```
/// use tamis::BlockedMap;
/// let mut ports = BlockedMap::with_rate(1_000, 0.001)?;
/// ports.insert_value("http", 80)?;
/// assert!(ports.values("http").contains(&80));
/// ports.remove_value("http", 80)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type BlockedMap = Identities<MapTable>;

impl BlockedRank {
    /// Uses portable instructions only, whatever the machine has: for comparisons.
    pub fn make_portable(&mut self) {
        self.table.make_portable();
    }

    /// Whether `identity` is in.
    #[inline]
    pub(crate) fn contains_identity(&self, identity: u64) -> bool {
        self.table.contains(self.table.place_of(identity))
    }

    /// Inserts `identity`. Returns true if it was not in before.
    #[inline]
    pub(crate) fn insert_identity(&mut self, identity: u64) -> Result<bool, Full> {
        let is_new = self.table.insert(self.table.place_of(identity), 0)?;
        self.label.keys += 1;
        Ok(is_new)
    }

    /// Removes one occurrence of `identity`.
    #[inline]
    pub(crate) fn remove_identity(&mut self, identity: u64) -> Result<(), Absent> {
        self.table.remove(self.table.place_of(identity), None)?;
        self.label.keys -= 1;
        Ok(())
    }

    /// Lays the filter out anew with `params` of the same universe.
    pub(crate) fn lay_out_anew(&mut self, params: BlockedRankParams) -> Result<(), Full> {
        self.table = self.table.rebuilt(params, 0)?;
        Ok(())
    }
}
