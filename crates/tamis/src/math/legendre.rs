//! The one-sided integral of a bell-shaped density, by a fixed Gauss-Legendre rule.
//!
//! Near the mode of a large gamma or beta distribution, series and continued fractions need more
//! terms the larger the standard deviation is. There the density is so close to a normal one that
//! a fixed rule over the part that matters is exact up to rounding.

/// Positive nodes and weights of the 24-point rule on [-1, 1]; the negative half mirrors them.
const RULE: [(f64, f64); 12] = [
    (0.9951872199970213, 0.0123412297999872),
    (0.9747285559713095, 0.028531388628933663),
    (0.9382745520027328, 0.04427743881741981),
    (0.8864155270044011, 0.05929858491543678),
    (0.820001985973903, 0.0733464814110803),
    (0.7401241915785544, 0.08619016153195327),
    (0.6480936519369755, 0.09761865210411388),
    (0.5454214713888396, 0.10744427011596563),
    (0.4337935076260451, 0.1155056680537256),
    (0.3150426796961634, 0.12167047292780339),
    (0.1911188674736163, 0.1258374563468283),
    (0.06405689286260563, 0.12793819534675216),
];

/// The integral ends where the exponent has fallen by this much: exp(-40) is 4e-18.
const DEPTH: f64 = 40.0;

/// Integral of exp(`exponent`(s)) for s from 0 to `limit`, where `exponent` starts at 0 and falls
/// about like `-rate * s - curvature * s^2 / 2`.
pub(super) fn bell_integral(
    rate: f64,
    curvature: f64,
    limit: f64,
    exponent: impl Fn(f64) -> f64,
) -> f64 {
    let visible = 2.0 * DEPTH / (rate + libm::sqrt(rate * rate + 2.0 * DEPTH * curvature));
    let half = 0.5 * visible.min(limit);
    let mut sum = 0.0;
    for (node, weight) in RULE {
        let near = libm::exp(exponent(half * (1.0 - node)));
        let far = libm::exp(exponent(half * (1.0 + node)));
        sum += weight * (near + far);
    }
    half * sum
}
