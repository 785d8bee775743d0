//! A balanced filter as a kind: planned, sent, merged and changed.

use super::list::{List, slots_for};
use super::params::BalancedParams;
use super::{Balanced, Rule, Scheme, plan, replace};
use crate::bits::{OutOfMemory, Words, unite};
use crate::block::Backend;
use crate::change::{Change, Flips, OTHER_KIND, Shape};
use crate::coder::{self, Packing};
use crate::digest::Digest;
use crate::filter::Insert;
use crate::spec::{
    Goal, Invalid, Kind, Label, Lines, MergeError, Operation, Params, PlanError, Prediction,
    Traffic, WireError, explain,
};
use crate::stored::{ARRAY, Stored};
use crate::wire::{ContentHasher, ContentId, Frame, Payload};

/// The section that holds the overflow list.
const LIST: u8 = 1;

impl<S: Scheme> Stored for Balanced<S> {
    const KIND: Kind = S::KIND;
    type Params = BalancedParams<S>;
    const CAN: &'static [Operation] = &[Operation::Insert, Operation::Merge];
    const REASON: &'static str = S::REASON;

    fn least(goal: &Goal) -> Result<BalancedParams<S>, PlanError> {
        plan::plan(goal)
    }

    fn predict(params: &BalancedParams<S>, keys: u64) -> Prediction {
        plan::predict(params, keys)
    }

    fn planned_bits(params: &BalancedParams<S>, _: u64) -> f64 {
        plan::held_bits(params, params.layout().list) as f64
    }

    fn traffic(
        params: &BalancedParams<S>,
        keys: u64,
        predicted: &Prediction,
        replaced: Option<u64>,
    ) -> Traffic {
        replace::traffic(params, keys, predicted, replaced)
    }

    fn explain(params: &BalancedParams<S>, n: u64, predicted: &Prediction, out: &mut Lines) {
        let layout = params.layout();
        let (m, k, d) = (layout.blocks, layout.hashes, layout.choices);
        explain! { out;
            "symbols": "n = {n} keys, m = {m} blocks of {} bits, k = {k}, d = {d} choices",
                layout.block;
            "load": "r = n / m = {:.3} keys a block", n as f64 / m as f64;
        }
        if layout.threshold > 0 {
            let what = if layout.counter_bits() > 0 { "keys" } else { "set bits" };
            let p = layout.coin as f64 / 4_294_967_296.0;
            explain! { out;
                "threshold": "h = {} {what}, p = {p:.4}; counter of {} bits",
                    layout.threshold, layout.counter_bits();
            }
        }
        explain! { out; "looks": "a = {:.4} blocks an insert", predicted.blocks_per_insert; }
        if let Some(listed) = predicted.overflow {
            explain! { out;
                "overflow": "gamma = {:.3e} of the keys in a list for {}",
                    listed / n.max(1) as f64, layout.list;
            }
        }
        let formula =
            if layout.threshold > 0 { "A (1 + rho + ... + rho^(d-1))" } else { "A (2 - A)" };
        explain! { out;
            "rate": "f = {formula} + n / 2^64 = {:.4e}", predicted.rate;
            "memory": "{} m = {} bits, and 64 a slot of the list", layout.block, params.bits();
        }
    }

    /// Bits are joined, counters added, lists united. No refusal is undone, so nothing is lost.
    /// Blocks may then hold more keys than either filter let in.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_compatible(other)?;
        // The list comes first, as a copy, because only it can fail.
        let mut list = self.list.clone();
        for entry in other.list.sorted() {
            list.insert(Digest(entry)).map_err(|_| MergeError::OutOfMemory)?;
        }
        self.list = list;
        let layout = *self.params.layout();
        let blocks = self.words.as_mut_slice().chunks_exact_mut(layout.words());
        for (mine, theirs) in blocks.zip(other.blocks()) {
            let load = layout.load(mine) + layout.load(theirs);
            unite(mine, theirs);
            layout.set_load(mine, load.min(layout.threshold + 1));
        }
        self.label.merge(&other.label);
        Ok(())
    }

    fn params(&self) -> BalancedParams<S> {
        self.params
    }

    fn new(params: BalancedParams<S>, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self {
            params,
            label: label.into(),
            words: Words::zeroed(params.bits() / 64)?,
            list: List::new(params.layout().list)?,
            backend: Backend::detect(),
        })
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.list.clear();
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        let layout = self.params.layout();
        if self.blocks().any(|block| layout.load(block) > layout.threshold + 1) {
            return Err(Invalid("a block counts more keys than it can"));
        }
        if S::RULE == Rule::Least && self.list.len() > 0 {
            return Err(Invalid("there is a list where there is none"));
        }
        Ok(())
    }

    fn content_id(&self) -> ContentId {
        let mut id = ContentHasher::new(Self::KIND, self.label.hasher, &self.params.values());
        id.words(&self.words);
        self.list.sorted().into_iter().for_each(|digest| id.number(digest));
        id.finish()
    }

    /// The list; `None` where no list is planned and nothing is in it. It is never packed: digests
    /// are random numbers.
    fn beside(&self, _: Option<Packing>) -> Option<Payload<'_>> {
        let bytes = self.list.sorted().iter().flat_map(|entry| entry.to_le_bytes()).collect();
        let slots = self.list.slot_bytes();
        (slots > 0).then(|| Payload::trimmed(LIST, bytes, slots))
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        const DAMAGED: Invalid = Invalid("the overflow list is not what an encoder writes");
        let (label, params) = Self::begin(frame)?;
        let words = frame.array(ARRAY, params.bits())?;
        let planned = params.layout().list;
        let mut list = List::default();
        if planned > 0 || frame.has_more() {
            let (bytes, decoded) = frame.trimmed(LIST)?;
            let (whole, rest) = bytes.as_chunks();
            let entries = whole.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let sorted =
                entries.clone().is_sorted_by(|a, b| a < b) && entries.clone().next() != Some(0);
            let slots = slots_for(planned, entries.len() as u64);
            if !rest.is_empty() || !sorted || slots == 0 || slots.checked_mul(8) != Some(decoded) {
                return Err(DAMAGED.into());
            }
            frame.budget().take(decoded)?;
            list = List::of(planned, entries)?;
        }
        Ok(Self { params, label, words, list, backend: Backend::detect() })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn diff(&self, new: &Self) -> Option<Change> {
        let flips = Flips::between(&self.words, &new.words, self.params.bits());
        Some(Change::Bits(flips.with_lists(&self.listed(), &new.listed())))
    }

    fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        let Change::Bits(flips) = change else { return Err(OTHER_KIND) };
        flips.apply(self.words.as_mut_slice())?;
        let entries = flips.list(&self.listed()).ok_or(OTHER_KIND)?;
        self.list = List::of(self.params.layout().list, entries.iter().copied())
            .map_err(|_| "there is no memory for what comes")?;
        self.validate().map_err(|Invalid(reason)| reason)
    }

    fn shape(content: &[u64]) -> Option<Shape> {
        BalancedParams::<S>::from_values(content).ok().map(|params| Shape::Listed(params.bits()))
    }

    /// A digest in the list takes 64 bits: it is a random number.
    fn entropy_bits(&self) -> f64 {
        coder::entropy_bits(self.params.bits(), self.words.ones()) + 64.0 * self.list.len() as f64
    }

    fn array(&self) -> Option<(&Words, u64)> {
        Some((&self.words, self.params.bits()))
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }
}
