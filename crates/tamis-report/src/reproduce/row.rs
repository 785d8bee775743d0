//! One claim of a source beside our prediction and our evidence, and the verdict that follows.
//!
//! How to add a row: give it what the source has ([`printed`](Row::printed),
//! [`sampled`](Row::sampled) or [`claims`](Row::claims)), the library's model
//! ([`predicted`](Row::predicted)) and evidence that does not come from that model: an experiment
//! ([`measured`](Row::measured)) or a second computation by other means
//! ([`checked`](Row::checked)). A verdict is never passed in, nor that a claim holds: a claim is a
//! number or a bound ([`Claim`]), and is compared with prediction and evidence here.
//!
//! - With all three a row is `reproduced`; without anything printed, `recomputed`.
//! - [`erratum`](Row::erratum) says what is wrong with the source. It counts only if the evidence
//!   excludes what is printed.
//! - A one-sided claim that holds is `bounded`.
//! - A row without evidence, or without a prediction to compare it with, is `stated` and confirms
//!   nothing.
//! - A row that agrees, and would have agreed with a wrong prediction too, is `weak`: see
//!   [`Unit`]. Run more trials.
//! - A row that disagrees `differs`, and so does an erratum that the numbers do not confirm.
//!
//! [`slack`](Row::slack) lets prediction and evidence be further apart than the interval says; it
//! needs a reason and counts against the row's power.

use serde::Serialize;

use super::Estimate;

/// The largest share by which a prediction may be wrong without a row noticing. Three percent is
/// what a filter's rate changes by when one key in a hundred is counted wrongly or one bit in two
/// hundred is set too much (k = 7).
pub const POWER: f64 = 0.03;
/// The same for events so rare that a quick run sees some hundred of them.
pub const RARE_POWER: f64 = 0.2;

/// What follows from a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// What is printed is what is predicted and what evidence shows.
    Reproduced,
    /// What is printed is excluded by evidence; the reason says why.
    Erratum,
    /// The source prints nothing: prediction and evidence agree with each other.
    Recomputed,
    /// One-sided: a bound that holds.
    Bounded,
    /// A number that was compared with no evidence. No confirmation.
    Stated,
    /// It agrees, and would have agreed with a wrong prediction too. No confirmation.
    Weak,
    /// The difference is not explained. A report that is fit to be shown has no such row.
    Differs,
}

impl Verdict {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 7] = [
        Self::Reproduced,
        Self::Erratum,
        Self::Recomputed,
        Self::Bounded,
        Self::Stated,
        Self::Weak,
        Self::Differs,
    ];

    /// The name in the rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Erratum => "erratum",
            Self::Recomputed => "recomputed",
            Self::Bounded => "bounded",
            Self::Stated => "stated",
            Self::Weak => "weak",
            Self::Differs => "differs",
        }
    }

    /// What it means, for readers of the report.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Reproduced => {
                "what is printed is what is predicted, to the printed digits, and what evidence shows."
            }
            Self::Erratum => "evidence excludes what is printed, and the row says why.",
            Self::Recomputed => {
                "the source prints nothing to compare with; prediction and evidence agree."
            }
            Self::Bounded => "a bound, or a claim with one side, that holds.",
            Self::Stated => "a number without evidence beside it. It confirms nothing.",
            Self::Weak => {
                "agrees, but would not have noticed a wrong prediction. It confirms nothing."
            }
            Self::Differs => "nobody has explained why.",
        }
    }
}

/// The unit in which an error of the prediction is measured when the power of a row is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Shares of the prediction itself: 3% of it must be noticed.
    Relative,
    /// The row is the logarithm of a rate: 3% of the rate must be noticed.
    Log10,
    /// Shares of a larger whole, where a value near 0 is one point of a curve or one share of
    /// many: 3% of this.
    Of(f64),
    /// Rare events: 20% of the prediction must be noticed.
    Rare,
}

/// A claim of a source in words, as something that can fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// At most this.
    AtMost(f64),
    /// At least this.
    AtLeast(f64),
    /// From this to that.
    Between(f64, f64),
    /// Equal to this number.
    Is(f64),
}

/// The source of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Experiment,
    /// A second computation, and how it was made.
    Computation(&'static str),
}

/// What the source prints or claims, as numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Statement {
    /// A number, and how far from it a value may be; `sampled` if the source measured it.
    Number {
        value: f64,
        reach: f64,
        sampled: bool,
    },
    Claim(Claim),
}

/// Whether a value agrees with what is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    Agrees,
    Contradicts,
    /// The interval does not decide: it reaches to both sides.
    Open,
}

impl Statement {
    fn judge(self, Estimate { low, high, .. }: Estimate) -> Judgement {
        let (least, most) = match self {
            Self::Number { value, reach, .. } => {
                // A value agrees with a number if its interval reaches it.
                let near = low <= value + reach && value - reach <= high;
                return if near { Judgement::Agrees } else { Judgement::Contradicts };
            }
            Self::Claim(Claim::Is(value)) => {
                return Self::Number { value, reach: 1e-9 * value.abs(), sampled: false }
                    .judge(Estimate { value, low, high });
            }
            Self::Claim(Claim::AtMost(most)) => (f64::NEG_INFINITY, most),
            Self::Claim(Claim::AtLeast(least)) => (least, f64::INFINITY),
            Self::Claim(Claim::Between(least, most)) => (least, most),
        };
        if least <= low && high <= most {
            Judgement::Agrees
        } else if high < least || most < low {
            Judgement::Contradicts
        } else {
            Judgement::Open
        }
    }

    fn is_one_sided(self) -> bool {
        matches!(self, Self::Claim(Claim::AtMost(_) | Claim::AtLeast(_) | Claim::Between(..)))
    }
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which row of its table, or which point of its figure.
    pub name: String,
    /// What the source prints, digit by digit; or in our words, where it makes a claim.
    pub printed: Option<&'static str>,
    /// The prediction of the library's models.
    pub predicted: Option<f64>,
    /// Why the source is wrong, or what else must be known.
    pub reason: Option<&'static str>,
    statement: Option<Statement>,
    evidence: Option<(Estimate, Origin)>,
    is_erratum: bool,
    /// How far apart printed and computed may be, beside the rounding.
    margin: f64,
    /// How far apart prediction and evidence may be, beside the interval, and why.
    slack: Option<(f64, &'static str)>,
    unit: Unit,
}

impl Row {
    /// A row without content.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            printed: None,
            predicted: None,
            reason: None,
            statement: None,
            evidence: None,
            is_erratum: false,
            margin: 0.0,
            slack: None,
            unit: Unit::Relative,
        }
    }

    /// The source prints this number.
    #[must_use]
    pub fn printed(mut self, text: &'static str) -> Self {
        self.printed = Some(text);
        self.statement =
            parse(text).map(|(value, reach)| Statement::Number { value, reach, sampled: false });
        self
    }

    /// The source printed this number after an experiment of its own: it need only lie in our
    /// interval.
    #[must_use]
    pub fn sampled(mut self, text: &'static str) -> Self {
        self.printed = Some(text);
        self.statement =
            parse(text).map(|(value, reach)| Statement::Number { value, reach, sampled: true });
        self
    }

    /// The source claims this in words, which amounts to a number or a bound.
    #[must_use]
    pub fn claims(mut self, text: &'static str, claim: Claim) -> Self {
        self.printed = Some(text);
        self.bounded(claim)
    }

    /// A bound of our own, where the source has none.
    #[must_use]
    pub fn bounded(mut self, claim: Claim) -> Self {
        self.statement = Some(Statement::Claim(claim));
        self
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
        self.evidence = Some((estimate, Origin::Experiment));
        self
    }

    /// A second computation says this: not the library's formula, and `how` tells what instead.
    #[must_use]
    pub fn checked(mut self, estimate: Estimate, how: &'static str) -> Self {
        self.evidence = Some((estimate, Origin::Computation(how)));
        self
    }

    /// The source is wrong; `reason` says why.
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
    pub fn within(mut self, margin: f64, why: &'static str) -> Self {
        self.margin = margin;
        self.note(why)
    }

    /// Prediction and evidence may be this far apart, beside the interval: what the model is known
    /// to leave out, and why.
    #[must_use]
    pub fn slack(mut self, amount: f64, why: &'static str) -> Self {
        self.slack = Some((amount.abs(), why));
        self
    }

    /// Sets the unit in which errors are measured.
    #[must_use]
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// The evidence, of an experiment or a computation.
    pub fn evidence(&self) -> Option<Estimate> {
        Some(self.evidence?.0)
    }

    /// The result of the experiment.
    pub fn experiment(&self) -> Option<Estimate> {
        self.evidence.filter(|(_, origin)| *origin == Origin::Experiment).map(|(value, _)| value)
    }

    /// How far apart prediction and evidence may be beside the interval, and why.
    pub fn slack_and_reason(&self) -> Option<(f64, &'static str)> {
        self.slack
    }

    /// How much slack there is and why, for readers.
    pub fn slack_reason(&self) -> Option<String> {
        self.slack.map(|(amount, why)| format!("Slack of {amount:.2e}: {why}"))
    }

    /// How the second computation was made.
    pub fn computation(&self) -> Option<&'static str> {
        match self.evidence?.1 {
            Origin::Experiment => None,
            Origin::Computation(how) => Some(how),
        }
    }

    /// Whether the source is said to be wrong here.
    pub fn is_erratum(&self) -> bool {
        self.is_erratum
    }

    /// The verdict.
    pub fn verdict(&self) -> Verdict {
        if !self.model_agrees() {
            return Verdict::Differs;
        }
        let Some(statement) = self.statement() else {
            return match (self.printed, self.predicted, self.evidence) {
                // A printed number that cannot be read.
                (Some(_), ..) => Verdict::Differs,
                (None, Some(_), Some(_)) if self.is_weak() => Verdict::Weak,
                (None, Some(_), Some(_)) => Verdict::Recomputed,
                _ => Verdict::Stated,
            };
        };
        let computed = self.predicted.map(|value| statement.judge(Estimate::exact(value)));
        let evident = self.evidence.map(|(estimate, _)| statement.judge(self.widened(estimate)));
        if self.is_erratum {
            return match (computed, evident) {
                // The row says that the source is wrong, but the evidence agrees with it.
                (Some(Judgement::Agrees), _) | (None, Some(Judgement::Agrees)) => Verdict::Differs,
                (_, None) => Verdict::Stated,
                (_, Some(Judgement::Contradicts)) => Verdict::Erratum,
                _ => Verdict::Weak,
            };
        }
        let is_sampled = matches!(statement, Statement::Number { sampled: true, .. });
        match (computed, evident) {
            // A sample of the source is no more exact than ours.
            (Some(Judgement::Contradicts), Some(Judgement::Agrees)) if is_sampled => {
                if self.is_weak() { Verdict::Weak } else { Verdict::Reproduced }
            }
            (Some(Judgement::Contradicts), _) | (_, Some(Judgement::Contradicts)) => {
                Verdict::Differs
            }
            (_, Some(Judgement::Open)) => Verdict::Weak,
            (_, Some(_)) if statement.is_one_sided() => Verdict::Bounded,
            (_, None) | (None, _) => Verdict::Stated,
            _ if self.is_weak() => Verdict::Weak,
            _ => Verdict::Reproduced,
        }
    }

    fn statement(&self) -> Option<Statement> {
        Some(match self.statement? {
            Statement::Number { value, reach, sampled } => {
                Statement::Number { value, reach: reach * 1.02 + self.margin, sampled }
            }
            claim @ Statement::Claim(_) => claim,
        })
    }

    fn slack_amount(&self) -> f64 {
        // Equal numbers that are computed in two ways may differ by rounding.
        let rounding = 1e-9 * self.predicted.unwrap_or(0.0).abs();
        self.slack.map_or(0.0, |(amount, _)| amount) + rounding
    }

    fn widened(&self, Estimate { value, low, high }: Estimate) -> Estimate {
        let slack = self.slack_amount();
        Estimate { value, low: low - slack, high: high + slack }
    }

    /// Whether evidence and model agree, where there are both.
    fn model_agrees(&self) -> bool {
        let (Some(predicted), Some((evidence, _))) = (self.predicted, self.evidence) else {
            return self.predicted.is_some() || self.evidence.is_some();
        };
        let Estimate { low, high, .. } = self.widened(evidence);
        low <= predicted && predicted <= high
    }

    /// The smallest error of the prediction that the row would notice: the distance from the
    /// evidence up to which it accepts a prediction.
    pub fn detects(&self) -> Option<f64> {
        self.predicted?;
        let estimate = self.evidence()?;
        let Estimate { value, low, high } = self.widened(estimate);
        Some((high - value).max(value - low))
    }

    /// The largest that [`detects`](Self::detects) may be; `None` for rows whose claim the
    /// interval decides.
    pub fn required(&self) -> Option<f64> {
        let predicted = self.predicted?.abs();
        self.evidence?;
        let decided = self.is_erratum || self.statement.is_some_and(Statement::is_one_sided);
        (!decided).then_some(match self.unit {
            Unit::Relative => POWER * predicted,
            Unit::Log10 => POWER.ln_1p() / std::f64::consts::LN_10,
            Unit::Of(whole) => POWER * whole.abs(),
            Unit::Rare => RARE_POWER * predicted,
        })
    }

    fn is_weak(&self) -> bool {
        // A value exactly at the bound is accepted, whatever the rounding.
        self.detects().zip(self.required()).is_some_and(|(finds, most)| finds > most * (1.0 + 1e-6))
    }

    /// What was compared with what.
    pub fn compared(&self) -> Vec<&'static str> {
        let parties = [
            (self.statement.is_some(), if self.printed.is_some() { "printed" } else { "bound" }),
            (self.predicted.is_some(), "predicted"),
            (self.experiment().is_some(), "measured"),
            (self.computation().is_some(), "checked"),
        ];
        let there: Vec<&str> =
            parties.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)).collect();
        if there.len() > 1 { there } else { Vec::new() }
    }
}

/// A printed number and half a unit of its last digit.
fn parse(text: &str) -> Option<(f64, f64)> {
    let value = text.parse().ok()?;
    let (digits, power) = text.split_once('e').unwrap_or((text, "0"));
    let places = digits.split_once('.').map_or(0, |(_, places)| places.len() as i32);
    Some((value, 0.5 * 10_f64.powi(power.parse::<i32>().ok()? - places)))
}
