//! Confidence intervals for a measured rate, the normal quantile, and the complements of the
//! library's tails and incomplete functions.
//!
//! As in the library, every transcendental function is that of `libm`, and no function panics: an
//! argument outside the stated domain gives NaN or a documented value. Tested by
//! `tests/library/math.rs` of the testkit.

use tamis::internals::math::gamma::{
    Tail, ln_beta_lower, ln_complement, ln_gamma_p, smaller_gamma,
};

use crate::papers::solve::bisect;

/// The Clopper-Pearson interval for the success probability after `successes` of `trials`: it
/// contains the true probability with at least this `confidence`. The relative error is below 1e-9
/// for up to 1e10 trials. Without trials it is (0, 1). More successes than trials, or a confidence
/// outside 0 to 1, give NaN twice.
pub fn exact_interval(successes: u64, trials: u64, confidence: f64) -> (f64, f64) {
    if successes > trials || !(0.0..=1.0).contains(&confidence) {
        return (f64::NAN, f64::NAN);
    }
    let miss = 0.5 * (1.0 - confidence);
    if trials == 0 || miss == 0.0 {
        return (0.0, 1.0);
    }
    let failures = trials - successes;
    let low = if successes == 0 { 0.0 } else { logistic(lower_logit(successes, failures, miss)) };
    let high = if failures == 0 { 1.0 } else { logistic(-lower_logit(failures, successes, miss)) };
    (low, high)
}

/// The log-odds of the probability at which `hits` hits or more have the chance `miss`. It is
/// solved for the log-odds, so that rates near 0 and near 1 keep their digits.
fn lower_logit(hits: u64, others: u64, miss: f64) -> f64 {
    let (a, b) = (hits as f64, others as f64 + 1.0);
    let ln_miss = libm::log(miss);
    let excess = |t: f64| ln_beta_lower(a, b, logistic(t), logistic(-t)) - ln_miss;
    // No solution for u64 trials and a miss of 1e-16 is near either end.
    bisect(excess, -300.0, 300.0, 1e-12).unwrap_or(f64::NAN)
}

fn logistic(t: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-t))
}

/// The z with `Pr[N(0, 1) <= z]` = p, for every p in [0, 1] and infinite at its ends; NaN
/// elsewhere. Relative error below 1e-12.
pub fn normal_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    let tail = p.min(1.0 - p);
    if tail == 0.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    let z = if tail > 0.25 { central_quantile(0.5 - tail) } else { tail_quantile(tail) };
    if p < 0.5 { -z } else { z }
}

const SQRT_2PI: f64 = 2.5066282746310007;

/// The z >= 0 with `Pr[0 < N <= z]` = mass. The integral is concave in z, so Newton's steps from 0
/// climb to the root without passing it.
fn central_quantile(mass: f64) -> f64 {
    let mut z = 0.0;
    for _ in 0..8 {
        let reached = 0.5 * libm::erf(z * core::f64::consts::FRAC_1_SQRT_2);
        z += (mass - reached) * SQRT_2PI * libm::exp(0.5 * z * z);
    }
    z
}

/// The z > 0 with `Pr[N > z]` = tail. The logarithm of the tail is concave in z, so Newton's steps
/// from the right descend to the root without passing it.
fn tail_quantile(tail: f64) -> f64 {
    let ln_tail = libm::log(tail);
    let mut z = libm::sqrt(-2.0 * ln_tail);
    for _ in 0..8 {
        let half_square = 0.5 * z * z;
        let ln_reached = ln_gamma_q(0.5, half_square) - core::f64::consts::LN_2;
        let mills = SQRT_2PI * libm::exp(ln_reached + half_square);
        z += (ln_reached - ln_tail) * mills;
    }
    z
}

/// Lower regularised incomplete gamma function P(a, x); see [`ln_gamma_p`].
pub fn gamma_p(a: f64, x: f64) -> f64 {
    libm::exp(ln_gamma_p(a, x))
}

/// Upper regularised incomplete gamma function Q(a, x); see [`ln_gamma_q`].
pub fn gamma_q(a: f64, x: f64) -> f64 {
    libm::exp(ln_gamma_q(a, x))
}

/// ln Q(a, x) for finite a > 0 and x >= 0, NaN elsewhere. As accurate as [`ln_gamma_p`]; for a
/// below 1 a small Q at small x is a complement and loses digits in proportion to 1 / a.
pub fn ln_gamma_q(a: f64, x: f64) -> f64 {
    match smaller_gamma(a, x) {
        Tail::Lower(ln) => ln_complement(ln),
        Tail::Upper(ln) => ln,
    }
}

/// Regularised incomplete beta function I(x; a, b); see [`ln_beta_i`].
pub fn beta_i(a: f64, b: f64, x: f64) -> f64 {
    libm::exp(ln_beta_i(a, b, x))
}

/// ln I(x; a, b) for finite a, b > 0 and 0 <= x <= 1, NaN elsewhere. The relative error of I is
/// below 1e-9 for a, b from 1 to 1e10 and I >= 1e-300, and grows with |ln I| below.
pub fn ln_beta_i(a: f64, b: f64, x: f64) -> f64 {
    ln_beta_lower(a, b, x, 1.0 - x)
}

/// ln `Pr[X <= k]` for X Poisson with this mean >= 0; NaN for a negative mean.
pub fn ln_poisson_at_most(k: u64, mean: f64) -> f64 {
    ln_gamma_q(k as f64 + 1.0, mean)
}

/// ln `Pr[X <= k]` for X binomial with n trials of probability p; NaN for p outside [0, 1].
pub fn ln_binomial_at_most(n: u64, p: f64, k: u64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        f64::NAN
    } else if k >= n {
        0.0
    } else {
        ln_beta_lower((n - k) as f64, k as f64 + 1.0, 1.0 - p, p)
    }
}

/// `Pr[X <= k]`; see [`ln_poisson_at_most`].
pub fn poisson_at_most(k: u64, mean: f64) -> f64 {
    libm::exp(ln_poisson_at_most(k, mean))
}

/// `Pr[X <= k]`; see [`ln_binomial_at_most`].
pub fn binomial_at_most(n: u64, p: f64, k: u64) -> f64 {
    libm::exp(ln_binomial_at_most(n, p, k))
}
