//! The blocked rank-indexed filter: paper 000's buckets, each in one cache line, with paper 001's
//! idea of a limit and a table behind.
//!
//! A key is kept as its *identity*, an integer in [0, U): block, chain location and fingerprint. A
//! block holds the chains of its locations below a threshold. Those at or above it are in the back
//! table, which stays in the cache: blocks again, a twentieth as many with wider fingerprints, and
//! behind them, for the few that are left, a packed [rank-indexed](crate::rank_indexed) table. A
//! location is either in its block or in the back table, so that a question reads one block, and
//! in one case of twenty-five one more. Removal is exact, and nothing is ever lost.
//!
//! ```text
//! block (64 bytes)  | low bytes of Z fingerprints | high bits | IH (Z) | I0 (L) | threshold |
//! back table        identities of the locations at or above the thresholds of their blocks
//! ```
//!
//! With fingerprints of 8 bits a key takes 11.7 bits at a rate of 0.29%; with 12 bits it takes
//! 16.5 at 0.02%. The back table is included.
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
//! When a block is full, the cells of its highest location move to the back table, and the
//! threshold falls to that location. When removals make room, locations come back. One key
//! inserted very often ends up in the back table, which counts. When a third of the planned keys
//! are in the back table, and there are enough keys to fill the blocks, the filter grows to twice
//! the blocks, with fingerprints one bit shorter: identities, and so answers, stay.
//!
//! # Limits
//!
//! At most 2^61 identities; fingerprints of 1 to 16 bits (a fingerprint of fewer than 8 bits takes
//! a byte all the same). For rates below 10^-5 [`RankIndexed`](crate::RankIndexed) takes less
//! memory.

mod back;
mod backend;
mod block;
mod machine;
mod many;
pub(crate) mod model;
mod params;
mod place;
mod plan;
mod sections;
mod table;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use params::BlockedRankParams;

use self::table::Table;
use crate::identities::Identities;
use crate::stored::Stored;
use crate::wire::Encoded;

/// A multiset of identities; see [the module](self).
pub type BlockedRank = Identities<Table>;

impl BlockedRank {
    /// Encodes a filter of any size as [`encode`](Stored::encode) does for 4 MiB and more: with
    /// the back table as it is in memory, so that nothing has to be built when the bytes are
    /// opened in place.
    pub fn encode_in_place(&self) -> Encoded<'_> {
        self.frame(sections::encode_in_place(&self.table))
    }

    /// Uses portable instructions only, whatever the machine has: for comparisons.
    pub fn make_portable(&mut self) {
        self.table.make_portable();
    }
}
