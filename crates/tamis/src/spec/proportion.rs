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

/// Rates that are tried, each a twentieth above the one before, until one can be had.
const TRIES: u32 = 20;

/// The plan for `goal`. If its memory is out of proportion, or it cannot be reached, the error
/// names the nearest rate that can be had. Goals that fix params are planned as they are.
pub(crate) fn in_proportion<P>(
    kind: Kind,
    width: f64,
    goal: &Goal,
    plan: impl Fn(&Goal) -> Result<P, PlanError>,
    bits_per_key: impl Fn(&P) -> f64,
) -> Result<P, PlanError> {
    let checked = |goal: &Goal| checked(kind, width, goal, &plan, &bits_per_key);
    let refused = match checked(goal) {
        Ok(planned) => return Ok(planned),
        Err(refused) => refused,
    };
    if let Some(asked) = goal.asked_rate()
        && goal.fixed.is_empty()
        && has_too_many_keys(&refused)
    {
        let (kind, keys) = (kind.name(), goal.sized_keys());
        let most = most_keys(keys, |keys| checked(&Goal { keys, ..goal.clone() }).is_ok());
        return Err(most.map_or(refused, |most| PlanError::TooManyKeys {
            kind,
            asked,
            keys,
            most,
        }));
    }
    let PlanError::Unreachable { kind, asked, keys, nearest } = refused else {
        return Err(refused);
    };
    let mut rate = two_digits_up(nearest);
    for _ in 0..TRIES {
        match checked(&Goal { size: Size::Rate(rate), ..goal.clone() }) {
            Err(PlanError::OutOfProportion { nearest, .. }) => rate = nearest,
            Err(PlanError::Unreachable { .. }) => {
                rate = two_digits_up(1.05 * rate);
                continue;
            }
            _ => {}
        }
        return Err(PlanError::Unreachable { kind, asked, keys, nearest: rate });
    }
    Err(PlanError::Unreachable { kind, asked, keys, nearest })
}

/// Whether a goal that fixes no params was refused because no filter takes as many keys: there is
/// not even a common rate, or the params would be out of range.
fn has_too_many_keys(refused: &PlanError) -> bool {
    match *refused {
        PlanError::Unreachable { asked, nearest, .. } => nearest > COMMON || nearest <= asked,
        PlanError::Param(_) => true,
        _ => false,
    }
}

/// The most keys, in two digits, for which there is a plan; `None` if there is none for one key.
fn most_keys(keys: u64, planned: impl Fn(u64) -> bool) -> Option<u64> {
    // Halves the interval between the logarithms ten times: to a twentieth of the number.
    let (mut low, mut high) = (0.0, libm::log(keys as f64));
    for _ in 0..10 {
        let middle = 0.5 * (low + high);
        if planned(libm::exp(middle) as u64) { low = middle } else { high = middle }
    }
    let most = libm::exp(low);
    let unit = libm::pow(10.0, libm::floor(libm::log10(most)) - 1.0).max(1.0);
    let most = (libm::floor(most / unit) * unit) as u64;
    planned(most).then_some(most)
}

/// The plan for `goal`, or the error that its memory is out of proportion.
fn checked<P>(
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
pub(super) fn two_digits_up(rate: f64) -> f64 {
    let unit = libm::pow(10.0, libm::floor(libm::log10(rate)) - 1.0);
    let digits = libm::ceil(rate / unit - 1e-9);
    // Printing and parsing gives the number that a person would write.
    format!("{:.1e}", digits * unit).parse().unwrap_or(rate)
}
