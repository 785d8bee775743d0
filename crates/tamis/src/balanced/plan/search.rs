//! The search for the best shape.

use core::cell::Cell;

use super::super::params::{MAX_BLOCKS, MAX_THRESHOLD};
use super::super::profile::most_arrivals;
use super::super::two_choice::Filling;
use super::super::{Rule, Scheme};
use super::{Bid, FEW_BLOCKS, How, Planner, Shape, TRIED_CHOICES};
use crate::address::MAX_BLOCK_PROBES;

impl Planner {
    /// The best bid of all shapes, and the best bid whose blocks never refuse.
    pub(super) fn best<S: Scheme>(&self) -> [Option<Bid>; 2] {
        let few = self.estimate() < FEW_BLOCKS as f64;
        if S::RULE == Rule::Least {
            let choices = self.choices.unwrap_or(if few { 1 } else { 2 });
            return [self.climb(|hashes| self.two_choice_bid::<S>(hashes, choices)), None];
        }
        if let Some(limit) = self.limit {
            let choices = self.choices.map_or(1..=S::MOST_CHOICES.min(TRIED_CHOICES), |d| d..=d);
            let tried = choices.map(|choices| {
                self.climb(|hashes| self.bid::<S>(Shape { hashes, choices, limit }))
            });
            return [least(tried), None];
        }
        let open = match self.choices {
            None | Some(1) if self.accesses.is_none() => {
                let limit = self.open_limit::<S>();
                self.climb(|hashes| self.bid::<S>(Shape { hashes, choices: 1, limit }))
            }
            _ => None,
        };
        let tried = match (self.choices, few) {
            (Some(choices), _) => choices..=choices,
            (None, true) if open.is_some() => return [open, None],
            (None, _) => 1..=S::MOST_CHOICES.min(TRIED_CHOICES),
        };
        let balanced = tried.map(|choices| {
            // The best limit for one number of bits is near the best for the next.
            let near = Cell::new(None);
            self.climb(|hashes| {
                let bid = match self.accesses {
                    Some(accesses) => self.with_accesses::<S>(hashes, choices, accesses),
                    None => self.cut::<S>(hashes, choices, near.get()),
                };
                near.set(bid.map(|bid| bid.shape.limit));
                bid
            })
        });
        [least(balanced), open]
    }

    /// A limit at which blocks never refuse.
    fn open_limit<S: Scheme>(&self) -> f64 {
        let per_block = self.keys as f64 / (0.7 * self.estimate());
        match S::RULE {
            Rule::Counter => {
                let most = (most_arrivals(per_block) as u64).min(self.keys);
                most.min(MAX_THRESHOLD.into()) as f64
            }
            Rule::Ones | Rule::Least => self.block as f64,
        }
    }

    /// The bid with the best k. The search starts at a good guess, and goes up and down from
    /// there.
    fn climb(&self, bid: impl Fn(u32) -> Option<Bid>) -> Option<Bid> {
        if let Some(hashes) = self.hashes {
            return bid(hashes);
        }
        let guess = match self.asked {
            Some(asked) => -libm::log2(asked),
            None => 0.6 * self.estimate() * self.block as f64 / self.keys as f64,
        };
        let start = libm::round(guess).clamp(1.0, MAX_BLOCK_PROBES.into()) as u32;
        let (mut low, mut high) = (start, start);
        let mut best = bid(start);
        // Goes on while bids get better, first up, then down.
        while high < MAX_BLOCK_PROBES {
            high += 1;
            match (bid(high), best) {
                (Some(next), Some(old)) if next.cost < old.cost => best = Some(next),
                (Some(next), None) => best = Some(next),
                _ => break,
            }
        }
        while low > 1 {
            low -= 1;
            match (bid(low), best) {
                (Some(next), Some(old)) if next.cost < old.cost => best = Some(next),
                (next, None) => best = next,
                _ => break,
            }
        }
        best
    }

    /// The range of limits to search.
    fn limits<S: Scheme>(&self) -> (f64, f64) {
        let per_block = self.keys as f64 / self.estimate();
        match S::RULE {
            Rule::Counter => {
                let high = 1.4 * per_block + 4.0 * libm::sqrt(per_block) + 4.0;
                (
                    (0.7 * per_block).min(f64::from(MAX_THRESHOLD) - 2.0),
                    high.min(MAX_THRESHOLD.into()),
                )
            }
            Rule::Ones | Rule::Least => (0.40 * self.block as f64, 0.75 * self.block as f64),
        }
    }

    /// The bid with the best limit, by golden sections; near `near`, if that is given.
    fn cut<S: Scheme>(&self, hashes: u32, choices: u32, near: Option<f64>) -> Option<Bid> {
        const SECTION: f64 = 0.381_966_011_250_105_2;
        let bid = |limit: f64| self.bid::<S>(Shape { hashes, choices, limit });
        let (mut low, mut high) = self.limits::<S>();
        // The cost is flat around its least.
        let enough = (high - low) / 40.0;
        if let Some(near) = near {
            let reach = 0.15 * (high - low);
            (low, high) = ((near - reach).max(low), (near + reach).min(high));
        }
        let mut left = low + SECTION * (high - low);
        let mut right = high - SECTION * (high - low);
        let (mut at_left, mut at_right) = (bid(left), bid(right));
        while high - low > enough {
            let lower = match (at_left, at_right) {
                (Some(left), Some(right)) => left.cost <= right.cost,
                // If the limit is too low, there is no room for all that the list would take.
                (left, _) => left.is_some(),
            };
            if lower {
                (high, right, at_right) = (right, left, at_left);
                left = low + SECTION * (high - low);
                at_left = bid(left);
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = high - SECTION * (high - low);
                at_right = bid(right);
            }
        }
        least([at_left, at_right].into_iter())
    }

    /// The bid with the limit at which an insertion reads `accesses` blocks.
    fn with_accesses<S: Scheme>(&self, hashes: u32, choices: u32, accesses: f64) -> Option<Bid> {
        let (mut low, mut high) = self.limits::<S>();
        let shape = |limit: f64| Shape { hashes, choices, limit };
        let steps = if S::RULE == Rule::Ones { 9 } else { 30 };
        for _ in 0..steps {
            let middle = 0.5 * (low + high);
            let read = self.bid::<S>(shape(middle)).and_then(|bid| {
                let profile = self.profile::<S>(bid.shape, self.estimate(), How::Sketched)?;
                Some(self.sized::<S>(bid.shape, &profile, bid.blocks)?.1.insert)
            });
            if read.is_none_or(|read| read > accesses) { low = middle } else { high = middle }
        }
        self.bid::<S>(shape(high))
    }

    /// The bid with one or two choices and blocks without a limit.
    fn two_choice_bid<S: Scheme>(&self, hashes: u32, choices: u32) -> Option<Bid> {
        let shape = Shape { hashes, choices, limit: 0.0 };
        if choices == 1 {
            return self.bid::<S>(shape);
        }
        let params = self.params::<S>(shape, 2, 0, 0)?;
        let mut filling = Filling::new(params.layout());
        let known = match (self.blocks, self.budget) {
            (None, Some(budget)) => Some((budget / self.block).clamp(2, MAX_BLOCKS)),
            (blocks, _) => blocks,
        };
        if let Some(blocks) = known {
            filling.advance(self.keys as f64 / blocks as f64);
            let cost = libm::log(filling.forecast(blocks).rate.max(1e-300));
            return Some(Bid { shape, blocks, cost });
        }
        // One filling gives the rates of all sizes.
        let asked = self.asked?;
        let step = self.keys as f64 / self.estimate() / 64.0;
        let mut before = (0.0, 0.0);
        for number in 1..=256 {
            let per_block = step * f64::from(number);
            filling.advance(per_block);
            let rate = filling.forecast(1).rate;
            if rate > asked {
                // Interpolates the logarithms between these two.
                let share = if before.1 > 0.0 {
                    libm::log(asked / before.1) / libm::log(rate / before.1)
                } else {
                    1.0
                };
                let per_block = before.0 + share * (per_block - before.0);
                let blocks = libm::ceil(self.keys as f64 / per_block.max(1e-9));
                let blocks = blocks.clamp(2.0, MAX_BLOCKS as f64) as u64;
                return Some(Bid { shape, blocks, cost: blocks as f64 });
            }
            before = (per_block, rate);
        }
        None
    }
}

/// The bid with the lowest cost.
pub(super) fn least(bids: impl Iterator<Item = Option<Bid>>) -> Option<Bid> {
    bids.flatten().min_by(|a, b| a.cost.total_cmp(&b.cost))
}
