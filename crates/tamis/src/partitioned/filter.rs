//! The filter.

use alloc::vec;
use alloc::vec::Vec;

use super::assign::Assigner;
use super::functions::{Family, Partition, key_crc, mixed, translated};
use super::model::{self, alike};
use super::optimise::plan;
use super::params::PartitionedParams;
use crate::bits::{self, Line, OutOfMemory, Packed, Words};
use crate::bloom::{STRAY_BITS, looked_at};
use crate::coder::{self, Packing};
use crate::digest::Digest;
use crate::filter::Filter;
use crate::math::occupancy::mean_occupied;
use crate::spec::{
    BuildError, Goal, Invalid, Kind, Label, Lines, Operation, Params, PlanError, Prediction,
    Traffic, WireError, digest_floor, explain,
};
use crate::stored::{ARRAY, Stored};
use crate::threads;
use crate::traffic;
use crate::wire::{ContentHasher, ContentId, Frame, Payload};

/// The section behind the bit array: the choices, where there are any.
const CHOICES: u8 = 1;

/// A filter for sets that never change, for 500 to 1,000 keys at rates from 0.3% to 5%; for
/// more keys [`Ribbon`](crate::Ribbon) takes less memory.
///
/// It is a Bloom filter whose keys are in groups, each with the hash functions that set the fewest
/// bits; see [the module](super).
///
/// There is no `insert`: a key that came later would use the functions of its group, which were
/// not chosen for it.
///
/// ```compile_fail,E0599
/// use tamis::{Insert, PartitionedBloom};
/// let mut filter = PartitionedBloom::from_keys(["apple"], 0.01).unwrap();
/// filter.insert("apple");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionedBloom {
    params: PartitionedParams,
    label: Label,
    words: Words,
    /// The functions of every group in falling order, so that the first is 0 only if the group is
    /// empty. A single function is stored plus 1, for the same reason. `None` if every candidate
    /// is taken.
    choices: Option<Packed>,
}

impl PartitionedBloom {
    /// The bit array.
    #[doc(hidden)]
    pub fn bits(&self) -> &Words {
        &self.words
    }

    /// The stored choices; `None` if there is nothing to choose.
    #[doc(hidden)]
    pub fn choices(&self) -> Option<&Packed> {
        self.choices.as_ref()
    }

    /// The functions of a group; none if it is empty.
    #[doc(hidden)]
    pub fn functions(&self, group: u64) -> impl Iterator<Item = u32> {
        let hashes = self.params.hashes();
        let first = group * u64::from(hashes);
        let single = u64::from(hashes == 1);
        let empty = self.choices.as_ref().is_some_and(|choices| choices.get(first) == 0);
        (0..if empty { 0 } else { hashes }).map(move |index| match &self.choices {
            Some(choices) => (choices.get(first + u64::from(index)) - single) as u32,
            None => index,
        })
    }

    /// The positions of a key; none if its group is empty.
    #[inline]
    fn positions(&self, digest: Digest) -> impl Iterator<Item = u64> {
        let group = self.params.group(digest);
        let (bits, family) = (self.params.segment_bits(), self.params.family());
        let start = group / self.params.segment_groups() * bits;
        self.functions(group).map(move |function| start + family.position(digest, function, bits))
    }
}

/// Sets the bits of a segment's sorted keys, and returns the functions of the groups that have
/// keys, one after the other.
fn build_segment(params: &PartitionedParams, words: &mut [u64], keys: &[Digest]) -> Vec<u32> {
    let (bits, candidates, hashes) = (params.segment_bits(), params.candidates(), params.hashes());
    let mut assigner = Assigner::default();
    let mut chosen = Vec::new();
    for keys in keys.chunk_by(|a, b| params.group(*a) == params.group(*b)) {
        // One loop for each family; otherwise every position would ask which family it is.
        let group = match params.family() {
            Family::Mixers => {
                assigner.assign(words, keys, candidates, hashes, |key, j| mixed(key, j, bits))
            }
            Family::Crc => {
                let crcs: Vec<u32> = keys.iter().map(|&key| key_crc(key)).collect();
                assigner.assign(words, &crcs, candidates, hashes, |crc, j| translated(crc, j, bits))
            }
        };
        chosen.extend(group);
    }
    chosen
}

/// Stores the functions that were chosen for the groups of these keys.
fn store(params: &PartitionedParams, choices: &mut Packed, keys: &[Digest], chosen: &[u32]) {
    let hashes = params.hashes();
    let groups = keys.chunk_by(|a, b| params.group(*a) == params.group(*b));
    for (keys, chosen) in groups.zip(chosen.chunks(hashes as usize)) {
        let first = params.group(keys[0]) * u64::from(hashes);
        let mut falling = chosen.to_vec();
        falling.sort_unstable_by(|a, b| b.cmp(a));
        for (index, function) in falling.into_iter().enumerate() {
            choices.set(first + index as u64, u64::from(function) + u64::from(hashes == 1));
        }
    }
}

impl Filter for PartitionedBloom {
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let words = self.words.as_slice();
        let mut positions = self.positions(digest).peekable();
        positions.peek().is_some() && positions.all(|at| bits::test(words, at))
    }

    /// Fetches only the choices: the positions of the bits are known after these have been read.
    #[inline]
    fn prefetch(&self, digest: Digest) {
        if let Some(choices) = &self.choices {
            let group = self.params.group(digest);
            let at = group * u64::from(self.params.hashes()) * u64::from(choices.width());
            bits::prefetch(choices.words().as_slice(), (at / 64) as usize);
        }
    }

    fn footprint(&self) -> u64 {
        let choices = self.choices.as_ref().map_or(0, |choices| choices.words().footprint());
        self.words.footprint() + choices
    }

    /// Segment by segment: the share of its groups that are not empty, times its fill to the power
    /// of k.
    fn rate(&self) -> f64 {
        let params = &self.params;
        let (bits, groups) = (params.segment_bits(), params.segment_groups());
        let arrays = self.words.as_slice().chunks(bits.div_ceil(64) as usize);
        let passed = (0..params.segments()).zip(arrays).map(|(segment, words)| {
            let ones: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
            let all = segment * groups..(segment + 1) * groups;
            // Without choices no group is marked as empty, and a few bytes may claim any number of
            // groups.
            let is_asked = |&group: &u64| self.functions(group).next().is_some();
            let asked = match self.choices {
                Some(_) => all.filter(is_asked).count() as f64,
                None => groups as f64,
            };
            asked * libm::pow(ones as f64 / bits as f64, params.hashes().into())
        });
        let passed = passed.sum::<f64>() / params.groups() as f64;
        let keys = self.label.keys;
        (passed + digest_floor(keys) + alike(params, keys)).min(1.0)
    }

    fn fill(&self) -> f64 {
        self.words.ones() as f64 / self.params.bits() as f64
    }

    /// The lines of the group's choices, and those of the positions that are read.
    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        let words = self.words.as_slice();
        let read = looked_at(self.positions(digest), |at| bits::test(words, at));
        let lines = Line::distinct(read.map(|at| at / Line::BITS));
        let choices = u64::from(self.params.hashes()) * u64::from(self.params.width());
        let choice_lines = if choices == 0 {
            0
        } else {
            let first = self.params.group(digest) * choices;
            (first + choices - 1) / Line::BITS - first / Line::BITS + 1
        };
        lines + choice_lines as u32
    }
}

impl Stored for PartitionedBloom {
    const KIND: Kind = Kind::Partitioned;
    type Params = PartitionedParams;
    const CAN: &'static [Operation] = &[];
    const REASON: &'static str = "built once, a million keys in half a minute; the least memory for 500 to 1,000 keys from 0.3% to 5%";

    fn least(goal: &Goal) -> Result<PartitionedParams, PlanError> {
        plan(goal)
    }

    fn predict(params: &PartitionedParams, keys: u64) -> Prediction {
        model::predict(params, keys)
    }

    fn traffic(params: &PartitionedParams, keys: u64, _: &Prediction, _: Option<u64>) -> Traffic {
        let ones = model::expected_fill(params, keys) * params.bits() as f64;
        let k = f64::from(params.hashes());
        let array = traffic::array(params.bits(), ones, keys as f64 * k * k / 4.0);
        // Choices look random, so they are sent as they are, behind a byte.
        let choices = (params.choice_bits() > 0).then(|| traffic::Coded {
            bits: 8.0 * (1 + params.choice_bits().div_ceil(8)) as f64,
            variance: 0.0,
        });
        let snapshot = traffic::frame(PartitionedParams::NAMES.len(), 0, array, choices);
        Traffic { snapshot, delta: None }
    }

    fn explain(params: &PartitionedParams, n: u64, _: &Prediction, out: &mut Lines) {
        let (m, g, k) = (params.bits(), params.groups(), params.hashes());
        let h = params.candidates();
        let groups = match params.partition() {
            Partition::Top => "by the top of the digest",
            Partition::Rs => "by RS of the digest",
        };
        let (candidates, floor) = match params.family() {
            Family::Mixers => ("a mixer for each", "n / 2^64"),
            Family::Crc => ("CRC-32 of the digest and a number", "n / 2^64 + n / (g 2^32)"),
        };
        let fill = model::expected_fill(params, n);
        let plain = mean_occupied(m, n.saturating_mul(k.into())) / m as f64;
        let (segments, choices) = (params.segments(), params.choice_bits());
        explain! { out;
            "symbols": "n = {n} keys, m = {m} bits in {segments} segments, g = {g} groups, \
                k = {k} of H = {h} functions";
            "groups": "{groups}, n / g = {:.2} keys", n as f64 / g as f64;
            "functions": "{candidates}";
            "fill": "1 - z = {fill:.5}, where a plain filter has {plain:.5}";
            "rate": "f = (1 - z)^k (1 - empty groups) + {floor} = {:.4e}", model::rate(params, n);
            "memory": "m + g k ceil(log2(H + 1)) = {m} + {choices} bits, in whole cache lines";
        }
    }

    /// Segments are built on as many threads as there are cores; the result does not depend on
    /// their number.
    fn build_in_parallel(
        params: PartitionedParams,
        label: impl Into<Label>,
        keys: &[Digest],
        _: usize,
    ) -> Result<Self, BuildError> {
        let mut filter = Self::new(params, Label { keys: keys.len() as u64, ..label.into() })?;
        let mut sorted = bits::with_room(keys.len() as u64)?;
        sorted.extend_from_slice(keys);
        sorted.sort_unstable_by_key(|&key| (params.group(key), key));
        sorted.dedup();

        let segment_of = |key: &Digest| params.group(*key) / params.segment_groups();
        let segments: Vec<&[Digest]> =
            sorted.chunk_by(|a, b| segment_of(a) == segment_of(b)).collect();
        let mut chosen: Vec<Vec<u32>> = vec![Vec::new(); segments.len()];
        let segment_words = params.segment_bits().div_ceil(64) as usize;
        let mut arrays: Vec<Option<&mut [u64]>> =
            filter.words.as_mut_slice().chunks_mut(segment_words).map(Some).collect();
        let work = segments.iter().zip(&mut chosen).filter_map(|(keys, chosen)| {
            let array = arrays.get_mut(segment_of(keys.first()?) as usize)?.take()?;
            Some((*keys, array, chosen))
        });
        threads::for_each(threads::cores().min(segments.len()), work, |(keys, words, chosen)| {
            *chosen = build_segment(&params, words, keys);
        });
        if let Some(choices) = &mut filter.choices {
            for (keys, chosen) in segments.iter().zip(&chosen) {
                store(&params, choices, keys, chosen);
            }
        }
        Ok(filter)
    }

    fn params(&self) -> PartitionedParams {
        self.params
    }

    /// An empty filter, which stays empty. To make one with keys, use [`build`](Stored::build).
    fn new(params: PartitionedParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        let choices = match params.width() {
            0 => None,
            width => Some(Packed::zeroed(params.groups() * u64::from(params.hashes()), width)?),
        };
        Ok(Self {
            params,
            label: label.into(),
            words: Words::zeroed(params.bits().div_ceil(64))?,
            choices,
        })
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        if let Some(choices) = &mut self.choices {
            choices.clear();
        }
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        if !bits::tail_is_zero(self.words.as_slice(), self.params.bits()) {
            return Err(STRAY_BITS);
        }
        let Some(choices) = &self.choices else { return Ok(()) };
        if !choices.tail_is_zero() {
            return Err(STRAY_BITS);
        }
        let hashes = u64::from(self.params.hashes());
        let most = u64::from(self.params.candidates()) - u64::from(hashes > 1);
        if hashes == 1 && most == choices.max_value() {
            return Ok(()); // Any field is a candidate, or marks an empty group.
        }
        // Groups without functions are all zeros, and there may be far more of them than the file
        // has bytes: only set bits are visited.
        let group_bits = hashes * u64::from(choices.width());
        let mut checked = 0;
        for (index, &word) in choices.words().as_slice().iter().enumerate() {
            if word == 0 {
                continue;
            }
            let first = (index as u64 * 64 / group_bits).max(checked);
            checked = ((index as u64 * 64 + 63) / group_bits + 1).min(self.params.groups());
            for group in first..checked {
                let fields = (0..hashes).map(|index| choices.get(group * hashes + index));
                let empty = fields.clone().all(|field| field == 0);
                let falling = choices.get(group * hashes) <= most
                    && fields.clone().zip(fields.clone().skip(1)).all(|(field, next)| field > next)
                    && (hashes > 1 || !empty);
                if !empty && !falling {
                    return Err(Invalid(
                        "the functions of a group are not different candidates in falling order",
                    ));
                }
            }
        }
        Ok(())
    }

    fn content_id(&self) -> ContentId {
        let mut id = ContentHasher::new(Self::KIND, self.label.hasher, &self.params.values());
        id.words(&self.words);
        if let Some(choices) = &self.choices {
            id.words(choices.words());
        }
        id.finish()
    }

    fn beside(&self, how: Option<Packing>) -> Option<Payload<'_>> {
        let words = self.choices.as_ref()?.words();
        Some(match how {
            Some(how) => Payload::array(CHOICES, words, self.params.choice_bits(), how),
            None => Payload::raw(CHOICES, words),
        })
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = Self::begin(frame)?;
        let words = frame.array(ARRAY, params.bits())?;
        let words = words.checked(params.bits()).ok_or(STRAY_BITS)?;
        let choices = match params.width() {
            0 => None,
            width => {
                let words = frame.array(CHOICES, params.choice_bits())?;
                let len = params.groups() * u64::from(params.hashes());
                Some(Packed::from_words(words, len, width).ok_or(STRAY_BITS)?)
            }
        };
        Ok(Self { params, label, words, choices })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    /// Choices look random: their entropy is their size.
    fn entropy_bits(&self) -> f64 {
        let array = coder::entropy_bits(self.params.bits(), self.words.ones());
        array + self.params.choice_bits() as f64
    }

    fn array(&self) -> Option<(&Words, u64)> {
        Some((&self.words, self.params.bits()))
    }
}

face!(PartitionedBloom);
