//! Small numbers as planes of bits: plane j says of every number that reaches j whether it goes
//! beyond.
//!
//! ```text
//! numbers   0 2 0 1 3 0
//! plane 0   0 1 0 1 1 0     beyond 0?
//! plane 1     1   0 1       of those: beyond 1?
//! plane 2     0     1       of those: beyond 2?
//! plane 3           0
//! ```
//!
//! The counters of a counting filter are Poisson distributed and independent, so each plane is an
//! array of independent bits, as the coders expect. Together the planes take the entropy of the
//! counters.
//!
//! There are at most [`PLANES`] planes. Very few numbers go beyond the last: counts of keys that
//! were inserted again and again. How far they go beyond it is written behind the planes.
//!
//! All planes together have at most [`BITS_PER_BYTE`](super::BITS_PER_BYTE) set bits for each byte
//! of their section. So the time to read them is bounded by the number of bytes.

use alloc::vec;
use alloc::vec::Vec;

use super::numbers::{self, put_bytes, take_bytes};
use super::{BITS_PER_BYTE, Effort, check, count_ones, decode_into, encode};
use crate::bits::{set, test};
use crate::spec::{Budget, Invalid, WireError};

/// The most planes. In a filter with as many keys as planned, one counter in 10^14 goes beyond
/// them.
const PLANES: usize = 16;

const DAMAGED: Invalid = Invalid("packed counters are not what an encoder writes");

/// The entropy of all planes, each taken as independent bits of its density.
pub(crate) fn entropy_bits(numbers: impl Iterator<Item = u64>) -> f64 {
    // How many numbers reach each level.
    let mut reach = [0_u64; PLANES + 1];
    let mut listed = 0_u64;
    for number in numbers {
        reach[(number as usize).min(PLANES)] += 1;
        if number >= PLANES as u64 {
            let significant = 64 - ((number - PLANES as u64) | 1).leading_zeros();
            listed += u64::from(significant.div_ceil(7) * 8);
        }
    }
    for level in (0..PLANES).rev() {
        reach[level] += reach[level + 1];
    }
    let planes: f64 = reach.windows(2).map(|pair| super::entropy_bits(pair[0], pair[1])).sum();
    planes + listed as f64
}

/// Adds `numbers` to `out`. Returns false if a reader would refuse them, because the section is
/// too short for the sum of the numbers. This happens if nearly all numbers are equal.
///
/// `numbers` is run through once for every plane, so that no more than one plane is in memory.
pub(crate) fn put(
    out: &mut Vec<u8>,
    numbers: &(impl Iterator<Item = u64> + Clone),
    effort: Effort,
) -> bool {
    let mut left = numbers.clone().count() as u64;
    let mut steps = 0_u64;
    for level in 0..PLANES as u64 {
        if left == 0 {
            break;
        }
        let mut plane = vec![0; left.div_ceil(64) as usize];
        let reaching = numbers.clone().filter(|&number| number >= level);
        let mut beyond = 0;
        for (at, _) in reaching.enumerate().filter(|&(_, number)| number > level) {
            set(&mut plane, at as u64);
            beyond += 1;
        }
        put_bytes(out, &encode(&plane, left, effort));
        left = beyond;
        steps += beyond;
    }
    if left > 0 {
        let far = numbers.clone().filter_map(|number| number.checked_sub(PLANES as u64));
        far.for_each(|beyond| numbers::put(out, beyond));
    }
    steps <= out.len() as u64 * BITS_PER_BYTE
}

/// Checks what can be checked before memory is allocated for the numbers: that the first plane is
/// a frame of `count` bits.
pub(crate) fn check_first(mut bytes: &[u8], count: u64) -> Result<(), WireError> {
    let frame = take_bytes(&mut bytes).ok_or(DAMAGED)?;
    check(frame, count).map_err(|error| error.or(DAMAGED))
}

/// Reads `count` numbers that [`put`] added, and calls `each` with the index and the value of
/// every number that is not zero.
///
/// Fails if a number is above `most`. `rest` is the end of a section of `stored` bytes. The caller
/// must have limited `count`.
pub(crate) fn take(
    mut rest: &[u8],
    stored: u64,
    (count, most): (u64, u64),
    budget: &mut Budget,
    mut each: impl FnMut(u64, u64),
) -> Result<(), WireError> {
    let mut planes: [Vec<u64>; PLANES] = Default::default();
    let (mut left, mut steps) = (count, 0_u64);
    for (level, plane) in planes.iter_mut().enumerate() {
        if left == 0 {
            break;
        }
        let frame = take_bytes(&mut rest).ok_or(DAMAGED)?;
        check(frame, left).map_err(|error| error.or(DAMAGED))?;
        *plane = budget.zeros(left.div_ceil(64))?;
        decode_into(frame, left, plane).map_err(|error| error.or(DAMAGED))?;
        left = count_ones(plane);
        steps = steps.saturating_add(left);
        if steps > stored.saturating_mul(BITS_PER_BYTE) || left > 0 && level as u64 >= most {
            return Err(DAMAGED.into());
        }
    }
    // The next bit of each plane but the first; of the first, the loop visits the set bits.
    let mut next = [0_u64; PLANES];
    let [first, deeper @ ..] = &planes;
    for (index, &word) in first.iter().enumerate() {
        let mut word = word;
        while word != 0 {
            let at = index as u64 * 64 + u64::from(word.trailing_zeros());
            word &= word - 1;
            let mut number = 1;
            for (plane, next) in deeper.iter().zip(&mut next) {
                let bit = *next;
                *next += 1;
                if !test(plane, bit) {
                    break;
                }
                number += 1;
            }
            if number == PLANES as u64 {
                let beyond = numbers::take(&mut rest).ok_or(DAMAGED)?;
                number = number.checked_add(beyond).filter(|&all| all <= most).ok_or(DAMAGED)?;
            }
            each(at, number);
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(DAMAGED.into()) }
}
