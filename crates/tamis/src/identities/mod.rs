//! The face of all kinds that keep an identity of every key: what they share, over the table that makes each of them.
//!
//! A key is kept as its *identity*, an integer in [0, U), U being the *universe*. A table holds a multiset of identities, with small values
//! where it has room for them. Nothing of an identity is lost, so that tables can be listed, merged, grown and compared without
//! the keys, and two tables with the same identities have the same content however they are laid out.

mod filter;

use alloc::vec::Vec;

use crate::bits::{AHEAD, OutOfMemory};
use crate::digest::Digest;
use crate::entry::Entry;
use crate::filter::{Count, Filter, Remove};
use crate::key::Key;
use crate::spec::{
    Absent, Full, Goal, Invalid, InvalidParam, Kind, Label, Lines, Operation, Params, PlanError,
    Prediction, ResizeError, WireError,
};
use crate::wire::{Frame, Payload};

/// The lines that a question reads are predicted to within a twentieth (tests: `a_chosen_plan_keeps_its_promises`).
pub(crate) const MARGINS: [f64; 2] = [1.0, 1.05];

/// What a table can do that tells copies of an identity apart from one.
pub(crate) const ALL: &[Operation] =
    &[Operation::Insert, Operation::Remove, Operation::Count, Operation::Merge, Operation::Grow];

/// A multiset of identities in memory, of one kind. What the methods of a filter promise holds for those of its table.
pub trait Table: Clone + core::fmt::Debug {
    /// The kind.
    const KIND: Kind;
    /// What it can do.
    const CAN: &'static [Operation];
    /// The param that says how many bits of value a key has, if it can have any.
    const VALUES: Option<&'static str> = None;
    /// Why one would take it, in a sentence.
    const REASON: &'static str;
    /// See [`Stored::MARGINS`].
    const MARGINS: [f64; 2];
    /// Whether equal identities are kept once.
    const IS_SET: bool = false;
    /// Whether [`sections`](Self::sections) can be shorter than the packed form: they are where many identities are equal.
    const TRIMS: bool = true;
    /// The layout.
    type Params: Params + Copy;
    /// Where an identity belongs.
    type Place: Copy;

    /// The layout with the least memory for a goal.
    fn least(goal: &Goal) -> Result<Self::Params, PlanError>;
    /// What a table with this layout will do.
    fn predict(params: &Self::Params, keys: u64) -> Prediction;
    /// How that comes about.
    fn explain(params: &Self::Params, keys: u64, out: &mut Lines);
    /// U.
    fn universe(params: &Self::Params) -> u64;
    /// Bits of a value.
    fn value_bits(_: &Self::Params) -> u32 {
        0
    }
    /// Names and values of all that decides answers beside hash, seed and identities: the universe first.
    fn content_params(params: &Self::Params) -> Vec<(&'static str, u64)>;
    /// The layout as this kind has it, if there is one.
    fn checked(params: Self::Params) -> Result<Self::Params, InvalidParam> {
        Ok(params)
    }

    /// An empty table.
    fn new(params: Self::Params) -> Result<Self, OutOfMemory>;
    /// Every number of the layout as it is now.
    fn params(&self) -> Self::Params;
    /// Where a digest belongs.
    fn place(&self, digest: Digest) -> Self::Place;
    /// Starts fetching what a question for a digest reads.
    fn prefetch(&self, digest: Digest);
    /// Whether an identity is in.
    fn contains(&self, place: Self::Place) -> bool;
    /// How often it is in.
    fn count(&self, place: Self::Place) -> u64;
    /// Its values, smallest first.
    fn values(&self, _: Self::Place) -> Vec<u64> {
        Vec::new()
    }
    /// Inserts an identity; true if it was not in before.
    fn insert(&mut self, place: Self::Place, value: u64) -> Result<bool, Full>;
    /// Removes one, with this value if one is given; otherwise of several values the smallest.
    fn remove(&mut self, place: Self::Place, value: Option<u64>) -> Result<(), Absent>;
    /// Adds `count` copies.
    fn add(&mut self, entry: Entry) -> Result<(), Full>;
    /// Takes `count` copies away; on an error some are gone.
    fn take(&mut self, entry: Entry) -> Result<(), Absent>;
    /// All that is in, in order of identity and value.
    fn for_each_entry(&self, take: &mut dyn FnMut(Entry));
    /// Different identities.
    fn distinct(&self) -> u64 {
        let (mut distinct, mut last) = (0, None);
        self.for_each_entry(&mut |entry| {
            distinct += u64::from(last != Some(entry.identity));
            last = Some(entry.identity);
        });
        distinct
    }
    /// Removes all.
    fn clear(&mut self);
    /// Checks every invariant.
    fn validate(&self) -> Result<(), Invalid>;
    /// Bits of heap memory held.
    fn footprint(&self) -> u64;
    /// Cells in use.
    fn used(&self) -> u64;
    /// The share of the planned cells that is in use.
    fn fill(&self) -> f64;
    /// Entries that found no regular place.
    fn overflow(&self) -> u64;
    /// Distinct cache lines that a question for this place reads.
    fn lines_to_contain(&self, place: Self::Place) -> u32;
    /// Distinct cache lines that an insertion at this place touches.
    fn lines_to_insert(&self, place: Self::Place) -> u32;

    /// The same identities, laid out for twice as many keys.
    fn grown(&self) -> Result<Self, ResizeError>;
    /// The same identities, laid out for half as many keys.
    fn shrunk(&self) -> Result<Self, ResizeError>;
    /// The content of both: of this table after its identities lost `dropped` low bits, of the other after `other_dropped`. `None` if there
    /// is no such layout.
    fn with(&self, dropped: u32, other: &Self, other_dropped: u32) -> Option<Result<Self, Full>>;

    /// The sections of the form in which the table lies in memory, or nearly so.
    fn sections(&self) -> Vec<Payload<'_>>;
    /// The table from these sections.
    fn decode(frame: &mut Frame<'_>, params: Self::Params) -> Result<Self, WireError>;
    /// The table from all its entries, in order, within what reading may take.
    fn unpack(
        frame: &mut Frame<'_>,
        params: Self::Params,
        entries: Vec<Entry>,
    ) -> Result<Self, WireError>;
    /// Bytes of memory that the packed form stands for.
    fn decoded_bytes(params: &Self::Params) -> u64;
    /// The sections that a reader of the packed form would write.
    fn trimmed(&self) -> Vec<Payload<'_>> {
        self.sections()
    }

    /// Answers for many digests; both slices are as long.
    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        for (digests, answers) in digests.chunks(AHEAD).zip(answers.chunks_mut(AHEAD)) {
            for &digest in digests {
                self.prefetch(digest);
            }
            for (answer, &digest) in answers.iter_mut().zip(digests) {
                *answer = self.contains(self.place(digest));
            }
        }
    }

    /// Inserts many digests; on an error says how many are in.
    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), (usize, Full)> {
        for (chunk, digests) in digests.chunks(AHEAD).enumerate() {
            for &digest in digests {
                self.prefetch(digest);
            }
            for (at, &digest) in digests.iter().enumerate() {
                self.insert(self.place(digest), 0).map_err(|full| (chunk * AHEAD + at, full))?;
            }
        }
        Ok(())
    }

    /// Removes one occurrence for each of many digests; says how many were in.
    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        let mut removed = 0;
        for digests in digests.chunks(AHEAD) {
            for &digest in digests {
                self.prefetch(digest);
            }
            for &digest in digests {
                removed += u64::from(self.remove(self.place(digest), None).is_ok());
            }
        }
        removed
    }

    /// Whether it is fuller than it should be, whatever was planned.
    fn is_crowded(&self) -> bool {
        false
    }

    /// The filter as one that gives keys up, if it does.
    fn as_remove(_: &mut Identities<Self>) -> Option<&mut dyn Remove> {
        None
    }

    /// The filter as one that counts, if it does.
    fn as_count(_: &Identities<Self>) -> Option<&dyn Count> {
        None
    }
}

/// A table that gives keys up.
pub trait Removes: Table {}

/// A table that knows how often a key is in.
pub trait Counts: Table {}

/// A table that keeps a value for each key.
pub trait Carries: Table {}

/// A filter that keeps the identity of every key.
#[derive(Clone, Debug)]
pub struct Identities<T> {
    pub(crate) label: Label,
    pub(crate) table: T,
}

impl<T: Table> Identities<T> {
    /// Cells in use.
    pub fn used(&self) -> u64 {
        self.table.used()
    }

    /// How many distinct keys are in, estimated from the distinct identities. Infinite when all are in.
    pub fn estimated_keys(&self) -> f64 {
        let universe = T::universe(&self.table.params()) as f64;
        libm::log1p(-(self.table.distinct() as f64) / universe) / libm::log1p(-1.0 / universe)
    }

    /// All that is in, in order of identity and value: enough to build the filter anew, without the keys.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.table.for_each_entry(&mut |entry| entries.push(entry));
        entries
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
    /// The largest value that a cell carries.
    pub fn max_value(&self) -> u64 {
        (1 << T::value_bits(&self.table.params())) - 1
    }

    /// Inserts a key with a value, of which bits beyond the width of a cell are dropped. A key that is in already then has two
    /// values: use [`update`](Self::update) to change one.
    pub fn insert_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<bool, Full> {
        self.insert_with(self.hasher().digest(key), value & self.max_value())
    }

    /// The values of a key, smallest first.
    ///
    /// Two keys that share an identity (with probability `rate`) cannot be told apart: both then have both values.
    /// So a key that is in has its own value among these; an absent one has none, or those of other keys.
    pub fn values<K: Key + ?Sized>(&self, key: &K) -> Vec<u64> {
        self.table.values(self.table.place(self.hasher().digest(key)))
    }

    /// The smallest value of a key; see [`values`](Self::values).
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.values(key).first().copied()
    }

    /// Changes the value of one occurrence of a key from `old` to `new`. The old value picks the entry, so that a key that shares
    /// the identity keeps its own.
    pub fn update<K: Key + ?Sized>(&mut self, key: &K, old: u64, new: u64) -> Result<(), Absent> {
        let place = self.table.place(self.hasher().digest(key));
        let (old, new) = (old & self.max_value(), new & self.max_value());
        self.table.remove(place, Some(old))?;
        // Something has just left its place, so this cannot fail for want of memory but where nothing could be allocated at
        // all; then the old entry goes back where it was.
        if self.table.insert(place, new).is_err() {
            let _ = self.table.insert(place, old);
            return Err(Absent);
        }
        Ok(())
    }

    /// Removes one occurrence of a key with this value, of which bits beyond the width of a cell are dropped.
    pub fn remove_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), Absent> {
        self.remove_with(self.hasher().digest(key), Some(value & self.max_value()))
    }
}

face!(<T: Table> Identities<T>);
try_inserts!(<T: Table> Identities<T>);
removes!(<T: Removes> Identities<T>);
counts!(<T: Counts> Identities<T>);
