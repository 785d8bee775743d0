//! Fast tables beside `hashbrown`, in one run: the same keys, the same hash function, answers
//! verified before anything is timed, subjects interleaved over several rounds.
//!
//! ```text
//! cargo run --release -p tamis-bench --bin tables [rounds] [most keys]
//! ```
//!
//! Printed are nanoseconds a lookup, hashing included: the median of the rounds, and the median,
//! least and most of the ratio to hashbrown in the same round. Below 1 we are quicker.

use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::time::Instant;

use tamis::FastTable;
use tamis::fast_table::TableParams;
use tamis::internals::address::reduce;
use tamis_report::keys::KeyStream;
use tamis_report::memory::{self, CountingAllocator};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Lookups of a round.
const QUERIES: u64 = 1 << 20;
/// Keys asked for at once.
const BATCH: usize = 1024;

const HEAD: &str = "\
| keys | value, bytes | table | on chip, KiB | held, bytes a key | insert | hit | miss | hit, batch | miss, batch |
|---|---|---|---|---|---|---|---|---|---|";

/// The hash function of our tables, for the rival.
#[derive(Clone, Copy, Default)]
struct Xxh3;

/// The digest of the one integer that was written.
#[derive(Default)]
struct Xxh3State(u64);

impl BuildHasher for Xxh3 {
    type Hasher = Xxh3State;

    fn build_hasher(&self) -> Xxh3State {
        Xxh3State::default()
    }
}

impl Hasher for Xxh3State {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = tamis::Hasher::default().digest(bytes).0;
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = tamis::Hasher::default().digest(&value).0;
    }
}

type Rival<const W: usize> = hashbrown::HashMap<u64, [u64; W], Xxh3>;
type Ours<const W: usize> = FastTable<u64, [u64; W]>;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let rounds = arguments.next().unwrap_or(9) as usize;
    let most = arguments.next().unwrap_or(u64::MAX);
    println!("{HEAD}");
    let small = [1_000, 30_000, 1_000_000, 8_000_000];
    for keys in small.into_iter().filter(|&keys| keys <= most) {
        case::<6>(keys, rounds);
    }
    for keys in [1_000_000, 2_000_000].into_iter().filter(|&keys| keys <= most) {
        case::<32>(keys, rounds);
    }
}

/// A table that is timed.
enum Subject<const W: usize> {
    Rival(Rival<W>),
    Ours(Box<Ours<W>>),
}

/// Which one: (buckets a key, hash functions) of ours.
type Setting = Option<(u64, u32)>;

const SETTINGS: [Setting; 5] = [None, Some((1, 2)), Some((2, 2)), Some((4, 3)), Some((8, 5))];

impl<const W: usize> Subject<W> {
    fn new(setting: Setting, keys: u64) -> Self {
        let Some((buckets, hashes)) = setting else {
            return Self::Rival(Rival::with_capacity_and_hasher(keys as usize, Xxh3));
        };
        let params = TableParams::new(keys * buckets, hashes).expect("valid");
        Self::Ours(Box::new(FastTable::new(params, tamis::Hasher::default()).expect("memory")))
    }

    fn insert(&mut self, key: u64, value: [u64; W]) {
        match self {
            Self::Rival(table) => drop(table.insert(key, value)),
            Self::Ours(table) => drop(table.insert(key, value).expect("memory")),
        }
    }

    /// The sum of the values found, and nanoseconds a lookup.
    fn time(&self, keys: &[u64], batch: bool) -> (u64, f64) {
        let start = Instant::now();
        let sum = match self {
            Self::Rival(table) => sum(keys.iter().map(|key| table.get(key))),
            Self::Ours(table) if !batch => sum(keys.iter().map(|key| table.get(key))),
            Self::Ours(table) => {
                let mut found = [None; BATCH];
                keys.chunks(BATCH).fold(0_u64, |total, keys| {
                    let found = &mut found[..keys.len()];
                    table.get_many(keys, found);
                    total.wrapping_add(sum(found.iter().copied()))
                })
            }
        };
        let spent = start.elapsed();
        (black_box(sum), spent.as_nanos() as f64 / keys.len() as f64)
    }

    /// Bytes that a lookup reads before it knows where to look: the rival's is a byte a slot.
    fn on_chip(&self) -> u64 {
        match self {
            Self::Rival(table) => (table.capacity() as u64 * 8 / 7).next_power_of_two(),
            Self::Ours(table) => table.counters().map_or(0, |counters| counters.footprint() / 8),
        }
    }
}

fn sum<'a, const W: usize>(found: impl Iterator<Item = Option<&'a [u64; W]>>) -> u64 {
    found.flatten().fold(0, |sum, value| sum.wrapping_add(value[W - 1]))
}

/// A subject, filled, and what is known of it.
struct Row<const W: usize> {
    setting: Setting,
    subject: Subject<W>,
    held: f64,
    insert_ns: f64,
    /// Hits, misses, hits in batches, misses in batches: round by round.
    times: Vec<[f64; 4]>,
}

impl<const W: usize> Row<W> {
    fn new(setting: Setting, keys: u64) -> Self {
        let before = memory::held();
        let mut subject = Subject::new(setting, keys);
        let start = Instant::now();
        for key in 0..keys {
            subject.insert(KeyStream::new(1).member(key), [key; W]);
        }
        let insert_ns = start.elapsed().as_nanos() as f64 / keys as f64;
        let held = (memory::held() - before) as f64 / keys as f64;
        Self { setting, subject, held, insert_ns, times: Vec::new() }
    }

    fn print(&self, keys: u64, rival: &[[f64; 4]]) {
        let cell = |of: usize| {
            let time = median(self.times.iter().map(|times| times[of]));
            // The rival has no batches: its plain lookups stand for them.
            let ratios: Vec<f64> = self
                .times
                .iter()
                .zip(rival)
                .map(|(ours, rival)| ours[of] / rival[of % 2])
                .collect();
            let least = ratios.iter().copied().fold(f64::MAX, f64::min);
            let most = ratios.iter().copied().fold(0.0, f64::max);
            format!("{time:.0} ({:.2}, {least:.2}-{most:.2})", median(ratios.into_iter()))
        };
        let name = self.setting.map_or("hashbrown".to_string(), |(buckets, hashes)| {
            format!("m = {buckets} n, k = {hashes}")
        });
        let (value, chip) = (8 * W, self.subject.on_chip() >> 10);
        print!("| {keys} | {value} | {name} | {chip} | {:.0} | {:.0} ", self.held, self.insert_ns);
        println!("| {} | {} | {} | {} |", cell(0), cell(1), cell(2), cell(3));
    }
}

/// All subjects with `keys` keys, round by round.
fn case<const W: usize>(keys: u64, rounds: usize) {
    let mut rows = SETTINGS.map(|setting| Row::<W>::new(setting, keys));
    let stream = KeyStream::new(1);
    let asked = (0..QUERIES).map(|query| reduce(KeyStream::new(2).member(query), keys));
    let truth = asked.clone().fold(0_u64, u64::wrapping_add);
    let members: Vec<u64> = asked.map(|key| stream.member(key)).collect();
    let absent: Vec<u64> = (0..QUERIES).map(|query| stream.absent_key(query)).collect();
    let runs = [
        (&members, truth, false),
        (&absent, 0, false),
        (&members, truth, true),
        (&absent, 0, true),
    ];
    for _ in 0..rounds.max(1) {
        for row in &mut rows {
            row.times.push(runs.map(|(keys, truth, batch)| {
                let (sum, time) = row.subject.time(keys, batch);
                assert_eq!(sum, truth, "wrong answers");
                time
            }));
        }
    }
    let rival = rows[0].times.clone();
    for row in &rows {
        row.print(keys, &rival);
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
