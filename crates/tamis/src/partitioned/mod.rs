//! A Bloom filter that is built once from all its keys, with a fraction of a plain one's rate:
//! each group of keys has the hash functions that suit it ("partitioned hashing").
//!
//! After Hao, Kodialam and Lakshman, "Building High Accuracy Bloom Filters Using Partitioned
//! Hashing" (SIGMETRICS 2007), as implemented in a project report. One hash cuts the keys into
//! groups. Every group takes, out of many candidates, the k hash functions that set the fewest new
//! bits. So fewer than half of the bits are set at the same k, and the rate is a fraction of a
//! plain filter's. The choices have to be stored; with these counted, the rate is half of a plain
//! filter's at 10 bits per key, and a third at 16.
//!
//! ```text
//! choices  | 7 3 1 | 9 8 2 | 0 0 0 | 5 4 0 |   k of H functions per group, falling; 0: empty
//! array    0 1 1 0 0 1 0 0 ... | 0 0 1 1 0 ... m bits, in segments with groups of their own
//! ```
//!
//! ```
//! use tamis::{Filter, PartitionedBloom};
//! let filter = PartitionedBloom::from_keys(0..2000_u64, 0.01)?;
//! assert!(filter.contains(&1234_u64));
//! assert!(filter.footprint() < 2000 * 9); // a plain filter takes 9.6 bits per key
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A question reads the choices of its group, one cache line or two, and then bits as a plain
//! filter does. A group without keys has no functions: its first choice is zero, and questions for
//! it end there. (Functions are stored in falling order, so that of several only the last can be
//! zero; a single one is stored plus 1.) If every candidate is taken (H = k), nothing is stored or
//! marked, and the filter is a plain one; that is the plan for a few keys.
//!
//! The file `functions.rs` has the function that decides the group of a key, and the candidates:
//! ours, and those of the report.
//!
//! # Building
//!
//! The file `assign.rs` finds the functions that the literal algorithm finds, by computing two
//! positions for each key and candidate, about 6 ns on one core. A plan keeps keys times
//! candidates below 2^32, which is half a minute: 4096 candidates up to a million keys, fewer
//! beyond. The array is cut into segments of about 2^17 bits with groups of their own. These are
//! built in the first-level cache and, with the feature `std`, on all cores at once. Segments are
//! part of the layout: the result does not depend on the number of cores.
//!
//! # Limits
//!
//! The filter is built once from all keys, which takes 8 bytes per key. Nothing can be added or
//! removed, filters cannot be merged, and there are no deltas: send snapshots. At most 2^48 bits,
//! 2^40 groups, 2^20 candidates and 64 functions per group.
//!
//! For your information: a patent of the method, US 7,930,547 B2 (filed in 2007, granted in 2011,
//! nominal end in mid-2027), claims iterating on the fill factor. Have it checked before you ship
//! this filter; no other part of this library needs it.

pub(crate) mod assign;
mod filter;
pub(crate) mod functions;
pub(crate) mod model;
mod optimise;
mod params;

pub use filter::PartitionedBloom;
pub use functions::{Family, Partition};
pub use params::PartitionedParams;
