//! Builds one filter, checks and measures it, and reports predictions and measurements side by
//! side.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};
use tamis::{
    AnyFilter, AnyParams, Digest, Filter, Goal, Hasher, Kind, Label, Plan, PlanError, Size,
};

use crate::keys::KeyStream;
use crate::memory;
use crate::papers::statistics::exact_interval;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The kind of filter.
    pub kind: Kind,
    /// Keys and size.
    pub goal: Goal,
    /// Hash function and seed of the filter.
    pub hasher: Hasher,
    /// Fixes the keys.
    pub key_seed: u64,
    /// How many absent keys to look up. By default as many as give 4,000 expected false positives,
    /// but at most 10^9.
    pub queries: Option<u64>,
}

/// What was measured, field by field as the command line prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Name of the kind.
    pub kind: &'static str,
    /// Keys inserted.
    pub keys: u64,
    /// The layout.
    pub params: Map<String, Value>,
    /// The rate asked for, if one was.
    pub target_rate: Option<f64>,
    /// The model's rate.
    pub predicted_rate: f64,
    /// The rate computed from the bits of the filter that was built.
    pub fill_rate: f64,
    /// False positives divided by queries.
    pub measured_rate: f64,
    /// Lower end of the 99.9% interval for the expected rate.
    pub rate_low: f64,
    /// Upper end.
    pub rate_high: f64,
    /// Absent keys that were looked up.
    pub queries: u64,
    /// Members that were not found, or could not be removed. Anything but 0 is a fault of the
    /// library.
    pub false_negatives: u64,
    /// Heap memory held by the filter, by a counting allocator.
    pub bits_per_key: f64,
    /// Bits of the encoded filter, divided by keys.
    pub wire_bits_per_key: f64,
    /// Nanoseconds for one insertion; for kinds that are built once, to build, for each key. All
    /// times exclude hashing.
    pub insert_ns: f64,
    /// Nanoseconds to look up a member.
    pub hit_ns: f64,
    /// Nanoseconds to look up an absent key.
    pub miss_ns: f64,
    /// Nanoseconds for a removal, where the kind can remove.
    pub remove_ns: Option<f64>,
    /// Nanoseconds to look up an absent key in a batch.
    pub batch_miss_ns: f64,
    /// Distinct blocks touched by an insertion; 0 for kinds that are built once.
    pub blocks_per_insert: f64,
    /// Distinct blocks read for a member.
    pub blocks_per_hit: f64,
    /// Distinct blocks read for an absent key.
    pub blocks_per_miss: f64,
    /// Share of the keys in the overflow, where the kind has one.
    pub overflow_share: Option<f64>,
}

/// Why there is nothing to report.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no filter for the goal.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The filter could not be built.
    #[error(transparent)]
    Build(#[from] tamis::BuildError),
    /// The filter refused a key because it was full.
    #[error(transparent)]
    Full(#[from] tamis::Full),
    /// There is no delta.
    #[error(transparent)]
    Delta(#[from] tamis::DeltaError),
    /// A key that was inserted is not found.
    #[error("a key is lost: this is a fault of tamis, please report it")]
    Lost,
    /// Memory cannot be measured.
    #[error("the counting allocator is not installed in this program")]
    NotCounting,
}

/// Digests are made, untimed, in batches of this size: they stay in the first-level cache.
const BATCH: u64 = 1024;
/// How many absent keys are looked up one by one before the others are looked up in batches.
const SINGLE_MISSES: u64 = 4_000_000;
/// Keys whose blocks are counted.
const COUNTED_KEYS: u64 = 1_000_000;
/// Standard normal quantile of a two-sided 99.9%.
const Z: f64 = 3.290_526_731_491_926;

/// Builds a filter, checks that every key is found, and measures. Calls `progress` with the share
/// that is done.
pub fn run(setup: &Setup, progress: &mut dyn FnMut(f64)) -> Result<Outcome, Failure> {
    let Setup { kind, goal, hasher, key_seed, queries } = setup;
    let keys = goal.keys;
    let stream = KeyStream::new(*key_seed);
    let Plan { params, predicted, .. } = Plan::of(*kind, goal)?;
    let queries = queries.unwrap_or_else(|| expected_four_thousand(predicted.rate));

    let (mut filter, insert_ns, held) = if kind.can_insert() {
        let before = memory::held();
        let mut filter = build(params, *hasher, keys)?;
        let ns = insert(&mut filter, stream, keys, &mut |share| progress(0.2 * share))?;
        (filter, ns, memory::held() - before)
    } else {
        let (filter, ns) = build_once(params, *hasher, stream, keys)?;
        // Several threads may have built the filter, and only memory of this thread is counted. So
        // a copy is made here.
        let before = memory::held();
        let copy = filter.clone();
        let held = memory::held() - before;
        drop(copy);
        (filter, ns, held)
    };
    if held <= 0 {
        return Err(Failure::NotCounting);
    }
    let (false_negatives, hit_ns) = hits(&filter, stream, keys);
    progress(0.3);
    let misses = misses(&filter, stream, queries, &mut |share| {
        progress(0.3 + 0.5 * share);
    });
    let blocks = count_blocks(params, &filter, stream)?;
    progress(0.9);
    let wire = filter.encode().len();
    let overflow = filter.overflow();
    let fill_rate = filter.rate();
    let removal = remove(&mut filter, stream, keys);
    progress(1.0);

    let (low, high) = exact_interval(misses.false_positives, queries, 0.999);
    let widening = (Z * predicted.rate_spread).exp();
    let per_key = |bits: f64| bits / keys.max(1) as f64;
    Ok(Outcome {
        kind: kind.name(),
        keys,
        params: params
            .named()
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        target_rate: match goal.size {
            Size::Rate(rate) => Some(rate),
            _ => None,
        },
        predicted_rate: predicted.rate,
        fill_rate,
        measured_rate: misses.false_positives as f64 / queries.max(1) as f64,
        rate_low: low / widening,
        rate_high: (high * widening).min(1.0),
        queries,
        false_negatives: false_negatives + removal.as_ref().map_or(0, |removal| removal.refused),
        bits_per_key: per_key(held as f64 * 8.0),
        wire_bits_per_key: per_key(wire as f64 * 8.0),
        insert_ns,
        hit_ns,
        miss_ns: misses.single_ns,
        remove_ns: removal.map(|removal| removal.ns),
        batch_miss_ns: misses.batch_ns,
        blocks_per_insert: blocks.insert,
        blocks_per_hit: blocks.hit,
        blocks_per_miss: blocks.miss,
        overflow_share: overflow.map(|entries| per_key(entries as f64)),
    })
}

fn expected_four_thousand(rate: f64) -> u64 {
    // An empty filter has no false positives.
    if rate > 0.0 { (4000.0 / rate).ceil().clamp(1e6, 1e9) as u64 } else { 1_000_000 }
}

fn build(params: AnyParams, hasher: Hasher, keys: u64) -> Result<AnyFilter, Failure> {
    Ok(params.build(Label::planned(hasher, keys)).map_err(PlanError::from)?)
}

/// Builds a filter from all keys at once. Returns it, and the time for each key.
fn build_once(
    params: AnyParams,
    hasher: Hasher,
    stream: KeyStream,
    keys: u64,
) -> Result<(AnyFilter, f64), Failure> {
    let digests: Vec<Digest> = stream.members(hasher, 0..keys).collect();
    let mut watch = Stopwatch::default();
    let filter =
        watch.time(digests.len(), || params.build_from(Label::planned(hasher, keys), &digests))?;
    Ok((filter, watch.ns()))
}

/// The time that a number of operations took.
#[derive(Default)]
struct Stopwatch {
    spent: Duration,
    operations: u64,
}

impl Stopwatch {
    fn time<R>(&mut self, operations: usize, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.spent += start.elapsed();
        self.operations += operations as u64;
        result
    }

    fn ns(&self) -> f64 {
        self.spent.as_nanos() as f64 / self.operations.max(1) as f64
    }
}

/// The numbers `0..total`, in ranges of one batch each.
fn batches(total: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..total.div_ceil(BATCH)).map(move |batch| batch * BATCH..((batch + 1) * BATCH).min(total))
}

fn insert(
    filter: &mut AnyFilter,
    stream: KeyStream,
    keys: u64,
    progress: &mut dyn FnMut(f64),
) -> Result<f64, Failure> {
    let hasher = filter.hasher();
    let Some(filter) = filter.as_insert() else { return Ok(0.0) };
    let mut watch = Stopwatch::default();
    let mut digests = Vec::with_capacity(BATCH as usize);
    for range in batches(keys) {
        progress(range.start as f64 / keys as f64);
        digests.clear();
        digests.extend(stream.members(hasher, range));
        watch.time(digests.len(), || {
            digests.iter().try_for_each(|&digest| filter.insert_digest(digest).map(|_| ()))
        })?;
    }
    Ok(watch.ns())
}

/// Looks up every key, in another order than that of insertion. Returns how many were not found,
/// and the time for one lookup.
fn hits(filter: &AnyFilter, stream: KeyStream, keys: u64) -> (u64, f64) {
    let mut watch = Stopwatch::default();
    let mut missing = 0;
    let mut digests: Vec<Digest> = Vec::with_capacity(BATCH as usize);
    for range in batches(keys) {
        // From the last inserted to the first.
        let range = keys - range.end..keys - range.start;
        digests.clear();
        digests.extend(stream.members(filter.hasher(), range));
        let found = watch.time(digests.len(), || count_found(filter, &digests));
        missing += digests.len() as u64 - found;
    }
    (missing, watch.ns())
}

fn count_found(filter: &AnyFilter, digests: &[Digest]) -> u64 {
    digests.iter().map(|&digest| u64::from(filter.contains_digest(digest))).sum()
}

struct Misses {
    false_positives: u64,
    single_ns: f64,
    batch_ns: f64,
}

/// Looks up absent keys: one by one first, then in batches.
fn misses(
    filter: &AnyFilter,
    stream: KeyStream,
    queries: u64,
    progress: &mut dyn FnMut(f64),
) -> Misses {
    let singles = (queries / 2).min(SINGLE_MISSES);
    let (mut single, mut batch) = (Stopwatch::default(), Stopwatch::default());
    let mut false_positives = 0;
    let mut digests: Vec<Digest> = Vec::with_capacity(BATCH as usize);
    let mut answers = [false; BATCH as usize];
    for range in batches(queries) {
        progress(range.start as f64 / queries as f64);
        let one_by_one = range.end <= singles;
        digests.clear();
        digests.extend(stream.absent_keys(filter.hasher(), range));
        false_positives += if one_by_one {
            single.time(digests.len(), || count_found(filter, &digests))
        } else {
            let answers = &mut answers[..digests.len()];
            batch.time(digests.len(), || filter.contains_many(&digests, answers));
            answers.iter().map(|&answer| u64::from(answer)).sum()
        };
    }
    Misses { false_positives, single_ns: single.ns(), batch_ns: batch.ns() }
}

struct Blocks {
    insert: f64,
    hit: f64,
    miss: f64,
}

/// Counts blocks: those of insertions while a second filter fills, those of lookups in the
/// finished one.
fn count_blocks(
    params: AnyParams,
    filled: &AnyFilter,
    stream: KeyStream,
) -> Result<Blocks, Failure> {
    let (hasher, keys) = (filled.hasher(), filled.keys());
    let step = keys.div_ceil(COUNTED_KEYS).max(1);
    let mut fresh = build(params, hasher, keys)?;
    let mut touched = 0;
    if let Some(fresh) = fresh.as_insert() {
        for (index, digest) in stream.members(hasher, 0..keys).enumerate() {
            if (index as u64).is_multiple_of(step) {
                touched += u64::from(fresh.blocks_to_insert(digest));
            }
            fresh.insert_digest(digest)?;
        }
    }
    let counted = keys.div_ceil(step);
    let mean = |sum: u64, over: u64| sum as f64 / over.max(1) as f64;
    let read = |digest: Digest| u64::from(filled.blocks_to_contain(digest));
    Ok(Blocks {
        insert: mean(touched, counted),
        hit: mean(stream.members(hasher, 0..counted).map(read).sum(), counted),
        miss: mean(stream.absent_keys(hasher, 0..COUNTED_KEYS).map(read).sum(), COUNTED_KEYS),
    })
}

struct Removal {
    refused: u64,
    ns: f64,
}

/// Removes up to a million keys, where the kind can remove.
fn remove(filter: &mut AnyFilter, stream: KeyStream, keys: u64) -> Option<Removal> {
    let hasher = filter.hasher();
    let filter = filter.as_remove()?;
    let mut watch = Stopwatch::default();
    let mut refused = 0;
    let mut digests: Vec<Digest> = Vec::with_capacity(BATCH as usize);
    for range in batches(keys.min(1_000_000)) {
        digests.clear();
        digests.extend(stream.members(hasher, range));
        refused += watch.time(digests.len(), || {
            digests.iter().filter(|&&digest| filter.remove_digest(digest).is_err()).count() as u64
        });
    }
    Some(Removal { refused, ns: watch.ns() })
}
