//! The models of the baselines: rates, sizes, memory accesses.
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys |
//! | m | bits or counters of the array |
//! | k | positions of a key |
//! | X | positions in use after n keys: occupied bins after nk independent throws into m bins |
//! | B | bits of a block |
//! | b | blocks |
//!
//! **Plain and counting.** An absent key is answered yes when all its k throws hit positions in
//! use. So the rate is E[(X/m)^k]. This is exact for independent throws, which
//! [`probes`](crate::address::probes) imitates. The textbook form (1 - e^(-kn/m))^k ignores that X
//! varies, and is too low for small m. Tested by `tests/library/rates.rs`.
//!
//! **Blocked.** The load of a block is binomial(n, 1/b). Each of the j keys in a block has one
//! bit in each section. So given j the sections are independent, and a bit of a section of s bits
//! is set with the chance 1 - (1 - 1/s)^j. A block with j keys answers yes to an absent key with
//! the chance phi(j), the product of these over the k sections; the rate is the mean of phi over
//! the loads. All bits of a key come from the low half of its digest, so that any of the j keys
//! has the bits of an absent key with the chance 2^-32: together n / (2^32 b), which the rate
//! includes.
//!
//! Every rate includes the digest floor n / 2^64.

use alloc::vec::Vec;

use super::params::{
    BlockedParams, BloomParams, CountingParams, MAX_HASHES, MAX_POSITIONS, most_sections,
};
use crate::bits::Line;
use crate::math::occupancy::{expanded_power, expected_power, expected_powers, power_spread};
use crate::math::solve::first_true_near;
use crate::math::tail::binomial_pmf;
use crate::spec::{
    Goal, Lines, Params, PlanError, Prediction, Size, digest_floor, explain, per_key,
};
use crate::traffic::model::Shape;
use crate::wire::{self, Encoding};

/// The expected rate of a plain or counting filter.
pub fn rate(positions: u64, hashes: u32, keys: u64) -> f64 {
    let throws = keys.saturating_mul(hashes.into());
    rate_of(expected_power(positions, throws, hashes), keys)
}

/// The rate where all positions of an absent key are taken with the probability `power`.
fn rate_of(power: f64, keys: u64) -> f64 {
    (power + digest_floor(keys)).min(1.0)
}

/// The plain filter for a goal.
pub fn plan_bloom(goal: &Goal) -> Result<BloomParams, PlanError> {
    let [bits, hashes] = goal.fixed_params("bloom", BloomParams::NAMES)?;
    let (bits, hashes) = plan_positions("bloom", goal, 1, ("bits", bits), hashes)?;
    Ok(BloomParams::new(bits, hashes)?)
}

/// The counting filter for a goal.
pub fn plan_counting(goal: &Goal) -> Result<CountingParams, PlanError> {
    let [counters, hashes, width] = goal.fixed_params("counting", CountingParams::NAMES)?;
    let width = width.unwrap_or(CountingParams::DEFAULT_WIDTH.into());
    CountingParams::from_values(&[1, 1, width])?;
    let (counters, hashes) =
        plan_positions("counting", goal, width, ("counters", counters), hashes)?;
    Ok(CountingParams::from_values(&[counters, hashes.into(), width])?)
}

/// The number of positions of `width` bits, and of hash functions, for a goal. Fixed numbers are
/// kept.
fn plan_positions(
    kind: &'static str,
    goal: &Goal,
    width: u64,
    (positions_name, positions): (&'static str, Option<u64>),
    hashes: Option<u64>,
) -> Result<(u64, u32), PlanError> {
    goal.check()?;
    let keys = goal.sized_keys();
    if let Some(hashes) = hashes {
        BloomParams::from_values(&[1, hashes])?;
    }
    let hashes = hashes.map(|hashes| hashes as u32);
    let positions = goal.within_budget(positions_name, positions, width)?;
    let Some(positions) = positions else {
        let Size::Rate(asked) = goal.size else { unreachable!("the other sizes give positions") };
        return fewest_positions(keys, asked, hashes).ok_or_else(|| {
            let hashes = hashes.unwrap_or_else(|| best_hashes(MAX_POSITIONS, keys));
            let nearest = rate(MAX_POSITIONS, hashes, keys);
            PlanError::Unreachable { kind, asked, keys, nearest }
        });
    };
    let positions = positions.clamp(1, MAX_POSITIONS);
    let hashes = hashes.unwrap_or_else(|| best_hashes(positions, keys));
    match goal.size {
        Size::Rate(asked) if rate(positions, hashes, keys) > asked => {
            let nearest = rate(positions, hashes, keys);
            Err(PlanError::Unreachable { kind, asked, keys, nearest })
        }
        _ => Ok((positions, hashes)),
    }
}

/// The least m that reaches the rate `asked`, with its k.
fn fewest_positions(keys: u64, asked: f64, hashes: Option<u32>) -> Option<(u64, u32)> {
    // In the limit the best k is log2(1/rate), so only the integers around it can win.
    let ideal = -libm::log2(asked);
    let low = (libm::floor(ideal) as u32).saturating_sub(1).clamp(1, MAX_HASHES);
    let high = (libm::ceil(ideal) as u32 + 1).clamp(1, MAX_HASHES);
    let candidates = hashes.map_or(low..=high, |hashes| hashes..=hashes);
    // The exact rate takes long to compute where m is small, so m is first looked for with an
    // expansion that is good to a position or so.
    let guess = |hashes: u32| {
        let k = f64::from(hashes);
        let throws = keys.saturating_mul(hashes.into());
        let textbook = -k * keys as f64 / libm::log1p(-libm::pow(asked, 1.0 / k));
        let met = |m| rate_of(expanded_power(m, throws, hashes), keys) <= asked;
        let guess = textbook.min(MAX_POSITIONS as f64) as u64;
        (first_true_near(guess, guess / 64, MAX_POSITIONS, met).unwrap_or(MAX_POSITIONS), hashes)
    };
    let mut guesses: Vec<(u64, u32)> = candidates.map(guess).collect();
    guesses.sort_unstable();
    let mut best: Option<(u64, u32)> = None;
    for (guess, hashes) in guesses {
        if best.is_some_and(|(fewest, _)| guess > fewest + fewest / 1000 + 64) {
            break;
        }
        let met = |positions| rate(positions, hashes, keys) <= asked;
        if let Some(fewest) = first_true_near(guess, 1, MAX_POSITIONS, met) {
            let bid = (fewest, hashes);
            best = Some(best.map_or(bid, |best| best.min(bid)));
        }
    }
    best
}

/// The k with the least rate for `positions` positions.
fn best_hashes(positions: u64, keys: u64) -> u32 {
    let ideal = core::f64::consts::LN_2 * positions as f64 / keys as f64;
    let around = libm::round(ideal).clamp(1.0, MAX_HASHES.into()) as u32;
    let candidates = around.saturating_sub(2).max(1)..=(around + 2).min(MAX_HASHES);
    let by_rate =
        |a: &u32, b: &u32| rate(positions, *a, keys).total_cmp(&rate(positions, *b, keys));
    candidates.min_by(by_rate).unwrap_or(around)
}

/// What a plain filter will do.
pub fn predict_bloom(params: &BloomParams, keys: u64) -> Prediction {
    predict_positions(params.bits(), params.hashes(), params.bits(), BloomParams::NAMES.len(), keys)
}

/// What a counting filter will do.
pub fn predict_counting(params: &CountingParams, keys: u64) -> Prediction {
    let names = CountingParams::NAMES.len();
    predict_positions(params.counters(), params.hashes(), params.bits(), names, keys)
}

fn predict_positions(m: u64, k: u32, array_bits: u64, params: usize, keys: u64) -> Prediction {
    let lines = array_bits.div_ceil(Line::BITS);
    // The chance that a position is in another line than all of the `others` positions before it.
    let fresh = |others: u32| libm::pow(1.0 - 1.0 / lines as f64, others.into());
    let all: f64 = (0..k).map(fresh).sum();
    // Position i of an absent key is read if the i positions before it are in use.
    let throws = keys.saturating_mul(k.into());
    let powers = expected_powers(m, throws, k);
    let miss: f64 = (0..k).zip(&powers).map(|(i, power)| power * fresh(i)).sum();
    Prediction {
        rate: rate_of(powers[k as usize], keys),
        rate_spread: power_spread(m, throws, k),
        bits_per_key: per_key(lines * Line::BITS, keys),
        wire_bits_per_key: wire_per_key(params, array_bits, keys),
        blocks_per_insert: all,
        blocks_per_hit: all,
        blocks_per_miss: miss,
        overflow: None,
    }
}

fn wire_per_key(params: usize, array_bits: u64, keys: u64) -> f64 {
    per_key(wire::planned_len(params, Encoding::Raw, array_bits.div_ceil(64) * 8) * 8, keys)
}

/// How many sections of a block have the same size.
#[derive(Clone, Copy)]
struct Alike {
    number: u32,
    size: f64,
}

/// The sections of a block. Their sizes differ by at most one bit.
struct SectionModel {
    sections: [Alike; 2],
}

/// Terms of the binomial sum that are smaller than this share of it are left out.
const NEGLIGIBLE: f64 = 1e-14;
/// After this many throws for each bit of a section none is free, by e^-50.
const FULL_LOAD: f64 = 50.0;

impl SectionModel {
    fn new(block: u32, number: u32) -> Self {
        let (size, larger) = (f64::from(block / number), block % number);
        let sections =
            [Alike { number: number - larger, size }, Alike { number: larger, size: size + 1.0 }];
        Self { sections }
    }

    /// The chances (1 - 1/s)^j and (1 - 2/s)^j that one or two given bits of a section are unset
    /// at load j, for either size s.
    fn free(&self, load: f64) -> [[f64; 2]; 2] {
        self.steps().map(|steps| steps.map(|step| libm::pow(step, load)))
    }

    /// What these chances are multiplied by with each key.
    fn steps(&self) -> [[f64; 2]; 2] {
        self.sections.map(|Alike { size, .. }| [1.0 - 1.0 / size, 1.0 - 2.0 / size])
    }

    /// phi(j) and, for its spread, the mean square of the rate of a block, from what is free at
    /// load j.
    fn moments(&self, free: &[[f64; 2]; 2]) -> (f64, f64) {
        let (mut first, mut second) = (1.0, 1.0);
        for (&Alike { number, size }, [one, two]) in self.sections.iter().zip(free) {
            let (set, both) = (1.0 - one, 1.0 - 2.0 * one + two);
            first *= power(set, number);
            second *= power(set / size + (1.0 - 1.0 / size) * both, number);
        }
        (first, second)
    }

    /// The mean rate of a block over the loads of `blocks` blocks with `keys` keys, and the part
    /// of its variance that is not linear in the load. The loads of all blocks add up to `keys`,
    /// so the linear part vanishes in the whole filter.
    fn over_loads(&self, blocks: u64, keys: u64) -> (f64, f64) {
        let (n, share) = (keys as f64, 1.0 / blocks as f64);
        let mean = n * share;
        let size = self.sections[0].size;
        if mean - 12.0 * libm::sqrt(mean) > FULL_LOAD * (size + 1.0) {
            return (1.0, 0.0);
        }
        if blocks == 1 {
            let (first, second) = self.moments(&self.free(n));
            return (first, second - first * first);
        }
        // From the likeliest load upwards, and then downwards, each term from the one before.
        let mode = libm::floor((n + 1.0) * share);
        let odds = share / (1.0 - share);
        let start = binomial_pmf(keys, share, mode as u64);
        let steps = self.steps();
        let (mut first, mut second, mut by_load) = (0.0, 0.0, 0.0);
        for up in [true, false] {
            let (mut load, mut chance, mut free) = (mode, start, self.free(mode));
            loop {
                if up || load < mode {
                    let (rate, square) = self.moments(&free);
                    first += chance * rate;
                    second += chance * square;
                    by_load += chance * rate * (load - mean);
                }
                chance *= if up {
                    (n - load) / (load + 1.0) * odds
                } else {
                    load / ((n - load + 1.0) * odds)
                };
                if chance <= NEGLIGIBLE * first {
                    break;
                }
                load += if up { 1.0 } else { -1.0 };
                for (free, step) in free.as_flattened_mut().iter_mut().zip(steps.as_flattened()) {
                    *free = if up { *free * step } else { *free / step };
                }
            }
        }
        let explained = if keys > 0 { by_load * by_load / (mean * (1.0 - share)) } else { 0.0 };
        (first, second - first * first - explained)
    }

    fn rate(&self, blocks: u64, keys: u64) -> f64 {
        (self.over_loads(blocks, keys).0 + blocked_floor(blocks, keys)).min(1.0)
    }

    /// The fewest blocks, at most `most`, that reach the rate `asked`, looked for around `guess`.
    fn fewest_blocks(&self, keys: u64, asked: f64, guess: u64, most: u64) -> Option<u64> {
        first_true_near(guess, guess / 16, most, |blocks| self.rate(blocks, keys) <= asked)
    }
}

/// x^n.
fn power(mut x: f64, mut n: u32) -> f64 {
    let mut product = 1.0;
    while n > 0 {
        if n & 1 == 1 {
            product *= x;
        }
        x *= x;
        n >>= 1;
    }
    product
}

/// The least rate of a blocked filter: its keys share digests, or the block and the low half of
/// their digests.
pub(super) fn blocked_floor(blocks: u64, keys: u64) -> f64 {
    let patterns = 4_294_967_296.0;
    keys as f64 / (blocks as f64 * patterns) + digest_floor(keys)
}

/// The expected rate of a blocked filter.
pub fn blocked_rate(params: &BlockedParams, keys: u64) -> f64 {
    SectionModel::new(params.block(), params.hashes()).rate(params.blocks(), keys)
}

/// What a blocked filter will do.
pub fn predict_blocked(params: &BlockedParams, keys: u64) -> Prediction {
    let blocks = params.blocks();
    let sections = SectionModel::new(params.block(), params.hashes());
    let (mean, variance) = sections.over_loads(blocks, keys);
    let spread = libm::sqrt(variance.max(0.0) / blocks as f64) / mean;
    Prediction {
        rate: (mean + blocked_floor(blocks, keys)).min(1.0),
        rate_spread: if mean > 0.0 { spread } else { 0.0 },
        bits_per_key: per_key(params.bits().next_multiple_of(Line::BITS), keys),
        wire_bits_per_key: wire_per_key(BlockedParams::NAMES.len(), params.bits(), keys),
        blocks_per_insert: 1.0,
        blocks_per_hit: 1.0,
        blocks_per_miss: 1.0,
        overflow: None,
    }
}

/// The blocked filter for a goal.
pub fn plan_blocked(goal: &Goal) -> Result<BlockedParams, PlanError> {
    const KIND: &str = "blocked";
    goal.check()?;
    let [blocks, block, hashes] = goal.fixed_params(KIND, BlockedParams::NAMES)?;
    let block = block.unwrap_or(BlockedParams::DEFAULT_BLOCK.into());
    // Fixed params are checked before anything is computed from them.
    BlockedParams::from_values(&[blocks.unwrap_or(1), block, hashes.unwrap_or(1)])?;
    let keys = goal.sized_keys();
    let most_blocks = MAX_POSITIONS / 512;
    let blocks = goal.within_budget("blocks", blocks, block)?;
    let blocks = blocks.map(|blocks| blocks.clamp(1, most_blocks));
    let asked = goal.asked_rate();
    let most = most_sections(block as u32);
    let candidates = match hashes {
        Some(hashes) => hashes as u32..=hashes as u32,
        None => 1..=most,
    };
    // Bits for each key, as of a plain filter; and with uneven blocks fewer bits of a key are
    // better.
    let ideal = asked.map_or(1.0, |asked| -libm::log2(asked));
    let bits_per_key = 1.6 * ideal;
    let likely = (libm::round(0.9 * ideal) as u32).clamp(*candidates.start(), *candidates.end());
    let guess = (keys as f64 * bits_per_key / block as f64) as u64;
    let guess = guess.clamp(1, most_blocks);
    let mut best: Option<(u64, f64, u32)> = None;
    for hashes in [likely].into_iter().chain(candidates.filter(|&hashes| hashes != likely)) {
        let sections = SectionModel::new(block as u32, hashes);
        let found = match (blocks, asked, best) {
            (Some(blocks), ..) => Some(blocks),
            // Most candidates are dismissed by one look: they would need more blocks.
            (None, Some(asked), Some((fewest, ..))) => {
                sections.fewest_blocks(keys, asked, fewest, fewest)
            }
            (None, Some(asked), None) => sections.fewest_blocks(keys, asked, guess, most_blocks),
            (None, None, _) => None,
        };
        let Some(blocks) = found else { continue };
        let bid = (blocks, sections.rate(blocks, keys), hashes);
        if best.is_none_or(|best| (bid.0, bid.1) < (best.0, best.1)) {
            best = Some(bid);
        }
    }
    let unreachable = |nearest| {
        let asked = asked.unwrap_or(0.0);
        PlanError::Unreachable { kind: KIND, asked, keys, nearest }
    };
    let nearest = || SectionModel::new(block as u32, likely).rate(most_blocks, keys);
    let (blocks, rate, hashes) = best.ok_or_else(|| unreachable(nearest()))?;
    if asked.is_some_and(|asked| rate > asked) {
        return Err(unreachable(rate));
    }
    Ok(BlockedParams::from_values(&[blocks, block, hashes.into()])?)
}

/// Explains the rate of a plain or counting filter (paper 004, section II-A).
pub(crate) fn explain_positions(out: &mut Lines, m: u64, k: u32, n: u64) {
    let shape = Shape { positions: m, hashes: k, keys: n };
    explain! { out;
        "symbols": "n = {n} keys, m = {m} positions, k = {k} of them a key";
        "load": "x = k n / m = {:.5}", shape.load();
        "zeros": "p = (1 - 1/m)^(k n) = {:.5}", shape.exact_zeros();
        "rate": "f = E[(X/m)^k] + n / 2^64 = {:.4e}; in the limit (1 - p)^k = {:.4e}",
            rate(m, k, n), shape.limit_rate();
    }
}

/// Explains the prediction of a blocked filter.
pub(super) fn explain_blocked(out: &mut Lines, params: &BlockedParams, n: u64) {
    let (b, size, k) = (params.blocks(), params.block(), params.hashes());
    explain! { out;
        "symbols": "n = {n} keys, b = {b} blocks of B = {size} bits, k = {k}";
        "load": "j ~ binomial(n, 1/b), n / b = {:.3}", n as f64 / b as f64;
        "rate": "f = sum over j of P(j) (1 - (1 - 1/s)^j)^k + n / (2^32 b) + n / 2^64 = {:.4e}, \
            s = B / k bits a section", blocked_rate(params, n);
        "memory": "b B = {} bits", params.bits();
    }
}
