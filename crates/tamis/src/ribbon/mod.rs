//! A filter of a set that never changes, in hardly more bits than the rate needs.
//!
//! After P. C. Dillinger, L. Hübschle-Schneider, P. Sanders and S. Walzer, "Fast Succinct
//! Retrieval and Approximate Membership using Ribbon" (SEA 2022, arXiv 2109.01892). A key stands
//! for an equation: some of 64 neighbouring rows of a table, which its digest chooses, add up
//! (modulo 2) to a value that its digest says too. The table is solved for all keys at once, and
//! the filter is the solution. A key that is in satisfies its equation. An absent key satisfies
//! one of r bits with probability 2^-r, and no more bits than r are stored for a key: that is
//! log2(1/rate), where a Bloom filter takes 1.44 times as many.
//!
//! ```text
//!                  start
//! rows     0 1 1 0 1 0 0 1 1 0 1 0 ...          the solution, r bits per row
//! key             [1 . 1 1 . 1]                 64 coefficients, the first is 1
//! buckets  |  keys bumped below 24  |  all kept  |  ...         2 bits for every 128 rows
//!                   |
//!                   v
//! second level, third level, list of digests    3% of the keys, 0.1%, almost always none
//! ```
//!
//! ```
//! use tamis::{Filter, Ribbon};
//! let filter = Ribbon::from_keys(0..100_000_u64, 0.01)?;
//! assert!(filter.contains(&1234_u64));
//! assert!(filter.footprint() < 690_000); // a plain filter takes 9.6 bits per key
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! There are more keys than rows. So in some buckets the equations contradict each other; the
//! keys that start in the first rows of such a bucket are *bumped* to a second level with rows of
//! its own, and from there to a third. Thus hardly a row stays empty. A key that is bumped from
//! all levels is kept in a list by its digest. No key is ever lost, whatever the digests are, and
//! no build is tried twice.
//!
//! Rates are not powers of two. The first blocks of a level have a column more than the others, as
//! many as the rate needs. A mixture takes up to 0.086 bits more for each key than log2(1/rate):
//! 1.1% at a rate of 1%, 0.6% at 0.01%, nothing at powers of two.
//!
//! # Building
//!
//! Keys are sorted by their starts; a level is cut into segments of 2^18 rows, which several
//! threads can build. The bytes do not depend on their number. Beside the filter and the digests
//! that the caller holds, building takes 8 bytes per key, and 4 MiB for each thread.
//!
//! # Limits
//!
//! The filter is built once from all keys. Nothing can be added or removed, filters cannot be
//! merged, and there are no deltas: send snapshots. At most 2^40 rows per level, 64 bits per row.
//! Fewer than about a thousand keys (two thousand at 0.01%) take less memory in other kinds,
//! because here every level ends with 64 rows that few keys reach: 15 bits per key for 100 keys at
//! 1%. If more keys come than the filter was planned for, the list takes them, with 64 bits each.

pub(crate) mod build;
mod filter;
mod level;
pub(crate) mod model;
mod params;

pub use filter::Ribbon;
pub use params::RibbonParams;
