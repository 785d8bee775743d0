//! The levels of a layout whose r, B, L and S are given: where to cut the loads, and how many
//! extensions.
//!
//! Symbols as in [`model`](super::model).

use alloc::vec::Vec;

use crate::math::tail::{ln_binomial_above, ln_poisson_pmf, poisson_above};

use super::model::{Layout, ln_beyond, ln_pool_overflow, pool_limit};
use super::optimise::Demand;

/// A layout with its bits.
pub(super) type Bid = (u64, Layout);

/// A threshold, with the least pool above it that could do.
type Least = (u64, u64);

/// No bucket holds more cells than this. Planned buckets stay below a tenth of it.
const MAX_REACH: u64 = 4096;
/// How far beyond the least possible W3 to look: each further cell halves the last tail at least,
/// so this many leave nearly all of Po to the pools.
const SPARE: u64 = 2;
/// From this many buckets in a group on, pools are estimated before they are computed.
const LARGE_GROUP: u64 = 100;
/// The step in which levels of smaller groups are tried first.
const STRIDE: usize = 3;

/// The tails of one frame.
pub(super) struct Levels {
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
    pub(super) fn new(demand: &Demand, frame: Layout) -> Option<Self> {
        let keys = demand.sized_keys();
        let allowed = demand.overflow * (1.0 - 1e-9);
        let ln_allowed = libm::log(allowed);
        let mean = keys as f64 / frame.buckets as f64;
        let ample = libm::ceil(mean + 40.0 * libm::sqrt(mean)) + 200.0;
        let high = keys.min(MAX_REACH).min(ample as u64);
        let share = 1.0 / frame.buckets as f64;
        let reach = least_pool(keys, share, ln_allowed + libm::log(share), high);
        if reach == high && ln_beyond(frame.buckets, keys, high) > ln_allowed {
            return None;
        }
        let reach = reach.max(mean as u64).max(1);
        let above = poisson_tails(mean, reach + SPARE);
        Some(Self { frame, keys, allowed, reach, above })
    }

    /// The least J that a level above `load` needs, for this much of Po.
    fn pool(&self, load: u64, share: f64) -> u64 {
        let limit = pool_limit(&self.frame, self.keys, load);
        let (group, p) = (self.frame.group_buckets(), self.p(load));
        if group < LARGE_GROUP {
            return small_pool(group, p, share / (2.0 * self.frame.groups as f64), limit);
        }
        least_pool(group, p, ln_share(&self.frame, share), limit)
    }

    /// The same in less time, and for large groups nearly right.
    fn pool_estimate(&self, load: u64, share: f64) -> u64 {
        if self.frame.group_buckets() < LARGE_GROUP {
            return self.pool(load, share);
        }
        estimate(&self.frame, self.keys, load, self.p(load), share)
    }

    /// p(W).
    fn p(&self, load: u64) -> f64 {
        self.above[load as usize].min(1.0)
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
    pub(super) fn even_shares(&self) -> Bid {
        let mean = self.keys as f64 / self.frame.buckets as f64;
        let sd = libm::sqrt(mean);
        let at = |deviations: f64| libm::floor(mean + deviations * sd).max(1.0) as u64;
        if self.frame.group_buckets() >= LARGE_GROUP {
            // The best levels of all large groups are near these.
            return self.climb(at(0.7), at(2.5));
        }
        // With few buckets the best third level may be far out, used by one of them.
        let coarse = self.even_shares_of(
            (at(-1.0)..=at(3.5)).step_by(STRIDE),
            (at(0.5)..=at(8.0)).step_by(STRIDE),
        );
        self.even_shares_near(&coarse.1)
    }

    /// The same for a frame whose buckets are about as full as those of `near`, whose levels are
    /// the best: those of this one are nearly the same.
    pub(super) fn even_shares_near(&self, near: &Layout) -> Bid {
        let w1 = u64::from(near.level1);
        self.climb(w1, w1 + u64::from(near.level2))
    }

    /// The best levels near these W1 and W2, from there the best near those, and so on.
    fn climb(&self, mut w1: u64, mut w2: u64) -> Bid {
        const AROUND: u64 = 2;
        let around = |load: u64| load.saturating_sub(AROUND).max(1)..=load + AROUND;
        let mut best: Option<Bid> = None;
        loop {
            let bid = self.even_shares_of(around(w1), around(w2));
            let first = u64::from(bid.1.level1);
            let second = first + u64::from(bid.1.level2);
            if best.is_some_and(|best| best.0 <= bid.0) {
                return best.unwrap_or(bid);
            }
            if (first, second) == (w1, w2) || bid.1.third == 0 {
                return bid;
            }
            (best, w1, w2) = (Some(bid), first, second);
        }
    }

    /// The bid of `frame`, which differs from this one by its groups and, as these divide them, by
    /// a few buckets, with the levels of `near` and a third of Po for each: an estimate.
    pub(super) fn grouped(&self, frame: Layout, near: &Layout) -> Bid {
        let share = self.allowed / 3.0;
        let (w1, reach) = (u64::from(near.level1), near.reach());
        let w2 = w1 + u64::from(near.level2);
        let mean = |buckets: u64| self.keys as f64 / buckets as f64;
        let fuller = mean(frame.buckets) - mean(self.frame.buckets);
        let pool = |load: u64| {
            // The slope of a tail of Poisson(m) over m is the term before it.
            let p = self.p(load) + fuller * (self.p(load - 1) - self.p(load));
            estimate(&frame, self.keys, load, p, share).max(1)
        };
        let [second, third] = [(near.second, w1), (near.third, w2)]
            .map(|(known, load)| if known == 0 { 0 } else { pool(load) });
        let levels = Self { frame, above: Vec::new(), ..*self };
        levels.bid([w1, w2, reach], second, third)
    }

    /// The best levels with W1 and W2 in these ranges if each has a third of Po.
    fn even_shares_of(
        &self,
        firsts: impl Iterator<Item = u64>,
        seconds: impl Iterator<Item = u64>,
    ) -> Bid {
        let share = self.allowed / 3.0;
        // A last tail of Po / 3 needs one cell more than one of Po.
        let w3 = (self.reach + 1).min(self.keys);
        let below_reach = |load: &u64| *load < self.reach;
        let thirds: Vec<(u64, u64)> = seconds
            .filter(below_reach)
            .map(|load| (load, self.pool_estimate(load, share)))
            .filter(|third| third.1 > 0)
            .collect();
        let mut best = self.bid([self.reach; 3], 0, 0);
        for w1 in firsts.filter(below_reach) {
            let second = self.pool_estimate(w1, share);
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
    pub(super) fn refine(&self, (_, near): Bid) -> Bid {
        let none = self.bid([self.reach; 3], 0, 0);
        if near.second == 0 {
            return none;
        }
        let w1 = u64::from(near.level1);
        let w2 = w1 + u64::from(near.level2);
        let highest = (self.reach + SPARE).min(self.keys);
        // No pool is smaller than with all of Po to itself. So most levels take too many bits
        // whatever the shares are.
        let least = |load: u64| (load, self.pool(load, self.allowed).max(1));
        let firsts: Vec<_> = around(w1, highest).map(least).collect();
        let mut seconds: Vec<_> = around(w2, highest).map(least).collect();
        if near.third == 0 {
            seconds.clear();
        }
        // First the levels of the bid alone, so that few others are worth a look.
        let only = |all: &[Least], load: u64| -> Vec<Least> {
            all.iter().copied().filter(|one| one.0 == load).collect()
        };
        let center = self.best_of(&only(&firsts, w1), &only(&seconds, w2), none.0);
        self.best_of(&firsts, &seconds, center.0)
    }

    /// The best levels with these W1 and W2. Levels that take more than `enough` bits do not
    /// matter.
    fn best_of(&self, firsts: &[Least], seconds: &[Least], enough: u64) -> Bid {
        let mut best = self.bid([self.reach; 3], 0, 0);
        for w3 in self.reach..=(self.reach + SPARE).min(self.keys) {
            let left = self.allowed - libm::exp(ln_beyond(self.frame.buckets, self.keys, w3));
            for &(w1, least) in firsts.iter().filter(|first| first.0 < w3) {
                if self.bid([w1, w3, w3], least, 0).0 <= enough.min(best.0) {
                    let second = self.pool(w1, left).max(1);
                    best = lesser(best, self.bid([w1, w3, w3], second, 0));
                }
            }
            for &(w2, least) in seconds.iter().filter(|second| second.0 < w3) {
                let firsts = firsts.iter().filter(|first| first.0 < w2);
                let bits = |first: &Least, third| self.bid([first.0, w2, w3], first.1, third).0;
                if firsts.clone().all(|first| bits(first, least) > enough.min(best.0)) {
                    continue;
                }
                let fewest = self.pool(w2, left).max(1);
                // Each further extension lowers the share of Po that this level uses.
                for third in fewest..fewest + 4 {
                    let left = (left - self.used(w2, third)).max(0.0);
                    for first in firsts.clone() {
                        if bits(first, third) <= enough.min(best.0) {
                            let second = self.pool(first.0, left).max(1);
                            best = lesser(best, self.bid([first.0, w2, w3], second, third));
                        }
                    }
                }
            }
        }
        best
    }
}

/// The bid with fewer bits.
pub(super) fn lesser(a: Bid, b: Bid) -> Bid {
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

/// What is left of ln `share` for one group and one side of Theorem 1.
fn ln_share(frame: &Layout, share: f64) -> f64 {
    libm::log(share / (2.0 * frame.groups as f64))
}

/// About the least J that a level above `load` needs in a large group, for `share` of Po.
fn estimate(frame: &Layout, keys: u64, load: u64, p: f64, share: f64) -> u64 {
    let group = frame.group_buckets() as f64;
    let guess = libm::ceil(pool_guess(group, p, ln_share(frame, share)));
    (guess as u64).min(pool_limit(frame, keys, load))
}

/// The least J up to `limit` with Pr[Bin(G, p) > J] at most `share`, by adding up all terms:
/// `group` is below [`LARGE_GROUP`].
fn small_pool(group: u64, p: f64, share: f64, limit: u64) -> u64 {
    if p >= 1.0 {
        return limit;
    }
    let odds = p / (1.0 - p);
    let mut terms = [0.0; LARGE_GROUP as usize + 1];
    let mut term = libm::exp(group as f64 * libm::log1p(-p));
    let mut last = 0;
    for j in 0..=group {
        terms[j as usize] = term;
        last = j;
        let ratio = odds * (group - j) as f64 / (j + 1) as f64;
        term *= ratio;
        // The terms fall ever faster from here on.
        if ratio < 0.5 && term < share * 1e-17 {
            break;
        }
    }
    let mut tail = 0.0;
    for j in (0..=last).rev() {
        tail += terms[j as usize];
        if tail > share {
            return j.min(limit);
        }
    }
    0
}

/// The least J up to `limit` with ln Pr[Bin(G, p) > J] at most `ln_share`; `limit` itself always
/// meets it.
fn least_pool(group: u64, p: f64, ln_share: f64, limit: u64) -> u64 {
    let g = group as f64;
    let odds = p / (1.0 - p);
    // ln Pr[Bin = j + 1] / Pr[Bin = j]. The tail from j + 1 on is smaller than that from j on by
    // at least this, because the ratios fall.
    let ratio = |j: u64| libm::log(odds * (g - j as f64) / (j as f64 + 1.0));
    let (mut low, mut high) = (0, limit);
    let mut next = pool_guess(g, p, ln_share);
    while low < high {
        let middle = (libm::ceil(next.max(0.0)) as u64).clamp(low, high - 1);
        let excess = ln_binomial_above(group, p, middle) - ln_share;
        let slope = ratio(middle + 1);
        if excess <= 0.0 {
            high = middle;
            if excess > ratio(middle) {
                low = middle;
            }
        } else {
            low = middle + 1;
            if excess <= -slope {
                high = low;
            }
        }
        // Far out the tail falls like its first term, whose ratio to the next is known.
        next = middle as f64 - excess / slope.min(-1e-3);
    }
    high
}

/// About where ln Pr[Bin(G, p) > J] is `ln_share`, for shares far below 1: two steps from
/// Bernstein's bound towards the saddle-point form of the tail.
fn pool_guess(g: f64, p: f64, ln_share: f64) -> f64 {
    const TWO_PI: f64 = 2.0 * core::f64::consts::PI;
    let (mean, q) = (g * p, 1.0 - p);
    let room = (-ln_share).max(0.0);
    // The first term of the tail.
    let mut first = mean + libm::sqrt(2.0 * mean * q * room) + room / 3.0 + 1.0;
    for _ in 0..2 {
        first = first.min(g - 0.5);
        let rest = g - first;
        let deviance = first * libm::log(first / mean) + rest * libm::log(rest / (g * q));
        let ratio = (p / q * rest / (first + 1.0)).min(1.0 - 1e-9);
        let sum = (1.0 - ratio) * (1.0 - ratio) * TWO_PI * first * rest / g;
        first -= (-deviance - 0.5 * libm::log(sum) - ln_share) / libm::log(ratio);
    }
    first - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn pools_are_the_least_that_suffice() {
        let mut random = Digest(3);
        for _ in 0..20_000 {
            random = Digest(random.word(1));
            let unit = |word: u64| random.word(word) as f64 / 18446744073709551616.0;
            let group = libm::exp2(30.0 * unit(2)) as u64;
            let (p, ln_share) = (libm::exp2(-20.0 * unit(3)), -1.0 - 60.0 * unit(4));
            let limit = group - (unit(5) * group as f64 / 4.0) as u64;
            let pool = least_pool(group, p, ln_share, limit);
            let suffices = |pool| ln_binomial_above(group, p, pool) <= ln_share;
            let context = (group, p, ln_share, limit, pool);
            assert!(pool == limit || suffices(pool), "{context:?}");
            assert!(pool == 0 || !suffices(pool - 1), "{context:?}");
            if group < LARGE_GROUP {
                assert_eq!(small_pool(group, p, libm::exp(ln_share), limit), pool, "{context:?}");
            }
        }
    }
}
