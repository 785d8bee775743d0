//! From goals to params, from blocks to their back table, and from params to predictions.

use alloc::vec;
use alloc::vec::Vec;

use super::model;
use super::params::{BlockedRankParams, Level, MAX_FINGERPRINT, MAX_UNIVERSE};
use super::sections;
use super::shape::{LEAST_WORDS, MAX_WIDTH, Shape};
use super::table::OWN_BITS;
use crate::entry::Overflow;
use crate::math::occupancy::power_spread;
use crate::math::solve::first_true;
use crate::rank_indexed::model::rate_of;
use crate::spec::{Goal, InvalidParam, Kind, PlanError, Prediction, Size, narrow};

/// Filters are planned so full that at most this share of the keys is in the back table. Fuller
/// ones would hardly be smaller, and slower.
pub(super) const MOST_BEHIND: f64 = 0.1;

/// The bits that a key of the back table takes beyond the logarithm of the identities for each;
/// right to about a bit, and used for choosing only.
pub(super) const BACK_OVERHEAD: f64 = 5.0;

/// No plan has more locations for each key.
pub(super) const MOST_RATIO: f64 = 3.0;

/// From this many expected keys on there are blocks behind the blocks; fewer are listed.
pub(super) const BLOCKS_FROM: f64 = 16.0;
/// Fewer keys than this are as good as none.
const RARE: f64 = 0.01;
/// The cells of blocks behind blocks are planned to be in use to this share.
const FULL: f64 = 0.96;
/// Bits of blocks behind blocks: two lines.
const BEHIND: u32 = 1024;
/// The most bits of blocks that only the list is behind. They are seldom read, and large ones can
/// be fuller.
const LAST_BEHIND: u32 = 16_384;
/// Standard deviations beyond the mean for which such blocks have room: so the list stays short.
const SPARE: f64 = 3.0;
/// How many times as many keys are behind after keys were replaced, and a little more.
const LAG: f64 = 1.05;
/// Blocks behind blocks refuse up to this many times as many keys as the model of clumps says:
/// measured from 5e4 to 3e6 keys.
const CLUMPS: f64 = 1.3;

impl BlockedRankParams {
    /// `blocks` blocks of `block` bits with `locations` chain locations, `cells` cells and
    /// fingerprints of `fingerprint` bits, and a back table for those of `capacity` keys that find
    /// no cell.
    pub fn new(
        block: u32,
        blocks: u64,
        locations: u32,
        cells: u32,
        fingerprint: u32,
        capacity: u64,
    ) -> Result<Self, InvalidParam> {
        Self::of(Level { block, blocks, locations, cells, fingerprint, value: 0 }, capacity)
    }

    /// The params of these blocks with the back table that is planned for them.
    pub(super) fn of(front: Level, capacity: u64) -> Result<Self, InvalidParam> {
        // What is not legal has no back table.
        Self::laid_out(front, capacity, [None; 2])?;
        let mut expected = front.expected_behind(capacity as f64, 1.0);
        let (mut last, mut clump) = (front, front.clump(capacity as f64));
        let mut behind = [None; 2];
        for (number, level) in behind.iter_mut().enumerate() {
            if expected < BLOCKS_FROM {
                break;
            }
            let keys = model::with_margin(expected, 3.0);
            let refused = |next: &Level| CLUMPS * next.expected_behind(keys, clump);
            let next = last.planned_behind(BEHIND, keys, FULL);
            let Some(next) = next.filter(|next| number == 0 && refused(next) >= BLOCKS_FROM) else {
                *level = last.last_behind(keys, clump);
                break;
            };
            *level = Some(next);
            expected = refused(&next);
            (last, clump) = (next, clump * next.clump(keys / clump));
        }
        Self::laid_out(front, capacity, behind)
    }

    /// Keys that are expected in front, in each level behind and in the list at the end, if
    /// `keys` keys came once; the number of levels is that of these params.
    pub(super) fn expected(&self, keys: u64) -> impl Iterator<Item = f64> {
        let (mut left, mut clump) = (keys as f64, 1.0);
        let levels = self.levels().enumerate().map(move |(number, level)| {
            let fudge = if number == 0 { 1.0 } else { CLUMPS };
            let behind = (fudge * level.expected_behind(left, clump)).min(left);
            clump *= level.clump(left / clump);
            left = behind;
            behind
        });
        core::iter::once(keys as f64).chain(levels)
    }

    /// The blocks double when more keys than this are listed, because then the back table holds
    /// too much, if there are keys enough to fill more blocks. (Plans without blocks behind list
    /// about 16 keys, and up to 35 by chance. In small filters each takes as much as 20 others.)
    pub(super) fn most_listed(&self) -> u64 {
        (self.capacity() / 64).clamp(64, 4096)
    }
}

impl Level {
    /// Blocks of `block` bits for `keys` keys that these ones are expected to refuse, with the
    /// share `full` of their cells in use; `None` if fingerprints would be too wide.
    fn planned_behind(&self, block: u32, keys: f64, full: f64) -> Option<Self> {
        let universe = self.universe();
        let words = block / 64;
        // Identities for each cell, which fix how many locations there are for it: up to 3.
        let per_cell = universe as f64 / keys * full;
        let least = libm::ceil(libm::log2(per_cell / 3.0)).max(0.0) as u32;
        let least = least.min(MAX_WIDTH);
        // Not narrower, so that a location in front is part of one behind.
        let widths = least.max(self.fingerprint)..=(least + 3).min(MAX_WIDTH);
        let levels = widths.filter_map(|fingerprint| {
            let ratio = per_cell / libm::exp2(f64::from(fingerprint));
            let cells = f64::from(block) / (f64::from(fingerprint + 1) + ratio);
            let mut cells = (libm::floor(cells) as u32).clamp(1, Shape::most_cells(words));
            loop {
                let blocks = libm::ceil(keys / (full * f64::from(cells))).max(1.0) as u64;
                let locations = universe.div_ceil(blocks.checked_mul(1 << fingerprint)?);
                let most = Shape::most_locations(words, cells, fingerprint)?;
                if locations <= most.into() {
                    let locations = narrow(locations);
                    let level = Self { block, blocks, locations, cells, fingerprint, ..*self };
                    return self.behind(level).ok();
                }
                cells = cells.checked_sub(1).filter(|&cells| cells > 0)?;
            }
        });
        levels.min_by_key(|level| level.blocks)
    }

    /// As [`planned_behind`](Self::planned_behind), if only the list is behind: blocks of the size
    /// that takes the fewest bits. `clump` keys come together.
    fn last_behind(&self, keys: f64, clump: f64) -> Option<Self> {
        // About the bits of a cell with its locations.
        let cell = libm::log2(self.universe() as f64 / keys) + 2.0;
        let sizes = core::iter::successors(Some(BEHIND), |block| Some(2 * block));
        let levels = sizes.take_while(|block| *block <= LAST_BEHIND).filter_map(|block| {
            // Of 1 cell in use a share s, s + SPARE sqrt(s) deviations fill it.
            let deviation = SPARE / libm::sqrt(f64::from(block) / cell / clump);
            let root = 0.5 * (libm::sqrt(deviation * deviation + 4.0) - deviation);
            self.planned_behind(block, LAG * keys, root * root)
        });
        levels.min_by_key(Self::bits)
    }

    /// Keys that are expected to find no room if they come in clumps of this size: a block then
    /// gets fewer clumps, and has room for fewer.
    fn expected_behind(&self, keys: f64, clump: f64) -> f64 {
        model::expected_behind((self.blocks, self.locations, self.cells), keys, clump)
    }

    /// How many keys these blocks refuse together: a run leaves as a whole, and long runs are
    /// more likely to leave.
    fn clump(&self, keys: f64) -> f64 {
        1.0 + keys / self.all_locations() as f64
    }
}

/// A way to cut blocks, and its largest load.
#[derive(Clone, Copy)]
struct Candidate {
    words: u32,
    fingerprint: u32,
    cells: u32,
    locations: u32,
    /// Keys for each block.
    load: f64,
}

impl Candidate {
    /// Candidates for a width, if there are to be `ratio` locations for each cell.
    fn near(words: u32, fingerprint: u32, ratio: f64) -> impl Iterator<Item = Self> {
        let step = words / LEAST_WORDS;
        let most = Shape::most_cells(words);
        let cells = f64::from(64 * words) / (f64::from(fingerprint + 1) + ratio);
        let cells = (libm::floor(cells) as u32).min(most);
        (0..4).filter_map(move |steps| {
            let cells = (cells + step).checked_sub(steps * step)?.min(most);
            let locations = Shape::most_locations(words, cells.max(1), fingerprint)?;
            Some(Self::new(words, fingerprint, cells.max(1), locations))
        })
    }

    fn new(words: u32, fingerprint: u32, cells: u32, locations: u32) -> Self {
        let load = model::load_behind(MOST_BEHIND, locations, cells);
        Self { words, fingerprint, cells, locations, load }
    }

    /// Identities of a block.
    fn per_block(&self) -> f64 {
        f64::from(self.locations) * libm::exp2(f64::from(self.fingerprint))
    }

    /// Bits for each key at a load, the back table included.
    fn bits(&self, load: f64) -> f64 {
        let share = model::behind(load, self.locations, self.cells);
        let back = libm::log2(self.per_block() / load / share) + BACK_OVERHEAD;
        f64::from(64 * self.words) / load + if share > 1e-12 { share * back } else { 0.0 }
    }

    fn build(&self, blocks: u64, keys: u64, value: u32) -> Result<BlockedRankParams, PlanError> {
        let Self { words, fingerprint, cells, locations, .. } = *self;
        let block = 64 * words;
        let front = Level { block, blocks, locations, cells, fingerprint, value };
        Ok(BlockedRankParams::of(front, keys)?)
    }
}

/// The params of the blocks in front that a user may fix.
pub(super) const FIXED: [&str; 5] = ["block", "blocks", "locations", "cells", "fingerprint"];

/// The plan of a kind whose params [`FIXED`] are `fixed`, with `value` bits of every cell for a
/// value.
pub(super) fn plan(
    goal: &Goal,
    kind: Kind,
    fixed: [Option<u64>; 5],
    value: u32,
) -> Result<BlockedRankParams, PlanError> {
    goal.check()?;
    let [block, blocks, locations, cells, fingerprint] = fixed;
    let block = block.map_or(512, narrow);
    // Values are bits of fingerprints here.
    let width = fingerprint.map_or(1, narrow).saturating_add(value);
    // Checks block and width with the smallest table that has them.
    let smallest = Level { block, blocks: 1, locations: 1, cells: 1, fingerprint: width, value };
    BlockedRankParams::of(smallest, 1)?;
    let search = Search {
        kind: kind.name(),
        keys: goal.sized_keys(),
        words: block / 64,
        width: fingerprint.map(|_| width),
        value,
        blocks,
        locations,
        cells,
    };
    match (goal.size, goal.budget()) {
        (Size::Rate(asked), _) => search.for_rate(asked),
        (_, budget) => search.for_bits(budget.unwrap_or(0) as f64 / search.keys as f64),
    }
}

/// What is asked for and what is fixed.
struct Search {
    kind: &'static str,
    keys: u64,
    words: u32,
    /// Bits of a fingerprint, those of the value included, if they are fixed.
    width: Option<u32>,
    value: u32,
    blocks: Option<u64>,
    locations: Option<u64>,
    cells: Option<u64>,
}

impl Search {
    fn widest(&self) -> u32 {
        (MAX_FINGERPRINT + self.value).min(MAX_WIDTH)
    }

    fn widths(&self) -> core::ops::RangeInclusive<u32> {
        self.width.map_or(1 + self.value..=self.widest(), |width| width..=width)
    }

    /// Candidates for a width, if there are to be `ratio` locations for each cell.
    fn candidates(&self, width: u32, ratio: f64) -> Vec<Candidate> {
        let words = self.words;
        match (self.cells, self.locations) {
            (None, None) => Candidate::near(words, width, ratio).collect(),
            (cells, locations) => {
                let ratio = locations.map_or(ratio, |locations| locations as f64 / 50.0);
                let near = Candidate::near(words, width, ratio).next().map_or(1, |one| one.cells);
                let cells = cells.map_or(near, narrow).max(1);
                let most = Shape::most_locations(words, cells, width).unwrap_or(0);
                let locations = locations.map_or(most, narrow).max(1);
                vec![Candidate::new(words, width, cells, locations)]
            }
        }
    }

    /// The fewest bits for a rate.
    fn for_rate(&self, asked: f64) -> Result<BlockedRankParams, PlanError> {
        let &Self { kind, keys, value, blocks, .. } = self;
        let identities = -1.0 / libm::expm1(libm::log1p(-asked) / keys as f64);
        let identities = identities * libm::exp2(f64::from(value));
        let per_key = identities / keys as f64;
        let mut best: Option<(f64, Candidate, u64)> = None;
        let mut most = 0.0_f64;
        for width in self.widths() {
            // Locations for each key.
            let ratio = per_key / libm::exp2(f64::from(width));
            let is_narrow = width > 1 + value && ratio < 0.4;
            if self.width.is_none() && (is_narrow || ratio > MOST_RATIO) {
                continue;
            }
            for candidate in self.candidates(width, ratio.min(2.0)) {
                let wanted = libm::ceil(identities / candidate.per_block());
                let least = libm::ceil(keys as f64 / candidate.load).max(1.0);
                let number = blocks.map_or(least.max(wanted), |blocks| blocks as f64);
                let all = number * candidate.per_block();
                most = most.max(all);
                let bits = candidate.bits((keys as f64 / number).max(1e-9));
                let fits = all >= identities && all <= MAX_UNIVERSE as f64;
                if fits && best.is_none_or(|(fewest, ..)| bits < fewest) {
                    best = Some((bits, candidate, number as u64));
                }
            }
        }
        if blocks.is_none() {
            most = libm::exp2(f64::from(self.widest())) * MOST_RATIO * keys as f64;
        }
        let identities = most.min(MAX_UNIVERSE as f64) / libm::exp2(f64::from(value));
        let nearest = rate_of(identities, keys);
        let unreachable = PlanError::Unreachable { kind, asked, keys, nearest };
        let (_, candidate, number) = best.ok_or(unreachable)?;
        // A listed key takes far more than a cell. Where too few are expected behind for a level
        // of blocks, there are enough blocks in front that hardly one is listed.
        let listed = |number: u64| {
            model::expected_behind((number, candidate.locations, candidate.cells), keys as f64, 1.0)
        };
        let mut enough = None;
        if blocks.is_none() && (RARE..BLOCKS_FROM).contains(&listed(number)) {
            let most = number.saturating_mul(4);
            enough = first_true(number, most, |number| listed(number) < RARE);
        }
        candidate.build(enough.unwrap_or(number), keys, value)
    }

    /// The least rate in `bits` bits for each key, all that is behind included.
    fn for_bits(&self, bits: f64) -> Result<BlockedRankParams, PlanError> {
        let held = |params: &BlockedRankParams| predict(params, self.keys).bits_per_key;
        let fits = |params: &BlockedRankParams| held(params) <= bits;
        let plan = |digits: f64| self.for_rate(libm::exp2(-digits));
        let (mut low, mut high) = DIGITS;
        let mut best = plan(low)?;
        if !fits(&best) {
            let least = held(&best);
            return Err(PlanError::TooFewBits { kind: self.kind, asked: bits, least });
        }
        while high - low > 1e-3 {
            let digits = 0.5 * (low + high);
            match plan(digits).ok().filter(fits) {
                Some(params) => (low, best) = (digits, params),
                None => high = digits,
            }
        }
        Ok(best)
    }
}

/// The rates that are tried for a number of bits, as -log2: from a half to less than the widest
/// fingerprints have.
const DIGITS: (f64, f64) = (1.0, 27.0);

/// Predictions are made for no more entries of the list; no memory holds as many.
const MOST_LISTED: f64 = (1_u64 << 50) as f64;

/// What a filter with these params will do when it holds `keys` keys, after growing if it must.
pub(super) fn predict(params: &BlockedRankParams, keys: u64) -> Prediction {
    let mut grown = *params;
    while keys > grown.room()
        && grown.expected(keys).last() > Some(grown.most_listed() as f64)
        && let Ok(larger) = grown.grown()
    {
        grown = larger;
    }
    let params = &grown;
    // Lines that a key costs which is looked up in the list: a search by halves.
    let listed = params.expected(keys).last().unwrap_or(0.0).min(MOST_LISTED);
    let of_list = libm::log2(listed + 1.0) + 1.0;
    let own = OWN_BITS * (params.levels().count() as u64 - 1);
    let mut bits = (Overflow::planned_bits(listed) + own) as f64;
    let (mut per_hit, mut per_miss, mut per_insert) = (of_list, of_list, of_list);
    let levels: Vec<_> = params.levels().zip(params.expected(keys)).collect();
    for (level, here) in levels.into_iter().rev() {
        let load = here / level.blocks as f64;
        let Level { locations, cells, .. } = level;
        // In a large block a question reads three places.
        let lines = f64::from((level.words() / LEAST_WORDS).min(3));
        per_hit = lines + model::behind(load, locations, cells) * per_hit;
        per_miss = lines + model::absent_behind(load, locations, cells) * per_miss;
        per_insert = lines + touched_while_filling(&level, here) * per_insert;
        bits += level.bits() as f64;
    }
    let per_key = |bits: f64| bits / keys.max(1) as f64;
    Prediction {
        rate: rate_of(params.universe() as f64, keys),
        rate_spread: power_spread(params.universe(), keys, 1),
        bits_per_key: per_key(bits),
        wire_bits_per_key: per_key(sections::planned_bytes(params, listed) * 8.0),
        blocks_per_insert: per_insert,
        blocks_per_hit: per_hit,
        blocks_per_miss: per_miss,
        overflow: Some(params.expected(keys).nth(1).unwrap_or(0.0)),
    }
}

/// The share of insertions that touch the back table, averaged while the filter fills.
fn touched_while_filling(level: &Level, keys: f64) -> f64 {
    const STEPS: u32 = 32;
    let at = |step: u32| {
        let share = (f64::from(step) + 0.5) / f64::from(STEPS);
        let load = keys / level.blocks as f64 * share;
        model::touching_inserts(load, level.locations, level.cells)
    };
    (0..STEPS).map(at).sum::<f64>() / f64::from(STEPS)
}
