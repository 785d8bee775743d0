//! One thread against two: insertions and lookups in sharded and atomic filters, one by one and in
//! batches, and beside them the plain filter on one thread.
//!
//! `cargo run --release -p tamis-bench --bin threads [keys] [rounds] [shards]`: a million keys,
//! five rounds and 64 shards by default; the best round counts. Every round is verified.
//! Nanoseconds for each key on the clock; the last column of each pair is how many times quicker
//! two threads are.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use tamis::{
    AnyParams, AtomicBlockedBloom, AtomicBloom, BlockedBloom, BlockedRank, Bloom, Digest, Filter,
    Goal, Hasher, Insert, Kind, RankIndexed, Sharded, Stored,
};
use tamis_report::keys::KeyStream;

const RATE: f64 = 0.01;
/// Digests in a batch.
const BATCH: usize = 4096;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let mut next = |default| arguments.next().unwrap_or(default);
    let (keys, rounds, shards) = (next(1_000_000), next(5), next(64));
    let bench = Bench {
        keys: KeyStream::new(1).members(Hasher::default(), 0..keys as u64).collect(),
        goal: Goal::rate(keys as u64, RATE),
        rounds,
        shards,
    };
    bench.builds();
    println!("| filter | operation | plain | one thread | two threads | times |");
    println!("|---|---|---|---|---|---|");
    bench.sharded::<BlockedRank>("sharded blocked-rank");
    bench.sharded::<RankIndexed>("sharded rank-indexed");
    bench.sharded::<BlockedBloom>("sharded blocked");
    let bloom = || Bloom::with_rate(keys as u64, RATE).expect("a plan");
    let blocked = || BlockedBloom::with_rate(keys as u64, RATE).expect("a plan");
    bench.rows(
        "atomic bloom",
        bloom,
        || AtomicBloom::from(bloom()),
        |filter, digest| _ = filter.insert_digest(digest),
        AtomicBloom::insert_many,
    );
    bench.rows(
        "atomic blocked",
        blocked,
        || AtomicBlockedBloom::from(blocked()),
        |filter, digest| _ = filter.insert_digest(digest),
        AtomicBlockedBloom::insert_many,
    );
}

struct Bench {
    keys: Vec<Digest>,
    goal: Goal,
    rounds: usize,
    shards: usize,
}

/// The best time of each operation so far.
struct Best([f64; 4]);

const OPERATIONS: [&str; 4] = ["insert", "lookup", "insert, batches", "lookup, batches"];

impl Best {
    fn new() -> Self {
        Self([f64::MAX; 4])
    }

    fn note(&mut self, times: [f64; 4]) {
        for (best, time) in self.0.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
}

impl Bench {
    /// Whole filters from their keys; the bytes must be the same.
    fn builds(&self) {
        println!("| building | one thread | two threads | times |\n|---|---|---|---|");
        for kind in [Kind::Bloom, Kind::Blocked] {
            let params = AnyParams::plan(kind, &self.goal).expect("a plan");
            let mut best = [f64::MAX; 2];
            for _ in 0..self.rounds {
                let built = [1, 2].map(|threads| {
                    let mut filter = None;
                    let time = self.time(|| {
                        let built =
                            params.build_in_parallel(Hasher::default(), &self.keys, threads);
                        filter = Some(built.expect("memory"));
                    });
                    best[threads - 1] = best[threads - 1].min(time);
                    filter
                });
                assert!(built[0] == built[1], "other bytes");
            }
            let [one, two] = best;
            println!("| {} | {one:.1} | {two:.1} | {:.2} |", kind.name(), one / two);
        }
        println!();
    }

    fn sharded<F: Stored + Insert + Send + Sync>(&self, name: &str) {
        let params = Sharded::<F>::plan(&self.goal, Hasher::default(), 1).expect("a plan");
        let params = params.into_shards().remove(0).params();
        let values = tamis::Params::values(&params);
        self.rows(
            name,
            || {
                let params = tamis::Params::from_values(&values).expect("params of its own");
                F::new(params, Hasher::default()).expect("memory")
            },
            || Sharded::<F>::plan(&self.goal, Hasher::default(), self.shards).expect("a plan"),
            |filter, digest| _ = filter.insert_digest(digest).expect("room"),
            |filter, digests| filter.insert_many(digests).expect("room"),
        );
    }

    fn rows<P: Insert, F: Filter + Sync>(
        &self,
        name: &str,
        plain: impl Fn() -> P,
        make: impl Fn() -> F,
        insert: impl Fn(&F, Digest) + Sync,
        insert_many: impl Fn(&F, &[Digest]) + Sync,
    ) {
        let mut alone = Best::new();
        let mut shared = [Best::new(), Best::new()];
        for _ in 0..self.rounds {
            alone.note(self.plain(&plain));
            for (threads, best) in [1, 2].into_iter().zip(&mut shared) {
                best.note(self.threads(threads, &make, &insert, &insert_many));
            }
        }
        let [one, two] = shared;
        for (at, operation) in OPERATIONS.into_iter().enumerate() {
            let (plain, one, two) = (alone.0[at], one.0[at], two.0[at]);
            println!(
                "| {name} | {operation} | {plain:.1} | {one:.1} | {two:.1} | {:.2} |",
                one / two
            );
        }
    }

    fn plain<P: Insert>(&self, make: impl Fn() -> P) -> [f64; 4] {
        let (mut single, mut batched) = (make(), make());
        let insert = self.time(|| {
            self.keys.iter().for_each(|&key| _ = single.insert_digest(key).expect("room"));
        });
        let lookup = self.time(|| ask(&single, &self.keys));
        let insert_batches = self.time(|| batched.insert_many(&self.keys).expect("room"));
        let lookup_batches = self.time(|| ask_many(&batched, &self.keys));
        [insert, lookup, insert_batches, lookup_batches]
    }

    fn threads<F: Filter + Sync>(
        &self,
        threads: usize,
        make: impl Fn() -> F,
        insert: impl Fn(&F, Digest) + Sync,
        insert_many: impl Fn(&F, &[Digest]) + Sync,
    ) -> [f64; 4] {
        let (single, batched) = (make(), make());
        // On the clock from when the first thread begins to when the last ends.
        let all = |work: &(dyn Fn(&[Digest]) + Sync)| {
            let start = Barrier::new(threads);
            let timed = |part| {
                start.wait();
                let begin = Instant::now();
                work(part);
                (begin, Instant::now())
            };
            let times = thread::scope(|scope| {
                let parts = self.keys.chunks(self.keys.len().div_ceil(threads));
                let timed = &timed;
                let parts: Vec<_> = parts.map(|part| scope.spawn(move || timed(part))).collect();
                parts.into_iter().map(|part| part.join().expect("no panic")).collect::<Vec<_>>()
            });
            let begin = times.iter().map(|&(begin, _)| begin).min();
            let end = times.iter().map(|&(_, end)| end).max();
            let taken = begin.zip(end).map_or(0, |(begin, end)| (end - begin).as_nanos());
            taken as f64 / self.keys.len() as f64
        };
        [
            all(&|part| part.iter().for_each(|&key| insert(&single, key))),
            all(&|part| ask(&single, part)),
            all(&|part| part.chunks(BATCH).for_each(|batch| insert_many(&batched, batch))),
            all(&|part| ask_many(&batched, part)),
        ]
    }

    /// Nanoseconds for each key.
    fn time(&self, work: impl FnOnce()) -> f64 {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64 / self.keys.len() as f64
    }
}

/// Looks for keys that are in, from the last to the first; all must be found.
fn ask(filter: &impl Filter, keys: &[Digest]) {
    assert!(keys.iter().rev().all(|&key| filter.contains_digest(black_box(key))), "lost");
}

fn ask_many(filter: &impl Filter, keys: &[Digest]) {
    let mut answers = [false; BATCH];
    for batch in keys.chunks(BATCH).rev() {
        let answers = &mut answers[..batch.len()];
        filter.contains_many(batch, answers);
        assert!(answers.iter().all(|&answer| answer), "lost");
    }
}
