//! Small numbers as planes of bits: plane j says of every number that reaches j whether it goes beyond.
//!
//! ```text
//! numbers   0 2 0 1 3 0
//! plane 0   0 1 0 1 1 0     beyond 0?
//! plane 1     1   0 1       of those: beyond 1?
//! plane 2     0     1       of those: beyond 2?
//! plane 3           0
//! ```
//!
//! The counters of a counting filter are Poisson distributed and independent, so each plane is an array of independent bits, for
//! which the coders are made; together the planes take the entropy of the counters.

use alloc::vec;
use alloc::vec::Vec;

use super::numbers::{put_bytes, take_bytes};
use super::{Effort, decode, encode};
use crate::bits::{Packed, set, test};

/// The entropy of all planes, each taken as independent bits of its density.
pub(crate) fn entropy_bits(numbers: impl Iterator<Item = u64>) -> f64 {
    // How many numbers reach each level.
    let mut reach: Vec<u64> = vec![0];
    for number in numbers {
        let levels = number as usize + 1;
        if levels > reach.len() {
            reach.resize(levels, 0);
        }
        reach[number as usize] += 1;
    }
    for level in (1..reach.len()).rev() {
        reach[level - 1] += reach[level];
    }
    reach.windows(2).map(|pair| super::entropy_bits(pair[0], pair[1])).sum()
}

/// Adds numbers, which are gone through once for every plane: so no more than a plane is held.
pub(crate) fn put(
    out: &mut Vec<u8>,
    numbers: &(impl Iterator<Item = u64> + Clone),
    effort: Effort,
) {
    let mut left = numbers.clone().count() as u64;
    let mut level = 0;
    while left > 0 {
        let mut plane = vec![0; left.div_ceil(64) as usize];
        let reaching = numbers.clone().filter(|&number| number >= level);
        let mut beyond = 0;
        for (at, _) in reaching.enumerate().filter(|&(_, number)| number > level) {
            set(&mut plane, at as u64);
            beyond += 1;
        }
        put_bytes(out, &encode(&plane, left, effort));
        left = beyond;
        level += 1;
    }
}

/// So many numbers of `width` bits that [`put`] added. The caller has bounded how many.
pub(crate) fn take(bytes: &mut &[u8], count: u64, width: u32) -> Option<Packed> {
    let mut numbers = Packed::zeroed(count, width).ok()?;
    let mut left = count;
    let mut level = 0;
    while left > 0 {
        let plane = decode(take_bytes(bytes)?, left).ok()?;
        let (mut at, mut beyond) = (0, 0);
        for index in 0..count {
            // The numbers that reach the level have it still.
            if numbers.get(index) != level {
                continue;
            }
            if test(&plane, at) {
                if level == numbers.max_value() {
                    return None;
                }
                numbers.set(index, level + 1);
                beyond += 1;
            }
            at += 1;
        }
        left = beyond;
        level += 1;
    }
    Some(numbers)
}
