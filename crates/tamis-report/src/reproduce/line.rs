//! A row as it is printed and stored: the contract of `tamis reproduce --json`.

use serde::Serialize;

use super::{Row, Verdict};

/// What a source prints.
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
    /// What the model predicts.
    pub predicted: Option<f64>,
    /// What the experiment measured.
    pub measured: Option<f64>,
    /// The result of the second computation.
    pub checked: Option<f64>,
    /// Lower end of the interval of the experiment or the computation.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How far apart prediction and evidence may be beside the interval.
    pub slack: f64,
    /// The smallest error of the prediction that the row would notice.
    pub detects: Option<f64>,
    /// The largest that `detects` may be; beyond it the row is weak.
    pub required: Option<f64>,
    /// What was compared with what.
    pub compared: Vec<&'static str>,
    /// One of [`Verdict::ALL`].
    pub verdict: Verdict,
    /// Why the source is wrong, or what else must be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// Why there is slack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack_reason: Option<&'a str>,
    /// How the second computation was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computation: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// A row of an item of a document.
    pub fn new(document: &'a str, item: &'a str, row: &'a Row) -> Self {
        let evidence = row.evidence();
        let is_experiment = row.experiment().is_some();
        Self {
            document,
            item,
            row: &row.name,
            printed: row.printed.map(Printed::new),
            predicted: row.predicted,
            measured: evidence.filter(|_| is_experiment).map(|estimate| estimate.value),
            checked: evidence.filter(|_| !is_experiment).map(|estimate| estimate.value),
            low: evidence.map(|estimate| estimate.low),
            high: evidence.map(|estimate| estimate.high),
            slack: row.slack_and_reason().map_or(0.0, |(amount, _)| amount),
            detects: row.detects(),
            required: row.required(),
            compared: row.compared(),
            verdict: row.verdict(),
            reason: row.reason,
            slack_reason: row.slack_and_reason().map(|(_, why)| why),
            computation: row.computation(),
        }
    }
}
