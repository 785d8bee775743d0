//! Compressed Bloom filters: small on the wire, and small in memory while they answer.
//!
//! After M. Mitzenmacher, "Compressed Bloom Filters". A Bloom filter with fewer hash functions than usual, in a larger and
//! sparser array, takes fewer bits at equal rate once its array is compressed. The planner finds the best
//! array for a message size or a rate; [`Stored::pack`](crate::Stored::pack) sends any filter through them.
//! [`CompressedBloom`] goes one step further and answers from the compressed form: the positions of the set bits in
//! Elias-Fano form, with one or two hash functions. [`PackedBloom`] answers from a packed plain filter in pieces, as the paper proposes.
//!
//! ```text
//! array of m bits, k = 1   0 0 0 1 1 0 0 0 0 0 0 0 0 1 0 0      m = 99 n at 1%
//! its set positions        3, 4, 13                             8.6 bits per key, in fences and low bits
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
//! Built once from all keys, 8 bytes a position while building; nothing can be added or removed, and there are no deltas: send
//! snapshots. At most 2^62 positions.

pub(crate) mod elias_fano;
mod filter;
pub(crate) mod optimise;
mod packed;

pub use filter::{CompressedBloom, CompressedParams};
pub use packed::PackedBloom;
