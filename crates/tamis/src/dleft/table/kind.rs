//! The table as a kind of filter.

use alloc::vec::Vec;

use super::super::bucket::{Buckets, Cell, max_count};
use super::super::choices::{Choice, Choices};
use super::super::params::DLeftParams;
use super::super::{model, plan, sections};
use super::{Slot, Table};
use crate::address::identity;
use crate::bits::OutOfMemory;
use crate::digest::Digest;
use crate::entry::{Entry, Overflow};
use crate::filter::{Count, Remove};
use crate::identities::{self, Identities};
use crate::spec::{
    Absent, Full, Goal, Invalid, Kind, Lines, Operation, PlanError, Prediction, ResizeError,
    WireError, explain,
};
use crate::wire::{Frame, Payload};

impl identities::Table for Table {
    const KIND: Kind = Kind::DLeft;
    const CAN: &'static [Operation] = identities::ALL;
    const VALUES: Option<&'static str> = Some("value");
    const REASON: &'static str = "the d-left table of paper 003; keys can be removed and counted";
    const MARGINS: [f64; 2] = identities::MARGINS;
    type Params = DLeftParams;
    /// The identity.
    type Place = u64;

    fn least(goal: &Goal) -> Result<DLeftParams, PlanError> {
        plan::plan(goal)
    }

    fn predict(params: &DLeftParams, keys: u64) -> Prediction {
        plan::predict(params, keys)
    }

    fn planned_bits(params: &DLeftParams) -> u64 {
        params.bits()
    }

    /// Paper 003.
    fn explain(params: &DLeftParams, n: u64, out: &mut Lines) {
        let (d, b, c) = (params.subtables(), params.buckets(), params.cells());
        let r = params.remainder();
        let u = params.universe() as f64;
        let load = model::effective_load(u, n, u64::from(d) * b);
        let full = model::full_chance(d as usize, c as usize, load);
        explain! { out;
            "symbols":
                "n = {n} keys, d = {d} subtables of B = {b} buckets of c = {c} cells, r = {r} bits";
            "universe": "U = B 2^r = {}", params.universe();
            "load": "L = U (1 - (1 - 1/U)^n) / (d B) = {load:.4} cells a bucket";
            "full": "all d choices of a key are full with chance F = {full:.2e}";
            "rate": "f = 1 - (1 - 1/U)^n = {:.4e}", model::rate(u, n);
            "memory": "d B c (r + counter + value) = {d} * {b} * {c} * {} = {} bits",
                params.cell_bits(), params.bits();
        }
    }

    fn universe(params: &DLeftParams) -> u64 {
        params.universe()
    }

    fn value_bits(params: &DLeftParams) -> u32 {
        params.value()
    }

    fn new(params: DLeftParams) -> Result<Self, OutOfMemory> {
        Ok(Self {
            params,
            choices: Choices::new(params.subtables(), params.universe(), params.remainder()),
            buckets: Buckets::new(&params)?,
            used: 0,
            overflow: Overflow::default(),
            grow_above: params.all_cells(),
        })
    }

    fn params(&self) -> DLeftParams {
        self.params
    }

    #[inline]
    fn place(&self, digest: Digest) -> u64 {
        identity(digest, self.params.universe())
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        for choice in self.choices(self.place(digest)) {
            self.buckets.prefetch(choice.bucket);
        }
    }

    #[inline]
    fn contains(&self, identity: u64) -> bool {
        self.choices(identity).any(|choice| self.buckets.has(choice.bucket, choice.remainder))
            || !self.overflow.is_empty() && !self.overflow.of(identity).is_empty()
    }

    fn count(&self, identity: u64) -> u64 {
        let cells: u64 = self.cells_of(identity).map(|(_, content)| content.count).sum();
        cells.saturating_add(self.overflow.count(identity))
    }

    fn values(&self, identity: u64) -> Vec<u64> {
        let cells = self.cells_of(identity).map(|(_, content)| content.value);
        let overflow = self.overflow.of(identity).iter().map(|entry| entry.value);
        let mut values: Vec<u64> = cells.chain(overflow).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    fn insert(&mut self, identity: u64, value: u64) -> Result<bool, Full> {
        self.insert_entry(Entry { identity, value, count: 1 })
    }

    fn remove(&mut self, identity: u64, value: Option<u64>) -> Result<(), Absent> {
        let fits = |other: u64| value.is_none_or(|value| value == other);
        let cells = self.cells_of(identity).filter(|(_, content)| fits(content.value));
        let in_cell = cells.min_by_key(|(_, content)| content.value);
        let overflow = self.overflow.of(identity).iter().map(|entry| entry.value);
        let in_overflow = overflow.filter(|&value| fits(value)).min();
        match (in_cell, in_overflow) {
            // With an equal value, the overflow holds the copies that the cell could not count.
            (Some((slot, content)), in_overflow)
                if in_overflow.is_none_or(|value| content.value < value) =>
            {
                self.count_down(slot, content);
            }
            (_, Some(value)) => {
                self.overflow.take(identity, value);
            }
            _ => return Err(Absent),
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) -> Result<(), Full> {
        self.insert_entry(entry).map(|_| ())
    }

    fn take(&mut self, entry: Entry) -> Result<(), Absent> {
        // The overflow counts to any number; cells do not.
        let taken = self.overflow.take_up_to(entry.identity, entry.value, entry.count);
        for _ in taken..entry.count {
            self.remove(entry.identity, Some(entry.value))?;
        }
        Ok(())
    }

    /// All at once: neighbours are far apart.
    fn list_from(&self, _: u64, entries: &mut Vec<Entry>) -> Option<u64> {
        self.list(entries);
        None
    }

    fn lay_out(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), Full> {
        self.add_all(entries, 0)
    }

    fn distinct(&self) -> u64 {
        if self.params.value() == 0 {
            let overflow = self.overflow.entries().iter();
            let whole = overflow.filter(|entry| self.cells_of(entry.identity).next().is_none());
            return self.used + whole.count() as u64;
        }
        let mut entries = Vec::new();
        self.list(&mut entries);
        entries.chunk_by(|a, b| a.identity == b.identity).count() as u64
    }

    fn clear(&mut self) {
        self.buckets.clear();
        self.used = 0;
        self.overflow.clear();
    }

    fn validate(&self) -> Result<(), Invalid> {
        if !self.buckets.is_tidy(self.params.all_buckets()) {
            return Err(Invalid("the used cells of a bucket are not its first"));
        }
        let mut used = 0;
        for bucket in 0..self.params.all_buckets() {
            for (cell, content) in self.cells(bucket).enumerate() {
                used += 1;
                let identity = self.identity(bucket, content.remainder);
                let mut same =
                    self.cells_of(identity).filter(|found| found.1.value == content.value);
                let itself = |found: &(Slot, Cell)| {
                    (found.0.bucket, found.0.cell as usize) == (bucket, cell)
                };
                if !same.all(|found| itself(&found)) {
                    return Err(Invalid("an identity is in two cells"));
                }
            }
        }
        let rest_or_whole = |entry: &Entry| {
            let mut same =
                self.cells_of(entry.identity).filter(|found| found.1.value == entry.value);
            entry.count > 0
                && same.all(|(_, content)| content.count == max_count(content.remainder))
        };
        if !self.overflow.entries().iter().all(rest_or_whole) {
            return Err(Invalid("the overflow holds what its cell could count"));
        }
        if used == self.used { Ok(()) } else { Err(Invalid("the number of cells is wrong")) }
    }

    fn footprint(&self) -> u64 {
        self.buckets.footprint() + self.overflow.footprint()
    }

    fn used(&self) -> u64 {
        self.used
    }

    /// The share of cells in use; 0.84 with the planned keys.
    fn fill(&self) -> f64 {
        self.used as f64 / self.params.all_cells() as f64
    }

    /// Entries of the overflow: identities that found no cell, and the further copies of those
    /// that are in more than four times.
    fn overflow(&self) -> u64 {
        self.overflow.len() as u64
    }

    /// Above 7 of 8 cells moves are frequent, and the overflow may be needed.
    fn is_crowded(&self) -> bool {
        self.fill() > 0.875
    }

    fn lines_to_contain(&self, identity: u64) -> u32 {
        let asked = |choice: &Choice| self.buckets.has(choice.bucket, choice.remainder);
        let until = self.choices(identity).position(|choice| asked(&choice));
        let read = until.map_or(self.params.subtables() as usize, |found| found + 1);
        self.lines(identity, read)
    }

    fn lines_to_insert(&self, identity: u64) -> u32 {
        self.lines(identity, self.params.subtables() as usize)
    }

    fn grown(&self) -> Result<Self, ResizeError> {
        Ok(self.resized(self.params.grown()?)?)
    }

    /// What finds no cell goes to the overflow.
    fn shrunk(&self) -> Result<Self, ResizeError> {
        Ok(self.resized(self.params.shrunk()?)?)
    }

    fn with(&self, dropped: u32, other: &Self, other_dropped: u32) -> Option<Result<Self, Full>> {
        let mut params = self.params.coarser(dropped).ok()?;
        let cells = self.used.saturating_add(other.used);
        while plan::room(&params) < cells
            && let Ok(larger) = params.grown()
        {
            params = larger;
        }
        let both = |mut table: Self| {
            table.add_all(other.entries(), other_dropped)?;
            Ok(table)
        };
        Some(self.coarser(params, dropped).and_then(both))
    }

    fn sections(&self) -> Vec<Payload<'_>> {
        sections::encode(self)
    }

    /// Of the table that a reader would build; otherwise what was read might be shorter in the
    /// other form.
    fn trimmed(&self) -> Vec<Payload<'_>> {
        self.coarser(self.params, 0)
            .map_or_else(|_| self.sections(), |table| sections::encode(&table))
    }

    fn decode(frame: &mut Frame<'_>, params: DLeftParams) -> Result<Self, WireError> {
        sections::decode(frame, params)
    }

    fn overflow_mut(&mut self) -> &mut Overflow {
        &mut self.overflow
    }

    /// An entry takes a cell, or more in the list.
    fn least_trimmed(params: &DLeftParams, entries: u64) -> u64 {
        let loads = params.all_buckets() * u64::from(sections::LOAD_BITS);
        (loads + entries * u64::from(params.cell_bits())) / 8
    }

    fn decoded_bytes(params: &DLeftParams) -> u64 {
        params.bits().div_ceil(8)
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
impl identities::Carries for Table {}
