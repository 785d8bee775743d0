//! tamis beside its rivals: the same digests for all, answers verified before anything is timed, subjects
//! interleaved over several rounds, the median and the spread of each.
//!
//! ```text
//! cargo run --release -p tamis-bench -- --keys 1000000 --rate 0.01
//! ```

mod subjects;

use anyhow::{Result, ensure};
use clap::Parser;
use serde::Serialize;
use subjects::{Rival, Subject};
use tamis::{Digest, Hasher};
use tamis_report::keys::KeyStream;
use tamis_report::memory::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// tamis beside its rivals, in one run on the same digests (hashing is excluded for all)
#[derive(Parser)]
struct Arguments {
    /// Keys in each filter; k, M and G are understood
    #[arg(long, default_value = "1M", value_parser = parse_keys)]
    keys: u64,
    /// Rate that each filter is built for
    #[arg(long, default_value_t = 0.01)]
    rate: f64,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// One JSON object a row
    #[arg(long)]
    json: bool,
}

fn parse_keys(text: &str) -> Result<u64> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let keys = digits.parse::<u64>()? * unit;
    ensure!(keys > 0, "at least one key");
    Ok(keys)
}

/// What is known of one subject.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    keys: u64,
    bits_per_key: f64,
    measured_rate: f64,
    insert_ns: Timing,
    hit_ns: Timing,
    miss_ns: Timing,
}

/// Nanoseconds an operation: the median of the rounds, the least and the most.
#[derive(Serialize)]
struct Timing {
    median: f64,
    least: f64,
    most: f64,
}

impl Timing {
    fn of(mut rounds: Vec<f64>) -> Self {
        rounds.sort_by(f64::total_cmp);
        Self { median: rounds[rounds.len() / 2], least: rounds[0], most: rounds[rounds.len() - 1] }
    }
}

fn main() -> Result<()> {
    let Arguments { keys, rate, rounds, json } = Arguments::parse();
    let stream = KeyStream::new(1);
    let hasher = Hasher::default();
    let members: Vec<Digest> = stream.members(hasher, 0..keys).collect();
    let strangers: Vec<Digest> = stream.strangers(hasher, 0..keys.max(1_000_000)).collect();

    let mut rounds_of = Rival::ALL.map(|_| Vec::new());
    for _ in 0..rounds.max(1) {
        for (rival, rounds) in Rival::ALL.into_iter().zip(&mut rounds_of) {
            rounds.push(rival.run(&members, &strangers, rate)?);
        }
    }
    let rows: Vec<Row> = Rival::ALL
        .into_iter()
        .zip(rounds_of)
        .map(|(rival, rounds)| row(rival, keys, &rounds))
        .collect();
    if json {
        for row in &rows {
            println!("{}", serde_json::to_string(row)?);
        }
    } else {
        println!("{}", table(&rows));
    }
    Ok(())
}

fn row(rival: Rival, keys: u64, rounds: &[Subject]) -> Row {
    let timing = |pick: fn(&Subject) -> f64| Timing::of(rounds.iter().map(pick).collect());
    Row {
        name: rival.name(),
        keys,
        bits_per_key: rounds[0].held_bits as f64 / keys as f64,
        measured_rate: rounds[0].measured_rate,
        insert_ns: timing(|round| round.insert_ns),
        hit_ns: timing(|round| round.hit_ns),
        miss_ns: timing(|round| round.miss_ns),
    }
}

fn table(rows: &[Row]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["filter", "bits/key", "rate", "insert ns", "hit ns", "miss ns"]);
    for row in rows {
        let time = |timing: &Timing| {
            format!("{:.1} ({:.1}-{:.1})", timing.median, timing.least, timing.most)
        };
        table.add_row([
            row.name.to_string(),
            format!("{:.2}", row.bits_per_key),
            format!("{:.3e}", row.measured_rate),
            time(&row.insert_ns),
            time(&row.hit_ns),
            time(&row.miss_ns),
        ]);
    }
    table
}
