//! Bits in memory: cache lines of words, and packed fields over them.
//!
//! ```text
//! Line (64 bytes, aligned)  <-  Words (owned, or shared with a mapped file)  <-  Packed
//! ```

#[cfg(target_has_atomic = "64")]
mod atomic;
pub mod field;
#[cfg(all(feature = "huge-pages", target_os = "linux"))]
mod huge_pages;
mod line;
mod packed;
mod prefetch;
mod stream;
mod vector;
mod words;

#[cfg(target_has_atomic = "64")]
pub(crate) use atomic::{AtomicWords, Tally};
pub(crate) use field::low;
pub use line::Line;
#[cfg(target_endian = "little")]
pub(crate) use line::bytes;
pub use packed::{MAX_FIELD_WIDTH, Packed};
pub(crate) use prefetch::{AHEAD, fetch_ahead, fetch_all_ahead, prefetch};
pub use stream::{BitReader, BitWriter};
pub(crate) use vector::equal_lanes;
pub use words::{OutOfMemory, SharedBytes, Words};
pub(crate) use words::{filled, set, tail_is_zero, test, unite, with_room};
