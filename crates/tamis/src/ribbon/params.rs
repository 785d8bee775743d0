//! The parameters of a ribbon filter.

use alloc::vec;
use alloc::vec::Vec;

use super::level::{CODES, Level, ROWS};
use crate::spec::{InvalidParam, Params, as_stored, require};

/// The levels of a filter. Frozen.
pub(super) const LEVELS: usize = 3;
/// Columns are counted in this fraction: 65536 is one in every block. Frozen.
pub(super) const UNIT: u64 = 1 << 16;
/// The most bits of a row: a key has no more to compare. Frozen.
pub(super) const MAX_COLUMNS: u64 = 64;
/// The most rows of a level, and the most keys in the list. Frozen.
pub(super) const MAX_ROWS: u64 = 1 << 40;

/// Layout of a [`Ribbon`](super::Ribbon) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RibbonParams {
    columns: u64,
    rows: [u64; LEVELS],
    listed: u64,
}

impl RibbonParams {
    /// `rows` rows in each level, which have `columns` / 65536 bits on average, and `listed`
    /// digests in the list. `listed` is 0 before the filter is built.
    ///
    /// The rows of a level are a multiple of 64: none, or at least 128.
    pub fn new(columns: u64, rows: [u64; LEVELS], listed: u64) -> Result<Self, InvalidParam> {
        let fits = (1..=MAX_COLUMNS * UNIT).contains(&columns);
        require(fits, "columns", columns, "1 to 2^22, which are 64 columns")?;
        for (name, rows) in Self::NAMES[1..=LEVELS].iter().zip(rows) {
            let fits = rows == 0 || (2 * ROWS..=MAX_ROWS).contains(&rows);
            require(
                fits && rows.is_multiple_of(ROWS),
                name,
                rows,
                "0, or a multiple of 64 from 128 to 2^40",
            )?;
        }
        require(listed <= MAX_ROWS, "listed", listed, "at most 2^40")?;
        Ok(Self { columns, rows, listed })
    }

    /// Columns of the rows, on average, times 65536. Each is a bit of every row.
    pub fn columns(&self) -> u64 {
        self.columns
    }

    /// Rows of each level.
    pub fn rows(&self) -> [u64; LEVELS] {
        self.rows
    }

    /// Digests in the list at the end.
    pub fn listed(&self) -> u64 {
        self.listed
    }

    /// The same layout with `listed` digests in the list.
    pub(super) fn with_listed(self, listed: u64) -> Self {
        Self { listed, ..self }
    }

    /// The same rows with other columns.
    pub(super) fn with_columns(self, columns: u64) -> Self {
        Self { columns, ..self }
    }

    /// The levels, and where they are in the array: first the rows of all, then the codes of all.
    pub(super) fn levels(&self) -> [Level; LEVELS] {
        let (columns, share) = (self.columns / UNIT, self.columns % UNIT);
        let mut at = 0;
        let mut levels = self.rows.map(|rows| {
            let blocks = rows / ROWS;
            // The product is below 2^50.
            let wide = blocks * share / UNIT;
            let level = Level::new(rows, columns as u32, wide, at);
            at += blocks * columns + wide;
            level
        });
        for level in &mut levels {
            level.codes = at;
            at += level.buckets().div_ceil(CODES);
        }
        levels
    }

    /// The words of rows and codes, without the list.
    pub(super) fn fixed_words(&self) -> u64 {
        self.levels().last().map_or(0, |last| last.codes + last.buckets().div_ceil(CODES))
    }

    /// All words: rows, codes and list.
    pub(super) fn words(&self) -> u64 {
        self.fixed_words() + self.listed
    }
}

impl Params for RibbonParams {
    const NAMES: &'static [&'static str] = &["columns", "rows", "second", "third", "listed"];

    fn values(&self) -> Vec<u64> {
        let Self { columns, rows: [rows, second, third], listed } = *self;
        vec![columns, rows, second, third, listed]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let [columns, rows, second, third, listed] = as_stored(values)?;
        Self::new(columns, [rows, second, third], listed)
    }
}
