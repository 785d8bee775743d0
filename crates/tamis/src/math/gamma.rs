//! Gamma and beta functions: logarithms of factorials and binomials, and the regularised
//! incomplete functions with their logarithms.
//!
//! Each incomplete function is a saddle-point term times a correction of moderate size. It is
//! computed on the side of the mode that has the smaller tail; the other tail is its complement.
//! Far from the mode the correction is a short series or continued fraction; near the mode of a
//! large distribution it is an integral.

use super::legendre::bell_integral;
use super::saddle::{ln_binomial_term, ln_poisson_term, stirling_error};

/// Distributions whose smaller parameter is below this need few terms even at the mode.
const LARGE: f64 = 300.0;
/// The longest series that is still faster than the integral.
const LONG_SERIES: f64 = 150.0;
/// From this many standard deviations on, continued fractions are faster than the integral.
const FAR: f64 = 2.0;
/// A limit on every loop: about ten times what the slowest argument in the domain needs.
const MAX_TERMS: u32 = 2000;
const LN_2PI: f64 = 1.83787706640934548356065947281;

/// ln of the binomial coefficient `n` over `k`, for every `n`; minus infinity if `k` > `n`.
///
/// All large parts are positive, so nothing cancels. The error is a few units in the last place of
/// the result: below 1e-10 while the result is below 1e5.
pub fn ln_choose(n: u64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    let few = k.min(n - k);
    if few == 0 {
        return 0.0;
    }
    let (total, a, b) = (n as f64, few as f64, (n - few) as f64);
    a * libm::log(total / a) - b * libm::log1p(-a / total)
        + (stirling_error(total) - stirling_error(a) - stirling_error(b))
        - 0.5 * (LN_2PI + libm::log(a) + libm::log1p(-a / total))
}

/// ln P(a, x) for finite a > 0 and x >= 0, NaN elsewhere. The relative error of P is below 1e-10
/// for 1 <= a <= 1e10 and P >= 1e-300, and grows with |ln P| below.
pub fn ln_gamma_p(a: f64, x: f64) -> f64 {
    smaller_gamma(a, x).lower()
}

/// ln I(x; a, b). The caller passes `y` = 1 - x, because it may know y to more digits than x
/// holds.
pub fn ln_beta_lower(a: f64, b: f64, x: f64, y: f64) -> f64 {
    smaller_beta(a, b, x, y).lower()
}

/// The logarithm of the tail that was computed; the other one is its complement.
pub enum Tail {
    /// The logarithm of P or I.
    Lower(f64),
    /// The logarithm of the complement.
    Upper(f64),
}

impl Tail {
    fn lower(&self) -> f64 {
        match *self {
            Tail::Lower(ln) => ln,
            Tail::Upper(ln) => ln_complement(ln),
        }
    }
}

/// ln(1 - exp(ln)). Rounding may leave `ln` slightly above 0; it counts as 0 then.
pub fn ln_complement(ln: f64) -> f64 {
    if ln < -core::f64::consts::LN_2 {
        libm::log1p(-libm::exp(ln))
    } else if ln >= 0.0 {
        f64::NEG_INFINITY
    } else {
        libm::log(-libm::expm1(ln))
    }
}

/// The smaller of ln P(a, x) and ln Q(a, x); see [`ln_gamma_p`].
pub fn smaller_gamma(a: f64, x: f64) -> Tail {
    if !(a > 0.0 && a < f64::INFINITY && x >= 0.0) {
        return Tail::Lower(f64::NAN);
    }
    if x == 0.0 {
        return Tail::Lower(f64::NEG_INFINITY);
    }
    if x == f64::INFINITY {
        return Tail::Upper(f64::NEG_INFINITY);
    }
    let ln_term = ln_poisson_term(a, x);
    if x < a + 1.0 {
        Tail::Lower(ln_term + libm::log(lower_gamma_ratio(a, x)))
    } else {
        Tail::Upper(ln_term + libm::log(upper_gamma_ratio(a, x)))
    }
}

/// P(a, x) divided by its saddle-point term, for x below about a.
fn lower_gamma_ratio(a: f64, x: f64) -> f64 {
    // The n-th term is about exp(-n d / a - n^2 / 2a); this n takes it below exp(-36).
    let d = (a - x).max(0.0);
    let terms = 72.0 * a / (d + libm::sqrt(d * d + 72.0 * a));
    if terms > LONG_SERIES && a > LARGE {
        let n = a - 1.0;
        return a / x * bell_integral(n / x - 1.0, n / (x * x), x, |s| n * libm::log1p(-s / x) + s);
    }
    let mut sum = 1.0;
    let mut term = 1.0;
    let mut denominator = a;
    for _ in 0..MAX_TERMS {
        denominator += 1.0;
        term *= x / denominator;
        sum += term;
        if term < sum * f64::EPSILON {
            break;
        }
    }
    sum
}

/// Q(a, x) divided by its saddle-point term, for x above about a.
fn upper_gamma_ratio(a: f64, x: f64) -> f64 {
    if a > LARGE && x - a < FAR * libm::sqrt(a) {
        let n = a - 1.0;
        return a / x
            * bell_integral(1.0 - n / x, n / (x * x), f64::INFINITY, |s| {
                n * libm::log1p(s / x) - s
            });
    }
    let first = x - a + 1.0;
    a / fraction(first, |m| (m * (a - m), first + 2.0 * m))
}

fn smaller_beta(a: f64, b: f64, x: f64, y: f64) -> Tail {
    let in_domain = a > 0.0 && b > 0.0 && a + b < f64::INFINITY && x >= 0.0 && y >= 0.0;
    if !in_domain {
        return Tail::Lower(f64::NAN);
    }
    if x == 0.0 {
        return Tail::Lower(f64::NEG_INFINITY);
    }
    if y == 0.0 {
        return Tail::Upper(f64::NEG_INFINITY);
    }
    let ln_term = ln_binomial_term(a, b, x, y);
    if (a + 1.0) * y > (b + 1.0) * x {
        Tail::Lower(ln_term + libm::log(lower_beta_ratio(a, b, x, y)))
    } else {
        Tail::Upper(ln_term + libm::log(lower_beta_ratio(b, a, y, x)))
    }
}

/// I(x; a, b) divided by its saddle-point term, for x below about a / (a + b).
fn lower_beta_ratio(a: f64, b: f64, x: f64, y: f64) -> f64 {
    // a - (a + b) x, computed so that the smaller of x and y keeps its digits.
    let d = a * y - b * x;
    let n = a + b;
    let weight = a * (b / n);
    if a.min(b) > LARGE && d < FAR * libm::sqrt(n * x * y) {
        let (a1, b1) = (a - 1.0, b - 1.0);
        // In units of y the integrand stays in range when y is tiny: s = y u.
        let odds = y / x;
        let integral = bell_integral(a1 * odds - b1, a1 * odds * odds + b1, 1.0 / odds, |u| {
            a1 * libm::log1p(-u * odds) + b1 * libm::log1p(u)
        });
        return weight / x * integral;
    }
    let first = a * (d + 1.0) / (a + 1.0);
    let coefficients = |m: f64| {
        let odd = a + 2.0 * m - 1.0;
        let step = m * (b - m) * x / odd;
        let numerator = (a + m - 1.0) * (n + m - 1.0) * step * x / odd;
        let denominator = m + step + (a + m) * (d + 1.0 + m * (1.0 + y)) / (odd + 2.0);
        (numerator, denominator)
    };
    weight / fraction(first, coefficients)
}

/// The continued fraction first + p(1) / (q(1) + p(2) / (q(2) + ...)), in Lentz's forward form.
fn fraction(first: f64, coefficients: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut value = first;
    let mut c = first;
    let mut d = 0.0;
    let mut m = 0.0;
    for _ in 0..MAX_TERMS {
        m += 1.0;
        let (p, q) = coefficients(m);
        d = 1.0 / (q + p * d);
        c = q + p / c;
        let factor = c * d;
        value *= factor;
        if libm::fabs(factor - 1.0) < 2.0 * f64::EPSILON {
            break;
        }
    }
    value
}
