//! The planner keeps its promises.

use tamis_report::goals::{measure, nearest_plan, random_goal};
use tamis_report::trials::in_parallel;

/// 200 random goals: of each the best plan is built, and keeps within every limit. Impossible limits have given way to the nearest that was
/// offered, so that it is met with nothing to spare. `scripts/long` does the same with up to a million keys.
#[test]
fn a_chosen_plan_keeps_its_promises() {
    let kinds = in_parallel(200, |number| {
        let goal = random_goal(number, 5000, 1e-3);
        let (plan, goal) = nearest_plan(goal).expect("a plan");
        let promises = measure(&goal, &plan, number, 200_000).expect("a filter");
        for promise in &promises {
            assert!(promise.is_kept(), "goal {number}: {promise:?}\n{goal:?}\n{plan:?}");
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
