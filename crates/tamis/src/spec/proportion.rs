//! Plans that are out of all proportion to their rate are refused: nobody wants the kind for such a rate.

use alloc::format;
use alloc::string::String;

use super::{Goal, Kind, PlanError, Size};

/// A plan for a rate may take this many times the bits of an ideal filter, log2(1/rate) for each key, and 5 bits more for
/// what kinds keep beside it.
const PROPORTION: f64 = 3.0;
const BESIDE: f64 = 5.0;
/// A few keys may take eight cache lines, whatever the rate.
const FEW_KEYS_BITS: f64 = 4096.0;
/// From this rate on every kind has its place; near 1 hardly anything is asked of it, and whatever it takes is little.
const COMMON: f64 = 0.01;

/// Whether `bits` of memory for each of `keys` keys are in proportion to `rate`. `width` is 4 for a kind with a counter of
/// 4 bits in every position.
pub(crate) fn fits(bits: f64, keys: u64, rate: f64, width: f64) -> bool {
    let each = width * PROPORTION * (BESIDE - libm::log2(rate));
    bits * keys as f64 <= each * keys as f64 + FEW_KEYS_BITS
}

/// The plan for a goal, unless it is out of proportion: then the error names the nearest rate that is not. Goals that fix
/// params get what they fix.
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
    // Halfway between the logarithms, to a tenth or so.
    let (mut low, mut high) = (libm::log(asked), libm::log(COMMON));
    for _ in 0..8 {
        let middle = 0.5 * (low + high);
        if fits_at(libm::exp(middle)) { high = middle } else { low = middle }
    }
    let mut nearest = two_digits_up(libm::exp(high));
    // Layouts are searched for, and near the limit now one is found, now none.
    while nearest < COMMON && !fits_at(nearest) {
        nearest = two_digits_up(1.5 * nearest);
    }
    let instead = String::new();
    Err(PlanError::OutOfProportion { kind: kind.name(), asked, bits, nearest, instead })
}

/// The next number with two digits.
fn two_digits_up(rate: f64) -> f64 {
    let unit = libm::pow(10.0, libm::floor(libm::log10(rate)) - 1.0);
    let digits = libm::ceil(rate / unit - 1e-9);
    // Written and read again, it is the number that is meant.
    format!("{:.1e}", digits * unit).parse().unwrap_or(rate)
}
