//! From goals to params, from blocks to their back table, and from params to predictions.

use super::back::Back;
use super::block::Shape;
use super::model;
use super::params::{BlockedRankParams, Level, MAX_FINGERPRINT, MAX_SECOND, MAX_UNIVERSE};
use super::sections;
use crate::bits::Line;
use crate::math::occupancy::power_spread;
use crate::math::solve::bisect;
use crate::rank_indexed::model::{Layout, rate_of};
use crate::rank_indexed::optimise::{Demand, optimise};
use crate::rank_indexed::{RankIndexed, RankParams};
use crate::spec::{Goal, InvalidParam, Kind, PlanError, Prediction, Size};
use crate::stored::Stored;

/// Filters are planned so full that this share of the keys is in the back table: 5% with bytes, 9%
/// with the widest fingerprints. Fuller filters would be smaller, by up to a fifth of a bit a key
/// with bytes and half a bit with wide fingerprints, and slower.
fn in_back(fingerprint: u32) -> f64 {
    0.05 + 0.005 * f64::from(fingerprint.saturating_sub(8))
}
/// The bits that a cell of the back table takes beyond the logarithm of the identities for each
/// cell; right to about a bit, and used for choosing only.
const BACK_OVERHEAD: f64 = 5.0;

/// Loads are found to this precision.
const LOAD_TOLERANCE: f64 = 1e-4;

/// From this many expected keys on there are blocks behind the blocks; fewer keys fit into a few
/// lines of the packed table.
const SECOND_FROM: f64 = 256.0;
/// Blocks behind blocks refuse up to this many times as many keys as the model of clumps says:
/// measured from 5e4 to 3e6 keys.
const CLUMPS: f64 = 1.2;

impl BlockedRankParams {
    /// `blocks` blocks of 64 bytes with `locations` chain locations, `cells` cells and
    /// fingerprints of `fingerprint` bits, and a back table for those of `capacity` keys that find
    /// no cell.
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

    /// The params of these blocks with the back table that is planned for them.
    pub(super) fn of(front: Level) -> Result<Self, InvalidParam> {
        let second = front.second();
        let (universe, spilled) = match second {
            Some(level) => (level.universe(), CLUMPS * level.spilled(front.clump())),
            None => (front.universe(), front.spilled(1.0)),
        };
        let (universe, spilled) =
            (universe.unwrap_or(MAX_UNIVERSE), model::with_margin(spilled, 8.0));
        // The smallest table with as many identities as the blocks in front of it.
        let layout = optimise(&Demand::new(spilled), rate_of(universe as f64, spilled));
        // (Exactly as many or more, which a rate in floating point does not promise.)
        let widened = layout.map(|layout| {
            let places = layout.group_buckets() * u64::from(layout.locations);
            let per_group = places << layout.fingerprint;
            let groups = universe.div_ceil(per_group).max(layout.groups);
            Layout { buckets: layout.group_buckets() * groups, groups, ..layout }
        });
        let Some(Ok(last)) = widened.map(|layout| RankParams::of(&layout, spilled)) else {
            let (value, expected) = (front.capacity, "what a back table can be laid out for");
            return Err(InvalidParam { name: "capacity", value, expected });
        };
        Self::laid_out(front, second, last)
    }
}

impl Level {
    /// Blocks for the keys that these ones are expected to refuse; `None` if these are few, or
    /// fingerprints would be too wide.
    fn second(&self) -> Option<Self> {
        let expected = Some(self.spilled(1.0)).filter(|&spilled| spilled >= SECOND_FROM)?;
        // The packed table takes the rest if these are not enough.
        let capacity = model::with_margin(expected, 3.0);
        let universe = self.universe()?;
        // Not narrower, so that a location in front is part of one behind.
        (self.fingerprint..=MAX_SECOND).find_map(|fingerprint| {
            let high = fingerprint.saturating_sub(8);
            // About as many locations as cells, or fewer: with more identities than in front some
            // blocks would stay empty.
            let cells = 505 / (10 + high);
            let blocks = (capacity * 8).div_ceil(u64::from(cells) * 7);
            let locations = universe / blocks.checked_mul(1 << fingerprint)?;
            let most = Shape::most_locations(cells, high)?;
            let locations = u32::try_from(locations).ok().filter(|at| (1..=most).contains(at))?;
            let blocks = universe.div_ceil(u64::from(locations) << fingerprint);
            let shape = [locations, cells, fingerprint].map(u64::from);
            self.behind([blocks, shape[0], shape[1], shape[2], capacity]).ok()
        })
    }

    /// Keys that are expected to find no room if they come in clumps of this size: a block then
    /// gets fewer clumps, and has room for fewer.
    fn spilled(&self, clump: f64) -> f64 {
        let Self { blocks, locations, cells, capacity, .. } = *self;
        model::expected_back((blocks, locations, cells), capacity, clump)
    }

    /// How many keys these blocks refuse together: a chain leaves as a whole, and long chains are
    /// more likely to leave.
    fn clump(&self) -> f64 {
        1.0 + self.capacity as f64 / (self.blocks as f64 * f64::from(self.locations))
    }
}

/// A way to cut blocks, and its largest load.
#[derive(Clone, Copy)]
struct Cut {
    fingerprint: u32,
    cells: u32,
    locations: u32,
    /// Keys for each block.
    load: f64,
}

impl Cut {
    /// The cuts that may be best for a width: about as many locations as cells, or half as many
    /// again.
    fn all(fingerprint: u32) -> impl Iterator<Item = Self> {
        let high = fingerprint.saturating_sub(8);
        (16..=60).filter_map(move |cells| {
            let locations = Shape::most_locations(cells, high)?;
            let sensible = 10 * locations >= 8 * cells && 10 * locations <= 16 * cells;
            sensible.then(|| Self::new(fingerprint, cells, locations))
        })
    }

    fn new(fingerprint: u32, cells: u32, locations: u32) -> Self {
        let excess = |load: f64| model::spilled_keys(load, locations, cells) - in_back(fingerprint);
        let load = bisect(excess, 0.0, 2.0 * f64::from(cells), LOAD_TOLERANCE)
            .unwrap_or(f64::from(cells) / 2.0);
        Self { fingerprint, cells, locations, load }
    }

    /// Bits for each key at a load, the back table included.
    fn bits(&self, load: f64) -> f64 {
        let share = model::spilled_keys(load, self.locations, self.cells);
        let identities = f64::from(self.locations) * libm::exp2(f64::from(self.fingerprint)) / load;
        let back = libm::log2(identities / share) + BACK_OVERHEAD;
        512.0 / load + if share > 1e-12 { share * back } else { 0.0 }
    }

    fn build(&self, blocks: u64, keys: u64) -> Result<BlockedRankParams, PlanError> {
        let Self { fingerprint, cells, locations, .. } = *self;
        Ok(BlockedRankParams::new(blocks, locations, cells, fingerprint, keys)?)
    }
}

pub(super) fn plan(goal: &Goal) -> Result<BlockedRankParams, PlanError> {
    goal.check()?;
    let kind = Kind::BlockedRank.name();
    let names = ["blocks", "locations", "cells", "fingerprint"];
    let [blocks, locations, cells, fingerprint] = goal.fixed_params(kind, names)?;
    let keys = goal.sized_keys();
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let settled = |cut: &Cut| {
        cells.is_none_or(|cells| narrow(cells) == cut.cells)
            && locations.is_none_or(|locations| narrow(locations) == cut.locations)
    };
    let widths = match fingerprint {
        Some(width) => {
            // Checks the width with the smallest table that has it.
            BlockedRankParams::new(1, 1, 1, narrow(width), 1)?;
            narrow(width)..=narrow(width)
        }
        None => 8..=MAX_FINGERPRINT,
    };
    let fixed_cut =
        cells.zip(locations).map(|(cells, locations)| (narrow(cells), narrow(locations)));
    let cuts = |width: u32| -> alloc::vec::Vec<Cut> {
        match fixed_cut {
            Some((cells, locations)) => {
                alloc::vec![Cut::new(width, cells.clamp(1, 64), locations.max(1))]
            }
            None => Cut::all(width).filter(settled).collect(),
        }
    };
    let least_blocks = |cut: &Cut| libm::ceil(keys as f64 / cut.load).max(1.0);
    match (goal.size, goal.budget()) {
        (Size::Rate(asked), _) => {
            let identities = -1.0 / libm::expm1(libm::log1p(-asked) / keys as f64);
            let mut best: Option<(f64, Cut, u64)> = None;
            for width in widths {
                for cut in cuts(width) {
                    let per_block = f64::from(cut.locations) * libm::exp2(f64::from(width));
                    let wanted = libm::ceil(identities / per_block);
                    let number =
                        blocks.map_or(least_blocks(&cut).max(wanted), |blocks| blocks as f64);
                    let load = keys as f64 / number;
                    let fits = number * per_block >= identities
                        && number * per_block <= MAX_UNIVERSE as f64;
                    let bits = cut.bits(load.max(1e-9)) * keys as f64;
                    if fits && best.is_none_or(|(fewest, ..)| bits < fewest) {
                        best = Some((bits, cut, number as u64));
                    }
                }
            }
            let nearest = rate_of(MAX_UNIVERSE as f64, keys);
            let unreachable = PlanError::Unreachable { kind, asked, keys, nearest };
            let (_, cut, number) = best.ok_or(unreachable)?;
            cut.build(number, keys)
        }
        (_, budget) => {
            let bits = budget.unwrap_or(0) as f64 / keys as f64;
            let mut best: Option<(f64, Cut, u64)> = None;
            let mut least = f64::INFINITY;
            for cut in widths.flat_map(cuts) {
                least = least.min(cut.bits(cut.load));
                let number = match blocks {
                    Some(blocks) => blocks as f64,
                    None if cut.bits(cut.load) > bits => continue,
                    None => {
                        let excess = |load: f64| cut.bits(load) - bits;
                        let load = bisect(excess, cut.load / 1e6, cut.load, LOAD_TOLERANCE)
                            .unwrap_or(cut.load);
                        libm::floor(keys as f64 / load).max(1.0)
                    }
                };
                let identities =
                    number * f64::from(cut.locations) * libm::exp2(f64::from(cut.fingerprint));
                let fits =
                    keys as f64 / number <= cut.load * 1.0001 && identities <= MAX_UNIVERSE as f64;
                if fits && best.is_none_or(|(most, ..)| identities > most) {
                    best = Some((identities, cut, number as u64));
                }
            }
            let too_few = PlanError::TooFewBits { kind, asked: bits, least };
            let (_, cut, mut number) = best.ok_or_else(|| too_few.clone())?;
            // The size of the back table was an estimate; blocks are dropped until all of it fits.
            while number > 0 {
                let params = cut.build(number, keys)?;
                let excess = predict(&params, keys).bits_per_key - bits;
                if excess <= 0.0 || blocks.is_some() {
                    return Ok(params);
                }
                number = number.saturating_sub(libm::ceil(excess * keys as f64 / 512.0) as u64);
            }
            Err(too_few)
        }
    }
}

/// What a filter with these params will do when it holds `keys` keys, after growing if it must.
pub(super) fn predict(params: &BlockedRankParams, keys: u64) -> Prediction {
    let mut grown = *params;
    while keys > grown.room()
        && spilled(&grown, keys) * keys as f64 >= model::most_in_back(grown.capacity()) as f64
        && let Ok(larger) = grown.grown()
    {
        grown = larger;
    }
    level(&grown, keys)
}

/// The share of keys that are in the back table.
fn spilled(params: &BlockedRankParams, keys: u64) -> f64 {
    let load = keys as f64 / params.blocks() as f64;
    model::spilled_keys(load, params.locations(), params.cells())
}

/// What blocks do, with their back table.
fn level(params: &BlockedRankParams, keys: u64) -> Prediction {
    let load = keys as f64 / params.blocks() as f64;
    let share = spilled(params, keys);
    let strangers = model::spilled_strangers(load, params.locations(), params.cells());
    let in_back = libm::round(share * keys as f64) as u64;
    let (back, own) = match params.second() {
        Some(second) => (level(&second, in_back), Back::OWN_BITS),
        None => (RankIndexed::predict(&params.last(), in_back), 0),
    };
    let back_bits = libm::round(back.bits_per_key * in_back.max(1) as f64) + own as f64;
    let per_key = |bits: f64| bits / keys.max(1) as f64;
    Prediction {
        rate: rate_of(params.universe() as f64, keys),
        rate_spread: power_spread(params.universe(), keys, 1),
        bits_per_key: per_key(params.bits().next_multiple_of(Line::BITS) as f64 + back_bits),
        wire_bits_per_key: per_key(sections::planned_bytes(params, in_back) * 8.0),
        blocks_per_insert: 1.0 + touched_while_filling(params, keys) * back.blocks_per_insert,
        blocks_per_hit: 1.0 + share * back.blocks_per_hit,
        blocks_per_miss: 1.0 + strangers * back.blocks_per_miss,
        overflow: Some(share * keys as f64),
    }
}

/// The share of insertions that touch the back table, averaged while the filter fills.
fn touched_while_filling(params: &BlockedRankParams, keys: u64) -> f64 {
    const STEPS: u32 = 32;
    let at = |step: u32| {
        let share = (f64::from(step) + 0.5) / f64::from(STEPS);
        let load = keys as f64 / params.blocks() as f64 * share;
        model::touching_inserts(load, params.locations(), params.cells())
    };
    (0..STEPS).map(at).sum::<f64>() / f64::from(STEPS)
}
