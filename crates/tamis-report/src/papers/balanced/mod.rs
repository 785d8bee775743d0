//! Paper 001, Kanizo, Hay, Keslassy, "Access-Efficient Balanced Bloom Filters": Theorem 1
//! ([`Bound`]), and what the paper says of its three schemes in the limit of many blocks.
//!
//! | symbol | meaning |
//! |---|---|
//! | n, m | keys, blocks |
//! | r | n / m |
//! | d | choices of a key |
//! | a | blocks read per insert, on average |
//! | gamma | share of the keys in the overflow list |
//! | h, p | a block with fewer than h keys takes a key, one with h keys takes it with chance p |
//! | x | keys that have come to a block, on average |
//! | `f_i` | share of the blocks with load i |
//! | q | share of the keys that a block refuses while the filter fills |
//! | rho | chance that an absent key is refused by a block of the finished filter |
//! | B', k | bits of a block beside its counter, bits of a key |
//! | phi(i) | chance that the bits of an absent key are all set in a block with i keys |
//!
//! **SINGLE.** `f_0' = -f_0; f_i' = f_(i-1) - f_i; f_h' = f_(h-1) - p f_h; f_(h+1)' = p f_h`. (The
//! printed last line has `f_(h-1)`, and the shares add up to 1.051 in Figure 5: erratum 2.) The
//! closed form of `f_h` is written with the regularised incomplete gamma function; the printed
//! difference loses all digits as p -> 1 (erratum 4).
//!
//! **SEQUENTIAL.** The loads of SINGLE after x = r a looks; t(a) = integral of
//! du / (1 + q(ru) + ... + q(ru)^(d-1)) keys have then been placed or listed.
//!
//! **MHT.** Every subtable refuses the same share q: a = 1 + q + ... + q^(d-1), gamma = q^d, and
//! subtable j has q^(j-1) (1 - q) / (1 - q^d) of the blocks, whatever r is.
//!
//! **Rate.** The lookup of an absent key reads on while blocks refuse the key and do not hold its
//! bits. With A = sum P(i) phi(i), R = sum P(i) ref(i) (1 - phi(i)) and D = 1 + R + ... + R^(d-1)
//! the rate is A D, and D blocks are read. The paper's union bound has rho for R. (rho is not q:
//! absent keys see the final state.)
//!
//! The tests named below are in `tests/library/papers_balanced.rs` of the testkit. Filters are
//! sized by `predict` of the library, which also takes account of finite tables and of keys that
//! are found by mistake.

mod bound;

use std::cmp::Ordering;

use tamis::internals::balanced::model::powers;
use tamis::internals::math::gamma::ln_gamma_p;
use tamis::internals::math::ode::rk4;
use tamis::internals::math::tail::poisson_pmf;

use crate::papers::occupancy::Occupancy;
use crate::papers::solve::bisect;

pub use bound::{Bound, mean_cost};

/// Threshold h and coin p of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Single {
    /// A block with fewer keys takes any key.
    pub h: u32,
    /// The share of keys that a block with h keys takes.
    pub p: f64,
}

impl Single {
    /// The threshold and coin that reach a bound after `lam` looks at a block; `None` if the bound
    /// has no k0.
    pub fn reaching(bound: &Bound, lam: f64) -> Option<Self> {
        let h = bound.k0?;
        let wanted = bound.loads[h as usize];
        let excess = |p: f64| Self { h, p }.at_threshold(lam) - wanted;
        // At the ends of a step the root is 0 or 1, and rounding may have moved it out of the
        // interval.
        let p = bisect(excess, 0.0, 1.0, 0.0).unwrap_or(if excess(0.0) <= 0.0 { 0.0 } else { 1.0 });
        Some(Self { h, p })
    }

    /// `f_h(x)`.
    fn at_threshold(&self, x: f64) -> f64 {
        let Self { h, p } = *self;
        if h == 0 {
            return libm::exp(-p * x);
        }
        if p >= 1.0 || x == 0.0 {
            return poisson_pmf(h.into(), x);
        }
        let h = f64::from(h);
        libm::exp(-p * x - h * libm::log1p(-p) + ln_gamma_p(h, x * (1.0 - p)))
    }

    /// `f_0(x)` to `f_(h+1)(x)`.
    pub fn loads(&self, x: f64) -> Vec<f64> {
        let mut loads: Vec<f64> = (0..u64::from(self.h)).map(|i| poisson_pmf(i, x)).collect();
        loads.push(self.at_threshold(x));
        let others: f64 = loads.iter().sum();
        loads.push((1.0 - others).max(0.0));
        loads
    }

    /// The same from the differential equations, in `steps` steps.
    pub fn loads_by_ode(&self, x: f64, steps: usize) -> Vec<f64> {
        let Self { h, p } = *self;
        let h = h as usize;
        let mut loads = vec![0.0; h + 2];
        loads[0] = 1.0;
        let derivative = |_: f64, f: &[f64], slope: &mut [f64]| {
            // The flow out of every load; there is none out of h + 1.
            let mut into = 0.0;
            for (i, slope) in slope.iter_mut().enumerate() {
                let pace = [1.0, p, 0.0][usize::from(i >= h) + usize::from(i > h)];
                *slope = into - pace * f[i];
                into = pace * f[i];
            }
        };
        rk4(derivative, &mut loads, 0.0, x, steps);
        loads
    }

    /// The chance that a block refuses a key: `(1 - p) f_h + f_(h+1)`, or of other loads with this
    /// threshold.
    pub fn refusal(&self, loads: &[f64]) -> f64 {
        mean_cost(loads, |i| self.refused(i))
    }

    /// The chance that a block with this load refuses a key.
    pub fn refused(&self, load: usize) -> f64 {
        match load.cmp(&(self.h as usize)) {
            Ordering::Less => 0.0,
            Ordering::Equal => 1.0 - self.p,
            Ordering::Greater => 1.0,
        }
    }

    /// The share of the keys that found no place with one choice: `1 - sum i f_i / x`.
    pub fn overflow(&self, x: f64) -> f64 {
        1.0 - mean_cost(&self.loads(x), |i| i as f64) / x
    }
}

/// SEQUENTIAL: the share of n keys that are placed or listed after a n looks.
pub fn sequential_time(single: &Single, a: f64, d: u32, r: f64) -> f64 {
    const PANELS: u32 = 100;
    let slope = |u: f64| {
        let q = if u == 0.0 { 0.0 } else { single.refusal(&single.loads(r * u)) };
        1.0 / powers(q, d)
    };
    // Simpson's rule.
    let half = a / f64::from(2 * PANELS);
    let inner: f64 =
        (1..2 * PANELS).map(|i| f64::from(2 + 2 * (i % 2)) * slope(f64::from(i) * half)).sum();
    (slope(0.0) + inner + slope(a)) * half / 3.0
}

/// SEQUENTIAL: the smallest gamma at which a looks per key reach the bound.
pub fn sequential_least_overflow(a: f64, d: u32, r: f64) -> Option<f64> {
    let excess = |gamma: f64| {
        let single = Single::reaching(&Bound::new(r, a, gamma), a * r);
        single.map_or(f64::NAN, |single| sequential_time(&single, a, d, r) - 1.0)
    };
    bisect(excess, 1e-12, 0.5, 1e-10)
}

/// MHT: the share q that every subtable refuses when a key looks at a blocks on average: 1 + q +
/// ... + q^(d-1) = a.
pub fn mht_share(a: f64, d: u32) -> Option<f64> {
    bisect(|q| powers(q, d) - a, 0.0, 1.0, 0.0)
}

/// MHT: the smallest gamma at which a looks per key reach the bound, q^d.
pub fn mht_least_overflow(a: f64, d: u32) -> Option<f64> {
    mht_share(a, d).map(|q| libm::pow(q, d.into()))
}

/// MHT inside its region, where more keys may be listed than must be: a share gamma. Returns the
/// share q that every subtable refuses, and the share `t_0` of the keys that look at blocks before
/// all a n looks are spent. The others are listed without a look.
///
/// From the proof of Theorem 5: q = 1 - (1 - gamma) / a, because subtables end with (1 - gamma) n
/// keys after a n looks, and `t_0` = (1 - gamma) / (1 - q^d). On the boundary `t_0` = 1. `None`
/// outside. Filters here have no such budget: a lookup would miss keys that were listed without a
/// look (notes, erratum 13). Tested by `access_budget`, and by the report with keys that are
/// thrown.
pub fn mht_budget(a: f64, gamma: f64, d: u32) -> Option<(f64, f64)> {
    let q = 1.0 - (1.0 - gamma) / a;
    let looking = (1.0 - gamma) / (1.0 - libm::pow(q, d.into()));
    (q > 0.0 && looking <= 1.0 + 1e-9).then_some((q, looking.min(1.0)))
}

/// phi(0) to phi(most): E[(S / bits)^k], S the distinct bits after k i throws.
pub fn block_rates(bits: u32, hashes: u32, most: usize) -> Vec<f64> {
    let powers: Vec<f64> =
        (0..=bits).map(|s| libm::pow(f64::from(s) / f64::from(bits), hashes.into())).collect();
    let mut occupancy = Occupancy::new(bits as usize);
    let mut rates = Vec::with_capacity(most + 1);
    for _ in 0..=most {
        rates.push(occupancy.expect(|s| powers[s]));
        occupancy.throw_balls(hashes.into());
    }
    rates
}

/// The paper's phi: (1 - e^(-k i / bits))^k. It is lower than the exact one by up to 0.12 in
/// log10.
pub fn approximate_block_rate(bits: u32, hashes: u32, load: usize) -> f64 {
    let (bits, k) = (f64::from(bits), f64::from(hashes));
    libm::pow(-libm::expm1(-k * load as f64 / bits), k)
}

/// What the lookup of an absent key meets in a filter whose blocks all have these loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbsentKey {
    /// The rate.
    pub rate: f64,
    /// The paper's union bound of it.
    pub bound: f64,
    /// The chance that a block refuses, rho.
    pub refused: f64,
    /// Blocks read.
    pub blocks: f64,
    /// The chance that the list is consulted.
    pub list: f64,
}

impl AbsentKey {
    /// For `d` choices, with phi for every load.
    pub fn new(loads: &[f64], single: &Single, phi: &[f64], d: u32) -> Self {
        let found = mean_cost(loads, |i| phi[i]);
        let rho = single.refusal(loads);
        let on = mean_cost(loads, |i| single.refused(i) * (1.0 - phi[i]));
        Self {
            rate: found * powers(on, d),
            bound: found * powers(rho, d),
            refused: rho,
            blocks: powers(on, d),
            list: libm::pow(on, d.into()),
        }
    }
}

/// Appendix C: the variance of the load of a block.
pub fn load_variance(loads: &[f64]) -> f64 {
    let mean = mean_cost(loads, |i| i as f64);
    mean_cost(loads, |i| (i as f64 - mean) * (i as f64 - mean))
}

/// Appendix C, corrected: mean and variance of the elements that a search for an absent key scans
/// in a chained hash table. (The appendix gives the variance of one bucket's load, but such a
/// search goes on to further buckets.)
pub fn scanned(loads: &[f64], single: &Single, d: u32) -> (f64, f64) {
    let load = mean_cost(loads, |i| i as f64);
    let square = mean_cost(loads, |i| (i * i) as f64);
    let rho = single.refusal(loads);
    let refused_load = mean_cost(loads, |i| i as f64 * single.refused(i));
    let (mut mean, mut second) = (0.0, 0.0);
    for _ in 0..d {
        second = square + 2.0 * refused_load * mean + rho * second;
        mean = load + rho * mean;
    }
    (mean, second - mean * mean)
}
