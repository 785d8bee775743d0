//! The number X of occupied bins after t balls fell uniformly and independently into m bins. In a
//! Bloom filter these are the set bits.
//!
//! This file has its moments for any size, and the expectation of (X / m)^k, which is the exact
//! rate of a filter with k independent probes.

use alloc::vec;
use alloc::vec::Vec;

/// [`expected_power`] is exact if there are at most this many bins, or at most this many balls.
/// With more balls the exact computation loses digits to rounding, and the error of the expansion
/// is negligible.
const EXACT_SIZE: u64 = 1 << 20;
const EXACT_PROBES: u32 = 64;
/// From this many balls for each bin on, the chance that any of 64 given bins is empty is below
/// 2e-18.
const FULL_LOAD: u64 = 45;
/// Probabilities below this are dropped: denormal numbers would make the program ten times slower
/// and change nothing.
const NEGLIGIBLE: f64 = 1e-300;

/// `E[X]` = m (1 - (1 - 1/m)^t), for every m and t (0 without bins); relative error 1e-15.
pub fn mean_occupied(m: u64, t: u64) -> f64 {
    if m == 0 || t == 0 {
        return 0.0;
    }
    -(m as f64) * libm::expm1(ln_empty(m, t))
}

/// ln of the chance (1 - 1/m)^t that one given bin stays empty, for m, t >= 1.
fn ln_empty(m: u64, t: u64) -> f64 {
    t as f64 * libm::log1p(-1.0 / m as f64)
}

/// `Var[X]` = m(m-1)(1-2/m)^t + m(1-1/m)^t - m^2 (1-1/m)^(2t), for every m and t; relative error
/// below 1e-12, also where the three parts cancel to their last digits.
pub fn variance_occupied(m: u64, t: u64) -> f64 {
    if m <= 1 || t <= 1 {
        return 0.0;
    }
    let (bins, balls) = (m as f64, t as f64);
    let w = 1.0 / (bins - 1.0);
    let y = -ln_empty(m, t);
    let variance = if y > 1.0 {
        // With (1-2/m)/(1-1/m) = 1 - w and (1-2/m)/(1-1/m)^2 = 1 - w^2.
        let empty = libm::exp(-y);
        let one = -libm::expm1(balls * libm::log1p(-w));
        let two = -libm::expm1(balls * libm::log1p(-w * w));
        bins * empty * (one - bins * empty * two)
    } else {
        // The same with exp(-2y) factored out, and with the terms that are linear in the load
        // cancelled by hand: at a light load only t^2 / 2m is left of terms of size t.
        let z = balls * libm::log1p(-w * w);
        let pairs = exp_beyond_linear(y) - balls * log_short_of_linear(w);
        let triples = exp_beyond_linear(z) - balls * log_short_of_linear(-w * w);
        bins * libm::exp(-2.0 * y) * (pairs + triples / w)
    };
    variance.max(0.0)
}

/// exp(x) - 1 - x.
fn exp_beyond_linear(x: f64) -> f64 {
    if libm::fabs(x) > 1.0 {
        return libm::expm1(x) - x;
    }
    let mut term = 0.5 * x * x;
    let mut sum = term;
    for i in 3..24 {
        term *= x / f64::from(i);
        sum += term;
    }
    sum
}

/// x - ln(1 + x).
fn log_short_of_linear(x: f64) -> f64 {
    if libm::fabs(x) > 0.1 {
        return x - libm::log1p(x);
    }
    let mut power = x * x;
    let mut sum = 0.0;
    for i in 2..20 {
        sum += power / f64::from(i);
        power *= -x;
    }
    sum
}

/// `E[(X / m)^k]`, the chance that k more balls all fall into occupied bins; 1 for k = 0, NaN
/// without bins.
///
/// Exact for k <= 64 where m or t is at most 2^20: the relative error is below t * 1e-15 for
/// results above 1e-280. This takes about k^3 / 6 times log2(t) multiplications. For larger
/// numbers it is the second-order expansion about the mean, whose relative error is about k^4 / 32
/// m^2 + k^3 / 12 m t. Where the expansion takes over, that is below 1e-6 for k = 64 and below
/// 1e-8 for k = 20.
pub fn expected_power(m: u64, t: u64, k: u32) -> f64 {
    if k == 0 {
        return 1.0;
    }
    if m == 0 {
        return f64::NAN;
    }
    if t == 0 {
        return 0.0;
    }
    if m.min(t) > EXACT_SIZE || k > EXACT_PROBES {
        return expanded_power(m, t, k);
    }
    if t / m >= FULL_LOAD {
        return 1.0;
    }
    exact_powers(m, t, k)[k as usize]
}

/// [`expected_power`] for 0 to k balls; all of them take hardly longer than the last.
pub fn expected_powers(m: u64, t: u64, k: u32) -> Vec<f64> {
    if m == 0 || t == 0 || m.min(t) > EXACT_SIZE || k > EXACT_PROBES || t / m >= FULL_LOAD {
        return (0..=k).map(|k| expected_power(m, t, k)).collect();
    }
    exact_powers(m, t, k)
}

/// For 0 to k probes: the chance that all fall into occupied bins, for m, t >= 1.
fn exact_powers(m: u64, t: u64, k: u32) -> Vec<f64> {
    // The probes fall into x distinct bins, at most m, and each of these must have been hit.
    let most = u64::from(k).min(m) as usize;
    let all_hit = chance_all_hit(m, t, most);
    let share = 1.0 / m as f64;
    let mut distinct = vec![0.0; most + 1];
    distinct[0] = 1.0;
    let mut low = 0;
    let mut powers = vec![1.0];
    for probes in 1..=k as usize {
        let high = probes.min(most);
        for x in (low + 1..=high).rev() {
            let stay = distinct[x] * x as f64;
            let rise = distinct[x - 1] * (m - (x - 1) as u64) as f64;
            distinct[x] = (stay + rise) * share;
        }
        distinct[low] *= low as f64 * share;
        while low < high && distinct[low] < NEGLIGIBLE {
            distinct[low] = 0.0;
            low += 1;
        }
        powers.push((low..=high).map(|x| distinct[x] * all_hit[x]).sum());
    }
    powers
}

/// For every i from 0 to `most` <= m: the chance that `t` balls hit all of i given bins.
///
/// The formula by inclusion and exclusion would cancel. Instead, a ball hits one of the i bins
/// that are not hit yet with chance i / m, and leaves i - 1. The t-th power of that step is
/// computed by squaring. There is no subtraction, so small chances keep their relative accuracy.
fn chance_all_hit(m: u64, t: u64, most: usize) -> Vec<f64> {
    let width = most + 1;
    // step[i * width + j]: the chance that j of i bins are still to be hit after 1, 2, 4, ...
    // balls.
    let mut step = vec![0.0; width * width];
    step[0] = 1.0;
    for i in 1..width {
        step[i * width + i] = (m - i as u64) as f64 / m as f64;
        step[i * width + i - 1] = i as f64 / m as f64;
    }
    let mut chance = vec![0.0; width];
    chance[0] = 1.0;
    let mut squared = vec![0.0; width * width];
    let mut balls = t;
    loop {
        if balls & 1 == 1 {
            // From the top down, so that the values below are still the old ones.
            for i in (0..width).rev() {
                let row = &step[i * width..=i * width + i];
                chance[i] = row.iter().zip(&chance).map(|(s, c)| s * c).sum();
            }
        }
        balls >>= 1;
        if balls == 0 {
            return chance;
        }
        for i in 0..width {
            let (row, target) = (&step[i * width..], &mut squared[i * width..=i * width + i]);
            target.fill(0.0);
            for middle in 0..=i {
                let from = &step[middle * width..=middle * width + middle];
                for (sum, s) in target.iter_mut().zip(from) {
                    *sum += row[middle] * s;
                }
            }
        }
        core::mem::swap(&mut step, &mut squared);
    }
}

/// `E[(X / m)^k]` to the second order about the mean, for m, t, k >= 1. See [`expected_power`] for
/// its error.
pub fn expanded_power(m: u64, t: u64, k: u32) -> f64 {
    let (mean, k) = (mean_occupied(m, t), f64::from(k));
    let pairs = 0.5 * k * (k - 1.0);
    let fill = -libm::expm1(ln_empty(m, t));
    libm::exp(k * libm::log(fill)) * (1.0 + pairs * variance_occupied(m, t) / (mean * mean))
}

/// The relative standard deviation of (X / m)^k from one filter to the next, to first order: k
/// sd(X) / `E[X]`. It is accurate to 2% while it is below 0.1 and sd(X) above 1, and to 15% for a
/// few balls in many bins. 0 without balls or bins.
pub fn power_spread(m: u64, t: u64, k: u32) -> f64 {
    let mean = mean_occupied(m, t);
    if mean == 0.0 {
        return 0.0;
    }
    f64::from(k) * libm::sqrt(variance_occupied(m, t)) / mean
}
