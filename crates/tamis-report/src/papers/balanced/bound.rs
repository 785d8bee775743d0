//! Theorem 1: how evenly any scheme can spread keys over blocks, with a given number of looks at
//! blocks.
//!
//! | symbol | meaning |
//! |---|---|
//! | r | keys per block |
//! | a | blocks read per insert, on average |
//! | gamma | share of the keys in the overflow list |
//! | X | Poisson with mean a r: how often a block is looked at, Q its law |
//! | k0 | the largest k with E[min(X, k)] < r (1 - gamma) |
//! | e0, p0 | E[X; X <= k0], Pr(X <= k0) |
//! | P | the law of loads that no scheme beats, whatever convex cost a load has |
//!
//! P(i) = Q(i) below k0. The other blocks have loads of k0 and k0 + 1, so that the mean is r (1 -
//! gamma). A finite k0 exists only if a > 1 - gamma; at a = 1 and gamma = 0 the limit is Poisson
//! with mean r.
//!
//! Where we differ: the printed sum runs over j, and k0 = 0 needs e0 = 0 (errata 1). Tested by
//! `figure_two_the_bound` and
//! `the_bound_is_what_greedy_removal_leaves`.

use tamis::internals::math::tail::{poisson_above, poisson_pmf};

use crate::papers::statistics::poisson_at_most;

/// The law of loads that no scheme beats.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Below this load the law is as if every look had brought a key; `None` if it is so at all
    /// loads.
    pub k0: Option<u32>,
    /// E[X; X <= k0].
    pub e0: f64,
    /// Pr(X <= k0).
    pub p0: f64,
    /// P(0), P(1), ... up to k0 + 1, or to where nothing is left.
    pub loads: Vec<f64>,
}

/// Greater loads are not computed: no block holds as many keys.
const MOST: u64 = 4096;

impl Bound {
    /// The bound for `r` keys per block, `a` looks per key and a share `gamma` of the keys in the
    /// list.
    pub fn new(r: f64, a: f64, gamma: f64) -> Self {
        let (lam, mean) = (a * r, r * (1.0 - gamma));
        // E[X; X <= k] and E[min(X, k)], which both tend to the mean of X.
        let below = |k: u64| k.checked_sub(1).map_or(0.0, |k| lam * poisson_at_most(k, lam));
        let cut = |k: u64| below(k) + k as f64 * poisson_above(k, lam);
        let k0 = if lam > mean { (0..MOST).take_while(|&k| cut(k) < mean).last() } else { None };
        let Some(k0) = k0 else {
            let loads = (0..MOST).map(|i| poisson_pmf(i, lam));
            let end = lam as u64;
            let loads = loads.enumerate().take_while(|&(i, p)| i as u64 <= end || p > 1e-18);
            return Self { k0: None, e0: lam, p0: 1.0, loads: loads.map(|(_, p)| p).collect() };
        };
        let (e0, p0) = (below(k0), poisson_at_most(k0, lam));
        let mut loads: Vec<f64> = (0..k0).map(|i| poisson_pmf(i, lam)).collect();
        let top = mean - e0 - k0 as f64 * (1.0 - p0);
        loads.push(poisson_pmf(k0, lam) + (1.0 - p0) - top);
        loads.push(top);
        Self { k0: Some(k0 as u32), e0, p0, loads }
    }
}

/// The mean of a cost over loads.
pub fn mean_cost(loads: &[f64], cost: impl Fn(usize) -> f64) -> f64 {
    loads.iter().enumerate().map(|(i, p)| p * cost(i)).sum()
}
