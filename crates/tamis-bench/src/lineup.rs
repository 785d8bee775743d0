//! Who takes part.

use anyhow::Result;
use serde::Serialize;

use crate::measure::{Case, Round};
use crate::{floors, ours, rivals};

/// One that takes part.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) side: Side,
    /// What a reader must know to compare it fairly.
    pub(crate) note: &'static str,
    pub(crate) run: fn(&Case) -> Result<Round>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Side {
    Ours,
    Rival,
    Floor,
}

/// All whose names contain one of these words; all if there is none.
pub(crate) fn choose(words: &[String]) -> Vec<&'static Entry> {
    [ours::ENTRIES, rivals::ENTRIES, floors::ENTRIES]
        .into_iter()
        .flatten()
        .filter(|entry| {
            words.is_empty() || words.iter().any(|word| entry.name.contains(word.as_str()))
        })
        .collect()
}
