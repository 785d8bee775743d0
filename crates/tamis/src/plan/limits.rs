//! What a filter may take, and whether it keeps to it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Plan;
use crate::any::AnyParams;
use crate::spec::{AtMost, Goal, Kind, Limited, Operation, PlanError, Size};

/// `blocked-rank` holds more than its model says if the packed table behind it grows: 0.07% at ten million keys
/// (records/2026-11-15-planner.md).
const BACK_MARGIN: f64 = 1.002;
/// The blocks of fingerprint kinds are predicted to within so much (tests: `a_chosen_plan_keeps_its_promises`).
const BLOCKS_MARGIN: f64 = 1.05;

/// A plan for a rate may take this many times the bits of an ideal filter, log2(1/rate) for each key, and 5 bits more for what kinds keep
/// beside it; four times that where every position has a counter.
const PROPORTION: f64 = 3.0;
const BESIDE: f64 = 5.0;
const COUNTERS: f64 = 4.0;
/// Few keys may take eight cache lines, whatever the rate.
const FEW_KEYS_BITS: f64 = 4096.0;

/// A limit, and what a filter needs of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub(super) of: Limited,
    pub(super) asked: f64,
    pub(super) needed: f64,
}

impl Limit {
    pub(super) fn is_kept(&self) -> bool {
        self.needed <= self.asked
    }
}

/// The bits of memory that a kind may take for a rate, as far as there is any proportion.
fn proportionate(kind: Kind, keys: u64, rate: f64) -> f64 {
    let each = PROPORTION * (BESIDE - libm::log2(rate));
    let each = if kind == Kind::Counting { COUNTERS * each } else { each };
    each * keys as f64 + FEW_KEYS_BITS
}

/// A rate that every kind keeps in proportion.
const COMMON: f64 = 0.01;

/// The plan for a goal, unless it is out of all proportion to the rate: nobody wants the kind for such a rate, and whoever asks is told what to ask for. Goals with
/// settled params get what was settled.
pub(crate) fn in_proportion<P>(
    kind: Kind,
    goal: &Goal,
    plan: impl Fn(&Goal) -> Result<P, PlanError>,
    bits_per_key: impl Fn(&P) -> f64,
) -> Result<P, PlanError> {
    let planned = plan(goal)?;
    // From COMMON on every kind has its place; near 1 hardly anything is asked of it, and whatever it takes is little.
    let asked = match goal.size {
        Size::Rate(asked) if asked < COMMON => asked,
        _ => return Ok(planned),
    };
    let keys = goal.sized_keys();
    let bits = bits_per_key(&planned);
    let fits = |rate: f64, bits: f64| bits * keys as f64 <= proportionate(kind, keys, rate);
    if fits(asked, bits) || !goal.fixed.is_empty() {
        return Ok(planned);
    }
    let fits_at = |rate: f64| {
        let goal = Goal { size: Size::Rate(rate), ..goal.clone() };
        plan(&goal).is_ok_and(|planned| fits(rate, bits_per_key(&planned)))
    };
    // Halfway between the logarithms, to a tenth or so.
    let (mut low, mut high) = (libm::log(asked), libm::log(COMMON));
    for _ in 0..8 {
        let middle = 0.5 * (low + high);
        if fits_at(libm::exp(middle)) { high = middle } else { low = middle }
    }
    let mut nearest = two_digits_up(libm::exp(high));
    // Layouts are searched for, and near the limit now one is found, now none.
    while nearest < COMMON && !fits_at(nearest) {
        nearest = two_digits_up(1.5 * nearest);
    }
    let instead = instead_of(kind, goal, asked);
    let instead = instead.map_or_else(String::new, |kind| format!(", or take {}", kind.name()));
    Err(PlanError::OutOfProportion { kind: kind.name(), asked, bits, nearest, instead })
}

/// A kind that can do all that this one can, and keeps the rate in proportion.
fn instead_of(kind: Kind, goal: &Goal, rate: f64) -> Option<Kind> {
    use Operation::{Count, Grow, Insert, Merge, Remove};
    let able = |other: Kind| {
        let operations = [Insert, Remove, Count, Merge, Grow];
        operations.into_iter().all(|operation| other.can(operation) || !kind.can(operation))
    };
    let fits = |other: Kind| {
        let keys = goal.sized_keys();
        AnyParams::least(other, &Goal::rate(keys, rate)).is_ok_and(|params| {
            params.predict(keys).bits_per_key * keys as f64 <= proportionate(other, keys, rate)
        })
    };
    let all = [Kind::Compressed, Kind::RankIndexed, Kind::Bloom, Kind::Counting];
    all.into_iter().find(|&other| other != kind && able(other) && fits(other))
}

/// The next number with two digits.
fn two_digits_up(rate: f64) -> f64 {
    let unit = libm::pow(10.0, libm::floor(libm::log10(rate)) - 1.0);
    let digits = libm::ceil(rate / unit - 1e-9);
    // Written and read again, it is the number that is meant.
    format!("{:.1e}", digits * unit).parse().unwrap_or(rate)
}

/// All limits of a goal beside what a plan needs of each: the one place where promises are checked. The rate is not among them, for
/// each kind plans for it.
pub(super) fn limits(goal: &Goal, plan: &Plan) -> Vec<Limit> {
    let AtMost { bits_per_key, snapshot_bytes, delta_bytes, blocks } = goal.at_most;
    let (predicted, traffic) = (&plan.predicted, &plan.traffic);
    let bytes = |limit: Option<u64>| limit.map(|bytes| bytes as f64);
    let read = predicted.blocks_per_hit.max(predicted.blocks_per_miss);
    let delta = traffic.delta.map_or(traffic.snapshot, |delta| delta);
    let kind = plan.params.kind();
    let read = if kind.keeps_identities() { read * BLOCKS_MARGIN } else { read };
    let margin = if kind == Kind::BlockedRank { BACK_MARGIN } else { 1.0 };
    [
        (Limited::BitsPerKey, bits_per_key, predicted.bits_per_key * margin),
        (Limited::Snapshot, bytes(snapshot_bytes), traffic.snapshot.most()),
        (Limited::Delta, bytes(delta_bytes), delta.most()),
        (Limited::Blocks, blocks, read),
    ]
    .into_iter()
    .filter_map(|(of, asked, needed)| Some(Limit { of, asked: asked?, needed }))
    .collect()
}

/// Why none of these plans, of which there is at least one, keeps to the goal: the limit that would have to give way the least, in
/// proportion, for one of them to do.
pub(super) fn refusal(goal: &Goal, plans: &[Plan]) -> Option<PlanError> {
    let all: Vec<(&Plan, Vec<Limit>)> =
        plans.iter().map(|plan| (plan, limits(goal, plan))).collect();
    let stretch = |limit: &Limit| limit.needed / limit.asked;
    // First the plans that break one limit only; if there are none, any limit that nobody keeps.
    let alone = all.iter().filter_map(|(plan, limits)| {
        let mut broken = limits.iter().filter(|limit| !limit.is_kept());
        let first = broken.next()?;
        broken.next().is_none().then_some((*plan, *first, true))
    });
    let any = all.iter().flat_map(|(plan, limits)| {
        limits.iter().filter(|limit| !limit.is_kept()).map(|limit| (*plan, *limit, false))
    });
    let by_stretch = |a: &(&Plan, Limit, bool), b: &(&Plan, Limit, bool)| {
        stretch(&a.1).total_cmp(&stretch(&b.1))
    };
    let (plan, limit, alone) = alone.min_by(by_stretch).or_else(|| any.min_by(by_stretch))?;
    let possible = all
        .iter()
        .any(|(_, limits)| limits.iter().any(|other| other.of == limit.of && other.is_kept()));
    Some(PlanError::Limit {
        limited: limit.of,
        asked: limit.asked,
        nearest: limit.of.round_up(limit.needed),
        kind: plan.params.kind().name(),
        beside: match (alone, possible) {
            (true, true) => " beside the other limits",
            (true, false) => "",
            (false, _) => ", nor are the other limits kept",
        },
    })
}
