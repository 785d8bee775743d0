//! Filters of every kind, planned for a rate, built, checked and measured.

use serde::{Deserialize, Serialize};
use tamis::{AnyParams, Digest, Filter, Goal, Hasher, Kind, Label};

use super::{Effort, Estimate, Experiment, Results, Trouble};
use crate::keys::KeyStream;

/// Keys of all filters that are built here.
pub(super) const KEYS: u64 = 100_000;

/// What a kind's model says.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Predicted {
    pub(super) rate: f64,
    /// The deviation of ln(rate) from filter to filter.
    spread: f64,
    pub(super) bits_per_key: f64,
    pub(super) wire_bits_per_key: f64,
}

/// One filter, and what was predicted of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Built {
    pub(super) predicted: Predicted,
    pub(super) bits_per_key: f64,
    pub(super) wire_bits_per_key: f64,
    passed: u64,
    queries: u64,
}

impl Built {
    /// The measured rate, with what filters of this kind differ by.
    pub(super) fn rate(&self) -> Estimate {
        Estimate::rate(self.passed, self.queries, self.predicted.spread)
    }
}

fn plan(kind: Kind, rate: f64) -> Option<(AnyParams, Predicted)> {
    let params = AnyParams::plan(kind, &Goal::rate(KEYS, rate)).ok()?;
    let prediction = params.predict(KEYS);
    let predicted = Predicted {
        rate: prediction.rate,
        spread: prediction.rate_spread,
        bits_per_key: prediction.bits_per_key,
        wire_bits_per_key: prediction.wire_bits_per_key,
    };
    Some((params, predicted))
}

fn name(kind: Kind, rate: f64) -> String {
    format!("built {} {rate:e}", kind.name())
}

/// Partitioned filters take seconds to build: a test builds one.
fn is_left_out(kind: Kind, rate: f64, effort: Effort) -> bool {
    effort == Effort::Least && kind == Kind::Partitioned && rate < 1e-2
}

/// Builds one filter, checks that every key is found, and asks for strangers. Nothing comes of it where a kind cannot have
/// this rate.
pub(super) fn experiment(kind: Kind, rate: f64, effort: Effort) -> Experiment {
    let queries: u64 = effort.pick(20_000, 200_000, 20_000_000);
    let run = move |seed| {
        let planned = if is_left_out(kind, rate, effort) { None } else { plan(kind, rate) };
        let Some((params, predicted)) = planned else { return Ok(None) };
        let hasher = Hasher::xxh3(seed);
        let stream = KeyStream::new(seed);
        let digests: Vec<Digest> = stream.members(hasher, 0..KEYS).collect();
        let filter = params.build_from(Label::planned(hasher, KEYS), &digests)?;
        if !digests.iter().all(|&digest| filter.contains_digest(digest)) {
            return Err(format!("{} lost a key", kind.name()).into());
        }
        let strangers = stream.strangers(hasher, 0..queries);
        let passed = strangers.filter(|&digest| filter.contains_digest(digest)).count() as u64;
        let each = |bits: u64| bits as f64 / KEYS as f64;
        let (bits_per_key, wire_bits_per_key) =
            (each(filter.footprint()), each(filter.encode().len() * 8));
        Ok(Some(Built { predicted, bits_per_key, wire_bits_per_key, passed, queries }))
    };
    let building = if kind == Kind::Partitioned { 3.0 } else { 0.1 };
    let cost = building + queries as f64 * 5e-8;
    Experiment::new(name(kind, rate), 1, cost, run).with_setup(queries)
}

/// The filter that was built; nothing where there is none at this rate.
pub(super) fn get(results: &Results, kind: Kind, rate: f64) -> Result<Option<Built>, Trouble> {
    Ok(results.get(&name(kind, rate))?.into_iter().next().flatten())
}

/// What is predicted of a kind at these rates: planning is work enough to be done on all processors, and once.
pub(super) fn curve(kind: Kind, rates: Vec<f64>) -> Experiment {
    let points = rates.len() as u64;
    let run = move |_| {
        let planned = rates.iter().filter_map(|&rate| Some((rate, plan(kind, rate)?.1)));
        Ok(planned.collect::<Vec<(f64, Predicted)>>())
    };
    Experiment::new(format!("curve {}", kind.name()), 1, 0.5, run).with_setup(points)
}

/// The rates that a kind can have, and what is predicted of it.
pub(super) fn get_curve(results: &Results, kind: Kind) -> Result<Vec<(f64, Predicted)>, Trouble> {
    let mut found = results.get(&format!("curve {}", kind.name()))?;
    found.pop().ok_or_else(|| "a curve was computed and not kept".into())
}
