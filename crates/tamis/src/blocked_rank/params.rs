//! The parameters of a blocked rank-indexed filter, and the back table that follows from them.

use alloc::vec::Vec;

use super::block::Shape;
use super::model;
use crate::filter::{InvalidParam, Params};
use crate::rank_indexed::RankParams;
use crate::rank_indexed::model::{Layout, rate_of};
use crate::rank_indexed::optimise::{Demand, optimise};

/// The most identities: so that they leave room in a word.
pub(super) const MAX_UNIVERSE: u64 = 1 << 61;
/// The most blocks: far beyond any memory, and safe from overflow.
const MAX_BLOCKS: u64 = 1 << 39;
/// The widest fingerprint: a byte, and eight bits more.
pub(super) const MAX_FINGERPRINT: u32 = 16;
/// The widest fingerprint of blocks behind blocks.
const MAX_SECOND: u32 = 24;
/// How many bits narrower than the fingerprints in front those of a packed table may be, if it came with its bytes.
const NARROWER: u32 = 10;
/// There are blocks behind the blocks if so many keys are expected there: fewer fit into the packed table's few lines.
const SECOND_FROM: f64 = 256.0;
/// What blocks behind blocks spill is up to so many times what the model of clumps says: measured from 5e4 to 3e6 keys.
const CLUMPS: f64 = 1.2;

/// How identities are cut, and how many keys are planned for.
///
/// The layout of the back table follows from these, the same on every machine, unless it came with bytes that are used in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedRankParams {
    front: Level,
    /// Blocks behind the blocks, if enough is expected there.
    second: Option<Level>,
    /// The packed table at the end.
    last: RankParams,
}

/// A table of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    blocks: u64,
    locations: u32,
    cells: u32,
    fingerprint: u32,
    /// Keys planned for.
    capacity: u64,
}

impl Level {
    /// The blocks in front, by the stored params.
    pub(super) fn front(values: [u64; 5]) -> Result<Self, InvalidParam> {
        Self::new(values, MAX_FINGERPRINT, "1 to 16 bits")
    }

    /// Blocks behind these ones, by the stored numbers: as many identities at least, and a location in front is part of one behind.
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
        let narrow = |at: usize| u32::try_from(values[at]).unwrap_or(u32::MAX);
        let [blocks, .., capacity] = values;
        let (locations, cells, fingerprint) = (narrow(1), narrow(2), narrow(3));
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

    /// Whether a packed table may lie behind: it has as many identities, and a location in front is not spread over so many of its
    /// chains that looking through them takes long. (Planned ones have a few at most.)
    pub(super) fn check_packed(&self, last: &RankParams) -> Result<(), InvalidParam> {
        let Layout { buckets, fingerprint, .. } = last.layout();
        if Some(last.universe()) < self.universe() {
            let expected = "as many identities as in front";
            return Err(InvalidParam { name: "buckets", value: buckets, expected });
        }
        if fingerprint + NARROWER < self.fingerprint {
            let expected = "at most 10 bits narrower than in front";
            return Err(InvalidParam { name: "fingerprint", value: fingerprint.into(), expected });
        }
        Ok(())
    }

    /// Bits of all blocks.
    pub(super) fn bits(&self) -> u64 {
        self.blocks * 512
    }

    /// Blocks for what these ones are expected to spill; `None` if that is little, or fingerprints would be too wide.
    fn second(&self) -> Option<Self> {
        let expected = Some(self.spilled(1.0)).filter(|&spilled| spilled >= SECOND_FROM)?;
        // There is more behind if they are not enough.
        let capacity = model::with_margin(expected, 3.0);
        let universe = self.universe()?;
        // Not narrower, so that a location in front is part of one behind.
        (self.fingerprint..=MAX_SECOND).find_map(|fingerprint| {
            let high = fingerprint.saturating_sub(8);
            // About as many locations as cells, or fewer: as many identities as in front, or some blocks would have nothing to do.
            let cells = 505 / (10 + high);
            let blocks = (capacity * 8).div_ceil(u64::from(cells) * 7);
            let locations = universe / blocks.checked_mul(1 << fingerprint)?;
            let most = Shape::most_locations(cells, high)?;
            let locations = u32::try_from(locations).ok().filter(|at| (1..=most).contains(at))?;
            let blocks = universe.div_ceil(u64::from(locations) << fingerprint);
            let level = Self { blocks, locations, cells, fingerprint, capacity };
            level.universe().is_some().then_some(level)
        })
    }

    /// Identities; `None` if they are too many.
    fn universe(&self) -> Option<u64> {
        let per_block = u64::from(self.locations) << self.fingerprint;
        self.blocks.checked_mul(per_block).filter(|&all| all <= MAX_UNIVERSE)
    }

    /// Keys that are expected to find no room, if they come in clumps of this size: then there are fewer, and fewer fit.
    fn spilled(&self, clump: f64) -> f64 {
        let Self { blocks, locations, cells, capacity, .. } = *self;
        model::expected_back((blocks, locations, cells), capacity, clump)
    }

    /// How many keys come together where these blocks spill them: a chain leaves as a whole, and more so a long one.
    fn clump(&self) -> f64 {
        1.0 + self.capacity as f64 / (self.blocks as f64 * f64::from(self.locations))
    }
}

impl BlockedRankParams {
    /// `blocks` blocks of 64 bytes with `locations` chain locations, `cells` cells and fingerprints of `fingerprint` bits,
    /// and a back table for what `capacity` keys leave without a cell.
    pub fn new(
        blocks: u64,
        locations: u32,
        cells: u32,
        fingerprint: u32,
        capacity: u64,
    ) -> Result<Self, InvalidParam> {
        let values = [blocks, locations.into(), cells.into(), fingerprint.into(), capacity];
        Self::of(Level::front(values)?)
    }

    /// The params of the blocks in front, with a back table by the rules.
    pub(super) fn of(front: Level) -> Result<Self, InvalidParam> {
        let second = front.second();
        let (universe, spilled) = match second {
            Some(level) => (level.universe(), CLUMPS * level.spilled(front.clump())),
            None => (front.universe(), front.spilled(1.0)),
        };
        let (universe, spilled) =
            (universe.unwrap_or(MAX_UNIVERSE), model::with_margin(spilled, 8.0));
        // The least table whose identities are as many as those in front of it.
        let layout = optimise(&Demand::new(spilled), rate_of(universe as f64, spilled));
        let Some(Ok(last)) = layout.map(|layout| RankParams::of(&layout, spilled)) else {
            let (value, expected) = (front.capacity, "what a back table can be laid out for");
            return Err(InvalidParam { name: "capacity", value, expected });
        };
        Ok(Self { front, second, last })
    }

    /// The params of a table whose back table came with it, and was checked against it.
    pub(super) fn laid_out(front: Level, second: Option<Level>, last: RankParams) -> Self {
        Self { front, second, last }
    }

    /// The blocks, without what lies behind them.
    pub(super) fn front(&self) -> Level {
        self.front
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

    /// Bits of all that lies behind the blocks.
    pub(crate) fn back_bits(&self) -> u64 {
        self.second.map_or(0, |level| level.bits()) + self.last.layout().bits()
    }

    /// The blocks double when the packed table holds more, which is when all that lies behind the blocks has become too much.
    pub(super) fn most_packed(&self) -> u64 {
        let behind = self.second.map_or(0, |level| level.blocks * u64::from(level.cells));
        model::most_in_back(self.front.capacity).saturating_sub(behind).max(16)
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

    /// What decides answers beside hash, seed and content.
    pub(crate) fn content_params(&self) -> [(&'static str, u64); 1] {
        [("universe", self.universe())]
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

    /// The same blocks with fingerprints, and identities, so many bits shorter.
    pub(super) fn coarser(&self, dropped: u32) -> Result<Self, InvalidParam> {
        let Level { blocks, locations, cells, fingerprint, capacity } = self.front;
        if dropped >= fingerprint {
            let expected = "more bits than are to be dropped";
            return Err(InvalidParam { name: "fingerprint", value: fingerprint.into(), expected });
        }
        Self::new(blocks, locations, cells, fingerprint - dropped, capacity)
    }
}

impl Params for BlockedRankParams {
    const NAMES: &'static [&'static str] =
        &["blocks", "locations", "cells", "fingerprint", "capacity"];

    fn values(&self) -> Vec<u64> {
        self.front.values().to_vec()
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        Self::of(Level::front(core::array::from_fn(|at| values[at]))?)
    }
}
