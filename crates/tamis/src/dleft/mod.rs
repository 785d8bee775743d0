//! The d-left counting Bloom filter: fingerprints in d subtables, balanced so well that buckets hardly ever overflow.
//!
//! After F. Bonomi, M. Mitzenmacher, R. Panigrahy, S. Singh, G. Varghese, "An Improved Construction for Counting Bloom Filters",
//! ESA 2006. A key is kept as its *identity*, an integer in [0, U). Each of d permutations of [0, U) gives it a bucket in one subtable
//! and a remainder; the remainder is put into the least loaded of the d buckets, the leftmost of several, with a
//! counter of two bits for equal identities.
//!
//! ```text
//! subtable 1   | bucket | bucket | ... (B buckets)      bucket   | cell | cell | ... (c cells)
//! subtable 2   | bucket | bucket | ...                  cell     counter (2 bits), remainder (r bits), value
//! ...                                                   U = B 2^r identities
//! subtable d   | bucket | bucket | ...                  stash    identities that found no cell
//! ```
//!
//! At 1% a key takes 16.6 bits, less than half of a counting Bloom filter, and an operation reads d buckets.
//!
//! ```
//! use tamis::{Count, DLeft, Filter, Insert, Remove};
//! let mut filter = DLeft::with_rate(1_000, 0.01)?;
//! filter.insert("apple")?;
//! filter.insert("apple")?;
//! assert_eq!(filter.count("apple"), Some(2));
//! filter.remove("apple")?;
//! assert!(filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When it fills up
//!
//! Tables are planned for 6.75 of 8 cells. When all d buckets of a key are full, something in the first of them moves to another
//! of its own choices, after something else has moved out of that one if need be; when that cannot be, the key goes to the stash, a sorted list of whole identities. A cell counts to
//! four; what goes beyond is counted in the stash, so that counts are exact. When the table holds as many identities as it has cells,
//! it grows to twice the buckets, with remainders a bit shorter: identities, and so answers, stay.
//! [`grow`](DLeft::grow), [`shrink`](DLeft::shrink) and [`recut`](DLeft::recut) do so on purpose, and need no keys.
//!
//! # Limits
//!
//! A key that is in more than four times takes an entry of 24 bytes in the stash, whose insertions move all entries behind: good for some such
//! keys, not for most of them ([`RankCounting`](crate::RankCounting) is for those).
//! At most 2^62 identities, 8 subtables, 15 cells a bucket. Removing a key that was never inserted is refused if the filter answers
//! no to it; if it answers yes by mistake (with probability `rate`), one occurrence of another key that has the same identity is taken away,
//! and that key may then be missed. Nothing can notice that; a counting Bloom filter would hurt up to k keys. Use a keyed hash
//! where somebody else chooses the keys: a universe of 2^25 identities is easy to collide in.

mod bucket;
mod choices;
pub mod model;
mod params;
mod plan;
mod sections;
mod table;

use alloc::vec;
use alloc::vec::Vec;

pub use params::DLeftParams;

use self::table::Table;
use crate::address::identity;
use crate::bits::OutOfMemory;
use crate::coder::Packing;
use crate::digest::{Digest, Hasher};
use crate::filter::{Count, Filter, Insert, Remove, Stored};
use crate::group::{Group, common_universe};
use crate::key::Key;
use crate::spec::{
    Absent, Full, Goal, Invalid, Kind, Label, Mismatch, PlanError, Prediction, ResizeError,
    WireError,
};
use crate::wire::{self, ContentHasher, ContentId, Encoded, Encoding, Frame};

/// A multiset of identities; see [the module](self).
#[derive(Clone, Debug)]
pub struct DLeft {
    label: Label,
    table: Table,
}

impl DLeft {
    /// An empty filter for so many keys at this rate, with XXH3 and seed 0.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self, PlanError> {
        let params = Self::plan(&Goal::rate(keys, rate))?;
        Ok(Self::new(params, Label::planned(Hasher::default(), keys))?)
    }

    /// The params for a goal.
    pub fn plan(goal: &Goal) -> Result<DLeftParams, PlanError> {
        plan::plan(goal)
    }

    /// What a filter with these params and so many keys will do.
    pub fn predict(params: &DLeftParams, keys: u64) -> Prediction {
        plan::predict(params, keys)
    }

    /// Cells in use.
    pub fn used(&self) -> u64 {
        self.table.used()
    }

    /// How many buckets of each subtable hold 0, 1, 2, ... cells: what the paper's analysis is about.
    pub fn loads(&self) -> Vec<Vec<u64>> {
        let params = self.table.params();
        let of_subtable = |subtable: u64| {
            let mut loads = vec![0; params.cells() as usize + 1];
            let buckets = subtable * params.buckets()..(subtable + 1) * params.buckets();
            buckets.for_each(|bucket| loads[self.table.cells(bucket).count()] += 1);
            loads
        };
        (0..u64::from(params.subtables())).map(of_subtable).collect()
    }

    /// Whether one of the buckets of this digest has a free cell, so that inserting it needs no move.
    pub fn has_room(&self, digest: Digest) -> bool {
        self.table.has_room(self.identity(digest))
    }

    /// All that is in, in order of identity and value: enough to build the filter anew, without the keys.
    pub fn groups(&self) -> Vec<Group> {
        self.table.groups()
    }

    /// Takes identities away and adds others; on an error the table is half changed.
    pub(crate) fn change(
        &mut self,
        removed: &[Group],
        inserted: &[Group],
    ) -> Result<(), &'static str> {
        for &group in removed {
            self.table.take(group).map_err(|Absent| "more is removed than is in")?;
        }
        for &group in inserted {
            self.table.insert(group).map_err(|_| "there is no memory for what comes")?;
        }
        Ok(())
    }

    pub(crate) fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    /// Twice the buckets, with remainders a bit shorter: room for twice the keys, and the same answers.
    pub fn grow(&mut self) -> Result<(), ResizeError> {
        self.table = self.table.resized(self.table.params().grown()?)?;
        Ok(())
    }

    /// Half the buckets, with remainders a bit longer: the same answers in half the memory. What finds no cell goes to the
    /// stash.
    pub fn shrink(&mut self) -> Result<(), ResizeError> {
        self.table = self.table.resized(self.table.params().shrunk()?)?;
        Ok(())
    }

    /// Cuts the same memory into more cells, with remainders so many bits shorter: room for more keys at a rate that doubles
    /// with each bit.
    pub fn recut(&mut self, dropped: u32) -> Result<(), ResizeError> {
        let params = self.table.params().recut(dropped)?;
        self.table = self.coarser(params, dropped)?;
        Ok(())
    }

    /// The content under params whose universe is 2^`dropped` times smaller.
    fn coarser(&self, params: DLeftParams, dropped: u32) -> Result<Table, Full> {
        let full = Full { keys: self.label.keys, inserted: 0 };
        let mut table = Table::new(params).map_err(|_| full)?;
        table.add_all(&self.table.groups(), dropped)?;
        Ok(table)
    }

    /// Adds all of another filter: the multiset sum. Needs the same hash, seed and value bits, and universes that differ by
    /// a power of two: the finer filter is then read as coarsely as the other, and so is this one afterwards. It grows
    /// to make room.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::check_hashers(self.label.hasher, other.label.hasher)?;
        let (mine, theirs) = (*self.table.params(), *other.table.params());
        Mismatch::check("value", &mine.value(), &theirs.value())?;
        let (universe, their_universe) = (mine.universe(), theirs.universe());
        let dropped = common_universe(universe, their_universe);
        let meeting = dropped.and_then(|(dropped, _)| mine.coarser(dropped).ok()).zip(dropped);
        let Some((mut params, (dropped, their_dropped))) = meeting else {
            return Mismatch::check("universe", &universe, &their_universe);
        };
        let cells = self.table.used().saturating_add(other.table.used());
        while plan::room(&params) < cells
            && let Ok(larger) = params.grown()
        {
            params = larger;
        }
        // Beside this one, so that it is unchanged if memory runs out.
        let merged = self.coarser(params, dropped).and_then(|mut table| {
            table.add_all(&other.table.groups(), their_dropped)?;
            Ok(table)
        });
        self.table = merged.map_err(|_| Mismatch {
            field: "memory",
            left: alloc::format!("{} cells", self.used()),
            right: alloc::format!("{} cells", other.used()),
        })?;
        self.label.merge(&other.label);
        Ok(())
    }

    /// The largest value that a cell carries.
    pub fn max_value(&self) -> u64 {
        (1 << self.table.params().value()) - 1
    }

    /// Inserts a key with a value, of which bits beyond the width of a cell are dropped: the paper's use for state machines, where
    /// the value is the state of a flow. A key that is in with another value then has both: use [`update`](Self::update) to change one.
    pub fn insert_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<bool, Full> {
        self.insert_with(self.hasher().digest(key), value & self.max_value())
    }

    /// The different values of a key, smallest first. Two keys that share an identity (with probability `rate`) cannot be told apart:
    /// both then have both values.
    pub fn values<K: Key + ?Sized>(&self, key: &K) -> Vec<u64> {
        self.table.values(self.identity(self.hasher().digest(key)))
    }

    /// Changes the value of one occurrence of a key. The old value picks the cell, so that a key that shares the identity
    /// keeps its own.
    pub fn update<K: Key + ?Sized>(&mut self, key: &K, old: u64, new: u64) -> Result<(), Absent> {
        let identity = self.identity(self.hasher().digest(key));
        let group = |value: u64| Group { identity, value, count: 1 };
        let old = old & self.max_value();
        self.table.remove(identity, Some(old))?;
        // Something has just left its cell; should there still be no memory, it goes back.
        if self.table.insert(group(new & self.max_value())).is_err() {
            let _ = self.table.insert(group(old));
            return Err(Absent);
        }
        Ok(())
    }

    /// Removes one occurrence of a key with this value.
    pub fn remove_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), Absent> {
        self.remove_with(self.hasher().digest(key), Some(value & self.max_value()))
    }

    #[inline]
    fn identity(&self, digest: Digest) -> u64 {
        identity(digest, self.table.params().universe())
    }

    fn insert_with(&mut self, digest: Digest, value: u64) -> Result<bool, Full> {
        let group = Group { identity: self.identity(digest), value, count: 1 };
        let new = self.table.insert(group)?;
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn remove_with(&mut self, digest: Digest, value: Option<u64>) -> Result<(), Absent> {
        self.table.remove(self.identity(digest), value)?;
        self.label.keys = self.label.keys.saturating_sub(1);
        Ok(())
    }
}

impl PartialEq for DLeft {
    /// Equal content and label, wherever it lies.
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && self.content_id() == other.content_id()
    }
}

impl Eq for DLeft {}

impl Filter for DLeft {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.table.contains(self.identity(digest))
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.table.prefetch(self.identity(digest));
    }

    fn footprint(&self) -> u64 {
        self.table.footprint()
    }

    /// Different identities over all: the chance that a stranger has one of them.
    fn rate(&self) -> f64 {
        self.table.distinct() as f64 / self.table.params().universe() as f64
    }

    /// Cells in use over all cells: 0.84 for the planned keys.
    fn fill(&self) -> f64 {
        self.table.used() as f64 / self.table.params().all_cells() as f64
    }

    /// Entries of the stash: identities that found no cell, and the surplus of those that are in more than four times.
    fn overflow(&self) -> Option<u64> {
        Some(self.table.stash().len() as u64)
    }

    /// Also beyond 7 of 8 cells: then moves are frequent, and the stash may be needed.
    fn is_crowded(&self) -> bool {
        self.capacity() > 0 && self.keys() > self.capacity() || self.fill() > 0.875
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        self.table.lines_to_contain(self.identity(digest))
    }
}

impl Insert for DLeft {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.insert_with(digest, 0)
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        self.table.lines_to_insert(self.identity(digest))
    }
}

impl Remove for DLeft {
    /// Removes one occurrence of a key, whatever its value: of several the smallest.
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent> {
        self.remove_with(digest, None)
    }
}

impl Count for DLeft {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        Some(self.table.count(self.identity(digest)))
    }

    fn max_count(&self) -> u64 {
        u64::MAX
    }
}

impl Stored for DLeft {
    const KIND: Kind = Kind::DLeft;
    type Params = DLeftParams;

    fn params(&self) -> DLeftParams {
        *self.table.params()
    }

    fn new(params: DLeftParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self { label: label.into(), table: Table::new(params)? })
    }

    fn clear(&mut self) {
        self.table.clear();
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.table.validate()
    }

    /// Covers the universe and the identities in order, not where they lie: a grown filter is the same multiset.
    fn content_id(&self) -> ContentId {
        let facts = self.table.params().content_params().map(|(_, value)| value);
        let mut id = ContentHasher::new(Kind::DLeft, self.label.hasher, &facts);
        for Group { identity, value, count } in self.table.groups() {
            id.numbers([identity, value, count].into_iter());
        }
        id.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        wire::encode(self, sections::encode(&self.table))
    }

    /// The packed form, or the trimmed one where many identities are equal and that is shorter.
    fn pack(&self, _: impl Into<Packing>) -> Encoded<'_> {
        let packed = wire::encode(self, vec![sections::pack(&self.table)]);
        // Of the table that a reader of the packed form would make, or what is read could be shorter in the other form.
        let trimmed = self.coarser(self.params(), 0);
        let trimmed = trimmed.map(|table| wire::encode(self, sections::encode(&table)));
        trimmed.ok().filter(|trimmed| trimmed.len() < packed.len()).unwrap_or(packed)
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = frame.begin::<Self>()?;
        let table = match frame.next_encoding() {
            Some(Encoding::Packed) => sections::unpack(frame, params)?,
            _ => sections::decode(frame, params)?,
        };
        Ok(Self { label, table })
    }
}
