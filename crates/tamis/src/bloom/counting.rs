//! The counting Bloom filter.

use alloc::vec;
use alloc::vec::Vec;

use super::model;
use super::params::{BloomParams, CountingParams};
use super::plain::Bloom;
use crate::address::probes;
use crate::bits::{self, Line, OutOfMemory, Packed, Words, low};
use crate::change::{Change, OTHER_KIND, Shape, Steps};
use crate::coder::{Effort, Packing, planes};
use crate::digest::Digest;
use crate::entry::section;
use crate::filter::{Count, Filter, Insert, Remove};
use crate::spec::{
    Absent, Full, Goal, Invalid, InvalidParam, Kind, Label, Lines, MergeError, Operation, Params,
    PlanError, Prediction, Traffic, WireError,
};
use crate::stored::{ARRAY, Stored};
use crate::traffic;
use crate::wire::{ContentHasher, ContentId, Encoded, Encoding, Frame, Payload};

/// The textbook filter from which keys can be removed, for comparison: a Bloom filter with a small
/// counter instead of every bit. At 1% [`BlockedRank`](crate::BlockedRank) takes a quarter of the
/// memory.
///
/// A counter that reaches its largest value stays there for ever: it no longer knows how many keys
/// rely on it, and lowering it could lose one. If two of the k positions of a key are equal, their
/// counter counts both.
///
/// ```
/// use tamis::{Absent, CountingBloom};
/// let mut filter = CountingBloom::with_rate(1_000, 0.01)?;
/// filter.insert("apple");
/// filter.insert("apple");
/// assert_eq!(filter.count("apple"), Some(2));
/// filter.remove("apple")?;
/// filter.remove("apple")?;
/// assert_eq!(filter.remove("apple"), Err(Absent));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountingBloom {
    params: CountingParams,
    label: Label,
    counters: Packed,
}

impl CountingBloom {
    fn unpack(frame: &mut Frame<'_>, params: CountingParams) -> Result<Packed, WireError> {
        let (bytes, decoded) = frame.packed(ARRAY)?;
        section::check_decoded(decoded, params.bits().div_ceil(64) * 8)?;
        planes::check_first(&bytes, params.counters())?;
        let budget = frame.budget();
        budget.take(decoded)?;
        let mut counters = Packed::zeroed(params.counters(), params.width())?;
        let (count, most) = (params.counters(), counters.max_value());
        planes::take(&bytes, bytes.len() as u64, (count, most), budget, |index, counter| {
            counters.set(index, counter);
        })?;
        Ok(counters)
    }

    /// The counters.
    #[doc(hidden)]
    pub fn counters(&self) -> &Packed {
        &self.counters
    }

    /// How many distinct keys are in, estimated from the fill. Infinite when every counter is in
    /// use.
    pub fn estimated_keys(&self) -> f64 {
        let used = self.counters.iter().filter(|&counter| counter > 0).count() as u64;
        super::estimated_keys(self.params.counters(), self.params.hashes(), used)
    }

    /// How many counters are at their largest value, where they stay.
    pub fn saturated(&self) -> u64 {
        let most = self.counters.max_value();
        self.counters.iter().filter(|&counter| counter == most).count() as u64
    }

    /// The plain filter that gives the same answers, in a quarter of the memory (with 4-bit
    /// counters). Only the owner, who removes keys, needs the counters; readers need the bits.
    pub fn to_bloom(&self) -> Result<Bloom, OutOfMemory> {
        let mut array = Words::zeroed(self.params.counters().div_ceil(64))?;
        let words = array.as_mut_slice();
        for (index, counter) in self.counters.iter().enumerate() {
            if counter > 0 {
                bits::set(words, index as u64);
            }
        }
        let params = BloomParams::new(self.params.counters(), self.params.hashes())
            .unwrap_or_else(|InvalidParam { name, .. }| unreachable!("{name} was checked before"));
        Ok(Bloom { params, label: self.label, words: array })
    }

    fn probes(&self, digest: Digest) -> impl Iterator<Item = u64> + use<> {
        probes(digest, self.params.hashes(), self.params.counters())
    }

    fn line_of(&self, counter: u64) -> u64 {
        counter * u64::from(self.params.width()) / Line::BITS
    }
}

impl Filter for CountingBloom {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.probes(digest).all(|at| self.counters.get(at) > 0)
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        let words = self.counters.words().as_slice();
        for at in self.probes(digest) {
            bits::prefetch(words, (at * u64::from(self.params.width()) / 64) as usize);
        }
    }

    fn footprint(&self) -> u64 {
        self.counters.words().footprint()
    }

    fn rate(&self) -> f64 {
        super::plain_rate(self.fill(), self.params.hashes(), self.label.keys)
    }

    fn fill(&self) -> f64 {
        let used = self.counters.iter().filter(|&counter| counter > 0).count();
        used as f64 / self.params.counters() as f64
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        let read = super::looked_at(self.probes(digest), |at| self.counters.get(at) > 0);
        Line::distinct(read.map(|at| self.line_of(at)))
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        Line::distinct(self.probes(digest).map(|at| self.line_of(at)))
    }
}

impl Insert for CountingBloom {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let most = self.counters.max_value();
        let mut new = false;
        for at in self.probes(digest) {
            let counter = self.counters.get(at);
            new |= counter == 0;
            self.counters.set(at, (counter + 1).min(most));
        }
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }
}

impl Remove for CountingBloom {
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent> {
        let most = self.counters.max_value();
        for (done, at) in self.probes(digest).enumerate() {
            match self.counters.get(at) {
                0 => {
                    // Two positions of this key may share a counter of 1: that too means that the
                    // key is not in.
                    for undo in self.probes(digest).take(done) {
                        let counter = self.counters.get(undo);
                        if counter < most {
                            self.counters.set(undo, counter + 1);
                        }
                    }
                    return Err(Absent);
                }
                counter if counter == most => {}
                counter => self.counters.set(at, counter - 1),
            }
        }
        self.label.keys = self.label.keys.saturating_sub(1);
        Ok(())
    }
}

impl Count for CountingBloom {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        let least = self.probes(digest).map(|at| self.counters.get(at)).min().unwrap_or(0);
        (least <= self.max_count()).then_some(least)
    }

    fn max_count(&self) -> u64 {
        self.counters.max_value() - 1
    }
}

impl Stored for CountingBloom {
    const KIND: Kind = Kind::Counting;
    type Params = CountingParams;
    const CAN: &'static [Operation] =
        &[Operation::Insert, Operation::Remove, Operation::Count, Operation::Merge];
    const REASON: &'static str =
        "a counter for every bit of bloom, so that keys can be removed and counted";
    const POSITION_BITS: f64 = 4.0;

    fn least(goal: &Goal) -> Result<CountingParams, PlanError> {
        model::plan_counting(goal)
    }

    fn predict(params: &CountingParams, keys: u64) -> Prediction {
        model::predict_counting(params, keys)
    }

    fn traffic(
        params: &CountingParams,
        keys: u64,
        _: &Prediction,
        replaced: Option<u64>,
    ) -> Traffic {
        let (counters, hashes, width) = (params.counters(), params.hashes(), params.width());
        let shape = traffic::model::Shape { positions: counters, hashes, keys };
        let deviation = shape.deviation_bits(traffic::model::Message::Counters);
        let params = CountingParams::NAMES.len();
        let most = low(width);
        traffic::Counters { params, number: counters, most, hashes, deviation }
            .traffic(keys, replaced)
    }

    fn explain(params: &CountingParams, keys: u64, _: &Prediction, out: &mut Lines) {
        let (m, c) = (params.counters(), params.width());
        model::explain_positions(out, m, params.hashes(), keys);
        out.add("memory", format_args!("{c} m = {} bits", params.bits()));
    }

    fn params(&self) -> CountingParams {
        self.params
    }

    fn new(params: CountingParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        let counters = Packed::zeroed(params.counters(), params.width())?;
        Ok(Self { params, label: label.into(), counters })
    }

    /// Counts are added.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_compatible(other)?;
        let most = self.counters.max_value();
        for index in 0..self.params.counters() {
            let sum = self.counters.get(index) + other.counters.get(index);
            self.counters.set(index, sum.min(most));
        }
        self.label.merge(&other.label);
        Ok(())
    }

    fn clear(&mut self) {
        self.counters.clear();
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        if self.counters.tail_is_zero() { Ok(()) } else { Err(super::STRAY_BITS) }
    }

    fn content_id(&self) -> ContentId {
        let mut id = ContentHasher::new(Self::KIND, self.label.hasher, &self.params.values());
        id.words(self.counters.words());
        id.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        self.frame(vec![Payload::raw(ARRAY, self.counters.words())])
    }

    /// Counters as planes of bits: whether they are above 0, which of those are above 1, and so
    /// on; or as they are where that is shorter.
    fn pack(&self, how: impl Into<Packing>) -> Encoded<'_> {
        let mut bytes = Vec::new();
        let effort = how.into().effort;
        let decoded = self.counters.words().len() as u64 * 8;
        if !planes::put(&mut bytes, &self.counters.iter(), effort) || bytes.len() as u64 > decoded {
            return self.encode();
        }
        self.frame(vec![Payload::packed(ARRAY, bytes, decoded)])
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = Self::begin(frame)?;
        if frame.next_encoding() == Some(Encoding::Packed) {
            let counters = Self::unpack(frame, params)?;
            return Ok(Self { params, label, counters });
        }
        let words = frame.array(ARRAY, params.bits())?;
        let counters = Packed::from_words(words, params.counters(), params.width())
            .ok_or(super::STRAY_BITS)?;
        Ok(Self { params, label, counters })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn diff(&self, new: &Self) -> Option<Change> {
        Some(Change::Counters(Steps::between(&self.counters, &new.counters)))
    }

    fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        let Change::Counters(steps) = change else { return Err(OTHER_KIND) };
        steps.apply(&mut self.counters)
    }

    fn shape(content: &[u64]) -> Option<Shape> {
        let params = CountingParams::from_values(content).ok()?;
        Some(Shape::Counters { counters: params.counters(), width: params.width() })
    }

    fn entropy_bits(&self) -> f64 {
        planes::entropy_bits(self.counters.iter())
    }

    fn coder_name(&self, _: Effort) -> &'static str {
        "planes"
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }

    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        Some(self)
    }

    fn as_count(&self) -> Option<&dyn Count> {
        Some(self)
    }
}

face!(CountingBloom);
inserts!(CountingBloom);
removes!(CountingBloom);
counts!(CountingBloom);
