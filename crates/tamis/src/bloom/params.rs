//! The parameters of the three baselines.

use alloc::vec;
use alloc::vec::Vec;

use crate::address::{Sections, probes};
use crate::block::Split;
use crate::digest::Digest;
use crate::spec::{InvalidParam, Params, as_stored, narrow, params, require};

/// The most bits, counters or block bits of a filter: far beyond any memory, and safe from
/// overflow.
pub(crate) const MAX_POSITIONS: u64 = 1 << 48;
/// The most hash functions of a plain or counting filter.
pub(crate) const MAX_HASHES: u32 = 64;

const POSITIONS: &str = "1 to 2^48";
const HASHES: &str = "1 to 64";

params! {
    /// Layout of a [`Bloom`](super::Bloom) filter.
    pub struct BloomParams {
        /// Bits in the array, m.
        pub bits: u64,
        /// Positions of a key, k.
        pub hashes: u32,
    }
}

impl BloomParams {
    /// `bits` positions, of which every key has `hashes`.
    pub fn new(bits: u64, hashes: u32) -> Result<Self, InvalidParam> {
        require((1..=MAX_POSITIONS).contains(&bits), "bits", bits, POSITIONS)?;
        require((1..=MAX_HASHES).contains(&hashes), "hashes", hashes, HASHES)?;
        Ok(Self { bits, hashes })
    }

    /// The bits of a digest.
    #[inline]
    pub(crate) fn positions(&self, digest: Digest) -> impl Iterator<Item = u64> + use<> {
        probes(digest, self.hashes, self.bits)
    }
}

params! {
    /// Layout of a [`CountingBloom`](super::CountingBloom) filter.
    pub struct CountingParams {
        /// Counters in the array, m.
        pub counters: u64,
        /// Counters of a key, k.
        pub hashes: u32,
        /// Bits of a counter.
        pub width: u32,
    }
}

impl CountingParams {
    /// The width of a counter unless another is asked for. With random keys it overflows about
    /// once in 10^9 years of use, according to the original proposal of counting filters.
    pub const DEFAULT_WIDTH: u32 = 4;

    /// `counters` counters of `width` bits, of which every key has `hashes`.
    pub fn new(counters: u64, hashes: u32, width: u32) -> Result<Self, InvalidParam> {
        require((1..=MAX_POSITIONS).contains(&counters), "counters", counters, POSITIONS)?;
        require((1..=MAX_HASHES).contains(&hashes), "hashes", hashes, HASHES)?;
        // Any of these divides a word, so that no counter straddles two cache lines.
        let fits = matches!(width, 1 | 2 | 4 | 8 | 16);
        require(fits, "width", width, "1, 2, 4, 8 or 16 bits")?;
        Ok(Self { counters, hashes, width })
    }

    /// Bits in the array.
    pub fn bits(&self) -> u64 {
        self.counters * u64::from(self.width)
    }
}

/// Layout of a [`BlockedBloom`](super::BlockedBloom) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedParams {
    layout: Split,
}

impl BlockedParams {
    /// Bits in a block unless another size is asked for: one cache line.
    pub const DEFAULT_BLOCK: u32 = 512;

    /// `blocks` blocks of `block` bits. Every key has `hashes` bits in one block: one in each of
    /// as many sections.
    pub fn new(blocks: u64, block: u32, hashes: u32) -> Result<Self, InvalidParam> {
        require((1..=MAX_POSITIONS / 512).contains(&blocks), "blocks", blocks, "1 to 2^39")?;
        require(matches!(block, 256 | 512), "block", block, "256 or 512 bits")?;
        let fits = (1..=most_sections(block)).contains(&hashes);
        require(fits, "hashes", hashes, "1 to 16 in 512 bits, 1 to 8 in 256")?;
        Ok(Self { layout: Split::new(blocks, Sections { block, number: hashes }) })
    }

    /// Blocks in the array.
    pub fn blocks(&self) -> u64 {
        self.layout.number
    }

    /// Bits in a block.
    pub fn block(&self) -> u32 {
        self.layout.sections.block
    }

    /// Bits of a key.
    pub fn hashes(&self) -> u32 {
        self.layout.sections.number
    }

    pub(super) fn layout(&self) -> &Split {
        &self.layout
    }

    /// Bits in the array.
    pub fn bits(&self) -> u64 {
        self.blocks() * u64::from(self.block())
    }

    /// Words in a block.
    pub(super) fn words_per_block(&self) -> usize {
        self.block() as usize / 64
    }
}

/// The most sections of a block of `block` bits: they have at least 32 bits each.
pub(super) fn most_sections(block: u32) -> u32 {
    block / 32
}

impl Params for BlockedParams {
    const NAMES: &'static [&'static str] = &["blocks", "block", "hashes"];

    fn values(&self) -> Vec<u64> {
        vec![self.blocks(), self.block().into(), self.hashes().into()]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let [blocks, block, hashes] = as_stored(values)?;
        Self::new(blocks, narrow(block), narrow(hashes))
    }
}
