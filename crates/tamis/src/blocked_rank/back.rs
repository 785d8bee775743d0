//! The back table: more blocks, with wider fingerprints, or at the end a packed table.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use super::params::BlockedRankParams;
use super::table::Table;
use crate::bits::OutOfMemory;
use crate::entry::{Entry, Overflow};
use crate::identities::Table as _;
use crate::rank_indexed::{Multiset, table};
use crate::spec::{Absent, Full, Invalid};

/// The packed table at the end.
type Packed = table::Table<Multiset>;

/// A multiset of identities.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for a filter")]
pub(super) enum Back {
    /// Quick: a question reads one line here too.
    Blocks(Box<Table>),
    /// Small, and counts to any number.
    Packed(Packed),
}

/// The same expression for both variants.
macro_rules! both {
    ($back:expr, $table:ident => $then:expr) => {
        match $back {
            Back::Blocks($table) => $then,
            Back::Packed($table) => $then,
        }
    };
}

impl Back {
    /// The bits that blocks behind blocks take beside their words.
    pub(super) const OWN_BITS: u64 = 8 * size_of::<Table>() as u64;

    /// The empty back table of blocks with these params.
    pub(super) fn new(params: &BlockedRankParams) -> Result<Self, OutOfMemory> {
        Ok(match params.second() {
            Some(second) => Self::Blocks(Box::new(Table::behind(second)?)),
            None => Self::of_packed(Packed::new(params.last())?, params),
        })
    }

    /// A packed table as the back table of blocks with these params; growing keeps it legal there.
    pub(super) fn of_packed(table: Packed, params: &BlockedRankParams) -> Self {
        Self::Packed(table.no_narrower_than(params.narrowest_packed()))
    }

    /// Lays entries, which must be in order, out in an empty back table.
    pub(super) fn lay_out(&mut self, entries: Vec<Entry>) -> Result<(), Full> {
        match self {
            Self::Blocks(table) => table.lay_out(entries),
            Self::Packed(table) => table.lay_out(&entries),
        }
    }

    /// Makes room in the packed table for all that it holds, and `more`.
    pub(super) fn settle(&mut self, more: u64) {
        match self {
            Self::Blocks(table) => table.back_mut().settle(more),
            Self::Packed(table) => table.settle(more),
        }
    }

    /// The blocks, if there are any, and the packed table at the end.
    pub(super) fn parts(&self) -> (Option<&Table>, &Packed) {
        match self {
            Self::Blocks(table) => (Some(table), table.back().parts().1),
            Self::Packed(table) => (None, table),
        }
    }

    /// The overflow of the packed table, to write while a table is read.
    pub(super) fn overflow_mut(&mut self) -> &mut Overflow {
        match self {
            Self::Blocks(table) => table.back_mut().overflow_mut(),
            Self::Packed(table) => table.overflow_mut(),
        }
    }

    /// Cells and entries.
    pub(super) fn used(&self) -> u64 {
        both!(self, table => table.used())
    }

    /// Cells and entries of the packed table.
    pub(super) fn packed(&self) -> u64 {
        match self {
            Self::Blocks(table) => table.packed(),
            Self::Packed(table) => table.used(),
        }
    }

    pub(super) fn footprint(&self) -> u64 {
        match self {
            Self::Blocks(table) => table.footprint() + Self::OWN_BITS,
            Self::Packed(table) => table.footprint(),
        }
    }

    pub(super) fn clear(&mut self) {
        both!(self, table => table.clear());
    }

    pub(super) fn make_portable(&mut self) {
        if let Self::Blocks(table) = self {
            table.make_portable();
        }
    }

    pub(super) fn prefetch(&self, identity: u64) {
        both!(self, table => table.prefetch_place(table.place_of(identity)));
    }

    pub(super) fn contains(&self, identity: u64) -> bool {
        both!(self, table => table.contains(table.place_of(identity)))
    }

    pub(super) fn count(&self, identity: u64) -> u64 {
        both!(self, table => table.count(table.place_of(identity)))
    }

    pub(super) fn insert(&mut self, identity: u64) -> Result<bool, Full> {
        both!(self, table => table.insert(table.place_of(identity), 0))
    }

    pub(super) fn remove(&mut self, identity: u64) -> Result<(), Absent> {
        both!(self, table => table.remove(table.place_of(identity), None))
    }

    /// Adds `entry.count` copies.
    pub(super) fn add(&mut self, entry: Entry) -> Result<(), Full> {
        both!(self, table => table.add(entry))
    }

    /// Removes `entry.count` copies; on an error some are removed.
    pub(super) fn take(&mut self, entry: Entry) -> Result<(), Absent> {
        both!(self, table => table.take(entry))
    }

    /// The sum of the counts of all identities in `range`, which is a location of the blocks in
    /// front.
    pub(super) fn count_between(&self, range: Range<u64>) -> u64 {
        both!(self, table => table.count_between(range))
    }

    /// Removes all identities of `range`, which is a location of the blocks in front, if they fit
    /// into `gone`. Writes their fingerprints there, and returns how many.
    pub(super) fn remove_all(&mut self, range: Range<u64>, gone: &mut [u32]) -> Option<usize> {
        both!(self, table => table.remove_all(range, gone))
    }

    /// All entries, in order.
    pub(super) fn for_each_entry(&self, take: &mut dyn FnMut(Entry)) {
        both!(self, table => table.for_each_entry(take));
    }

    pub(super) fn validate(&self) -> Result<(), Invalid> {
        both!(self, table => table.validate())
    }

    pub(super) fn lines_to_contain(&self, identity: u64) -> u32 {
        both!(self, table => table.lines_to_contain(table.place_of(identity)))
    }

    pub(super) fn lines_to_insert(&self, identity: u64) -> u32 {
        both!(self, table => table.lines_to_insert(table.place_of(identity)))
    }
}
