//! What a filter may take, and whether it keeps to it.

use alloc::vec::Vec;

use super::Plan;
use crate::spec::{Goal, Limited, PlanError};

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

/// All limits of a goal, and what a plan needs of each: the one place where promises are checked.
/// The rate is not among them, because each kind plans for it.
pub(super) fn limits(goal: &Goal, plan: &Plan) -> Vec<Limit> {
    let (predicted, traffic) = (&plan.predicted, &plan.traffic);
    let read = predicted.blocks_per_hit.max(predicted.blocks_per_miss);
    let delta = traffic.delta.unwrap_or(traffic.snapshot);
    let [memory_margin, blocks_margin] = plan.params.kind().margins();
    let needed = |of| match of {
        Limited::BitsPerKey => predicted.bits_per_key * memory_margin,
        Limited::Snapshot => traffic.snapshot.most(),
        Limited::Delta => delta.most(),
        Limited::Blocks => read * blocks_margin,
    };
    goal.at_most.asked().map(|(of, asked)| Limit { of, asked, needed: needed(of) }).collect()
}

/// Why none of these plans, of which there is at least one, keeps to the goal. The error names the
/// limit that would have to be raised the least, in proportion, for one of them to keep to it.
pub(super) fn refusal(goal: &Goal, plans: &[Plan]) -> Option<PlanError> {
    let all: Vec<(&Plan, Vec<Limit>)> =
        plans.iter().map(|plan| (plan, limits(goal, plan))).collect();
    let stretch = |limit: &Limit| limit.needed / limit.asked;
    // First the plans that break only one limit; if there are none, any limit that no plan keeps.
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
