//! Roots by halving, which needs no derivative and no starting guess.

/// A root of the continuous function `f` between `low` and `high`, to within `tolerance`; to the
/// last bit if `tolerance` is 0.
///
/// `None` if the bounds are not finite or not in order, if `f` has the same sign at both, or if
/// `f` returns NaN.
pub fn bisect(
    mut f: impl FnMut(f64) -> f64,
    mut low: f64,
    mut high: f64,
    tolerance: f64,
) -> Option<f64> {
    if !(low.is_finite() && high.is_finite() && low <= high) {
        return None;
    }
    let (at_low, at_high) = (f(low), f(high));
    if at_low == 0.0 {
        return Some(low);
    }
    if at_high == 0.0 {
        return Some(high);
    }
    if at_low.is_nan() || at_high.is_nan() || (at_low < 0.0) == (at_high < 0.0) {
        return None;
    }
    loop {
        // The sum of halves, because `high - low` could overflow.
        let middle = 0.5 * low + 0.5 * high;
        if high - low <= tolerance || middle <= low || middle >= high {
            return Some(middle);
        }
        let value = f(middle);
        if value.is_nan() {
            return None;
        }
        if value == 0.0 {
            return Some(middle);
        }
        if (value < 0.0) == (at_low < 0.0) {
            low = middle;
        } else {
            high = middle;
        }
    }
}
