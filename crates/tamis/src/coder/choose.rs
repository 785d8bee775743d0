//! Chooses a coder from the length of an array and its count of ones.

use super::{BITS_PER_BYTE, gaps, rans};
use crate::math::gamma::ln_choose;

/// Whether speed or size matters more in packing.
///
/// ```
/// use tamis::{Bloom, Effort, Stored};
/// let mut filter = Bloom::with_rate(10_000, 0.01)?;
/// filter.insert("apple");
/// assert!(filter.pack(Effort::Best).len() < filter.encode().len());
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// The quickest coder that is expected within 0.6% of the entropy.
    Fast,
    /// The fewest bytes, at tens of megabytes a second. Below a density of 0.3% this too is within
    /// 0.6% of the entropy: there gaps are coded, because the range coder is not for arrays that
    /// are nearly all zeros.
    Best,
}

/// How a frame's payload is coded. The numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coder {
    /// The array's bytes.
    Plain = 0,
    /// The range coder with one probability.
    Static = 1,
    /// The range coder with counts that start at 1 and 1.
    Adaptive = 2,
    /// rANS on bytes.
    Rans = 3,
    /// Golomb codes of the gaps between ones.
    Gaps = 4,
}

impl Coder {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Static => "range",
            Self::Adaptive => "adaptive range",
            Self::Rans => "rans",
            Self::Gaps => "gaps",
        }
    }
}

/// How far from the entropy [`Effort::Fast`] may end up: 0.6%, and 8 bytes for short arrays.
const SLACK: (f64, f64) = (1.006, 64.0);

/// From this many bits for each one on, gaps are decoded faster than bytes. Measured: below a
/// density of 4.5%.
const SPARSE: u64 = 22;

/// Arrays of up to this many bits may take the adaptive coder: its division for each bit does not
/// matter there, and its frame has no count of ones.
const SMALL: u64 = 1 << 20;

/// m H(p): the fewest bits that an array of `bits` bits with `ones` ones can take, if only its
/// density is known.
pub fn entropy_bits(bits: u64, ones: u64) -> f64 {
    let part = |count: u64| {
        if count == 0 { 0.0 } else { count as f64 * libm::log2(bits as f64 / count as f64) }
    };
    part(ones) + part(bits.saturating_sub(ones))
}

/// The fewest bits that `count` different numbers below `universe` can take.
pub(crate) fn set_bits(universe: u64, count: u64) -> f64 {
    ln_choose(universe, count) / core::f64::consts::LN_2
}

/// The expected size in bits of the frame of an array of `bits` bits with `ones` ones; `None` if
/// `coder` does not take such an array.
pub fn predicted_bits(coder: Coder, bits: u64, ones: u64) -> Option<f64> {
    let ones = ones.min(bits.saturating_sub(ones));
    let count = f64::from((64 - (ones | 1).leading_zeros()).div_ceil(7) * 8);
    let entropy = entropy_bits(bits, ones);
    Some(match coder {
        Coder::Plain => 8.0 + bits.div_ceil(8) as f64 * 8.0,
        // Half a byte is lost at the end.
        Coder::Static => 8.0 + count + entropy + 4.0,
        // log2(m + 1) + log2 C(m, ones), by Stirling's formula.
        Coder::Adaptive => {
            let both = (ones + 1) as f64 * (bits - ones + 1) as f64 / (bits + 1) as f64;
            let learning =
                libm::log2((bits + 1) as f64) - 0.5 * libm::log2(core::f64::consts::TAU * both);
            8.0 + entropy + learning + 4.0
        }
        Coder::Rans => 8.0 + count + rans::predicted_bits(bits, ones)?,
        Coder::Gaps => 8.0 + count + gaps::predicted_bits(bits, ones) + 4.0,
    })
}

/// The coder for an array of `bits` bits with `ones` ones.
pub fn choose(bits: u64, ones: u64, effort: Effort) -> Coder {
    let ones = ones.min(bits.saturating_sub(ones));
    let size = |coder| predicted_bits(coder, bits, ones).unwrap_or(f64::INFINITY);
    let smallest = |coders: &[Coder]| {
        coders.iter().copied().min_by(|&a, &b| size(a).total_cmp(&size(b))).unwrap_or(Coder::Plain)
    };
    if ones == 0 && bits > 8 {
        // An array without ones takes two bytes and no time.
        return Coder::Gaps;
    }
    let too_sparse = size(Coder::Static) * (BITS_PER_BYTE as f64) < bits as f64 * 8.0;
    match effort {
        Effort::Best if too_sparse => smallest(&[Coder::Plain, Coder::Gaps]),
        Effort::Best if bits <= SMALL => smallest(&[Coder::Plain, Coder::Static, Coder::Adaptive]),
        Effort::Best => smallest(&[Coder::Plain, Coder::Static]),
        Effort::Fast => {
            let limit = entropy_bits(bits, ones) * SLACK.0 + SLACK.1;
            let quickest_first = if ones.saturating_mul(SPARSE) < bits {
                [Coder::Plain, Coder::Gaps, Coder::Rans]
            } else {
                [Coder::Plain, Coder::Rans, Coder::Gaps]
            };
            let close = quickest_first.into_iter().find(|&coder| size(coder) <= limit);
            close.unwrap_or_else(|| smallest(&[Coder::Plain, Coder::Static, Coder::Gaps]))
        }
    }
}
