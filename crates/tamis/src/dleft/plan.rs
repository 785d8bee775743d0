//! From goals to params, and from params to predictions.

use alloc::vec;

use super::bucket::MAX_COUNT;
use super::model::{self, Loads};
use super::params::{DLeftParams, MAX_BUCKETS, MAX_REMAINDER, MAX_UNIVERSE};
use super::sections::LOAD_BITS;
use crate::bits::Line;
use crate::entry::{Overflow, section};
use crate::math::occupancy::power_spread;
use crate::spec::{Goal, Kind, Params, PlanError, Prediction, Size, narrow, per_key};
use crate::wire::{self, Encoding};

/// Subtables and cells of a bucket, as in the paper.
const SUBTABLES: u32 = 4;
const CELLS: u32 = 8;
/// A table is planned so full that one insertion in this number finds all its choices full and
/// moves a cell: 6.75 of 8 cells for four subtables. At that load moves have always been enough
/// (records and notes: no entry in the overflow in hundreds of millions of updates).
const INSERTIONS_PER_MOVE: f64 = 15_000.0;
/// The largest share of the cells in use, for any number of subtables: 6.75 of 8.
const FULLEST: f64 = 27.0 / 32.0;
/// The least load of a bucket, whatever moves it takes.
const LEAST_LOAD: f64 = 1.0 / 1024.0;
/// Up to this many lines the model counts that buckets of several subtables may share a line.
const FEW_LINES: u64 = 4096;

/// The most keys that a table is planned for, for each of its buckets.
fn planned_load(subtables: u32, cells: u32) -> f64 {
    if (subtables, cells) == (SUBTABLES, CELLS) {
        // What the search would find.
        return FULLEST * f64::from(CELLS);
    }
    searched_load(subtables, cells)
}

fn searched_load(subtables: u32, cells: u32) -> f64 {
    let load = model::load_for(subtables as usize, cells as usize, 1.0 / INSERTIONS_PER_MOVE);
    // A single choice of a single cell cannot keep that promise at any load; it still takes keys,
    // and grows.
    load.clamp(LEAST_LOAD, FULLEST * f64::from(cells))
}

/// How many keys a table has cells for, at the planned load.
pub(super) fn room(params: &DLeftParams) -> u64 {
    (FULLEST * params.all_cells() as f64) as u64
}

pub(super) fn plan(goal: &Goal) -> Result<DLeftParams, PlanError> {
    goal.check()?;
    let kind = Kind::DLeft.name();
    let [subtables, buckets, cells, remainder, value] =
        goal.fixed_params(kind, DLeftParams::NAMES)?;
    let (subtables, cells) = (subtables.map_or(SUBTABLES, narrow), cells.map_or(CELLS, narrow));
    let (value, fixed_remainder) = (value.map_or(0, narrow), remainder.map_or(1, narrow));
    // Checks the fixed params with the smallest table that has them.
    DLeftParams::new(subtables, 1, cells, fixed_remainder, value)?;
    let keys = goal.sized_keys();
    let n = keys as f64;
    let per_bucket_of_all = f64::from(subtables) * planned_load(subtables, cells);
    let least = (libm::ceil(keys as f64 / per_bucket_of_all) as u64).max(1);
    let build = |buckets: u64, remainder: u32| {
        DLeftParams::new(subtables, buckets, cells, remainder, value)
    };
    if let (Some(buckets), Some(remainder)) = (buckets, remainder) {
        return Ok(build(buckets, narrow(remainder))?);
    }
    let remainders = match remainder {
        Some(_) => fixed_remainder..=fixed_remainder,
        None => 1..=MAX_REMAINDER,
    };
    match (goal.size, goal.budget()) {
        (Size::Rate(asked), _) => {
            let fits = |params: &DLeftParams| rate(params, keys) <= asked;
            let identities = identities_for(asked, keys);
            let tables = remainders.filter_map(|remainder| {
                let wanted = libm::ceil(identities / libm::exp2(f64::from(remainder)));
                let wanted = buckets.unwrap_or((wanted as u64).max(least));
                // Rounding may have lost the last digit.
                let nearby = (wanted..=wanted.saturating_add(u64::from(buckets.is_none()))).take(2);
                nearby.filter_map(|buckets| build(buckets, remainder).ok()).find(fits)
            });
            let nearest = model::rate(MAX_UNIVERSE as f64, keys);
            let unreachable = PlanError::Unreachable { kind, asked, keys, nearest };
            tables.min_by_key(DLeftParams::bits).ok_or(unreachable)
        }
        (_, budget) => {
            let budget = budget.unwrap_or(0);
            let held = |params: &DLeftParams| predict(params, keys).bits_per_key * n;
            let fits = |remainder: u32| {
                let one = build(1, remainder).ok()?.bits();
                let mut room = budget;
                // The second time with less, because the overflow takes memory too.
                for _ in 0..2 {
                    let most = (room / one).min(MAX_BUCKETS).min(MAX_UNIVERSE >> remainder);
                    let buckets = buckets.unwrap_or(most);
                    if buckets < least || most < buckets {
                        return None;
                    }
                    let params = build(buckets, remainder).ok()?;
                    let over = held(&params) - budget as f64;
                    if over <= 0.0 {
                        return Some(params);
                    }
                    room = room.saturating_sub(libm::ceil(over) as u64);
                }
                None
            };
            // The longer remainders are, the larger is the universe.
            remainders.clone().rev().find_map(fits).ok_or_else(|| {
                let buckets = buckets.unwrap_or(least);
                let tables = remainders.filter_map(|remainder| build(buckets, remainder).ok());
                let least = tables.map(|params| held(&params)).fold(f64::INFINITY, f64::min) / n;
                PlanError::TooFewBits { kind, asked: per_key(budget, keys), least }
            })
        }
    }
}

/// The smallest universe in which `keys` keys have the rate `rate`.
fn identities_for(rate: f64, keys: u64) -> f64 {
    -1.0 / libm::expm1(libm::log1p(-rate) / keys as f64)
}

fn rate(params: &DLeftParams, keys: u64) -> f64 {
    model::rate(params.universe() as f64, keys)
}

/// What a table with these params will do when it holds `keys` keys, after growing if it must.
pub(super) fn predict(params: &DLeftParams, keys: u64) -> Prediction {
    let distinct = model::distinct(params.universe() as f64, keys);
    // Identities with a count above that of a cell have an entry in the overflow as well.
    let overcounted = model::shared_by(params.universe() as f64, keys, MAX_COUNT + 1);
    let mut grown = *params;
    while grown.all_cells() as f64 <= distinct + overcounted
        && let Ok(larger) = grown.grown()
    {
        grown = larger;
    }
    let filled = Loads::inserted(grown.subtables() as usize, distinct / grown.all_buckets() as f64);
    let homeless = filled.homeless(grown.cells() as usize) * grown.all_buckets() as f64;
    let overflow = Overflow::planned_bits(overcounted + homeless);
    let loads = f64::from(LOAD_BITS) * grown.all_buckets() as f64;
    let trimmed = loads + distinct * f64::from(grown.cell_bits());
    let mut sections = vec![(Encoding::Trimmed, libm::ceil(trimmed / 8.0) as u64)];
    sections.extend(section::planned_list(overcounted + homeless));
    let wire = wire::planned_sections(DLeftParams::NAMES.len(), &sections);
    let (all, hit) = (lines(&grown, grown.subtables()), lines_of_hit(&grown, &filled));
    let rate = rate(&grown, keys);
    Prediction {
        rate,
        rate_spread: power_spread(grown.universe(), keys, 1),
        bits_per_key: per_key(grown.bits().next_multiple_of(Line::BITS) + overflow, keys),
        wire_bits_per_key: per_key(wire, keys) * 8.0,
        blocks_per_insert: all,
        blocks_per_hit: hit,
        // A false positive reads what a hit reads.
        blocks_per_miss: (1.0 - rate) * all + rate * hit,
        overflow: Some(overcounted + homeless),
    }
}

/// A member is found in its subtable, after those on the left have been read.
fn lines_of_hit(params: &DLeftParams, loads: &Loads) -> f64 {
    let held = |subtable: u32| -> f64 {
        (1..=params.cells()).map(|height| loads.share(height as usize, subtable as usize)).sum()
    };
    let all: f64 = (0..params.subtables()).map(held).sum();
    let read = |subtable: u32| held(subtable) * lines(params, subtable + 1);
    if all > 0.0 { (0..params.subtables()).map(read).sum::<f64>() / all } else { 1.0 }
}

/// Distinct cache lines of one bucket in each of the first `subtables` subtables, on average.
fn lines(params: &DLeftParams, subtables: u32) -> f64 {
    let width = u64::from(params.cells() * params.cell_bits());
    let touched = |bucket: u64| {
        let start = bucket * width;
        start / Line::BITS..=(start + width - 1) / Line::BITS
    };
    let buckets = params.buckets();
    if params.bits() > FEW_LINES * Line::BITS {
        // Buckets of different subtables almost never share a line. How buckets are aligned in
        // lines repeats with this period.
        let period = Line::BITS.min(buckets);
        let lines: u64 = (0..period).map(|bucket| touched(bucket).count() as u64).sum();
        return f64::from(subtables) * lines as f64 / period as f64;
    }
    // A line is not read if the bucket of every subtable is elsewhere.
    let all = params.bits().div_ceil(Line::BITS) as usize;
    let mut left_out = alloc::vec![1.0; all];
    for subtable in 0..u64::from(subtables) {
        let mut hits = alloc::vec![0_u64; all];
        for bucket in subtable * buckets..(subtable + 1) * buckets {
            touched(bucket).for_each(|line| hits[line as usize] += 1);
        }
        for (left, hits) in left_out.iter_mut().zip(hits) {
            *left *= 1.0 - hits as f64 / buckets as f64;
        }
    }
    left_out.iter().map(|left| 1.0 - left).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_load_is_what_a_search_finds() {
        assert_eq!(planned_load(SUBTABLES, CELLS), searched_load(SUBTABLES, CELLS));
    }
}
