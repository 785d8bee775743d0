//! From a goal to a plan: each kind offers the params that it would build, every bit counted, and
//! the plans can explain themselves. Plans are the same on every machine.

mod choose;
mod explain;
mod limits;
mod message;

pub use choose::{Plan, choose};

use alloc::format;

use crate::any::AnyParams;
use crate::spec::{Goal, Kind, Operation, PlanError, Size, fits};

impl AnyParams {
    /// The layout of a filter of this kind that meets the goal in the least memory.
    pub fn plan(kind: Kind, goal: &Goal) -> Result<Self, PlanError> {
        if let Size::Wire { bytes, margin } = goal.size {
            return message::plan(kind, goal, bytes, margin);
        }
        let mut planned = Self::in_proportion(kind, goal);
        if let Err(PlanError::OutOfProportion { asked, instead, .. }) = &mut planned
            && let Some(kind) = instead_of(kind, goal.sized_keys(), *asked)
        {
            *instead = format!(", or take {}", kind.name());
        }
        planned
    }
}

/// A kind that can do all that `kind` can, in memory that is in proportion to the rate.
fn instead_of(kind: Kind, keys: u64, rate: f64) -> Option<Kind> {
    use Operation::{Count, Grow, Insert, Merge, Remove};
    let able = |other: Kind| {
        let operations = [Insert, Remove, Count, Merge, Grow];
        operations.into_iter().all(|operation| other.can(operation) || !kind.can(operation))
    };
    let in_proportion = |other: Kind| {
        AnyParams::least(other, &Goal::rate(keys, rate)).is_ok_and(|params| {
            fits(params.predict(keys).bits_per_key, keys, rate, other.position_bits())
        })
    };
    let all = [Kind::Compressed, Kind::RankIndexed, Kind::Bloom, Kind::Counting];
    all.into_iter().find(|&other| other != kind && able(other) && in_proportion(other))
}
