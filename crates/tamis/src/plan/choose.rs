//! The choice among all kinds.

use alloc::vec::Vec;

use super::{Goal, PlanError, Prediction};
use crate::any::{AnyParams, Kind};

/// One kind's answer to a goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The layout that would be built.
    pub params: AnyParams,
    /// What it would do.
    pub predicted: Prediction,
    /// Why one would take it, in a sentence.
    pub reason: &'static str,
}

/// Every supported kind's plan for the goal, the least memory first (at equal memory the fewest blocks
/// per miss). Kinds that cannot meet it are left out; if none can, the error says why.
pub fn choose(goal: &Goal) -> Result<Vec<Plan>, PlanError> {
    let mut plans = Vec::new();
    let mut refusal = None;
    for kind in Kind::ALL {
        match AnyParams::plan(kind, goal) {
            Ok(params) => plans.push(Plan {
                params,
                predicted: params.predict(goal.keys),
                reason: reason(kind),
            }),
            // Of several refusals that of a kind which knows the settled params says most.
            Err(error) if refusal.as_ref().is_none_or(is_unknown_param) => refusal = Some(error),
            Err(_) => {}
        }
    }
    if let (true, Some(error)) = (plans.is_empty(), refusal) {
        return Err(error);
    }
    plans.sort_by(|a, b| {
        let cost = |plan: &Plan| (plan.predicted.bits_per_key, plan.predicted.blocks_per_miss);
        let ((a_bits, a_blocks), (b_bits, b_blocks)) = (cost(a), cost(b));
        a_bits.total_cmp(&b_bits).then(a_blocks.total_cmp(&b_blocks))
    });
    Ok(plans)
}

fn is_unknown_param(error: &PlanError) -> bool {
    matches!(error, PlanError::UnknownParam { .. })
}

fn reason(kind: Kind) -> &'static str {
    match kind {
        Kind::Bloom => {
            "the least memory of the Bloom kinds; a lookup that hits reads k cache lines"
        }
        Kind::Counting => "keys can be removed and counted, for four times the memory of bloom",
        Kind::RankIndexed => {
            "less memory than bloom below 0.25%, and keys can be removed and counted"
        }
        Kind::RankSet => {
            "as rank-indexed, with equal identities stored once; keys cannot be removed"
        }
        Kind::RankCounting => "as rank-indexed, for keys that come often: a cell counts up to four",
        Kind::RankMap => "as rank-indexed, with a small value for every key",
        Kind::BlockedRank => {
            "one cache line a lookup, and keys can be removed and counted; the quickest of those"
        }
        Kind::DLeft => "keys can be removed and counted, in less than half the memory of counting",
        Kind::Partitioned => {
            "less memory than compressed above 0.4%, built once in half a minute for a million keys"
        }
        Kind::Compressed => {
            "the least memory of all below 0.4%, built once; an answer takes three cache misses"
        }
        Kind::BalancedSingle => "as blocked, with a list for the keys of its fullest blocks",
        Kind::BalancedSequential => {
            "as blocked, but full blocks send keys on in one table: most lookups read one block"
        }
        Kind::BalancedMht => {
            "as blocked, but full blocks send keys on to smaller tables: most lookups read one block"
        }
        Kind::BalancedPopcount => {
            "as balanced-mht, with blocks limited by their set bits: the least memory of these"
        }
        Kind::BalancedTwoChoice => "the emptier of two blocks; two cache lines a lookup, no list",
        Kind::Blocked => "one cache line a lookup, for somewhat more memory than bloom",
    }
}
