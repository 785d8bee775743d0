//! Refuses plans whose memory is out of all proportion to their rate: another kind does the same
//! in much less.

use alloc::format;
use alloc::string::String;

use super::{Goal, Kind, PlanError, Size};

/// How many times the bits of an ideal filter a plan may take. An ideal filter takes log2(1/rate)
/// bits for each key; [`BESIDE`] is added to that for what kinds keep beside it.
const PROPORTION: f64 = 3.0;
/// Bits for each key beside those of an ideal filter.
const BESIDE: f64 = 5.0;
/// Bits that a filter of few keys may take at any rate: eight cache lines.
const FEW_KEYS_BITS: f64 = 4096.0;
/// At this rate and above no kind is refused: such rates take little memory in any kind.
const COMMON: f64 = 0.01;

/// Whether `bits` bits of memory for each of `keys` keys are in proportion to `rate`. `width` is
/// the bits of a position, such as 4 for counters of 4 bits.
pub(crate) fn fits(bits: f64, keys: u64, rate: f64, width: f64) -> bool {
    let each = width * PROPORTION * (BESIDE - libm::log2(rate));
    bits * keys as f64 <= each * keys as f64 + FEW_KEYS_BITS
}

/// The plan for `goal`. If its memory is out of proportion, the error names the nearest rate for
/// which it is not. Goals that fix params are planned as they are.
pub(crate) fn in_proportion<P>(
    kind: Kind,
    width: f64,
    goal: &Goal,
    plan: impl Fn(&Goal) -> Result<P, PlanError>,
    bits_per_key: impl Fn(&P) -> f64,
) -> Result<P, PlanError> {
    let planned = plan(goal)?;
    let asked = match goal.size {
        Size::Rate(asked) if asked < COMMON => asked,
        _ => return Ok(planned),
    };
    let keys = goal.sized_keys();
    let bits = bits_per_key(&planned);
    if fits(bits, keys, asked, width) || !goal.fixed.is_empty() {
        return Ok(planned);
    }
    let fits_at = |rate: f64| {
        let goal = Goal { size: Size::Rate(rate), ..goal.clone() };
        plan(&goal).is_ok_and(|planned| fits(bits_per_key(&planned), keys, rate, width))
    };
    // Halves the interval between the logarithms eight times: to a tenth or so of the rate.
    let (mut low, mut high) = (libm::log(asked), libm::log(COMMON));
    for _ in 0..8 {
        let middle = 0.5 * (low + high);
        if fits_at(libm::exp(middle)) { high = middle } else { low = middle }
    }
    let mut nearest = two_digits_up(libm::exp(high));
    // The search for a layout is not exact, so near the limit it may fail at a rate above one
    // that works.
    while nearest < COMMON && !fits_at(nearest) {
        nearest = two_digits_up(1.5 * nearest);
    }
    let instead = String::new();
    Err(PlanError::OutOfProportion { kind: kind.name(), asked, bits, nearest, instead })
}

/// The next number above `rate` that has two digits.
fn two_digits_up(rate: f64) -> f64 {
    let unit = libm::pow(10.0, libm::floor(libm::log10(rate)) - 1.0);
    let digits = libm::ceil(rate / unit - 1e-9);
    // Printing and parsing gives the number that a person would write.
    format!("{:.1e}", digits * unit).parse().unwrap_or(rate)
}
