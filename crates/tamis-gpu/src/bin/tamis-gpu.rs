//! Filters on a GPU: checked against the library, and timed.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use clap::{Parser, Subcommand};
use serde::Serialize;
use tamis::blocked_rank::BlockedRankParams;
use tamis::{Digest, Goal, Hasher, Insert, Label, Remove, Stored};
use tamis_gpu::{Blocked, BlockedRank, Buffer, Error, Gpu, Keys};

/// Filters on a GPU: checked against the library, and timed
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Examples:
  tamis-gpu check --keys 1000,1000000          # bytes equal to the library's, 12 shapes
  tamis-gpu churn --operations 1000000000      # batches that come and go, 20 comparisons
  tamis-gpu memory                             # what happens when the GPU has none left
  tamis-gpu bench --keys 268435456 --json      # operations a second, beside their floors"
)]
struct Arguments {
    /// Number of the GPU
    #[arg(long, default_value_t = 0)]
    gpu: usize,

    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Builds filters of several shapes on the GPU and with the library, and compares all bytes;
    /// lines say how long it took until then
    Check {
        /// How many keys, separated by commas
        #[arg(long, value_delimiter = ',', default_value = "1000,100000")]
        keys: Vec<u64>,
        /// Bits of a block, separated by commas
        #[arg(long, value_delimiter = ',', default_value = "512,1024,2048,16384")]
        blocks: Vec<u64>,
        /// Rates, separated by commas
        #[arg(long, value_delimiter = ',', default_value = "0.03,0.003,0.0003")]
        rates: Vec<f64>,
    },
    /// Inserts and removes batches in a filter on the GPU and in one of the library, and compares
    /// all bytes 20 times
    Churn {
        /// Insertions and removals in all
        #[arg(long, default_value_t = 10_000_000)]
        operations: u64,
        /// Keys that the filter is planned for
        #[arg(long, default_value_t = 1_000_000)]
        keys: u64,
    },
    /// Takes most of the GPU's memory, and checks that a filter or a batch that finds none is an
    /// error, loses no key and leaves the GPU in order
    Memory,
    /// Times all operations, with keys in the memory of the GPU, beside their floors
    Bench {
        /// Keys of the filter
        #[arg(long, default_value_t = 1 << 28)]
        keys: u64,
        /// The filter's rate
        #[arg(long, default_value_t = 0.003)]
        rate: f64,
        /// How often each operation is timed
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Outcome = Result<(), Failure>;

fn main() -> ExitCode {
    let Arguments { gpu, verb } = Arguments::parse();
    let done = Gpu::new(gpu).map_err(Into::into).and_then(|gpu| match verb {
        Verb::Check { keys, blocks, rates } => check(&gpu, &keys, &blocks, &rates),
        Verb::Churn { operations, keys } => churn(&gpu, operations, keys),
        Verb::Memory => memory(&gpu),
        Verb::Bench { keys, rate, rounds, json } => bench(&gpu, keys, rate, rounds, json),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tamis-gpu: {error}");
            ExitCode::from(2)
        }
    }
}

fn planned(keys: u64, rate: f64, block: u64) -> Result<BlockedRankParams, tamis::PlanError> {
    let mut goal = Goal::rate(keys, rate);
    goal.fixed.push(("block".into(), block));
    tamis::BlockedRank::least(&goal)
}

fn same(gpu: &BlockedRank, cpu: &tamis::BlockedRank) -> Outcome {
    let here = gpu.to_cpu()?;
    // (A content id takes as long as all the rest.)
    let [own, wanted] = thread::scope(|scope| {
        [&here, cpu].map(|filter| scope.spawn(|| filter.content_id())).map(ScopedJoinHandle::join)
    });
    if own.map_err(|_| "no content id")? != wanted.map_err(|_| "no content id")? {
        return Err("another content id than the library's".into());
    }
    // Their pieces, which are not copied.
    if !here.encode().pieces().eq(cpu.encode().pieces()) {
        return Err("other bytes than the library's".into());
    }
    Ok(())
}

/// The digests of the integers below `keys`, in order: the library builds from such at once.
fn sorted_digests(keys: u64, threads: u64) -> Vec<Digest> {
    let own = |number: u64| {
        let part = |digest: Digest| ((u128::from(digest.0) * u128::from(threads)) >> 64) as u64;
        let digests = (0..keys).map(|key| Hasher::default().digest(&key));
        let mut own: Vec<Digest> = digests.filter(|&digest| part(digest) == number).collect();
        own.sort_unstable_by_key(|digest| digest.0);
        own
    };
    thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|part| scope.spawn(move || own(part))).collect();
        let mut all = Vec::with_capacity(keys as usize);
        for part in parts {
            match part.join() {
                Ok(part) => all.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })
}

/// Comparisons that go on while the next filters are built: each takes a few cores and three times
/// the memory of a filter.
const COMPARED_AT_ONCE: usize = 4;

/// Waits for a comparison.
fn finish(comparison: ScopedJoinHandle<'_, Outcome>) -> Outcome {
    comparison.join().unwrap_or_else(|_| Err("a comparison panicked".into()))
}

fn check(gpu: &Gpu, numbers: &[u64], blocks: &[u64], rates: &[f64]) -> Outcome {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    // So that a run that is stopped says how far it came.
    let told = |what: &str| println!("{:7.1} s  {what}", start.elapsed().as_secs_f64());
    for &keys in numbers {
        let on_gpu = gpu.upload(&(0..keys).collect::<Vec<u64>>())?;
        let digests = sorted_digests(keys, threads as u64);
        told(&format!("{keys} keys: hashed and sorted"));
        let shapes = blocks.iter().flat_map(|&block| rates.iter().map(move |&rate| (block, rate)));
        thread::scope(|scope| -> Outcome {
            let mut comparisons = VecDeque::new();
            for (block, rate) in shapes {
                let params = planned(keys, rate, block)?;
                let shape = format!("{keys} keys, rate {rate}, blocks of {block} bits");
                let mut filter = BlockedRank::new(gpu, params, Hasher::default())?;
                filter.insert(&Keys::Integers(&on_gpu, keys))?;
                if filter.contained(&Keys::Integers(&on_gpu, keys))? != keys {
                    return Err("a key was lost".into());
                }
                told(&format!("{shape}: built on the GPU, every key found"));
                if comparisons.len() == COMPARED_AT_ONCE {
                    comparisons.pop_front().map_or(Ok(()), finish)?;
                }
                let label = Label::planned(Hasher::default(), params.capacity());
                let cpu = tamis::BlockedRank::build_in_parallel(params, label, &digests, threads)?;
                comparisons.push_back(scope.spawn(move || {
                    same(&filter, &cpu).map_err(|error| format!("{shape}: {error}"))?;
                    told(&format!("{shape}: equal bytes"));
                    Ok(())
                }));
            }
            comparisons.into_iter().try_for_each(finish)
        })?;
    }
    Ok(())
}

/// How often memory is short, by less each time.
const SHORTAGES: u64 = 20;

/// Keys of the filter that must survive.
const KEPT: u64 = 1_000_000;

fn memory(gpu: &Gpu) -> Outcome {
    let on_gpu = gpu.upload(&(0..2 * KEPT).collect::<Vec<u64>>())?;
    let (kept, all) = (Keys::Integers(&on_gpu, KEPT), Keys::Integers(&on_gpu, 2 * KEPT));
    let params = planned(2 * KEPT, 0.003, 512)?;
    let start = || -> Result<BlockedRank, Failure> {
        let mut filter = BlockedRank::new(gpu, params, Hasher::default())?;
        filter.insert(&kept)?;
        Ok(filter)
    };
    let mut filter = start()?;
    let before = filter.to_cpu()?;
    let mut twice = start()?;
    twice.insert(&all)?;
    let after = twice.to_cpu()?;
    drop(twice);

    // Little is left: a filter of ten times that has no room.
    gpu.give_back()?;
    let (free, whole) = gpu.memory()?;
    let left = 512 << 20;
    let ballast = gpu.allocate(free.saturating_sub(left) / 8)?;
    println!("{free} bytes of {whole} are free; all but about {left} are taken");
    match BlockedRank::new(gpu, planned(8 * left, 0.003, 512)?, Hasher::default()) {
        Err(Error::OutOfMemory { bytes }) => {
            println!("a filter: {}", Error::OutOfMemory { bytes });
        }
        Err(error) => return Err(error.into()),
        Ok(_) => return Err("a filter that has no room was made".into()),
    }
    match filter.insert(&Keys::MadeUp(0, left)) {
        Err(error @ Error::OutOfMemory { .. }) => println!("a batch: {error}"),
        Err(error) => return Err(error.into()),
        Ok(()) => return Err("a batch that has no room was inserted".into()),
    }
    same(&filter, &before)?;
    drop(ballast);

    // From nothing left to enough: the batch is in, or it is not, or the filter says that it is
    // damaged.
    let (mut refused, mut damaged, mut done) = (0, 0, 0);
    for room in (0..SHORTAGES).map(|step| step * (12 << 20)) {
        let mut filter = start()?;
        gpu.give_back()?;
        let ballast = fill(gpu, room)?;
        let outcome = filter.insert(&all);
        drop(ballast);
        match (outcome, filter.contained(&kept)) {
            (Ok(()), Ok(KEPT)) => {
                same(&filter, &after)?;
                done += 1;
            }
            (Err(Error::OutOfMemory { .. }), Ok(KEPT)) => {
                same(&filter, &before)?;
                refused += 1;
            }
            (Err(Error::OutOfMemory { .. }), Err(Error::HalfDone)) => damaged += 1,
            (outcome, found) => return Err(format!("{room} bytes: {outcome:?}, {found:?}").into()),
        }
    }
    println!(
        "{SHORTAGES} batches: {done} inserted, {refused} refused, {damaged} left damage, told"
    );
    if done == 0 || refused == 0 {
        return Err("the memory was never short, or always".into());
    }
    // The GPU is as it was.
    let mut filter = start()?;
    same(&filter, &before)?;
    filter.insert(&all)?;
    same(&filter, &after)?;
    println!("afterwards: equal bytes");
    Ok(())
}

/// Takes all memory but about `room` bytes.
fn fill(gpu: &Gpu, room: u64) -> Result<Vec<Buffer>, Error> {
    let mut ballast = Vec::new();
    let (free, _) = gpu.memory()?;
    let mut piece = free.saturating_sub(room);
    // The driver needs some for itself, and gives memory in pieces of 2 MiB.
    while piece >= 1 << 20 {
        match gpu.allocate(piece / 8) {
            Ok(taken) => ballast.push(taken),
            Err(Error::OutOfMemory { .. }) => {}
            Err(error) => return Err(error),
        }
        let (free, _) = gpu.memory()?;
        piece = (piece / 2).min(free.saturating_sub(room));
    }
    Ok(ballast)
}

fn churn(gpu: &Gpu, operations: u64, keys: u64) -> Outcome {
    let params = planned(keys, 0.003, 512)?;
    let mut filter = BlockedRank::new(gpu, params, Hasher::default())?;
    let label = Label::planned(Hasher::default(), params.capacity());
    let mut cpu = tamis::BlockedRank::new(params, label)?;
    let mut inside: Vec<u64> = Vec::new();
    let (mut random, mut next, mut done, mut compared) = (Digest(1), 0, 0, 0);
    while done < operations || compared < 20 {
        random = Digest(random.word(0));
        let fill = inside.len() as u64;
        let removes = fill > keys * 99 / 100 || (fill > keys / 2 && random.0 % 2 == 0);
        let number = 1 + random.word(1) % (keys / 2).max(1);
        let batch: Vec<u64> = if removes {
            for at in 0..number.min(fill) {
                let other = random.word(at + 2) % fill;
                inside.swap(other as usize, (fill - 1 - at.min(fill - 1)) as usize);
            }
            inside.split_off((fill - number.min(fill)) as usize)
        } else {
            let number = number.min(keys - fill);
            next += number;
            (next - number..next).collect()
        };
        let on_gpu = gpu.upload(&batch)?;
        let given = Keys::Integers(&on_gpu, batch.len() as u64);
        let digests: Vec<Digest> = batch.iter().map(|key| Hasher::default().digest(key)).collect();
        if removes {
            let removed = filter.remove(&given)?;
            if removed != cpu.remove_many(&digests) || removed != batch.len() as u64 {
                return Err("a key that was in could not be removed".into());
            }
        } else {
            filter.insert(&given)?;
            cpu.insert_many(&digests)?;
            inside.extend(&batch);
        }
        done += batch.len() as u64;
        if done * 20 >= operations * (compared + 1) {
            same(&filter, &cpu)?;
            compared += 1;
            println!("{done} operations, {} keys: equal bytes", inside.len());
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Row {
    filter: &'static str,
    operation: &'static str,
    /// Keys a second, in billions: the median of all rounds, the least and the most.
    median: f64,
    least: f64,
    most: f64,
}

#[derive(Serialize)]
struct Record {
    gpu: String,
    keys: u64,
    rate: f64,
    bits_per_key: f64,
    measured_rate: f64,
    rows: Vec<Row>,
}

struct Bench<'a> {
    gpu: &'a Gpu,
    rounds: usize,
    rows: Vec<Row>,
}

impl Bench<'_> {
    /// Times `run`, after `prepare` each time, once more than is counted.
    fn time<T>(
        &mut self,
        (filter, operation): (&'static str, &'static str),
        keys: u64,
        mut prepare: impl FnMut() -> Result<T, Error>,
        mut run: impl FnMut(&mut T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut speeds = Vec::new();
        for _ in 0..=self.rounds {
            let mut prepared = prepare()?;
            self.gpu.wait()?;
            let start = Instant::now();
            run(&mut prepared)?;
            self.gpu.wait()?;
            speeds.push(keys as f64 / start.elapsed().as_secs_f64() / 1e9);
        }
        speeds.remove(0);
        speeds.sort_by(f64::total_cmp);
        let (least, most) = (speeds[0], speeds[speeds.len() - 1]);
        let row = Row { filter, operation, median: speeds[speeds.len() / 2], least, most };
        eprintln!("{filter:<14} {operation:<28} {:>8.2} G/s", row.median);
        self.rows.push(row);
        Ok(())
    }
}

/// Times questions whose keys and answers are in the memory of the host.
fn bench_host(bench: &mut Bench<'_>, full: &BlockedRank, keys: u64) -> Outcome {
    let gpu = bench.gpu;
    let number = keys.min(1 << 27) as usize;
    let mut pinned = gpu.pinned(number)?;
    for (at, word) in pinned.as_mut_slice()?.iter_mut().enumerate() {
        *word = at as u64;
    }
    let mut on_gpu = gpu.upload(&vec![0; number])?;
    bench.time(
        ("floor", "copy of keys from the host"),
        number as u64,
        || Ok(()),
        |()| gpu.copy_from_host(&pinned, &mut on_gpu),
    )?;
    let mut found = gpu.pinned(number)?;
    bench.time(
        ("blocked-rank", "hit, keys on the host"),
        number as u64,
        || Ok(()),
        |()| full.contains_on_host(pinned.as_slice()?, found.as_mut_slice()?),
    )?;
    if found.as_slice()?.contains(&false) {
        return Err("a key was lost".into());
    }
    Ok(())
}

/// Times a blocked Bloom filter of the same rate.
fn bench_blocked(
    bench: &mut Bench<'_>,
    goal: &Goal,
    [all, misses]: [&Keys<'_>; 2],
    answers: &mut Buffer,
) -> Outcome {
    let (gpu, keys) = (bench.gpu, goal.keys);
    let blocked = tamis::BlockedBloom::least(goal)?;
    let new = || Blocked::new(gpu, blocked, Hasher::default());
    bench.time(("blocked", "insert"), keys, new, |filter| filter.insert(all))?;
    let mut bloom = new()?;
    bloom.insert(all)?;
    bench.time(("blocked", "hit"), keys, || Ok(()), |()| bloom.contains_into(all, answers))?;
    bench.time(("blocked", "miss"), keys, || Ok(()), |()| bloom.contains_into(misses, answers))?;
    Ok(())
}

fn bench(gpu: &Gpu, keys: u64, rate: f64, rounds: usize, json: bool) -> Outcome {
    let params = planned(keys, rate, 512)?;
    let hasher = Hasher::default();
    let new = || BlockedRank::new(gpu, params, hasher);
    let inside = gpu.upload(&(0..keys).collect::<Vec<u64>>())?;
    let absent = gpu.upload(&(keys..2 * keys).collect::<Vec<u64>>())?;
    let all = Keys::Integers(&inside, keys);
    let half = Keys::Integers(&inside, keys / 2);
    let mut answers = gpu.upload(&vec![0; keys.div_ceil(8) as usize])?;
    let mut bench = Bench { gpu, rounds, rows: Vec::new() };

    bench.time(("blocked-rank", "build"), keys, new, |filter| filter.insert(&all))?;
    let mut full = new()?;
    full.insert(&all)?;
    bench.time(
        ("blocked-rank", "hit"),
        keys,
        || Ok(()),
        |()| full.contains_into(&all, &mut answers),
    )?;
    let misses = Keys::Integers(&absent, keys);
    bench.time(
        ("blocked-rank", "miss"),
        keys,
        || Ok(()),
        |()| full.contains_into(&misses, &mut answers),
    )?;
    let made_up = Keys::MadeUp(1 << 50, keys);
    let mut passed = 0;
    bench.time(
        ("blocked-rank", "miss, no key traffic"),
        keys,
        || Ok(()),
        |()| {
            passed = full.contained(&made_up)?;
            Ok(())
        },
    )?;
    bench.time(
        ("floor", "random lines of 64 bytes"),
        keys,
        || Ok(()),
        |()| full.read_lines(keys),
    )?;
    let filled = || {
        let mut filter = new()?;
        filter.insert(&all)?;
        Ok(filter)
    };
    bench.time(("blocked-rank", "remove half"), keys / 2, filled, |filter| {
        filter.remove(&half).map(drop)
    })?;
    let halved = || {
        let mut filter = filled()?;
        filter.remove(&half)?;
        Ok(filter)
    };
    bench.time(("blocked-rank", "insert into half full"), keys / 2, halved, |filter| {
        filter.insert(&half)
    })?;
    bench_blocked(&mut bench, &Goal::rate(keys, rate), [&all, &misses], &mut answers)?;
    bench_host(&mut bench, &full, keys)?;

    let record = Record {
        gpu: gpu.name()?,
        keys,
        rate,
        bits_per_key: 8.0 * full.bytes() as f64 / keys as f64,
        measured_rate: passed as f64 / keys as f64,
        rows: bench.rows,
    };
    if json {
        println!("{}", serde_json::to_string_pretty(&record)?);
        return Ok(());
    }
    println!(
        "{}: {} keys, {:.2} bits per key, rate {:.4}% measured, {:.4}% asked for",
        record.gpu,
        keys,
        record.bits_per_key,
        100.0 * record.measured_rate,
        100.0 * rate
    );
    println!("| filter | operation | G keys/s | least | most |\n|---|---|---|---|---|");
    for Row { filter, operation, median, least, most } in &record.rows {
        println!("| {filter} | {operation} | {median:.2} | {least:.2} | {most:.2} |");
    }
    Ok(())
}
