//! A value with its interval, from an experiment or from a second computation.

use crate::papers::solve::bisect;
use crate::papers::statistics::{beta_i, exact_interval, normal_quantile};

/// The confidence of every interval in the report. There are some hundreds of intervals, and none
/// should miss by chance.
pub const CONFIDENCE: f64 = 0.99999;

/// How many standard errors the interval of a normal estimate reaches to either side.
pub(super) fn reach() -> f64 {
    normal_quantile(0.5 + 0.5 * CONFIDENCE)
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Estimate {
    /// An exact value, which is the same in every run.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// A value that is known to within `error`.
    pub fn about(value: f64, error: f64) -> Self {
        Self { value, low: value - error, high: value + error }
    }

    /// A share of `successes` in `trials` independent trials.
    pub fn share(successes: u64, trials: u64) -> Self {
        let (low, high) = exact_interval(successes, trials, CONFIDENCE);
        Self { value: successes as f64 / trials.max(1) as f64, low, high }
    }

    /// The rate from `successes` in `trials` lookups, over filters whose own rates differ.
    /// `spread` is the standard deviation of the logarithm of the mean over all filters.
    pub fn rate(successes: u64, trials: u64, spread: f64) -> Self {
        let widening = (reach() * spread).exp();
        let Self { value, low, high } = Self::share(successes, trials);
        Self { value, low: low / widening, high: (high * widening).min(1.0) }
    }

    /// How often something rare happened, in all trials together: a Poisson count.
    pub fn count(events: u64) -> Self {
        // As a share of a number of trials that is too large to matter.
        let trials = 1 << 40;
        Self::share(events, trials).map(|share| share * trials as f64)
    }

    /// The mean of independent values, by Student's distribution.
    pub fn mean(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count.max(1.0);
        let half = student(count - 1.0) * deviation(values) / count.sqrt();
        Self { value, low: value - half, high: value + half }
    }

    /// The standard deviation of normal values, by its own standard error.
    pub fn deviation(values: &[f64]) -> Self {
        let value = deviation(values);
        Self::about(value, reach() * value / (2.0 * values.len() as f64).sqrt())
    }

    /// The estimate in other units. The function that converts must be increasing.
    #[must_use]
    pub fn map(self, turn: impl Fn(f64) -> f64) -> Self {
        Self { value: turn(self.value), low: turn(self.low), high: turn(self.high) }
    }

    /// This less another. Both intervals count in full.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self {
            value: self.value - other.value,
            low: self.low - other.high,
            high: self.high - other.low,
        }
    }

    /// This divided by another, which must be above 0. Both intervals count in full.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        Self {
            value: self.value / other.value,
            low: self.low / other.high,
            high: self.high / other.low.max(f64::MIN_POSITIVE),
        }
    }
}

/// The standard deviation of a sample; 0 for fewer than two values.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if count < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt()
}

/// How many standard errors the interval of a mean reaches.
fn student(freedom: f64) -> f64 {
    if freedom < 1.0 {
        return 0.0;
    }
    let outside = |t: f64| beta_i(0.5 * freedom, 0.5, freedom / (freedom + t * t));
    bisect(|t| (1.0 - CONFIDENCE) - outside(t), 0.1, 1e6, 1e-9).unwrap_or(f64::INFINITY)
}
