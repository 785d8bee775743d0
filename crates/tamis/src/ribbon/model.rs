//! Sizes and rates.
//!
//! Symbols: n keys start in s places of a level, so its load is n / s. The share b of the keys is
//! bumped to the next level. The share and its variance were measured (`LOADS`), because no
//! formula for them is known; `tests/library/ribbon.rs` measures them again. All else follows: a
//! key that starts where c columns are compared is answered yes with probability 2^-c, whatever
//! the other keys are.

use super::build::SEGMENT;
use super::level::{BUCKET, Level, ROWS};
use super::params::{LEVELS, MAX_COLUMNS, RibbonParams, UNIT};
use crate::bits::Line;
use crate::math::solve::first_true;
use crate::spec::{Goal, Params, PlanError, Prediction, Size, digest_floor};
use crate::wire::{self, Encoding};

const KIND: &str = "ribbon";

/// What a load does to a level of many keys.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// Keys for each start.
    pub(crate) load: f64,
    /// The share of the keys that is bumped.
    pub(crate) bumped: f64,
    /// The variance of the number of bumped keys, divided by the keys.
    pub(crate) variance: f64,
}

const fn load(load: f64, bumped: f64, variance: f64) -> Load {
    Load { load, bumped, variance }
}

/// Measured with 5 million keys in levels of 131,072 keys. More load would bump more keys for
/// hardly fewer empty rows, and take longer to build.
pub(crate) const LOADS: [Load; 11] = [
    load(0.90, 0.000_004, 0.0002),
    load(0.92, 0.000_03, 0.0013),
    load(0.94, 0.000_18, 0.005),
    load(0.96, 0.000_92, 0.023),
    load(0.98, 0.003_77, 0.052),
    load(1.00, 0.011_04, 0.096),
    load(1.01, 0.016_69, 0.112),
    load(1.02, 0.023_76, 0.12),
    load(1.03, 0.031_38, 0.09),
    load(1.04, 0.039_79, 0.07),
    load(1.05, 0.048_38, 0.06),
];

/// The load of the last level, at which almost never a key is bumped.
const LAST_LOAD: f64 = 0.8;
/// How many standard deviations more keys than expected the last level takes.
const DEVIATIONS: f64 = 6.0;
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

impl Load {
    /// What a level with this load bumps of `keys`.
    fn bumps(&self, keys: Bumped) -> Bumped {
        let segments = libm::floor(keys.mean / self.load / SEGMENT as f64);
        Bumped {
            mean: keys.mean * self.bumped + segments * BUCKET as f64,
            variance: keys.variance + keys.mean * self.variance,
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
    let [width, rows, second, third] =
        goal.fixed_params(KIND, ["width", "rows", "second", "third"])?;
    let keys = goal.sized_keys();
    let fewest = match (rows, second, third) {
        (None, None, None) => fewest_rows(keys),
        // Who fixes a level fixes them all: one that is not named is not there.
        fixed => [fixed.0, fixed.1, fixed.2].map(|rows| rows.unwrap_or(0)),
    };
    let wished = RibbonParams::new(width.unwrap_or(1), fewest, 0)?;
    if width.is_some() {
        return Ok(wished);
    }
    let most = MAX_COLUMNS * UNIT;
    let list = RibbonParams::new(1, [0; LEVELS], 0)?;
    let may_list = rows.is_none() && second.is_none() && third.is_none();
    let Some(budget) = goal.budget() else {
        let Size::Rate(asked) = goal.size else { unreachable!("the other sizes have a budget") };
        let met = |width| rate(&wished.with_width(width), keys) <= asked;
        let ribbon = first_true(1, most, met).map(|width| wished.with_width(width));
        let ribbon = ribbon.ok_or_else(|| {
            let nearest = rate(&wished.with_width(most), keys);
            PlanError::Unreachable { kind: KIND, asked, keys, nearest }
        })?;
        // A few keys take the fewest bits as a list.
        let shorter = may_list && held_bits(&list, keys) <= held_bits(&ribbon, keys);
        return Ok(if shorter { list } else { ribbon });
    };
    if may_list && held_bits(&list, keys) <= budget {
        return Ok(list);
    }
    let beyond = |width| held_bits(&wished.with_width(width), keys) > budget;
    match first_true(1, most, beyond).unwrap_or(most + 1) - 1 {
        0 => {
            let [asked, least] = [budget, held_bits(&wished, keys)];
            let per_key = |bits: u64| bits as f64 / keys as f64;
            Err(PlanError::TooFewBits { kind: KIND, asked: per_key(asked), least: per_key(least) })
        }
        width => Ok(wished.with_width(width)),
    }
}

/// The shares of keys and of absent keys that a level with this load passes on.
fn bumped(load: f64) -> f64 {
    let [first, .., last] = LOADS;
    if load <= first.load {
        return 0.0;
    }
    if load > last.load {
        // All rows are taken. (Far beyond, buckets bump all their keys.)
        return 1.0 - (1.0 - last.bumped) * last.load / load;
    }
    let above = LOADS.partition_point(|known| known.load < load);
    let (low, high) = (LOADS[above - 1], LOADS[above]);
    let share = (load - low.load) / (high.load - low.load);
    low.bumped + share * (high.bumped - low.bumped)
}

/// A level with the keys that come to it.
pub(super) struct Loaded {
    pub(super) level: Level,
    /// The keys that come to it.
    pub(super) keys: f64,
    /// The keys that it passes on.
    pub(super) passed: f64,
    /// The share of the absent keys that come to it.
    pub(super) asked: f64,
    /// The share of those that it passes on.
    pub(super) asked_on: f64,
}

/// The levels of a filter with `keys` keys.
pub(super) fn loaded(params: &RibbonParams, keys: u64) -> [Loaded; LEVELS] {
    let (mut keys, mut asked) = (keys as f64, 1.0);
    params.levels().map(|level| {
        let (share, asked_on) = if level.starts == 0 {
            (1.0, 1.0)
        } else {
            let load = keys / level.starts as f64;
            let share = bumped(load);
            // A bucket without keys passes on all.
            (share, share + (1.0 - share) * libm::exp(-load * BUCKET as f64))
        };
        let loaded = Loaded { level, keys, passed: keys * share, asked, asked_on };
        keys *= share;
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

/// The probability that an absent key which starts at one of `starts` places is answered yes; at
/// `wide` of them a column more is compared.
pub(super) fn yes(level: &Level, starts: u64, wide: u64) -> f64 {
    let share = wide as f64 / starts as f64;
    libm::ldexp(1.0 - 0.5 * share, -(level.columns as i32))
}

/// The digests that are expected in the list.
pub(super) fn expected_listed(params: &RibbonParams, keys: u64) -> f64 {
    let [.., last] = loaded(params, keys);
    last.passed
}

/// Bits of memory held: whole lines of rows, codes and list.
fn held_bits(params: &RibbonParams, keys: u64) -> u64 {
    let listed = libm::round(expected_listed(params, keys)) as u64;
    (params.fixed_words().saturating_add(listed)).saturating_mul(64).next_multiple_of(Line::BITS)
}

/// What a filter will do.
pub(super) fn predict(params: &RibbonParams, keys: u64) -> Prediction {
    let per_key = |bits: u64| bits as f64 / keys.max(1) as f64;
    let listed = expected_listed(params, keys);
    let words = params.fixed_words().saturating_add(libm::round(listed) as u64);
    let wire = wire::planned_len(RibbonParams::NAMES.len(), Encoding::Raw, words.saturating_mul(8));
    let levels = loaded(params, keys);
    let hit = levels.iter().map(|level| {
        (level.keys + (level.keys - level.passed) * lines(&level.level, false)) / keys.max(1) as f64
    });
    let miss = levels
        .iter()
        .map(|level| level.asked * (1.0 + (1.0 - level.asked_on) * lines(&level.level, true)));
    // A search of the list reads about the logarithm of its lines.
    let list = if listed < 0.5 { 0.0 } else { libm::log2(listed / 8.0).max(0.0) + 1.0 };
    let [.., last] = &levels;
    Prediction {
        rate: rate(params, keys),
        rate_spread: 0.0,
        bits_per_key: per_key(held_bits(params, keys)),
        wire_bits_per_key: per_key(wire.saturating_mul(8)),
        blocks_per_insert: 0.0,
        blocks_per_hit: hit.sum::<f64>() + last.passed / keys.max(1) as f64 * list,
        blocks_per_miss: miss.sum::<f64>() + last.asked * last.asked_on * list,
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
        let told = (1..=columns).map(|read| at(read) * libm::ldexp(1.0, -(read as i32)));
        told.sum::<f64>() + at(columns) * libm::ldexp(1.0, -(columns as i32))
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
