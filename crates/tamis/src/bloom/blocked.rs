//! The blocked Bloom filter.

use alloc::vec;

use super::params::BlockedParams;
use crate::bits::{self, OutOfMemory, Words};
use crate::block::Backend;
use crate::coder::Packing;
use crate::delta::Flips;
use crate::digest::Digest;
use crate::filter::{Filter, Insert, Stored};
use crate::spec::{Full, Invalid, Kind, Label, Mismatch, Params, WireError};
use crate::wire::{self, ContentHasher, ContentId, Encoded, Frame, Payload};

/// The section that holds the blocks.
const ARRAY: u8 = 0;

/// A blocked Bloom filter: all bits of a key lie in one block, so that every question is one memory access.
///
/// Blocks fill unevenly, and the fullest ones let most strangers through. At equal size the rate is therefore
/// higher than a plain filter's; [`with_rate`](Self::with_rate) sizes with the exact rate of uneven
/// blocks, not with the plain formula.
///
/// ```
/// use tamis::{BlockedBloom, Filter, Insert};
/// let mut filter = BlockedBloom::with_rate(1_000, 0.01)?;
/// filter.insert(&42u64)?;
/// assert!(filter.contains(&42u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedBloom {
    params: BlockedParams,
    label: Label,
    words: Words,
    backend: Backend,
}

impl BlockedBloom {
    /// A filter around words that were made elsewhere in the house.
    pub(super) fn from_parts(params: BlockedParams, label: Label, words: Words) -> Self {
        Self { params, label, words, backend: Backend::detect() }
    }

    /// All words, to write.
    #[cfg(feature = "std")]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.words.as_mut_slice()
    }

    pub(super) fn into_words(self) -> Words {
        self.words
    }

    /// All words.
    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// Flips bits.
    pub(crate) fn flip(&mut self, flips: &Flips) -> Result<(), &'static str> {
        flips.apply(self.words.as_mut_slice())
    }

    pub(crate) fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    /// The words of each block.
    pub fn blocks(&self) -> impl Iterator<Item = &[u64]> {
        self.words.as_slice().chunks_exact(self.params.words_per_block())
    }

    /// Adds the keys of another filter: the result is what inserting both sets into one filter gives.
    pub fn union(&mut self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::check_hashers(self.label.hasher, other.label.hasher)?;
        Mismatch::check("blocks", &self.params.blocks(), &other.params.blocks())?;
        Mismatch::check("block", &self.params.block(), &other.params.block())?;
        Mismatch::check("hashes", &self.params.hashes(), &other.params.hashes())?;
        for (word, other) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *word |= other;
        }
        self.label.merge(&other.label);
        Ok(())
    }
}

impl Filter for BlockedBloom {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.backend.contains(self.words.as_slice(), self.params.layout(), digest)
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        let (words, blocks) = (self.words.as_slice(), self.params.layout());
        self.backend.contains_many(words, blocks, digests, answers);
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        bits::prefetch(self.words.as_slice(), self.params.layout().range(digest).start);
    }

    fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    /// The mean over all blocks: a stranger's block is any of them.
    fn rate(&self) -> f64 {
        super::blocked_rate(&self.params, self.blocks().map(super::ones), self.label.keys)
    }

    fn fill(&self) -> f64 {
        let ones: u64 = self.blocks().map(|block| u64::from(super::ones(block))).sum();
        ones as f64 / self.params.bits() as f64
    }

    fn blocks_to_contain(&self, _: Digest) -> u32 {
        1
    }
}

impl Insert for BlockedBloom {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let new = self.backend.insert(self.words.as_mut_slice(), self.params.layout(), digest);
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        self.backend.insert_many(self.words.as_mut_slice(), self.params.layout(), digests);
        self.label.keys = self.label.keys.saturating_add(digests.len() as u64);
        Ok(())
    }

    fn blocks_to_insert(&self, _: Digest) -> u32 {
        1
    }
}

impl Stored for BlockedBloom {
    const KIND: Kind = Kind::Blocked;
    type Params = BlockedParams;

    fn params(&self) -> BlockedParams {
        self.params
    }

    fn new(params: BlockedParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self::from_parts(params, label.into(), Words::zeroed(params.bits() / 64)?))
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        Ok(()) // Any bits are a filter.
    }

    fn content_id(&self) -> ContentId {
        let mut id = ContentHasher::new(Self::KIND, self.label.hasher, &self.params.values());
        id.words(&self.words);
        id.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        wire::encode(self, vec![Payload::raw(ARRAY, &self.words)])
    }

    fn pack(&self, how: impl Into<Packing>) -> Encoded<'_> {
        let words = self.words.as_slice();
        let bytes = how.into().array(words, self.params.bits());
        wire::encode(self, vec![Payload::packed(ARRAY, bytes, words.len() as u64 * 8)])
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = frame.begin::<Self>()?;
        let words = frame.array(ARRAY, params.bits())?;
        Ok(Self::from_parts(params, label, words))
    }
}
