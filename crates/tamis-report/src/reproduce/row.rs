//! One claim of a source beside our prediction and our measurement, and the verdict that follows from the three.

use serde::Serialize;
use tamis::math::gamma::beta_i;
use tamis::math::interval::{exact_interval, normal_quantile};
use tamis::math::solve::bisect;

/// How sure every interval of the report is. There are some hundred of them, and none should miss by chance.
pub const CONFIDENCE: f64 = 0.99999;

/// What is to be said of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// What is printed is what comes out.
    Reproduced,
    /// What is printed is wrong; the reason says why.
    Erratum,
    /// The source prints nothing to compare with: prediction and measurement are compared with each other.
    Recomputed,
    /// Nobody has explained the difference: never in a report that is fit to be shown.
    Differs,
}

impl Verdict {
    /// As in the rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Erratum => "erratum",
            Self::Recomputed => "recomputed",
            Self::Differs => "differs",
        }
    }
}

/// A measured value with its interval.
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
    /// What was counted or weighed and would come out the same again.
    pub fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// A share of independent trials.
    pub fn share(successes: u64, trials: u64) -> Self {
        let (low, high) = exact_interval(successes, trials, CONFIDENCE);
        Self { value: successes as f64 / trials.max(1) as f64, low, high }
    }

    /// A share of strangers over filters whose own rates differ: `spread` is the deviation of their logarithm in the mean
    /// over all filters.
    pub fn rate(successes: u64, trials: u64, spread: f64) -> Self {
        let widening = (normal_quantile(0.5 + 0.5 * CONFIDENCE) * spread).exp();
        let Self { value, low, high } = Self::share(successes, trials);
        Self { value, low: low / widening, high: (high * widening).min(1.0) }
    }

    /// The mean of independent values, by Student's distribution.
    pub fn mean(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count.max(1.0);
        let half = student(count - 1.0) * deviation(values) / count.sqrt();
        Self { value, low: value - half, high: value + half }
    }

    /// In other units.
    #[must_use]
    pub fn map(self, turn: impl Fn(f64) -> f64) -> Self {
        Self { value: turn(self.value), low: turn(self.low), high: turn(self.high) }
    }
}

/// The standard deviation of a sample; 0 of less than two values.
pub(super) fn deviation(values: &[f64]) -> f64 {
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

/// What the printed value is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Against {
    /// The prediction, to half a unit of the last printed digit.
    Prediction,
    /// The measurement: the source measured too.
    Measurement,
    /// A claim in words, which holds or not.
    Claim(bool),
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which row of its table, or which point of its figure.
    pub name: String,
    /// As the source has it, digit by digit; or in our words, where it makes a claim.
    pub printed: Option<&'static str>,
    /// From the models of the library.
    pub predicted: Option<f64>,
    /// From an experiment.
    pub measured: Option<Estimate>,
    /// Why the source is wrong, or what else must be known.
    pub reason: Option<&'static str>,
    is_erratum: bool,
    against: Against,
    /// How far apart printed and predicted may be, beside the rounding.
    margin: f64,
    /// How far the model is from the truth by its own account, as a share.
    model_error: f64,
}

impl Row {
    /// A row that says nothing yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            printed: None,
            predicted: None,
            measured: None,
            reason: None,
            is_erratum: false,
            against: Against::Prediction,
            margin: 0.0,
            model_error: 0.0,
        }
    }

    /// The source prints this.
    #[must_use]
    pub fn printed(mut self, text: &'static str) -> Self {
        self.printed = Some(text);
        self
    }

    /// The source printed this after an experiment of its own.
    #[must_use]
    pub fn sampled(mut self, text: &'static str) -> Self {
        self.against = Against::Measurement;
        self.printed(text)
    }

    /// The source claims this, which holds or not.
    #[must_use]
    pub fn claims(mut self, text: &'static str, holds: bool) -> Self {
        self.against = Against::Claim(holds);
        self.printed(text)
    }

    /// Our model says this.
    #[must_use]
    pub fn predicted(mut self, value: f64) -> Self {
        self.predicted = Some(value);
        self
    }

    /// Our experiment says this.
    #[must_use]
    pub fn measured(mut self, estimate: Estimate) -> Self {
        self.measured = Some(estimate);
        self
    }

    /// The source is wrong, because.
    #[must_use]
    pub fn erratum(mut self, reason: &'static str) -> Self {
        self.is_erratum = true;
        self.note(reason)
    }

    /// The source is wrong in some rows of a table.
    #[must_use]
    pub fn erratum_if(self, reason: Option<&'static str>) -> Self {
        match reason {
            Some(reason) => self.erratum(reason),
            None => self,
        }
    }

    /// What else must be known.
    #[must_use]
    pub fn note(mut self, text: &'static str) -> Self {
        self.reason = Some(text);
        self
    }

    /// Printed and computed may be this far apart, beside the rounding; the note says why.
    #[must_use]
    pub fn within(mut self, margin: f64) -> Self {
        self.margin = margin;
        self
    }

    /// The model is this share from the truth, by its own account.
    #[must_use]
    pub fn model_within(mut self, share: f64) -> Self {
        self.model_error = share;
        self
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if !self.model_agrees() {
            return Verdict::Differs;
        }
        match (self.print_agrees(), self.is_erratum) {
            (None, false) => Verdict::Recomputed,
            (Some(true), false) => Verdict::Reproduced,
            (Some(false), true) => Verdict::Erratum,
            // Also an erratum that the numbers do not confirm.
            _ => Verdict::Differs,
        }
    }

    /// Whether measurement and model agree, where there are both.
    fn model_agrees(&self) -> bool {
        let (Some(predicted), Some(Estimate { low, high, .. })) = (self.predicted, self.measured)
        else {
            return self.predicted.is_some() || self.measured.is_some();
        };
        // Computed in two ways, equal numbers differ by a rounding.
        let slack = predicted.abs() * (self.model_error + 1e-9);
        low - slack <= predicted && predicted <= high + slack
    }

    /// Whether what is printed agrees with what comes out; nothing if nothing is printed.
    fn print_agrees(&self) -> Option<bool> {
        let text = self.printed?;
        if let Against::Claim(holds) = self.against {
            return Some(holds);
        }
        let (value, half_unit) = parse(text)?;
        let reach = half_unit * 1.02 + self.margin;
        let near = |low: f64, high: f64| low - reach <= value && value <= high + reach;
        let predicted = self.predicted.is_some_and(|predicted| near(predicted, predicted));
        Some(match self.against {
            Against::Measurement => {
                predicted || self.measured.is_some_and(|estimate| near(estimate.low, estimate.high))
            }
            _ => predicted,
        })
    }
}

/// A printed number and half a unit of its last digit.
fn parse(text: &str) -> Option<(f64, f64)> {
    let value = text.parse().ok()?;
    let (digits, power) = text.split_once('e').unwrap_or((text, "0"));
    let places = digits.split_once('.').map_or(0, |(_, places)| places.len() as i32);
    Some((value, 0.5 * 10_f64.powi(power.parse::<i32>().ok()? - places)))
}

/// What a source has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Printed<'a> {
    /// A number.
    Number(f64),
    /// A claim.
    Words(&'a str),
}

impl<'a> Printed<'a> {
    fn new(text: &'a str) -> Self {
        text.parse().map_or(Self::Words(text), Self::Number)
    }
}

/// A row as it is printed and stored.
#[derive(Clone, Debug, Serialize)]
pub struct Line<'a> {
    /// The number of the document, `000` to `004`, or `all` for the comparison.
    pub document: &'a str,
    /// The table, figure or passage.
    pub item: &'a str,
    /// Which row of it.
    pub row: &'a str,
    /// A number, or a claim in words.
    pub printed: Option<Printed<'a>>,
    /// The model.
    pub predicted: Option<f64>,
    /// The experiment.
    pub measured: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// One of three words.
    pub verdict: Verdict,
    /// Why the source is wrong, or what else must be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// A row of an item of a document.
    pub fn new(document: &'a str, item: &'a str, row: &'a Row) -> Self {
        Self {
            document,
            item,
            row: &row.name,
            printed: row.printed.map(Printed::new),
            predicted: row.predicted,
            measured: row.measured.map(|estimate| estimate.value),
            low: row.measured.map(|estimate| estimate.low),
            high: row.measured.map(|estimate| estimate.high),
            verdict: row.verdict(),
            reason: row.reason,
        }
    }
}
