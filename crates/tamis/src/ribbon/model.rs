//! Sizes and rates.
//!
//! Keys start in the places of a level; its *load* is the keys for each of these. How many are
//! bumped to the next level, and how that varies, was measured (`LOADS`), because no formula is
//! known; `tests/library/ribbon.rs` measures them again. All else follows: a
//! key that starts where c columns are compared is answered yes with probability 2^-c, whatever
//! the other keys are.

use super::build::SEGMENT;
use super::level::{BUCKET, Level, ROWS, TOGETHER};
use super::params::{LEVELS, MAX_COLUMNS, MAX_ROWS, RibbonParams, UNIT};
use crate::bits::Line;
use crate::math::solve::first_true;
use crate::spec::{Goal, Params, PlanError, Prediction, Size, digest_floor, per_key};
use crate::wire::{self, Encoding};

const KIND: &str = "ribbon";

/// The effect of a load on a level of many keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effect {
    /// Keys for each start.
    pub load: f64,
    /// The share of the keys that is bumped.
    pub bumped: f64,
    /// The variance of the number of bumped keys, divided by the keys.
    pub variance: f64,
    /// The share of the starts that is bumped, which is less: full buckets bump.
    pub starts: f64,
    /// The variance of the number of bumped starts in a part of a level, divided by the starts of
    /// the part. It is far above that of a whole level, because parts share the keys.
    pub starts_variance: f64,
}

const fn load(load: f64, bumped: f64, variance: f64, starts: f64, starts_variance: f64) -> Effect {
    Effect { load, bumped, variance, starts, starts_variance }
}

/// Measured with 13 million keys in levels of 131,072 keys. With more load there are hardly fewer
/// empty rows, and building takes longer.
pub const LOADS: [Effect; 10] = [
    load(0.90, 0.000_004, 0.0001, 0.000_003, 0.0001),
    load(0.92, 0.000_03, 0.001, 0.000_02, 0.0004),
    load(0.94, 0.000_16, 0.0048, 0.000_13, 0.003),
    load(0.96, 0.000_88, 0.023, 0.000_75, 0.020),
    load(0.98, 0.003_66, 0.056, 0.003_15, 0.095),
    load(1.00, 0.011_04, 0.080, 0.009_74, 0.30),
    load(1.01, 0.016_80, 0.091, 0.014_91, 0.41),
    load(1.02, 0.023_79, 0.063, 0.021_20, 0.56),
    load(1.03, 0.031_50, 0.042, 0.028_29, 0.68),
    load(1.04, 0.039_88, 0.029, 0.036_25, 0.73),
];
/// Loads of filters that are fuller than any plan, and the share of the keys that is bumped: more
/// and more buckets have more keys in their last rows than these take, and bump all.
const OVERFULL: [(f64, f64); 8] = [
    (1.1, 0.091),
    (1.3, 0.242),
    (1.5, 0.384),
    (1.7, 0.552),
    (1.8, 0.685),
    (1.9, 0.820),
    (2.0, 0.916),
    (2.3, 1.0),
];
/// What the ends of a level add to the variance; measured with levels of 4096 keys.
const ENDS_VARIANCE: f64 = 300.0;

/// The load of the last level, at which almost never a key is bumped.
const LAST_LOAD: f64 = 0.85;
/// How many standard deviations more keys than expected the last level takes.
const DEVIATIONS: f64 = 4.0;
/// The share of the keys by which the measured shares of bumped keys may be wrong.
const UNSURE: f64 = 0.0002;

/// Keys that a level bumps: the mean and the variance.
#[derive(Clone, Copy)]
struct Bumped {
    mean: f64,
    variance: f64,
}

/// The rows of a level in which `keys` keys have this load.
fn rows_at(keys: f64, load: f64) -> u64 {
    // A float that is too large becomes a number of rows that no params accept.
    let starts = (libm::ceil(keys / load) as u64).max(ROWS);
    starts.saturating_add(ROWS).checked_next_multiple_of(ROWS).unwrap_or(u64::MAX)
}

/// The rows of a level that comes last: it takes more keys than are expected.
fn last_rows(keys: Bumped, all: f64) -> u64 {
    let most = keys.mean + DEVIATIONS * libm::sqrt(keys.variance) + UNSURE * all;
    rows_at(most, LAST_LOAD)
}

impl Effect {
    /// What is `share` of the way from this load to another.
    fn towards(&self, other: &Self, share: f64) -> Self {
        let between = |from: f64, to: f64| from + share * (to - from);
        Self {
            load: between(self.load, other.load),
            bumped: between(self.bumped, other.bumped),
            variance: between(self.variance, other.variance),
            starts: between(self.starts, other.starts),
            starts_variance: between(self.starts_variance, other.starts_variance),
        }
    }

    /// What a level with this load bumps of `keys`.
    fn bumps(&self, keys: Bumped) -> Bumped {
        let segments = libm::floor(keys.mean / self.load / SEGMENT as f64);
        Bumped {
            mean: keys.mean * self.bumped + segments * BUCKET as f64,
            variance: keys.variance + keys.mean * self.variance + ENDS_VARIANCE,
        }
    }
}

/// The rows of the levels that take the fewest rows in all for `keys` keys.
fn fewest_rows(keys: u64) -> [u64; LEVELS] {
    let all = keys as f64;
    let first = Bumped { mean: all, variance: 0.0 };
    let mut best = [rows_at(all, LAST_LOAD), 0, 0];
    let mut consider = |rows: [u64; LEVELS]| {
        let sum = |rows: [u64; LEVELS]| rows.into_iter().fold(0, u64::saturating_add);
        if sum(rows) < sum(best) {
            best = rows;
        }
    };
    for one in LOADS {
        let (rows, second) = (rows_at(all, one.load), one.bumps(first));
        consider([rows, last_rows(second, all), 0]);
        for two in LOADS {
            let third = last_rows(two.bumps(second), all);
            consider([rows, rows_at(second.mean, two.load), third]);
        }
    }
    best
}

/// The layout for a goal.
pub(super) fn plan(goal: &Goal) -> Result<RibbonParams, PlanError> {
    goal.check()?;
    let [columns, rows, second, third] = goal.fixed_params(KIND, &RibbonParams::NAMES[..4])?;
    let keys = goal.sized_keys();
    let free = [rows, second, third] == [None; LEVELS];
    // Who fixes a level fixes them all: one that is not named is not there.
    let fixed = [rows, second, third].map(|rows| rows.unwrap_or(0));
    let rows = if free { fewest_rows(keys) } else { fixed };
    let params = |columns| RibbonParams::new(columns, rows, 0);
    let least = params(columns.unwrap_or(1))?;
    let most = least.with_columns(columns.unwrap_or(MAX_COLUMNS * UNIT));
    let with = |columns| least.with_columns(columns);
    let ribbon = match (goal.size, goal.budget()) {
        (Size::Rate(asked), _) => {
            let met = |columns| rate(&with(columns), keys) <= asked;
            let found = first_true(least.columns(), most.columns(), met);
            let nearest = rate(&most, keys);
            with(found.ok_or(PlanError::Unreachable { kind: KIND, asked, keys, nearest })?)
        }
        (_, budget) => {
            let budget = budget.unwrap_or(0).next_multiple_of(Line::BITS);
            let beyond = |columns| held_bits(&with(columns), keys) > budget;
            match first_true(least.columns(), most.columns(), beyond) {
                None => most,
                Some(columns) if columns > least.columns() => with(columns - 1),
                Some(_) => {
                    let [asked, least] =
                        [budget, held_bits(&least, keys)].map(|bits| per_key(bits, keys));
                    return Err(PlanError::TooFewBits { kind: KIND, asked, least });
                }
            }
        }
    };
    // A few keys take the fewest bits as a list, which has the lowest rate too. (A filter for no
    // key could do without memory; but then what is built from keys after all has no rows.)
    let list = RibbonParams::new(1, [0; LEVELS], 0)?;
    let shorter = held_bits(&list, keys) <= held_bits(&ribbon, keys);
    let few = goal.keys > 0 && free && columns.is_none() && shorter;
    Ok(if few { list } else { ribbon })
}

/// What a level with this load bumps.
fn at_load(load: f64) -> Effect {
    let [first, .., last] = LOADS;
    if load <= first.load {
        return Effect { load, ..Effect::default() };
    }
    let mut low = first;
    let overfull = OVERFULL.map(|(load, bumped)| Effect { load, bumped, starts: bumped, ..last });
    for high in LOADS.into_iter().chain(overfull) {
        if load <= high.load {
            return low.towards(&high, (load - low.load) / (high.load - low.load));
        }
        low = high;
    }
    Effect { load, ..low }
}

/// A level with the keys that come to it.
pub(super) struct Loaded {
    pub(super) level: Level,
    /// The keys that come to it.
    pub(super) keys: f64,
    /// The share of those that it passes on.
    pub(super) bumped: f64,
    /// The share of the absent keys that come to it.
    asked: f64,
    /// The share of those that it passes on.
    asked_on: f64,
    /// The variance of the starts of a part that are bumped, divided by these starts.
    variance: f64,
}

/// The levels of a filter with `keys` keys.
pub(super) fn loaded(params: &RibbonParams, keys: u64) -> [Loaded; LEVELS] {
    let (mut keys, mut asked) = (keys as f64, 1.0);
    params.levels().map(|level| {
        let all = Effect { bumped: 1.0, starts: 1.0, ..Effect::default() };
        let load = if level.starts == 0 { all } else { at_load(keys / level.starts as f64) };
        // A bucket without keys passes on all.
        let empty = libm::exp(-load.load * BUCKET as f64);
        let asked_on = load.starts + (1.0 - load.starts) * empty;
        let (bumped, variance) = (load.bumped, load.starts_variance);
        let loaded = Loaded { level, keys, bumped, asked, asked_on, variance };
        keys *= bumped;
        asked *= asked_on;
        loaded
    })
}

/// The expected rate.
pub(crate) fn rate(params: &RibbonParams, keys: u64) -> f64 {
    let answered = loaded(params, keys).map(|loaded| {
        let Loaded { level, asked, asked_on, .. } = loaded;
        if level.starts == 0 {
            return 0.0;
        }
        asked * (1.0 - asked_on) * yes(&level, level.starts, level.wide_starts())
    });
    (answered.into_iter().sum::<f64>() + digest_floor(keys)).min(1.0)
}

/// The standard deviation of the rate between filters, as a share of it: more starts are bumped
/// now where a column more is compared, now where not.
fn rate_spread(params: &RibbonParams, keys: u64) -> f64 {
    let variance = loaded(params, keys).map(|loaded| {
        let Loaded { level, asked, variance, .. } = loaded;
        if level.starts == 0 {
            return 0.0;
        }
        let starts = level.starts as f64;
        let wide = level.wide_starts() as f64 / starts;
        let step = asked * libm::ldexp(0.5, -(level.columns as i32));
        step * step * wide * (1.0 - wide) * variance / starts
    });
    libm::sqrt(variance.into_iter().sum::<f64>()) / rate(params, keys)
}

/// The probability that an absent key which starts at one of `starts` places is answered yes; at
/// `wide` of them a column more is compared.
pub(super) fn yes(level: &Level, starts: u64, wide: u64) -> f64 {
    let share = wide as f64 / starts as f64;
    libm::ldexp(1.0 - 0.5 * share, -(level.columns as i32))
}

/// The digests that are expected in the list.
fn expected_listed(params: &RibbonParams, keys: u64) -> f64 {
    let [.., last] = loaded(params, keys);
    last.keys * last.bumped
}

/// The words of a filter with `keys` keys.
fn held_words(params: &RibbonParams, keys: u64) -> u64 {
    let listed = libm::round(expected_listed(params, keys)) as u64;
    params.fixed_words() + listed.min(MAX_ROWS)
}

/// Bits of memory held: whole lines of rows, codes and list.
fn held_bits(params: &RibbonParams, keys: u64) -> u64 {
    (held_words(params, keys) * 64).next_multiple_of(Line::BITS)
}

/// What a filter will do.
pub(super) fn predict(params: &RibbonParams, keys: u64) -> Prediction {
    let bytes = held_words(params, keys) * 8;
    let wire = wire::planned_len(RibbonParams::NAMES.len(), Encoding::Raw, bytes);
    let listed = expected_listed(params, keys);
    // A search of the list reads about the logarithm of its lines.
    let list = if listed < 0.5 { 0.0 } else { libm::log2(listed / 8.0).max(0.0) + 1.0 };
    let (mut hit, mut in_it, mut miss, mut asked) = (0.0, 1.0, 0.0, 1.0);
    for loaded in loaded(params, keys).iter().filter(|loaded| loaded.level.starts > 0) {
        hit += in_it * (1.0 + (1.0 - loaded.bumped) * lines(&loaded.level, false));
        miss += asked * (1.0 + (1.0 - loaded.asked_on) * lines(&loaded.level, true));
        in_it *= loaded.bumped;
        asked *= loaded.asked_on;
    }
    Prediction {
        rate: rate(params, keys),
        rate_spread: rate_spread(params, keys),
        bits_per_key: per_key(held_bits(params, keys), keys),
        wire_bits_per_key: per_key(wire * 8, keys),
        blocks_per_insert: 0.0,
        blocks_per_hit: hit + in_it * list,
        blocks_per_miss: miss + asked * list,
        overflow: Some(listed),
    }
}

/// Lines of rows that a lookup reads, as the mean over keys that are in, or over absent keys
/// (`absent`), which are told by the first column that does not agree.
fn lines(level: &Level, absent: bool) -> f64 {
    if level.starts == 0 {
        return 0.0;
    }
    let of = |columns: u32| {
        // Blocks begin at any word of a line.
        let at = |read: u32| (0..8).map(|phase| read_lines(phase, columns, read)).sum::<u32>();
        let at = |read| f64::from(at(read)) / 8.0;
        if !absent {
            return at(columns);
        }
        // Those that agree in the first columns are told by one of the next, or by none.
        let together = columns.min(TOGETHER as u32);
        let agree = |columns: u32| libm::ldexp(1.0, -(columns as i32));
        let later =
            (together + 1..=columns).map(|read| (at(read) - at(read - 1)) * agree(read - 1));
        at(together) + later.sum::<f64>()
    };
    let wide = level.wide_starts() as f64 / level.starts as f64;
    wide * of(level.columns + 1) + (1.0 - wide) * of(level.columns)
}

/// Lines in which the first `read` words of two blocks are, of `columns` words each; the first
/// block begins at word `phase` of a line.
fn read_lines(phase: u32, columns: u32, read: u32) -> u32 {
    let lines = |from: u32| (from / 8, (from + read - 1) / 8);
    if read == 0 {
        return 0;
    }
    let ((first, last), (next, end)) = (lines(phase), lines(phase + columns));
    (last - first + 1) + (end - next + 1) - u32::from(last == next)
}
