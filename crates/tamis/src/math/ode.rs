//! Ordinary differential equations by the classic fourth-order Runge-Kutta method.

use alloc::vec;
use alloc::vec::Vec;

/// [`rk4_checked`] gives up after doubling its steps this often.
const MAX_DOUBLINGS: u32 = 14;
/// Components below this are zero as far as agreement goes: denormals hold no digits to compare.
const NEGLIGIBLE: f64 = 1e-290;

/// Step doubling did not bring two runs into agreement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NotConverged {
    /// Steps of the finest run.
    pub steps: usize,
    /// Largest relative difference between the two finest runs; NaN if a run left the reals.
    pub difference: f64,
}

impl core::fmt::Display for NotConverged {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            out,
            "no convergence with {} Runge-Kutta steps: relative difference {:e}",
            self.steps, self.difference
        )
    }
}

impl core::error::Error for NotConverged {}

/// Carries `state` along `derivative(x, state, slope)` from `from` to `to` in `steps` equal steps
/// (none counts as one); `derivative` writes the slope. The error falls with the fourth power of
/// the step.
pub fn rk4(
    derivative: impl FnMut(f64, &[f64], &mut [f64]),
    state: &mut [f64],
    from: f64,
    to: f64,
    steps: usize,
) {
    Stepper::new(derivative, state.len()).run(state, from, to, steps);
}

/// Like [`rk4`], with the steps doubled until a run and the one before agree within the relative
/// `tolerance` in every component by its own size, however small. Returns the steps of the finest
/// run, whose result is then in `state`; without convergence after 14 doublings `state` keeps its
/// initial value.
pub fn rk4_checked(
    derivative: impl FnMut(f64, &[f64], &mut [f64]),
    state: &mut [f64],
    from: f64,
    to: f64,
    steps: usize,
    tolerance: f64,
) -> Result<usize, NotConverged> {
    let mut stepper = Stepper::new(derivative, state.len());
    let mut coarse = state.to_vec();
    let mut fine = state.to_vec();
    let mut steps = steps.max(1);
    stepper.run(&mut coarse, from, to, steps);
    let mut difference = f64::NAN;
    for _ in 0..MAX_DOUBLINGS {
        steps = steps.saturating_mul(2);
        fine.copy_from_slice(state);
        stepper.run(&mut fine, from, to, steps);
        difference = largest_difference(&coarse, &fine);
        if difference <= tolerance {
            state.copy_from_slice(&fine);
            return Ok(steps);
        }
        core::mem::swap(&mut coarse, &mut fine);
    }
    Err(NotConverged { steps, difference })
}

/// Largest difference of two components relative to the finer; NaN if any component is.
fn largest_difference(coarse: &[f64], fine: &[f64]) -> f64 {
    let mut largest = 0.0;
    for (c, f) in coarse.iter().zip(fine) {
        let size = libm::fabs(*f);
        let gap = libm::fabs(c - f);
        if gap < NEGLIGIBLE && size < NEGLIGIBLE {
            continue;
        }
        let relative = gap / size;
        if relative.is_nan() {
            return f64::NAN;
        }
        if relative > largest {
            largest = relative;
        }
    }
    largest
}

struct Stepper<F> {
    derivative: F,
    slope: Vec<f64>,
    probe: Vec<f64>,
    total: Vec<f64>,
}

impl<F: FnMut(f64, &[f64], &mut [f64])> Stepper<F> {
    fn new(derivative: F, size: usize) -> Self {
        Self { derivative, slope: vec![0.0; size], probe: vec![0.0; size], total: vec![0.0; size] }
    }

    fn run(&mut self, state: &mut [f64], from: f64, to: f64, steps: usize) {
        let steps = steps.max(1);
        let h = (to - from) / steps as f64;
        for i in 0..steps {
            self.step(state, from + h * i as f64, h);
        }
    }

    fn step(&mut self, state: &mut [f64], x: f64, h: f64) {
        self.probe.copy_from_slice(state);
        self.total.fill(0.0);
        // Where each slope is taken, how far it carries the next probe, and its weight.
        let stages = [
            (0.0, 0.5 * h, h / 6.0),
            (0.5 * h, 0.5 * h, h / 3.0),
            (0.5 * h, h, h / 3.0),
            (h, 0.0, h / 6.0),
        ];
        for (offset, reach, weight) in stages {
            (self.derivative)(x + offset, &self.probe, &mut self.slope);
            for (total, slope) in self.total.iter_mut().zip(&self.slope) {
                *total += weight * slope;
            }
            for ((probe, start), slope) in self.probe.iter_mut().zip(&*state).zip(&self.slope) {
                *probe = start + reach * slope;
            }
        }
        for (value, change) in state.iter_mut().zip(&self.total) {
            *value += change;
        }
    }
}
