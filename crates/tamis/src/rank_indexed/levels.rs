//! The levels of a layout whose r, B, L and S are given: where to cut the loads, and how many
//! extensions.
//!
//! Symbols as in [`model`](super::model).

use alloc::vec::Vec;

use crate::math::solve::first_true;
use crate::math::tail::{ln_binomial_above, ln_poisson_pmf, poisson_above};

use super::model::{Layout, ln_beyond, ln_pool_overflow, pool_limit};
use super::optimise::Demand;

/// A layout with its bits.
pub(crate) type Bid = (u64, Layout);

/// No bucket holds more cells than this. Planned buckets stay below a tenth of it.
const MAX_REACH: u64 = 4096;
/// How far beyond the least possible W3 to look: each further cell halves the last tail at least,
/// so this many leave nearly all of Po to the pools.
const SPARE: u64 = 2;

/// The tails of one frame.
pub(crate) struct Levels {
    frame: Layout,
    keys: u64,
    /// Po, slightly lowered so that rounding cannot exceed it.
    allowed: f64,
    /// The least W with B Pr[Bin(n, 1/B) > W] <= Po.
    reach: u64,
    /// p(W) for every W up to `reach` and [`SPARE`] more.
    above: Vec<f64>,
}

impl Levels {
    /// `None` if a bucket would need more than [`MAX_REACH`] cells.
    pub(crate) fn new(demand: &Demand, frame: Layout) -> Option<Self> {
        let keys = demand.sized_keys();
        let allowed = demand.overflow * (1.0 - 1e-9);
        let ln_allowed = libm::log(allowed);
        let mean = keys as f64 / frame.buckets as f64;
        let ample = libm::ceil(mean + 40.0 * libm::sqrt(mean)) + 200.0;
        let high = keys.min(MAX_REACH).min(ample as u64);
        let rare = |load| ln_beyond(frame.buckets, keys, load) <= ln_allowed;
        let reach = first_true(mean as u64, high, rare)?.max(1);
        let above = poisson_tails(mean, reach + SPARE);
        Some(Self { frame, keys, allowed, reach, above })
    }

    /// The least J that a level above `load` needs, for this much of Po.
    fn pool(&self, load: u64, share: f64) -> u64 {
        let limit = pool_limit(&self.frame, self.keys, load);
        let p = self.above[load as usize].min(1.0);
        let ln_share =
            libm::log(share) - core::f64::consts::LN_2 - libm::log(self.frame.groups as f64);
        least_pool(self.frame.group_buckets(), p, ln_share, limit)
    }

    /// The part of Po that a pool uses.
    fn used(&self, load: u64, extensions: u64) -> f64 {
        if extensions >= pool_limit(&self.frame, self.keys, load) {
            return 0.0;
        }
        libm::exp(ln_pool_overflow(&self.frame, self.above[load as usize], extensions))
    }

    /// The layout with these W and J.
    fn bid(&self, w: [u64; 3], second: u64, third: u64) -> Bid {
        let layout = Layout {
            level1: w[0] as u32,
            level2: (w[1] - w[0]) as u32,
            level3: (w[2] - w[1]) as u32,
            second,
            third,
            ..self.frame
        };
        (layout.bits(), layout)
    }

    /// The best levels if each has a third of Po: an estimate, which `refine` improves.
    pub(crate) fn even_shares(&self) -> Bid {
        let mean = self.keys as f64 / self.frame.buckets as f64;
        let sd = libm::sqrt(mean);
        let at = |deviations: f64| libm::floor(mean + deviations * sd).max(1.0) as u64;
        let share = self.allowed / 3.0;
        // With few buckets the best third level may be far out, used by one of them.
        let farthest = if self.frame.buckets < 100 { 8.0 } else { 5.0 };
        // A last tail of Po / 3 needs one cell more than one of Po.
        let w3 = (self.reach + 1).min(self.keys);
        let thirds: Vec<(u64, u64)> = (at(0.5)..=at(farthest).min(self.reach - 1))
            .map(|load| (load, self.pool(load, share)))
            .filter(|third| third.1 > 0)
            .collect();
        let mut best = self.bid([self.reach; 3], 0, 0);
        for w1 in at(-1.0)..=at(3.5).min(self.reach - 1) {
            let second = self.pool(w1, share);
            if second == 0 {
                continue;
            }
            best = lesser(best, self.bid([w1, w3, w3], second, 0));
            for &(w2, third) in thirds.iter().filter(|third| third.0 > w1) {
                best = lesser(best, self.bid([w1, w2, w3], second, third));
            }
        }
        best
    }

    /// The best levels near those of a bid, with the best shares of Po.
    pub(crate) fn refine(&self, (_, near): Bid) -> Bid {
        let mut best = self.bid([self.reach; 3], 0, 0);
        if near.second == 0 {
            return best;
        }
        let w1 = u64::from(near.level1);
        let w2 = w1 + u64::from(near.level2);
        for w3 in self.reach..=(self.reach + SPARE).min(self.keys) {
            let left = self.allowed - libm::exp(ln_beyond(self.frame.buckets, self.keys, w3));
            for w1 in around(w1, w3) {
                best = lesser(best, self.bid([w1, w3, w3], self.pool(w1, left).max(1), 0));
            }
            if near.third == 0 {
                continue;
            }
            for w2 in around(w2, w3) {
                let fewest = self.pool(w2, left).max(1);
                // Each further extension lowers the share of Po that this level uses.
                for third in fewest..fewest + 4 {
                    let left = (left - self.used(w2, third)).max(0.0);
                    for w1 in around(w1, w2) {
                        let second = self.pool(w1, left).max(1);
                        best = lesser(best, self.bid([w1, w2, w3], second, third));
                    }
                }
            }
        }
        best
    }
}

/// The bid with fewer bits.
pub(crate) fn lesser(a: Bid, b: Bid) -> Bid {
    if b.0 < a.0 { b } else { a }
}

/// The thresholds near a good one and below the next level's.
fn around(load: u64, next: u64) -> impl Iterator<Item = u64> {
    (load.saturating_sub(4).max(1)..=load + 4).filter(move |load| *load < next)
}

/// p(W) = Pr[Poisson(m) > W] for W = 0 ..= top, by adding up from the small end.
fn poisson_tails(mean: f64, top: u64) -> Vec<f64> {
    let mut above = Vec::new();
    let mut tail = poisson_above(top, mean);
    let mut term = libm::exp(ln_poisson_pmf(top, mean));
    for load in (0..=top).rev() {
        above.push(tail);
        tail += term;
        term *= load as f64 / mean;
    }
    above.reverse();
    above
}

/// The least J up to `limit` with ln Pr[Bin(G, p) > J] at most `ln_share`; `limit` itself always
/// meets it.
fn least_pool(group: u64, p: f64, ln_share: f64, limit: u64) -> u64 {
    let g = group as f64;
    let odds = p / (1.0 - p);
    let (mut low, mut high) = (0, limit);
    let mut next = g * p + libm::sqrt(-2.0 * ln_share * g * p * (1.0 - p));
    while low < high {
        let middle = (libm::ceil(next.max(0.0)) as u64).clamp(low, high - 1);
        let excess = ln_binomial_above(group, p, middle) - ln_share;
        if excess <= 0.0 {
            high = middle;
        } else {
            low = middle + 1;
        }
        // Far out the tail falls like its first term, whose ratio to the next is known.
        let j = middle as f64 + 1.0;
        let slope = libm::log(odds * (g - j) / (j + 1.0)).min(-1e-3);
        next = middle as f64 - excess / slope;
    }
    high
}
