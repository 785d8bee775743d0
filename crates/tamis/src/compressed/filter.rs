//! The filter that answers from Elias-Fano positions.

use alloc::vec;
use alloc::vec::Vec;

use super::elias_fano::{EliasFano, PositionsError};
use crate::address::probes;
use crate::bits::{self, OutOfMemory};
use crate::bloom::model::{self, explain_positions};
use crate::bloom::{MAX_HASHES, looked_at};
use crate::coder::{self, Packing, numbers};
use crate::digest::Digest;
use crate::filter::Filter;
use crate::math::occupancy::{expected_power, mean_occupied, power_spread, variance_occupied};
use crate::math::solve::first_true;
use crate::spec::{
    BuildError, Goal, Invalid, InvalidParam, Kind, Label, Lines, Operation, Params, PlanError,
    Prediction, Size, Traffic, WireError, digest_floor, explain, params, per_key, require,
};
use crate::stored::Stored;
use crate::traffic::{self, model::Shape};
use crate::wire::{self, ContentHasher, ContentId, Encoded, Encoding, Frame, Payload};

/// Roles of the sections: low bits, fences and, where they are packed, positions as gaps.
const LOWS: u8 = 0;
const FENCES: u8 = 1;
const POSITIONS: u8 = 2;
/// The arrays of which a question reads one line for each position: samples, fences, low bits.
const ARRAYS: f64 = 3.0;

/// The most positions of an array, which is never in memory itself. Frozen.
const MAX_POSITIONS: u64 = 1 << 62;

params! {
    /// Params of a [`CompressedBloom`] filter: those of the Bloom filter whose set bits it keeps,
    /// and the number of those.
    pub struct CompressedParams {
        /// Positions of the array, m.
        pub positions: u64,
        /// Positions of each key, k.
        pub hashes: u32,
        /// Positions that are set.
        ones: u64,
    }
}

impl CompressedParams {
    /// An array of `positions` positions, of which `ones` are set, with `hashes` positions for
    /// each key. `ones` is 0 before the filter is built.
    pub fn new(positions: u64, hashes: u32, ones: u64) -> Result<Self, InvalidParam> {
        let fits = (1..=MAX_POSITIONS).contains(&positions);
        require(fits, "positions", positions, "1 to 2^62")?;
        require((1..=MAX_HASHES).contains(&hashes), "hashes", hashes, "1 to 64")?;
        require(ones <= positions, "ones", ones, "at most the positions")?;
        Ok(Self { positions, hashes, ones })
    }
}

/// A filter for sets that never change, for 500 to 1,000 keys at rates of 0.1% and below; for
/// more keys [`Ribbon`](crate::Ribbon) takes less memory.
///
/// It is a Bloom filter that keeps the positions of its set bits, and answers from them. It is
/// built once from all its keys. See [the module](super) for how it works.
///
/// ```
/// use tamis::CompressedBloom;
/// let filter = CompressedBloom::from_keys(["apple", "pear", "plum"], 0.001)?;
/// assert!(filter.contains("plum"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedBloom {
    params: CompressedParams,
    label: Label,
    positions: EliasFano,
}

impl CompressedBloom {
    fn of(params: CompressedParams, label: Label, keys: &[Digest]) -> Result<Self, OutOfMemory> {
        let most = keys.len().saturating_mul(params.hashes as usize);
        let mut positions = bits::with_room(most as u64)?;
        for &key in keys {
            positions.extend(probes(key, params.hashes, params.positions));
        }
        positions.sort_unstable();
        positions.dedup();
        let label = Label { keys: keys.len() as u64, ..label };
        Self::from_positions(params, label, &positions)
    }

    /// A filter with these set positions, which rise and are below `params.positions`.
    fn from_positions(
        params: CompressedParams,
        label: Label,
        positions: &[u64],
    ) -> Result<Self, OutOfMemory> {
        let ones = positions.len() as u64;
        match EliasFano::new(params.positions, ones, positions.iter().copied()) {
            Ok(positions) => {
                Ok(Self { params: CompressedParams { ones, ..params }, label, positions })
            }
            Err(PositionsError::OutOfMemory(refused)) => Err(refused),
            Err(PositionsError::Invalid(fault)) => unreachable!("{fault}"),
        }
    }

    /// The set positions.
    #[doc(hidden)]
    pub fn positions(&self) -> &EliasFano {
        &self.positions
    }
}

impl Filter for CompressedBloom {
    fn label(&self) -> Label {
        self.label
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        probes(digest, self.params.hashes, self.params.positions)
            .all(|position| self.positions.contains(position))
    }

    /// Does nothing: where a bucket lies is known only after its fences have been read.
    fn prefetch(&self, _: Digest) {}

    fn footprint(&self) -> u64 {
        self.positions.footprint_bits()
    }

    fn rate(&self) -> f64 {
        let passed = libm::pow(self.fill(), self.params.hashes.into());
        (passed + digest_floor(self.label.keys)).min(1.0)
    }

    fn fill(&self) -> f64 {
        self.positions.len() as f64 / self.params.positions as f64
    }

    /// A line of samples, one of fences and one of low bits for every position that is read.
    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        let positions = probes(digest, self.params.hashes, self.params.positions);
        let read = looked_at(positions, |at| self.positions.contains(at));
        read.count() as u32 * ARRAYS as u32
    }
}

impl Stored for CompressedBloom {
    const KIND: Kind = Kind::Compressed;
    type Params = CompressedParams;
    const CAN: &'static [Operation] = &[];
    const REASON: &'static str = "built once; the least memory for 500 to 1,000 keys at 0.1% and below; an answer takes three cache misses for each hash function";

    /// There is one hash function unless the goal fixes another number, because one takes the
    /// least memory at any rate.
    fn least(goal: &Goal) -> Result<CompressedParams, PlanError> {
        goal.check()?;
        let kind = Self::KIND.name();
        let [positions, hashes] = goal.fixed_params(kind, &CompressedParams::NAMES[..2])?;
        let keys = goal.sized_keys();
        let hashes = hashes.unwrap_or(1);
        if let Some(positions) = positions {
            return Ok(CompressedParams::from_values(&[positions, hashes, 0])?);
        }
        CompressedParams::from_values(&[1, hashes, 0])?;
        let hashes = hashes as u32;
        let throws = keys.saturating_mul(hashes.into());
        let Some(budget) = goal.budget() else {
            let Size::Rate(asked) = goal.size else {
                unreachable!("the other sizes have a budget")
            };
            let met = |positions| model::rate(positions, hashes, keys) <= asked;
            let positions = first_true(1, MAX_POSITIONS, met).ok_or_else(|| {
                let nearest = model::rate(MAX_POSITIONS, hashes, keys);
                PlanError::Unreachable { kind, asked, keys, nearest }
            })?;
            return Ok(CompressedParams::new(positions, hashes, 0)?);
        };
        let held = |positions: u64| held_bits(positions, throws).unwrap_or(u64::MAX);
        // Bits rise with the positions, by one for each key at every doubling, except for small
        // steps down where low bits become wider. So what is found fits, and hardly more would.
        let beyond = first_true(1, MAX_POSITIONS, |positions| held(positions) > budget);
        match beyond.map_or(MAX_POSITIONS, |beyond| beyond - 1) {
            0 => {
                let [asked, least] = [budget, held(1)].map(|bits| per_key(bits, keys));
                Err(PlanError::TooFewBits { kind, asked, least })
            }
            positions => Ok(CompressedParams::new(positions, hashes, 0)?),
        }
    }

    fn predict(params: &CompressedParams, keys: u64) -> Prediction {
        let (m, k) = (params.positions(), params.hashes());
        let throws = keys.saturating_mul(k.into());
        let ones = libm::round(mean_occupied(m, throws)) as u64;
        let held = held_bits(m, throws).unwrap_or(u64::MAX);
        let sections = EliasFano::part_bits(m, ones)
            .map_or([0; 2], |(lows, fences)| [lows, fences].map(|bits| bits.div_ceil(64) * 8));
        let sections = sections.map(|bytes| (Encoding::Raw, bytes));
        let wire = wire::planned_sections(CompressedParams::NAMES.len(), &sections);
        let looked: f64 = (0..k).map(|i| expected_power(m, throws, i)).sum();
        Prediction {
            rate: model::rate(m, k, keys),
            rate_spread: power_spread(m, throws, k),
            bits_per_key: per_key(held, keys),
            wire_bits_per_key: per_key(wire, keys) * 8.0,
            blocks_per_insert: 0.0,
            blocks_per_hit: ARRAYS * f64::from(k),
            blocks_per_miss: ARRAYS * looked,
            overflow: None,
        }
    }

    fn traffic(params: &CompressedParams, keys: u64, _: &Prediction, _: Option<u64>) -> Traffic {
        let throws = keys.saturating_mul(params.hashes.into());
        let ones = mean_occupied(params.positions, throws);
        let variance = variance_occupied(params.positions, throws);
        let numbers = traffic::numbers(ones, variance, params.positions);
        let snapshot = traffic::frame(CompressedParams::NAMES.len(), 0, numbers, None);
        Traffic { snapshot, delta: None }
    }

    /// In the symbols of paper 004.
    fn explain(params: &CompressedParams, n: u64, _: &Prediction, out: &mut Lines) {
        let (m, k) = (params.positions(), params.hashes());
        explain_positions(out, m, k, n);
        let ones = mean_occupied(m, n.saturating_mul(k.into()));
        let shape = Shape { positions: m, hashes: k, keys: n };
        let entropy = shape.entropy_bits(traffic::model::Message::Snapshot);
        explain! { out;
            "message": "z = m H(p) = {entropy:.0} bits, the entropy";
            "memory": "Elias-Fano positions: about (2 + log2(m / X)) X = {:.0} bits, X = {ones:.0}",
                ones * (2.0 + libm::log2(m as f64 / ones.max(1.0)));
        }
    }

    fn build_in_parallel(
        params: CompressedParams,
        label: impl Into<Label>,
        keys: &[Digest],
        _: usize,
    ) -> Result<Self, BuildError> {
        Ok(Self::of(params, label.into(), keys)?)
    }

    fn params(&self) -> CompressedParams {
        self.params
    }

    /// An empty filter. It stays empty: use [`build`](Stored::build) instead.
    fn new(params: CompressedParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Self::of(params, label.into(), &[])
    }

    fn clear(&mut self) {
        let label = Label { keys: 0, ..self.label };
        if let Ok(empty) = Self::from_positions(self.params, label, &[]) {
            *self = empty;
        }
    }

    /// Positions are checked when they are read, and never change afterwards.
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn content_id(&self) -> ContentId {
        let params = [self.params.positions, self.params.hashes.into()];
        let mut id = ContentHasher::new(Self::KIND, self.label.hasher, &params);
        self.positions.iter().for_each(|position| id.number(position));
        id.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        let lows = Payload::raw(LOWS, self.positions.lows());
        self.frame(vec![lows, Payload::raw(FENCES, self.positions.fences())])
    }

    fn pack(&self, _: impl Into<Packing>) -> Encoded<'_> {
        let positions: Vec<u64> = self.positions.iter().collect();
        let mut bytes = Vec::new();
        let (count, universe) = (positions.len() as u64, self.params.positions);
        numbers::put_sorted(&mut bytes, count, positions.iter().copied(), universe);
        let decoded = positions.len() as u64 * 8;
        self.frame(vec![Payload::packed(POSITIONS, bytes, decoded)])
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        const DAMAGED: Invalid = Invalid("the positions are not what an encoder writes");
        let (label, params) = Self::begin(frame)?;
        let (universe, ones) = (params.positions(), params.ones());
        let (low_bits, fence_bits) =
            EliasFano::part_bits(universe, ones).map_err(WireError::Content)?;
        let all = EliasFano::planned_bits(universe, ones).ok_or(DAMAGED)? / 8;
        let positions = if frame.next_encoding() == Some(Encoding::Packed) {
            let (bytes, decoded) = frame.packed(POSITIONS)?;
            let mut rest = bytes.as_slice();
            let mut positions =
                numbers::take_all_sorted(&mut rest, universe, ones).ok_or(DAMAGED)?;
            if !rest.is_empty() || ones.checked_mul(8) != Some(decoded) {
                return Err(DAMAGED.into());
            }
            frame.budget().take(all)?;
            // A damaged number ends the sequence, and `new` then finds too few positions.
            EliasFano::new(
                universe,
                ones,
                core::iter::from_fn(|| positions.read_next().ok().flatten()),
            )
        } else {
            let lows = frame.array(LOWS, low_bits)?;
            let fences = frame.array(FENCES, fence_bits)?;
            // Samples are not stored.
            frame.budget().take(all - (low_bits + fence_bits) / 8)?;
            EliasFano::from_parts(universe, ones, lows, fences)
        };
        let positions = positions.map_err(|fault| match fault {
            PositionsError::Invalid(fault) => WireError::Content(fault),
            PositionsError::OutOfMemory(refused) => refused.into(),
        })?;
        Ok(Self { params, label, positions })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn entropy_bits(&self) -> f64 {
        coder::set_bits(self.params.positions, self.positions.len())
    }
}

/// Bits of memory after `throws` random positions of `positions` were set.
fn held_bits(positions: u64, throws: u64) -> Option<u64> {
    let ones = libm::round(mean_occupied(positions, throws)) as u64;
    EliasFano::planned_bits(positions, ones)
}

face!(CompressedBloom);
