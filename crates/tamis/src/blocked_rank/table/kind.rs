//! The table as a kind of filter.

use alloc::vec;
use alloc::vec::Vec;

use super::super::back::Back;
use super::super::params::BlockedRankParams;
use super::super::place::Place;
use super::super::{block, many, model, plan, sections};
use super::{Index, Inserted, Table, blocks_mut};
use crate::bits::{AHEAD, OutOfMemory, Words, prefetch};
use crate::digest::Digest;
use crate::entry::Entry;
use crate::filter::{Count, Remove};
use crate::identities::{self, Identities};
use crate::rank_indexed::model::rate_of;
use crate::spec::{
    Absent, Full, Goal, Invalid, Kind, Lines, Operation, PlanError, Prediction, ResizeError,
    WireError,
};
use crate::wire::{Frame, Payload};

impl identities::Table for Table {
    const KIND: Kind = Kind::BlockedRank;
    const CAN: &'static [Operation] = identities::ALL;
    const REASON: &'static str =
        "one cache line a lookup, and keys can be removed and counted; the quickest of those";
    /// A filter takes more memory than its model says if the packed table at the end grows: 0.07%
    /// at ten million keys (records/2026-11-15-planner.md).
    const MARGINS: [f64; 2] = [1.002, identities::MARGINS[1]];
    const TRIMS: bool = false;
    type Params = BlockedRankParams;
    type Place = Place;

    fn least(goal: &Goal) -> Result<BlockedRankParams, PlanError> {
        plan::plan(goal)
    }

    fn predict(params: &BlockedRankParams, keys: u64) -> Prediction {
        plan::predict(params, keys)
    }

    /// Papers 000 and 001 in one.
    fn explain(params: &BlockedRankParams, n: u64, out: &mut Lines) {
        let (m, l, z) = (params.blocks(), params.locations(), params.cells());
        let r = params.fingerprint();
        let lambda = n as f64 / m as f64;
        out.add(
            "symbols",
            format_args!(
                "n = {n} keys, m = {m} blocks of L = {l} locations, Z = {z} cells, r = {r} bits"
            ),
        );
        out.add("universe", format_args!("U = m L 2^r = {}", params.universe()));
        out.add("load", format_args!("lambda = n / m = {lambda:.3} keys a block"));
        let f = rate_of(params.universe() as f64, n);
        out.add("rate", format_args!("f = 1 - (1 - 1/U)^n = {f:.4e}"));
        let share = model::spilled_keys(lambda, l, z);
        out.add(
            "back table",
            format_args!("mean over l of P(Poisson(lambda (l+1)/L) >= Z) = {share:.5} of the keys"),
        );
        let back = params.back_bits();
        out.add(
            "memory",
            format_args!("512 m = {} bits, and {back} of the back table", params.bits()),
        );
    }

    fn universe(params: &BlockedRankParams) -> u64 {
        params.universe()
    }

    fn content_params(params: &BlockedRankParams) -> Vec<(&'static str, u64)> {
        vec![("universe", params.universe())]
    }

    fn new(params: BlockedRankParams) -> Result<Self, OutOfMemory> {
        let mut words = Words::zeroed(params.blocks() * 8)?;
        let empty = block::empty(&params.shape());
        words.as_mut_slice().as_chunks_mut::<8>().0.fill(empty);
        let back = Back::new(&params)?;
        Ok(Self::of_parts(params, words, back))
    }

    /// The params as they are now: the packed table at the end grows by itself.
    fn params(&self) -> BlockedRankParams {
        self.params.with_last(self.back.parts().1.params())
    }

    #[inline]
    fn place(&self, digest: Digest) -> Place {
        self.cut.place(digest)
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        prefetch(self.words.as_slice(), self.cut.block_of(digest) * 8);
    }

    #[inline]
    fn contains(&self, place: Place) -> bool {
        let block = self.block(place.block);
        match self.machine.find(block, &self.cut.shape, place.location, place.print) {
            Some(here) => here,
            None => self.back_contains(place),
        }
    }

    fn count(&self, place: Place) -> u64 {
        block::count(self.block(place.block), &self.cut.shape, place.location, place.print)
            .unwrap_or_else(|| self.back.count(self.back_identity(place)))
    }

    #[inline]
    fn insert(&mut self, place: Place, _: u64) -> Result<bool, Full> {
        match self.insert_into_block(place) {
            Inserted::Here(new) => Ok(new),
            refused => self.insert_elsewhere(place, refused),
        }
    }

    #[inline]
    fn remove(&mut self, place: Place, _: Option<u64>) -> Result<(), Absent> {
        let block = self.words.line_mut(place.block as usize);
        let removed = self.machine.remove(block, &self.cut.shape, place.location, place.print);
        self.settle(place, removed)
    }

    fn add(&mut self, entry: Entry) -> Result<(), Full> {
        for done in 0..entry.count {
            let mut place = self.cut.place_of(entry.identity);
            if self.lives_in_back(place)
                && self.back.packed() >= self.grow_above
                && self.grow_or_wait()
            {
                place = self.cut.place_of(entry.identity);
            }
            if self.lives_in_back(place) {
                // The back table takes any count at once.
                return self.back.add(self.back_entry(place, entry.count - done));
            }
            self.insert(place, 0)?;
        }
        Ok(())
    }

    fn take(&mut self, entry: Entry) -> Result<(), Absent> {
        let place = self.cut.place_of(entry.identity);
        for done in 0..entry.count {
            if self.lives_in_back(place) {
                self.back.take(self.back_entry(place, entry.count - done))?;
                self.take_back(place.block);
                break;
            }
            self.remove(place, None)?;
        }
        Ok(())
    }

    fn for_each_entry(&self, take: &mut dyn FnMut(Entry)) {
        let back = self.back_entries();
        let mut back = back.into_iter().peekable();
        let mut cells = Vec::new();
        for (number, block) in self.blocks().iter().enumerate() {
            let number = number as u64;
            cells.clear();
            for location in 0..self.cut.shape.locations {
                let chain = block::chain(block, &self.cut.shape, location);
                let place = |(_, print)| Place { block: number, location, print };
                cells.extend(chain.map(|cell| self.cut.identity(place(cell))));
            }
            cells.sort_unstable();
            for run in cells.chunk_by(|a, b| a == b) {
                // (Entries of the back table have higher locations, except in unchecked bytes.)
                while let Some(entry) = back.next_if(|entry| entry.identity < run[0]) {
                    take(entry);
                }
                take(Entry { identity: run[0], value: 0, count: run.len() as u64 });
            }
            let end = (number + 1) * self.cut.per_block();
            while let Some(entry) = back.next_if(|entry| entry.identity < end) {
                take(entry);
            }
        }
    }

    fn clear(&mut self) {
        let empty = block::empty(&self.cut.shape);
        self.words.as_mut_slice().as_chunks_mut::<8>().0.fill(empty);
        self.back.clear();
    }

    fn validate(&self) -> Result<(), Invalid> {
        let shape = &self.cut.shape;
        if !self.blocks().iter().all(|one| block::is_valid(one, shape)) {
            return Err(Invalid("a block is not what an insertion or a removal leaves"));
        }
        self.back.validate()?;
        let elsewhere = |identity: u64| self.lives_in_back(self.cut.place_of(identity));
        let mut all_elsewhere = true;
        self.back.for_each_entry(&mut |entry| {
            all_elsewhere &= self.identity_of(entry.identity).is_some_and(elsewhere);
        });
        if !all_elsewhere {
            return Err(Invalid("the back table holds what belongs to a block"));
        }
        let has_room = |number: u64| {
            let index = Index::of(self.block(number), shape);
            let free = u64::from(shape.cells.saturating_sub(index.len()));
            index.threshold < shape.locations
                && free >= self.back.count_between(self.elsewhere(number, index.threshold))
        };
        if (0..self.params.blocks()).any(has_room) {
            return Err(Invalid("a block has room for what the back table holds"));
        }
        Ok(())
    }

    fn footprint(&self) -> u64 {
        self.words.footprint() + self.back.footprint()
    }

    /// Counted anew each time, so that nothing has to be read when a mapped file is opened.
    fn used(&self) -> u64 {
        let cells = |block| u64::from(Index::of(block, &self.cut.shape).len());
        self.blocks().iter().map(cells).sum::<u64>() + self.back.used()
    }

    /// The cells in use, as a share of those of the blocks.
    fn fill(&self) -> f64 {
        let cells = self.params.blocks() * u64::from(self.params.cells());
        (self.used() as f64 / cells as f64).min(1.0)
    }

    /// The entries of the back table: about 5% of the keys when all planned keys are in, and more
    /// with wide fingerprints.
    fn overflow(&self) -> u64 {
        self.back.used()
    }

    fn lines_to_contain(&self, place: Place) -> u32 {
        1 + if self.lives_in_back(place) {
            self.back.lines_to_contain(self.back_identity(place))
        } else {
            0
        }
    }

    fn lines_to_insert(&self, place: Place) -> u32 {
        let index = Index::of(self.block(place.block), &self.cut.shape);
        let back = place.location >= index.threshold || index.len() == self.cut.shape.cells;
        1 + if back { self.back.lines_to_insert(self.back_identity(place)) } else { 0 }
    }

    fn grown(&self) -> Result<Self, ResizeError> {
        Ok(self.rebuilt(self.params.grown()?, 0)?)
    }

    fn shrunk(&self) -> Result<Self, ResizeError> {
        Ok(self.rebuilt(self.params.shrunk()?, 0)?)
    }

    fn with(&self, dropped: u32, other: &Self, other_dropped: u32) -> Option<Result<Self, Full>> {
        let params = self.params().coarser(dropped).ok()?;
        Some(self.rebuilt(params, dropped).and_then(|mut table| {
            // In one step, because every step of growing plans anew.
            table.back.settle(other.packed());
            table.add_all(other, other_dropped)?;
            Ok(table)
        }))
    }

    fn sections(&self) -> Vec<Payload<'_>> {
        sections::encode(self)
    }

    fn decode(frame: &mut Frame<'_>, params: BlockedRankParams) -> Result<Self, WireError> {
        sections::decode(frame, params)
    }

    fn unpack(
        frame: &mut Frame<'_>,
        params: BlockedRankParams,
        entries: Vec<Entry>,
    ) -> Result<Self, WireError> {
        sections::unpack(frame, params, entries)
    }

    fn decoded_bytes(params: &BlockedRankParams) -> u64 {
        (params.bits() + params.back_bits()).div_ceil(8)
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        many::fetch(self.blocks(), &self.cut, &digests[..AHEAD.min(digests.len())]);
        let mut waiting = Waiting::new(self);
        let mut from = 0;
        while let Some((number, place)) =
            self.machine.find_many(self.blocks(), &self.cut, (digests, &mut *answers), from)
        {
            waiting.push(number, place, answers);
            from = number + 1;
        }
        waiting.settle(answers);
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), (usize, Full)> {
        many::fetch(self.blocks(), &self.cut, &digests[..AHEAD.min(digests.len())]);
        let mut from = 0;
        while let Some((number, place, refused)) =
            self.machine.insert_many(blocks_mut(&mut self.words), &self.cut, digests, from)
        {
            self.insert_elsewhere(place, refused).map_err(|full| (number, full))?;
            from = number + 1;
        }
        Ok(())
    }

    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        many::fetch(self.blocks(), &self.cut, &digests[..AHEAD.min(digests.len())]);
        let (mut from, mut absent) = (0, 0);
        while let Some((number, place, removed)) =
            self.machine.remove_many(blocks_mut(&mut self.words), &self.cut, digests, from)
        {
            absent += u64::from(self.settle(place, removed).is_err());
            from = number + 1;
        }
        digests.len() as u64 - absent
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

/// How many questions may wait for the memory of the back table.
const WAITING: usize = 8;

/// Questions for the back table, which wait until its memory has been fetched.
struct Waiting<'a> {
    table: &'a Table,
    /// Numbers of answers, and identities of the back table.
    questions: [(usize, u64); WAITING],
    len: usize,
}

impl<'a> Waiting<'a> {
    fn new(table: &'a Table) -> Self {
        Self { table, questions: [(0, 0); WAITING], len: 0 }
    }

    #[inline]
    fn push(&mut self, number: usize, place: Place, answers: &mut [bool]) {
        if self.len == WAITING {
            self.settle(answers);
        }
        let identity = self.table.back_identity(place);
        self.table.back.prefetch(identity);
        self.questions[self.len] = (number, identity);
        self.len += 1;
    }

    fn settle(&mut self, answers: &mut [bool]) {
        for &(number, identity) in &self.questions[..self.len] {
            answers[number] = self.table.back.contains(identity);
        }
        self.len = 0;
    }
}
