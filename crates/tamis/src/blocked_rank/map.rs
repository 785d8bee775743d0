//! Blocks whose cells hold a fingerprint and a small value.
//!
//! An identity with its value, `identity << bits | value`, is an identity of wider blocks: the
//! value is the lowest bits of the fingerprint. So the cells of one key lie side by side in one
//! run, in order of value, and all that blocks do with identities they do with these pairs. A
//! question looks for any cell of the run whose upper bits are those of the key.

use alloc::vec::Vec;
use core::iter;

use super::params::{BlockedMapParams, check_value};
use super::place::Place;
use super::table::Table;
use super::{plan, sections};
use crate::bits::{OutOfMemory, low};
use crate::digest::Digest;
use crate::entry::{Entry, Overflow};
use crate::filter::Remove;
use crate::identities::{self, Carries, Identities, Removes, Table as _};
use crate::spec::{
    Absent, Full, Goal, Invalid, Kind, Lines, Operation, PlanError, Prediction, ResizeError,
    WireError, narrow,
};
use crate::wire::{Frame, Payload};

/// Bits of a value, unless others are asked for.
const DEFAULT_VALUE: u32 = 8;
/// A value is listed for a key at most this often. (Forged bytes may claim any count.)
const MOST_COPIES: u64 = 16;

/// A table of pairs of identity and value.
#[derive(Clone, Debug)]
pub struct MapTable {
    pairs: Table,
}

impl MapTable {
    /// Bits of a value.
    fn value(&self) -> u32 {
        self.pairs.params().front.value
    }
}

/// An entry as one of pairs, with values of `bits` bits.
fn pair(entry: Entry, bits: u32) -> Entry {
    let Entry { identity, value, count } = entry;
    Entry { identity: identity << bits | value, value: 0, count }
}

/// What is the same for pairs.
macro_rules! relay {
    ($(fn $name:ident($self:ident: $Self:ty $(, $arg:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        $(#[inline]
        fn $name($self: $Self $(, $arg: $type)*) $(-> $result)? {
            $self.pairs.$name($($arg),*)
        })*
    };
}

impl identities::Table for MapTable {
    const KIND: Kind = Kind::BlockedMap;
    const CAN: &'static [Operation] =
        &[Operation::Insert, Operation::Remove, Operation::Merge, Operation::Grow];
    const VALUES: Option<&'static str> = Some("value");
    const REASON: &'static str =
        "a small value for every key; keys can be removed, and most lookups read one block";
    const MARGINS: [f64; 2] = Table::MARGINS;
    const TRIMS: bool = Table::TRIMS;
    type Params = BlockedMapParams;
    /// That of the pair with the value 0.
    type Place = Place;

    fn least(goal: &Goal) -> Result<BlockedMapParams, PlanError> {
        let [block, blocks, locations, cells, fingerprint] = plan::FIXED;
        let names = [block, blocks, locations, cells, fingerprint, "value"];
        let [fixed @ .., value] = goal.fixed_params::<6>(Self::KIND.name(), names)?;
        let value = value.map_or(DEFAULT_VALUE, narrow);
        check_value(value)?;
        plan::plan(goal, Self::KIND, fixed, value).map(BlockedMapParams)
    }

    fn predict(params: &BlockedMapParams, keys: u64) -> Prediction {
        plan::predict(&params.0, keys)
    }

    fn planned_bits(params: &BlockedMapParams) -> u64 {
        Table::planned_bits(&params.0)
    }

    fn explain(params: &BlockedMapParams, n: u64, out: &mut Lines) {
        Table::explain(&params.0, n, out);
        out.add("value", format_args!("{} bits in every cell", params.value()));
    }

    fn universe(params: &BlockedMapParams) -> u64 {
        params.universe()
    }

    fn value_bits(params: &BlockedMapParams) -> u32 {
        params.value()
    }

    fn new(params: BlockedMapParams) -> Result<Self, OutOfMemory> {
        Table::new(params.0).map(|pairs| Self { pairs })
    }

    fn params(&self) -> BlockedMapParams {
        BlockedMapParams(self.pairs.params())
    }

    relay! {
        fn place(self: &Self, digest: Digest) -> Place;
        fn prefetch(self: &Self, digest: Digest);
        fn contains(self: &Self, place: Place) -> bool;
        fn count(self: &Self, place: Place) -> u64;
        fn clear(self: &mut Self);
        fn validate(self: &Self) -> Result<(), Invalid>;
        fn footprint(self: &Self) -> u64;
        fn used(self: &Self) -> u64;
        fn fill(self: &Self) -> f64;
        fn overflow(self: &Self) -> u64;
        fn overflow_mut(self: &mut Self) -> &mut Overflow;
        fn lines_to_contain(self: &Self, place: Place) -> u32;
        fn lines_to_insert(self: &Self, place: Place) -> u32;
        fn sections(self: &Self) -> Vec<Payload<'_>>;
        fn contains_many(self: &Self, digests: &[Digest], answers: &mut [bool]);
        fn insert_many(self: &mut Self, digests: &[Digest]) -> Result<(), (usize, Full)>;
    }

    fn values(&self, place: Place) -> Vec<u64> {
        let mut values = Vec::new();
        self.pairs.for_each_value(place, &mut |value, count| {
            let listed = values.iter().rev().take_while(|&&other| other == value).count() as u64;
            let more = count.min(MOST_COPIES.saturating_sub(listed));
            values.extend(iter::repeat_n(value, more as usize));
        });
        values
    }

    fn insert(&mut self, place: Place, value: u64) -> Result<bool, Full> {
        // Other pairs of the key may have another value.
        let is_new = !self.contains(place);
        self.pairs.insert(place.plus(value), 0).map(|_| is_new)
    }

    fn remove(&mut self, place: Place, value: Option<u64>) -> Result<(), Absent> {
        let value = value.or_else(|| {
            let mut least = None;
            self.pairs.for_each_value(place, &mut |value, _| least = least.or(Some(value)));
            least
        });
        self.pairs.remove(place.plus(value.ok_or(Absent)?), None)
    }

    fn add(&mut self, entry: Entry) -> Result<(), Full> {
        self.pairs.add(pair(entry, self.value()))
    }

    fn take(&mut self, entry: Entry) -> Result<(), Absent> {
        self.pairs.take(pair(entry, self.value()))
    }

    fn list_from(&self, part: u64, entries: &mut Vec<Entry>) -> Option<u64> {
        let from = entries.len();
        let next = self.pairs.list_from(part, entries);
        let bits = self.value();
        for entry in &mut entries[from..] {
            (entry.identity, entry.value) = (entry.identity >> bits, entry.identity & low(bits));
        }
        next
    }

    fn lay_out(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), Full> {
        let bits = self.value();
        self.pairs.lay_out(entries.map(|entry| pair(entry, bits)))
    }

    fn grown(&self) -> Result<Self, ResizeError> {
        self.pairs.grown().map(|pairs| Self { pairs })
    }

    fn shrunk(&self) -> Result<Self, ResizeError> {
        self.pairs.shrunk().map(|pairs| Self { pairs })
    }

    fn with(&self, dropped: u32, other: &Self, other_dropped: u32) -> Option<Result<Self, Full>> {
        let params = self.pairs.params().coarser(dropped).ok()?;
        let params = params.grown_to(self.used().saturating_add(other.used()));
        Some(self.joined(BlockedMapParams(params), dropped, other, other_dropped))
    }

    fn decode(frame: &mut Frame<'_>, params: BlockedMapParams) -> Result<Self, WireError> {
        sections::decode(frame, params.0).map(|pairs| Self { pairs })
    }

    fn decoded_bytes(params: &BlockedMapParams) -> u64 {
        Table::decoded_bytes(&params.0)
    }

    fn as_remove(filter: &mut Identities<Self>) -> Option<&mut dyn Remove> {
        Some(filter)
    }
}

impl Removes for MapTable {}
impl Carries for MapTable {}
