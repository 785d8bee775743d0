//! The shape for a rate, by a rule: where nothing else is asked for, no search is needed.
//!
//! | symbol | meaning |
//! |---|---|
//! | L | -log2 of the rate |
//! | h | the limit, in keys |
//! | x | keys for each block |
//!
//! As long as there are many blocks, the best shapes depend on L alone:
//!
//! - x L falls from 349 to 320, for all shapes that can win.
//! - Up to L = 8.4 a table that never refuses is the best, or takes 0.2% more bits than the best.
//! - Beyond, h L falls to a constant, 329 to 355: a block refuses what would fill it by more than
//!   about half. At higher rates little is refused, and h is larger.
//! - A second choice wins from L = 9.75 on, and a third from L = 10.75 or 15 on.
//!
//! These numbers are read off the plans of the search (`search.rs`, before there was a rule) for
//! 1e9 keys, each number of choices, and L from 1 to 24 in steps of a half. They only choose the
//! shape: its size is computed exactly. Tested by `rules_are_as_good_as_searches`.

use super::super::chain::{Profile, Throws};
use super::super::params::{BalancedParams, MAX_BLOCKS};
use super::super::profile::most_arrivals;
use super::super::two_choice::Filling;
use super::super::{Rule, Scheme};
use super::{DEFAULT_BLOCK, FEW_BLOCKS, Planner, SMALL_SUBTABLE, Shape, held_bits, model};
use crate::address::MAX_BLOCK_PROBES;
use crate::math::solve::first_true_near;
use crate::math::tail::poisson_above;
use crate::spec::digest_floor;

/// The range of L that the rule is for.
const DIGITS: (f64, f64) = (1.0, 24.5);
/// From this L on, blocks that refuse win.
const REFUSING: f64 = 8.4;
/// With fewer blocks than this, tables that never refuse are tried too.
const LIST_BLOCKS: f64 = 1500.0;
/// Parts of the best limit that are tried with two choices.
const LOWER: &[f64] = &[1.0, 0.96, 0.92];
/// How many more keys than expected for each block are followed, with one choice and with several:
/// then they depend on what is refused.
const SLACK: (f64, f64) = (1.05, 1.2);
/// How much below the rate asked for plans are, so that rounding lifts no prediction above it.
const MARGIN: f64 = 1e-7;
/// From this many blocks on, the fewest are not looked for one by one.
const MANY: f64 = 1e6;

impl Planner {
    /// The params for a rate where nothing else is asked for.
    pub(super) fn by_rule<S: Scheme>(&self) -> Option<BalancedParams<S>> {
        let asked = self.asked.filter(|_| self.is_plain())?;
        let digits = -libm::log2(asked - digest_floor(self.keys));
        if !(DIGITS.0..=DIGITS.1).contains(&digits) {
            return None;
        }
        let blocks = self.keys as f64 / load(digits);
        let few = blocks < FEW_BLOCKS as f64;
        if S::RULE == Rule::Least && !few {
            return self.two_choice_by_rule(digits, asked);
        }
        let open = || self.sized_by_rule::<S>(self.open::<S>(digits), digits, asked);
        if few || digits < REFUSING {
            return open();
        }
        let choices = match digits {
            ..9.75 => 1,
            ..10.75 => 2,
            ..15.0 if !S::SHARED => 2,
            _ => 3,
        };
        // With few blocks a lower limit makes the last subtable large enough, or it is left out.
        let tried = (1..=choices.min(S::MOST_CHOICES)).rev().flat_map(|choices| {
            let lower = if choices == 2 { LOWER } else { &[1.0] };
            lower.iter().map(move |part| self.refusing::<S>(digits, choices, *part))
        });
        let mut large = tried.filter(|shape| {
            let share = libm::pow(self.refused::<S>(*shape, digits), f64::from(shape.choices - 1));
            S::SHARED || share * blocks >= SMALL_SUBTABLE as f64 || shape.choices == 1
        });
        let refusing = large.find_map(|shape| self.sized_by_rule::<S>(shape, digits, asked))?;
        // Of few blocks the list would take a large part.
        let other = if blocks < LIST_BLOCKS { open() } else { None };
        let bits = |params: &BalancedParams<S>| held_bits(params, params.layout().list);
        [Some(refusing), other].into_iter().flatten().min_by_key(bits)
    }

    /// Whether nothing is asked for but a rate.
    fn is_plain(&self) -> bool {
        let fixed = [self.blocks, self.ratio, self.list, self.budget];
        let small = [self.hashes, self.choices];
        let floats = [self.limit, self.accesses];
        self.block == DEFAULT_BLOCK
            && self.policy == 0
            && self.reads == f64::INFINITY
            && fixed.iter().all(Option::is_none)
            && small.iter().all(Option::is_none)
            && floats.iter().all(Option::is_none)
    }

    /// A shape that never refuses. The lower the rate is, the more blocks differ in what they
    /// contribute to it, and fewer bits for a key are better.
    fn open<S: Scheme>(&self, digits: f64) -> Shape {
        let few_bits = 8.0 + 0.68 * (digits - 8.5);
        let hashes = if digits < 8.0 { 0.95 * digits + 0.2 } else { few_bits };
        let most = (most_arrivals(SLACK.0 * load(digits)) as u64).min(self.keys);
        let limit = match S::RULE {
            // As much as a counter holds.
            Rule::Counter => (most + 2).next_power_of_two() - 2,
            Rule::Ones | Rule::Least => self.block,
        };
        Shape { hashes: whole(hashes), choices: 1, limit: limit as f64 }
    }

    /// A shape whose blocks refuse some keys, with this part of the best limit.
    fn refusing<S: Scheme>(&self, digits: f64, choices: u32, part: f64) -> Shape {
        let beyond = |start: f64, length: f64| libm::exp((start - digits) / length);
        let (more, keys) = match choices {
            1 => (-0.9, 355.0 + 145.0 * beyond(10.0, 4.5)),
            2 => (0.0, 350.0 + 92.0 * beyond(10.0, 1.0)),
            _ if S::SHARED => (0.05 * (digits - 18.0), 336.0 + 50.0 * beyond(11.0, 3.5)),
            _ => (0.75, 329.0),
        };
        let (hashes, keys) = (whole(digits + more), part * keys / digits);
        let limit = match S::RULE {
            Rule::Counter => keys,
            // The bits that these keys set, and half of those of one more.
            Rule::Ones | Rule::Least => {
                let (k, all) = (f64::from(hashes), self.block as f64);
                libm::round(0.5 * k - all * libm::expm1(-keys * k / all))
            }
        };
        Shape { hashes, choices, limit }
    }

    /// About the share of its keys that a subtable refuses: E[(a - h)+] of those that come, which
    /// follow a Poisson law.
    fn refused<S: Scheme>(&self, shape: Shape, digits: f64) -> f64 {
        let (k, all) = (f64::from(shape.hashes), self.block as f64);
        let h = match S::RULE {
            Rule::Counter => shape.limit,
            Rule::Ones | Rule::Least => {
                -libm::log1p((0.5 * k - shape.limit) / all).min(0.0) * all / k
            }
        };
        let whole = h as u64;
        let share =
            |x: f64| poisson_above(whole.saturating_sub(1), x) - h / x * poisson_above(whole, x);
        // What the later subtables take, the first ones need not have room for.
        let next = |q: f64, _| share(load(digits) * model::powers(q, shape.choices)).max(0.0);
        (0..4).fold(0.0, next)
    }

    /// The fewest blocks of this shape with which the rate is kept.
    fn sized_by_rule<S: Scheme>(
        &self,
        shape: Shape,
        digits: f64,
        asked: f64,
    ) -> Option<BalancedParams<S>> {
        let first = self.params::<S>(shape, shape.choices.into(), 0, 0)?;
        let layout = first.layout();
        let throws = Throws::new(layout.key_bits(), layout.hashes);
        let slack = if shape.choices > 1 { SLACK.1 } else { SLACK.0 };
        let looks = model::powers(self.refused::<S>(shape, digits), shape.choices);
        let most = most_arrivals(slack * load(digits) * looks);
        let profile = Profile::new(layout, &throws, most);
        let sized = |blocks: u64| self.sized::<S>(shape, &profile, blocks);
        let rate = |blocks: u64| Some(sized(blocks)?.1.rate);
        let start = self.keys as f64 / load(digits);
        let blocks = self.fewest(start, shape.choices.into(), asked, rate)?;
        let (params, forecast) = sized(blocks)?;
        // More keys came to a block than were followed.
        let come = self.keys as f64 / blocks as f64 * forecast.insert;
        (most_arrivals(come) <= most).then_some(params)
    }

    /// The params with two choices in blocks without a limit: one filling shows the rates of all
    /// sizes.
    fn two_choice_by_rule<S: Scheme>(&self, digits: f64, asked: f64) -> Option<BalancedParams<S>> {
        let shape = Shape { hashes: whole(digits + 1.0), choices: 2, limit: 0.0 };
        let first = self.params::<S>(shape, 2, 0, 0)?;
        let mut filling = Filling::new(first.layout());
        let excess = |filling: &Filling| libm::log(filling.rate() / asked);
        // The last whole step with which the rate is kept, and the first with which it is not.
        let mut next = filling.clone();
        while next.rate() <= asked {
            filling.clone_from(&next);
            next.advance_by_step();
        }
        let (low, high) = (filling.per_block(), next.per_block());
        let (kept, missed) = (excess(&filling).max(-50.0), excess(&next));
        let start = self.keys as f64 / (low + kept / (kept - missed) * (high - low));
        let from_there = |blocks: u64| {
            let mut filling = filling.clone();
            filling.advance(self.keys as f64 / blocks as f64);
            Some(filling.rate())
        };
        let blocks = self.fewest(start, 2, asked, from_there)?;
        self.params::<S>(shape, blocks, 0, 0)
    }

    /// The fewest blocks with which the rate is kept, or nearly so: near `start`, and at least
    /// `least`.
    fn fewest(
        &self,
        start: f64,
        least: u64,
        asked: f64,
        rate: impl Fn(u64) -> Option<f64>,
    ) -> Option<u64> {
        let rate = |blocks: u64| Some(rate(blocks)? + digest_floor(self.keys));
        // In logarithms the rate is nearly a line, which secants find.
        let mut next = start;
        let mut slope = libm::log(asked);
        let mut before: Option<(f64, f64)> = None;
        for _ in 0..8 {
            let blocks = libm::ceil(next).clamp(least as f64, MAX_BLOCKS as f64);
            let at = (libm::log(blocks), libm::log(rate(blocks as u64)? / asked) + MARGIN);
            if blocks > MANY && libm::fabs(at.1) < 0.5 * MARGIN {
                return Some(blocks as u64);
            }
            if let Some(before) = before.filter(|before| before.0 != at.0) {
                slope = ((at.1 - before.1) / (at.0 - before.0)).min(-0.1);
            }
            before = Some(at);
            next = libm::exp(at.0 - at.1 / slope);
            if libm::fabs(next - blocks) < 0.5 {
                break;
            }
        }
        let near = (libm::ceil(next) as u64).clamp(least, MAX_BLOCKS);
        let most = asked * (1.0 - 0.5 * MARGIN);
        let kept = |blocks: u64| blocks >= least && rate(blocks).is_some_and(|rate| rate <= most);
        first_true_near(near, 1, MAX_BLOCKS, kept)
    }
}

/// About how many keys there are for each block with the best shape.
fn load(digits: f64) -> f64 {
    (349.0 - 0.25 * digits * digits).max(320.0) / digits
}

/// The nearest number of bits of a key.
fn whole(hashes: f64) -> u32 {
    libm::floor(hashes + 0.5).clamp(1.0, MAX_BLOCK_PROBES.into()) as u32
}
