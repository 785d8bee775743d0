//! Filters of every kind that are planned for a rate, built, checked and measured.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tamis::internals::coder::Effort as Packing;
use tamis::{AnyParams, Digest, Filter, Goal, Hasher, Kind, Label};

use super::estimate::reach;
use super::{Effort, Estimate, Experiment, Results, Trouble};
use crate::keys::KeyStream;
use crate::memory;

/// Keys of all filters that are built here.
pub(super) const KEYS: u64 = 100_000;

/// What a kind's model says.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Predicted {
    pub(super) rate: f64,
    /// The standard deviation of ln(rate) from filter to filter.
    spread: f64,
    pub(super) bits_per_key: f64,
    pub(super) packed_bits_per_key: f64,
    /// The standard deviation of the packed bits from filter to filter.
    packed_spread: f64,
}

/// One filter, and what was predicted of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct One {
    predicted: Predicted,
    /// Counted by the allocator.
    bits_per_key: f64,
    packed_bits_per_key: f64,
    passed: u64,
    queries: u64,
}

/// All filters of one kind and rate.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) predicted: Predicted,
    filters: Vec<One>,
}

impl Built {
    /// The measured rate. Its interval includes the spread between filters of this kind.
    pub(super) fn rate(&self) -> Estimate {
        let passed = self.filters.iter().map(|filter| filter.passed).sum();
        let queries = self.filters.iter().map(|filter| filter.queries).sum();
        Estimate::rate(passed, queries, self.predicted.spread / self.root())
    }

    /// Memory that was allocated and not freed: the largest of all filters.
    pub(super) fn bits_per_key(&self) -> Estimate {
        let bits = self.filters.iter().map(|filter| filter.bits_per_key);
        Estimate::exact(bits.fold(0.0, f64::max))
    }

    /// Bits per key of the packed form. The interval includes the spread between filters.
    pub(super) fn packed_bits_per_key(&self) -> Estimate {
        let bits: f64 = self.filters.iter().map(|filter| filter.packed_bits_per_key).sum();
        let error = reach() * self.predicted.packed_spread / self.root();
        Estimate::about(bits / self.filters.len() as f64, error)
    }

    fn root(&self) -> f64 {
        (self.filters.len() as f64).sqrt()
    }
}

fn plan(kind: Kind, rate: f64) -> Option<(AnyParams, Predicted)> {
    let params = AnyParams::plan(kind, &Goal::rate(KEYS, rate)).ok()?;
    let (prediction, traffic) = (params.predict(KEYS), params.traffic(KEYS, None));
    let each = |bytes: f64| 8.0 * bytes / KEYS as f64;
    let predicted = Predicted {
        rate: prediction.rate,
        spread: prediction.rate_spread,
        bits_per_key: prediction.bits_per_key,
        packed_bits_per_key: each(traffic.snapshot.mean),
        packed_spread: each(traffic.snapshot.deviation),
    };
    Some((params, predicted))
}

/// What filters are built for: to measure rates, or only sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Asked,
    Weighed,
}

fn name(purpose: Purpose, kind: Kind, rate: f64) -> String {
    format!("{purpose:?} {} {rate:e}", kind.name()).to_lowercase()
}

/// Builds filters, checks that every key is found, and looks up enough absent keys for an interval
/// of three percent. There is no result where a kind cannot reach `rate`.
pub(super) fn asked(kind: Kind, rate: f64, effort: Effort) -> Experiment {
    // Enough for an interval of two percent, or less where it is cheap.
    let passing = effort.pick(500.0, 100_000.0, if rate < 5e-4 { 80_000.0 } else { 120_000.0 });
    // The largest rate of a blocked-rank filter, whatever is asked for, is 0.42%.
    let rate_at_most = if kind == Kind::BlockedRank { rate.min(4e-3) } else { rate };
    // Where many pass, more queries cost little, and only the spread between filters is left.
    let queries = (passing / rate_at_most).max(effort.pick(1e4, 2e6, 2e7));
    // Partitioned filters take seconds to build: there are fewer, with more queries for each.
    let (filters, queries) = match kind {
        Kind::Partitioned => (effort.pick(1, 1, 8), 2.5 * queries),
        // At low rates filters differ more.
        _ => (effort.pick(1, 8, if rate < 5e-4 { 80 } else { 64 }), queries),
    };
    let queries = (queries / filters as f64) as u64;
    experiment(Purpose::Asked, kind, rate, filters, queries)
}

/// The same for sizes only.
pub(super) fn weighed(kind: Kind, rate: f64) -> Experiment {
    experiment(Purpose::Weighed, kind, rate, 1, 1000)
}

fn experiment(purpose: Purpose, kind: Kind, rate: f64, filters: u64, queries: u64) -> Experiment {
    // Planning takes longer than building, for some kinds.
    let planned = OnceLock::new();
    let run = move |seed| match planned.get_or_init(|| plan(kind, rate)) {
        Some((params, predicted)) => one(params, *predicted, queries, seed).map(Some),
        None => Ok(None),
    };
    let (building, asking) = match kind {
        Kind::Partitioned => (3.0, 6e-8),
        Kind::DLeft | Kind::BalancedPopcount => (0.05, 2e-7),
        _ => (0.05, 4e-8),
    };
    let cost = building + queries as f64 * asking;
    Experiment::new(name(purpose, kind, rate), filters, cost, run).with_setup(queries)
}

fn one(params: &AnyParams, predicted: Predicted, queries: u64, seed: u64) -> Result<One, Trouble> {
    let hasher = Hasher::xxh3(seed);
    let stream = KeyStream::new(seed);
    let digests: Vec<Digest> = stream.members(hasher, 0..KEYS).collect();
    let filter = params.build_from(Label::planned(hasher, KEYS), &digests)?;
    // Memory is counted for each thread, and several threads may have built the filter. So the
    // memory of a copy is counted, made here.
    let before = memory::held();
    let copy = filter.clone();
    let held = (memory::held() - before) as u64 * 8;
    drop(copy);
    if !digests.iter().all(|&digest| filter.contains_digest(digest)) {
        return Err(format!("{} lost a key", params.kind().name()).into());
    }
    let passed = passed(&filter, stream, 0..queries)?;
    let each = |bits: u64| bits as f64 / KEYS as f64;
    let packed = each(filter.pack(Packing::Best).len() * 8);
    let bits_per_key = each(held);
    Ok(One { predicted, bits_per_key, packed_bits_per_key: packed, passed, queries })
}

/// How many absent keys of a range of numbers are answered yes. They are looked up in batches,
/// which is faster; the first batch also one by one.
pub(super) fn passed<F: Filter>(
    filter: &F,
    stream: KeyStream,
    range: std::ops::Range<u64>,
) -> Result<u64, Trouble> {
    let mut passed = 0;
    let (mut absent, mut answers) = (Vec::new(), Vec::new());
    let batch: u64 = 1 << 12;
    for first in range.clone().step_by(batch as usize) {
        absent.clear();
        absent.extend(stream.absent_keys(filter.hasher(), first..range.end.min(first + batch)));
        answers.resize(absent.len(), false);
        filter.contains_many(&absent, &mut answers);
        passed += answers.iter().filter(|&&answer| answer).count() as u64;
        let alone = |(&digest, &answer)| filter.contains_digest(digest) == answer;
        if first == range.start && !absent.iter().zip(&answers).all(alone) {
            return Err("a filter answers batches in another way".into());
        }
    }
    Ok(passed)
}

/// The filters that were built; `None` where there are none at this rate, or in this run.
pub(super) fn get(
    results: &Results,
    purpose: Purpose,
    kind: Kind,
    rate: f64,
) -> Result<Option<Built>, Trouble> {
    let name = name(purpose, kind, rate);
    if !results.has(&name) {
        return Ok(None);
    }
    let filters: Vec<Option<One>> = results.get(&name)?;
    let filters: Vec<One> = filters.into_iter().flatten().collect();
    Ok(filters.first().copied().map(|one| Built { predicted: one.predicted, filters }))
}

/// Predictions of a kind at these rates. It is an experiment, because planning takes long enough
/// to be done once and on all processors.
pub(super) fn curve(kind: Kind, rates: Vec<f64>) -> Experiment {
    let points = rates.len() as u64;
    let run = move |_| {
        let planned = rates.iter().filter_map(|&rate| Some((rate, plan(kind, rate)?.1)));
        Ok(planned.collect::<Vec<(f64, Predicted)>>())
    };
    Experiment::new(format!("curve {}", kind.name()), 1, 0.5, run).with_setup(points)
}

/// The rates that a kind can reach, and its predictions.
pub(super) fn get_curve(results: &Results, kind: Kind) -> Result<Vec<(f64, Predicted)>, Trouble> {
    let mut found = results.get(&format!("curve {}", kind.name()))?;
    found.pop().ok_or_else(|| "a curve was computed and not kept".into())
}
