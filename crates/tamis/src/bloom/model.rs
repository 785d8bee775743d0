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
//! **Blocked.** The load of a block is binomial(n, 1/b). A block with j keys answers yes to an
//! absent key with the chance phi(j) = E[(X/B)^k], where X is taken after jk throws into B bins.
//! The rate is the mean of phi over the loads.
//!
//! Every rate includes the digest floor n / 2^64.

use alloc::vec::Vec;

use super::params::{BlockedParams, BloomParams, CountingParams, MAX_HASHES, MAX_POSITIONS};
use crate::address::MAX_BLOCK_PROBES;
use crate::bits::Line;
use crate::math::occupancy::{Occupancy, expected_power, power_spread};
use crate::math::solve::first_true;
use crate::math::tail::{binomial_above, binomial_pmf};
use crate::spec::{Goal, Lines, Params, PlanError, Prediction, Size, digest_floor};
use crate::traffic::model::Shape;
use crate::wire::{self, Encoding};

/// The expected rate of a plain or counting filter.
pub fn rate(positions: u64, hashes: u32, keys: u64) -> f64 {
    let throws = keys.saturating_mul(hashes.into());
    (expected_power(positions, throws, hashes) + digest_floor(keys)).min(1.0)
}

/// The plain filter for a goal.
pub fn plan_bloom(goal: &Goal) -> Result<BloomParams, PlanError> {
    let [bits, hashes] = goal.fixed_params("bloom", ["bits", "hashes"])?;
    let (bits, hashes) = plan_positions("bloom", goal, 1, ("bits", bits), hashes)?;
    Ok(BloomParams::new(bits, hashes)?)
}

/// The counting filter for a goal.
pub fn plan_counting(goal: &Goal) -> Result<CountingParams, PlanError> {
    let [counters, hashes, width] =
        goal.fixed_params("counting", ["counters", "hashes", "width"])?;
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
    candidates
        .filter_map(|hashes| {
            let k = f64::from(hashes);
            let textbook = -k * keys as f64 / libm::log1p(-libm::pow(asked, 1.0 / k));
            let low = (textbook * 0.9) as u64;
            let high = (textbook * 2.0 + 64.0 * k).min(MAX_POSITIONS as f64) as u64;
            let met = |positions| rate(positions, hashes, keys) <= asked;
            Some((first_true(low.max(1), high, met)?, hashes))
        })
        .min()
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
    let miss: f64 = (0..k).map(|i| expected_power(m, throws, i) * fresh(i)).sum();
    Prediction {
        rate: rate(m, k, keys),
        rate_spread: power_spread(m, throws, k),
        bits_per_key: per_key(lines * Line::BITS, keys),
        wire_bits_per_key: wire_per_key(params, array_bits, keys),
        blocks_per_insert: all,
        blocks_per_hit: all,
        blocks_per_miss: miss,
        overflow: None,
    }
}

fn per_key(bits: u64, keys: u64) -> f64 {
    bits as f64 / keys.max(1) as f64
}

fn wire_per_key(params: usize, array_bits: u64, keys: u64) -> f64 {
    per_key(wire::planned_len(params, Encoding::Raw, array_bits.div_ceil(64) * 8) * 8, keys)
}

/// phi(j), and the second moment for its spread, for every load j at which a block still answers
/// no to some keys.
struct BlockRates {
    /// E[(X/B)^k] and E[(X/B)^2k] for j = 0, 1, ...
    moments: Vec<(f64, f64)>,
}

impl BlockRates {
    fn new(block: u32, hashes: u32) -> Self {
        let full = f64::from(block);
        let powers: Vec<f64> =
            (0..=block).map(|x| libm::pow(f64::from(x) / full, hashes.into())).collect();
        let mut occupancy = Occupancy::new(block as usize);
        let mut moments = Vec::new();
        // After 6 throws for each bit only 0.25% of the bits are free: with more, a block answers
        // yes to all keys.
        for _ in 0..=6 * block / hashes {
            moments.push((
                occupancy.expect(|x| powers[x]),
                occupancy.expect(|x| powers[x] * powers[x]),
            ));
            occupancy.throw_balls(hashes.into());
        }
        Self { moments }
    }

    /// The mean rate of a block over the loads of `blocks` blocks with `keys` keys, and the part
    /// of its variance that is not linear in the load. The loads of all blocks add up to `keys`,
    /// so the linear part vanishes in the whole filter.
    fn over_loads(&self, blocks: u64, keys: u64) -> (f64, f64) {
        let share = 1.0 / blocks as f64;
        let mean = keys as f64 * share;
        let reach = 12.0 * libm::sqrt(mean) + 40.0;
        let low = libm::floor((mean - reach).max(0.0)) as u64;
        let high = (libm::ceil(mean + reach) as u64).min(keys);
        // A block with a load beyond the table answers yes to all keys.
        let hopeless = self.moments.len() as u64;
        let passing = binomial_above(keys, share, hopeless - 1);
        let (mut first, mut second, mut by_load) = (passing, passing, 0.0);
        for load in low..=high.min(hopeless - 1) {
            let chance = binomial_pmf(keys, share, load);
            let (rate, square) = self.moments[load as usize];
            first += chance * rate;
            second += chance * square;
            by_load += chance * rate * (load as f64 - mean);
        }
        let explained = if blocks > 1 { by_load * by_load / (mean * (1.0 - share)) } else { 0.0 };
        (first, second - first * first - explained)
    }

    fn rate(&self, blocks: u64, keys: u64) -> f64 {
        (self.over_loads(blocks, keys).0 + digest_floor(keys)).min(1.0)
    }
}

/// The expected rate of a blocked filter.
pub fn blocked_rate(params: &BlockedParams, keys: u64) -> f64 {
    BlockRates::new(params.block(), params.hashes()).rate(params.blocks(), keys)
}

/// What a blocked filter will do.
pub fn predict_blocked(params: &BlockedParams, keys: u64) -> Prediction {
    let rates = BlockRates::new(params.block(), params.hashes());
    let (mean, variance) = rates.over_loads(params.blocks(), keys);
    let spread = libm::sqrt(variance.max(0.0) / params.blocks() as f64) / mean;
    Prediction {
        rate: rates.rate(params.blocks(), keys),
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
    let [blocks, block, hashes] = goal.fixed_params(KIND, ["blocks", "block", "hashes"])?;
    let block = block.unwrap_or(BlockedParams::DEFAULT_BLOCK.into());
    // Fixed params are checked before anything is computed from them.
    BlockedParams::from_values(&[blocks.unwrap_or(1), block, hashes.unwrap_or(1)])?;
    let keys = goal.sized_keys();
    let most_blocks = MAX_POSITIONS / 512;
    let blocks = goal.within_budget("blocks", blocks, block)?;
    let blocks = blocks.map(|blocks| blocks.clamp(1, most_blocks));
    let asked = match goal.size {
        Size::Rate(asked) => Some(asked),
        Size::BitsPerKey(_) | Size::Memory(_) | Size::Wire { .. } => None,
    };
    let candidates = match hashes {
        Some(hashes) => hashes as u32..=hashes as u32,
        None => candidate_hashes(block, blocks, keys, asked),
    };
    let mut best: Option<(u64, f64, u32)> = None;
    for hashes in candidates {
        let rates = BlockRates::new(block as u32, hashes);
        let found = match (blocks, asked) {
            (Some(blocks), _) => Some(blocks),
            (None, Some(asked)) => {
                // After more than six throws for each bit a block answers yes to all keys, so
                // fewer blocks are useless.
                let least = keys.saturating_mul(hashes.into()) / (6 * block);
                first_true(least.clamp(1, most_blocks), most_blocks, |blocks| {
                    rates.rate(blocks, keys) <= asked
                })
            }
            (None, None) => None,
        };
        let Some(blocks) = found else { continue };
        let bid = (blocks, rates.rate(blocks, keys), hashes);
        if best.is_none_or(|best| (bid.0, bid.1) < (best.0, best.1)) {
            best = Some(bid);
        }
    }
    let unreachable = |nearest| {
        let asked = asked.unwrap_or(0.0);
        PlanError::Unreachable { kind: KIND, asked, keys, nearest }
    };
    let nearest = || {
        let rates = BlockRates::new(block as u32, hashes.map_or(8, |hashes| hashes as u32));
        rates.rate(most_blocks, keys)
    };
    let (blocks, rate, hashes) = best.ok_or_else(|| unreachable(nearest()))?;
    if asked.is_some_and(|asked| rate > asked) {
        return Err(unreachable(rate));
    }
    Ok(BlockedParams::from_values(&[blocks, block, hashes.into()])?)
}

/// The k that can win. The best is never above that of a plain filter and rarely below a third of
/// it, because with uneven blocks fewer bits for each key are better.
fn candidate_hashes(
    block: u64,
    blocks: Option<u64>,
    keys: u64,
    asked: Option<f64>,
) -> core::ops::RangeInclusive<u32> {
    let plain = match (blocks, asked) {
        (Some(blocks), _) => core::f64::consts::LN_2 * (blocks as f64 * block as f64) / keys as f64,
        (None, asked) => -libm::log2(asked.unwrap_or(0.5)),
    };
    let high = (libm::ceil(plain) as u32 + 1).clamp(1, MAX_BLOCK_PROBES);
    let low = (libm::floor(plain / 3.0) as u32).clamp(1, high.min(8));
    low..=high
}

/// Explains the rate of a plain or counting filter (paper 004, section II-A).
pub(crate) fn explain_positions(out: &mut Lines, m: u64, k: u32, n: u64) {
    let shape = Shape { positions: m, hashes: k, keys: n };
    out.add("symbols", format_args!("n = {n} keys, m = {m} positions, k = {k} of them a key"));
    out.add("load", format_args!("x = k n / m = {:.5}", shape.load()));
    out.add("zeros", format_args!("p = (1 - 1/m)^(k n) = {:.5}", shape.exact_zeros()));
    out.add(
        "rate",
        format_args!(
            "f = E[(X/m)^k] + n / 2^64 = {:.4e}; in the limit (1 - p)^k = {:.4e}",
            rate(m, k, n),
            shape.limit_rate()
        ),
    );
}

/// Explains the prediction of a blocked filter.
pub(super) fn explain_blocked(out: &mut Lines, params: &BlockedParams, n: u64) {
    let (b, size, k) = (params.blocks(), params.block(), params.hashes());
    out.add("symbols", format_args!("n = {n} keys, b = {b} blocks of B = {size} bits, k = {k}"));
    out.add("load", format_args!("j ~ binomial(n, 1/b), n / b = {:.3}", n as f64 / b as f64));
    out.add(
        "rate",
        format_args!(
            "f = sum over j of P(j) E[(X/B)^k] + n / 2^64 = {:.4e}, X bits set by j k throws",
            blocked_rate(params, n)
        ),
    );
    out.add("memory", format_args!("b B = {} bits", params.bits()));
}
