//! The coder of sparse arrays: Golomb codes of the gaps between ones.
//!
//! The number of zeros before the next one is geometric, and for that law a Golomb code with the right M is the best
//! code that gives every gap its own bits. Sizes are within 0.3 to 0.6% of the entropy for densities up to 9%, and the
//! time goes with the number of ones, not of bits: the sparser, the quicker.
//!
//! ```text
//! gap = quotient * M + rest            lowest bit first
//!
//!  1 1 .. 1 0 | rest              rest < cutoff: `width` bits            M = 2^width: always these (Rice)
//!  1 1 .. 1 0 | middle   | low    else: `width` bits, then one more      2 * middle + low = rest + cutoff
//!   quotient    width bits  1
//! ```
//!
//! The first `width` bits tell which of the two it is, so a reader selects instead of branching. M follows from the
//! number of ones and of bits, in integers, and is not sent.
//!
//! The same code serves any sorted numbers, equal ones included: [`encode_sorted`] and [`decode_sorted`]. There M
//! fits numbers that are spread evenly over their universe.

use alloc::{vec, vec::Vec};

use super::CoderError;

/// Bits that are sure to be in a window of eight bytes that starts anywhere in its first byte.
const WINDOW: u32 = 57;

/// Words whose ones are listed before they are coded.
const CHUNK: usize = 16;

/// A Golomb code.
#[derive(Clone, Copy, Debug)]
struct Golomb {
    m: u64,
    /// Bits of a short rest: floor(log2 M).
    width: u32,
    /// Rests from here on take one bit more.
    cutoff: u64,
    /// floor(2^64 / M) + 1, for a division by multiplication while gap * M < 2^64.
    reciprocal: u64,
    /// Gaps below this can be divided by multiplication.
    exact: u64,
}

impl Golomb {
    /// The best code for `count` gaps that add up to at most `sum`.
    ///
    /// With p = count / (count + sum) the best M is the least with (1-p)^M (2-p) <= 1 (Gallager and van Voorhis), which
    /// is ceil(ln 2 / p - (1 + ln 2) / 2) for small p; the code loses nothing measurable where the two differ.
    /// Integers, because the reader must find the same M on any machine.
    fn new(count: u64, sum: u64) -> Self {
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
            (u128::from(gap) * u128::from(self.reciprocal) >> 64) as u64
        } else {
            gap / self.m
        }
    }

    /// No sequence of `count` gaps that add up to `sum` takes more bits.
    fn most_bits(&self, count: u64, sum: u64) -> u64 {
        count.saturating_mul(u64::from(self.width) + 2).saturating_add(sum / self.m)
    }
}

/// The bits to expect for an array of so many bits and ones.
pub(super) fn predicted_bits(bits: u64, ones: u64) -> f64 {
    if ones == 0 {
        return 0.0;
    }
    let code = Golomb::new(ones, bits - ones);
    let zero = libm::log1p(-(ones as f64 / bits as f64));
    let (to_m, to_cutoff) = (libm::exp(zero * code.m as f64), libm::exp(zero * code.cutoff as f64));
    // The rest, the end of the quotient, and the quotient's mean plus the chance of a long rest.
    let mean = f64::from(code.width) + 1.0 + to_cutoff / (1.0 - to_m);
    mean * ones as f64
}

/// Codes the positions of the ones in an array of `bits` bits.
pub(super) fn encode(words: &[u64], bits: u64, ones: u64) -> Vec<u8> {
    let code = Golomb::new(ones, bits - ones);
    let mut writer = Writer::new(code.most_bits(ones, bits - ones));
    let mut positions = [0; CHUNK * 64 + 2];
    let mut next = 0;
    for (number, chunk) in words.chunks(CHUNK).enumerate() {
        let found = positions_in(chunk, &mut positions);
        let before = (number * CHUNK * 64) as u64;
        for &position in &positions[..found] {
            let position = before + u64::from(position);
            writer.gap(&code, position - next);
            next = position + 1;
        }
    }
    writer.finish()
}

/// Lists the ones of a few words and says how many they are.
///
/// Whether a sparse word has no one, one or two cannot be foreseen, so two are always written and counted only if
/// they are there: 1.3 times quicker at density 0.6% than a loop that ends with the last one.
#[inline]
fn positions_in(words: &[u64], positions: &mut [u32; CHUNK * 64 + 2]) -> usize {
    let mut found = 0;
    for (index, &word) in words.iter().enumerate() {
        let mut word = word;
        for _ in 0..2 {
            positions[found] = index as u32 * 64 + word.trailing_zeros();
            found += usize::from(word != 0);
            word &= word.wrapping_sub(1);
        }
        while word != 0 {
            positions[found] = index as u32 * 64 + word.trailing_zeros();
            found += 1;
            word &= word - 1;
        }
    }
    found
}

/// Sets `ones` bits of `words`, which are zeros.
pub(super) fn decode(
    payload: &[u8],
    words: &mut [u64],
    bits: u64,
    ones: u64,
) -> Result<(), CoderError> {
    let code = Golomb::new(ones, bits.saturating_sub(ones));
    let mut reader = Reader { bytes: payload, position: 0 };
    let mut next = 0_u64;
    for _ in 0..ones {
        let gap = reader.gap(&code)?;
        let position = next.checked_add(gap).filter(|&p| p < bits).ok_or(CoderError::Payload)?;
        let word = words.get_mut((position / 64) as usize).ok_or(CoderError::Payload)?;
        *word |= 1 << (position % 64);
        next = position + 1;
    }
    reader.finish()
}

/// Codes sorted numbers below `universe`, equal ones allowed, by their gaps.
///
/// The reader must know their count and the universe. About log2(universe / count) + 1.5 bits a number.
///
/// # Panics
///
/// If the numbers are not sorted.
pub fn encode_sorted(values: &[u64], universe: u64) -> Vec<u8> {
    let code = Golomb::new(values.len() as u64, universe);
    let mut writer =
        Writer::new(code.most_bits(values.len() as u64, values.last().copied().unwrap_or(0)));
    let mut last = 0;
    for &value in values {
        assert!(value >= last, "the numbers must be sorted");
        writer.gap(&code, value - last);
        last = value;
    }
    writer.finish()
}

/// The `count` numbers that [`encode_sorted`] coded.
///
/// Safe on hostile bytes: a number takes at least a bit, so a count that the bytes cannot hold is refused before
/// anything is allocated.
pub fn decode_sorted(bytes: &[u8], count: u64, universe: u64) -> Result<Vec<u64>, CoderError> {
    if count > bytes.len() as u64 * 8 {
        return Err(CoderError::Truncated);
    }
    let code = Golomb::new(count, universe);
    let mut reader = Reader { bytes, position: 0 };
    let mut values = Vec::with_capacity(count as usize);
    let mut last = 0_u64;
    for _ in 0..count {
        let gap = reader.gap(&code)?;
        last = last.checked_add(gap).filter(|&v| v < universe).ok_or(CoderError::Payload)?;
        values.push(last);
    }
    reader.finish()?;
    Ok(values)
}

/// Writes codes into bytes whose number is bounded beforehand, so that a code is one unaligned store.
struct Writer {
    bytes: Vec<u8>,
    /// The byte that `pending` starts at.
    at: usize,
    pending: u64,
    /// Bits in `pending`: at most 7 between two codes.
    held: u32,
}

impl Writer {
    fn new(most_bits: u64) -> Self {
        Self { bytes: vec![0; (most_bits / 8) as usize + 16], at: 0, pending: 0, held: 0 }
    }

    #[inline]
    fn gap(&mut self, code: &Golomb, gap: u64) {
        let quotient = code.divide(gap);
        let rest = gap - quotient * code.m;
        let long = rest >= code.cutoff;
        let moved = rest + code.cutoff;
        let moved = moved >> 1 | (moved & 1) << code.width;
        let rest = rest ^ (rest ^ moved) & u64::from(long).wrapping_neg();
        let width = code.width + u32::from(long);
        if quotient + u64::from(width) < u64::from(WINDOW) - 1 {
            let quotient = quotient as u32;
            self.put((1 << quotient) - 1 | rest << (quotient + 1), quotient + 1 + width);
        } else {
            self.wide(quotient, rest, width);
        }
    }

    /// A code that does not fit in a window: a very long gap, or numbers from a very large universe.
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
        self.bytes[self.at..self.at + 8].copy_from_slice(&self.pending.to_le_bytes());
        let whole = self.held / 8;
        self.at += whole as usize;
        // Eight whole bytes would ask for a shift by 64; then 57 bits came to 7, and none is left.
        self.pending = self.pending.checked_shr(whole * 8).unwrap_or(0);
        self.held %= 8;
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.truncate(self.at + usize::from(self.held > 0));
        self.bytes
    }
}

/// Reads codes; past the end there are zeros, and [`finish`](Self::finish) finds out.
struct Reader<'a> {
    bytes: &'a [u8],
    /// In bits.
    position: u64,
}

impl Reader<'_> {
    /// At least 57 bits from here on.
    #[inline]
    fn window(&self) -> u64 {
        let byte = (self.position / 8) as usize;
        let word = match self.bytes.get(byte..).and_then(<[u8]>::first_chunk::<8>) {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => self.last_window(byte),
        };
        word >> (self.position % 8)
    }

    #[cold]
    fn last_window(&self, byte: usize) -> u64 {
        let rest = self.bytes.get(byte..).unwrap_or(&[]);
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(word)
    }

    #[inline]
    fn gap(&mut self, code: &Golomb) -> Result<u64, CoderError> {
        let window = self.window();
        let quotient = window.trailing_ones();
        if quotient + code.width + 2 > WINDOW {
            return self.wide(code);
        }
        let rest = window >> (quotient + 1);
        let (rest, width) = split(code, rest);
        self.position += u64::from(quotient + 1 + width);
        Ok(u64::from(quotient) * code.m + rest)
    }

    #[cold]
    fn wide(&mut self, code: &Golomb) -> Result<u64, CoderError> {
        let mut quotient = 0;
        loop {
            let ones = self.window().trailing_ones().min(32);
            self.position += u64::from(ones);
            quotient += u64::from(ones);
            if ones < 32 {
                break;
            }
        }
        self.position += 1;
        let low = self.window() & u64::from(u32::MAX);
        self.position += 32;
        let rest = self.window() << 32 | low;
        let (rest, width) = split(code, rest);
        self.position = self.position - 32 + u64::from(width);
        if self.position > self.bytes.len() as u64 * 8 {
            return Err(CoderError::Truncated);
        }
        quotient.checked_mul(code.m).and_then(|q| q.checked_add(rest)).ok_or(CoderError::Payload)
    }

    /// Nothing but the zeros that fill the last byte may be left.
    fn finish(self) -> Result<(), CoderError> {
        let end = self.bytes.len() as u64 * 8;
        if self.position > end {
            return Err(CoderError::Truncated);
        }
        if end - self.position >= 8 || self.window() != 0 {
            return Err(CoderError::Trailing);
        }
        Ok(())
    }
}

/// The rest that starts in the lowest bit, and how many bits it took.
#[inline]
fn split(code: &Golomb, bits: u64) -> (u64, u32) {
    let short = bits & ((1 << code.width) - 1);
    let long = short >= code.cutoff;
    let last = bits >> code.width & 1;
    // (2 * short + last) - cutoff, written so that no compiler makes it a branch.
    let more = short.wrapping_add(last).wrapping_sub(code.cutoff) & u64::from(long).wrapping_neg();
    (short.wrapping_add(more), code.width + u32::from(long))
}
