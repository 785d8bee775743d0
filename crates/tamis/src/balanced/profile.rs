//! Predicts finite filters: what absent keys and late keys meet at a block, and what follows for
//! the whole filter.
//!
//! | symbol | meaning |
//! |---|---|
//! | a | keys that have come to a block |
//! | found, refused | chances that a block holds all bits of the next key, and that it refuses it |
//! | passed | keys that the block has refused so far |
//! | x | mean of a; a is binomial with n trials |
//!
//! The rate depends only on the chances *found* and *refused* after a keys, for every a, whatever
//! the size of the filter and its subtables. `chain.rs` computes them.
//!
//! The paper's fluid limits ignore that a key which is found by mistake takes no room, and that a
//! is not quite Poisson. Here both are counted. For a filter with one choice the result is exact
//! for any number of keys.
//!
//! Tested by `tests/library/balanced.rs` and `tests/library/rates.rs`.

use alloc::vec::Vec;

use super::chain::Profile;
use super::model;
use super::params::Layout;
use crate::math::tail::binomial_pmf;

/// Loads that are more than this many standard deviations above the mean are ignored.
const REACH: f64 = 7.0;
/// Weights below this are left out.
const NEGLIGIBLE: f64 = 1e-13;

/// The most keys that come to a block when `x` come on average.
pub(super) fn most_arrivals(x: f64) -> usize {
    (libm::ceil(x + REACH * libm::sqrt(x)) as usize).saturating_add(20)
}

impl Profile {
    /// The chance that a block refuses a key after `x` of `n` keys came to it on average.
    fn refused(&self, n: u64, x: f64) -> f64 {
        let mut sum = 0.0;
        for_arrivals(n, x, self.first(), |weight, a| sum += weight * self.at(a).refused);
        sum
    }

    /// The share of `n` keys that blocks refuse while the keys come, `x` to a block on average.
    pub(super) fn refused_share(&self, n: u64, x: f64) -> f64 {
        let mut sum = 0.0;
        for_arrivals(n, x, self.first(), |weight, a| sum += weight * self.at(a).passed);
        sum / x
    }

    /// How many of `n` keys have come to a block when there are `per_block` keys for each, and how
    /// many the list has for each, if keys have `choices` blocks of one table.
    ///
    /// A key comes to 1 + q + ... + q^(d-1) blocks while blocks refuse a share q, and q depends on
    /// the keys that have come. So the keys are an integral over those that have come: d(keys) =
    /// d(come) / (1 + ... + q^(d-1)).
    fn looks(&self, n: u64, choices: u32, per_block: f64) -> (f64, f64) {
        let after = |Looks { come, keys, list }: Looks, way: f64| {
            let half = 0.5 * way;
            let mut next = Looks { come: come + way, keys, list };
            for (node, weight) in [-1.0, 1.0]
                .into_iter()
                .flat_map(|side| RULE.map(|(node, weight)| (side * node, weight)))
            {
                let q = self.refused(n, come + half * (1.0 + node));
                let share = half * weight / model::powers(q, choices);
                next.keys += share;
                next.list += share * libm::pow(q, choices.into());
            }
            next
        };
        let mut known = self.looks.borrow_mut();
        let first = self.first() as f64;
        if known.is_empty() {
            // Up to here blocks refuse nothing.
            let come = (first - REACH * libm::sqrt(first)).max(0.0);
            known.push(Looks { come, keys: come, list: 0.0 });
        }
        while known.last().is_some_and(|last| last.keys < per_block) {
            let last = known[known.len() - 1];
            // Nothing changes beyond the last value, and one step can be of any length.
            let constant = last.come - REACH * libm::sqrt(last.come) > self.len() as f64;
            let rest = f64::from(choices) * (per_block - last.keys) + 1.0;
            let way = libm::sqrt(last.come.max(first)).max(1.0);
            known.push(after(last, if constant { rest } else { way }));
        }
        let panel = known.partition_point(|looks| looks.keys < per_block);
        let Some(low) = panel.checked_sub(1).map(|below| known[below]) else {
            return (per_block, 0.0);
        };
        let high = known[panel];
        let mut way = (high.come - low.come) * (per_block - low.keys) / (high.keys - low.keys);
        let mut here = after(low, way);
        for _ in 0..6 {
            let off = per_block - here.keys;
            if libm::fabs(off) < 1e-9 * per_block {
                break;
            }
            way += off * model::powers(self.refused(n, here.come), choices);
            here = after(low, way);
        }
        (here.come, here.list)
    }
}

/// Positive nodes and weights of the four-point rule of Gauss and Legendre on [-1, 1]. Over one
/// standard deviation of the keys that come to a block, rates are off by less than 1e-6.
const RULE: [(f64, f64); 2] =
    [(0.3399810435848563, 0.6521451548625461), (0.8611363115940526, 0.3478548451374538)];

/// Where one table is that fills, all for each block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    /// Keys that have come, some of them to be refused.
    come: f64,
    /// Keys.
    keys: f64,
    /// Keys that all their blocks have refused.
    list: f64,
}

/// Something about the blocks of one table.
#[derive(Clone, Copy, Debug)]
struct Average {
    mean: f64,
    /// How much it rises with one more key for the block.
    slope: f64,
    /// The variance from block to block, beyond what the number of keys that came explains.
    variance: f64,
}

/// The blocks of one table, on average.
#[derive(Clone, Copy, Debug)]
struct Stage {
    found: Average,
    refused: Average,
    /// Keys refused by a block.
    passed: Average,
}

impl Stage {
    /// Averages over blocks to which each of `n` keys comes with chance `x` / `n`.
    fn new(profile: &Profile, n: u64, x: f64) -> Self {
        let (mut all, mut keys, mut squares) = (0.0, 0.0, 0.0);
        let [mut found, mut refused, mut passed] = [Sums::default(); 3];
        for_arrivals(n, x, 0, |weight, a| {
            let met = profile.at(a);
            let a = a as f64;
            all += weight;
            keys += weight * a;
            squares += weight * a * a;
            found.add(weight, a, met.found, weight * met.square);
            refused.add(weight, a, met.refused, weight * met.refused * met.refused);
            passed.add(weight, a, met.passed, weight * met.passed * met.passed);
        });
        let a = keys / all;
        let spread = squares / all - a * a;
        let average = |Sums { value, square, product }| {
            let mean = value / all;
            let slope = if spread > 1e-9 { (product / all - a * mean) / spread } else { 0.0 };
            let variance = (square / all - mean * mean - slope * slope * spread).max(0.0);
            Average { mean, slope, variance }
        };
        Self { found: average(found), refused: average(refused), passed: average(passed) }
    }
}

/// Sums over the numbers of keys that may have come to a block: of a value, of its square, and of
/// its product with the number of keys.
#[derive(Clone, Copy, Default)]
struct Sums {
    value: f64,
    square: f64,
    product: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, keys: f64, value: f64, weighted_square: f64) {
        self.value += weight * value;
        self.square += weighted_square;
        self.product += weight * keys * value;
    }
}

/// Calls `each` with every number of keys, `from` or more, that may have come to a block, and with
/// its chance.
fn for_arrivals(n: u64, x: f64, from: usize, mut each: impl FnMut(f64, usize)) {
    if x >= n as f64 || x > 1e4 {
        // Either all keys come to the block, or the number is so large that its variation does not
        // matter.
        return each(1.0, libm::round(x) as usize);
    }
    let (p, from) = (x / n as f64, from as u64);
    let mode = from.max(x as u64);
    let peak = binomial_pmf(n, p, mode);
    let odds = p / (1.0 - p);
    let mut weight = peak;
    for a in mode..=n {
        if weight.is_nan() || weight < NEGLIGIBLE {
            break;
        }
        each(weight, a as usize);
        weight *= odds * (n - a) as f64 / (a + 1) as f64;
    }
    weight = peak;
    for a in (from + 1..=mode).rev() {
        weight *= a as f64 / (odds * (n - a + 1) as f64);
        if weight < NEGLIGIBLE {
            break;
        }
        each(weight, a as usize - 1);
    }
}

/// What a filter will do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forecast {
    /// The rate, without the chance of equal digests.
    pub(super) rate: f64,
    /// Standard deviation of ln(rate) from filter to filter.
    pub(super) spread: f64,
    /// Blocks read by an insertion, on average while the filter fills.
    pub(super) insert: f64,
    /// Blocks read for a key that is in.
    pub(super) hit: f64,
    /// Blocks read for an absent key.
    pub(super) miss: f64,
    /// Entries of the list: mean and standard deviation.
    pub(super) list: f64,
    pub(super) list_deviation: f64,
}

/// What a filter with counters or limits will do with `keys` keys.
pub(super) fn forecast(layout: &Layout, profile: &Profile, keys: u64) -> Forecast {
    if layout.shared && layout.choices > 1 {
        return one_table(layout, profile, keys);
    }
    let mut stages = Vec::new();
    let (mut arrivals, mut reached, mut read) = (keys as f64, 1.0, 0.0);
    for choice in 0..layout.choices {
        let size = layout.subtable(choice).1 as f64;
        let stage = Stage::new(profile, keys, arrivals / size);
        stages.push((stage, size, reached));
        read += arrivals;
        arrivals = stage.passed.mean * size;
        reached *= stage.refused.mean;
    }
    // From the last stage back to the first: what an absent key meets from that stage on, and how
    // the rate changes with one more key.
    let (mut rate, mut miss) = (0.0, 0.0);
    let (mut variance, mut answer) = (0.0, 0.0);
    for &(Stage { found, refused, passed }, size, reached) in stages.iter().rev() {
        // Keys that this stage passes on vary, and with them all that follows.
        variance += answer * answer * size * passed.variance;
        variance += reached * reached * found.variance / size;
        answer = reached * (found.slope + refused.slope * rate) / size + passed.slope * answer;
        rate = found.mean + refused.mean * rate;
        miss = 1.0 + refused.mean * miss;
    }
    let list_variance = stages.iter().fold(0.0, |before, (Stage { passed, .. }, size, _)| {
        size * passed.variance + passed.slope * passed.slope * before
    });
    let insert = if keys > 0 { read / keys as f64 } else { 1.0 };
    Forecast {
        rate,
        spread: if rate > 0.0 { libm::sqrt(variance) / rate } else { 0.0 },
        insert,
        hit: insert,
        miss,
        list: arrivals,
        list_deviation: libm::sqrt(list_variance),
    }
}

/// The forecast for several choices in one table.
fn one_table(layout: &Layout, profile: &Profile, keys: u64) -> Forecast {
    let (size, d) = (layout.blocks as f64, layout.choices);
    let per_block = keys as f64 / size;
    // Any number far above the mean serves here.
    let trials = keys.saturating_mul(4);
    let series = |q: f64| model::powers(q, d);
    let (come, list) = profile.looks(trials, d, per_block);
    let stage = Stage::new(profile, trials, come);
    let insert = if keys > 0 { come / per_block } else { 1.0 };
    let rate = stage.found.mean * series(stage.refused.mean);
    let list = list * size;
    Forecast {
        rate,
        spread: if rate > 0.0 {
            series(stage.refused.mean) * libm::sqrt(stage.found.variance / size) / rate
        } else {
            0.0
        },
        insert,
        hit: insert,
        miss: series(stage.refused.mean),
        list,
        // Keys are refused by all their blocks nearly independently of each other.
        list_deviation: libm::sqrt(list),
    }
}
