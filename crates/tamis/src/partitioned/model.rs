//! The fill of a partitioned filter, its rate and its cost.
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys (of a segment) |
//! | m | bits (of a segment) |
//! | g | groups (of a segment) |
//! | s | keys of a group |
//! | H | candidates |
//! | k | functions of a group |
//! | z | share of the bits that are still zero |
//!
//! A candidate throws the s keys of a group into m bits, of which z m are zero. The number X of
//! new bits is taken as binomial with s trials and the mean z m (1 - (1 - 1/m)^s), that of the
//! occupied bins. A group takes the k smallest of H such numbers. (It is not k times the smallest:
//! every round has the candidates of the round before, and their new bits hardly change in
//! between.) Let F = P(X <= x), and let B, the number of candidates at or below x, be binomial(H,
//! F). Then
//!
//! ```text
//! E[sum of the k smallest] = sum over x >= 0 of E[max(k - B, 0)]
//! ```
//!
//! and every group lowers z by that sum divided by m. This is followed step by step where there
//! are few groups, and as a differential equation where there are many. The sizes of groups are
//! binomial. The rate is the fill to the power of k, times the share of groups that are not empty.
//!
//! The fill is accurate to 0.1% where groups have tens of keys and set few of the bits, to 0.5%
//! for a few large groups, and to 1.5% for groups of two or three keys, whatever the functions.
//! `tests/library/partitioned.rs` and `tests/library/papers_partitioned.rs` compare it with
//! measured fills. The spread between filters is taken from the plain filter; where groups have
//! tens of keys it is really about half of that.

use alloc::vec::Vec;

use super::functions::Family;
use super::params::PartitionedParams;
use crate::bits::Line;
use crate::bloom;
use crate::math::occupancy::{mean_occupied, power_spread};
use crate::math::tail::{binomial_pmf, ln_binomial_pmf};
use crate::spec::{Params, Prediction, digest_floor, per_key};
use crate::wire::{self, Encoding};

/// With at most this many rounds, each of one function of one group, the fill is followed round by
/// round.
const FEW_ROUNDS: u64 = 128;
/// Steps of the differential equation, with two evaluations each. With twelve steps the rate would
/// be 0.3% too low.
const STEPS: u32 = 60;
/// Steps for a search whose result is then refined with more.
const SOME_STEPS: u32 = 12;
/// Steps for a search that only ranks layouts.
const FEW_STEPS: u32 = 5;
/// A share of zeros that counts as none.
const NO_ZEROS: f64 = 1e-9;
/// From this standard deviation on, X is taken as normal.
const WIDE: f64 = 100.0;

/// E[sum of the k smallest of H] for X binomial with `s` trials of probability `p`.
///
/// The sum runs over x from 10 standard deviations below the mean up, until it is certain that k
/// of the candidates are below x.
pub(super) fn smallest(s: u64, p: f64, h: u32, k: u32) -> f64 {
    let (p, trials) = (p.clamp(0.0, 1.0), s as f64);
    let mean = trials * p;
    let deviation = libm::sqrt(mean * (1.0 - p));
    if h == k || deviation == 0.0 {
        return f64::from(k) * mean;
    }
    // Where the deviation is far more than 1, larger steps of the normal distribution are enough.
    let step = if deviation > WIDE { deviation / 32.0 } else { 1.0 };
    let low = libm::floor((mean - 10.0 * deviation).max(0.0));
    let mut x = low;
    let mut chance = libm::exp(ln_binomial_pmf(s, p, x as u64));
    let mut below = 0.0;
    let mut sum = f64::from(k) * low;
    loop {
        below = if step > 1.0 {
            // The middle of the step stands for all of it.
            0.5 * libm::erfc((mean - x - 0.5 * step) / (deviation * core::f64::consts::SQRT_2))
        } else {
            below + chance
        };
        let short = shortfall(below, h, k);
        sum += step * short;
        if x >= trials || (short < 1e-9 && x > low) {
            return sum;
        }
        chance *= (trials - x) / (x + 1.0) * p / (1.0 - p);
        x += step;
    }
}

/// E[max(k - B, 0)] for B binomial with H trials of probability f.
fn shortfall(f: f64, h: u32, k: u32) -> f64 {
    if f >= 1.0 {
        return 0.0;
    }
    let trials = f64::from(h);
    if trials * f < 1e-7 {
        // Almost certainly B is 0, and 1 at most.
        return f64::from(k) - trials * f;
    }
    let mut chance = libm::exp(trials * libm::log1p(-f));
    let odds = f / (1.0 - f);
    let mut sum = 0.0;
    for b in 0..k {
        sum += f64::from(k - b) * chance;
        chance *= (trials - f64::from(b)) / f64::from(b + 1) * odds;
    }
    sum
}

/// Sizes of groups and their chances. Where groups are large, there are about a dozen points, a
/// standard deviation apart.
fn sizes(n: u64, g: u64) -> Vec<(u64, f64)> {
    let share = 1.0 / g as f64;
    let mean = n as f64 * share;
    let deviation = libm::sqrt(mean * (1.0 - share));
    let step = (deviation as u64).max(1);
    let low = (mean - 5.0 * deviation).max(0.0) as u64;
    let high = (libm::ceil(mean + 5.0 * deviation + 3.0) as u64).min(n);
    // Where the points lie apart, the mean is one of them.
    let first = if step > 1 { (libm::round(mean) as u64 - low) % step + low } else { low };
    let points = (first..=high).step_by(step as usize);
    let mut sizes: Vec<_> = points.map(|s| (s, binomial_pmf(n, share, s))).collect();
    let (total, keys) = sizes
        .iter()
        .fold((0.0, 0.0), |(total, keys), &(s, chance)| (total + chance, keys + s as f64 * chance));
    // Scales the chances to make up for what the points leave out, so that the mean size is right.
    let scale = if keys > 0.0 { mean / keys } else { 1.0 / total };
    for (_, chance) in &mut sizes {
        *chance *= scale;
    }
    sizes
}

/// The share of the bits that `n` keys in `g` groups set.
fn fill(m: u64, n: u64, g: u64, h: u32, k: u32, steps: u32) -> f64 {
    if h == k {
        return mean_occupied(m, n.saturating_mul(k.into())) / m as f64;
    }
    let sizes = sizes(n, g);
    let rounds = g.saturating_mul(k.into());
    if rounds > FEW_ROUNDS {
        return flow(m, g, h, k, &sizes, steps);
    }
    let mut zeros = 1.0;
    for _ in 0..rounds {
        zeros = (zeros - taken(m, h, k, &sizes, zeros)).max(0.0);
    }
    1.0 - zeros
}

/// As [`fill`], but faster: every group has the mean size.
pub(super) fn quick_fill(m: u64, n: u64, g: u64, h: u32, k: u32) -> f64 {
    let mean = n as f64 / g as f64;
    let s = libm::round(mean).max(1.0);
    flow(m, g, h, k, &[(s as u64, mean / s)], FEW_STEPS)
}

/// The new bits of a group in a round, divided by m.
fn taken(m: u64, h: u32, k: u32, sizes: &[(u64, f64)], zeros: f64) -> f64 {
    let of_size = |&(s, chance): &(u64, f64)| {
        let p = zeros * mean_occupied(m, s) / s.max(1) as f64;
        chance * smallest(s, p, h, k)
    };
    sizes.iter().map(of_size).sum::<f64>() / (f64::from(k) * m as f64)
}

/// The fill as the solution of a differential equation, by the midpoint rule. At first the number
/// of new bits falls with the square root of the fill, so steps are equal in the square root of
/// time. They are smaller where a filter is far too full.
fn flow(m: u64, g: u64, h: u32, k: u32, sizes: &[(u64, f64)], steps: u32) -> f64 {
    let rounds = g as f64 * f64::from(k);
    let (mut zeros, mut root) = (1.0, 0.0);
    while root < 1.0 && zeros > NO_ZEROS {
        let now = taken(m, h, k, sizes, zeros);
        let span = |step: f64| rounds * step * (2.0 * root + step);
        let mut step = (1.0 / f64::from(steps)).min(1.0 - root);
        // If a step took all zeros, it would have no midpoint.
        while span(step) * now > 0.5 * zeros {
            step /= 2.0;
        }
        let halfway = zeros - span(0.5 * step) * now;
        // At least a quarter of the slope at the start, so that the steps make progress.
        zeros -= span(step) * taken(m, h, k, sizes, halfway).max(0.25 * now);
        root += step;
    }
    1.0 - zeros
}

/// How many bits a filter has for each group if its fill is `filled`, in the limit of many keys.
/// It gives the size for a rate without a search.
pub(super) fn bits_per_group(filled: f64, s: u64, h: u32, k: u32) -> f64 {
    // After t groups a share z of the bits is zero, where t/m is the integral of dz / E[new bits]
    // from z to 1. Simpson's rule over u, the square root of the fill.
    const PARTS: u32 = 8;
    let end = libm::sqrt(filled);
    let at = |part: u32| {
        let u = end * f64::from(part) / f64::from(PARTS);
        2.0 * u / smallest(s, 1.0 - u * u, h, k)
    };
    let inner: f64 = (1..PARTS).map(|part| at(part) * if part % 2 == 1 { 4.0 } else { 2.0 }).sum();
    let integral = end / f64::from(3 * PARTS) * (inner + at(PARTS));
    1.0 / integral
}

/// The expected rate.
pub fn rate(params: &PartitionedParams, keys: u64) -> f64 {
    predicted(params, keys, STEPS).1
}

/// The expected rate for a search, accurate to some tenths of a per cent.
pub(super) fn about_rate(params: &PartitionedParams, keys: u64) -> f64 {
    predicted(params, keys, SOME_STEPS).1
}

/// The expected fill.
pub fn expected_fill(params: &PartitionedParams, keys: u64) -> f64 {
    predicted(params, keys, STEPS).0
}

/// Fill and rate.
fn predicted(params: &PartitionedParams, keys: u64, steps: u32) -> (f64, f64) {
    let (h, k) = (params.candidates(), params.hashes());
    let (m, g) = (params.segment_bits(), params.segment_groups());
    if h == k {
        let throws = keys.saturating_mul(k.into());
        // No plan has segments where all candidates are taken: all segments are taken to have
        // equally many keys.
        let rate = bloom::model::rate(params.bits(), k, keys) + alike(params, keys);
        return (mean_occupied(params.bits(), throws) / params.bits() as f64, rate.min(1.0));
    }
    let passed = |n: u64| {
        let fill = fill(m, n, g, h, k, steps);
        let spread = power_spread(m, n.saturating_mul(k.into()), k);
        let uneven = f64::from(k - 1) / f64::from(2 * k) * spread * spread;
        (fill, libm::pow(fill, k.into()) * (1.0 + uneven))
    };
    let share = 1.0 / params.segments() as f64;
    let mean = keys as f64 * share;
    let (fill, passed) = if params.segments() == 1 {
        passed(keys)
    } else {
        // The number of keys of a segment varies: Gauss-Hermite quadrature with three points.
        let off = libm::sqrt(3.0 * mean * (1.0 - share));
        let at = |n: f64| passed(libm::round(n).max(0.0) as u64);
        let ((fill, middle), (_, low), (_, high)) = (at(mean), at(mean - off), at(mean + off));
        (fill, middle * 2.0 / 3.0 + (low + high) / 6.0)
    };
    let empty = empty_share(params, keys);
    (fill, (passed * (1.0 - empty) + digest_floor(keys) + alike(params, keys)).min(1.0))
}

/// The chance that no candidate of the CRC family tells an absent key from one of the keys in its
/// group, because all 32 bits of their CRCs are equal.
pub(super) fn alike(params: &PartitionedParams, keys: u64) -> f64 {
    match params.family() {
        Family::Mixers => 0.0,
        Family::Crc => keys as f64 / params.groups() as f64 / 4_294_967_296.0,
    }
}

/// The share of groups that have no key.
fn empty_share(params: &PartitionedParams, keys: u64) -> f64 {
    match keys {
        0 => 1.0, // With one group the logarithm below is not finite.
        _ => libm::exp(keys as f64 * libm::log1p(-1.0 / params.groups() as f64)),
    }
}

/// Bits of memory held: whole lines of the array and of the choices.
pub(super) fn held_bits(params: &PartitionedParams) -> u64 {
    params.bits().next_multiple_of(Line::BITS) + params.choice_bits().next_multiple_of(Line::BITS)
}

/// What a filter will do.
pub fn predict(params: &PartitionedParams, keys: u64) -> Prediction {
    let (k, width) = (params.hashes(), params.width());
    let (fill, rate) = predicted(params, keys, STEPS);
    let raw = |bits: u64| (Encoding::Raw, bits.div_ceil(64) * 8);
    let sections = [raw(params.bits()), raw(params.choice_bits())];
    // Without a choice there is no section of choices.
    let sections = if width > 0 { &sections[..] } else { &sections[..1] };
    let wire = wire::planned_sections(PartitionedParams::NAMES.len(), sections);
    // The chance that a position is in another line than all of the `others` positions before it.
    let lines = params.segment_bits().div_ceil(Line::BITS) as f64;
    let fresh = |others: u32| libm::pow(1.0 - 1.0 / lines, others.into());
    let choices = choice_lines(params);
    let hit: f64 = (0..k).map(fresh).sum();
    let miss: f64 = (0..k).map(|i| libm::pow(fill, i.into()) * fresh(i)).sum();
    let empty = if width == 0 { 0.0 } else { empty_share(params, keys) };
    let throws = keys.saturating_mul(k.into());
    Prediction {
        rate,
        rate_spread: power_spread(params.bits(), throws, k),
        bits_per_key: per_key(held_bits(params), keys),
        wire_bits_per_key: per_key(wire * 8, keys),
        blocks_per_insert: 0.0,
        blocks_per_hit: choices + hit,
        blocks_per_miss: choices + (1.0 - empty) * miss,
        overflow: None,
    }
}

/// How many lines have the choices of a group, as the mean over groups.
fn choice_lines(params: &PartitionedParams) -> f64 {
    let bits = u64::from(params.hashes()) * u64::from(params.width());
    if bits == 0 {
        return 0.0;
    }
    // After at most 512 groups the choices start at the same place of a line again.
    let groups = params.groups().min(Line::BITS);
    let lines = |group: u64| {
        let (first, last) = (group * bits / Line::BITS, ((group + 1) * bits - 1) / Line::BITS);
        last - first + 1
    };
    (0..groups).map(lines).sum::<u64>() as f64 / groups as f64
}
