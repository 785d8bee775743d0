//! The parameters of a blocked rank-indexed filter: every number of its blocks and of its back
//! table, as they are stored.
//!
//! They are checked as integers, by rules that never change. A planner may choose the back table
//! as it likes (in [`plan`](super::plan)); no reader needs to know how.

use alloc::vec::Vec;

use super::shape::{LEAST_WORDS, MAX_WIDTH, MOST_WORDS, Shape};
use crate::spec::{InvalidParam, Params, as_stored, narrow, require};

/// The most identities: they leave room in a word. Frozen.
pub(super) const MAX_UNIVERSE: u64 = 1 << 61;
/// The most blocks: far beyond any memory, and safe from overflow. Frozen.
const MAX_BLOCKS: u64 = 1 << 39;
/// The widest fingerprint of the blocks in front. Frozen.
pub(super) const MAX_FINGERPRINT: u32 = 24;

/// How identities are cut, how many keys are planned for, and the layout of the back table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedRankParams {
    pub(super) front: Level,
    /// Keys planned for.
    capacity: u64,
    /// Blocks behind the blocks, and blocks behind these, if enough keys are expected there.
    behind: [Option<Level>; 2],
}

/// The params of blocks whose cells also hold a value: those of [`BlockedRankParams`], and
/// `value`, the bits of a value.
///
/// Fingerprints are counted without the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockedMapParams(pub(super) BlockedRankParams);

/// A table of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Bits of a block.
    pub(super) block: u32,
    pub(super) blocks: u64,
    pub(super) locations: u32,
    pub(super) cells: u32,
    /// Bits of a fingerprint, those of the value included.
    pub(super) fingerprint: u32,
    /// The lowest bits of a fingerprint, which are a value; 0 but in [`BlockedMapParams`].
    pub(super) value: u32,
}

impl Level {
    /// These blocks, if they are legal. Without the value, fingerprints have at most `widest`
    /// bits.
    fn checked(self, widest: u32) -> Result<Self, InvalidParam> {
        let Self { block, blocks, locations, cells, fingerprint, value } = self;
        let fits = block.is_power_of_two() && (64 * LEAST_WORDS..=64 * MOST_WORDS).contains(&block);
        require(fits, "block", block, "a power of two, 512 to 32768 bits")?;
        let words = self.words();
        let own = fingerprint.saturating_sub(value);
        let expected = match widest {
            MAX_FINGERPRINT => "1 to 24 bits, and at most 48 with a value",
            _ => "1 to 48 bits, with a value",
        };
        let fits = (1..=widest).contains(&own) && fingerprint <= MAX_WIDTH;
        require(fits, "fingerprint", own, expected)?;
        let most = if cells == 0 { None } else { Shape::most_locations(words, cells, fingerprint) };
        require(most.is_some(), "cells", cells, "1 up to what fits into a block")?;
        let fits = (1..=most.unwrap_or(0)).contains(&locations);
        require(fits, "locations", locations, "1 up to what the cells leave of a block")?;
        let most = ((MAX_UNIVERSE / u64::from(locations)) >> fingerprint).min(MAX_BLOCKS);
        let fits = (1..=most).contains(&blocks);
        require(fits, "blocks", blocks, "1 to 2^39, and at most 2^61 identities")?;
        Ok(self)
    }

    /// Bits of a block, blocks, locations, cells and bits of a fingerprint without the value.
    fn values(self) -> [u64; 5] {
        let Self { block, blocks, locations, cells, fingerprint, value } = self;
        [block.into(), blocks, locations.into(), cells.into(), (fingerprint - value).into()]
    }

    fn of_values([block, blocks, locations, cells, fingerprint]: [u64; 5], value: u32) -> Self {
        let [block, locations, cells, fingerprint] =
            [block, locations, cells, fingerprint].map(narrow);
        let fingerprint = fingerprint.saturating_add(value);
        Self { block, blocks, locations, cells, fingerprint, value }
    }

    /// Blocks behind these ones, if they are legal: they must have at least as many identities,
    /// and a location in front must be part of one behind.
    pub(super) fn behind(&self, level: Self) -> Result<Self, InvalidParam> {
        let level = level.checked(MAX_WIDTH)?;
        let own = level.fingerprint - level.value;
        let is_wide = level.fingerprint >= self.fingerprint;
        require(is_wide, "fingerprint", own, "no narrower than in front")?;
        let is_enough = level.universe() >= self.universe();
        require(is_enough, "blocks", level.blocks, "enough for as many identities as in front")?;
        Ok(level)
    }

    /// Words of a block.
    pub(super) fn words(&self) -> u32 {
        self.block / 64
    }

    pub(super) fn shape(&self) -> Shape {
        Shape::new(self.words(), self.locations, self.cells, self.fingerprint, self.value)
    }

    /// Bits of all blocks.
    pub(super) fn bits(&self) -> u64 {
        self.blocks * u64::from(self.block)
    }

    /// Chain locations of all blocks.
    pub(super) fn all_locations(&self) -> u64 {
        self.blocks * u64::from(self.locations)
    }

    /// Identities.
    pub(super) fn universe(&self) -> u64 {
        self.all_locations() << self.fingerprint
    }

    /// The same blocks in another number with fingerprints of another width, and as many cells as
    /// then fit.
    fn recut(&self, blocks: u64, fingerprint: u32) -> Self {
        let locations = self.locations;
        let words = self.words();
        let cells = (64 * words - locations) / (fingerprint + 1);
        let cells = cells.clamp(1, Shape::most_cells(words));
        Self { blocks, cells, fingerprint, ..*self }
    }
}

impl BlockedRankParams {
    /// These blocks for `capacity` keys, with these levels of blocks behind them.
    pub(super) fn laid_out(
        front: Level,
        capacity: u64,
        behind: [Option<Level>; 2],
    ) -> Result<Self, InvalidParam> {
        let front = front.checked(MAX_FINGERPRINT)?;
        // (Less than 2^48, as blocks are.)
        let fits = capacity > 0 && capacity / (u64::from(front.block) / 2) <= front.blocks;
        require(fits, "capacity", capacity, "1 up to half the bits of all blocks")?;
        let mut last = front;
        for (level, part) in behind.iter().zip(["second_", "third_"]) {
            let Some(level) = *level else { break };
            last = last.behind(level).map_err(|fault| of_part(part, &fault))?;
        }
        if let [None, Some(level)] = behind {
            require(false, "third_blocks", level.blocks, "0, because there is no second level")?;
        }
        Ok(Self { front, capacity, behind })
    }

    /// Bits of a block.
    pub fn block(&self) -> u32 {
        self.front.block
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
        self.front.fingerprint - self.front.value
    }

    /// Keys planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The levels of blocks, those in front first.
    pub(super) fn levels(&self) -> impl Iterator<Item = Level> {
        core::iter::once(self.front).chain(self.behind.into_iter().flatten())
    }

    /// Bits of all levels behind the blocks.
    pub(crate) fn back_bits(&self) -> u64 {
        self.levels().skip(1).map(|level| level.bits()).sum()
    }

    /// The most keys for which the blocks need not double.
    pub(super) fn room(&self) -> u64 {
        self.capacity.max(self.front.blocks * u64::from(self.front.cells))
    }

    /// U, the number of identities.
    pub fn universe(&self) -> u64 {
        self.front.universe() >> self.front.value
    }

    /// Bits of all blocks.
    pub fn bits(&self) -> u64 {
        self.front.bits()
    }

    /// The same identities in twice the blocks.
    pub(super) fn grown(&self) -> Result<Self, InvalidParam> {
        let Level { blocks, fingerprint, .. } = self.front;
        let front = self.front.recut(blocks * 2, fingerprint - 1);
        Self::of(front, self.capacity.saturating_mul(2))
    }

    /// The same identities in as many more blocks as `keys` keys need, if there are such layouts.
    pub(super) fn grown_to(self, keys: u64) -> Self {
        let larger = |params: &Self| params.grown().ok().filter(|_| keys > params.room());
        core::iter::successors(Some(self), larger).last().unwrap_or(self)
    }

    /// The same identities in half the blocks.
    pub(super) fn shrunk(&self) -> Result<Self, InvalidParam> {
        let Level { blocks, fingerprint, .. } = self.front;
        require(blocks.is_multiple_of(2), "blocks", blocks, "an even number, to be halved")?;
        let front = self.front.recut(blocks / 2, fingerprint + 1);
        Self::of(front, self.capacity.div_ceil(2))
    }

    /// The same blocks, with fingerprints and identities that are `dropped` bits shorter.
    pub(super) fn coarser(&self, dropped: u32) -> Result<Self, InvalidParam> {
        let Level { blocks, fingerprint, .. } = self.front;
        if dropped == 0 {
            return Ok(*self);
        }
        let own = self.fingerprint();
        require(dropped < own, "fingerprint", own, "more bits than are to be dropped")?;
        Self::of(self.front.recut(blocks, fingerprint - dropped), self.capacity)
    }
}

impl Params for BlockedRankParams {
    const NAMES: &'static [&'static str] = &[
        "block",
        "blocks",
        "locations",
        "cells",
        "fingerprint",
        "capacity",
        "second_block",
        "second_blocks",
        "second_locations",
        "second_cells",
        "second_fingerprint",
        "third_block",
        "third_blocks",
        "third_locations",
        "third_cells",
        "third_fingerprint",
    ];

    fn values(&self) -> Vec<u64> {
        let values = |level: Option<Level>| level.map_or([0; 5], Level::values);
        let [front, second, third] = [Some(self.front), self.behind[0], self.behind[1]].map(values);
        [&front[..], &[self.capacity], &second, &third].concat()
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        of_values(as_stored(values)?, 0)
    }
}

/// The params with these values, if `value` bits of every cell are a value.
fn of_values(values: [u64; 16], value: u32) -> Result<BlockedRankParams, InvalidParam> {
    let level = |at: usize| {
        let values = [0, 1, 2, 3, 4].map(|number| values[at + number]);
        (values != [0; 5]).then(|| Level::of_values(values, value))
    };
    let front = level(0).unwrap_or(Level::of_values([0; 5], value));
    BlockedRankParams::laid_out(front, values[5], [level(6), level(11)])
}

impl BlockedMapParams {
    /// As [`BlockedRankParams::new`], with `value` bits of value in every cell.
    pub fn new(
        block: u32,
        blocks: u64,
        locations: u32,
        cells: u32,
        fingerprint: u32,
        capacity: u64,
        value: u32,
    ) -> Result<Self, InvalidParam> {
        check_value(value)?;
        let fingerprint = fingerprint.saturating_add(value);
        let front = Level { block, blocks, locations, cells, fingerprint, value };
        BlockedRankParams::of(front, capacity).map(Self)
    }

    /// The params of the blocks.
    pub fn table(&self) -> &BlockedRankParams {
        &self.0
    }

    /// Bits of a value.
    pub fn value(&self) -> u32 {
        self.0.front.value
    }

    /// U, the number of identities.
    pub fn universe(&self) -> u64 {
        self.0.universe()
    }
}

impl Params for BlockedMapParams {
    const NAMES: &'static [&'static str] = &{
        let mut names = ["value"; 17];
        let (shared, _) = names.split_at_mut(16);
        shared.copy_from_slice(BlockedRankParams::NAMES);
        names
    };

    fn values(&self) -> Vec<u64> {
        [&self.0.values()[..], &[self.value().into()]].concat()
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let [levels @ .., value]: [u64; 17] = as_stored(values)?;
        check_value(narrow(value))?;
        of_values(levels, narrow(value)).map(Self)
    }
}

/// Checks how wide values are.
pub(super) fn check_value(value: u32) -> Result<(), InvalidParam> {
    require((1..=32).contains(&value), "value", value, "1 to 32 bits")
}

/// The error of a param of one part, with its name among all params.
fn of_part(part: &str, fault: &InvalidParam) -> InvalidParam {
    let names = BlockedRankParams::NAMES.iter();
    let name = names.copied().find(|name| name.strip_prefix(part) == Some(fault.name));
    InvalidParam { name: name.unwrap_or(fault.name), ..*fault }
}
