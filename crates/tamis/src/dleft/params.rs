//! The parameters of a d-left table.

use crate::spec::{InvalidParam, params, require};

/// The most subtables.
pub(super) const MAX_SUBTABLES: u32 = 8;
/// The most cells of a bucket: their number takes four bits on the wire.
pub(super) const MAX_CELLS: u32 = 15;
/// The most identities, so that products of them leave room in a word.
pub(super) const MAX_UNIVERSE: u64 = 1 << 62;
/// The most buckets: far beyond any memory, and safe from overflow.
pub(super) const MAX_BUCKETS: u64 = 1 << 44;
/// The widest remainder.
pub(super) const MAX_REMAINDER: u32 = 56;
/// The widest value.
const MAX_VALUE_BITS: u32 = 32;
/// Bits of the counter of a cell.
pub(super) const COUNTER_BITS: u32 = 2;
/// A cell is read as one word.
const MAX_CELL_BITS: u32 = 64;

params! {
    /// How identities are cut, and how many cells there are.
    pub struct DLeftParams {
        /// Subtables, d.
        pub subtables: u32,
        /// Buckets of a subtable, B.
        pub buckets: u64,
        /// Cells of a bucket, c.
        pub cells: u32,
        /// Bits of a remainder, r.
        pub remainder: u32,
        /// Bits of a value.
        pub value: u32,
    }
}

impl DLeftParams {
    /// `subtables` subtables of `buckets` buckets each, `cells` cells a bucket, each with
    /// `remainder` bits of remainder, a counter of two bits and `value` bits of value.
    pub fn new(
        subtables: u32,
        buckets: u64,
        cells: u32,
        remainder: u32,
        value: u32,
    ) -> Result<Self, InvalidParam> {
        let fits = (1..=MAX_SUBTABLES).contains(&subtables);
        require(fits, "subtables", subtables, "1 to 8")?;
        require((1..=MAX_CELLS).contains(&cells), "cells", cells, "1 to 15 a bucket")?;
        let fits = (1..=MAX_REMAINDER).contains(&remainder);
        require(fits, "remainder", remainder, "1 to 56 bits")?;
        let fits = value <= MAX_VALUE_BITS && remainder + COUNTER_BITS + value <= MAX_CELL_BITS;
        require(fits, "value", value, "0 to 32 bits, and a cell of at most 64 bits")?;
        let fits = (1..=(MAX_UNIVERSE >> remainder).min(MAX_BUCKETS)).contains(&buckets);
        require(fits, "buckets", buckets, "1 to 2^44, and at most 2^62 identities")?;
        Ok(Self { subtables, buckets, cells, remainder, value })
    }

    /// Identities that can be told apart, B 2^r.
    pub fn universe(&self) -> u64 {
        self.buckets << self.remainder
    }

    /// Bits of a cell.
    pub fn cell_bits(&self) -> u32 {
        self.remainder + COUNTER_BITS + self.value
    }

    /// Cells of all buckets.
    pub fn all_cells(&self) -> u64 {
        self.all_buckets() * u64::from(self.cells)
    }

    /// Buckets of all subtables.
    pub(super) fn all_buckets(&self) -> u64 {
        u64::from(self.subtables) * self.buckets
    }

    /// Bits of the array of cells.
    pub fn bits(&self) -> u64 {
        self.all_cells() * u64::from(self.cell_bits())
    }

    /// The same identities in twice the buckets.
    pub(super) fn grown(&self) -> Result<Self, InvalidParam> {
        let Self { subtables, buckets, cells, remainder, value } = *self;
        Self::new(subtables, buckets * 2, cells, remainder - 1, value)
    }

    /// The same identities in half the buckets.
    pub(super) fn shrunk(&self) -> Result<Self, InvalidParam> {
        let Self { subtables, buckets, cells, remainder, value } = *self;
        require(buckets.is_multiple_of(2), "buckets", buckets, "an even number, to be halved")?;
        Self::new(subtables, buckets / 2, cells, remainder + 1, value)
    }

    /// The same cells, with remainders and identities that are `dropped` bits shorter.
    pub(super) fn coarser(&self, dropped: u32) -> Result<Self, InvalidParam> {
        let Self { subtables, buckets, cells, remainder, value } = *self;
        let fits = dropped < remainder;
        require(fits, "remainder", remainder, "more bits than are to be dropped")?;
        Self::new(subtables, buckets, cells, remainder - dropped, value)
    }

    /// The same memory, cut into more cells whose remainders are `dropped` bits shorter.
    pub(super) fn recut(&self, dropped: u32) -> Result<Self, InvalidParam> {
        let coarser = self.coarser(dropped)?;
        let cells = self.cells * self.cell_bits() / coarser.cell_bits();
        Ok(Self { cells: cells.min(MAX_CELLS), ..coarser })
    }
}
