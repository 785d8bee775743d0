//! Golomb codes: written to bytes, and read from bytes that may be hostile.
//!
//! ```text
//! gap = quotient * M + rest            lowest bit first
//!
//!  1 1 .. 1 0 | rest             rest < cutoff: `width` bits (always, if M = 2^width: Rice)
//!  1 1 .. 1 0 | middle   | low   else one bit more: 2 * middle + low = rest + cutoff
//!   quotient    width bits  1
//! ```
//!
//! The first `width` bits tell which of the two it is, so a reader can select one of them without
//! a branch. M follows from the number of ones and of bits, in integers, and is not sent.

use alloc::{vec, vec::Vec};

use super::{CoderError, Result};

/// Eight bytes hold at least this many bits from any bit of the first byte on.
const WINDOW: u32 = 57;

/// A Golomb code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Golomb {
    pub(super) m: u64,
    /// Bits of a short rest: floor(log2 M).
    pub(super) width: u32,
    /// Rests from here on take one bit more.
    pub(super) cutoff: u64,
    /// floor(2^64 / M) + 1: to multiply by it is to divide by M, while gap * M < 2^64.
    reciprocal: u64,
    /// Gaps below this can be divided by multiplication.
    exact: u64,
}

impl Golomb {
    /// The best code for `count` gaps that add up to at most `sum`.
    ///
    /// With p = count / (count + sum) the best M is the least with (1-p)^M (2-p) <= 1 (Gallager
    /// and van Voorhis), which is ceil(ln 2 / p - (1 + ln 2) / 2) for small p. Where the two
    /// differ, the code loses nothing that can be measured. All is computed in integers, because
    /// the reader must find the same M on any machine.
    pub(super) fn new(count: u64, sum: u64) -> Self {
        const LN_2: u128 = 693147;
        const HALF: u128 = 846574;
        const UNIT: u128 = 1_000_000;
        let (count, sum) = (u128::from(count.max(1)), u128::from(sum));
        let m = ((count + sum) * LN_2).saturating_sub(count * HALF).div_ceil(count * UNIT);
        let m = m.clamp(1, 1 << 62) as u64;
        let width = m.ilog2();
        Self {
            m,
            width,
            cutoff: (2 << width) - m,
            reciprocal: (u64::MAX / m).wrapping_add(1),
            exact: u64::MAX / m,
        }
    }

    #[inline]
    fn divide(&self, gap: u64) -> u64 {
        if self.m == 1 {
            gap
        } else if gap < self.exact {
            ((u128::from(gap) * u128::from(self.reciprocal)) >> 64) as u64
        } else {
            gap / self.m
        }
    }

    /// The most bits that `count` gaps with the sum `sum` can take.
    pub(super) fn most_bits(&self, count: u64, sum: u64) -> u64 {
        count.saturating_mul(u64::from(self.width) + 2).saturating_add(sum / self.m)
    }
}

/// Writes codes to memory that is allocated beforehand, for as many bits as they should take, so
/// that every code is one unaligned store.
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// The byte that `pending` starts at.
    at: usize,
    pending: u64,
    /// Bits in `pending`: at most 7 between two codes.
    held: u32,
}

impl Writer {
    pub(super) fn new(bits: u64) -> Self {
        Self { bytes: vec![0; (bits / 8) as usize + 16], at: 0, pending: 0, held: 0 }
    }

    #[inline]
    pub(super) fn gap(&mut self, code: &Golomb, gap: u64) {
        let quotient = code.divide(gap);
        let rest = gap - quotient * code.m;
        let long = rest >= code.cutoff;
        let moved = rest + code.cutoff;
        let moved = moved >> 1 | (moved & 1) << code.width;
        let rest = rest ^ (rest ^ moved) & u64::from(long).wrapping_neg();
        let width = code.width + u32::from(long);
        if quotient + u64::from(width) < u64::from(WINDOW) - 1 {
            let quotient = quotient as u32;
            self.put(((1 << quotient) - 1) | (rest << (quotient + 1)), quotient + 1 + width);
        } else {
            self.wide(quotient, rest, width);
        }
    }

    /// Writes a gap of 0.
    #[inline]
    pub(super) fn no_gap(&mut self, code: &Golomb) {
        self.put(0, 1 + code.width.min(32));
        self.put(0, code.width.saturating_sub(32));
    }

    /// Writes a code that does not fit in a window: of a very long gap, or of a number from a very
    /// large universe.
    #[cold]
    fn wide(&mut self, mut quotient: u64, rest: u64, width: u32) {
        while quotient >= 32 {
            self.put(u64::from(u32::MAX), 32);
            quotient -= 32;
        }
        self.put((1 << quotient) - 1, quotient as u32 + 1);
        self.put(rest & u64::from(u32::MAX), width.min(32));
        self.put(rest >> 32, width.saturating_sub(32));
    }

    /// Adds up to 57 bits.
    #[inline]
    fn put(&mut self, value: u64, width: u32) {
        self.pending |= value << self.held;
        self.held += width;
        if self.at + 8 > self.bytes.len() {
            grow(&mut self.bytes);
        }
        self.bytes[self.at..self.at + 8].copy_from_slice(&self.pending.to_le_bytes());
        let whole = self.held / 8;
        self.at += whole as usize;
        // Eight whole bytes would need a shift by 64. Then 57 bits were added to 7, and none is
        // left.
        self.pending = self.pending.checked_shr(whole * 8).unwrap_or(0);
        self.held %= 8;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.at + usize::from(self.held > 0));
        self.bytes
    }
}

/// (Of the bytes alone, so that a loop over codes can hold the rest of a writer in registers.)
#[cold]
fn grow(bytes: &mut Vec<u8>) {
    bytes.resize(2 * bytes.len(), 0);
}

/// Reads codes. Behind the end it reads zeros; [`finish`](Self::finish) finds this out.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// The next bit to read.
    position: u64,
}

impl<'a> Reader<'a> {
    /// A reader that starts at the first bit.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// At least 57 bits from `position` on.
    #[inline]
    fn window(&self, position: u64) -> u64 {
        let byte = (position / 8) as usize;
        let word = match self.bytes.get(byte..).and_then(<[u8]>::first_chunk::<8>) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => self.last_window(byte),
        };
        word >> (position % 8)
    }

    #[cold]
    fn last_window(&self, byte: usize) -> u64 {
        let rest = self.bytes.get(byte..).unwrap_or(&[]);
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }

    #[inline]
    pub(super) fn gap(&mut self, code: &Golomb) -> Result<u64> {
        let window = self.window(self.position);
        let quotient = window.trailing_ones();
        if quotient + code.width + 2 > WINDOW {
            let (gap, end) = self.wide(code, self.position)?;
            self.position = end;
            return Ok(gap);
        }
        let rest = window >> (quotient + 1);
        let (rest, width) = split(code, rest);
        self.position += u64::from(quotient + 1 + width);
        Ok(u64::from(quotient) * code.m + rest)
    }

    /// A gap whose code does not fit in a window, and where that ends. (It takes no `&mut self`,
    /// so that a loop over short codes can hold the position in a register.)
    #[cold]
    fn wide(&self, code: &Golomb, mut position: u64) -> Result<(u64, u64)> {
        let mut quotient = 0;
        loop {
            let ones = self.window(position).trailing_ones().min(32);
            position += u64::from(ones);
            quotient += u64::from(ones);
            if ones < 32 {
                break;
            }
        }
        position += 1;
        let low = self.window(position) & u64::from(u32::MAX);
        let (rest, width) = split(code, self.window(position + 32) << 32 | low);
        position += u64::from(width);
        if position > self.bytes.len() as u64 * 8 {
            return Err(CoderError::Truncated);
        }
        let gap = quotient.checked_mul(code.m).and_then(|q| q.checked_add(rest));
        Ok((gap.ok_or(CoderError::Payload)?, position))
    }

    /// Fails if anything is left but the zeros that fill the last byte, or if the codes went on
    /// behind the end.
    pub(super) fn finish(&self) -> Result<()> {
        let end = self.bytes.len() as u64 * 8;
        if self.position > end {
            return Err(CoderError::Truncated);
        }
        if end - self.position >= 8 || self.window(self.position) != 0 {
            return Err(CoderError::Trailing);
        }
        Ok(())
    }
}

/// The rest that starts at the lowest bit of `bits`, and how many bits it takes.
#[inline]
fn split(code: &Golomb, bits: u64) -> (u64, u32) {
    let short = bits & ((1 << code.width) - 1);
    let long = short >= code.cutoff;
    let last = bits >> code.width & 1;
    // (2 * short + last) - cutoff, written so that no compiler makes it a branch.
    let more = short.wrapping_add(last).wrapping_sub(code.cutoff) & u64::from(long).wrapping_neg();
    (short.wrapping_add(more), code.width + u32::from(long))
}
