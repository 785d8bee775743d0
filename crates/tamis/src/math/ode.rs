//! Ordinary differential equations by the classic fourth-order Runge-Kutta method.

use alloc::vec;

/// Integrates `state` from `from` to `to` in `steps` equal steps, or one if `steps` is 0.
///
/// `derivative(x, state, slope)` writes the slope at `x` to `slope`. The error falls with the
/// fourth power of the step.
pub fn rk4(
    mut derivative: impl FnMut(f64, &[f64], &mut [f64]),
    state: &mut [f64],
    from: f64,
    to: f64,
    steps: usize,
) {
    let steps = steps.max(1);
    let h = (to - from) / steps as f64;
    // For each slope: where it is taken, how far the next probe goes along it, and its weight.
    let stages = [
        (0.0, 0.5 * h, h / 6.0),
        (0.5 * h, 0.5 * h, h / 3.0),
        (0.5 * h, h, h / 3.0),
        (h, 0.0, h / 6.0),
    ];
    let mut slopes = vec![0.0; state.len()];
    let (mut probes, mut totals) = (slopes.clone(), slopes.clone());
    for i in 0..steps {
        let x = from + h * i as f64;
        probes.copy_from_slice(state);
        totals.fill(0.0);
        for (offset, reach, weight) in stages {
            derivative(x + offset, &probes, &mut slopes);
            for (total, slope) in totals.iter_mut().zip(&slopes) {
                *total += weight * slope;
            }
            for ((probe, start), slope) in probes.iter_mut().zip(&*state).zip(&slopes) {
                *probe = start + reach * slope;
            }
        }
        for (value, change) in state.iter_mut().zip(&totals) {
            *value += change;
        }
    }
}
