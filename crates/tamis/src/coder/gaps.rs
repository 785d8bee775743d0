//! The coder of sparse arrays: Golomb codes of the gaps between ones.
//!
//! The number of zeros before the next one is geometric, and for that law a Golomb code with the
//! right M is the best code that codes every gap on its own. Sizes are within 0.3 to 0.6% of the
//! entropy for densities up to 5%, and the time grows with the number of ones, not with the number
//! of bits.
//!
//! M follows from the number of ones and of bits, in integers, and is not sent.
//!
//! The same code serves any sorted numbers, equal ones included: [`encode_sorted`] and
//! [`Sorted`]. There M fits numbers that are spread evenly over their universe.

use alloc::vec::Vec;

use super::{
    CoderError, Result,
    golomb::{Golomb, Reader, Writer},
};

/// How many words have their ones listed before these are coded.
const CHUNK: usize = 16;

/// The expected bits of the codes for an array of `bits` bits with `ones` ones.
pub(super) fn predicted_bits(bits: u64, ones: u64) -> f64 {
    if ones == 0 {
        return 0.0;
    }
    let code = Golomb::new(ones, bits - ones);
    let zero = libm::log1p(-(ones as f64 / bits as f64));
    let (to_m, to_cutoff) = (libm::exp(zero * code.m as f64), libm::exp(zero * code.cutoff as f64));
    // The bits of a short rest, the zero that ends the quotient, and the quotient's mean together
    // with the chance of a long rest.
    let mean = f64::from(code.width) + 1.0 + to_cutoff / (1.0 - to_m);
    mean * ones as f64
}

/// The expected bits of [`encode_sorted`] for `count` different numbers that are spread evenly
/// over `universe`, of which `twice` come twice.
pub(crate) fn sorted_bits(count: u64, twice: u64, universe: u64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let code = Golomb::new(count + twice, universe);
    let again = twice as f64 * f64::from(code.width + 1);
    // Gaps are at least 1, and a gap is at least x with chance (1 - p)^(x - 1).
    let zero = libm::log1p(-(count as f64 / universe.max(count + 1) as f64));
    let reaches = |gap: u64| libm::exp(zero * gap.saturating_sub(1) as f64);
    let all = -libm::expm1(zero * code.m as f64);
    // The quotient's mean, and the chance of a long rest in the first run and in those behind it.
    let quotient = reaches(code.m) / all;
    let long = reaches(code.cutoff) - reaches(code.m)
        + (reaches(code.m + code.cutoff) - reaches(2 * code.m)) / all;
    (f64::from(code.width) + 1.0 + quotient + long) * count as f64 + again
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

/// Writes the positions of the ones of a few words to `positions`, and returns how many there are.
///
/// A branch predictor cannot foresee whether a sparse word has no ones, one or two. So two
/// positions are always written, and counted only if they are there.
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

/// Decodes `ones` positions and sets their bits in `words`, which must be zeros.
pub(super) fn decode(payload: &[u8], words: &mut [u64], bits: u64, ones: u64) -> Result<()> {
    let code = Golomb::new(ones, bits.saturating_sub(ones));
    let mut reader = Reader::new(payload);
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

/// Codes `count` sorted numbers below `universe` by their gaps. Numbers may be equal.
///
/// The reader must know how many there are, and `universe`. A number takes about log2(universe /
/// count) + 1.5 bits.
///
/// # Panics
///
/// If the numbers are not sorted, below `universe` and as many as `count` says.
pub fn encode_sorted(count: u64, values: impl Iterator<Item = u64>, universe: u64) -> Vec<u8> {
    let mut writer = SortedWriter::new(count, universe);
    values.for_each(|value| writer.put(value));
    assert_eq!(writer.written, count, "as many numbers as were announced");
    writer.writer.finish()
}

/// Codes sorted numbers whose number is known only in the end. Numbers may be equal.
pub(crate) struct SortedWriter {
    code: Golomb,
    writer: Writer,
    universe: u64,
    last: u64,
    written: u64,
}

impl SortedWriter {
    /// A writer of about `count` numbers below `universe`.
    pub(crate) fn new(count: u64, universe: u64) -> Self {
        let code = Golomb::new(count, universe);
        let writer = Writer::new(code.most_bits(count, universe));
        Self { code, writer, universe, last: 0, written: 0 }
    }

    /// Adds a number.
    ///
    /// # Panics
    ///
    /// If it is below the one before.
    #[inline]
    pub(crate) fn put(&mut self, value: u64) {
        assert!(value >= self.last, "the numbers must be sorted");
        self.writer.gap(&self.code, value - self.last);
        self.last = value;
        self.written += 1;
    }

    /// Adds the last number once more.
    #[inline]
    pub(crate) fn repeat(&mut self) {
        self.writer.no_gap(&self.code);
        self.written += 1;
    }

    /// How many numbers were added.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// What [`encode_sorted`] returns for these numbers; `None` if their code would be another
    /// one, because there were more or fewer than was thought.
    pub(crate) fn finish(self) -> Option<Vec<u8>> {
        let code = Golomb::new(self.written, self.universe);
        (code.m == self.code.m).then(|| self.writer.finish())
    }
}

/// How many numbers are decoded at once: in a short loop, position and number stay in registers.
const AHEAD: usize = 32;

/// Reads the numbers that [`encode_sorted`] coded, one after the other, so that the caller need
/// not hold them all.
pub struct Sorted<'a> {
    reader: Reader<'a>,
    code: Golomb,
    universe: u64,
    /// The last numbers that were decoded, and which of them is the next to be read.
    ahead: [u64; AHEAD],
    next: usize,
    left: u64,
}

impl<'a> Sorted<'a> {
    /// The reader of `count` numbers below `universe`. Fails if `count` is more than `bytes` can
    /// hold: a number takes at least a bit.
    pub fn new(bytes: &'a [u8], count: u64, universe: u64) -> Result<Self> {
        if count > bytes.len() as u64 * 8 {
            return Err(CoderError::Truncated);
        }
        let (reader, code) = (Reader::new(bytes), Golomb::new(count, universe));
        let sorted = Self { reader, code, universe, ahead: [0; AHEAD], next: AHEAD, left: count };
        if count == 0 { sorted.reader.finish().map(|()| sorted) } else { Ok(sorted) }
    }

    /// How many numbers are still to be read.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// The next number; `None` after the last. Fails if it or one of those behind it is damaged,
    /// or if bytes are left behind the last number.
    #[inline]
    pub fn read_next(&mut self) -> Result<Option<u64>> {
        if self.left == 0 {
            return Ok(None);
        }
        if self.next == AHEAD {
            self.decode()?;
        }
        let value = self.ahead[self.next];
        self.next += 1;
        self.left -= 1;
        Ok(Some(value))
    }

    /// Decodes the next numbers.
    #[inline(never)]
    fn decode(&mut self) -> Result<()> {
        let next = AHEAD - self.left.min(AHEAD as u64) as usize;
        let mut last = self.ahead[AHEAD - 1];
        for number in &mut self.ahead[next..] {
            let gap = self.reader.gap(&self.code)?;
            let value = last.checked_add(gap).filter(|&value| value < self.universe);
            last = value.ok_or(CoderError::Payload)?;
            *number = last;
        }
        self.next = next;
        if self.left <= AHEAD as u64 {
            self.reader.finish()?;
        }
        Ok(())
    }
}
