//! The parameters of a blocked rank-indexed filter, and the back table that follows from them.

use alloc::vec;
use alloc::vec::Vec;

use super::block::Shape;
use super::model;
use crate::filter::{InvalidParam, Params};
use crate::rank_indexed::RankParams;
use crate::rank_indexed::model::rate_of;
use crate::rank_indexed::optimise::{Demand, optimise};

/// The most identities: so that they leave room in a word.
pub(super) const MAX_UNIVERSE: u64 = 1 << 61;
/// The most blocks: far beyond any memory, and safe from overflow.
const MAX_BLOCKS: u64 = 1 << 39;
/// The widest fingerprint: a byte, and eight bits more.
pub(super) const MAX_FINGERPRINT: u32 = 16;

/// How identities are cut, and how many keys are planned for.
///
/// The layout of the back table is not stored: it follows from these, the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedRankParams {
    blocks: u64,
    locations: u32,
    cells: u32,
    fingerprint: u32,
    capacity: u64,
    back: RankParams,
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
        let refuse = |name, value, expected| Err(InvalidParam { name, value, expected });
        if !(1..=MAX_FINGERPRINT).contains(&fingerprint) {
            return refuse("fingerprint", fingerprint.into(), "1 to 16 bits");
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
        let universe = (blocks * u64::from(locations)) << fingerprint;
        let spilled = model::planned_back(blocks, locations, cells, capacity);
        // The least table whose identities are as many as ours.
        let layout = optimise(&Demand::new(spilled), rate_of(universe as f64, spilled));
        let Some(Ok(back)) = layout.map(|layout| RankParams::of(&layout, spilled)) else {
            return refuse("capacity", capacity, "what a back table can be laid out for");
        };
        Ok(Self { blocks, locations, cells, fingerprint, capacity, back })
    }

    /// Blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Chain locations of a block, L.
    pub fn locations(&self) -> u32 {
        self.locations
    }

    /// Cells of a block, Z.
    pub fn cells(&self) -> u32 {
        self.cells
    }

    /// Bits of a fingerprint.
    pub fn fingerprint(&self) -> u32 {
        self.fingerprint
    }

    /// Keys planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The layout of the back table.
    pub fn back(&self) -> RankParams {
        self.back
    }

    /// Chain locations of all blocks.
    pub(super) fn all_locations(&self) -> u64 {
        self.blocks * u64::from(self.locations)
    }

    /// Identities that can be told apart, U.
    pub fn universe(&self) -> u64 {
        self.all_locations() << self.fingerprint
    }

    pub(super) fn shape(&self) -> Shape {
        Shape::new(self.cells, self.locations, self.fingerprint.saturating_sub(8))
    }

    /// Bits of all blocks.
    pub fn bits(&self) -> u64 {
        self.blocks * 512
    }

    /// What decides answers beside hash, seed and content.
    pub(crate) fn content_params(&self) -> [(&'static str, u64); 1] {
        [("universe", self.universe())]
    }

    /// The same identities in twice the blocks.
    pub(super) fn grown(&self) -> Result<Self, InvalidParam> {
        let Self { blocks, locations, cells, fingerprint, capacity, .. } = *self;
        Self::new(blocks * 2, locations, cells, fingerprint - 1, capacity.saturating_mul(2))
    }

    /// The same identities in half the blocks.
    pub(super) fn shrunk(&self) -> Result<Self, InvalidParam> {
        let Self { blocks, locations, cells, fingerprint, capacity, .. } = *self;
        if !blocks.is_multiple_of(2) {
            let expected = "an even number, to be halved";
            return Err(InvalidParam { name: "blocks", value: blocks, expected });
        }
        Self::new(blocks / 2, locations, cells, fingerprint + 1, capacity.div_ceil(2))
    }

    /// The same blocks with fingerprints, and identities, so many bits shorter.
    pub(super) fn coarser(&self, dropped: u32) -> Result<Self, InvalidParam> {
        let Self { blocks, locations, cells, fingerprint, capacity, .. } = *self;
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
        let Self { blocks, locations, cells, fingerprint, capacity, .. } = *self;
        vec![blocks, locations.into(), cells.into(), fingerprint.into(), capacity]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let narrow = |at: usize| u32::try_from(values[at]).unwrap_or(u32::MAX);
        Self::new(values[0], narrow(1), narrow(2), narrow(3), values[4])
    }
}
