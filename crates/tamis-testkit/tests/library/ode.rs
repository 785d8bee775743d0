//! Runge-Kutta runs with steps that are doubled until they agree: where they converge, and where
//! not.

use tamis::internals::math::ode::rk4;

/// [`rk4_checked`] gives up after doubling its steps this often.
const MAX_DOUBLINGS: u32 = 14;

/// Components below this count as zero: denormal numbers have no digits to compare.
const NEGLIGIBLE: f64 = 1e-290;

/// Step doubling did not bring two runs into agreement.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NotConverged {
    /// Steps of the finest run.
    steps: usize,
    /// The largest relative difference between the two finest runs; NaN if a run has a component
    /// that is not finite.
    difference: f64,
}

impl std::fmt::Display for NotConverged {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "no convergence with {} Runge-Kutta steps: relative difference {:e}",
            self.steps, self.difference
        )
    }
}

/// Like [`rk4`], with steps that are doubled until a run and the one before agree to within the
/// relative `tolerance` in every component, however small. Returns the steps of the finest run,
/// and leaves its result in `state`. Fails after 14 doublings, and `state` keeps its initial
/// value.
fn rk4_checked(
    mut derivative: impl FnMut(f64, &[f64], &mut [f64]),
    state: &mut [f64],
    from: f64,
    to: f64,
    steps: usize,
    tolerance: f64,
) -> Result<usize, NotConverged> {
    let mut coarse = state.to_vec();
    let mut fine = state.to_vec();
    let mut steps = steps.max(1);
    rk4(&mut derivative, &mut coarse, from, to, steps);
    let mut difference = f64::NAN;
    for _ in 0..MAX_DOUBLINGS {
        steps = steps.saturating_mul(2);
        fine.copy_from_slice(state);
        rk4(&mut derivative, &mut fine, from, to, steps);
        difference = largest_difference(&coarse, &fine);
        if difference <= tolerance {
            state.copy_from_slice(&fine);
            return Ok(steps);
        }
        std::mem::swap(&mut coarse, &mut fine);
    }
    Err(NotConverged { steps, difference })
}

/// Largest difference of two components relative to the finer; NaN if any component is.
fn largest_difference(coarse: &[f64], fine: &[f64]) -> f64 {
    let mut largest = 0.0;
    for (c, f) in coarse.iter().zip(fine) {
        let size = f.abs();
        let gap = (c - f).abs();
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

#[test]
fn rk4_checked_holds_small_components_to_their_own_size() {
    // The second component ends at exp(-62), about 1e-27.
    let decay = |_: f64, y: &[f64], slope: &mut [f64]| {
        slope[0] = -0.1 * y[0];
        slope[1] = -62.0 * y[1];
    };
    let mut state = [1.0, 1.0];
    let steps = rk4_checked(decay, &mut state, 0.0, 1.0, 4, 1e-9).unwrap();
    assert!(steps > 64);
    assert!((state[1] / (-62f64).exp() - 1.0).abs() < 1e-9);
    // A component that stays at zero or denormal does not prevent agreement.
    let mut state = [0.0, 1e-295];
    assert!(rk4_checked(decay, &mut state, 0.0, 1.0, 4, 1e-9).is_ok());
}

#[test]
fn rk4_checked_reports_what_it_cannot_follow() {
    let mut state = [1.0];
    let stiff = |_: f64, y: &[f64], slope: &mut [f64]| slope[0] = -1e7 * y[0];
    let error: NotConverged = rk4_checked(stiff, &mut state, 0.0, 1.0, 1, 1e-9).unwrap_err();
    assert_eq!((state[0], error.steps), (1.0, 1 << 14));
    assert!(error.to_string().contains("16384"));
    // A solution that becomes infinite: y' = y^2 from 1 does so at 1.
    let blow_up = |_: f64, y: &[f64], slope: &mut [f64]| slope[0] = y[0] * y[0];
    assert!(rk4_checked(blow_up, &mut state, 0.0, 2.0, 8, 1e-9).is_err());
}
