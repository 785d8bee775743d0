//! The memory of a filter, for a program that works on it elsewhere.

use alloc::vec::Vec;

use super::params::BlockedRankParams;
use super::table::Table;
use super::{BlockedRank, params::Level};
use crate::bits::Words;
use crate::entry::Entry;
use crate::identities::Table as _;
use crate::permutation::multipliers;
use crate::spec::{Invalid, Label};

/// How a level is cut and spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LevelParts {
    /// Words of a block.
    pub words: u32,
    /// Blocks.
    pub blocks: u64,
    /// Locations of a block.
    pub locations: u32,
    /// Cells of a block.
    pub cells: u32,
    /// Bits of a fingerprint.
    pub width: u32,
    /// Locations go behind times this, modulo the number of all.
    pub factor: u64,
}

/// The levels of a filter with these params, those in front first.
pub fn levels(params: &BlockedRankParams) -> Vec<LevelParts> {
    let parts = |level: Level| LevelParts {
        words: level.words(),
        blocks: level.blocks,
        locations: level.locations,
        cells: level.cells,
        width: level.fingerprint,
        factor: multipliers::<1>(1, level.all_locations())[0],
    };
    params.levels().map(parts).collect()
}

/// More entries in the list than this, and more keys than `room`: then a filter grows.
pub fn grows_above(params: &BlockedRankParams) -> (u64, u64) {
    (params.most_listed(), params.room())
}

/// The words of every level and the list at the end, as they are in a file.
pub fn take_apart(filter: &BlockedRank) -> (Vec<Vec<u64>>, Vec<Entry>) {
    let apart = |table: &Table| {
        let (levels, list) = table.parts();
        let levels = levels.into_iter().map(|words| words.as_slice().to_vec()).collect();
        (levels, list.entries().to_vec())
    };
    match filter.table.brought_back() {
        Some(table) => apart(&table),
        None => apart(&filter.table),
    }
}

/// The filter with these words and this list, if they are those of one.
pub fn put_together(
    params: BlockedRankParams,
    label: Label,
    levels: &[Vec<u64>],
    list: Vec<Entry>,
) -> Result<BlockedRank, Invalid> {
    let bits = levels.iter().map(|words| 64 * words.len() as u64);
    if !bits.eq(params.levels().map(|level| level.bits())) {
        return Err(Invalid("levels of another length than the params say"));
    }
    let words = levels.iter().map(|words| Words::from_slice(words));
    let mut words = words.collect::<Result<Vec<_>, _>>().map_err(|_| Invalid("no memory"))?;
    let front = words.remove(0);
    let filter = BlockedRank { label, table: Table::of_parts(params, front, words, list) };
    filter.table.validate()?;
    Ok(filter)
}
