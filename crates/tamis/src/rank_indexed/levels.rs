//! The levels of a layout whose r, B, L and S are given: where to cut the loads, and how many
//! extensions.
//!
//! Symbols as in [`model`](super::model).

use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use crate::math::solve::first_true;
use crate::math::tail::{ln_binomial_above_at_most, ln_poisson_pmf, poisson_above};

use super::model::{Layout, pointer_bits, pool_limit};
use super::optimise::Demand;

/// A layout with its bits.
pub(crate) type Bid = (u64, Layout);

/// No bucket holds more cells than this. Planned buckets stay below a tenth of it.
const MAX_REACH: u64 = 4096;
/// How far beyond the least possible W3 to look: each further cell halves the last tail at least,
/// so this many leave nearly all of Po to the pools.
const SPARE: u64 = 2;
/// With fewer buckets a level is used by one or two of them, and the best thresholds may be
/// anywhere.
const FEW_BUCKETS: u64 = 100;
/// A search for a threshold ends after this many that are not better. Where a pointer gets
/// shorter, the bits fall: every three thresholds or so.
const PATIENCE: u32 = 4;
/// The same where a good threshold is known.
const LITTLE_PATIENCE: u32 = 2;
/// Larger pools are estimated until the best levels are refined.
const LARGE_POOL: f64 = 100.0;

/// The tails of one frame.
pub(crate) struct Levels {
    frame: Layout,
    keys: u64,
    /// Po, slightly lowered so that rounding cannot exceed it.
    allowed: f64,
    /// The least W with B Pr[Bin(n, 1/B) > W] <= Po.
    reach: u64,
    /// ln(2 S): see [`overflow_bound`](super::model::overflow_bound).
    ln_events: f64,
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
        let rare = |load| ln_beyond(&frame, keys, load) <= ln_allowed;
        let reach = first_true(mean as u64, high, rare)?.max(1);
        let above = poisson_tails(mean, reach + SPARE);
        let ln_events = core::f64::consts::LN_2 + libm::log(frame.groups as f64);
        Some(Self { frame, keys, allowed, reach, ln_events, above })
    }

    /// The least J up to `most` that a level above `load` needs, for this much of Po; `most` if
    /// all are too few.
    fn pool(&self, load: u64, share: f64, most: u64) -> u64 {
        let limit = pool_limit(&self.frame, self.keys, load).min(most);
        let p = self.above[load as usize].min(1.0);
        let ln_share = libm::log(share) - self.ln_events;
        least_pool(self.frame.group_buckets(), p, ln_share, limit)
    }

    /// The part of Po that a pool uses, or slightly more.
    fn used(&self, load: u64, extensions: u64) -> f64 {
        if extensions >= pool_limit(&self.frame, self.keys, load) {
            return 0.0;
        }
        let p = self.above[load as usize].min(1.0);
        let tail = ln_binomial_above_at_most(self.frame.group_buckets(), p, extensions);
        libm::exp(self.ln_events + tail)
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
        // A last tail of Po / 3 needs one cell more than one of Po.
        let w3 = (self.reach + 1).min(self.keys);
        let plain = self.bid([self.reach; 3], 0, 0);
        let last = self.reach - 1;
        if self.frame.buckets < FEW_BUCKETS {
            return self.of_few(at(-1.0)..=at(8.0).min(last), w3, plain);
        }
        let mut pools = vec![None; self.above.len()];
        let ln_share = libm::log(share) - self.ln_events;
        let about = |load: u64| {
            let p = self.above[load as usize].min(1.0);
            let pool = about_pool(self.frame.group_buckets(), p, ln_share);
            // One more, because a pool of a power of two and one has longer pointers.
            if pool > LARGE_POOL { pool as u64 + 1 } else { self.pool(load, share, u64::MAX) }
        };
        let mut pool = |load: u64| *pools[load as usize].get_or_insert_with(|| about(load));
        let mut bid = |w1: u64, w2: u64| match (pool(w1), pool(w2)) {
            (0, _) => plain,
            (second, 0) => self.bid([w1, w3, w3], second, 0),
            (second, third) => self.bid([w1, w2, w3], second, third),
        };
        let (w1, w2) = (at(0.7).min(last), at(2.3).min(last));
        if w2 <= w1 {
            return (1..=last).map(|w1| bid(w1, last)).fold(plain, lesser);
        }
        let mut best = descend(w1, 1..=w2 - 1, PATIENCE, |w1| bid(w1, w2));
        for _ in 0..2 {
            let w1 = u64::from(best.1.level1);
            let start = w2.max(w1 + 1);
            best = lesser(best, descend(start, w1 + 1..=last, PATIENCE, |w2| bid(w1, w2)));
            let w2 = (w1 + u64::from(best.1.level2)).min(last);
            best = lesser(best, descend(w1, 1..=(w2 - 1).max(1), PATIENCE, |w1| bid(w1, w2)));
        }
        lesser(plain, best)
    }

    /// The same for few buckets, of all thresholds in `loads`. For each number of extensions only
    /// the least threshold can be best.
    fn of_few(&self, loads: RangeInclusive<u64>, w3: u64, plain: Bid) -> Bid {
        let mut levels: Vec<(u64, u64)> = Vec::new();
        let mut pool = u64::MAX;
        for load in loads {
            let before = pool;
            pool = pool.min(pool_limit(&self.frame, self.keys, load));
            while pool > 0 && self.used(load, pool - 1) <= self.allowed / 3.0 {
                pool -= 1;
            }
            if pool > 0 && pool < before {
                levels.push((load, pool));
            }
        }
        let mut best = plain;
        for (at, &(w1, second)) in levels.iter().enumerate() {
            best = lesser(best, self.bid([w1, w3, w3], second, 0));
            for &(w2, third) in &levels[at + 1..] {
                best = lesser(best, self.bid([w1, w2, w3], second, third));
            }
        }
        best
    }

    /// The best levels near those of a bid, with the best shares of Po.
    pub(crate) fn refine(&self, (_, near): Bid) -> Bid {
        let plain = self.bid([self.reach; 3], 0, 0);
        if near.second == 0 {
            return plain;
        }
        let mut w1 = u64::from(near.level1);
        let mut w2 = w1 + u64::from(near.level2);
        let reaches = self.reach..=(self.reach + SPARE).min(self.keys);
        let left = |w3: u64| {
            let beyond = libm::exp(ln_beyond(&self.frame, self.keys, w3));
            (self.allowed - beyond).max(0.0)
        };
        let descend =
            |start, within, bid: &dyn Fn(u64) -> Bid| descend(start, within, LITTLE_PATIENCE, bid);
        if near.third == 0 {
            let two = |w1: u64, w3: u64| {
                self.bid([w1, w3, w3], self.pool(w1, left(w3), u64::MAX).max(1), 0)
            };
            let best = reaches.map(|w3| descend(w1.min(w3 - 1), 1..=w3 - 1, &|w1| two(w1, w3)));
            return best.fold(plain, lesser);
        }
        // `more` extensions of the third level, beyond the least, lower the share of Po that it
        // uses.
        let three = |w1: u64, w2: u64, (w3, left): (u64, f64), more: u64| {
            let third = self.pool(w2, left, u64::MAX).max(1) + more;
            let left = (left - self.used(w2, third)).max(0.0);
            self.bid([w1, w2, w3], self.pool(w1, left, u64::MAX).max(1), third)
        };
        let reaches: Vec<(u64, f64)> = reaches.map(|w3| (w3, left(w3))).collect();
        let (mut last, mut more) = (reaches[(reaches.len() - 1) / 2], 1);
        let mut best = plain;
        let mut round = 0;
        loop {
            let along = descend(w1, 1..=w2 - 1, &|w1| three(w1, w2, last, more));
            w1 = along.1.level1.into();
            let across = descend(w2, w1 + 1..=last.0 - 1, &|w2| three(w1, w2, last, more));
            w2 = w1 + u64::from(across.1.level2);
            best = lesser(best, lesser(along, across));
            round += 1;
            if round == 2 {
                return best;
            }
            for &reach in reaches.iter().filter(|reach| reach.0 > w2) {
                for extensions in 0..4 {
                    let next = three(w1, w2, reach, extensions);
                    if next.0 < best.0 {
                        (best, last, more) = (next, reach, extensions);
                    }
                }
            }
        }
    }

    /// About how many bits the table would take in groups, with the levels of `near`: for each
    /// width of pointers, the groups whose pools are as large as these pointers allow.
    pub(crate) fn in_groups(&self, near: &Layout) -> impl Iterator<Item = (f64, f64)> {
        let p = |load: u32| self.above.get(load as usize).map_or(0.0, |p| p.min(1.0));
        let (p1, p2) = (p(near.level1), p(near.level1 + near.level2));
        let (buckets, cell) = (self.frame.buckets as f64, near.cell() as f64);
        let base = buckets * (near.bucket_bits() - pointer_bits(near.second)) as f64;
        let last = 1.0 + f64::from(near.level3) * cell;
        let ln_share = libm::log(self.allowed / 3.0);
        let (level2, uses) = (f64::from(near.level2), near.second > 0);
        (5..=22).filter(move |_| uses).map(move |width| {
            let pool = libm::exp2(f64::from(width));
            // Pools that are deviations larger than their mean: G p + z sqrt(G p (1 - p)).
            let z = libm::sqrt(2.0 * (libm::log(buckets / pool).max(0.0) - ln_share));
            let side = z * libm::sqrt(p1 * (1.0 - p1));
            let root = (libm::sqrt(side * side + 4.0 * p1 * pool) - side) / (2.0 * p1);
            let group = root * root;
            let groups = libm::ceil(buckets / group);
            let third = if near.third > 0 {
                group * p2 + z * libm::sqrt(group * p2) + z * z / 6.0
            } else {
                0.0
            };
            let second = 2.0 + level2 * cell + libm::log2(third + 1.0);
            (base + buckets * f64::from(width) + groups * (pool * second + third * last), groups)
        })
    }
}

/// ln(B Pr[Bin(n, 1/B) > W]), or slightly more.
fn ln_beyond(frame: &Layout, keys: u64, load: u64) -> f64 {
    let buckets = frame.buckets as f64;
    let share = (1.0 / buckets).min(1.0 - f64::EPSILON);
    libm::log(buckets) + ln_binomial_above_at_most(keys, share, load)
}

/// The best bid of the thresholds near `start`: up, and down, until `patience` of them are no
/// better than the best so far.
fn descend(
    start: u64,
    within: RangeInclusive<u64>,
    patience: u32,
    mut bid: impl FnMut(u64) -> Bid,
) -> Bid {
    let mut best = bid(start);
    let up = &mut (start..*within.end()).map(|load| load + 1) as &mut dyn Iterator<Item = u64>;
    let down = &mut (*within.start()..start).rev();
    for loads in [up, down] {
        let mut left = patience;
        for load in loads {
            let next = bid(load);
            if next.0 < best.0 {
                (best, left) = (next, patience);
            } else {
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
    }
    best
}

/// The bid with fewer bits.
pub(crate) fn lesser(a: Bid, b: Bid) -> Bid {
    if b.0 < a.0 { b } else { a }
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

/// About the least J with ln Pr[Bin(G, p) > J] at most `ln_share`, rounded up: as many deviations
/// beyond the mean as a normal number with that tail, and a correction for the skew.
fn about_pool(group: u64, p: f64, ln_share: f64) -> f64 {
    let mean = group as f64 * p;
    let z = libm::sqrt((-2.0 * ln_share).max(0.0));
    let z = libm::sqrt((-2.0 * (ln_share + libm::log(2.5 * z + 1.0))).max(0.0));
    libm::ceil(mean + z * libm::sqrt(mean * (1.0 - p)) + z * z / 6.0 * (1.0 - 2.0 * p)).max(0.0)
}

/// The least J up to `limit` with a bound of at most `ln_share` on ln Pr[Bin(G, p) > J]; `limit`
/// is taken to meet it.
fn least_pool(group: u64, p: f64, ln_share: f64, limit: u64) -> u64 {
    let g = group as f64;
    let odds = p / (1.0 - p);
    let (mut low, mut high) = (0, limit);
    let mut next = about_pool(group, p, ln_share);
    while low < high {
        let middle = (next.max(0.0) as u64).clamp(low, high - 1);
        let excess = ln_binomial_above_at_most(group, p, middle) - ln_share;
        if excess <= 0.0 {
            high = middle;
        } else {
            low = middle + 1;
        }
        // Far out the tail falls like its first term, whose ratio to the next is known.
        let j = middle as f64 + 1.0;
        let slope = libm::log(odds * (g - j) / (j + 1.0)).min(-1e-3);
        next = libm::ceil(middle as f64 - excess / slope);
    }
    high
}
