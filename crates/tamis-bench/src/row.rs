//! What a run told of each subject, and how they compare.

use serde::Serialize;
use serde_json::{Map, Value};
use tamis_report::papers::statistics::exact_interval;

use crate::lineup::{Entry, Side};
use crate::measure::{Case, Round, Times};

/// The operations, as columns of tables and fields of rows.
pub(crate) const OPERATIONS: [Operation; 8] = [
    Operation { name: "insert", of: |times| times.insert },
    Operation { name: "hit", of: |times| times.hit },
    Operation { name: "miss", of: |times| times.miss },
    Operation { name: "remove", of: |times| times.remove },
    Operation { name: "batch_insert", of: |times| times.batch_insert },
    Operation { name: "batch_hit", of: |times| times.batch_hit },
    Operation { name: "batch_miss", of: |times| times.batch_miss },
    Operation { name: "batch_remove", of: |times| times.batch_remove },
];

/// The name of the operation whose times are in the chart.
pub(crate) const MISS: usize = 2;

pub(crate) struct Operation {
    pub(crate) name: &'static str,
    of: fn(&Times) -> Option<f64>,
}

/// What is known of one subject at one load.
pub(crate) struct Row {
    pub(crate) entry: &'static Entry,
    pub(crate) load: f64,
    pub(crate) keys: u64,
    pub(crate) bits_per_key: f64,
    pub(crate) rate: Rate,
    /// Nanoseconds of each of the operations, where there is one.
    pub(crate) times: [Option<Timing>; OPERATIONS.len()],
    rounds: Vec<Round>,
}

/// The share of absent keys that are answered yes, with its 99.9% interval.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) measured: f64,
    low: f64,
    high: f64,
    queries: u64,
}

/// Of several rounds: the median and the quartiles.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Timing {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Timing {
    fn of(mut rounds: Vec<f64>) -> Option<Self> {
        rounds.sort_by(f64::total_cmp);
        let last = rounds.len().checked_sub(1)?;
        // Of few rounds the quartiles are the least and the most.
        Some(Self {
            median: f64::midpoint(rounds[last / 2], rounds[last.div_ceil(2)]),
            low: rounds[last / 4],
            high: rounds[last - last / 4],
        })
    }
}

impl Row {
    pub(crate) fn new(entry: &'static Entry, case: &Case, rounds: Vec<Round>) -> Self {
        let Round { keys, held_bits, false_positives, .. } = rounds[0];
        let queries = case.absent.len() as u64;
        let (low, high) = exact_interval(false_positives, queries, 0.999);
        let times = OPERATIONS.map(|operation| {
            Timing::of(rounds.iter().filter_map(|round| (operation.of)(&round.times)).collect())
        });
        Self {
            entry,
            load: case.load,
            keys,
            bits_per_key: held_bits / keys as f64,
            rate: Rate { measured: false_positives as f64 / queries as f64, low, high, queries },
            times,
            rounds,
        }
    }

    /// How many times quicker this one is than a rival, by rounds of the same run. If a rival has
    /// no batches, its plain operation counts.
    pub(crate) fn ratio(&self, rival: &Self, operation: usize) -> Option<Timing> {
        let of = OPERATIONS[operation].of;
        let plain = OPERATIONS[operation - if operation > 3 { 4 } else { 0 }].of;
        let ratio = |(ours, theirs): (&Round, &Round)| {
            let theirs = of(&theirs.times).or_else(|| plain(&theirs.times))?;
            Some(theirs / of(&ours.times)?)
        };
        Timing::of(self.rounds.iter().zip(&rival.rounds).filter_map(ratio).collect())
    }

    /// Whether the rate of this one is above a rival's, beyond chance: then being quicker proves
    /// little.
    pub(crate) fn is_coarser(&self, rival: &Self) -> bool {
        rival.entry.side == Side::Rival && self.rate.low > rival.rate.high
    }

    /// The row as one object; with ratios to the rivals, if it is ours.
    pub(crate) fn json(&self, rows: &[Self], target_rate: f64) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("name", self.entry.name.into());
        put("side", serde_json::json!(self.entry.side));
        put("load", self.load.into());
        put("keys", self.keys.into());
        put("target_rate", target_rate.into());
        let rate = (self.entry.side != Side::Floor).then_some(self.rate);
        put("measured_rate", rate.map(|rate| rate.measured).into());
        put("rate_low", rate.map(|rate| rate.low).into());
        put("rate_high", rate.map(|rate| rate.high).into());
        put("queries", rate.map(|rate| rate.queries).into());
        put("bits_per_key", self.bits_per_key.into());
        for (operation, timing) in OPERATIONS.iter().zip(&self.times) {
            put(&format!("{}_ns", operation.name), serde_json::json!(timing));
        }
        if self.entry.side == Side::Ours {
            let others =
                rows.iter().filter(|row| row.entry.side != Side::Ours && row.load == self.load);
            let ratios = others.map(|rival| {
                let of = OPERATIONS.iter().enumerate().filter_map(|(at, operation)| {
                    let ratio = self.ratio(rival, at)?;
                    Some((operation.name.to_owned(), serde_json::json!(ratio)))
                });
                (rival.entry.name.to_owned(), Value::Object(of.collect()))
            });
            put("ratios", Value::Object(ratios.collect()));
        }
        put("note", self.entry.note.into());
        Value::Object(object)
    }
}
