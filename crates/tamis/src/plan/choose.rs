//! The choice among all kinds.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::limits::{self, Limit};
use crate::any::AnyParams;
use crate::spec::{Goal, Kind, Minimise, Operation, PlanError, Prediction, Size, Traffic};

/// One kind's answer to a goal.
///
/// ```
/// use tamis::{Filter, Goal, Hasher, Insert, Kind, Plan};
/// let plan = Plan::of(Kind::Bloom, &Goal::rate(1_000, 0.01))?;
/// assert!(plan.predicted.rate <= 0.01);
/// let mut filter = plan.params.build(Hasher::default())?;
/// filter.insert("apple")?;
/// assert!(filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// The layout that would be built.
    pub params: AnyParams,
    /// What it would do.
    pub predicted: Prediction,
    /// What it would take on the wire.
    pub traffic: Traffic,
    /// Why one would take it, in a sentence.
    pub reason: &'static str,
}

/// What a block that a lookup reads beyond the first costs, as a share of the memory.
const BLOCK: f64 = 0.1;
/// What a bit of memory costs, in bits on the wire: enough that among equal messages the smaller
/// filter wins.
const MEMORY: f64 = 0.01;
/// Bits of the blocks with which `blocked-rank` takes less memory, and more time: a question reads
/// up to three lines of a block.
const LARGER_BLOCKS: [u64; 3] = [1024, 4096, 16_384];
/// A filter may take this many times the memory of the smallest, whatever it saves elsewhere.
pub(super) const MOST_MEMORY: f64 = 8.0;

/// Every kind's plan for the goal, the best first; [`Goal::minimise`] says what is best. Kinds
/// that cannot meet the goal are left out. If none can, the error names the limit that stands in
/// the way, and the nearest one that can be met.
pub fn choose(goal: &Goal) -> Result<Vec<Plan>, PlanError> {
    among(Kind::ALL, goal)
}

impl Plan {
    /// This kind's plan for the goal.
    pub fn of(kind: Kind, goal: &Goal) -> Result<Self, PlanError> {
        // There is one plan for each kind that can meet the goal.
        among(&[kind], goal).map(|mut plans| plans.swap_remove(0))
    }

    pub(super) fn new(params: AnyParams, goal: &Goal) -> Self {
        let predicted = params.predict(goal.keys);
        let traffic = params.traffic_as_predicted(goal.keys, goal.churn, &predicted);
        Self { params, predicted, traffic, reason: params.kind().reason() }
    }

    /// The cost that is to be least, and the one that decides among equals.
    fn cost(&self, goal: &Goal) -> (f64, f64) {
        let Prediction { bits_per_key: bits, blocks_per_hit, blocks_per_miss, .. } = self.predicted;
        let blocks = f64::midpoint(blocks_per_hit, blocks_per_miss);
        let sent = self.traffic.delta.unwrap_or(self.traffic.snapshot).mean;
        let wire = sent * 8.0 / goal.sized_keys() as f64;
        match (goal.minimise, goal.size) {
            (Minimise::Balanced, Size::Wire { .. }) => (self.predicted.rate, bits),
            (Minimise::Balanced, _) => (bits * (1.0 + BLOCK * (blocks - 1.0)), wire),
            (Minimise::Memory, _) => (bits, blocks),
            (Minimise::Wire, _) => (wire + MEMORY * bits, blocks),
            (Minimise::Lookups, _) => (blocks, bits),
        }
    }
}

fn among(kinds: &[Kind], goal: &Goal) -> Result<Vec<Plan>, PlanError> {
    goal.check()?;
    let able = |kind: &&Kind| goal.needs.iter().all(|&operation| kind.can(operation));
    let mut able = kinds.iter().filter(able).peekable();
    if able.peek().is_none() {
        return Err(unable(kinds, goal));
    }
    let order = |a: &Plan, b: &Plan| {
        let ((a, a_next), (b, b_next)) = (a.cost(goal), b.cost(goal));
        a.total_cmp(&b).then(a_next.total_cmp(&b_next))
    };
    let (mut plans, mut short) = (Vec::new(), Vec::new());
    let mut refusal = None;
    for &kind in able {
        match bids(kind, goal) {
            Ok(bids) => {
                let (kept, broken): (Vec<Plan>, Vec<Plan>) = bids
                    .into_iter()
                    .partition(|plan| limits::limits(goal, plan).iter().all(Limit::is_kept));
                plans.extend(kept.into_iter().min_by(order));
                short.extend(broken);
            }
            // Of several errors, that of a kind which knows the fixed params says most.
            Err(error) if refusal.as_ref().is_none_or(is_unknown_param) => refusal = Some(error),
            Err(_) => {}
        }
    }
    plans.sort_by(order);
    match limits::refusal(goal, &short).or(refusal) {
        Some(error) if plans.is_empty() => Err(error),
        _ => Ok(plans),
    }
}

/// The layouts of a kind that may meet the goal.
///
/// The first is what [`AnyParams::plan`] returns. If something else than memory counts too, plain
/// and counting filters also bid with fewer hash functions: these read fewer blocks and pack into
/// fewer bytes, in more memory. They are the shapes among which
/// [`optimise`](crate::compressed::optimise) finds the smallest message. If memory counts most,
/// `blocked-rank` also bids with [larger blocks](LARGER_BLOCKS).
fn bids(kind: Kind, goal: &Goal) -> Result<Vec<Plan>, PlanError> {
    let mut goal = goal.clone();
    for operation in &goal.needs {
        if let (Operation::Values(bits), Some(name)) = (*operation, kind.value_param()) {
            goal.fixed.push((name.to_string(), bits.into()));
        }
    }
    let first = AnyParams::plan(kind, &goal)?;
    let mut bids = alloc::vec![first];
    let more_counts =
        matches!(goal.minimise, Minimise::Wire | Minimise::Lookups) || !goal.at_most.is_empty();
    let memory_counts = goal.minimise == Minimise::Memory || goal.at_most.bits_per_key.is_some();
    let (name, others): (&str, Vec<u64>) = match first {
        AnyParams::Bloom(params) if more_counts => {
            ("hashes", (1..params.hashes().into()).collect())
        }
        AnyParams::Counting(params) if more_counts => {
            ("hashes", (1..params.hashes().into()).collect())
        }
        AnyParams::BlockedRank(_) if memory_counts => ("block", LARGER_BLOCKS.to_vec()),
        _ => ("", Vec::new()),
    };
    let fixed = goal.fixed.iter().any(|(fixed, _)| fixed == name);
    if !fixed && matches!(goal.size, Size::Rate(_)) {
        for other in others {
            goal.fixed.push((name.to_string(), other));
            bids.extend(AnyParams::plan(kind, &goal));
            goal.fixed.pop();
        }
    }
    let mut bids: Vec<Plan> = bids.into_iter().map(|params| Plan::new(params, &goal)).collect();
    let most = MOST_MEMORY * bids[0].predicted.bits_per_key;
    bids.retain(|bid| bid.predicted.bits_per_key <= most);
    Ok(bids)
}

/// The error that says why none of these kinds can do all that is needed.
fn unable(kinds: &[Kind], goal: &Goal) -> PlanError {
    let listed = |can: &dyn Fn(Kind) -> bool| -> String {
        let names: Vec<&str> =
            Kind::ALL.iter().copied().filter(|&kind| can(kind)).map(Kind::name).collect();
        if names.is_empty() { "none".to_string() } else { names.join(", ") }
    };
    let named = |operations: &mut dyn Iterator<Item = &Operation>| -> String {
        operations.map(|operation| operation.name()).collect::<Vec<_>>().join(" and ")
    };
    if let &[kind] = kinds {
        let can_all = |kind: Kind| goal.needs.iter().all(|&operation| kind.can(operation));
        return PlanError::Unable {
            kind: kind.name(),
            missing: named(&mut goal.needs.iter().filter(|operation| !kind.can(**operation))),
            able: listed(&can_all),
        };
    }
    let each = goal.needs.iter().map(|&operation| {
        format!("{}: {}", operation.name(), listed(&|kind: Kind| kind.can(operation)))
    });
    PlanError::Operations {
        needs: named(&mut goal.needs.iter()),
        able: each.collect::<Vec<_>>().join("; "),
    }
}

fn is_unknown_param(error: &PlanError) -> bool {
    matches!(error, PlanError::UnknownParam { .. })
}
