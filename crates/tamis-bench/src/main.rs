//! tamis beside its rivals: the same digests for all, answers verified before anything is timed,
//! subjects interleaved over several rounds, the median and the spread of each.
//!
//! ```text
//! cargo run --release -p tamis-bench -- --keys 1M
//! cargo run --release -p tamis-bench -- --keys 10M --rate 0.001 --load 50,80,95,100 --json
//! cargo run --release -p tamis-bench -- --keys 100M --only blocked-rank,qfilter,read --svg c.svg
//! ```

mod chart;
mod floors;
mod lineup;
mod measure;
mod ours;
mod rivals;
mod row;
mod show;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use measure::{Case, QUESTIONS, Round};
use row::Row;
use tamis::Hasher;
use tamis_report::keys::KeyStream;
use tamis_report::memory::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// tamis beside its rivals, in one run on the same digests (hashing is excluded for all)
#[derive(Parser)]
struct Arguments {
    /// Keys that each filter is built for; k, M and G are understood
    #[arg(long, default_value = "1M", value_parser = parse_keys)]
    keys: u64,
    /// Rate that each filter is built for, where it can be said; by default about that of
    /// blocked-rank with 8-bit cells
    #[arg(long, default_value_t = 0.0029)]
    rate: f64,
    /// How much of the planned keys goes in, in percent; several are run one after the other
    #[arg(long, default_value = "100", value_delimiter = ',')]
    load: Vec<u8>,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only those whose names contain one of these words
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// One JSON object a row
    #[arg(long)]
    json: bool,
    /// Where to draw bits per key against nanoseconds per miss
    #[arg(long)]
    svg: Option<PathBuf>,
}

fn parse_keys(text: &str) -> Result<u64> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let keys = digits.parse::<u64>()?.checked_mul(unit).context("too many keys")?;
    ensure!(keys > 0, "at least one key");
    Ok(keys)
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let Arguments { keys, rate, .. } = arguments;
    ensure!(rate > 0.0 && rate < 1.0, "a rate lies between 0 and 1");
    ensure!(
        arguments.load.iter().all(|load| (1..=100).contains(load)),
        "a load is a percentage, 1 to 100"
    );
    let stream = KeyStream::new(1);
    let hasher = Hasher::default();
    let mut case = Case {
        planned: keys,
        load: 1.0,
        rate,
        members: stream.members(hasher, 0..keys).collect(),
        absent: stream.absent_keys(hasher, 0..QUESTIONS as u64).collect(),
    };
    let mut rows = Vec::new();
    for &load in &arguments.load {
        case.load = f64::from(load) / 100.0;
        rows.extend(run(&case, &arguments)?);
    }
    if arguments.json {
        for row in &rows {
            println!("{}", row.json(&rows, rate));
        }
    } else {
        for rows in rows.chunk_by(|row, next| row.load == next.load) {
            println!("{keys} keys planned, {:.0}% in\n", rows[0].load * 100.0);
            show::print_results(rows);
            show::print_ratios(rows);
        }
    }
    if let Some(path) = &arguments.svg {
        // The fullest load says most.
        let rows = rows.chunk_by(|row, next| row.load == next.load);
        let fullest = rows.max_by(|rows, others| rows[0].load.total_cmp(&others[0].load));
        let title = format!("{keys} keys, times exclude hashing");
        std::fs::write(path, chart::svg(&title, fullest.unwrap_or_default()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// All subjects, round by round.
fn run(case: &Case, arguments: &Arguments) -> Result<Vec<Row>> {
    let entries = lineup::choose(&arguments.only);
    ensure!(!entries.is_empty(), "nobody has such a name");
    let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); entries.len()];
    for _ in 0..arguments.rounds.max(1) {
        for (entry, rounds) in entries.iter().zip(&mut rounds) {
            rounds.push((entry.run)(case).with_context(|| entry.name)?);
        }
    }
    let rows = entries.into_iter().zip(rounds);
    Ok(rows.map(|(entry, rounds)| Row::new(entry, case, rounds)).collect())
}
