//! A set of positions in nearly the fewest bits, which answers without being unpacked.
//!
//! A position is cut into a bucket (its high bits) and `w` low bits. The low bits are packed. The
//! number of positions in each bucket is written in unary: a zero for each position, then a one,
//! the fence. The first bit of every 512th bucket is kept apart as a sample. So a question reads
//! one sample, a few words of fences and the low bits of one bucket.
//!
//! ```text
//! positions 3 4 13 of 16, w = 2     buckets  0: 3 | 1: 4 | 2: - | 3: 13
//!                                   fences   0 1    0 1    1      0 1      (bit 0 first)
//!                                   lows     11     00            01
//! ```
//!
//! | symbol | meaning |
//! |---|---|
//! | m | the universe: positions are below it |
//! | x | positions in the set |
//! | w | low bits |
//!
//! It takes x (w + 1) + m / 2^w bits and the samples. That is least for w = floor(log2(m / x)).
//! Here w is from 1 to 57, which matters only above half full and for a handful of positions.
//!
//! The paper has no such form: it answers from m bits of array, or from a sorted list of x
//! ceil(log2 m) bits. This form is smaller than the array below a quarter full. For one hash
//! function at m = 92 n it takes 8.40 bits for each key at any n (notes, section 2.4), and the
//! samples 0.06 more at a million. Tested by `list_forms`.

use crate::bits::{Line, MAX_FIELD_WIDTH, OutOfMemory, Packed, Words};
use crate::spec::Invalid;

/// Buckets from one sample to the next. Twice as many would save 0.03 bits for each key and
/// double the fences that a question reads.
const SAMPLED: u64 = 512;

/// Why a set of positions was not built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PositionsError {
    /// The positions, or the parts that should hold them, are not a set.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// There is no memory for them.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Distinct positions below a bound, in Elias-Fano form.
///
/// A question takes constant time on average if the positions come from hashing. An adversary
/// could choose positions that all share one bucket. Then a question reads a word of fences for
/// every 64 of them, and searches the low bits by bisection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EliasFano {
    universe: u64,
    lows: Packed,
    fences: Words,
    /// The first bit in `fences` of every bucket whose number is a multiple of [`SAMPLED`].
    samples: Packed,
}

/// The sizes that follow from m and x.
struct Layout {
    low_bits: u32,
    buckets: u64,
    fence_bits: u64,
    sample_bits: u32,
}

impl Layout {
    fn new(universe: u64, count: u64) -> Result<Self, Invalid> {
        if count > universe {
            return Err(Invalid("there are more positions than the universe has"));
        }
        let gap = universe / count.max(1);
        let low_bits = gap.checked_ilog2().unwrap_or(0).clamp(1, MAX_FIELD_WIDTH);
        let buckets = (universe.saturating_sub(1) >> low_bits) + 1;
        let fence_bits = count.checked_add(buckets).ok_or(Invalid("too many positions"))?;
        let sample_bits = (fence_bits.ilog2() + 1).min(MAX_FIELD_WIDTH);
        Ok(Self { low_bits, buckets, fence_bits, sample_bits })
    }

    fn samples(&self) -> u64 {
        self.buckets.div_ceil(SAMPLED)
    }
}

impl EliasFano {
    /// The set of `positions`, of which there must be `count`, in rising order, all different and
    /// below `universe`.
    pub fn new(
        universe: u64,
        count: u64,
        positions: impl IntoIterator<Item = u64>,
    ) -> Result<Self, PositionsError> {
        let layout = Layout::new(universe, count)?;
        let mut lows = Packed::zeroed(count, layout.low_bits)?;
        let mut fences = Words::zeroed(layout.fence_bits.div_ceil(64))?;
        let words = fences.as_mut_slice();
        // Sets the fences of all buckets from `bucket` up to `end`, behind `before` positions.
        let mut bucket = 0;
        let mut close = |before: u64, end: u64| {
            while bucket < end {
                let at = before + bucket;
                words[(at / 64) as usize] |= 1 << (at % 64);
                bucket += 1;
            }
        };
        visit(universe, count, positions, |index, position| {
            close(index, position >> layout.low_bits);
            lows.set(index, position);
        })?;
        close(count, layout.buckets);
        let fences = fences.checked(layout.fence_bits);
        let fences = fences.ok_or(Invalid("fences lie beyond their end"))?;
        Self::with_samples(universe, lows, fences, &layout)
    }

    /// The set with these [`lows`](Self::lows) and [`fences`](Self::fences), which are checked.
    pub fn from_parts(
        universe: u64,
        count: u64,
        lows: Words,
        fences: Words,
    ) -> Result<Self, PositionsError> {
        let layout = Layout::new(universe, count)?;
        let lows = Packed::from_words(lows, count, layout.low_bits)
            .ok_or(Invalid("low bits have the wrong length or stray bits"))?;
        let fences = fences
            .checked(layout.fence_bits)
            .ok_or(Invalid("fences have the wrong length or stray bits"))?;
        let last = layout.fence_bits - 1;
        let closed = fences.as_slice()[(last / 64) as usize] >> (last % 64) & 1 == 1;
        if fences.ones() != layout.buckets || !closed {
            return Err(Invalid("a bucket has no fence").into());
        }
        let set = Self::with_samples(universe, lows, fences, &layout)?;
        visit(universe, count, set.iter(), |_, _| ())?;
        Ok(set)
    }

    /// The set with these parts, which have the right lengths and as many fences as buckets.
    fn with_samples(
        universe: u64,
        lows: Packed,
        fences: Words,
        layout: &Layout,
    ) -> Result<Self, PositionsError> {
        let mut samples = Packed::zeroed(layout.samples(), layout.sample_bits)?;
        let mut before = 0;
        for (number, &word) in fences.as_slice().iter().enumerate() {
            let here = u64::from(word.count_ones());
            // Bucket b begins behind fence b - 1. Among the buckets of a word there is at most
            // one multiple of SAMPLED.
            let sampled = (before + here) / SAMPLED;
            if sampled > before / SAMPLED && sampled < samples.len() {
                let wanted = (sampled * SAMPLED - 1 - before) as u32;
                let bit = nth_one(&[word], 0, wanted).unwrap_or(0);
                samples.set(sampled, number as u64 * 64 + bit + 1);
            }
            before += here;
        }
        Ok(Self { universe, lows, fences, samples })
    }

    /// The lengths in bits of the low bits and of the fences of a set of `count` positions.
    pub(super) fn part_bits(universe: u64, count: u64) -> Result<(u64, u64), Invalid> {
        let layout = Layout::new(universe, count)?;
        let lows = count.checked_mul(layout.low_bits.into());
        Ok((lows.ok_or(Invalid("too many positions"))?, layout.fence_bits))
    }

    /// Whether the position is in the set.
    pub fn contains(&self, position: u64) -> bool {
        if position >= self.universe {
            return false;
        }
        let (mut first, mut end) = self.bucket(position >> self.lows.width());
        let low = position & self.lows.max_value();
        while first < end {
            let middle = first + (end - first) / 2;
            let found = self.lows.get(middle);
            if found == low {
                return true;
            }
            if found < low {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        false
    }

    /// The index of the first position in `bucket`, and the one behind the last.
    fn bucket(&self, bucket: u64) -> (u64, u64) {
        let mut start = self.samples.get(bucket / SAMPLED);
        let skipped = (bucket % SAMPLED) as u32;
        if skipped > 0 {
            start = self.fence(start, skipped - 1) + 1;
        }
        // Every bit before stands for a position, or is the fence of an earlier bucket.
        (start - bucket, self.fence(start, 0) - bucket)
    }

    /// The bit of fence number `index` (from 0) among those from bit `from` on.
    fn fence(&self, from: u64, index: u32) -> u64 {
        nth_one(self.fences.as_slice(), from, index).unwrap_or(64 * self.fences.len() as u64)
    }

    /// All positions in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let words = self.fences.as_slice();
        let mut at = 0;
        self.lows.iter().enumerate().map(move |(index, low)| {
            // Goes on to the next zero. There are as many zeros as positions.
            let mut run = u64::MAX;
            while run > 0 {
                run = u64::from((words[(at / 64) as usize] >> (at % 64)).trailing_ones());
                at += run;
            }
            at += 1;
            let bucket = at - 1 - index as u64;
            bucket << self.lows.width() | low
        })
    }

    /// How many positions.
    pub fn len(&self) -> u64 {
        self.lows.len()
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.lows.is_empty()
    }

    /// The bound: all positions are below it.
    pub fn universe(&self) -> u64 {
        self.universe
    }

    /// The packed low bits.
    pub fn lows(&self) -> &Words {
        self.lows.words()
    }

    /// The fences. With the low bits, `universe` and `len` they make up the set.
    pub fn fences(&self) -> &Words {
        &self.fences
    }

    /// Bits of heap memory held.
    pub fn footprint_bits(&self) -> u64 {
        let parts = [self.lows(), self.fences(), self.samples.words()];
        parts.iter().map(|words| words.footprint()).sum()
    }

    /// What [`footprint_bits`](Self::footprint_bits) will be for `count` positions; `None` if no
    /// such set can be built.
    pub fn planned_bits(universe: u64, count: u64) -> Option<u64> {
        let layout = Layout::new(universe, count).ok()?;
        let lows = count.checked_mul(layout.low_bits.into())?;
        let samples = layout.samples().checked_mul(layout.sample_bits.into())?;
        let parts = [lows, layout.fence_bits, samples];
        parts.iter().try_fold(0_u64, |sum, bits| {
            sum.checked_add(bits.checked_next_multiple_of(Line::BITS)?)
        })
    }
}

/// The position of set bit number `index` (from 0) among those from bit `from` on; `None` if fewer
/// bits are set.
pub fn nth_one(words: &[u64], from: u64, mut index: u32) -> Option<u64> {
    let first = from / 64;
    let mut below = from % 64;
    for (number, &word) in (first..).zip(&words[first as usize..]) {
        let mut word = word >> below << below;
        let here = word.count_ones();
        if index < here {
            for _ in 0..index {
                word &= word - 1;
            }
            return Some(number * 64 + u64::from(word.trailing_zeros()));
        }
        index -= here;
        below = 0;
    }
    None
}

/// Calls `each` with the index of every position and the position. It is an error if there are
/// not exactly `count` rising positions below `universe`.
pub fn visit(
    universe: u64,
    count: u64,
    positions: impl IntoIterator<Item = u64>,
    mut each: impl FnMut(u64, u64),
) -> Result<(), Invalid> {
    let mut index = 0;
    let mut least = 0;
    for position in positions {
        if index == count {
            return Err(Invalid("there are more positions than announced"));
        }
        if position < least {
            return Err(Invalid("positions do not rise"));
        }
        if position >= universe {
            return Err(Invalid("a position lies beyond the universe"));
        }
        each(index, position);
        index += 1;
        least = position + 1;
    }
    if index < count { Err(Invalid("there are fewer positions than announced")) } else { Ok(()) }
}
