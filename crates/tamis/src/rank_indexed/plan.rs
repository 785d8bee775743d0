//! From goals to params, from params to larger ones, and from params to predictions.

use super::model::{self, Layout};
use super::optimise::{
    DEFAULT_OVERFLOW, Demand, HIGHEST_RATE, MAX_LAMBDA, complete, fit, optimise,
};
use super::params::{MAX_FINGERPRINT, MAX_UNIVERSE, RankParams};
use super::table::{MAX_COPIES, MAX_COUNTER, Mode};
use crate::bits::Line;
use crate::entry::Overflow;
use crate::math::occupancy::power_spread;
use crate::math::tail::{binomial_above, poisson_pmf};
use crate::spec::{Goal, InvalidParam, Params, PlanError, Prediction, Size, narrow, per_key};
use crate::wire::{self, Encoding};

/// The largest mean length of chains in tables for more than [`FEW`] keys, as in the paper: longer
/// ones save up to 2% of the memory and cost time.
const SHORT_CHAINS: f64 = 1.1;
/// Up to this many keys, long chains save several bits per key.
const FEW: u64 = 1000;

/// How many bits the cut between bucket and fingerprint may move when a table is laid out anew.
const MOST_CUTS: usize = 3;

/// The capacity after one growth: a quarter more.
pub(super) fn grown_capacity(capacity: u64) -> u64 {
    capacity.saturating_mul(5) / 4 + 1
}

impl RankParams {
    /// `buckets` buckets of `locations` chain locations, `fingerprint` bits a cell (and `extra`
    /// bits of counter or value), and room for `capacity` keys. The buckets of each of `groups`
    /// equal groups share extensions. The levels are chosen: the fewest bits in which `capacity`
    /// keys find a cell.
    pub fn new(
        buckets: u64,
        locations: u32,
        fingerprint: u32,
        extra: u32,
        capacity: u64,
        groups: u64,
    ) -> Result<Self, InvalidParam> {
        let frame = Layout { buckets, locations, fingerprint, extra, groups, ..Layout::default() };
        Self::check_frame(&frame, capacity)?;
        let demand = Demand { extra, overflow: DEFAULT_OVERFLOW, ..Demand::new(capacity) };
        let expected = "what buckets of a few hundred cells can hold";
        let refused = InvalidParam { name: "capacity", value: capacity, expected };
        Self::laid_out(complete(&demand, frame).ok_or(refused)?, capacity)
    }

    /// The params of a frame, whose levels are chosen anew.
    pub(crate) fn of(layout: &Layout, capacity: u64) -> Result<Self, InvalidParam> {
        let Layout { buckets, locations, fingerprint, extra, groups, .. } = *layout;
        Self::new(buckets, locations, fingerprint, extra, capacity.max(1), groups)
    }

    /// These params, or ones with more capacity if `keys` keys need it: as much as there is a
    /// layout for.
    pub(super) fn with_room_for(&self, keys: u64) -> Self {
        if self.capacity() >= keys {
            return *self;
        }
        // Planning takes long, so one step is tried first; several steps can move the cut of
        // identities further.
        let at_once = self.with_capacity(keys);
        at_once.unwrap_or_else(|_| self.grown_to(keys))
    }

    /// What these params become when `keys` keys come one by one.
    fn grown_to(&self, keys: u64) -> Self {
        let mut params = *self;
        while params.capacity() < keys
            && let Ok(larger) = params.with_capacity(grown_capacity(params.capacity()))
        {
            params = larger;
        }
        params
    }

    /// The same identities with room for `capacity` keys, in the fewest bits. Identities may be
    /// cut elsewhere: into twice the buckets with fingerprints one bit shorter, or
    /// the other way round, as long as that saves bits.
    pub(super) fn with_capacity(&self, capacity: u64) -> Result<Self, InvalidParam> {
        let finer = core::iter::successors(Some(self.layout()), |layout| {
            (layout.fingerprint > 1).then(|| Layout {
                buckets: layout.buckets * 2,
                groups: layout.groups * 2,
                fingerprint: layout.fingerprint - 1,
                ..*layout
            })
        });
        let coarser = core::iter::successors(Some(self.layout()), |layout| {
            let halves = layout.buckets % 2 == 0 && layout.fingerprint < MAX_FINGERPRINT;
            halves.then(|| Layout {
                buckets: layout.buckets / 2,
                groups: if layout.groups % 2 == 0 { layout.groups / 2 } else { 1 },
                fingerprint: layout.fingerprint + 1,
                ..*layout
            })
        });
        let cuts = finer.take(MOST_CUTS).chain(coarser.take(MOST_CUTS).skip(1));
        let plans = cuts.filter_map(|layout| Self::of(&layout, capacity).ok());
        match plans.min_by_key(|params| params.layout().bits()) {
            Some(params) => Ok(params),
            None => Self::of(&self.layout(), capacity),
        }
    }
}

/// The params for a goal; `extra` are the counter bits of the kind, or the value bits unless the
/// goal fixes them.
pub(super) fn plan(kind: &'static str, goal: &Goal, extra: u32) -> Result<RankParams, PlanError> {
    goal.check()?;
    let names = ["buckets", "locations", "fingerprint", "extra", "groups", "chain"];
    let [buckets, locations, fingerprint, fixed_extra, groups, chain] =
        goal.fixed_params(kind, names)?;
    let keys = goal.sized_keys();
    let extra = fixed_extra.map_or(extra, narrow);
    // Checks `extra` with the smallest table that has it.
    RankParams::new(1, 1, 1, extra, 1, 1)?;
    let demand = Demand {
        keys,
        extra,
        overflow: DEFAULT_OVERFLOW,
        max_lambda: match chain {
            Some(hundredths) => hundredths as f64 / 100.0,
            None if keys <= FEW => MAX_LAMBDA,
            None => SHORT_CHAINS,
        },
        max_groups: groups.unwrap_or(u64::MAX),
    };
    if let (Some(buckets), Some(locations), Some(fingerprint)) = (buckets, locations, fingerprint) {
        let groups = groups.unwrap_or(1);
        let (locations, fingerprint) = (narrow(locations), narrow(fingerprint));
        return Ok(RankParams::new(buckets, locations, fingerprint, extra, keys, groups)?);
    }
    let layout = match (goal.size, goal.budget()) {
        (Size::Rate(asked), _) => optimise(&demand, asked).ok_or_else(|| {
            // The largest universe has the lowest rate.
            let nearest = model::rate_of(MAX_UNIVERSE as f64, keys);
            PlanError::Unreachable { kind, asked, keys, nearest }
        }),
        (_, budget) => {
            let asked = per_key(budget.unwrap_or(0), keys);
            fit(&demand, asked).ok_or_else(|| {
                let least = optimise(&demand, HIGHEST_RATE);
                let least = least.map_or(f64::INFINITY, |layout| layout.bits_per_key(keys));
                PlanError::TooFewBits { kind, asked, least }
            })
        }
    }?;
    Ok(RankParams::laid_out(layout, keys.max(1))?)
}

/// What a table with these params will do when it holds `keys` keys, after growing if it must.
pub(super) fn predict(params: &RankParams, keys: u64, mode: Mode) -> Prediction {
    let (cells, often) = expected_cells(params.universe(), keys, mode);
    let grown = params.grown_to(libm::round(cells + often) as u64);
    let layout = grown.layout();
    let rate = model::rate(&layout, keys);
    // If no layout has room for all, the overflow takes the rest: at most one entry for each
    // identity.
    let homeless = (cells - grown.capacity() as f64).clamp(0.0, rate * layout.identities());
    let overflow = if homeless < 0.5 { often } else { often.max(homeless) };
    let cell_bits = f64::from(1 + layout.fingerprint + layout.extra);
    let trimmed = layout.buckets as f64 * f64::from(layout.locations) + cells * cell_bits;
    // Rounded up to whole bytes, but not because of rounding errors in the sum.
    let bytes = libm::ceil(trimmed / 8.0 - 1e-6) as u64;
    let wire = wire::planned_len(RankParams::NAMES.len(), Encoding::Trimmed, bytes);
    let held = layout.bits().next_multiple_of(Line::BITS) + Overflow::planned_bits(overflow);
    let lines = Lines { layout, keys };
    Prediction {
        rate,
        rate_spread: power_spread(grown.universe(), keys, 1),
        bits_per_key: per_key(held, keys),
        wire_bits_per_key: per_key(wire, keys) * 8.0,
        blocks_per_insert: lines.insert(),
        blocks_per_hit: lines.hit(),
        blocks_per_miss: lines.miss(),
        overflow: Some(overflow),
    }
}

/// The cells of `keys` random keys, and the identities with more copies than cells count, which
/// have an entry in the overflow.
fn expected_cells(universe: u64, keys: u64, mode: Mode) -> (f64, f64) {
    let (most, per_cell) = match mode {
        // Equal identities share a cell.
        Mode::Set => (1, u64::MAX),
        Mode::Counting => (u64::from(MAX_COPIES), MAX_COUNTER + 1),
        Mode::Multiset | Mode::Map => (u64::from(MAX_COPIES), 1),
    };
    let more_often_than =
        |times: u64| universe as f64 * binomial_above(keys, 1.0 / universe as f64, times);
    let cells = (0..most).map(|cell| more_often_than(cell * per_cell)).sum();
    (cells, if mode == Mode::Set { 0.0 } else { more_often_than(most * per_cell) })
}

/// How many cache lines operations read. The positions of records in lines and of cells in records
/// are taken as uniform, which is right to a few per cent.
struct Lines {
    layout: Layout,
    keys: u64,
}

impl Lines {
    fn of_record(bits: u64) -> f64 {
        1.0 + (bits - 1) as f64 / Line::BITS as f64
    }

    /// The records of a bucket, averaged while the table fills.
    fn insert(&self) -> f64 {
        const STEPS: u64 = 16;
        let layout = &self.layout;
        let w1 = u64::from(layout.level1);
        let w2 = w1 + u64::from(layout.level2);
        let share = 1.0 / layout.buckets as f64;
        let during = |load: u64| {
            // In 128 bits, because a label may have any number of keys.
            let part = |step: u64| u128::from(self.keys) * u128::from(2 * step + 1);
            let keys = |step: u64| (part(step) / u128::from(2 * STEPS)) as u64;
            let at = |step: u64| binomial_above(keys(step), share, load);
            (0..STEPS).map(at).sum::<f64>() / STEPS as f64
        };
        let second = if layout.second > 0 { during(w1) } else { 0.0 };
        let third = if layout.third > 0 { during(w2) } else { 0.0 };
        Self::of_record(layout.bucket_bits())
            + second * Self::of_record(layout.second_bits())
            + third * Self::of_record(layout.third_bits())
    }

    /// The chain of a key that is in has 1 + Poisson(lambda) cells, and the key is any of them.
    fn hit(&self) -> f64 {
        let lambda = self.layout.lambda(self.keys.max(1));
        let one = if lambda > 0.0 { -libm::expm1(-lambda) / lambda } else { 1.0 };
        self.mean([0.0, one, 1.0 - one])
    }

    /// The chain of an absent key has Poisson(lambda) cells. Of K cells in order the search passes
    /// the first with probability K / (K + 1).
    fn miss(&self) -> f64 {
        let lambda = self.layout.lambda(self.keys);
        let none = libm::exp(-lambda);
        let passes = |cells: u64| poisson_pmf(cells, lambda) * cells as f64 / (cells + 1) as f64;
        let more: f64 = (2..40).map(passes).sum();
        self.mean([none, (1.0 - none - more).max(0.0), more])
    }

    /// The mean lines of a search that reads no cell, one, or two and more, with these
    /// probabilities.
    fn mean(&self, chances: [f64; 3]) -> f64 {
        let layout = &self.layout;
        let load = self.keys as f64 / layout.buckets as f64;
        let here = (libm::round(load).max(1.0) as u64).min(layout.level1.into());
        let index = u64::from(layout.locations);
        let prints = index + u64::from(layout.level1);
        let width = u64::from(layout.fingerprint);
        let last_line = |start: u64, bits: u64| (start + bits.max(1) - 1) / Line::BITS;
        let mut sums = [0.0; 3];
        // A record has few lines, so a set of them fits into a word.
        let span = |start: u64, bits: u64| -> u64 {
            (start / Line::BITS..=last_line(start, bits))
                .fold(0, |set, line| set | 1 << line.min(63))
        };
        for at in (0..Line::BITS).step_by(16) {
            let base = span(at, index);
            let cell =
                |cell: u64| span(at + index, cell + 1) | span(at + prints + cell * width, width);
            let alone: f64 = (0..here).map(|one| f64::from((base | cell(one)).count_ones())).sum();
            let pairs: f64 = (0..here)
                .flat_map(|one| (0..here).map(move |two| (one, two)))
                .map(|(one, two)| f64::from((base | cell(one) | cell(two)).count_ones()))
                .sum();
            let here = here as f64;
            sums[0] += f64::from(base.count_ones());
            sums[1] += alone / here;
            sums[2] += pairs / (here * here);
        }
        let places = (Line::BITS / 16) as f64;
        let walk: f64 = sums.iter().zip(chances).map(|(sum, chance)| sum / places * chance).sum();
        // A cell in an extension: the line of the pointer, and that of the cell.
        walk + (1.0 - chances[0]) * 2.0 * self.extended_share()
    }

    /// The share of cells that are in extensions: E[(N - Z1)+] over the mean load.
    fn extended_share(&self) -> f64 {
        let layout = &self.layout;
        if layout.second == 0 {
            return 0.0;
        }
        let share = 1.0 / layout.buckets as f64;
        let mean = self.keys as f64 * share;
        let above = |load: u64| binomial_above(self.keys, share, load);
        let beyond: f64 = (u64::from(layout.level1)..layout.reach()).map(above).sum();
        if mean > 0.0 { beyond / mean } else { 0.0 }
    }
}
