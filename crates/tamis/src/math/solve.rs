//! Searches for roots and thresholds by halving, which needs no derivative and no starting guess.

/// A root of the continuous function `f` between `low` and `high`, to within `tolerance`; to the
/// last bit if `tolerance` is 0.
///
/// `None` if the bounds are not finite or not in order, if `f` has the same sign at both, or if
/// `f` returns NaN. (The report and the tests use it.)
#[cfg(feature = "internals")]
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

/// The smallest number in `low..=high` for which `pred` holds, if there is one.
///
/// Where `pred` holds for a number, it must hold for all greater ones. It is called at most 65
/// times.
pub fn first_true(low: u64, high: u64, mut pred: impl FnMut(u64) -> bool) -> Option<u64> {
    if low > high || !pred(high) {
        return None;
    }
    Some(halved(low, high, pred))
}

/// The smallest number in `1..=most` for which `pred` holds, if there is one. It is looked for
/// around `guess`, in steps of `step`, then twice that, and so on: few calls of `pred` find what
/// is near.
///
/// Where `pred` holds for a number, it must hold for all greater ones.
pub fn first_true_near(
    guess: u64,
    step: u64,
    most: u64,
    mut pred: impl FnMut(u64) -> bool,
) -> Option<u64> {
    let mut at = guess.clamp(1, most);
    let mut step = step.max(1);
    if pred(at) {
        while at > 1 {
            let next = at.saturating_sub(step).max(1);
            if !pred(next) {
                return Some(halved(next + 1, at, pred));
            }
            (at, step) = (next, step.saturating_mul(2));
        }
        return Some(1);
    }
    while at < most {
        let next = at.saturating_add(step).min(most);
        if pred(next) {
            return Some(halved(at + 1, next, pred));
        }
        (at, step) = (next, step.saturating_mul(2));
    }
    None
}

/// The smallest number from `low` on for which `pred` holds; it does for `high`.
fn halved(mut low: u64, mut high: u64, mut pred: impl FnMut(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        if pred(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}
