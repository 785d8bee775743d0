//! The parameters of a blocked rank-indexed filter: every number of its blocks and of its back
//! table, as they are stored.
//!
//! They are checked as integers, by rules that never change. A planner may choose the back table
//! as it likes (in [`plan`](super::plan)); no reader needs to know how.

use alloc::vec::Vec;

use super::block::Shape;
use super::model;
use crate::rank_indexed::RankParams;
use crate::rank_indexed::model::Layout;
use crate::spec::{InvalidParam, Params, as_stored, narrow};

/// The most identities: they leave room in a word. Frozen.
pub(super) const MAX_UNIVERSE: u64 = 1 << 61;
/// The most blocks: far beyond any memory, and safe from overflow. Frozen.
const MAX_BLOCKS: u64 = 1 << 39;
/// The widest fingerprint: a byte, and eight bits more. Frozen.
pub(super) const MAX_FINGERPRINT: u32 = 16;
/// The widest fingerprint of blocks behind blocks. Frozen.
pub(super) const MAX_SECOND: u32 = 24;
/// How many bits narrower than the fingerprints in front of it those of the packed table may be. A
/// location in front is then spread over at most 2^10 of its chains, which are searched quickly.
/// Frozen.
const NARROWER: u32 = 10;

/// How identities are cut, how many keys are planned for, and the layout of the back table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedRankParams {
    front: Level,
    /// Blocks behind the blocks, if enough keys are expected there.
    second: Option<Level>,
    /// The packed table at the end.
    last: RankParams,
}

/// A table of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) blocks: u64,
    pub(super) locations: u32,
    pub(super) cells: u32,
    pub(super) fingerprint: u32,
    /// Keys planned for.
    pub(super) capacity: u64,
}

impl Level {
    /// The blocks in front, by the stored params.
    pub(super) fn front(values: [u64; 5]) -> Result<Self, InvalidParam> {
        Self::new(values, MAX_FINGERPRINT, "1 to 16 bits")
    }

    /// Blocks behind these ones, by the stored numbers. They must have at least as many
    /// identities, and a location in front must be part of one behind.
    pub(super) fn behind(&self, values: [u64; 5]) -> Result<Self, InvalidParam> {
        let level = Self::new(values, MAX_SECOND, "1 to 24 bits")?;
        let refuse = |name, value, expected| Err(InvalidParam { name, value, expected });
        if level.fingerprint < self.fingerprint {
            return refuse("fingerprint", level.fingerprint.into(), "not narrower than in front");
        }
        if level.universe() < self.universe() {
            return refuse("blocks", level.blocks, "as many identities as in front");
        }
        Ok(level)
    }

    fn new(values: [u64; 5], widest: u32, widths: &'static str) -> Result<Self, InvalidParam> {
        let refuse = |name, value, expected| Err(InvalidParam { name, value, expected });
        let [blocks, shape @ .., capacity] = values;
        let [locations, cells, fingerprint] = shape.map(narrow);
        if !(1..=widest).contains(&fingerprint) {
            return refuse("fingerprint", fingerprint.into(), widths);
        }
        let high = fingerprint.saturating_sub(8);
        let most = if cells == 0 { None } else { Shape::most_locations(cells.min(64), high) };
        let Some(most) = most.filter(|_| cells <= 64) else {
            return refuse("cells", cells.into(), "1 up to what fits into 64 bytes");
        };
        if !(1..=most).contains(&locations) {
            return refuse(
                "locations",
                locations.into(),
                "1 to 64, and what the cells leave of 64 bytes",
            );
        }
        let most = ((MAX_UNIVERSE / u64::from(locations)) >> fingerprint).min(MAX_BLOCKS);
        if !(1..=most).contains(&blocks) {
            return refuse("blocks", blocks, "1 to 2^39, and at most 2^61 identities");
        }
        if capacity == 0 || capacity / 256 > blocks {
            return refuse("capacity", capacity, "1 up to 256 keys a block");
        }
        Ok(Self { blocks, locations, cells, fingerprint, capacity })
    }

    /// The numbers as they are stored.
    pub(super) fn values(&self) -> [u64; 5] {
        let Self { blocks, locations, cells, fingerprint, capacity } = *self;
        [blocks, locations.into(), cells.into(), fingerprint.into(), capacity]
    }

    /// The narrowest fingerprint of a packed table behind.
    fn narrowest_packed(&self) -> u32 {
        self.fingerprint.saturating_sub(NARROWER).max(1)
    }

    /// Checks that a packed table may be behind these blocks.
    fn check_packed(&self, last: &RankParams) -> Result<(), InvalidParam> {
        let Layout { buckets, fingerprint, .. } = last.layout();
        if Some(last.universe()) < self.universe() {
            let expected = "as many identities as in front";
            return Err(InvalidParam { name: "buckets", value: buckets, expected });
        }
        if fingerprint < self.narrowest_packed() {
            let expected = "at most 10 bits narrower than in front";
            return Err(InvalidParam { name: "fingerprint", value: fingerprint.into(), expected });
        }
        Ok(())
    }

    /// Bits of all blocks.
    pub(super) fn bits(&self) -> u64 {
        self.blocks * 512
    }

    /// Identities; `None` if they are too many.
    pub(super) fn universe(&self) -> Option<u64> {
        let per_block = u64::from(self.locations) << self.fingerprint;
        self.blocks.checked_mul(per_block).filter(|&all| all <= MAX_UNIVERSE)
    }
}

impl BlockedRankParams {
    /// These blocks, with this second level and this packed table behind them.
    pub(super) fn laid_out(
        front: Level,
        second: Option<Level>,
        last: RankParams,
    ) -> Result<Self, InvalidParam> {
        second.unwrap_or(front).check_packed(&last).map_err(|fault| of_part("last_", &fault))?;
        Ok(Self { front, second, last })
    }

    /// The narrowest fingerprint that the packed table may have. (It grows by cutting identities
    /// elsewhere.)
    pub(super) fn narrowest_packed(&self) -> u32 {
        self.second.unwrap_or(self.front).narrowest_packed()
    }

    /// The same with another packed table: it grows by itself.
    pub(super) fn with_last(&self, last: RankParams) -> Self {
        Self { last, ..*self }
    }

    /// Blocks.
    pub fn blocks(&self) -> u64 {
        self.front.blocks
    }

    /// Chain locations of a block, L.
    pub fn locations(&self) -> u32 {
        self.front.locations
    }

    /// Cells of a block, Z.
    pub fn cells(&self) -> u32 {
        self.front.cells
    }

    /// Bits of a fingerprint.
    pub fn fingerprint(&self) -> u32 {
        self.front.fingerprint
    }

    /// Keys planned for.
    pub fn capacity(&self) -> u64 {
        self.front.capacity
    }

    /// The blocks behind the blocks, with the packed table behind them.
    pub(super) fn second(&self) -> Option<Self> {
        self.second.map(|front| Self { front, second: None, last: self.last })
    }

    /// The layout of the packed table at the end.
    pub(super) fn last(&self) -> RankParams {
        self.last
    }

    /// Bits of the back table.
    pub(crate) fn back_bits(&self) -> u64 {
        self.second.map_or(0, |level| level.bits()) + self.last.layout().bits()
    }

    /// The blocks double when the packed table holds more than this, because then the back table
    /// holds too much, if there are keys enough to fill more blocks.
    pub(super) fn most_packed(&self) -> u64 {
        let behind = self.second.map_or(0, |level| level.blocks * u64::from(level.cells));
        model::most_in_back(self.front.capacity).saturating_sub(behind).max(16)
    }

    /// The fewest keys for which the blocks double.
    pub(super) fn room(&self) -> u64 {
        self.front.capacity.max(self.front.blocks * u64::from(self.front.cells))
    }

    /// Chain locations of all blocks.
    pub(super) fn all_locations(&self) -> u64 {
        self.front.blocks * u64::from(self.front.locations)
    }

    /// Identities that can be told apart, U.
    pub fn universe(&self) -> u64 {
        self.all_locations() << self.front.fingerprint
    }

    pub(super) fn shape(&self) -> Shape {
        let Level { cells, locations, fingerprint, .. } = self.front;
        Shape::new(cells, locations, fingerprint.saturating_sub(8))
    }

    /// Bits of all blocks.
    pub fn bits(&self) -> u64 {
        self.front.bits()
    }

    /// The same identities in twice the blocks.
    pub(super) fn grown(&self) -> Result<Self, InvalidParam> {
        let Level { blocks, locations, cells, fingerprint, capacity } = self.front;
        Self::new(blocks * 2, locations, cells, fingerprint - 1, capacity.saturating_mul(2))
    }

    /// The same identities in half the blocks.
    pub(super) fn shrunk(&self) -> Result<Self, InvalidParam> {
        let Level { blocks, locations, cells, fingerprint, capacity } = self.front;
        if !blocks.is_multiple_of(2) {
            let expected = "an even number, to be halved";
            return Err(InvalidParam { name: "blocks", value: blocks, expected });
        }
        Self::new(blocks / 2, locations, cells, fingerprint + 1, capacity.div_ceil(2))
    }

    /// The same blocks, with fingerprints and identities that are `dropped` bits shorter.
    pub(super) fn coarser(&self, dropped: u32) -> Result<Self, InvalidParam> {
        let Level { blocks, locations, cells, fingerprint, capacity } = self.front;
        if dropped == 0 {
            return Ok(*self);
        }
        if dropped >= fingerprint {
            let expected = "more bits than are to be dropped";
            return Err(InvalidParam { name: "fingerprint", value: fingerprint.into(), expected });
        }
        Self::new(blocks, locations, cells, fingerprint - dropped, capacity)
    }
}

impl Params for BlockedRankParams {
    const NAMES: &'static [&'static str] = &[
        "blocks",
        "locations",
        "cells",
        "fingerprint",
        "capacity",
        "second_blocks",
        "second_locations",
        "second_cells",
        "second_fingerprint",
        "second_capacity",
        "last_buckets",
        "last_locations",
        "last_fingerprint",
        "last_capacity",
        "last_groups",
        "last_level1",
        "last_level2",
        "last_level3",
        "last_second",
        "last_third",
    ];

    fn values(&self) -> Vec<u64> {
        let mut last = self.last.values();
        last.remove(EXTRA);
        let mut values = self.front.values().to_vec();
        values.extend(self.second.map_or([0; 5], |level| level.values()));
        values.extend(last);
        values
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let values: [u64; 20] = as_stored(values)?;
        let front = Level::front(as_stored(&values[..5])?)?;
        let second: [u64; 5] = as_stored(&values[5..10])?;
        let second = (second != [0; 5]).then(|| front.behind(second)).transpose();
        let mut last = values[10..].to_vec();
        last.insert(EXTRA, 0);
        let last = RankParams::from_values(&last).map_err(|fault| of_part("last_", &fault))?;
        Self::laid_out(front, second.map_err(|fault| of_part("second_", &fault))?, last)
    }
}

/// The param of a packed table that is left out here, because there are neither counters nor
/// values.
const EXTRA: usize = 3;

/// The error of a param of one part, with its name among all params.
fn of_part(part: &str, fault: &InvalidParam) -> InvalidParam {
    let names = BlockedRankParams::NAMES.iter();
    let name = names.copied().find(|name| name.strip_prefix(part) == Some(fault.name));
    InvalidParam { name: name.unwrap_or(fault.name), ..*fault }
}
