//! Searches for thresholds by halving.

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
