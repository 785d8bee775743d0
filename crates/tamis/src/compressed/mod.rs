//! Filters that are small on the wire, and small in memory while they answer.
//!
//! After M. Mitzenmacher, "Compressed Bloom Filters". Take a Bloom filter with fewer hash
//! functions than usual, in a larger and sparser array. Once its array is compressed, it takes
//! fewer bits at the same rate. The planner finds the best array for a message size or a rate,
//! and [`Stored::pack`](crate::Stored::pack) compresses any filter.
//!
//! - [`CompressedBloom`] answers from a compressed form: the positions of the set bits in
//!   Elias-Fano form, with one hash function unless more are fixed.
//! - [`PackedBloom`] answers from a packed plain filter that was cut into pieces, as the paper
//!   proposes.
//!
//! ```text
//! array of m bits, k = 1   0 0 0 1 1 0 0 0 0 0 0 0 0 1 0 0    m = 99 n at 1%
//! its set positions        3, 4, 13                           8.6 bits per key,
//!                                                             in fences and low bits
//! ```
//!
//! ```
//! use tamis::CompressedBloom;
//! let filter = CompressedBloom::from_keys(["apple", "pear", "plum"], 0.01)?;
//! assert!(filter.contains("pear"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! A filter is built once from all its keys, with 8 bytes for each position while building.
//! Nothing can be inserted or removed, and there are no deltas: send snapshots. There are at most
//! 2^62 positions.

pub(crate) mod elias_fano;
mod filter;
pub(crate) mod optimise;
mod packed;

pub use filter::{CompressedBloom, CompressedParams};
pub use packed::PackedBloom;
