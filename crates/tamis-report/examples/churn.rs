//! The experiment of paper 003 at full length: `cargo run --release -p tamis-report --example churn -- KEYS TRIALS STEPS`.
//!
//! Prints the mean loads beside the fluid limit, and what overflowed, over so many trials.

use std::error::Error;

use tamis::bloom::CountingParams;
use tamis::dleft::DLeftParams;
use tamis::internals::dleft::model::{self, Loads};
use tamis_report::churn::{Answers, Churn, CountingTrial, DLeftTrial};
use tamis_report::papers::dleft::counting_rate;
use tamis_report::papers::statistics::exact_interval;
use tamis_report::trials::in_parallel;

/// The counting filter of the paper takes its time, and says little more in more trials.
const COUNTING_TRIALS: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let [keys, trials, steps] = numbers[..] else {
        return Err("three numbers, please: KEYS TRIALS STEPS, such as 49152 500 1048576".into());
    };
    let params = DLeftParams::new(4, 2048, 8, 14, 0)?;
    let churn = |seed| Churn { keys, steps, queries: 100_000, seed };
    let done = in_parallel(trials, |seed| churn(seed).dleft(params).expect("memory"));
    print_dleft(params, keys, &done);
    let counting = CountingParams::new(keys * 27 / 2, 9, 4)?;
    let done = in_parallel(trials.min(COUNTING_TRIALS), |seed| {
        churn(seed).counting(counting).expect("memory")
    });
    print_counting(counting, keys, &done);
    Ok(())
}

fn print_dleft(params: DLeftParams, keys: u64, trials: &[DLeftTrial]) {
    let count = trials.len() as f64;
    let buckets = u64::from(params.subtables()) * params.buckets();
    let load = model::effective_load(params.universe() as f64, keys, buckets);
    let fluid = Loads::steady(4, load);
    println!("d-left, {} trials of {keys} keys, effective load {load:.5}", trials.len());
    println!("{:>6} {:>12} {:>12}", "load >=", "fluid limit", "mean");
    for height in 1..=params.cells() as usize {
        let mean = trials.iter().map(|trial| trial.at_least[height]).sum::<f64>() / count;
        println!("{height:>6} {:>12.6} {mean:>12.6}", fluid.at_least(height));
    }
    let sum = |fact: fn(&DLeftTrial) -> u64| trials.iter().map(fact).sum::<u64>();
    let with_overflow = trials.iter().filter(|trial| trial.full_insertions > 0).count();
    println!("trials with a full insertion: {with_overflow}");
    println!(
        "full insertions for each trial: {:.3}",
        sum(|trial| trial.full_insertions) as f64 / count
    );
    let overflow = trials.iter().filter(|trial| trial.overflow > 0).count();
    println!("trials that used the overflow: {overflow}");
    let largest = trials.iter().map(|trial| trial.largest_count).max();
    println!("largest count: {}", largest.unwrap_or(0));
    print_answers(
        model::rate(params.universe() as f64, keys),
        trials.iter().map(|trial| &trial.answers),
    );
}

fn print_counting(params: CountingParams, keys: u64, trials: &[CountingTrial]) {
    println!("counting, {} trials, {} counters of 4 bits", trials.len(), params.counters());
    let largest = trials.iter().map(CountingTrial::largest_counter).max();
    println!("largest counter: {}", largest.unwrap_or(0));
    let rate = counting_rate(params.counters() as f64 / keys as f64, params.hashes());
    print_answers(rate, trials.iter().map(|trial| &trial.answers));
}

fn print_answers<'a>(predicted: f64, answers: impl Iterator<Item = &'a Answers> + Clone) {
    let passed = answers.clone().map(|answers| answers.false_positives).sum();
    let queries = answers.clone().map(|answers| answers.queries).sum();
    let (low, high) = exact_interval(passed, queries, 0.999);
    let mean = passed as f64 / queries as f64;
    println!("rate: predicted {predicted:.7}, measured {mean:.7} ({low:.7} to {high:.7})");
    let missing: u64 = answers.clone().map(|answers| answers.false_negatives).sum();
    let emptied = answers.filter(|answers| answers.empties).count();
    println!("false negatives: {missing}; emptied: {emptied}");
}
