//! tamis beside its rivals: the same digests for all, answers verified before anything is timed,
//! subjects interleaved over several rounds, the median and the spread of each.
//!
//! ```text
//! cargo run --release -p tamis-bench -- --keys 1M
//! cargo run --release -p tamis-bench -- --keys 10M --rate 0.001 --load 50,80,95,100 --json
//! cargo run --release -p tamis-bench -- --keys 100M --only blocked-rank,qfilter,read --svg c.svg
//! ```
//!
//! `scripts/speed` makes the record, and of it the table and the charts of the README.

mod floors;
mod lineup;
mod measure;
mod ours;
mod rivals;
mod row;
mod show;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use measure::{Case, QUESTIONS, Round};
use tamis::Hasher;
use tamis_bench::chart;
use tamis_bench::record::{Record, Row, Run, Side};
use tamis_report::keys::KeyStream;
use tamis_report::memory::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// tamis beside its rivals, in one run on the same keys: as digests, so that hashing is excluded
/// for all, and as texts that each hashes as it does by default
#[derive(Parser)]
struct Arguments {
    /// Keys that each filter is built for; k, M and G are understood
    #[arg(long, default_value = "1M", value_parser = parse_keys)]
    keys: u64,
    /// Rate that each filter is built for, where it can be said; by default a little below that
    /// of rivals whose fingerprints have whole bits
    #[arg(long, default_value_t = 0.0036)]
    rate: f64,
    /// How much of the planned keys goes in, in percent; several are run one after the other
    #[arg(long, default_value = "100", value_delimiter = ',')]
    load: Vec<u8>,
    /// Rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Steps of churn before those that are timed, as a multiple of the keys
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=10))]
    warm_up: u8,
    /// Only those whose names contain one of these words; a whole name means that one alone
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// One JSON object a row
    #[arg(long)]
    json: bool,
    /// Where to draw bits per key against nanoseconds of a question
    #[arg(long)]
    svg: Option<PathBuf>,
    /// The file to which machine, command and rows are appended, as lines of JSON
    #[arg(long)]
    record: Option<PathBuf>,
    /// What is to be said of the machine in the record
    #[arg(long, default_value = "")]
    remark: String,
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
    let warm_up = u64::from(arguments.warm_up);
    // What is asked for in a timing, and more of it for a rate.
    let asked = keys.clamp(QUESTIONS as u64 / 100, QUESTIONS as u64);
    let absent = (10 * asked).min(QUESTIONS as u64);
    let texts = texts((0..keys).map(|index| stream.member(index)));
    let absent_texts = self::texts((0..asked).map(|index| stream.absent_key(index)));
    let mut case = Case {
        planned: keys,
        load: 1.0,
        rate,
        warm_up: warm_up as usize,
        stream: stream.members(hasher, 0..(warm_up + 2) * keys).collect(),
        absent: stream.absent_keys(hasher, 0..absent).collect(),
        texts: cut(&texts),
        absent_texts: cut(&absent_texts),
    };
    let mut rows = Vec::new();
    for &load in &arguments.load {
        case.load = f64::from(load) / 100.0;
        rows.extend(run(&case, &arguments)?);
    }
    if arguments.json {
        for row in &rows {
            println!("{}", serde_json::to_string(row)?);
        }
    } else {
        for rows in rows.chunk_by(|row, next| row.load == next.load) {
            println!("{keys} keys planned, {:.0}% in\n", rows[0].load * 100.0);
            show::print_results(rows);
            show::print_churn(rows);
            show::print_ratios(rows);
        }
    }
    let record = Record { run: describe(&arguments), rows };
    if let Some(path) = &arguments.record {
        append(path, &record).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &arguments.svg {
        std::fs::write(path, chart::questions(&record))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Letters of a text key.
const LETTERS: usize = 20;

/// Numbers as texts of equal length, one behind the other.
fn texts(numbers: impl Iterator<Item = u64>) -> String {
    numbers.fold(String::new(), |texts, number| texts + &format!("{number:0LETTERS$}"))
}

fn cut(texts: &str) -> Vec<&str> {
    (0..texts.len() / LETTERS).map(|at| &texts[at * LETTERS..(at + 1) * LETTERS]).collect()
}

/// All subjects, round by round.
fn run(case: &Case, arguments: &Arguments) -> Result<Vec<Row>> {
    let mut entries = lineup::choose(&arguments.only, case.planned, case.rate);
    ensure!(!entries.is_empty(), "nobody has such a name");
    let mut rounds: Vec<Vec<Round>> = Vec::new();
    for entry in &entries {
        rounds.push(vec![(entry.run)(case).with_context(|| entry.name.clone())?]);
    }
    // Partners are planned for rates as they are measured, of full filters.
    if case.load == 1.0 {
        let behind_ours = entries.iter().take_while(|entry| entry.side == Side::Ours).count();
        for partner in lineup::partners(&entries, &rounds, case) {
            let round = (partner.run)(case).with_context(|| partner.name.clone())?;
            entries.insert(behind_ours, partner);
            rounds.insert(behind_ours, vec![round]);
        }
    }
    for _ in 1..arguments.rounds {
        for (entry, rounds) in entries.iter().zip(&mut rounds) {
            rounds.push((entry.run)(case).with_context(|| entry.name.clone())?);
        }
    }
    Ok(row::rows(&entries, &rounds, case))
}

/// The run and its machine.
fn describe(arguments: &Arguments) -> Run {
    let told = |program: &str, words: &[&str]| {
        let output = Command::new(program).args(words).output();
        output.map_or(String::new(), |output| {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        })
    };
    let changed = told("git", &["status", "--porcelain", "--", "crates", "Cargo.lock"]);
    let mark = if changed.is_empty() { "" } else { "+" };
    let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    #[cfg(target_arch = "x86_64")]
    let (avx2, avx512) = (is_x86_feature_detected!("avx2"), is_x86_feature_detected!("avx512f"));
    #[cfg(not(target_arch = "x86_64"))]
    let (avx2, avx512) = (false, false);
    Run {
        command: std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        commit: told("git", &["rev-parse", "--short=10", "HEAD"]) + mark,
        processor: processor.map_or(std::env::consts::ARCH, |(_, name)| name.trim()).to_owned(),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        avx2,
        avx512,
        remark: arguments.remark.clone(),
        keys: arguments.keys,
        rate: arguments.rate,
        rounds: arguments.rounds.max(1),
    }
}

fn append(path: &Path, record: &Record) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(file.write_all(record.lines()?.as_bytes())?)
}
