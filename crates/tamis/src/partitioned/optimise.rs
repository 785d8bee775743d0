//! The best layout for a number of bits or a rate. All memory counts: the array, and the stored
//! choices with the marks of empty groups, both in whole lines.
//!
//! More candidates always lower the rate, but take time to build: about 6 ns for each key and
//! candidate. More groups lower the fill, but their choices take bits from the array.
//!
//! So the search tries numbers of candidates that are powers of two, as far as building allows.
//! For each it tries k around that of a plain filter, and for each pair of these it tries sizes of
//! groups. Each of the three has a best value, which the search descends to from the best value of
//! the step before. A plain filter, which takes every candidate and stores no choices, is always
//! among the bids.

use alloc::vec::Vec;
use core::cell::Cell;

use super::functions::{Family, Partition};
use super::model::{self, bits_per_group, held_bits, quick_fill};
use super::params::PartitionedParams;
use crate::bits::Line;
use crate::bloom::{self, MAX_HASHES, MAX_POSITIONS};
use crate::math::solve::first_true;
use crate::spec::{Goal, Params, PlanError, Size, per_key, require};

const KIND: &str = "partitioned";

/// The most candidates of a plan. The last doubling lowers the rate by a twentieth.
const MOST_CANDIDATES: u32 = 1 << 12;
/// The most keys times candidates of a plan: half a minute to build on one core.
const MOST_WORK: u64 = 1 << 32;
/// Bits of a segment. They fit in the first-level cache while the segment is built.
const SEGMENT: u64 = 1 << 17;
/// The mean sizes of groups that are tried, a fifth apart.
const SIZES: [u64; 20] =
    [8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86, 103, 124, 149, 179, 215, 258];

/// What the goal asks for, and the params that it fixes.
#[derive(Clone, Copy)]
struct Search {
    keys: u64,
    aim: Aim,
    bits: Option<u64>,
    segments: Option<u64>,
    groups: Option<u64>,
    candidates: Option<u32>,
    hashes: Option<u32>,
    partition: Partition,
    family: Family,
}

#[derive(Clone, Copy)]
enum Aim {
    /// The least rate in this many bits.
    Bits(u64),
    /// The fewest bits for this rate.
    Rate(f64),
}

/// A layout, except for its sizes.
#[derive(Clone, Copy)]
struct Shape {
    candidates: u32,
    hashes: u32,
    /// Keys of a group.
    size: u64,
}

/// The layout for a goal.
pub(crate) fn plan(goal: &Goal) -> Result<PartitionedParams, PlanError> {
    goal.check()?;
    let [bits, segments, groups, candidates, hashes, partition, family] =
        goal.fixed_params(KIND, PartitionedParams::NAMES)?;
    // Fixed params are checked before anything is computed from them.
    let candidates = candidates.or(hashes.filter(|_| bits.is_some() && groups.is_some()));
    let most = [1 << 40, 1, 1 << 40, 1 << 20, 1, 0, 0];
    let fixed = [bits, None, groups, candidates, hashes, None, None];
    let values: Vec<u64> =
        fixed.iter().zip(most).map(|(value, most)| value.unwrap_or(most)).collect();
    PartitionedParams::from_values(&values)?;
    // Three bits are valid with all functions.
    let functions = [3, 1, 1, 1, 1, partition.unwrap_or(0), family.unwrap_or(0)];
    let functions = PartitionedParams::from_values(&functions)?;
    let (partition, family) = (functions.partition(), functions.family());
    if let Some(segments) = segments {
        let divides = segments > 0 && groups.is_none_or(|groups| groups.is_multiple_of(segments));
        require(divides, "segments", segments, "a divisor of the groups")?;
    }
    goal.within_budget("bits", bits, 1)?;
    if bits.is_some() || groups.is_some() {
        let segments = segments.unwrap_or(1);
        // Segments of three words are valid with all functions.
        let bits = bits.unwrap_or_else(|| segments.saturating_mul(192));
        PartitionedParams::new(bits, segments, groups.unwrap_or(segments), 1, 1)?
            .with_functions(partition, family)?;
    }
    if let [Some(bits), _, Some(groups), Some(candidates), Some(hashes), ..] = fixed {
        let (segments, functions) = (segments.unwrap_or(1), [partition as u64, family as u64]);
        let values = [bits, segments, groups, candidates, hashes, functions[0], functions[1]];
        return Ok(PartitionedParams::from_values(&values)?);
    }
    let aim = match (goal.size, goal.budget()) {
        (Size::Rate(rate), _) => Aim::Rate(rate),
        (_, budget) => Aim::Bits(budget.unwrap_or(0)),
    };
    let [candidates, hashes] = [candidates, hashes].map(|value| value.map(|value| value as u32));
    let keys = goal.sized_keys();
    let search =
        Search { keys, aim, bits, segments, groups, candidates, hashes, partition, family };
    let bids = [search.plain(goal), search.best_shape().and_then(|shape| search.lay_out(shape))];
    let cost = |params: &PartitionedParams| match aim {
        Aim::Bits(_) => model::rate(params, search.keys),
        Aim::Rate(_) => held_bits(params) as f64,
    };
    // At equal cost the plain filter wins, because it is built fastest.
    let best = bids.into_iter().flatten().min_by(|a, b| cost(a).total_cmp(&cost(b)));
    best.ok_or_else(|| search.refusal())
}

/// The least of `count` bids. The search starts at `start` and goes up while bids get lower, then
/// down. It ends after two bids that are not lower: one is not enough, because costs are not quite
/// smooth.
fn descend<T>(
    count: usize,
    start: usize,
    bid: impl Fn(usize) -> Option<(f64, T)>,
) -> Option<(f64, T)> {
    const PATIENCE: u32 = 2;
    let start = start.min(count.checked_sub(1)?);
    let mut best = bid(start);
    let mut walk = |places: &mut dyn Iterator<Item = usize>| {
        let mut worse = 0;
        for at in places {
            match (bid(at), &best) {
                (Some(next), old) if old.as_ref().is_none_or(|old| next.0 < old.0) => {
                    (best, worse) = (Some(next), 0);
                }
                // While there is no bid at all, the search goes on.
                (_, None) => {}
                _ => worse += 1,
            }
            if worse == PATIENCE {
                break;
            }
        }
    };
    walk(&mut (start + 1..count));
    walk(&mut (0..start).rev());
    best
}

impl Search {
    /// Whether no param is fixed that a plain filter does not have.
    fn may_be_plain(&self) -> bool {
        self.candidates.is_none() && self.groups.is_none() && self.segments.is_none()
    }

    /// The plain filter; `None` if a param is fixed that it does not have.
    fn plain(&self, goal: &Goal) -> Option<PartitionedParams> {
        if !self.may_be_plain() {
            return None;
        }
        let mut goal = goal.clone();
        goal.fixed.retain(|(name, _)| name == "bits" || name == "hashes");
        let plain = bloom::model::plan_bloom(&goal).ok()?;
        let bits = match (self.aim, self.bits) {
            (_, Some(bits)) => bits,
            (Aim::Rate(_), None) => self.units(plain.bits()),
            (Aim::Bits(_), None) => self.units_within(plain.bits())?,
        };
        let params = self.with_bits(bits, 1, 1, plain.hashes(), plain.hashes())?;
        match self.aim {
            Aim::Rate(rate) if model::rate(&params, self.keys) > rate => None,
            _ => Some(params),
        }
    }

    /// A layout with the functions that were asked for.
    fn with_bits(
        &self,
        bits: u64,
        segments: u64,
        groups: u64,
        candidates: u32,
        hashes: u32,
    ) -> Option<PartitionedParams> {
        let params = PartitionedParams::new(bits, segments, groups, candidates, hashes).ok()?;
        params.with_functions(self.partition, self.family).ok()
    }

    /// The least number of bits, or of words of a segment, that is at least `units` and that the
    /// candidates can use. Those of the CRC family need odd numbers.
    fn units(&self, units: u64) -> u64 {
        match self.family {
            Family::Mixers => units,
            Family::Crc => units | 1,
        }
    }

    /// The greatest such number that is at most `units`; `None` if there is none.
    fn units_within(&self, units: u64) -> Option<u64> {
        match self.family {
            Family::Mixers => Some(units),
            Family::Crc => Some(units.checked_sub(1)? | 1),
        }
    }

    /// The best of all shapes, by estimates of their costs.
    fn best_shape(&self) -> Option<Shape> {
        // As many functions as fill about half of the array.
        let around = match (self.aim, self.bits) {
            (Aim::Rate(rate), _) => -libm::log2(rate),
            (Aim::Bits(bits), fixed) => 0.78 * fixed.unwrap_or(bits) as f64 / self.keys as f64,
        };
        let middle = libm::round(around).clamp(1.0, MAX_HASHES.into()) as u32;
        let low = self.hashes.unwrap_or(middle.saturating_sub(3).max(1));
        let high = self.hashes.unwrap_or((middle + 3).min(MAX_HASHES));
        let most = (MOST_WORK / self.keys).min(MOST_CANDIDATES.into()) as u32;
        let doublings = (1..=MOST_CANDIDATES.ilog2()).map(|doublings| 1 << doublings);
        let doublings = doublings.filter(|&candidates| candidates <= most);
        // A fixed number of candidates may take as long as it takes.
        let all: Vec<u32> = self.candidates.map_or_else(|| doublings.collect(), |one| [one].into());
        let fixed = self.groups.map(|groups| [self.keys.div_ceil(groups)]);
        let sizes = fixed.as_ref().map_or(&SIZES[..], |size| &size[..]);
        // The best values for one shape are near the best for the next.
        let (near_hashes, near_size) =
            (Cell::new(middle.saturating_sub(low) as usize), Cell::new(sizes.len() / 2));
        let (_, shape) = descend(all.len(), all.len().saturating_sub(1), |at| {
            let candidates = all[at];
            let best = descend((high - low + 1) as usize, near_hashes.get(), |at| {
                let hashes = low + at as u32;
                if hashes >= candidates {
                    return None;
                }
                let best = descend(sizes.len(), near_size.get(), |at| {
                    let shape = Shape { candidates, hashes, size: sizes[at] };
                    Some((self.cost(shape), (at, shape))).filter(|bid| bid.0.is_finite())
                });
                best.map(|(cost, (at, shape))| {
                    near_size.set(at);
                    (cost, (hashes, shape))
                })
            });
            best.map(|(cost, (hashes, shape))| {
                near_hashes.set((hashes - low) as usize);
                (cost, shape)
            })
        })?;
        Some(shape)
    }

    /// The estimated cost of a shape: the rate or the bits, whichever is to be least.
    fn cost(&self, shape: Shape) -> f64 {
        let Shape { candidates, hashes, size } = shape;
        let groups = self.groups.unwrap_or_else(|| ((self.keys + size / 2) / size).max(1));
        // `PartitionedParams` checks the limits of these numbers.
        let Ok(params) = PartitionedParams::new(1, 1, groups, candidates, hashes) else {
            return f64::INFINITY;
        };
        let choices = params.choice_bits();
        let quick_rate = |bits| {
            libm::pow(quick_fill(bits, self.keys, groups, candidates, hashes), hashes.into())
        };
        match (self.aim, self.bits) {
            (Aim::Rate(rate), None) => {
                let fill = libm::pow(rate, 1.0 / f64::from(hashes));
                choices as f64 + groups as f64 * bits_per_group(fill, size, candidates, hashes)
            }
            (Aim::Rate(rate), Some(bits)) if quick_rate(bits) > rate => f64::INFINITY,
            (Aim::Rate(_), Some(_)) => choices as f64,
            (Aim::Bits(budget), fixed) => {
                // Array and choices take whole lines, so there may be one line more than the bits
                // fill.
                let [choices, budget] =
                    [choices, budget].map(|bits| bits.next_multiple_of(Line::BITS));
                let left = budget.saturating_sub(choices);
                let fits = fixed.is_none_or(|bits| bits.next_multiple_of(Line::BITS) <= left);
                if left <= budget / 4 || !fits {
                    return f64::INFINITY;
                }
                quick_rate(fixed.unwrap_or(left))
            }
        }
    }

    /// The layout of a shape.
    fn lay_out(&self, shape: Shape) -> Option<PartitionedParams> {
        let Shape { candidates, hashes, size } = shape;
        let about = match (self.aim, self.bits) {
            (_, Some(bits)) | (Aim::Bits(bits), None) => bits,
            (Aim::Rate(_), None) => self.cost(shape) as u64,
        };
        let segments = match (self.segments, self.groups) {
            (Some(segments), _) => segments,
            (None, Some(_)) => 1,
            // A fixed number of bits need not be divisible into segments.
            (None, None) if self.bits.is_some() => 1,
            (None, None) => (about / SEGMENT).max(1),
        };
        let groups = self.groups.unwrap_or_else(|| {
            let each = self.keys as f64 / (size as f64 * segments as f64);
            segments.saturating_mul(libm::round(each).max(1.0) as u64)
        });
        let unit = if segments == 1 { 1 } else { segments.saturating_mul(64) };
        let with_bits = |bits| self.with_bits(bits, segments, groups, candidates, hashes);
        let choices = PartitionedParams::new(unit, segments, groups, candidates, hashes);
        let choices = choices.ok()?.choice_bits();
        if let Some(bits) = self.bits {
            let params = with_bits(bits)?;
            return match self.aim {
                Aim::Rate(rate) if model::rate(&params, self.keys) > rate => None,
                _ => Some(params),
            };
        }
        match self.aim {
            Aim::Bits(budget) => {
                let lines =
                    budget.div_ceil(Line::BITS).checked_sub(choices.div_ceil(Line::BITS))?;
                let bits = budget.checked_sub(choices)?.min(lines * Line::BITS);
                with_bits(self.units_within(bits / unit)? * unit)
            }
            Aim::Rate(rate) => {
                let met = |units: u64, of: fn(&PartitionedParams, u64) -> f64| {
                    let params = with_bits(self.units(units).saturating_mul(unit));
                    params.is_some_and(|params| of(&params, self.keys) <= rate)
                };
                let around = about.saturating_sub(choices) / unit + 1;
                // Approximately first, then exactly.
                let rough = first_true(around / 2, around.saturating_mul(2), |units| {
                    met(units, model::about_rate)
                })?;
                let reach = rough / 100 + 1;
                let units = first_true(rough.saturating_sub(reach), rough + 2 * reach, |units| {
                    met(units, model::rate)
                })?;
                with_bits(self.units(units) * unit)
            }
        }
    }

    /// Why there is no layout.
    fn refusal(&self) -> PlanError {
        let keys = self.keys;
        match self.aim {
            Aim::Rate(asked) => {
                let bits = self.bits.unwrap_or(match self.family {
                    Family::Mixers => MAX_POSITIONS,
                    Family::Crc => (1 << 32) - 1,
                });
                // A budget with room for any choices.
                let aim = Aim::Bits(1 << 60);
                let any = Self { aim, bits: Some(bits), ..*self };
                let chosen = any.best_shape().and_then(|shape| any.lay_out(shape));
                let chosen = chosen.map_or(1.0, |params| model::rate(&params, keys));
                // With too many keys to build any candidates, only a plain filter is left.
                let hashes = self.hashes.map_or(1..=MAX_HASHES, |hashes| hashes..=hashes);
                let plain = hashes.filter(|_| self.may_be_plain());
                let plain = plain.map(|hashes| bloom::model::rate(bits, hashes, keys));
                let nearest = plain.fold(chosen, f64::min);
                PlanError::Unreachable { kind: KIND, asked, keys, nearest }
            }
            Aim::Bits(budget) => {
                // The choices for the params that are fixed and the least values of the others,
                // and a third of their bits for the array.
                let hashes = self.hashes.unwrap_or(1);
                let candidates = self.candidates.unwrap_or(hashes + 1);
                let groups = self.groups.or(self.segments).unwrap_or(1);
                let choices = PartitionedParams::new(1, 1, groups, candidates, hashes);
                let choices = choices.map_or(0, |params| params.choice_bits());
                let least = self.bits.unwrap_or(choices / 3).max(Line::BITS) + choices;
                let [asked, least] = [budget, least].map(|bits| per_key(bits, keys));
                PlanError::TooFewBits { kind: KIND, asked, least }
            }
        }
    }
}
