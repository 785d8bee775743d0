//! Poisson and binomial probabilities and tails, in log space and as plain values.
//!
//! For means from 1e-6 to 1e7, up to 1e10 trials and p from 1e-12 to 1 - 1e-12 the relative error
//! of a probability is below 1e-9 for probabilities down to 1e-40, and grows with |ln| below that.
//! A tail costs some tens of terms, wherever it lies. The functions that return plain values
//! underflow to 0 below 1e-308.

use super::gamma::{ln_beta_lower, ln_gamma_p};
use super::saddle::{ln_binomial_term, ln_poisson_term};

/// ln `Pr[X = k]` for X Poisson with this mean >= 0; NaN for a negative mean.
pub fn ln_poisson_pmf(k: u64, mean: f64) -> f64 {
    if mean > 0.0 && mean < f64::INFINITY {
        ln_poisson_term(k as f64, mean)
    } else if mean == 0.0 && k == 0 {
        0.0
    } else if mean >= 0.0 {
        f64::NEG_INFINITY
    } else {
        f64::NAN
    }
}

/// ln `Pr[X > k]` for X Poisson with this mean >= 0; NaN for a negative mean.
pub fn ln_poisson_above(k: u64, mean: f64) -> f64 {
    ln_gamma_p(k as f64 + 1.0, mean)
}

/// ln `Pr[X = k]` for X binomial with n trials of probability p; NaN for p outside [0, 1].
pub fn ln_binomial_pmf(n: u64, p: f64, k: u64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if k > n {
        return f64::NEG_INFINITY;
    }
    // A sure failure or a sure success leaves one outcome.
    if p <= 0.0 {
        return if k == 0 { 0.0 } else { f64::NEG_INFINITY };
    }
    if p >= 1.0 {
        return if k == n { 0.0 } else { f64::NEG_INFINITY };
    }
    ln_binomial_term(k as f64, (n - k) as f64, p, 1.0 - p)
}

/// ln `Pr[X > k]` for X binomial with n trials of probability p; NaN for p outside [0, 1].
pub fn ln_binomial_above(n: u64, p: f64, k: u64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        f64::NAN
    } else if k >= n {
        f64::NEG_INFINITY
    } else {
        ln_beta_lower(k as f64 + 1.0, (n - k) as f64, p, 1.0 - p)
    }
}

/// `Pr[X = k]`; see [`ln_poisson_pmf`].
pub fn poisson_pmf(k: u64, mean: f64) -> f64 {
    libm::exp(ln_poisson_pmf(k, mean))
}

/// `Pr[X > k]`; see [`ln_poisson_above`].
pub fn poisson_above(k: u64, mean: f64) -> f64 {
    libm::exp(ln_poisson_above(k, mean))
}

/// `Pr[X = k]`; see [`ln_binomial_pmf`].
pub fn binomial_pmf(n: u64, p: f64, k: u64) -> f64 {
    libm::exp(ln_binomial_pmf(n, p, k))
}

/// `Pr[X > k]`; see [`ln_binomial_above`].
pub fn binomial_above(n: u64, p: f64, k: u64) -> f64 {
    libm::exp(ln_binomial_above(n, p, k))
}
