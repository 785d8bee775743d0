//! From a [`Digest`] to numbers in range: pure functions, frozen because stored filters depend on
//! them.
//!
//! - [`reduce`]: multiply-high, for any size, no power of two needed.
//! - [`probes`]: the k positions of a plain Bloom filter.
//! - [`BlockProbes`]: independent bit positions inside one block, or in its first bits if the
//!   others have another use. (A start and a step inside a small block would give so few patterns
//!   that the rate rises up to a hundredfold.)
//! - [`Sections`]: one bit position in each section of a block.
//! - [`identity`]: the one integer that a fingerprint structure keeps of a key.

use crate::digest::Digest;

/// Scales a uniform 64-bit word to `0..range`, the top bits deciding first.
#[inline]
pub const fn reduce(word: u64, range: u64) -> u64 {
    ((word as u128 * range as u128) >> 64) as u64
}

/// The identity of a key in a universe of `universe` identities: `mulhi(digest, universe)`.
///
/// A fingerprint structure with U = buckets x locations x 2^r cuts this one integer, from the top,
/// into bucket, location and fingerprint. Every further address is a function of the identity
/// alone. So equal identities are interchangeable, which makes removing safe, and nothing of the
/// identity is lost, so that listing, merging and growing need no keys. Doubling U appends one bit
/// at the bottom of every identity.
#[inline]
pub const fn identity(digest: Digest, universe: u64) -> u64 {
    reduce(digest.0, universe)
}

/// Multiplier of the probe sequence: odd, with a good spectral structure as a 64-bit
/// multiplicative generator.
const PROBE_STEP: u64 = 0xf135_7aea_2e62_a9c5;

/// The positions, each in `0..range`, that a Bloom filter with `count` hash functions gives a
/// digest.
///
/// Position i is `reduce(digest * c^i mod 2^64, range)`: one multiplication a probe. Positions may
/// repeat; the models count them as independent throws.
#[inline]
pub fn probes(digest: Digest, count: u32, range: u64) -> impl Iterator<Item = u64> {
    let mut word = digest.0;
    (0..count).map(move |_| {
        let position = reduce(word, range);
        word = word.wrapping_mul(PROBE_STEP);
        position
    })
}

/// The most bit positions that [`BlockProbes`] gives inside a block.
pub const MAX_BLOCK_PROBES: u32 = 32;

/// Odd multipliers of the in-block positions, from the binary expansion of pi.
pub(crate) const BLOCK_SALTS: [u32; MAX_BLOCK_PROBES as usize] = [
    0x243f6a89, 0x85a308d3, 0x13198a2f, 0x03707345, 0xa4093823, 0x299f31d1, 0x082efa99, 0xec4e6c89,
    0x452821e7, 0x38d01377, 0xbe5466cf, 0x34e90c6d, 0xc0ac29b7, 0xc97c50dd, 0x3f84d5b5, 0xb5470917,
    0x9216d5d9, 0x8979fb1b, 0xd1310ba7, 0x98dfb5ad, 0x2ffd72db, 0xd01adfb7, 0xb8e1afed, 0x6a267e97,
    0xba7c9045, 0xf12c7f99, 0x24a19947, 0xb3916cf7, 0x0801f2e3, 0x858efc17, 0x636920d9, 0x71574e69,
];

/// The word that in-block positions are made from: independent of the digest's top bits, which
/// choose the block.
#[inline]
const fn block_word(digest: Digest) -> u64 {
    let product = digest.0 as u128 * 0x9e37_79b9_7f4a_7c15_u128;
    (product >> 64) as u64 ^ product as u64
}

/// The bit positions of a digest in the first `range` bits of a block, at most 512.
///
/// Position i is the top 22 bits of a 32-bit product, times the range, over 2^22. If the range is
/// a power of two, that is the top bits of the product. Even i take the low half of the word, odd
/// i the high half, each with its own multiplier. So eight positions are one 256-bit vector
/// multiplication, and the pattern still depends on all 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockProbes {
    pub(crate) word: u64,
    pub(crate) count: u32,
    pub(crate) range: u32,
}

impl BlockProbes {
    /// `count` positions, at most [`MAX_BLOCK_PROBES`].
    #[inline]
    pub const fn new(digest: Digest, count: u32, range: u32) -> Self {
        Self { word: block_word(digest), count, range }
    }

    /// The positions.
    #[inline]
    pub fn positions(self) -> impl Iterator<Item = usize> {
        let halves = [self.word as u32, (self.word >> 32) as u32];
        (0..self.count as usize).map(move |i| {
            let product = halves[i & 1].wrapping_mul(BLOCK_SALTS[i]);
            (((product >> 10) * self.range) >> 22) as usize
        })
    }
}

/// Odd multipliers of the positions in sections: those of the split-block filter of Parquet, and
/// eight from the binary expansion of pi.
pub const SECTION_SALTS: [u32; 16] = [
    0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31,
    0x243f6a89, 0x85a308d3, 0x13198a2f, 0x03707345, 0xa4093823, 0x299f31d1, 0x082efa99, 0xec4e6c89,
];

/// A block that is cut into sections as equal as they can be. A digest has one bit in each.
///
/// Section i of k begins at bit i B / k of the B bits. In a section of s bits the position is the
/// upper half of the 32-bit product of the digest's low half and salt i, times s, over 2^16. If s
/// is a power of two, that is the top bits of the product. So with eight sections of 32 bits the
/// bits are those of the split-block filter of Parquet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections {
    /// Bits of the block.
    pub block: u32,
    /// How many sections.
    pub number: u32,
}

impl Sections {
    /// The first bit of a section, and how many bits it has.
    #[inline]
    pub const fn section(self, index: u32) -> (u32, u32) {
        let (start, end) =
            (index * self.block / self.number, (index + 1) * self.block / self.number);
        (start, end - start)
    }

    /// The bits of a digest in its block, one in each section.
    #[inline]
    pub fn positions(self, digest: Digest) -> impl Iterator<Item = usize> {
        (0..self.number).map(move |index| {
            let (start, size) = self.section(index);
            let product = (digest.0 as u32).wrapping_mul(SECTION_SALTS[index as usize]);
            (start + (((product >> 16) * size) >> 16)) as usize
        })
    }
}
