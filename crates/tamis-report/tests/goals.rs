//! The planner keeps its promises, and whoever judges it would notice if it did not.

use tamis::{Goal, Kind, Plan, Size};
use tamis_report::goals::{Promise, measure, nearest_plan, random_goal};
use tamis_report::trials::in_parallel;

#[global_allocator]
static ALLOCATOR: tamis_report::memory::CountingAllocator = tamis_report::memory::CountingAllocator;

/// 200 random goals: of each the best plan is built, and keeps within every limit. Impossible limits have given way to the nearest that was
/// offered, so that it is met with nothing to spare. Half as much again as a limit allows would be noticed. `scripts/long` does the same with
/// up to a million keys.
#[test]
fn a_chosen_plan_keeps_its_promises() {
    let kinds = in_parallel(200, |number| {
        let goal = random_goal(number, 5000, 1e-3);
        let (plan, goal) = nearest_plan(goal).expect("a plan");
        let promises = measure(&goal, &plan, number, 2_000_000).expect("a filter");
        for promise in &promises {
            assert!(promise.is_kept(), "goal {number}: {promise:?}\n{goal:?}\n{plan:?}");
            assert!(
                promise.is_telling(1.5),
                "goal {number} says too little: {promise:?}\n{goal:?}\n{plan:?}"
            );
        }
        (plan.params.kind().name(), promises.len())
    });
    let promises: usize = kinds.iter().map(|(_, promises)| promises).sum();
    let mut names: Vec<&str> = kinds.iter().map(|&(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    println!("{promises} promises by {names:?}");
    assert!(promises > 600 && names.len() > 8, "{promises} promises by {names:?}");
}

/// Filters that take half as much again as they may: every promise is called broken.
#[test]
fn filters_beyond_their_limits_are_noticed() {
    let several = [Kind::Blocked, Kind::RankIndexed, Kind::BlockedRank, Kind::BalancedMht];
    let several = several.map(|kind| (kind, &[3000][..]));
    for (kind, sizes) in several.into_iter().chain([(Kind::Bloom, &[1, 10, 3000][..])]) {
        for &keys in sizes {
            let goal = Goal::rate(keys, 0.01).churn(0.1);
            let plan = Plan::of(kind, &goal).expect("a plan");
            let predicted = plan.predicted;
            let mut tight = goal;
            tight.size = Size::Rate(predicted.rate / 1.5);
            tight.at_most.bits_per_key = Some(predicted.bits_per_key / 1.01);
            tight.at_most.snapshot_bytes = Some((plan.traffic.snapshot.mean / 1.5) as u64);
            tight.at_most.delta_bytes = plan.traffic.delta.map(|delta| (delta.mean / 1.5) as u64);
            tight.at_most.blocks =
                Some(predicted.blocks_per_hit.min(predicted.blocks_per_miss) / 1.1);
            let promises = measure(&tight, &plan, 1, 2_000_000).expect("a filter");
            let broken: Vec<&Promise> = promises.iter().filter(|one| !one.is_kept()).collect();
            let said: Vec<&str> = broken.iter().map(|promise| promise.what).collect();
            let all = ["bits per key", "snapshot bytes", "delta bytes", "blocks per hit"];
            let all = [&all[..], &["blocks per miss", "rate"]].concat();
            assert_eq!(said, all, "{kind:?} {keys}: {promises:?}");
        }
    }
}
