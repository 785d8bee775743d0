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

use super::chain::{Met, Profile};
use super::params::Layout;
use crate::math::ode::rk4;
use crate::math::tail::binomial_pmf;

/// Loads that are more than this many standard deviations above the mean are ignored.
const REACH: f64 = 8.0;
/// Weights below this are left out.
const NEGLIGIBLE: f64 = 1e-15;

/// The most keys that come to a block when `x` come on average.
pub(super) fn most_arrivals(x: f64) -> usize {
    (libm::ceil(x + REACH * libm::sqrt(x)) as usize).saturating_add(20)
}

impl Profile {
    /// The chance that a block refuses a key after `x` of `n` keys came to it on average.
    fn refused(&self, n: u64, x: f64) -> f64 {
        let mut sum = 0.0;
        for_arrivals(n, x, |weight, a| sum += weight * self.at(a).refused);
        sum
    }

    /// The share of `n` keys that blocks refuse while the keys come, `x` to a block on average.
    pub(super) fn refused_share(&self, n: u64, x: f64) -> f64 {
        let mut sum = 0.0;
        for_arrivals(n, x, |weight, a| sum += weight * self.at(a).passed);
        sum / x
    }
}

/// The blocks of one table, on average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stage {
    pub(super) found: f64,
    pub(super) refused: f64,
    /// Keys refused by a block.
    pub(super) passed: f64,
    /// How much each of these rises with one more key for the block.
    found_slope: f64,
    refused_slope: f64,
    passed_slope: f64,
    /// Variances from block to block, beyond what the number of keys that came explains.
    found_variance: f64,
    passed_variance: f64,
}

impl Stage {
    /// Averages over blocks to which each of `n` keys comes with chance `x` / `n`.
    pub(super) fn new(profile: &Profile, n: u64, x: f64) -> Self {
        let mut sums = Sums::default();
        for_arrivals(n, x, |weight, a| sums.add(profile, weight, a));
        sums.finish()
    }
}

/// Calls `each` with every number of keys that may have come to a block, and with its chance.
fn for_arrivals(n: u64, x: f64, mut each: impl FnMut(f64, usize)) {
    if x >= n as f64 || x > 1e4 {
        // Either all keys come to the block, or the number is so large that its variation does not
        // matter.
        return each(1.0, libm::round(x) as usize);
    }
    let (p, mode) = (x / n as f64, x as u64);
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
    for a in (1..=mode).rev() {
        weight *= a as f64 / (odds * (n - a + 1) as f64);
        if weight < NEGLIGIBLE {
            break;
        }
        each(weight, a as usize - 1);
    }
}

/// Sums over the keys that may have come to a block.
#[derive(Default)]
struct Sums {
    weight: f64,
    a: f64,
    aa: f64,
    found: f64,
    square: f64,
    refused: f64,
    passed: f64,
    passed_square: f64,
    a_found: f64,
    a_refused: f64,
    a_passed: f64,
}

impl Sums {
    fn add(&mut self, profile: &Profile, weight: f64, keys: usize) {
        let Met { found, square, refused, passed } = profile.at(keys);
        let a = keys as f64;
        self.weight += weight;
        self.a += weight * a;
        self.aa += weight * a * a;
        self.found += weight * found;
        self.square += weight * square;
        self.refused += weight * refused;
        self.passed += weight * passed;
        self.passed_square += weight * passed * passed;
        self.a_found += weight * a * found;
        self.a_refused += weight * a * refused;
        self.a_passed += weight * a * passed;
    }

    fn finish(&self) -> Stage {
        let mean = |sum: f64| sum / self.weight;
        let (a, found, passed) = (mean(self.a), mean(self.found), mean(self.passed));
        let refused = mean(self.refused);
        let variance = mean(self.aa) - a * a;
        let slope = |sum: f64, of: f64| {
            if variance > 1e-9 { (mean(sum) - a * of) / variance } else { 0.0 }
        };
        let (found_slope, passed_slope) =
            (slope(self.a_found, found), slope(self.a_passed, passed));
        let beyond = |square: f64, of: f64, slope: f64| {
            (mean(square) - of * of - slope * slope * variance).max(0.0)
        };
        Stage {
            found,
            refused,
            passed,
            found_slope,
            refused_slope: slope(self.a_refused, refused),
            passed_slope,
            found_variance: beyond(self.square, found, found_slope),
            passed_variance: beyond(self.passed_square, passed, passed_slope),
        }
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
    let mut arrivals = keys as f64;
    let mut read = 0.0;
    for choice in 0..layout.choices {
        let size = layout.subtable(choice).1 as f64;
        let stage = Stage::new(profile, keys, arrivals / size);
        stages.push((stage, size));
        read += arrivals;
        arrivals = stage.passed * size;
    }
    // From the last stage back to the first: what an absent key meets from that stage on, and how
    // the rate changes with one more key.
    let (mut rate, mut miss) = (0.0, 0.0);
    let reached: Vec<f64> = stages
        .iter()
        .scan(1.0, |chance, (stage, _)| {
            let reached = *chance;
            *chance *= stage.refused;
            Some(reached)
        })
        .collect();
    let (mut variance, mut answer) = (0.0, 0.0);
    for ((stage, size), reached) in stages.iter().zip(reached).rev() {
        // Keys that this stage passes on vary, and with them all that follows.
        variance += answer * answer * size * stage.passed_variance;
        variance += reached * reached * stage.found_variance / size;
        answer = reached * (stage.found_slope + stage.refused_slope * rate) / size
            + stage.passed_slope * answer;
        rate = stage.found + stage.refused * rate;
        miss = 1.0 + stage.refused * miss;
    }
    let list_variance = stages.iter().fold(0.0, |before, (stage, size)| {
        size * stage.passed_variance + stage.passed_slope * stage.passed_slope * before
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

/// The forecast for several choices in one table. A key looks at 1 + q + ... + q^(d-1) blocks
/// while blocks refuse a share q.
fn one_table(layout: &Layout, profile: &Profile, keys: u64) -> Forecast {
    /// The error falls with the fourth power of this number, and is 1e-7 here.
    const STEPS: usize = 20;
    let (size, d) = (layout.blocks as f64, layout.choices);
    let per_block = keys as f64 / size;
    // Any number far above the mean serves here.
    let trials = keys.saturating_mul(4);
    let series = |q: f64| super::model::powers(q, d);
    // Looks for each block, and keys for the list for each block, as functions of the keys per
    // block.
    let mut state = [0.0, 0.0];
    let derivative = |_: f64, state: &[f64], slope: &mut [f64]| {
        let q = profile.refused(trials, state[0]);
        slope[0] = series(q);
        slope[1] = libm::pow(q, d.into());
    };
    rk4(derivative, &mut state, 0.0, per_block, STEPS);
    let stage = Stage::new(profile, trials, state[0]);
    let insert = if keys > 0 { state[0] / per_block } else { 1.0 };
    let rate = stage.found * series(stage.refused);
    let list = state[1] * size;
    Forecast {
        rate,
        spread: if rate > 0.0 {
            series(stage.refused) * libm::sqrt(stage.found_variance / size) / rate
        } else {
            0.0
        },
        insert,
        hit: insert,
        miss: series(stage.refused),
        list,
        // Keys are refused by all their blocks nearly independently of each other.
        list_deviation: libm::sqrt(list),
    }
}
