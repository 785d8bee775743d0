//! Full `blocked-rank` filters, fresh and after ten rounds of removing and inserting: is a key
//! lost, what is the rate, how long does a miss take?
//!
//! `cargo run --release -p tamis-bench --bin churn -- [KEYS]`

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use tamis::{BlockedRank, Digest, Filter, Hasher, Insert, Remove, Stored};
use tamis_bench::blocked_rank;
use tamis_report::keys::KeyStream;
use tamis_report::papers::statistics::exact_interval;

/// Steps for each key.
const STEPS: u64 = 10;
const TIMINGS: usize = 15;

fn main() -> Result<()> {
    let keys: u64 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    println!(
        "| cells | rate by model | fresh | after {STEPS}n steps | miss, ns, fresh | after | times |"
    );
    println!("|---|---|---|---|---|---|---|");
    for width in [8, 12, 16] {
        let stream = KeyStream::new(9);
        let absent: Vec<Digest> = stream.absent_keys(Hasher::default(), 0..4_000_000).collect();
        let mut members: Vec<Digest> = stream.members(Hasher::default(), 0..keys).collect();
        let mut churned = blocked_rank(keys, width)?;
        churned.insert_many(&members)?;
        let coming = stream.members(Hasher::default(), keys..(STEPS + 1) * keys);
        for (step, new) in (0_u64..).zip(coming) {
            let leaves = (Digest(step).word(3) % keys) as usize;
            ensure!(churned.remove_digest(members[leaves]).is_ok(), "a key was lost");
            churned.insert_digest(new)?;
            members[leaves] = new;
        }
        ensure!(members.iter().all(|&one| churned.contains_digest(one)), "a key was lost");
        churned.validate()?;
        // The same keys, inserted one after the other and never removed.
        let mut fresh = blocked_rank(keys, width)?;
        fresh.insert_many(&members)?;
        ensure!(fresh.content_id() == churned.content_id(), "the contents differ");

        let model = BlockedRank::predict(&fresh.params(), keys).rate;
        let rate = |filter: &BlockedRank| {
            let passed = absent.iter().filter(|&&one| filter.contains_digest(one)).count() as u64;
            let (low, high) = exact_interval(passed, absent.len() as u64, 0.999);
            format!("{:.3e} ({low:.3e} to {high:.3e})", passed as f64 / absent.len() as f64)
        };
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..TIMINGS {
            for (filter, times) in [&fresh, &churned].into_iter().zip(&mut times) {
                let start = Instant::now();
                let passed = absent.iter().filter(|&&one| filter.contains_digest(one)).count();
                black_box(passed);
                times.push(start.elapsed().as_nanos() as f64 / absent.len() as f64);
            }
        }
        let [before, after] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[TIMINGS / 2]
        });
        println!(
            "| {width} bits | {model:.3e} | {} | {} | {before:.1} | {after:.1} | {:.2} |",
            rate(&fresh),
            rate(&churned),
            after / before
        );
    }
    Ok(())
}
