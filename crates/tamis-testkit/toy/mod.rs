//! A toy kind, which `scripts/toy` adds to a copy of the library: an array in which every key has one bit.
//!
//! It shows all that a new kind needs: this folder, its `mod` line and one line in `kinds.rs`.

use alloc::vec;
use alloc::vec::Vec;

use crate::address::reduce;
use crate::bits::{self, OutOfMemory, Words};
use crate::bloom::model;
use crate::change::Shape;
use crate::digest::Digest;
use crate::filter::{Filter, Insert};
use crate::math::occupancy::{power_spread, variance_occupied};
use crate::math::solve::first_true;
use crate::spec::{
    Full, Goal, Invalid, InvalidParam, Kind, Label, Lines, Operation, Params, PlanError,
    Prediction, Size, Traffic, WireError, as_stored,
};
use crate::stored::{ARRAY, Stored};
use crate::traffic;
use crate::wire::{self, Encoding, Frame};

/// How many bits there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToyParams {
    bits: u64,
}

const MOST_BITS: u64 = 1 << 40;

impl Params for ToyParams {
    const NAMES: &'static [&'static str] = &["bits"];

    fn values(&self) -> Vec<u64> {
        vec![self.bits]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let [bits] = as_stored(values)?;
        let refused = InvalidParam { name: "bits", value: bits, expected: "1 to 2^40" };
        if (1..=MOST_BITS).contains(&bits) { Ok(Self { bits }) } else { Err(refused) }
    }
}

/// One bit for every key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toy {
    params: ToyParams,
    label: Label,
    words: Words,
}

impl Toy {
    fn position(&self, digest: Digest) -> u64 {
        reduce(digest.0, self.params.bits)
    }
}

impl Filter for Toy {
    fn label(&self) -> Label {
        self.label
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        bits::test(self.words.as_slice(), self.position(digest))
    }

    fn prefetch(&self, digest: Digest) {
        bits::prefetch(self.words.as_slice(), (self.position(digest) / 64) as usize);
    }

    fn footprint(&self) -> u64 {
        self.words.footprint()
    }

    fn rate(&self) -> f64 {
        self.fill()
    }

    fn fill(&self) -> f64 {
        self.words.ones() as f64 / self.params.bits as f64
    }

    fn blocks_to_contain(&self, _: Digest) -> u32 {
        1
    }

    fn blocks_to_insert(&self, _: Digest) -> u32 {
        1
    }
}

impl Insert for Toy {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let at = self.position(digest);
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(bits::set(self.words.as_mut_slice(), at))
    }
}

impl Stored for Toy {
    const KIND: Kind = Kind::Toy;
    type Params = ToyParams;
    const CAN: &'static [Operation] = &[Operation::Insert, Operation::Merge];
    const REASON: &'static str = "one bit for every key, and one cache line a lookup; a toy";
    /// Its memory grows with 1 / rate, and nothing is out of proportion to that.
    const POSITION_BITS: f64 = f64::MAX;

    fn params(&self) -> ToyParams {
        self.params
    }

    fn new(params: ToyParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self { params, label: label.into(), words: Words::zeroed(params.bits.div_ceil(64))? })
    }

    fn least(goal: &Goal) -> Result<ToyParams, PlanError> {
        goal.check()?;
        let [bits] = goal.fixed_params("toy", ToyParams::NAMES)?;
        let keys = goal.sized_keys();
        let bits = match (goal.within_budget("bits", bits, 1)?, goal.size) {
            (None, Size::Rate(asked)) => {
                let met = |bits| model::rate(bits, 1, keys) <= asked;
                let nearest = model::rate(MOST_BITS, 1, keys);
                let refused = PlanError::Unreachable { kind: "toy", asked, keys, nearest };
                first_true(1, MOST_BITS, met).ok_or(refused)?
            }
            (bits, _) => bits.unwrap_or(1).clamp(1, MOST_BITS),
        };
        Ok(ToyParams { bits })
    }

    fn predict(params: &ToyParams, keys: u64) -> Prediction {
        let per_key = |bits: u64| bits as f64 / keys.max(1) as f64;
        let bytes = params.bits.div_ceil(64) * 8;
        Prediction {
            rate: model::rate(params.bits, 1, keys),
            rate_spread: power_spread(params.bits, keys, 1),
            bits_per_key: per_key(params.bits.next_multiple_of(512)),
            wire_bits_per_key: per_key(wire::planned_len(1, Encoding::Raw, bytes) * 8),
            blocks_per_insert: 1.0,
            blocks_per_hit: 1.0,
            blocks_per_miss: 1.0,
            overflow: None,
        }
    }

    fn traffic(params: &ToyParams, keys: u64, _: &Prediction, replaced: Option<u64>) -> Traffic {
        let variance = variance_occupied(params.bits, keys);
        traffic::Bits { params: 1, size: params.bits, each: 1.0, variance }.traffic(keys, replaced)
    }

    fn explain(params: &ToyParams, keys: u64, _: &Prediction, out: &mut Lines) {
        model::explain_positions(out, params.bits, 1, keys);
    }

    fn validate(&self) -> Result<(), Invalid> {
        let tidy = bits::tail_is_zero(self.words.as_slice(), self.params.bits);
        if tidy { Ok(()) } else { Err(Invalid("bits beyond the end")) }
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = Self::begin(frame)?;
        let words = frame.array(ARRAY, params.bits)?;
        let words = words.checked(params.bits).ok_or(Invalid("bits beyond the end"))?;
        Ok(Self { params, label, words })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn shape(content: &[u64]) -> Option<Shape> {
        ToyParams::from_values(content).ok().map(|params| Shape::Bits(params.bits))
    }

    fn words(&self) -> Option<&[u64]> {
        Some(self.words.as_slice())
    }

    fn words_mut(&mut self) -> Option<&mut [u64]> {
        Some(self.words.as_mut_slice())
    }

    fn array(&self) -> Option<(&Words, u64)> {
        Some((&self.words, self.params.bits))
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
}
