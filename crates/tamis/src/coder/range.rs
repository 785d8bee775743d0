//! The exact coder: a binary range coder, as in the paper on compressed Bloom filters.
//!
//! An array becomes one number in [0, 1), written in base 256. Every bit narrows the interval that
//! the number may lie in, in proportion to the bit's probability, so the length is that of the
//! array's information, to within a byte. The paper's own program spent 12 to 17 bytes more than
//! that.
//!
//! ```text
//!  low                                   low + range
//!   |------------- zero -------------|--- one ---|      split = range * P(zero)
//!   ^ the frequent bit keeps `low`: no addition, no carry
//!
//!  bytes written so far | low: 64 bits, the upper 32 leave when range < 2^32
//!        <- a carry out of `low` walks back over 0xff bytes
//! ```
//!
//! Probabilities have 32 bits and the product is taken with 96, so nothing is lost but by the
//! rounding of the probability itself and of the last byte. There is no end symbol: the reader
//! must know the number of bits. Bytes behind the end read as zeros, so zeros at the end are never
//! sent.

use alloc::vec::Vec;

use super::{CoderError, Result};

/// Below this the interval is too narrow for a 32-bit probability, and 32 bits are written.
const NARROW: u64 = 1 << 32;

/// Where the probability of the next bit comes from.
pub trait Model {
    /// The probability that the next bit is zero, in units of 2^-32. Never 0, so that either bit
    /// can always be coded.
    fn zero(&self) -> u32;

    /// Tells the model which bit was coded.
    fn update(&mut self, one: bool);
}

/// One probability for the whole array, from the number of ones, which both sides know.
#[derive(Clone, Copy, Debug)]
pub struct Static {
    zero: u32,
}

impl Static {
    /// The model of `bits` bits with `ones` ones.
    ///
    /// The probability is clamped, so that arrays of only zeros or only ones can be coded. This
    /// costs 2^-32 of a bit for each bit.
    pub fn new(bits: u64, ones: u64) -> Self {
        let zeros = u128::from(bits.saturating_sub(ones));
        let zero = (zeros << 32) / u128::from(bits.max(1));
        Self { zero: zero.clamp(1, u32::MAX.into()) as u32 }
    }
}

impl Model for Static {
    #[inline]
    fn zero(&self) -> u32 {
        self.zero
    }

    #[inline]
    fn update(&mut self, _: bool) {}
}

/// Counts the bits seen so far. The counts start at one zero and one one.
///
/// The density need not be known beforehand. To learn it costs about 9 bits, and a division for
/// every bit. The counts are never halved and do not decay, because the density of a filter is the
/// same everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Adaptive {
    zeros: u64,
    total: u64,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { zeros: 1, total: 2 }
    }
}

impl Model for Adaptive {
    #[inline]
    fn zero(&self) -> u32 {
        // From 2^32 bits on, the lowest bits of the counts are dropped, so that the product fits.
        let excess = 32_u32.saturating_sub(self.total.leading_zeros());
        let zero = ((self.zeros >> excess) << 32) / (self.total >> excess);
        zero.clamp(1, u32::MAX.into()) as u32
    }

    #[inline]
    fn update(&mut self, one: bool) {
        self.zeros += u64::from(!one);
        self.total += 1;
    }
}

/// Codes the first `bits` bits of `words`.
pub fn encode(words: &[u64], bits: u64, mut model: impl Model) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut low, mut range) = (0_u64, u64::MAX);
    let mut left = bits;
    for &word in words {
        let here = left.min(64) as u32;
        left -= u64::from(here);
        for index in 0..here {
            let one = word >> index & 1 == 1;
            let split = part(range, model.zero());
            if one {
                let (sum, carry) = low.overflowing_add(split);
                if carry {
                    increment(&mut out);
                }
                low = sum;
                range -= split;
            } else {
                range = split;
            }
            model.update(one);
            if range < NARROW {
                out.extend(((low >> 32) as u32).to_be_bytes());
                low <<= 32;
                range <<= 32;
            }
        }
    }
    let (last, carry) = shortest(low, range);
    if carry {
        increment(&mut out);
    }
    out.extend(last.to_be_bytes());
    while out.last() == Some(&0) {
        out.pop();
    }
    out
}

/// Decodes `bits` bits into `words`, which must be zeros.
///
/// Accepts exactly the bytes that [`encode`] writes for the result, and nothing behind them.
pub fn decode(payload: &[u8], words: &mut [u64], bits: u64, mut model: impl Model) -> Result<()> {
    let mut input = Input { bytes: payload };
    // `code` is the coded number from `low` on, and `tail` the same from zero on.
    let mut tail = u64::from(input.next()) << 32 | u64::from(input.next());
    let (mut code, mut range) = (tail, u64::MAX);
    let mut left = bits;
    for word in words {
        let here = left.min(64) as u32;
        left -= u64::from(here);
        let mut decoded = 0;
        for index in 0..here {
            let split = part(range, model.zero());
            let one = code >= split;
            // Selected without a branch, because no processor can predict the bits of a filter.
            code -= if one { split } else { 0 };
            range = if one { range - split } else { split };
            decoded |= u64::from(one) << index;
            model.update(one);
            if range < NARROW {
                let next = u64::from(input.next());
                code = code << 32 | next;
                tail = tail << 32 | next;
                range <<= 32;
            }
        }
        *word = decoded;
    }
    if !input.bytes.is_empty() || payload.last() == Some(&0) {
        return Err(CoderError::Trailing);
    }
    if shortest(tail.wrapping_sub(code), range).0 != tail {
        return Err(CoderError::Payload);
    }
    Ok(())
}

/// The share of `range` that belongs to a probability; at least 1 and less than `range`.
#[inline]
fn part(range: u64, probability: u32) -> u64 {
    ((u128::from(range) * u128::from(probability)) >> 32) as u64
}

/// The number in the interval that ends in the most zero bytes, and whether there was a carry.
fn shortest(low: u64, range: u64) -> (u64, bool) {
    (0..=8_u32)
        .map(|kept| {
            let dropped = u64::MAX.checked_shr(8 * kept).unwrap_or(0);
            let (sum, carry) = low.overflowing_add(dropped);
            (sum & !dropped, carry)
        })
        .find(|&(last, _)| last.wrapping_sub(low) < range)
        .unwrap_or((low, false))
}

/// Adds one to a number in base 256. It is a fraction below one, so some byte is not 0xff.
#[cold]
fn increment(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

/// Bytes followed by zeros without end.
struct Input<'a> {
    bytes: &'a [u8],
}

impl Input<'_> {
    #[inline]
    fn next(&mut self) -> u32 {
        if let Some((first, rest)) = self.bytes.split_first_chunk::<4>() {
            self.bytes = rest;
            return u32::from_be_bytes(*first);
        }
        let mut last = [0; 4];
        last[..self.bytes.len()].copy_from_slice(self.bytes);
        self.bytes = &[];
        u32::from_be_bytes(last)
    }
}
