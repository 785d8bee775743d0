//! Who takes part.

use anyhow::Result;
use tamis_bench::record::Side;

use crate::measure::{Case, Round};
use crate::{floors, ours, rivals};

type Run = dyn Fn(&Case<'_>) -> Result<Round>;

/// One that takes part.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) side: Side,
    /// What a reader must know to compare it fairly.
    pub(crate) note: &'static str,
    /// The rate that it is planned for, where one can be said.
    pub(crate) target_rate: Option<f64>,
    pub(crate) built_once: bool,
    /// Of a rival with fingerprints of whole bits: the side of the asked rate on which its own is.
    pub(crate) step: Option<Step>,
    /// Of ours: the rivals for whose rates it was planned.
    pub(crate) partner_of: Vec<String>,
    pub(crate) run: Box<Run>,
}

/// Where rates come in steps: the nearest that is not below the asked one, and the next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Coarse,
    Fine,
}

impl Entry {
    pub(crate) fn new(
        name: &str,
        side: Side,
        note: &'static str,
        target_rate: Option<f64>,
        run: impl Fn(&Case<'_>) -> Result<Round> + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            side,
            note,
            target_rate,
            built_once: false,
            step: None,
            partner_of: Vec::new(),
            run: Box::new(run),
        }
    }

    pub(crate) fn built_once(mut self) -> Self {
        self.built_once = true;
        self
    }

    pub(crate) fn on(mut self, step: Step) -> Self {
        self.step = Some(step);
        self
    }
}

/// All whose names contain one of these words, or all if there is none. A word that is the whole
/// name of one means that one alone.
pub(crate) fn choose(words: &[String], keys: u64, rate: f64) -> Vec<Entry> {
    let all = [ours::entries(keys, rate), rivals::entries(keys, rate), floors::entries()];
    let mut all: Vec<Entry> = all.into_iter().flatten().collect();
    let names: Vec<String> = all.iter().map(|entry| entry.name.clone()).collect();
    let means = |word: &String, name: &String| {
        if names.contains(word) { word == name } else { name.contains(word.as_str()) }
    };
    all.retain(|entry| words.is_empty() || words.iter().any(|word| means(word, &entry.name)));
    all
}

/// For the rivals of each step one of ours with as many keys and, of their rates as `rounds` have
/// measured them, the lowest.
pub(crate) fn partners(entries: &[Entry], rounds: &[Vec<Round>], case: &Case) -> Vec<Entry> {
    let of = |step: Step| {
        let rivals = entries.iter().zip(rounds).filter(|(entry, _)| entry.step == Some(step));
        let rivals: Vec<(&str, &Round)> =
            rivals.map(|(entry, rounds)| (entry.name.as_str(), &rounds[0])).collect();
        let lowest = rivals.iter().map(|(_, round)| round.false_positives).min()?;
        let rate = lowest as f64 / case.absent.len() as f64;
        let names = rivals.iter().map(|(name, _)| (*name).to_owned()).collect();
        // Without false positives there is no rate to plan for.
        (rate > 0.0).then(|| ours::partner(names, rivals[0].1.keys, rate))
    };
    [Step::Coarse, Step::Fine].into_iter().filter_map(of).collect()
}
