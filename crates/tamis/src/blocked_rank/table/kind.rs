//! The table as a kind of filter.

use alloc::vec;
use alloc::vec::Vec;

use super::super::machine::fetch;
use super::super::params::BlockedRankParams;
use super::super::place::Place;
use super::super::{block::Inserted, model, plan, sections};
use super::Table;
use super::blocks::Blocks;
use crate::bits::OutOfMemory;
use crate::digest::Digest;
use crate::entry::{Entry, Overflow};
use crate::filter::{Count, Remove};
use crate::identities::{self, CHUNK, Identities};
use crate::rank_indexed::model::rate_of;
use crate::spec::{
    Absent, Full, Goal, Invalid, Kind, Lines, Operation, PlanError, Prediction, ResizeError,
    WireError, explain,
};
use crate::wire::{Frame, Payload};

impl identities::Table for Table {
    const KIND: Kind = Kind::BlockedRank;
    const CAN: &'static [Operation] = identities::ALL;
    const REASON: &'static str =
        "keys can be removed and counted; with blocks of 512 bits the quickest kind that can";
    const MARGINS: [f64; 2] = [1.002, identities::MARGINS[1]];
    const TRIMS: bool = false;
    type Params = BlockedRankParams;
    type Place = Place;

    fn least(goal: &Goal) -> Result<BlockedRankParams, PlanError> {
        let fixed = goal.fixed_params(Kind::BlockedRank.name(), plan::FIXED)?;
        plan::plan(goal, Kind::BlockedRank, fixed, 0)
    }

    fn predict(params: &BlockedRankParams, keys: u64) -> Prediction {
        plan::predict(params, keys)
    }

    fn planned_bits(params: &BlockedRankParams) -> u64 {
        params.bits() + params.back_bits()
    }

    /// Papers 000 and 001 in one.
    fn explain(params: &BlockedRankParams, n: u64, out: &mut Lines) {
        let (m, l, z) = (params.blocks(), params.locations(), params.cells());
        let r = params.fingerprint();
        let lambda = n as f64 / m as f64;
        let share = model::behind(lambda, l, z);
        explain! { out;
            "symbols":
                "n = {n} keys, m = {m} blocks of L = {l} locations, Z = {z} cells, r = {r} bits";
            "universe": "U = m L 2^r = {}", params.universe();
            "load": "lambda = n / m = {lambda:.3} keys a block";
            "rate": "f = 1 - (1 - 1/U)^n = {:.4e}", rate_of(params.universe() as f64, n);
            "back table":
                "mean over l of P(Poisson(lambda (l+1)/L) >= Z) = {share:.5} of the keys";
            "memory":
                "{} m = {} bits, and {} of the back table",
                params.block(), params.bits(), params.back_bits();
        }
    }

    fn universe(params: &BlockedRankParams) -> u64 {
        params.universe()
    }

    fn new(params: BlockedRankParams) -> Result<Self, OutOfMemory> {
        let behind = params.levels().skip(1).map(|level| Blocks::empty(&level));
        let behind = behind.collect::<Result<_, _>>()?;
        Ok(Self::of_parts(params, Blocks::empty(&params.front)?, behind, vec![]))
    }

    fn params(&self) -> BlockedRankParams {
        self.params
    }

    #[inline]
    fn place(&self, digest: Digest) -> Place {
        self.front.cut.place(digest)
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        fetch(self.front.words.as_slice(), &self.front.cut, digest);
    }

    #[inline]
    fn contains(&self, place: Place) -> bool {
        self.front.contains(place)
    }

    fn count(&self, place: Place) -> u64 {
        let mut all = 0_u64;
        self.for_each_value(place, &mut |_, count| all = all.saturating_add(count));
        all
    }

    #[inline]
    fn insert(&mut self, place: Place, _: u64) -> Result<bool, Full> {
        let front = &mut self.front;
        match front.machine.insert(front.words.as_mut_slice(), &front.cut, place) {
            Inserted::Here(is_new) => Ok(is_new),
            refused => self.insert_elsewhere(place, refused),
        }
    }

    #[inline]
    fn remove(&mut self, place: Place, _: Option<u64>) -> Result<(), Absent> {
        self.front.remove(place)
    }

    fn add(&mut self, entry: Entry) -> Result<(), Full> {
        self.front.add(self.front.cut.place_of(entry.identity), entry.count)?;
        self.grow_if_crowded();
        Ok(())
    }

    fn take(&mut self, entry: Entry) -> Result<(), Absent> {
        self.front.take(self.front.cut.place_of(entry.identity), entry.count)
    }

    fn list_from(&self, part: u64, entries: &mut Vec<Entry>) -> Option<u64> {
        for block in part..self.params.blocks() {
            if entries.len() >= CHUNK {
                return Some(block);
            }
            self.front.list_block(block, entries);
        }
        None
    }

    fn lay_out(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), Full> {
        self.front.fill(entries)
    }

    fn insert_at_once(&mut self, digests: &[Digest], threads: usize) -> bool {
        if digests.len() as u64 > self.params.room() {
            return false;
        }
        let done = self.front.fill_with(digests, threads.max(1)).is_ok();
        // If too much is listed, the table would have grown meanwhile.
        let done = done && self.front.list().len() as u64 <= self.grow_above;
        if !done {
            self.clear();
        }
        done
    }

    fn clear(&mut self) {
        self.front.clear();
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.front.validate()
    }

    fn footprint(&self) -> u64 {
        self.front.footprint()
    }

    /// Counted anew each time, so that nothing has to be read when a mapped file is opened.
    fn used(&self) -> u64 {
        self.front.used()
    }

    /// The cells in use, as a share of those of the blocks.
    fn fill(&self) -> f64 {
        let cells = self.params.blocks() * u64::from(self.params.cells());
        (self.used() as f64 / cells as f64).min(1.0)
    }

    /// The entries of the back table: about 6% of the keys when all planned keys are in, and more
    /// with wide fingerprints.
    fn overflow(&self) -> u64 {
        self.front.back.used()
    }

    fn lines_to_contain(&self, place: Place) -> u32 {
        self.front.lines_to_contain(place)
    }

    fn lines_to_insert(&self, place: Place) -> u32 {
        self.front.lines_to_insert(place)
    }

    fn like(&self, params: BlockedRankParams) -> Result<Self, OutOfMemory> {
        let mut table = Self::new(params)?;
        if self.front.machine.is_portable() {
            table.make_portable();
        }
        Ok(table)
    }

    fn grown(&self) -> Result<Self, ResizeError> {
        Ok(self.rebuilt(self.params.grown()?, 0)?)
    }

    fn shrunk(&self) -> Result<Self, ResizeError> {
        Ok(self.rebuilt(self.params.shrunk()?, 0)?)
    }

    fn with(&self, dropped: u32, other: &Self, other_dropped: u32) -> Option<Result<Self, Full>> {
        let params = self.params.coarser(dropped).ok()?;
        let params = params.grown_to(self.used().saturating_add(other.used()));
        Some(self.joined(params, dropped, other, other_dropped))
    }

    fn sections(&self) -> Vec<Payload<'_>> {
        // Equal contents have equal bytes.
        match self.brought_back() {
            None => sections::encode(self),
            Some(copy) => sections::encode(&copy).into_iter().map(Payload::into_owned).collect(),
        }
    }

    fn decode(frame: &mut Frame<'_>, params: BlockedRankParams) -> Result<Self, WireError> {
        sections::decode(frame, params)
    }

    fn overflow_mut(&mut self) -> &mut Overflow {
        self.front.list_mut()
    }

    fn decoded_bytes(params: &BlockedRankParams) -> u64 {
        (params.bits() + params.back_bits()) / 8
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        self.front.contains_many(digests, answers);
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), (usize, Full)> {
        self.insert_all(digests)
    }

    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        self.front.remove_many(digests)
    }

    fn as_remove(filter: &mut Identities<Self>) -> Option<&mut dyn Remove> {
        Some(filter)
    }

    fn as_count(filter: &Identities<Self>) -> Option<&dyn Count> {
        Some(filter)
    }
}

impl identities::Removes for Table {}
impl identities::Counts for Table {}

impl Table {
    /// Inserts what its block has refused.
    fn insert_elsewhere(&mut self, place: Place, refused: Inserted) -> Result<bool, Full> {
        let is_new = self.front.insert_elsewhere(place, refused)?;
        self.grow_if_crowded();
        Ok(is_new)
    }
}
