//! The model of blocked rank-indexed filters: which share of the keys lives in the back table.
//!
//! | symbol | meaning |
//! |---|---|
//! | n | keys |
//! | m | blocks |
//! | L | chain locations of a block |
//! | Z | cells of a block |
//! | lambda | keys for each block, n / m |
//! | N | keys of a block, a Poisson number with mean lambda if there are many blocks |
//! | N(l) | those of them at locations up to l, l included |
//!
//! A block keeps the runs of the lowest locations, as long as they fit into its Z cells. So a key
//! at location l lives in the back table if and only if N(l) > Z. N(l) counts the key itself, so
//! this means that Z or more other keys are at locations up to l.

use crate::math::tail::{poisson_above, poisson_pmf};

/// The share of keys that live in the back table: the mean over l of
/// `P(Poisson(lambda (l+1) / L) >= Z)`.
///
/// This is SINGLE of paper 001 with threshold Z, except that not the latest keys overflow but
/// those at the highest locations.
pub fn behind(lambda: f64, locations: u32, cells: u32) -> f64 {
    Above::new(lambda, cells.into()).mean_over(locations, 0.5)
}

/// The share of absent keys that are looked up in the back table: their location is there, and
/// has keys. A location without keys is in no table.
pub fn absent_behind(lambda: f64, locations: u32, cells: u32) -> f64 {
    let above = Above::new(lambda, u64::from(cells) + 1);
    let with_own = above.mean_over(locations, 0.5);
    let without = above.mean_over(locations, -0.5);
    with_own - libm::exp(-lambda / f64::from(locations)) * without
}

/// The keys for each block of which the share `share` lives in the back table, to a thousandth.
pub(super) fn load_behind(share: f64, locations: u32, cells: u32) -> f64 {
    let (h, all) = (1.0 / f64::from(locations), f64::from(cells));
    let mut load = all;
    // Newton's steps on the logarithm. The slope leaves out the last term of the mean.
    for _ in 0..4 {
        let above = Above::new(load, cells.into());
        let told = above.mean_over(locations, 0.5);
        let slope = (above.at_least - told) / load + 0.5 * h * above.term;
        let step = told / slope * libm::log(share / told);
        load = (load + step).clamp(0.5 * all, 1.5 * all);
        if libm::fabs(step) < 1e-3 * all {
            break;
        }
    }
    load
}

/// The share of insertions that touch the back table.
///
/// These are keys that belong there, and keys that push the highest run out of a full block. A
/// block to which at least Z keys came is full if the locations up to some location have exactly Z
/// cells. Runs have a mean length of a / (1 - e^-a) with a = lambda / L, so the sum hits Z with
/// the chance (1 - e^-a) / a. Accurate to a tenth.
pub fn touching_inserts(lambda: f64, locations: u32, cells: u32) -> f64 {
    let a = lambda / f64::from(locations);
    let hits = if a > 0.0 { -libm::expm1(-a) / a } else { 1.0 };
    let elsewhere = behind(lambda, locations, cells);
    let full = poisson_above(u64::from(cells) - 1, lambda) * hits;
    elsewhere + (1.0 - elsewhere) * full
}

/// How far a Poisson number goes beyond `least`.
struct Above {
    lambda: f64,
    /// The mean of what is above `least`.
    excess: f64,
    /// P(N >= `least`).
    at_least: f64,
    /// P(N = `least` - 1).
    term: f64,
}

impl Above {
    /// For the mean `lambda`, and `least` from 1 on.
    fn new(lambda: f64, least: u64) -> Self {
        if lambda <= 0.0 {
            return Self { lambda: 1.0, excess: 0.0, at_least: 0.0, term: 0.0 };
        }
        let k = least as f64;
        let (above, here) = (poisson_above(least, lambda), poisson_pmf(least, lambda));
        let at_least = above + here;
        Self { lambda, excess: lambda * at_least - k * above, at_least, term: here * k / lambda }
    }

    /// The mean over l of P(N(l) >= `least`), where N(l) has the mean lambda (l + 1/2 + `shift`) /
    /// L.
    ///
    /// The mean over all x up to lambda of P(Poisson(x) >= k) is E(max(N - k, 0)) / lambda. The
    /// sum over locations takes the probabilities half a location higher or lower than their
    /// means; two terms of Euler and Maclaurin correct for that.
    fn mean_over(&self, locations: u32, shift: f64) -> f64 {
        let h = 1.0 / f64::from(locations);
        let mean = self.excess / self.lambda
            + shift * h * self.at_least
            + h * h / 12.0 * self.lambda * self.term;
        mean.clamp(0.0, 1.0)
    }
}

/// How many keys are expected in the back table of `blocks` blocks, if keys come to blocks in
/// clumps of the mean size `clump`. They are as uneven as fewer keys in blocks with fewer cells.
pub(super) fn expected_behind(
    (blocks, locations, cells): (u64, u32, u32),
    keys: f64,
    clump: f64,
) -> f64 {
    let cells = libm::round(f64::from(cells) / clump).max(1.0) as u32;
    behind(keys / blocks as f64 / clump, locations, cells) * keys
}

/// How many keys a table is laid out for where `expected` keys are expected: `deviations` standard
/// deviations of a Poisson number more. (The true deviation is larger, because several keys leave
/// a block together.)
pub(super) fn with_margin(expected: f64, deviations: f64) -> f64 {
    expected + deviations * libm::sqrt(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_over_locations_are_sums() {
        for (locations, cells) in [(64_u32, 49_u32), (64, 64), (40, 20), (7, 12), (1200, 800)] {
            for load in [0.3, 0.7, 0.9, 1.0, 1.1, 1.5] {
                let lambda = load * f64::from(cells);
                let sum = |least: u64, plus: u32| {
                    let all = f64::from(locations);
                    let mean = |l: u32| lambda * f64::from(l + plus) / all;
                    (0..locations).map(|l| poisson_above(least - 1, mean(l))).sum::<f64>() / all
                };
                let (cells, exact) = (u64::from(cells), sum(cells.into(), 1));
                let told = behind(lambda, locations, cells as u32);
                assert!((told - exact).abs() < 1e-4 + 2e-3 * exact, "{told} {exact}");
                let empty = libm::exp(-lambda / f64::from(locations));
                let exact = sum(cells + 1, 1) - empty * sum(cells + 1, 0);
                let told = absent_behind(lambda, locations, cells as u32);
                assert!((told - exact).abs() < 1e-4 + 2e-3 * exact, "{told} {exact}");
            }
        }
    }

    #[test]
    fn loads_are_found() {
        for (locations, cells) in [(64_u32, 49_u32), (64, 64), (40, 20), (7, 12), (1200, 800)] {
            for share in [0.01, 0.03, 0.1] {
                let told = behind(load_behind(share, locations, cells), locations, cells);
                assert!((told / share - 1.0).abs() < 0.01, "{locations} {cells}: {told} {share}");
            }
        }
    }
}
