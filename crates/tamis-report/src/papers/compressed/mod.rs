//! Paper 004, Mitzenmacher, "Compressed Bloom Filters", IEEE/ACM Transactions on Networking 2002:
//! the formulas that plans do not need.
//!
//! The symbols are those of `traffic/model.rs` in the library, which has the sizes of messages,
//! and of `compressed/optimise.rs`, which has the lowest rate for a size. The tests named below
//! are in `tests/library/papers_compressed.rs` and `tests/library/optimise_compressed.rs` of the
//! testkit.

mod sorted_list;

use tamis::internals::bloom::model::rate as exact_rate;
use tamis::internals::compressed::model::{Shape, entropy};
use tamis::internals::compressed::optimise::{Choice, Demand, Margin};
use tamis::internals::math::solve::first_true;

pub use sorted_list::SortedList;

/// The paper's rule (section III): the entropy is at most 0.99 of the limit. This is enough from
/// about ten thousand keys on: for fewer it is too little, for many more it is more than needed.
pub const MARGIN: Margin = Margin::Share(0.99);

/// p = e^(-kn/m), as printed (section II-A): the limit of [`Shape::exact_zeros`]. The exact share
/// is lower by x / 2m in proportion. Tested by `limits`.
pub fn zeros(shape: &Shape) -> f64 {
    libm::exp(-shape.load())
}

/// Theorem 1, as printed (appendix): Pr[|X - mp| > epsilon m] < 2 e^(-epsilon^2 m^2 / 2nk), X
/// being the number of zeros. It holds around the exact mean, m times [`Shape::exact_zeros`]; the
/// martingale of the proof must be the expected number given the first hashes, not the number so
/// far, which only falls (notes, erratum C). It holds for every epsilon, but is weak: at five
/// standard deviations of a filter of 140,000 bits it is 0.99, where the chance is about 10^-6.
/// Tested by `theorem_one`.
pub fn zeros_bound(shape: &Shape, epsilon: f64) -> f64 {
    let away = epsilon * shape.positions as f64;
    2.0 * libm::exp(-away * away / (2.0 * shape.throws() as f64))
}

/// Bits of the counters in unary, a one for each count and a zero behind them: m (1 + x). It is
/// not in the paper but in the notes, section 2.5: it is the Huffman code where x = ln 2. Exact
/// for every m and n. Tested by `counting_filters`.
pub fn unary_bits(shape: &Shape) -> f64 {
    shape.positions as f64 * (1.0 + shape.load())
}

/// beta = f^(n/z) = e^(-ln p ln(1-p) / H(p)), as printed (2): the rate that a bit of message for
/// each key buys. It is largest at p = 1/2 (0.6185) and falls slowly to 1/2 at both ends: 0.596 at
/// 0.9, 0.546 at 0.999. For 0 < p < 1. Tested by `limits`.
pub fn beta(zeros: f64) -> f64 {
    libm::exp(-libm::log(zeros) * libm::log1p(-zeros) / entropy(zeros))
}

/// gamma = p / ln(1-p) + (1-p) / ln p, as printed below (2), with beta = 2^(1/gamma): least at p =
/// 1/2 (-1.4427), -1 at both ends. For 0 < p < 1. Tested by `limits`.
pub fn gamma(zeros: f64) -> f64 {
    zeros / libm::log1p(-zeros) + (1.0 - zeros) / libm::log(zeros)
}

/// beta for deltas, e^(-ln p ln(1-p) / H(2p(1 - p^c))), as printed (section IV): falls to
/// 2^(-1/2c) as p goes to 1, just as slowly. For 0 < p < 1 and 0 < c <= 1. Tested by `limits`.
pub fn delta_beta(zeros: f64, changed: f64) -> f64 {
    let ones = -2.0 * zeros * libm::expm1(changed * libm::log(zeros));
    libm::exp(-libm::log(zeros) * libm::log1p(-zeros) / entropy(ones))
}

/// z, the entropy of the message of a choice.
pub fn entropy_bits(demand: &Demand, choice: &Choice) -> f64 {
    let Choice { positions, hashes, .. } = *choice;
    Shape { positions, hashes, keys: demand.sized_keys() }.entropy_bits(demand.message)
}

/// The fewest positions whose rate in the limit is `rate`: m = -kn / ln(1 - f^(1/k)).
fn smallest(demand: &Demand, rate: f64, hashes: u32) -> Option<u64> {
    let k = f64::from(hashes);
    let positions = -k * demand.sized_keys() as f64 / libm::log1p(-libm::pow(rate, 1.0 / k));
    let positions = libm::ceil(positions) as u64;
    (positions <= demand.cap()).then_some(positions)
}

/// The shape of the smallest message whose rate is at most `rate`; `None` if there is none, or if
/// a number of `demand` makes no sense.
///
/// Printed (section II-B): fix f and optimise z. Ours: k is chosen with f in the limit, and then a
/// few positions are added, so that the exact rate is met too. Tested by `section_two_three`,
/// `counting_filters`.
pub fn least_bits(demand: &Demand, rate: f64) -> Option<Choice> {
    if !(demand.sensible() && rate > 0.0 && rate < 1.0) {
        return None;
    }
    let shapes = demand.shapes(|hashes| smallest(demand, rate, hashes));
    let mut shapes: Vec<(f64, u64, u32)> = shapes
        .map(|(positions, hashes)| (demand.limit_bits(positions, hashes), positions, hashes))
        .collect();
    shapes.sort_by(|a, b| a.0.total_cmp(&b.0));
    shapes.into_iter().find_map(|(_, positions, hashes)| {
        // With few positions the exact rate can be this far above its limit.
        let most = (2 * positions + 64 * u64::from(hashes)).min(demand.cap());
        let met = |positions| exact_rate(positions, hashes, demand.sized_keys()) <= rate;
        Some(demand.choice(first_true(positions, most, met)?, hashes))
    })
}
