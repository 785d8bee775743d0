//! The layouts that document 000 prints, the sizes of its rivals, and tables that are built.

use serde::{Deserialize, Serialize};
use tamis::internals::compressed::model::entropy;
use tamis::internals::rank_indexed::model::Layout;
use tamis::rank_indexed::{RankCounting, RankIndexed, RankParams};
use tamis::{Digest, Filter, Hasher, Insert, Kind, Label, Stored};

use crate::keys::KeyStream;
use crate::loads::thrown;
use crate::memory;
use crate::papers::compressed::beta;
use crate::papers::dleft;
use crate::papers::solve::bisect;
use crate::reproduce::{Effort, Experiment, Trouble, built};

pub(super) const N: u64 = 100_000;
/// The chance of overflow that the paper allows.
pub(super) const OVERFLOW: f64 = 1e-10;

/// A row of Table II, from which Tables III to V follow.
pub(super) struct Printed {
    pub(super) name: &'static str,
    pub(super) rate: f64,
    pub(super) lambda: f64,
    pub(super) layout: Layout,
}

/// Table II as printed: lambda, r, L, Z1 to Z3, and the shares J2/B and J3/B in percent. B =
/// ceil(n / (lambda L)).
pub(super) fn printed_rows() -> [Printed; 3] {
    let row = |name, rate, lambda: f64, cut: (u32, u32), z: [u32; 3], shares: [f64; 2]| {
        let ((fingerprint, locations), [z1, z2, z3]) = (cut, z);
        let buckets = (N as f64 / (lambda * f64::from(locations))).ceil();
        let [second, third] = shares.map(|share| (share / 100.0 * buckets).ceil() as u64);
        let layout = Layout {
            buckets: buckets as u64,
            locations,
            fingerprint,
            extra: 0,
            level1: z1,
            level2: z2,
            level3: z3,
            second,
            third,
            groups: 1,
        };
        Printed { name, rate, lambda, layout }
    };
    [
        row("1%", 1e-2, 0.64, (6, 60), [45, 8, 45], [17.9, 2.7]),
        row("0.1%", 1e-3, 0.92, (10, 64), [63, 17, 50], [36.0, 1.7]),
        row("0.01%", 1e-4, 0.86, (13, 61), [59, 13, 48], [23.3, 1.8]),
    ]
}

impl Printed {
    /// lambda 2^-r with the printed lambda: what Tables III to V are evaluated at (E3).
    pub(super) fn evaluated_at(&self) -> f64 {
        self.lambda / f64::from(1_u32 << self.layout.fingerprint)
    }

    pub(super) fn counting(&self) -> Layout {
        Layout { extra: 2, ..self.layout }
    }

    /// 1/lambda + r + 1, with the printed lambda.
    pub(super) fn packed(&self) -> f64 {
        1.0 / self.lambda + f64::from(self.layout.fingerprint) + 1.0
    }

    /// The params of the table as it is printed, with its Z and J.
    fn given(&self) -> Result<RankParams, Trouble> {
        Ok(RankParams::laid_out(self.layout, N)?)
    }

    /// The params of a table of the same lambda, L and r. Its levels are ours, and take fewer
    /// bits.
    fn params(&self, extra: u32) -> Result<RankParams, Trouble> {
        let Layout { buckets, locations, fingerprint, .. } = self.layout;
        Ok(RankParams::new(buckets, locations, fingerprint, extra, N, 1)?)
    }
}

pub(super) fn standard(rate: f64) -> f64 {
    dleft::counting_bits_for_rate(rate) / 4.0
}

pub(super) fn d_left_counting(rate: f64) -> f64 {
    dleft::bits_for_rate(4, 8, 6.0, rate)
}

pub(super) fn d_left(rate: f64) -> f64 {
    d_left_counting(rate) - dleft::bits_per_key(8, 6.0, 2.0)
}

/// Bits per key of a packed d-left table: a fingerprint, and a sixth of a count of `count_bits`
/// bits for a bucket of 6 keys.
pub(super) fn d_left_packed(rate: f64, count_bits: f64) -> f64 {
    d_left(rate) * 6.0 / 8.0 + count_bits / 6.0
}

pub(super) fn more_percent(a: f64, b: f64) -> f64 {
    100.0 * (a / b - 1.0)
}

/// The array of the Bloom filter that compresses to `packed` bits per key at this rate, with real
/// k.
pub(super) fn uncompressed(rate: f64, packed: f64) -> Option<f64> {
    let excess = |zeros: f64| beta(zeros).powf(packed) - rate;
    let zeros = bisect(excess, 0.5, 1.0 - 1e-9, 1e-12)?;
    Some(packed / entropy(zeros))
}

/// The loads of one trial of the example of Section III-C.
#[derive(Serialize, Deserialize)]
pub(super) struct Example {
    pub(super) above: [u64; 3],
    /// Keys that find a cell in the first level.
    pub(super) held: u64,
}

pub(super) const EXAMPLE_BUCKETS: u64 = 1000;
const EXAMPLE_KEYS: u64 = 56 * EXAMPLE_BUCKETS;

/// The loads of one trial of a row of Table II.
#[derive(Serialize, Deserialize)]
pub(super) struct Beyond {
    pub(super) first: u64,
    pub(super) second: u64,
    pub(super) largest: u64,
}

/// What was measured of one table.
#[derive(Serialize, Deserialize)]
pub(super) struct Table {
    pub(super) passed: u64,
    pub(super) queries: u64,
    /// Bits that were allocated and not freed.
    pub(super) held_bits: u64,
    pub(super) counting_held_bits: u64,
    pub(super) wire_bytes: u64,
    /// The same for the table with the printed Z and J.
    pub(super) given_held_bits: u64,
    /// Keys that found no cell in it.
    pub(super) given_overflow: u64,
}

pub(super) fn example(seed: u64) -> Example {
    let loads = thrown(EXAMPLE_BUCKETS, EXAMPLE_KEYS, seed);
    let above = [64, 74, 128].map(|most| loads.iter().filter(|&&load| load > most).count() as u64);
    Example { above, held: loads.iter().map(|&load| u64::from(load.min(64))).sum() }
}

pub(super) fn beyond(layout: &Layout, seed: u64) -> Beyond {
    let loads = thrown(layout.buckets, N, seed);
    let above = |most: u32| loads.iter().filter(|&&load| load > most).count() as u64;
    Beyond {
        first: above(layout.level1),
        second: above(layout.level1 + layout.level2),
        largest: loads.iter().copied().max().unwrap_or(0).into(),
    }
}

pub(super) fn table(printed: &Printed, queries: u64, seed: u64) -> Result<Table, Trouble> {
    let label = Label::planned(Hasher::xxh3(seed), N);
    let stream = KeyStream::new(seed);
    let digests: Vec<Digest> = stream.members(label.hasher, 0..N).collect();
    let before = memory::held();
    let mut filter = RankIndexed::new(printed.params(0)?, label)?;
    filter.insert_many(&digests)?;
    let between = memory::held();
    let mut counting = RankCounting::new(printed.params(2)?, label)?;
    counting.insert_many(&digests)?;
    let after = memory::held();
    let mut given = RankIndexed::new(printed.given()?, label)?;
    given.insert_many(&digests)?;
    let last = memory::held();
    if given.params() != printed.given()? {
        return Err("a table as printed was laid out anew".into());
    }
    if !digests.iter().all(|&digest| given.contains_digest(digest)) {
        return Err("a table as printed lost a key".into());
    }
    if !digests.iter().all(|&digest| filter.contains_digest(digest)) {
        return Err("a rank-indexed table lost a key".into());
    }
    Ok(Table {
        passed: built::passed(&filter, stream, 0..queries)?,
        queries,
        held_bits: 8 * (between - before) as u64,
        counting_held_bits: 8 * (after - between) as u64,
        wire_bytes: filter.encode().len(),
        given_held_bits: 8 * (last - after) as u64,
        given_overflow: given.overflow().unwrap_or(0),
    })
}

/// The rates of Figures 5 and 6.
pub(super) fn rates() -> impl Iterator<Item = f64> {
    (1..=7).map(|power| 10_f64.powi(-power))
}

pub(in crate::reproduce) fn experiments(effort: Effort) -> Vec<Experiment> {
    let trials = effort.pick(40, 8000, 60_000);
    let mut all = vec![Experiment::new("rank-example", trials, 2e-4, |seed| Ok(example(seed)))];
    for (index, printed) in printed_rows().iter().enumerate() {
        let throws = effort.pick(20, 1500, 20_000);
        let name = format!("rank-beyond {index}");
        let run = move |seed| Ok(beyond(&printed_rows()[index].layout, seed));
        all.push(Experiment::new(name, throws, 5e-4, run));
        // Enough that each interval is on one side of the rate that was asked for, which is 0.5%,
        // 10% and 5% away.
        let filters = effort.pick(2, 8, 40);
        let passing = [1.4e6, 3e4, 1.3e4][index] * effort.pick(2e-3, 1.0, 4.0);
        let queries = (passing / printed.rate) as u64 / filters;
        let run = move |seed| table(&printed_rows()[index], queries, seed);
        let cost = 0.05 + queries as f64 * 3e-8;
        let experiment = Experiment::new(format!("rank-table {index}"), filters, cost, run);
        all.push(experiment.with_setup(queries));
    }
    for kind in [Kind::RankIndexed, Kind::RankCounting] {
        all.extend(rates().map(|rate| built::weighed(kind, rate)));
    }
    all
}
