//! The plain Bloom filter.

use super::model;
use super::params::BloomParams;
use crate::bits::{self, AHEAD, Line, OutOfMemory, Words};
use crate::change::Shape;
use crate::digest::Digest;
use crate::filter::{Filter, Insert};
use crate::math::occupancy::variance_occupied;
use crate::spec::{
    Full, Goal, Invalid, Kind, Label, Lines, Mismatch, Operation, Params, PlanError, Prediction,
    Traffic, WireError,
};
use crate::stored::{ARRAY, Stored};
use crate::traffic;
use crate::wire::Frame;

/// Words from which on batches fetch lines ahead. Smaller filters are in the cache of a core,
/// where that takes longer than it saves.
const LARGE: usize = 1 << 18;
/// Positions that a batch looks at first: absent keys get past them once in four times.
const FIRST: usize = 2;

/// The plain Bloom filter, for keys that are never removed: any number of bits m, any number of
/// hash functions k.
///
/// ```
/// use tamis::Bloom;
/// let mut filter = Bloom::with_rate(1_000, 0.01)?;
/// filter.insert("apple");
/// assert!(filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bloom {
    pub(super) params: BloomParams,
    pub(super) label: Label,
    pub(super) words: Words,
}

impl Bloom {
    /// Keeps the bits that both filters have. Every key that is in both sets stays. The rate is at
    /// most that of either filter, and somewhat above that of a filter built from the common keys.
    /// [`keys`](Filter::keys) becomes the smaller of the two, which is an upper bound.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_compatible(other)?;
        for (word, other) in self.words.as_mut_slice().iter_mut().zip(other.words.as_slice()) {
            *word &= other;
        }
        self.label.keys = self.label.keys.min(other.label.keys);
        Ok(())
    }

    /// How many distinct keys are in, estimated from the fill. Infinite when every bit is set.
    pub fn estimated_keys(&self) -> f64 {
        super::estimated_keys(self.params.bits(), self.params.hashes(), self.words.ones())
    }
}

impl Filter for Bloom {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let words = self.words.as_slice();
        self.params.positions(digest).all(|at| bits::test(words, at))
    }

    /// Most absent keys are dismissed by their first positions: the others are fetched and looked
    /// at only for the digests that are left.
    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        assert_eq!(digests.len(), answers.len(), "an answer for each digest");
        let words = self.words.as_slice();
        if words.len() < LARGE {
            for (answer, &digest) in answers.iter_mut().zip(digests) {
                *answer = self.contains_digest(digest);
            }
            return;
        }
        let fetch = |at: u64| bits::prefetch(words, (at / 64) as usize);
        let first = |digest| self.params.positions(digest).take(FIRST);
        let others = |digest| self.params.positions(digest).skip(FIRST);
        for (digests, answers) in digests.chunks(AHEAD).zip(answers.chunks_mut(AHEAD)) {
            for &digest in digests {
                first(digest).for_each(fetch);
            }
            let (mut left, mut count) = ([0; AHEAD], 0);
            for (at, (answer, &digest)) in answers.iter_mut().zip(digests).enumerate() {
                *answer = first(digest).fold(true, |all, at| all & bits::test(words, at));
                left[count] = at;
                count += usize::from(*answer);
            }
            for &at in &left[..count] {
                others(digests[at]).for_each(fetch);
            }
            for &at in &left[..count] {
                answers[at] = others(digests[at]).all(|at| bits::test(words, at));
            }
        }
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        let words = self.words.as_slice();
        for at in self.params.positions(digest) {
            bits::prefetch(words, (at / 64) as usize);
        }
    }

    fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    fn rate(&self) -> f64 {
        super::plain_rate(self.fill(), self.params.hashes(), self.label.keys)
    }

    fn fill(&self) -> f64 {
        self.words.ones() as f64 / self.params.bits() as f64
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        let words = self.words.as_slice();
        let read = super::looked_at(self.params.positions(digest), |at| bits::test(words, at));
        Line::distinct(read.map(|at| at / Line::BITS))
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        let all = self.params.positions(digest);
        Line::distinct(all.map(|at| at / Line::BITS))
    }
}

impl Insert for Bloom {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let words = self.words.as_mut_slice();
        let mut new = false;
        for at in self.params.positions(digest) {
            new |= bits::set(words, at);
        }
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        let (params, words) = (self.params, self.words.as_mut_slice());
        let large = words.len() >= LARGE;
        for digests in digests.chunks(AHEAD) {
            if large {
                for at in digests.iter().flat_map(|&digest| params.positions(digest)) {
                    bits::prefetch(words, (at / 64) as usize);
                }
            }
            for at in digests.iter().flat_map(|&digest| params.positions(digest)) {
                bits::set(words, at);
            }
        }
        self.label.keys = self.label.keys.saturating_add(digests.len() as u64);
        Ok(())
    }
}

impl Stored for Bloom {
    const KIND: Kind = Kind::Bloom;
    type Params = BloomParams;
    const CAN: &'static [Operation] = &[Operation::Insert, Operation::Merge];
    const REASON: &'static str =
        "one array of bits, keys are only inserted; a hit reads up to k cache lines";

    fn least(goal: &Goal) -> Result<BloomParams, PlanError> {
        model::plan_bloom(goal)
    }

    fn predict(params: &BloomParams, keys: u64) -> Prediction {
        model::predict_bloom(params, keys)
    }

    fn traffic(params: &BloomParams, keys: u64, _: &Prediction, replaced: Option<u64>) -> Traffic {
        let (bits, hashes) = (params.bits(), params.hashes());
        let variance = variance_occupied(bits, keys.saturating_mul(hashes.into()));
        // Equal positions of one key count as ordinary collisions: every key throws all of its
        // `hashes`.
        let each = hashes.into();
        let params = BloomParams::NAMES.len();
        traffic::Bits { params, size: bits, each, variance }.traffic(keys, replaced)
    }

    fn explain(params: &BloomParams, keys: u64, _: &Prediction, out: &mut Lines) {
        model::explain_positions(out, params.bits(), params.hashes(), keys);
        out.add("memory", format_args!("m = {} bits, in whole cache lines", params.bits()));
    }

    fn params(&self) -> BloomParams {
        self.params
    }

    fn new(params: BloomParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self { params, label: label.into(), words: Words::zeroed(params.bits().div_ceil(64))? })
    }

    #[cfg(feature = "std")]
    fn insert_at_once(&mut self, keys: &[Digest], threads: usize) -> bool {
        super::parallel::insert(self, keys, threads)
    }

    fn validate(&self) -> Result<(), Invalid> {
        let tidy = bits::tail_is_zero(self.words.as_slice(), self.params.bits());
        if tidy { Ok(()) } else { Err(super::STRAY_BITS) }
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = Self::begin(frame)?;
        let words = frame.array(ARRAY, params.bits())?;
        let words = words.checked(params.bits()).ok_or(super::STRAY_BITS)?;
        Ok(Self { params, label, words })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn shape(content: &[u64]) -> Option<Shape> {
        BloomParams::from_values(content).ok().map(|params| Shape::Bits(params.bits()))
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

face!(Bloom);
inserts!(Bloom);
