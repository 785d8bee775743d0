//! What planning costs, and what the plans are: processor time of [`AnyParams::plan`], which is
//! all that `with_rate` does before it takes memory, for every kind that takes keys one by one.
//!
//! ```text
//! cargo run --release -p tamis-bench --bin plans [rounds] [plans]
//! ```
//!
//! Printed are microseconds a plan: the mean over all goals and the goal that takes the longest,
//! each by the least of `rounds` rounds (five). With the word `plans` as second argument, the
//! params and bits of every plan follow, to be compared with those of another version.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tamis::{AnyParams, Goal, Kind};

const KEYS: [u64; 4] = [1000, 100_000, 10_000_000, 1_000_000_000];
const RATES: [f64; 6] = [0.1, 0.01, 0.003, 0.001, 1e-4, 1e-6];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(5, |text| text.parse().expect("a number of rounds"));
    let all = arguments.next().is_some_and(|word| word == "plans");
    println!("| kind | goals | mean, us | worst, us | at |\n|---|---|---|---|---|");
    let kinds = || Kind::ALL.iter().copied().filter(|kind| kind.can_insert());
    for kind in kinds() {
        let times: Vec<(f64, u64, f64)> = goals()
            .filter(|&(keys, rate)| AnyParams::plan(kind, &Goal::rate(keys, rate)).is_ok())
            .map(|(keys, rate)| {
                let goal = Goal::rate(keys, rate);
                let time = || {
                    let before = processor_time();
                    AnyParams::plan(kind, &goal).expect("as before");
                    processor_time().saturating_sub(before).as_secs_f64() * 1e6
                };
                ((0..rounds).map(|_| time()).fold(f64::INFINITY, f64::min), keys, rate)
            })
            .collect();
        let mean = times.iter().map(|time| time.0).sum::<f64>() / times.len() as f64;
        let worst = times.iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("a goal");
        let (name, count) = (kind.name(), times.len());
        println!(
            "| {name} | {count} | {mean:.0} | {:.0} | {} keys, {} |",
            worst.0, worst.1, worst.2
        );
    }
    for kind in kinds().filter(|_| all) {
        for (keys, rate) in goals() {
            let Ok(params) = AnyParams::plan(kind, &Goal::rate(keys, rate)) else { continue };
            let bits = params.predict(keys).bits_per_key;
            println!("{} {keys} {rate} {bits:.5} {:?}", kind.name(), params.named());
        }
    }
}

fn goals() -> impl Iterator<Item = (u64, f64)> {
    KEYS.into_iter().flat_map(|keys| RATES.into_iter().map(move |rate| (keys, rate)))
}

/// The time that this thread has been running.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
