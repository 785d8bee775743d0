//! The arrays, messages and tables that document 004 prints, and filters that are built for them.

use serde::{Deserialize, Serialize};
use tamis::bloom::{BloomParams, CountingParams};
use tamis::internals::coder::{Coder, Effort as Packing, encode_as};
use tamis::internals::compressed::elias_fano::EliasFano;
use tamis::internals::compressed::model::{Message, Shape, entropy};
use tamis::{Bloom, CountingBloom, Digest, Filter, Hasher, Insert, Label, Stored};

use crate::keys::KeyStream;
use crate::memory;
use crate::papers::compressed::SortedList;
use crate::papers::solve::bisect;
use crate::reproduce::{Effort, Experiment, Trouble, built};

pub(super) const N: u64 = 10_000;

/// An array of the paper: positions for each key, in tenths, and hash functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) tenths: u64,
    pub(super) hashes: u32,
}

pub(super) const fn array(tenths: u64, hashes: u32) -> Array {
    Array { tenths, hashes }
}

impl Array {
    pub(super) fn positions(self) -> u64 {
        self.tenths * N / 10
    }

    pub(super) fn shape(self) -> Shape {
        Shape { positions: self.positions(), hashes: self.hashes, keys: N }
    }

    pub(super) fn name(self) -> String {
        format!("m/n = {}, k = {}", self.tenths as f64 / 10.0, self.hashes)
    }

    fn filter(self, seed: u64, keys: std::ops::Range<u64>) -> Result<Bloom, Trouble> {
        let hasher = Hasher::xxh3(seed);
        let params = BloomParams::new(self.positions(), self.hashes)?;
        let mut filter = Bloom::new(params, Label::planned(hasher, N))?;
        let digests: Vec<Digest> = KeyStream::new(seed).members(hasher, keys).collect();
        filter.insert_many(&digests)?;
        Ok(filter)
    }
}

/// A message of the paper: an array, and how many keys were replaced (0 for a whole array).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) array: Array,
    pub(super) replaced: u64,
}

impl Sent {
    pub(super) fn message(self) -> Message {
        match self.replaced {
            0 => Message::Snapshot,
            replaced => Message::Delta { changed: replaced as f64 / N as f64 },
        }
    }

    pub(super) fn name(self) -> String {
        format!("sent {} {} {}", self.array.tenths, self.array.hashes, self.replaced)
    }

    pub(super) fn entropy_per_key(self) -> f64 {
        self.array.shape().entropy_bits(self.message()) / N as f64
    }
}

const fn whole(array: Array) -> Sent {
    Sent { array, replaced: 0 }
}

/// Bytes of one message from the coder with one probability and from the adaptive one, frames
/// excluded.
#[derive(Serialize, Deserialize)]
pub(super) struct Bytes {
    pub(super) fixed: u64,
    pub(super) adaptive: u64,
}

fn send(sent: Sent, seed: u64) -> Result<Bytes, Trouble> {
    let old = sent.array.filter(seed, 0..N)?;
    let mut words = old.words().unwrap_or_default().to_vec();
    words.truncate(sent.array.positions().div_ceil(64) as usize);
    if sent.replaced > 0 {
        let new = sent.array.filter(seed, sent.replaced..N + sent.replaced)?;
        for (word, other) in words.iter_mut().zip(new.words().unwrap_or_default()) {
            *word ^= other;
        }
    }
    // The frame's first byte, and the count of ones that the coder with one probability needs.
    let ones = words.iter().map(|word| u64::from(word.count_ones())).sum();
    let coded = |coder| encode_as(coder, &words, sent.array.positions(), ones).len() as u64;
    Ok(Bytes { fixed: coded(Coder::Static) - 1, adaptive: coded(Coder::Adaptive) - 1 })
}

/// Rates below this are measured by a few hundred false positives.
pub(super) const RARE: f64 = 2e-3;

/// What was measured of one filter.
#[derive(Serialize, Deserialize)]
pub(super) struct Asked {
    /// The rate by its bits.
    pub(super) rate: f64,
    pub(super) passed: u64,
    pub(super) queries: u64,
}

pub(super) fn ask(array: Array, queries: u64, seed: u64) -> Result<Asked, Trouble> {
    let filter = array.filter(seed, 0..N)?;
    let passed = built::passed(&filter, KeyStream::new(seed), 0..queries)?;
    Ok(Asked { rate: filter.rate(), passed, queries })
}

/// Section V: functions, and keys for each counter, at a rate of 1%.
pub(super) fn counted() -> impl Iterator<Item = (u32, f64)> {
    [1, 2, 4, 6, 7].into_iter().map(|hashes| {
        let share = 0.01_f64.powf(1.0 / f64::from(hashes));
        (hashes, -(-share).ln_1p())
    })
}

/// Bits per key of a packed counting filter.
fn counters(hashes: u32, load: f64, seed: u64) -> Result<f64, Trouble> {
    let hasher = Hasher::xxh3(seed);
    let positions = (f64::from(hashes) * N as f64 / load).round() as u64;
    let params = CountingParams::new(positions, hashes, 4)?;
    let mut filter = CountingBloom::new(params, Label::planned(hasher, N))?;
    let digests: Vec<Digest> = KeyStream::new(seed).members(hasher, 0..N).collect();
    filter.insert_many(&digests)?;
    Ok(filter.pack(Packing::Best).len() as f64 * 8.0 / N as f64)
}

/// One column of a table: the array, and what is printed for z/n, z/(cn) and f.
pub(super) struct Column {
    pub(super) array: Array,
    pub(super) bits: &'static str,
    pub(super) per_change: Option<&'static str>,
    pub(super) rate: &'static str,
    pub(super) wrong: Wrong,
}

/// What is wrong in a column.
#[derive(Clone, Copy, Default)]
pub(super) struct Wrong {
    pub(super) bits: Option<&'static str>,
    pub(super) per_change: Option<&'static str>,
    pub(super) rate: Option<&'static str>,
}

const RIGHT: Wrong = Wrong { bits: None, per_change: None, rate: None };
const EXCHANGED: &str = "The entries of m/n = 12 and m/n = 32 are exchanged.";

/// A table: its name, the share of keys that is replaced, in percent, and its columns.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) percent: u64,
    pub(super) columns: Vec<Column>,
}

fn column(array: Array, bits: &'static str, rate: &'static str) -> Column {
    Column { array, bits, per_change: None, rate, wrong: RIGHT }
}

fn delta(array: Array, bits: &'static str, per_change: &'static str, rate: &'static str) -> Column {
    Column { per_change: Some(per_change), ..column(array, bits, rate) }
}

pub(super) fn tables() -> Vec<Table> {
    let exchanged = Wrong { bits: Some(EXCHANGED), per_change: Some(EXCHANGED), rate: None };
    vec![
        Table {
            name: "Table I",
            about: "At most 8 bits per key sent: bits per key sent, and rate.",
            percent: 0,
            columns: vec![
                column(array(80, 6), "8", "0.0216"),
                column(array(140, 2), "7.923", "0.0177"),
                column(array(920, 1), "7.923", "0.0108"),
            ],
        },
        Table {
            name: "Table II",
            about: "At most 16 bits per key sent.",
            percent: 0,
            columns: vec![
                column(array(160, 11), "16", "0.000459"),
                column(array(280, 4), "15.846", "0.000314"),
                column(array(480, 3), "15.829", "0.000222"),
            ],
        },
        Table {
            name: "Table III",
            about: "At most 4 bits per key sent.",
            percent: 0,
            columns: vec![
                column(array(40, 3), "4", "0.147"),
                column(array(70, 1), "3.962", "0.133"),
            ],
        },
        Table {
            name: "Table IV",
            about: "A rate of about 0.02.",
            percent: 0,
            columns: vec![
                column(array(80, 6), "8", "0.0216"),
                Column {
                    wrong: Wrong { rate: Some("Last digit: 0.0215."), ..RIGHT },
                    ..column(array(126, 2), "7.582", "0.0216")
                },
                column(array(460, 1), "6.891", "0.0215"),
            ],
        },
        Table {
            name: "Table V",
            about: "A rate of about 0.00045.",
            percent: 0,
            columns: vec![
                column(array(160, 11), "16", "0.000459"),
                column(array(375, 3), "14.666", "0.000454"),
                column(array(930, 2), "13.815", "0.000453"),
            ],
        },
        Table {
            name: "Table VI",
            about: "Deltas after 5% of the keys were replaced: bits per key, bits per replaced key, and rate.",
            percent: 5,
            columns: vec![
                delta(array(80, 5), "1.6713", "33.426", "0.0217"),
                Column { wrong: exchanged, ..delta(array(120, 3), "1.6607", "33.214", "0.0108") },
                Column { wrong: exchanged, ..delta(array(320, 2), "1.6532", "33.064", "0.00367") },
                Column {
                    wrong: Wrong {
                        per_change: Some("26.249: multiplied from the rounded 1.3124."),
                        ..RIGHT
                    },
                    ..delta(array(130, 2), "1.3124", "26.248", "0.0203")
                },
            ],
        },
        Table {
            name: "Table VII",
            about: "Deltas after 1% of the keys were replaced.",
            percent: 1,
            columns: vec![
                delta(array(80, 5), "0.4624", "46.24", "0.0217"),
                delta(array(160, 3), "0.4856", "48.56", "0.0050"),
                delta(array(480, 2), "0.4500", "45.00", "0.00167"),
                delta(array(130, 2), "0.3430", "34.30", "0.0203"),
            ],
        },
    ]
}

impl Table {
    pub(super) fn sent(&self, column: &Column) -> Sent {
        Sent { array: column.array, replaced: self.percent * N / 100 }
    }
}

/// Whether the array of a column is sent as it is.
pub(super) fn is_plain(column: &Column) -> bool {
    !column.bits.contains('.')
}

/// Messages whose sizes the text has: bytes in all by the theory, mean, deviation and maximum of
/// 100,000 trials, and the room that there is.
pub(super) struct Simulated {
    pub(super) sent: Sent,
    pub(super) theory: Option<(&'static str, Option<&'static str>)>,
    pub(super) mean: Option<&'static str>,
    pub(super) deviation: Option<&'static str>,
    pub(super) most: &'static str,
    pub(super) room: Option<u64>,
}

const ROUNDED_UP: &str = "19786.2, rounded up.";
const FROM_EXCHANGED: &str =
    "2075.9: computed from the exchanged entry of Table VI. No coder attains 2066.5 in the mean.";

pub(super) fn simulated() -> [Simulated; 5] {
    [
        Simulated {
            sent: whole(array(140, 2)),
            theory: Some(("9904", None)),
            mean: Some("9920"),
            deviation: Some("11.375"),
            most: "9971",
            room: Some(10_000),
        },
        Simulated {
            sent: whole(array(480, 3)),
            theory: Some(("19787", Some(ROUNDED_UP))),
            mean: Some("19805"),
            deviation: Some("14.386"),
            most: "19865",
            room: Some(20_000),
        },
        Simulated {
            sent: whole(array(126, 2)),
            theory: None,
            mean: Some("9493"),
            deviation: None,
            most: "9539",
            room: None,
        },
        Simulated {
            sent: whole(array(70, 1)),
            theory: None,
            mean: None,
            deviation: None,
            most: "4998",
            room: Some(5000),
        },
        Simulated {
            sent: Sent { array: array(320, 2), replaced: 500 },
            theory: Some(("2066.5", Some(FROM_EXCHANGED))),
            mean: Some("2090"),
            deviation: None,
            most: "2129",
            room: None,
        },
    ]
}

/// Figures 1 and 2: the share of zeros of an array with k = `hashes` that is sent in `bits` bits
/// per key.
pub(super) fn zeros_for(bits: f64, hashes: f64) -> Option<f64> {
    let excess = |zeros: f64| -zeros.ln() * bits / entropy(zeros) - hashes;
    bisect(excess, 1e-6, 1.0 - 1e-9, 1e-13)
}

/// The array with that share of zeros.
pub(super) fn array_for(bits: f64, hashes: u32) -> Option<Array> {
    let zeros = zeros_for(bits, hashes.into())?;
    Some(array((bits / entropy(zeros) * 10.0) as u64, hashes))
}

/// Bits per key sent, and the most hash functions of the figure.
pub(super) const FIGURES: [(&str, f64, u32); 2] = [("Figure 1", 8.0, 10), ("Figure 2", 16.0, 20)];

/// Every array whose rate is measured.
fn arrays() -> Vec<Array> {
    let mut all: Vec<Array> = tables()
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| column.array))
        .chain([array(160, 6)])
        .collect();
    for (_, bits, most) in FIGURES {
        for hashes in 1..=most {
            all.extend(array_for(bits, hashes));
            all.push(array(bits as u64 * 10, hashes));
        }
    }
    all
}

/// A filter small enough for the bound of Theorem 1 to say something.
pub(super) const SMALL: Shape = Shape { positions: 1000, hashes: 4, keys: 50 };

/// The number of zeros of such a filter.
fn zeros(seed: u64) -> Result<u64, Trouble> {
    let params = BloomParams::new(SMALL.positions, SMALL.hashes)?;
    let mut filter = Bloom::new(params, Hasher::xxh3(seed))?;
    let digests: Vec<Digest> =
        KeyStream::new(seed).members(filter.hasher(), 0..SMALL.keys).collect();
    filter.insert_many(&digests)?;
    Ok(SMALL.positions - filter.array().map_or(0, |(words, _)| words.ones()))
}

pub(in crate::reproduce) fn experiments(effort: Effort) -> Vec<Experiment> {
    let mut all = vec![Experiment::new("zeros", effort.pick(500, 20_000, 200_000), 1e-5, zeros)];
    // First, because they have more trials than the same messages in tables.
    for simulated in simulated() {
        let sent = simulated.sent;
        let run = move |seed| send(sent, seed);
        let cost = 1e-3 + sent.array.positions() as f64 * 1e-8;
        all.push(Experiment::new(sent.name(), effort.pick(20, 400, 20_000), cost, run));
    }
    for table in tables() {
        for column in table.columns.iter().filter(|column| !is_plain(column)) {
            let sent = table.sent(column);
            let cost = 1e-3 + sent.array.positions() as f64 * 1e-8;
            let run = move |seed| send(sent, seed);
            all.push(Experiment::new(sent.name(), effort.pick(5, 40, 400), cost, run));
        }
    }
    for keys in LISTED {
        let run = move |seed| listed(keys, seed);
        all.push(Experiment::new(format!("listed {keys}"), effort.pick(4, 20, 100), 0.01, run));
    }
    for (hashes, load) in counted() {
        let run = move |seed| counters(hashes, load, seed);
        all.push(Experiment::new(format!("counters {hashes}"), effort.pick(4, 20, 100), 0.01, run));
    }
    for array in arrays() {
        // Enough for intervals of three percent, which include the spread between filters of
        // 10,000 keys.
        let filters = effort.pick(2, 60, 200);
        let rate = array.shape().limit_rate();
        let passing = effort.pick(0.01, 1.0, 4.0) * if rate < RARE { 900.0 } else { 60_000.0 };
        let queries = (passing / rate) as u64 / filters;
        let run = move |seed| ask(array, queries, seed);
        let cost = 1e-3 + queries as f64 * 1.5e-8;
        let experiment = Experiment::new(format!("rate {}", array.name()), filters, cost, run);
        all.push(experiment.with_setup(queries));
    }
    all
}

/// One hash function and 92 positions for each key, as a sorted list and in Elias-Fano form.
#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) list_bits: f64,
    pub(super) compact_bits: f64,
    pub(super) probes: f64,
}

pub(super) const LISTED: [u64; 3] = [1_000, 10_000, 100_000];

pub(super) fn listed(keys: u64, seed: u64) -> Result<Listed, Trouble> {
    let universe = 92 * keys;
    let at = |index| {
        let random = KeyStream::new(seed).member(index);
        ((u128::from(random) * u128::from(universe)) >> 64) as u64
    };
    let mut positions: Vec<u64> = (0..keys).map(at).collect();
    positions.sort_unstable();
    positions.dedup();
    let count = positions.len() as u64;
    let before = memory::held();
    let list = SortedList::new(universe, count, positions.iter().copied())?;
    let between = memory::held();
    let compact = EliasFano::new(universe, count, positions.iter().copied())?;
    let after = memory::held();
    let asked = 20_000;
    let probes: u64 = (0..asked).map(|index| u64::from(list.probe(at(1 << 40 | index)).1)).sum();
    let each = |bytes: i64| 8.0 * bytes as f64 / keys as f64;
    drop(compact);
    Ok(Listed {
        list_bits: each(between - before),
        compact_bits: each(after - between),
        probes: probes as f64 / asked as f64,
    })
}
