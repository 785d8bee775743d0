//! Compares computed values with numbers as they are printed.

/// Checks that a value is within half a unit of the last printed digit.
///
/// # Panics
///
/// When it is not.
#[track_caller]
pub fn close(value: f64, printed: f64, half_unit: f64) {
    assert!((value - printed).abs() <= half_unit, "{value} is not {printed}");
}

/// Checks that a value agrees with the printed one to `digits` significant digits.
///
/// # Panics
///
/// When it is not.
#[track_caller]
pub fn digits(value: f64, printed: f64, digits: i32) {
    let unit = 10_f64.powi(printed.abs().log10().floor() as i32 + 1 - digits);
    close(value, printed, 0.5001 * unit);
}
