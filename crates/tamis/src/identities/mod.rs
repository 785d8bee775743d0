//! What all kinds that keep an identity of every key share. Each of them is one table below it.
//!
//! A key is kept as its *identity*, an integer in [0, U), where U is the *universe*. A table
//! holds a multiset of identities, with small values where it has room for them. No bit of an
//! identity is lost. So tables can be listed, merged, grown and compared without the keys, and
//! two tables with the same identities have the same content however they are laid out.

mod filter;

use alloc::vec::Vec;

use crate::bits::{OutOfMemory, fetch_ahead, fetch_all_ahead};
use crate::digest::Digest;
use crate::entry::{Entry, Overflow, order};
use crate::filter::{Count, Filter, Remove};
use crate::key::Key;
use crate::spec::{
    Absent, Full, Goal, Invalid, InvalidParam, Kind, Label, Lines, Operation, Params, PlanError,
    Prediction, ResizeError, UpdateError, WireError,
};
use crate::wire::{Frame, Payload};

/// Margins of these kinds. Models predict the lines that a question reads to within a twentieth
/// (tested by `a_chosen_plan_keeps_its_promises`).
pub(crate) const MARGINS: [f64; 2] = [1.0, 1.05];

/// What a table can do that counts equal identities.
pub(crate) const ALL: &[Operation] =
    &[Operation::Insert, Operation::Remove, Operation::Count, Operation::Merge, Operation::Grow];

/// A multiset of identities in memory, of one kind. Its methods keep what those of the same name
/// promise in [`Filter`] and [`Stored`](crate::Stored).
pub trait Table: Clone + core::fmt::Debug {
    /// The kind.
    const KIND: Kind;
    /// What filters of this kind can do beyond answering.
    const CAN: &'static [Operation];
    /// The name of the param that fixes how many bits of value each key has; `None` if keys
    /// cannot have values.
    const VALUES: Option<&'static str> = None;
    /// Why one would take this kind, in a sentence.
    const REASON: &'static str;
    /// Factors for predicted memory and predicted blocks; see [`Stored::MARGINS`](crate::Stored).
    const MARGINS: [f64; 2];
    /// Whether equal identities are kept once.
    const IS_SET: bool = false;
    /// Whether the [trimmed](Self::trimmed) sections can be shorter than the packed form. They
    /// are where many identities are equal.
    const TRIMS: bool = true;
    /// The params, which fix the layout.
    type Params: Params + Copy;
    /// Where an identity belongs.
    type Place: Copy;

    /// The params that meet `goal` in the least memory.
    fn least(goal: &Goal) -> Result<Self::Params, PlanError>;
    /// What a table with `params` and `keys` keys will do.
    fn predict(params: &Self::Params, keys: u64) -> Prediction;
    /// The bits of a table with `params`, without any overflow.
    fn planned_bits(params: &Self::Params) -> u64;
    /// Writes to `out` how the prediction comes about.
    fn explain(params: &Self::Params, keys: u64, out: &mut Lines);
    /// The universe, U.
    fn universe(params: &Self::Params) -> u64;
    /// Bits of a value; 0 where keys have none.
    fn value_bits(_: &Self::Params) -> u32 {
        0
    }
    /// Names and values of the params that decide answers, the universe first.
    fn content_params(params: &Self::Params) -> Vec<(&'static str, u64)> {
        let value = Self::VALUES.map(|name| (name, Self::value_bits(params).into()));
        [("universe", Self::universe(params))].into_iter().chain(value).collect()
    }
    /// The params as this kind has them; an error if it has no such layout.
    fn checked(params: Self::Params) -> Result<Self::Params, InvalidParam> {
        Ok(params)
    }

    /// An empty table.
    fn new(params: Self::Params) -> Result<Self, OutOfMemory>;
    /// The params of the layout as it is now.
    fn params(&self) -> Self::Params;
    /// Where the identity of `digest` belongs.
    fn place(&self, digest: Digest) -> Self::Place;
    /// Starts fetching the memory that a question for `digest` reads.
    fn prefetch(&self, digest: Digest);
    /// Whether the identity of `place` is in.
    fn contains(&self, place: Self::Place) -> bool;
    /// How often the identity of `place` is in.
    fn count(&self, place: Self::Place) -> u64;
    /// The values of the identity of `place`, smallest first.
    fn values(&self, _: Self::Place) -> Vec<u64> {
        Vec::new()
    }
    /// Inserts the identity of `place` with `value`. Returns true if it was not in before.
    fn insert(&mut self, place: Self::Place, value: u64) -> Result<bool, Full>;
    /// Removes one occurrence of the identity of `place`: with this value if one is given,
    /// otherwise with the smallest.
    fn remove(&mut self, place: Self::Place, value: Option<u64>) -> Result<(), Absent>;
    /// Inserts `entry.count` copies.
    fn add(&mut self, entry: Entry) -> Result<(), Full>;
    /// Removes `entry.count` copies. On an error some of them are removed.
    fn take(&mut self, entry: Entry) -> Result<(), Absent>;
    /// Adds the entries from part number `part` on to `entries`, in order of identity and value,
    /// until there are at least [`CHUNK`]. Returns the next part, or `None` after the last.
    fn list_from(&self, part: u64, entries: &mut Vec<Entry>) -> Option<u64>;
    /// All entries, in order of identity and value.
    fn entries(&self) -> Entries<'_, Self> {
        Entries { table: self, part: Some(0), listed: Vec::new(), at: 0 }
    }
    /// Fills an empty table with entries, which come in order, each once. Nothing grows, so that
    /// a table that is read has the layout that was written. On an error some are in.
    fn lay_out(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), Full>;
    /// Inserts `digests` into an empty table in one pass, by `threads` threads if it can use
    /// them. Returns false, and changes nothing, if they are quicker inserted one by one.
    fn insert_at_once(&mut self, _digests: &[Digest], _threads: usize) -> bool {
        false
    }
    /// How many distinct identities are in.
    fn distinct(&self) -> u64 {
        let (mut distinct, mut last) = (0, None);
        self.entries().for_each(|entry| {
            distinct += u64::from(last != Some(entry.identity));
            last = Some(entry.identity);
        });
        distinct
    }
    /// Removes everything.
    fn clear(&mut self);
    /// Checks every invariant.
    fn validate(&self) -> Result<(), Invalid>;
    /// Bits of heap memory held.
    fn footprint(&self) -> u64;
    /// Cells in use.
    fn used(&self) -> u64;
    /// The share of the planned cells that is in use.
    fn fill(&self) -> f64;
    /// How many entries are in the overflow.
    fn overflow(&self) -> u64;
    /// Distinct cache lines that a question for `place` reads.
    fn lines_to_contain(&self, place: Self::Place) -> u32;
    /// Distinct cache lines that an insertion at `place` touches.
    fn lines_to_insert(&self, place: Self::Place) -> u32;

    /// An empty table with `params`, which runs the code that this one runs.
    fn like(&self, params: Self::Params) -> Result<Self, OutOfMemory> {
        Self::new(params)
    }
    /// The same content under `params`, whose universe is 2^`dropped` times smaller.
    fn rebuilt(&self, params: Self::Params, dropped: u32) -> Result<Self, Full> {
        let mut table = self.like(params).map_err(|_| self.full())?;
        table.lay_out(order::coarser(self.entries(), dropped, Self::IS_SET))?;
        Ok(table)
    }
    /// Under `params` the content of this table, whose identities lose `dropped` low bits, and of
    /// `other`, whose identities lose `other_dropped`.
    fn joined(
        &self,
        params: Self::Params,
        dropped: u32,
        other: &Self,
        other_dropped: u32,
    ) -> Result<Self, Full> {
        let mut table = self.like(params).map_err(|_| self.full())?;
        let (mine, theirs) = (self.entries(), other.entries());
        if dropped == 0 && other_dropped == 0 {
            // The common case, which is compiled without a step for each entry.
            table.lay_out(order::merged(mine, theirs, Self::IS_SET))?;
        } else {
            let mine = order::coarser(mine, dropped, Self::IS_SET);
            let theirs = order::coarser(theirs, other_dropped, Self::IS_SET);
            table.lay_out(order::merged(mine, theirs, Self::IS_SET))?;
        }
        Ok(table)
    }
    /// The error where there is no memory for a new table.
    fn full(&self) -> Full {
        Full { keys: self.used(), inserted: 0 }
    }
    /// The same identities, laid out for twice as many keys.
    fn grown(&self) -> Result<Self, ResizeError>;
    /// The same identities, laid out for half as many keys.
    fn shrunk(&self) -> Result<Self, ResizeError>;
    /// A table with the content of this one, whose identities lose `dropped` low bits, and of
    /// `other`, whose identities lose `other_dropped`; `None` if there is no such layout.
    fn with(&self, dropped: u32, other: &Self, other_dropped: u32) -> Option<Result<Self, Full>>;

    /// The sections of [`Stored::encode`](crate::Stored::encode): the memory as it is, or nearly
    /// so.
    fn sections(&self) -> Vec<Payload<'_>>;
    /// A table from sections that are not packed.
    fn decode(frame: &mut Frame<'_>, params: Self::Params) -> Result<Self, WireError>;
    /// The list at the end, which takes any number of entries except while a table is read.
    fn overflow_mut(&mut self) -> &mut Overflow;
    /// Bytes of memory that the packed form stands for; the section stores it.
    fn decoded_bytes(params: &Self::Params) -> u64;
    /// The fewest bytes of the [trimmed](Self::trimmed) sections of `entries` entries.
    fn least_trimmed(_params: &Self::Params, _entries: u64) -> u64 {
        0
    }
    /// The sections of the table that a reader of the packed form would build, so that packing
    /// what was read chooses the same form again.
    fn trimmed(&self) -> Vec<Payload<'_>> {
        self.sections()
    }

    /// Writes to `answers` whether each of `digests` is in. Both slices have the same length.
    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        let fetch = |_: &_, digest| self.prefetch(digest);
        fetch_all_ahead(answers, digests, fetch, |answers, number, digest| {
            answers[number] = self.contains(self.place(digest));
        });
    }

    /// Inserts `digests`. The error says how many went in before it.
    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), (usize, Full)> {
        fetch_ahead(self, digests, Self::prefetch, |table, number, digest| {
            table.insert(table.place(digest), 0).map(drop).map_err(|full| (number, full))
        })
    }

    /// Removes one occurrence of each of `digests`, and returns how many were removed.
    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        let mut removed = 0;
        fetch_all_ahead(self, digests, Self::prefetch, |table, _, digest| {
            removed += u64::from(table.remove(table.place(digest), None).is_ok());
        });
        removed
    }

    /// Whether the table is fuller than it should be, even if there are no more keys than
    /// planned.
    fn is_crowded(&self) -> bool {
        false
    }

    /// The filter as a [`Remove`], if keys can be removed from it.
    fn as_remove(_: &mut Identities<Self>) -> Option<&mut dyn Remove> {
        None
    }

    /// The filter as a [`Count`], if it counts.
    fn as_count(_: &Identities<Self>) -> Option<&dyn Count> {
        None
    }
}

/// How many entries a table lists at once, at least: few enough for the quickest memory.
pub(crate) const CHUNK: usize = 256;

/// All entries of a table, in order. They are listed chunk by chunk.
#[derive(Debug)]
pub struct Entries<'a, T> {
    table: &'a T,
    /// The next part to be listed.
    part: Option<u64>,
    listed: Vec<Entry>,
    /// The next entry of those listed.
    at: usize,
}

impl<T: Table> Entries<'_, T> {
    /// Lists the next entries; false if there are none.
    #[inline(never)]
    fn list_more(&mut self) -> bool {
        self.listed.clear();
        self.at = 0;
        while self.listed.is_empty()
            && let Some(part) = self.part
        {
            self.part = self.table.list_from(part, &mut self.listed);
        }
        !self.listed.is_empty()
    }
}

impl<T: Table> Iterator for Entries<'_, T> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        if self.at == self.listed.len() && !self.list_more() {
            return None;
        }
        let entry = self.listed[self.at];
        self.at += 1;
        Some(entry)
    }

    fn fold<B, F: FnMut(B, Entry) -> B>(mut self, init: B, mut f: F) -> B {
        let mut all = init;
        loop {
            all = self.listed[self.at..].iter().fold(all, |all, &entry| f(all, entry));
            if !self.list_more() {
                return all;
            }
        }
    }
}

/// A table from which keys can be removed.
pub trait Removes: Table {}

/// A table that knows how often a key is in.
pub trait Counts: Table {}

/// A table that keeps a value for each key.
pub trait Carries: Table {}

/// A filter that keeps the identity of every key, in a table `T`.
///
/// Use it by the names of its kinds: [`RankIndexed`](crate::RankIndexed),
/// [`RankSet`](crate::RankSet), [`RankCounting`](crate::RankCounting),
/// [`RankMap`](crate::RankMap), [`BlockedRank`](crate::BlockedRank),
/// [`BlockedMap`](crate::BlockedMap) and [`DLeft`](crate::DLeft).
///
/// ```
/// use tamis::BlockedMap;
/// let mut ports = BlockedMap::with_rate(1_000, 0.001)?;
/// ports.insert_value("http", 1)?;
/// assert!(ports.values("http").contains(&1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Identities<T> {
    pub(crate) label: Label,
    pub(crate) table: T,
}

impl<T: Table> Identities<T> {
    /// How many cells are in use.
    pub fn used(&self) -> u64 {
        self.table.used()
    }

    /// How many distinct keys are in, estimated from the number of distinct identities. It is
    /// infinite if every identity of the universe is in.
    pub fn estimated_keys(&self) -> f64 {
        let universe = T::universe(&self.table.params()) as f64;
        libm::log1p(-(self.table.distinct() as f64) / universe) / libm::log1p(-1.0 / universe)
    }

    /// All entries, in order of identity and value. They are enough to build the filter anew,
    /// without the keys.
    pub fn entries(&self) -> Vec<Entry> {
        self.table.entries().collect()
    }

    /// All bits of a value.
    fn value_mask(&self) -> u64 {
        (1 << T::value_bits(&self.table.params())) - 1
    }

    fn insert_with(&mut self, digest: Digest, value: u64) -> Result<bool, Full> {
        let new = self.table.insert(self.table.place(digest), value)?;
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn remove_with(&mut self, digest: Digest, value: Option<u64>) -> Result<(), Absent> {
        self.table.remove(self.table.place(digest), value)?;
        self.label.keys = self.label.keys.saturating_sub(1);
        Ok(())
    }
}

impl<T: Carries> Identities<T> {
    /// The largest value that a key can have.
    pub fn max_value(&self) -> u64 {
        self.value_mask()
    }

    /// Inserts `key` with `value`. Bits of `value` above those of [`max_value`](Self::max_value)
    /// are dropped. Returns `Ok(true)` if the key was surely absent before.
    ///
    /// A key that is in already has two values afterwards: use [`update`](Self::update) to change
    /// one.
    pub fn insert_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<bool, Full> {
        self.insert_value_digest(self.hasher().digest(key), value)
    }

    /// As [`insert_value`](Self::insert_value), for a key by its digest.
    pub fn insert_value_digest(&mut self, digest: Digest, value: u64) -> Result<bool, Full> {
        self.insert_with(digest, value & self.value_mask())
    }

    /// The values of `key`, smallest first.
    ///
    /// Two keys that share an identity (with probability `rate`) cannot be told apart: both have
    /// the values of both. So the values of a present key include its own. An absent key has
    /// none, or those of other keys.
    pub fn values<K: Key + ?Sized>(&self, key: &K) -> Vec<u64> {
        self.values_digest(self.hasher().digest(key))
    }

    /// As [`values`](Self::values), for a key by its digest.
    pub fn values_digest(&self, digest: Digest) -> Vec<u64> {
        self.table.values(self.table.place(digest))
    }

    /// The smallest value of `key`; see [`values`](Self::values).
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.values(key).first().copied()
    }

    /// Changes the value of one occurrence of `key` from `old` to `new`. Only an entry with the
    /// value `old` is changed, so that another key with the same identity keeps its own.
    pub fn update<K: Key + ?Sized>(
        &mut self,
        key: &K,
        old: u64,
        new: u64,
    ) -> Result<(), UpdateError> {
        let digest = self.hasher().digest(key);
        let (old, new) = (old & self.max_value(), new & self.max_value());
        if !self.table.values(self.table.place(digest)).contains(&old) {
            return Err(Absent.into());
        }
        // The new one first, so that nothing is lost if there is no memory for it. (The table may
        // grow.)
        self.table.insert(self.table.place(digest), new)?;
        Ok(self.table.remove(self.table.place(digest), Some(old))?)
    }

    /// Removes one occurrence of `key` with `value`. Bits of `value` above those of
    /// [`max_value`](Self::max_value) are dropped.
    pub fn remove_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), Absent> {
        self.remove_with(self.hasher().digest(key), Some(value & self.max_value()))
    }
}

face!(<T: Table> Identities<T>);
try_inserts!(<T: Table> Identities<T>);
removes!(<T: Removes> Identities<T>);
counts!(<T: Counts> Identities<T>);
