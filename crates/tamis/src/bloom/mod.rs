//! Bloom filters: plain, counting and blocked. Every other kind is measured against these.
//!
//! A Bloom filter is an array of m bits. Inserting a key sets k of them, chosen by its digest; a
//! key is answered yes when all its k bits are set. A counting filter keeps small counters
//! instead, so that keys can be removed; a blocked filter puts all k bits of a key into one block,
//! so that a question costs one memory access.
//!
//! ```text
//! Bloom          0 1 0 0 1 0 1 1 0 0 ...        m bits
//!                  ^     ^   ^                  the k = 3 bits of one key
//! CountingBloom  0 2 0 0 1 0 3 1 0 0 ...        m counters of 4 bits
//! BlockedBloom   [512 bits][512 bits][512 bits] a key is in one block,
//!                           |..^..|^.|..^|      a bit in each of its k sections
//! ```
//!
//! # Limits
//!
//! At most 2^48 positions and 64 hash functions (16 in a block of 512 bits, 8 in one of 256).
//! Plain and blocked filters cannot remove. Keys beyond the planned number are always accepted,
//! and the rate rises as the model says. No rate is below n / 2^64, because two keys may share a
//! digest.

#[cfg(target_has_atomic = "64")]
mod atomic;
mod blocked;
mod counting;
pub(crate) mod model;
#[cfg(feature = "std")]
mod parallel;
mod params;
mod plain;

#[cfg(target_has_atomic = "64")]
pub use atomic::{AtomicBlockedBloom, AtomicBloom};
pub use blocked::BlockedBloom;
pub use counting::CountingBloom;
pub use params::{BlockedParams, BloomParams, CountingParams};
pub(crate) use params::{MAX_HASHES, MAX_POSITIONS};
pub use plain::Bloom;

use alloc::vec;

use crate::bits::field;
use crate::spec::{Invalid, digest_floor};

pub(crate) const STRAY_BITS: Invalid = Invalid("bits are set beyond the end of the array");

/// The positions that a lookup reads: up to the first that `holds` denies, and that one.
pub(crate) fn looked_at(
    positions: impl Iterator<Item = u64>,
    holds: impl Fn(u64) -> bool,
) -> impl Iterator<Item = u64> {
    let mut going = true;
    positions.take_while(move |&at| core::mem::replace(&mut going, holds(at)))
}

/// The rate of a filter in which the share `fill` of the positions is in use.
fn plain_rate(fill: f64, hashes: u32, keys: u64) -> f64 {
    (libm::pow(fill, hashes.into()) + digest_floor(keys)).min(1.0)
}

/// The rate of a blocked filter with these words.
fn blocked_rate(params: &BlockedParams, mut words: impl Iterator<Item = u64>, keys: u64) -> f64 {
    let sections = params.layout().sections;
    let mut block = vec![0; params.words_per_block()];
    let block_rate = |_| -> f64 {
        block.iter_mut().zip(&mut words).for_each(|(word, from)| *word = from);
        let fill = |index| {
            let (start, size) = sections.section(index);
            f64::from(field::ones(&block, start.into(), size.into())) / f64::from(size)
        };
        (0..sections.number).map(fill).product()
    };
    let sum: f64 = (0..params.blocks()).map(block_rate).sum();
    (sum / params.blocks() as f64 + model::blocked_floor(params.blocks(), keys)).min(1.0)
}

/// How many distinct keys set `ones` of `positions` positions, `hashes` each: ln(1 - fill) over
/// k ln(1 - 1/m). Infinite when all are set.
fn estimated_keys(positions: u64, hashes: u32, ones: u64) -> f64 {
    match ones {
        0 => 0.0,
        ones if ones == positions => f64::INFINITY,
        _ => {
            let (m, k) = (positions as f64, f64::from(hashes));
            libm::log1p(-(ones as f64 / m)) / (k * libm::log1p(-1.0 / m))
        }
    }
}
