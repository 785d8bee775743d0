//! The model of blocked rank-indexed filters: which share of the keys lives in the back table.
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys |
//! | m | blocks |
//! | L | chain locations of a block |
//! | Z | cells of a block |
//! | lambda | keys for each block, n / m |
//! | N(l) | keys of a block at locations up to l, l included |
//!
//! A block keeps the locations below its threshold t, the lowest location with N(t) > Z; or all,
//! if there is none. So a key at location l lives in the back table if and only if N(l) > Z. N(l)
//! counts the key itself, so this means that Z or more other keys are at locations up to l. In the
//! limit of many blocks, the keys of the locations are independent Poisson numbers with mean
//! lambda / L each.

use crate::math::tail::poisson_above;

/// The share of keys that live in the back table.
///
/// It is the mean over l of `P(Poisson(lambda (l+1) / L) >= Z)`. This is SINGLE of paper 001 with
/// threshold Z, except that not the latest keys overflow but those at the highest locations.
pub fn spilled_keys(lambda: f64, locations: u32, cells: u32) -> f64 {
    mean_over_locations(lambda, locations, u64::from(cells) - 1)
}

/// The share of absent keys whose location lives in the back table. As [`spilled_keys`], but an
/// absent key has no cell itself.
pub fn spilled_strangers(lambda: f64, locations: u32, cells: u32) -> f64 {
    mean_over_locations(lambda, locations, cells.into())
}

/// The share of insertions that touch the back table.
///
/// These are keys that belong there, and keys that push the highest chain out of a full block. A
/// block to which at least Z keys came is full if the locations up to some location have exactly Z
/// cells. Chains have a mean length of a / (1 - e^-a) with a = lambda / L, so the sum hits Z with
/// the chance (1 - e^-a) / a. Accurate to a tenth.
pub fn touching_inserts(lambda: f64, locations: u32, cells: u32) -> f64 {
    let a = lambda / f64::from(locations);
    let hits = if a > 0.0 { -libm::expm1(-a) / a } else { 1.0 };
    let elsewhere = spilled_strangers(lambda, locations, cells);
    let full = poisson_above(u64::from(cells) - 1, lambda) * hits;
    elsewhere + (1.0 - elsewhere) * full
}

fn mean_over_locations(lambda: f64, locations: u32, at_most: u64) -> f64 {
    let per_location = lambda / f64::from(locations);
    let above = |location: u32| poisson_above(at_most, per_location * f64::from(location + 1));
    (0..locations).map(above).sum::<f64>() / f64::from(locations)
}

/// How many keys are expected in the back table of blocks with `level`, if keys come to blocks in
/// clumps of the mean size `clump`. They are as uneven as fewer keys in blocks with fewer cells.
pub(super) fn expected_back(level: (u64, u32, u32), keys: u64, clump: f64) -> f64 {
    let (blocks, locations, cells) = level;
    let cells = libm::round(f64::from(cells) / clump).max(1.0) as u32;
    spilled_keys(keys as f64 / blocks as f64 / clump, locations, cells) * keys as f64
}

/// How many keys a table is laid out for where `expected` keys are expected: `deviations` standard
/// deviations of a Poisson number more. (The true deviation is larger, because several keys leave
/// a block together.)
pub(super) fn with_margin(expected: f64, deviations: f64) -> u64 {
    libm::ceil(expected + deviations * libm::sqrt(expected)).max(1.0) as u64
}

/// The most keys in the back table: a third of `capacity`, or a few. With more the table grows.
pub(super) fn most_in_back(capacity: u64) -> u64 {
    (capacity / 3).max(16)
}
