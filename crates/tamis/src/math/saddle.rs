//! Single Poisson and binomial terms in the saddle-point form of Loader (2000).
//!
//! Written with log-gamma functions, a term is a small difference of huge numbers. Written with
//! the Stirling error and the deviance, it is a sum of parts that are no larger than the result.

const HALF_LN_2PI: f64 = 0.918938533204672741780329736406;

/// `ln_gamma(x + 1)` minus Stirling's `x ln x - x + ln(2 pi x) / 2`, for x > 0.
pub(super) fn stirling_error(x: f64) -> f64 {
    if x < 15.0 {
        return libm::lgamma(x + 1.0) - (x + 0.5) * libm::log(x) + x - HALF_LN_2PI;
    }
    let r = 1.0 / (x * x);
    (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x
}

/// `x ln(x / mean) - (x - mean)`, where the caller passes the difference `d = x - mean`, because
/// it knows more of its digits than the subtraction would leave.
fn deviance(x: f64, mean: f64, d: f64) -> f64 {
    let v = d / (x + mean);
    if libm::fabs(v) >= 0.1 {
        return x * libm::log(x / mean) - d;
    }
    // ln(x / mean) = 2 atanh(v); the linear part cancels against d and is left out of the sum.
    let v2 = v * v;
    let mut power = 2.0 * x * v;
    let mut sum = d * v;
    // v^2 is below 0.01, so nine terms reach the last bit.
    for odd in [3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0, 19.0] {
        power *= v2;
        sum += power / odd;
    }
    sum
}

/// ln of `mean^k exp(-mean) / gamma(k + 1)` for real k >= 0 and finite mean > 0.
pub(super) fn ln_poisson_term(k: f64, mean: f64) -> f64 {
    if k == 0.0 {
        return -mean;
    }
    -stirling_error(k) - deviance(k, mean, k - mean) - HALF_LN_2PI - 0.5 * libm::log(k)
}

/// ln of `gamma(a + b + 1) / (gamma(a + 1) gamma(b + 1)) x^a y^b` for real a, b >= 0 and x + y =
/// 1, both positive. The smaller of x and y may be far below the rounding error of the other.
pub(super) fn ln_binomial_term(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if a == 0.0 {
        return b * ln_share(y, x);
    }
    if b == 0.0 {
        return a * ln_share(x, y);
    }
    let n = a + b;
    let d = a * y - b * x;
    stirling_error(n)
        - stirling_error(a)
        - stirling_error(b)
        - deviance(a, n * x, d)
        - deviance(b, n * y, -d)
        - HALF_LN_2PI
        - 0.5 * (libm::log(a) + libm::log(b / n))
}

/// ln `share`, computed from `other` = 1 - `share` where that is the smaller and so has more
/// digits.
fn ln_share(share: f64, other: f64) -> f64 {
    if other < 0.5 { libm::log1p(-other) } else { libm::log(share) }
}
