//! From goals to params, and from params to predictions.
//!
//! A shape (bits of a key, choices, threshold and coin) fixes what happens at a block. The sizes
//! of the subtables follow, because all subtables are to refuse the same share.
//!
//! Where nothing but a rate is asked for, a rule knows the shape (`rule.rs`), and only its size is
//! computed. All other goals are searched for.
//!
//! The search has three dimensions. All numbers of choices are tried. For each, the search
//! climbs from a guess to the best number of bits for a key. For each of these, it finds the
//! threshold by golden sections. With few blocks there is nothing to balance, and blocks never
//! refuse.

mod rule;
mod search;

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use core::cell::RefCell;

use self::search::least;
use super::chain::{Profile, Throws};
use super::list::slots_for;
use super::params::{BalancedParams, MAX_BLOCKS, MAX_THRESHOLD, ONE, Policy};
use super::profile::{Forecast, forecast, most_arrivals};
use super::two_choice::Filling;
use super::{Rule, Scheme, model};
use crate::bits::Line;
use crate::math::solve::first_true;
use crate::spec::{Goal, Params, PlanError, Prediction, digest_floor, per_key, require};
use crate::wire::{self, Encoding};

/// With fewer blocks there is nothing to balance, and the models, which assume many blocks, are
/// not accurate.
const FEW_BLOCKS: u64 = 64;
/// A subtable with fewer blocks differs too much from filter to filter.
const SMALL_SUBTABLE: u64 = 100;
/// Standard deviations beyond the mean that a list has room for.
const SPARE: f64 = 4.0;
/// Bits of a block, unless `block` is fixed: one cache line.
const DEFAULT_BLOCK: u64 = 512;
/// The most choices that are tried, unless `choices` is fixed. More than three win nothing.
const TRIED_CHOICES: u32 = 3;

/// What happens at a block.
#[derive(Clone, Copy, Debug)]
struct Shape {
    hashes: u32,
    choices: u32,
    /// The threshold; its fraction is the coin.
    limit: f64,
}

/// How a profile is computed: fast, to compare many shapes, or exactly, for what is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Sketched,
    Computed,
}

/// A filter that meets the goal, and its cost: ln(rate) for a given size, bits for a given rate.
#[derive(Clone, Copy, Debug)]
struct Bid {
    shape: Shape,
    blocks: u64,
    cost: f64,
}

/// What the goal asks for.
struct Planner {
    keys: u64,
    block: u64,
    blocks: Option<u64>,
    hashes: Option<u32>,
    choices: Option<u32>,
    ratio: Option<u64>,
    limit: Option<f64>,
    list: Option<u64>,
    policy: u64,
    /// Blocks per insertion, and the most blocks per miss.
    accesses: Option<f64>,
    reads: f64,
    asked: Option<f64>,
    budget: Option<u64>,
    /// What has been computed, by the bits of a block and of a key.
    throws: RefCell<BTreeMap<(u32, u32), Rc<Throws>>>,
}

/// With more keys for each block nothing is computed, which would take memory for each of them:
/// the filter would answer yes to all.
const MOST_LOAD: f64 = 1e4;

/// The params for a goal.
pub(super) fn plan<S: Scheme>(goal: &Goal) -> Result<BalancedParams<S>, PlanError> {
    let planner = Planner::new::<S>(goal)?;
    if planner.keys as f64 > MOST_LOAD * planner.estimate() {
        return Err(planner.refusal(S::KIND.name()));
    }
    if let Some(params) = planner.by_rule::<S>() {
        return Ok(params);
    }
    let kind = S::KIND.name();
    // The search uses sketches, which are some per cent off. So what it found is computed exactly,
    // and compared with blocks that never refuse.
    let near = planner.best::<S>().into_iter().flatten();
    let best = least(near.map(|bid| planner.computed::<S>(bid)));
    best.and_then(|best| planner.finish::<S>(&best)).ok_or_else(|| planner.refusal(kind))
}

impl Planner {
    fn new<S: Scheme>(goal: &Goal) -> Result<Self, PlanError> {
        goal.check()?;
        let names = [BalancedParams::<S>::NAMES, &["accesses", "reads"]].concat();
        let fixed: [_; 11] = goal.fixed_params(S::KIND.name(), names)?;
        let [blocks, block, hashes, choices, ratio, threshold, coin, list, policy, rest @ ..] =
            fixed;
        let [accesses, reads] = rest;
        let block = block.unwrap_or(DEFAULT_BLOCK);
        // Fixed params are checked before anything is computed from them.
        let tables = choices.unwrap_or(if ratio.is_some() { 2 } else { 1 });
        BalancedParams::<S>::from_values(&[
            blocks.unwrap_or(tables.clamp(1, 4)),
            block,
            hashes.unwrap_or(1),
            tables,
            ratio.unwrap_or(0),
            threshold.unwrap_or(0),
            coin.unwrap_or(0),
            list.unwrap_or(0),
            policy.unwrap_or(0),
        ])?;
        let fits = coin.is_none() || threshold.is_some();
        require(fits, "coin", coin.unwrap_or(0), "left out without a threshold")?;
        let blocks = match blocks {
            Some(_) => goal.within_budget("blocks", blocks, block)?,
            None => None,
        };
        let share = |coin: u64| coin as f64 / ONE as f64;
        Ok(Self {
            keys: goal.sized_keys(),
            block,
            blocks,
            hashes: hashes.map(|hashes| hashes as u32),
            choices: choices.map(|choices| choices as u32),
            ratio,
            limit: threshold.map(|threshold| threshold as f64 + share(coin.unwrap_or(0))),
            list,
            policy: policy.unwrap_or(Policy::Grow as u64),
            accesses: accesses.map(|hundredths| hundredths as f64 / 100.0),
            reads: reads.map_or(f64::INFINITY, |hundredths| hundredths as f64 / 100.0),
            asked: goal.asked_rate(),
            budget: goal.budget(),
            throws: RefCell::default(),
        })
    }

    fn refusal(&self, kind: &'static str) -> PlanError {
        let keys = self.keys;
        if let Some(asked) = self.asked {
            return PlanError::Unreachable { kind, asked, keys, nearest: digest_floor(keys) };
        }
        let asked = per_key(self.budget.unwrap_or(0), keys);
        let least = self.block as f64 / f64::from(MAX_THRESHOLD);
        PlanError::TooFewBits { kind, asked, least }
    }

    /// About how many blocks there will be.
    fn estimate(&self) -> f64 {
        let bits = match (self.blocks, self.budget, self.asked) {
            (Some(blocks), _, _) => return blocks as f64,
            (_, Some(budget), _) => budget as f64,
            (_, _, asked) => 1.6 * self.keys as f64 * -libm::log2(asked.unwrap_or(0.5)).min(-0.5),
        };
        (bits / self.block as f64).max(1.0)
    }

    /// Params with these numbers, if they are in range.
    fn params<S: Scheme>(
        &self,
        shape: Shape,
        blocks: u64,
        ratio: u64,
        list: u64,
    ) -> Option<BalancedParams<S>> {
        let (threshold, coin) = match S::RULE {
            Rule::Counter => {
                let whole = libm::floor(shape.limit);
                (whole as u64, libm::round((shape.limit - whole) * ONE as f64) as u64)
            }
            Rule::Ones => (libm::round(shape.limit) as u64, 0),
            Rule::Least => (0, 0),
        };
        let Shape { hashes, choices, .. } = shape;
        let several = if choices > 1 && !S::SHARED { self.ratio.unwrap_or(ratio) } else { 0 };
        let list = if S::RULE == Rule::Least { 0 } else { self.list.unwrap_or(list) };
        BalancedParams::from_values(&[
            blocks,
            self.block,
            hashes.into(),
            choices.into(),
            several,
            threshold,
            coin,
            list,
            self.policy,
        ])
        .ok()
    }

    /// What happens at the blocks of a shape, if there are about `blocks` of them.
    fn profile<S: Scheme>(&self, shape: Shape, blocks: f64, how: How) -> Option<Profile> {
        let params = self.params::<S>(shape, shape.choices.into(), 0, 0)?;
        let layout = params.layout();
        let per_block = self.keys as f64 / blocks;
        let most = most_arrivals(1.5 * per_block);
        // Where a limit is fixed there is little to search for, and the result must be exact.
        if S::RULE == Rule::Counter
            && how == How::Sketched
            && self.limit.or(self.accesses).is_none()
        {
            return Some(Profile::sketch(layout, most));
        }
        let (bits, hashes) = (layout.key_bits(), layout.hashes);
        let mut known = self.throws.borrow_mut();
        let throws =
            known.entry((bits, hashes)).or_insert_with(|| Throws::new(bits, hashes).into());
        Some(Profile::new(layout, throws, most))
    }

    /// A filter of this shape with `blocks` blocks: its params, with subtables and list, and what
    /// it will do.
    fn sized<S: Scheme>(
        &self,
        shape: Shape,
        profile: &Profile,
        blocks: u64,
    ) -> Option<(BalancedParams<S>, Forecast)> {
        let per_block = self.keys as f64 / blocks as f64;
        let mut ratio = 0.0;
        if shape.choices > 1 && !S::SHARED {
            ratio = self.equal_share(profile, per_block, shape.choices);
        }
        let ratio = libm::round(ratio * ONE as f64) as u64;
        let first = self.params::<S>(shape, blocks, ratio, 0)?;
        let forecast = forecast(first.layout(), profile, self.keys);
        // Less than one key in a million filters counts as none.
        let list = if forecast.list < 1e-6 {
            0
        } else {
            let variance = forecast.list_deviation * forecast.list_deviation + forecast.list;
            // A few more, because keys that find no place often come together.
            libm::ceil(forecast.list + SPARE * libm::sqrt(variance) + SPARE) as u64
        };
        Some((self.params(shape, blocks, ratio, list)?, forecast))
    }

    /// The share that every subtable refuses, if all refuse the same. The larger the share, the
    /// smaller the first subtable, and the more it refuses. So the share is a fixed point, found
    /// by secants.
    fn equal_share(&self, profile: &Profile, per_block: f64, choices: u32) -> f64 {
        let refused = |share: f64| {
            let x = per_block * model::powers(share, choices);
            profile.refused_share(self.keys, x).min(0.99)
        };
        let (mut share, mut next) = (0.0, refused(0.0));
        for _ in 0..20 {
            let after = refused(next);
            let slope = if next > share { (after - next) / (next - share) } else { 0.0 };
            share = next;
            next = (next + (after - next) / (1.0 - slope.clamp(0.0, 0.9))).clamp(0.0, 0.99);
            if libm::fabs(next - share) < 1e-8 {
                break;
            }
        }
        next
    }

    /// A bid for the same shape, computed by the chain.
    fn computed<S: Scheme>(&self, bid: Bid) -> Option<Bid> {
        if S::RULE == Rule::Counter { self.look::<S>(bid.shape, How::Computed) } else { Some(bid) }
    }

    /// The cost of a shape among many, with the number of blocks that it takes.
    fn bid<S: Scheme>(&self, shape: Shape) -> Option<Bid> {
        self.look::<S>(shape, How::Sketched)
    }

    fn look<S: Scheme>(&self, shape: Shape, how: How) -> Option<Bid> {
        let profile = self.profile::<S>(shape, self.estimate(), how)?;
        let sized = |blocks: u64| self.sized::<S>(shape, &profile, blocks.clamp(1, MAX_BLOCKS));
        let held = |params: &BalancedParams<S>| held_bits(params, params.layout().list);
        let blocks = match (self.blocks, self.budget, self.asked) {
            (Some(blocks), _, _) => blocks,
            (_, Some(budget), _) => {
                let mut blocks = (budget / self.block).clamp(1, MAX_BLOCKS);
                loop {
                    let (params, _) = sized(blocks)?;
                    // Memory is held in lines: a last line may be begun.
                    let over = held(&params).saturating_sub(budget.next_multiple_of(Line::BITS));
                    if over == 0 {
                        break blocks;
                    }
                    blocks =
                        blocks.checked_sub(over.div_ceil(self.block)).filter(|&left| left > 0)?;
                }
            }
            (_, _, asked) => self.blocks_for(asked?, sized)?,
        };
        let (params, forecast) = sized(blocks)?;
        let cost = match (self.asked, self.blocks) {
            (Some(_), None) => held(&params) as f64,
            _ => libm::log(forecast.rate.max(1e-300)),
        };
        // A filter that reads more than allowed, or whose subtables are too small, costs more in
        // proportion.
        let mut beyond = (forecast.miss - self.reads).max(0.0);
        let share = params.layout().ratio as f64 / ONE as f64;
        let last = model::mht_sizes(share, shape.choices).pop().unwrap_or(1.0);
        let shortage = libm::log(SMALL_SUBTABLE as f64 / (last * blocks as f64)).min(100.0);
        if self.choices.is_none() && !S::SHARED {
            beyond += shortage.max(0.0);
        }
        if shape.choices == 1 {
            beyond = 0.0;
        }
        if self.policy != Policy::Grow as u64 {
            // The model does not include keys that find no room in the list.
            beyond += (forecast.list - params.layout().list as f64).max(0.0) / self.keys as f64;
        }
        Some(Bid { shape, blocks, cost: cost + libm::fabs(cost) * 10.0 * beyond })
    }

    /// About how many blocks reach the rate `asked`, by secants of ln(rate).
    fn blocks_for<S: Scheme>(
        &self,
        asked: f64,
        sized: impl Fn(u64) -> Option<(BalancedParams<S>, Forecast)>,
    ) -> Option<u64> {
        let excess = |blocks: f64| {
            let (_, forecast) = sized(blocks as u64)?;
            Some(libm::log(forecast.rate.max(1e-300)) - libm::log(asked))
        };
        let (mut low, mut high) = (self.estimate() * 0.7, self.estimate() * 1.2);
        let (mut at_low, mut at_high) = (excess(low)?, excess(high)?);
        for _ in 0..12 {
            if libm::fabs(at_high) < 1e-3 || libm::fabs(high - low) < 1.0 {
                break;
            }
            let slope = (at_high - at_low) / (high - low);
            let step = if slope < 0.0 { -at_high / slope } else { high * 0.25 };
            let next = (high + step).clamp(high * 0.5, high * 2.0).clamp(1.0, MAX_BLOCKS as f64);
            (low, at_low) = (high, at_high);
            (high, at_high) = (next, excess(next)?);
        }
        (libm::fabs(at_high) < 0.2 || high <= 1.0 || high - low < 1.0).then_some(high as u64)
    }

    /// The params of the best bid. Where a rate is asked for, they have the fewest blocks that
    /// reach it.
    fn finish<S: Scheme>(&self, bid: &Bid) -> Option<BalancedParams<S>> {
        let two = S::RULE == Rule::Least && bid.shape.choices > 1;
        let profile = self.profile::<S>(bid.shape, bid.blocks.max(1) as f64, How::Computed)?;
        let sized = |blocks: u64| self.sized::<S>(bid.shape, &profile, blocks);
        let params = |blocks: u64| {
            if two {
                return self.params::<S>(bid.shape, blocks, 0, 0);
            }
            sized(blocks).map(|(params, _)| params)
        };
        let Some(asked) = self.asked else { return params(bid.blocks) };
        let predicted = |blocks: u64| Some(predict(&params(blocks)?, self.keys).rate);
        let kept = |blocks: u64| {
            let rate = if two {
                predicted(blocks)
            } else {
                sized(blocks).map(|(_, forecast)| forecast.rate + digest_floor(self.keys))
            };
            rate.is_some_and(|rate| rate <= asked)
        };
        if let Some(blocks) = self.blocks {
            return params(blocks).filter(|_| predicted(blocks).is_some_and(|rate| rate <= asked));
        }
        let least = u64::from(bid.shape.choices);
        let mut step = bid.blocks / 1000 + 1;
        let mut high = bid.blocks.max(least);
        while !kept(high) {
            high = high.checked_add(step).filter(|&high| high <= MAX_BLOCKS)?;
            step *= 2;
        }
        if S::RULE == Rule::Least && high > 10_000 {
            // This is within a thousandth of the best, and to look further would take long.
            return params(high);
        }
        let mut low = high;
        while low > least && kept(low) {
            low = low.saturating_sub(step).max(least);
            step *= 2;
        }
        // The prediction that users see is computed from the params alone, so it must reach the
        // rate too.
        let mut blocks = first_true(low, high, kept)?;
        while predicted(blocks)? > asked {
            blocks = blocks.checked_add(blocks / 10_000 + 1).filter(|&more| more <= MAX_BLOCKS)?;
        }
        params(blocks)
    }
}

/// Bits of memory with `entries` entries in the list.
pub(super) fn held_bits<S: Scheme>(params: &BalancedParams<S>, entries: u64) -> u64 {
    let slots = slots_for(params.layout().list, entries);
    params.bits().next_multiple_of(Line::BITS).saturating_add(slots.saturating_mul(64))
}

/// What a filter with these params and `keys` keys will do.
pub(super) fn predict<S: Scheme>(params: &BalancedParams<S>, keys: u64) -> Prediction {
    let layout = params.layout();
    let per_block = keys as f64 / layout.blocks as f64;
    let forecast = if layout.rule == Rule::Least && layout.choices > 1 {
        let mut filling = Filling::new(layout);
        filling.advance(per_block);
        filling.forecast(layout.blocks)
    } else {
        let first = keys as f64 / layout.subtable(0).1 as f64;
        let throws = Throws::new(layout.key_bits(), layout.hashes);
        let profile = Profile::new(layout, &throws, most_arrivals(1.2 * first.max(per_block)));
        forecast(layout, &profile, keys)
    };
    let mut entries = libm::round(forecast.list) as u64;
    if layout.policy != Policy::Grow {
        entries = entries.min(layout.list);
    }
    let slots = slots_for(layout.list, entries);
    let array = (Encoding::Raw, params.bits() / 8);
    let list = (Encoding::Trimmed, entries.saturating_mul(8));
    let sections = if slots > 0 { &[array, list][..] } else { &[array] };
    let wire = wire::planned_sections(BalancedParams::<S>::NAMES.len(), sections);
    Prediction {
        rate: (forecast.rate + digest_floor(keys)).min(1.0),
        rate_spread: forecast.spread,
        bits_per_key: per_key(held_bits(params, entries), keys),
        wire_bits_per_key: per_key(wire.saturating_mul(8), keys),
        blocks_per_insert: forecast.insert,
        blocks_per_hit: forecast.hit,
        blocks_per_miss: forecast.miss,
        overflow: (layout.rule != Rule::Least).then_some(forecast.list),
    }
}
