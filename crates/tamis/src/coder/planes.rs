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
use crate::bits::{set, test};

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

/// Adds numbers.
pub(crate) fn put(out: &mut Vec<u8>, numbers: &[u64], effort: Effort) {
    let mut left = numbers.to_vec();
    let mut level = 0;
    while !left.is_empty() {
        let mut plane = vec![0; left.len().div_ceil(64)];
        for (at, _) in left.iter().enumerate().filter(|&(_, &number)| number > level) {
            set(&mut plane, at as u64);
        }
        put_bytes(out, &encode(&plane, left.len() as u64, effort));
        left.retain(|&number| number > level);
        level += 1;
    }
}

/// So many numbers, each at most `most`, that [`put`] added. The caller has bounded how many.
pub(crate) fn take(bytes: &mut &[u8], count: u64, most: u64) -> Option<Vec<u64>> {
    let mut numbers = vec![0; usize::try_from(count).ok()?];
    // Which numbers have reached the level.
    let mut left: Vec<usize> = (0..numbers.len()).collect();
    let mut level = 0;
    while !left.is_empty() {
        let plane = decode(take_bytes(bytes)?, left.len() as u64).ok()?;
        let mut at = 0;
        left.retain(|&number| {
            let beyond = test(&plane, at);
            at += 1;
            numbers[number] += u64::from(beyond);
            beyond
        });
        level += 1;
        if level > most && !left.is_empty() {
            return None;
        }
    }
    Some(numbers)
}
