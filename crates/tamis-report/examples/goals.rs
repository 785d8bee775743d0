//! Random goals at full size: `cargo run --release -p tamis-report --example goals -- GOALS MOST_KEYS`.
//!
//! Prints how near each kind of promise came to its limit; a promise that was not kept ends the run with an error.

use std::error::Error;

use tamis_report::goals::{Promise, measure, nearest_plan, random_goal};
use tamis_report::trials::in_parallel;

#[global_allocator]
static ALLOCATOR: tamis_report::memory::CountingAllocator = tamis_report::memory::CountingAllocator;

const LEAST_RATE: f64 = 1e-5;
const MOST_QUERIES: u64 = 20_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [goals, most_keys] = numbers[..] else {
        return Err("two numbers, please: GOALS MOST_KEYS, such as 200 1000000".into());
    };
    let done = in_parallel(goals, |number| {
        let goal = random_goal(number, most_keys, LEAST_RATE);
        let (plan, goal) = nearest_plan(goal).expect("a plan");
        let promises = measure(&goal, &plan, number, MOST_QUERIES).expect("a filter");
        let broken = promises.iter().find(|promise| !promise.is_kept());
        if let Some(promise) = broken {
            println!("goal {number}: {promise:?}\n{goal:?}\n{plan:?}");
        }
        (plan.params.kind().name(), broken.is_some(), promises)
    });
    let mut kinds: Vec<&str> = done.iter().map(|&(kind, ..)| kind).collect();
    kinds.sort_unstable();
    for kind in kinds.chunk_by(|a, b| a == b) {
        println!("{:<20} chosen {} times", kind[0], kind.len());
    }
    let promises: Vec<&Promise> = done.iter().flat_map(|(.., promises)| promises).collect();
    for what in [
        "lost keys",
        "bits per key",
        "snapshot bytes",
        "delta bytes",
        "blocks per hit",
        "blocks per miss",
        "rate",
    ] {
        let of_this = promises.iter().filter(|promise| promise.what == what);
        let nearest = of_this.clone().map(|one| one.measured / one.limit).fold(0.0, f64::max);
        let off = |one: &&&Promise| {
            if one.predicted > 0.0 { (one.measured / one.predicted - 1.0).abs() } else { 0.0 }
        };
        let worst = of_this.clone().map(|one| off(&one)).fold(0.0, f64::max);
        println!(
            "{what:<16} {:>4} promises, at most {nearest:.4} of the limit, {:.2}% off the prediction",
            of_this.count(),
            100.0 * worst
        );
    }
    let broken = done.iter().filter(|(_, broken, _)| *broken).count();
    println!("{} goals, {} promises, {broken} broken", done.len(), promises.len());
    if broken > 0 { Err("a promise was broken".into()) } else { Ok(()) }
}
