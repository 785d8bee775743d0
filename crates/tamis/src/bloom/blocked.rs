//! The blocked Bloom filter.

use super::model;
use super::params::BlockedParams;
use crate::bits::{self, OutOfMemory, Words};
use crate::change::Shape;
use crate::digest::Digest;
use crate::filter::{Filter, Insert};
use crate::spec::{
    Full, Goal, Invalid, Kind, Label, Lines, Operation, Params, PlanError, Prediction, Traffic,
    WireError,
};
use crate::stored::{ARRAY, Stored};
use crate::traffic;
use crate::wire::Frame;

/// A filter with quick lookups, for keys that are never removed: the blocked Bloom filter.
///
/// All bits of a key are in one block, one in each of its sections, so that every question is one
/// memory access and a few vector instructions.
///
/// With blocks of 256 bits and eight hashes this is the split-block filter of Parquet: for a
/// number of blocks that is a power of two, the same hashes set the same bits, and
/// [`Hasher::xxh64`](crate::Hasher::xxh64) makes the same hashes.
///
/// Blocks fill unevenly, and most false positives come from the fullest ones. At equal size the
/// rate is therefore higher than a plain filter's. [`with_rate`](Self::with_rate) plans with the
/// exact rate of uneven blocks, not with the plain formula.
///
/// ```
/// use tamis::BlockedBloom;
/// let mut filter = BlockedBloom::with_rate(1_000, 0.01)?;
/// filter.insert(&42u64);
/// assert!(filter.contains(&42u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedBloom {
    pub(super) params: BlockedParams,
    pub(super) label: Label,
    pub(super) words: Words,
}

impl BlockedBloom {
    /// The words of each block.
    pub fn blocks(&self) -> impl Iterator<Item = &[u64]> {
        self.words.as_slice().chunks_exact(self.params.words_per_block())
    }
}

impl Filter for BlockedBloom {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.params.layout().contains(&self.words, digest)
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        assert_eq!(digests.len(), answers.len(), "an answer for each digest");
        self.params.layout().contains_many(self.words.as_slice(), digests, answers);
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        bits::prefetch(self.words.as_slice(), self.params.layout().range(digest).start);
    }

    fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    /// The mean over all blocks: an absent key has any of them alike.
    fn rate(&self) -> f64 {
        let words = self.words.as_slice().iter().copied();
        super::blocked_rate(&self.params, words, self.label.keys)
    }

    fn fill(&self) -> f64 {
        self.words.ones() as f64 / self.params.bits() as f64
    }

    fn blocks_to_contain(&self, _: Digest) -> u32 {
        1
    }

    fn blocks_to_insert(&self, _: Digest) -> u32 {
        1
    }
}

impl Insert for BlockedBloom {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let new = self.params.layout().insert(&mut self.words, digest);
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        self.params.layout().insert_many(self.words.as_mut_slice(), digests);
        self.label.keys = self.label.keys.saturating_add(digests.len() as u64);
        Ok(())
    }
}

impl Stored for BlockedBloom {
    const KIND: Kind = Kind::Blocked;
    type Params = BlockedParams;
    const CAN: &'static [Operation] = &[Operation::Insert, Operation::Merge];
    const REASON: &'static str =
        "one cache line a lookup; the quickest kind where keys are only inserted";

    fn least(goal: &Goal) -> Result<BlockedParams, PlanError> {
        model::plan_blocked(goal)
    }

    fn predict(params: &BlockedParams, keys: u64) -> Prediction {
        model::predict_blocked(params, keys)
    }

    fn traffic(
        params: &BlockedParams,
        keys: u64,
        _: &Prediction,
        replaced: Option<u64>,
    ) -> Traffic {
        let names = BlockedParams::NAMES.len();
        traffic::Bits::in_sections(names, params.bits(), params.hashes(), keys)
            .traffic(keys, replaced)
    }

    fn explain(params: &BlockedParams, keys: u64, _: &Prediction, out: &mut Lines) {
        model::explain_blocked(out, params, keys);
    }

    fn params(&self) -> BlockedParams {
        self.params
    }

    fn new(params: BlockedParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self { params, label: label.into(), words: Words::zeroed(params.bits() / 64)? })
    }

    #[cfg(feature = "std")]
    fn insert_at_once(&mut self, keys: &[Digest], threads: usize) -> bool {
        super::parallel::insert(self, keys, threads)
    }

    fn validate(&self) -> Result<(), Invalid> {
        Ok(()) // Any bits are a filter.
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = Self::begin(frame)?;
        let words = frame.array(ARRAY, params.bits())?;
        Ok(Self { params, label, words })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn shape(content: &[u64]) -> Option<Shape> {
        BlockedParams::from_values(content).ok().map(|params| Shape::Bits(params.bits()))
    }

    fn words(&self) -> Option<&[u64]> {
        Some(self.words.as_slice())
    }

    fn words_mut(&mut self) -> Option<&mut [u64]> {
        Some(self.words.as_mut_slice())
    }

    fn array(&self) -> Option<(&Words, u64)> {
        Some((&self.words, self.params.bits()))
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
}

face!(BlockedBloom);
inserts!(BlockedBloom);
