//! What a run told, as lines of JSON: first the run, then a row for each subject.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// One key goes in.
    Insert,
    /// A question for a key that is in.
    Hit,
    /// A question for an absent key.
    Miss,
    /// One key is removed.
    Remove,
    /// A key goes in, among many at once.
    BatchInsert,
    /// A question for a key that is in, among many at once.
    BatchHit,
    /// A question for an absent key, among many at once.
    BatchMiss,
    /// A key is removed, among many at once.
    BatchRemove,
    /// On a full filter: an old key is removed, a new one goes in, and a key that is in and an
    /// absent one are asked for.
    Churn,
    /// As `Insert`, with a key of 20 letters that the filter hashes.
    TextInsert,
    /// As `Hit`, with a key of 20 letters that the filter hashes.
    TextHit,
    /// As `Miss`, with a key of 20 letters that the filter hashes.
    TextMiss,
    /// As `Remove`, with a key of 20 letters that the filter hashes.
    TextRemove,
}

impl Operation {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 13] = [
        Self::Insert,
        Self::Hit,
        Self::Miss,
        Self::Remove,
        Self::BatchInsert,
        Self::BatchHit,
        Self::BatchMiss,
        Self::BatchRemove,
        Self::Churn,
        Self::TextInsert,
        Self::TextHit,
        Self::TextMiss,
        Self::TextRemove,
    ];
    /// What a step of churn consists of.
    pub const PLAIN: [Self; 4] = [Self::Insert, Self::Hit, Self::Miss, Self::Remove];

    /// The same for one key, which stands for it where there are no batches.
    #[must_use]
    pub fn plain(self) -> Self {
        match self {
            Self::BatchInsert => Self::Insert,
            Self::BatchHit => Self::Hit,
            Self::BatchMiss => Self::Miss,
            Self::BatchRemove => Self::Remove,
            other => other,
        }
    }

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Remove => "remove",
            Self::BatchInsert => "batch insert",
            Self::BatchHit => "batch hit",
            Self::BatchMiss => "batch miss",
            Self::BatchRemove => "batch remove",
            Self::Churn => "churn",
            Self::TextInsert => "text insert",
            Self::TextHit => "text hit",
            Self::TextMiss => "text miss",
            Self::TextRemove => "text remove",
        }
    }
}

/// Whose a subject is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// A kind of this library.
    Ours,
    /// Another crate's.
    Rival,
    /// What no filter can beat.
    Floor,
}

/// Of several rounds: the median and the quartiles.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// The median.
    pub median: f64,
    /// The lower quartile.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
}

/// The share of absent keys that are answered yes, with its 99.9% interval.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// The share.
    pub measured: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// How many absent keys were asked for.
    pub queries: u64,
}

/// A subject after churn.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Churned {
    /// Steps that were taken, with those before the timed ones.
    pub steps: u64,
    /// The time of a step over the sum of the four operations that it consists of.
    pub ratio: Timing,
    /// Memory held.
    pub bits_per_key: f64,
    /// The rate.
    pub rate: Rate,
}

/// What is known of one subject at one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The name of the subject.
    pub name: String,
    /// Whose it is.
    pub side: Side,
    /// Of ours: the rivals for whose rates it was planned.
    pub partner_of: Vec<String>,
    /// Whether it is built from all keys at once; inserting is then the building, over keys.
    pub built_once: bool,
    /// The share of the planned keys that went in.
    pub load: f64,
    /// Keys that went in.
    pub keys: u64,
    /// The rate that it was planned for, where one can be said.
    pub target_rate: Option<f64>,
    /// The rate; floors have none.
    pub rate: Option<Rate>,
    /// Memory held.
    pub bits_per_key: f64,
    /// Nanoseconds of processor time an operation, where there is one.
    pub ns: BTreeMap<Operation, Timing>,
    /// After churn, if keys can be removed.
    pub churned: Option<Churned>,
    /// Of ours: how many times quicker it is than each of the others.
    pub ratios: BTreeMap<String, BTreeMap<Operation, Timing>>,
    /// What a reader must know to compare it fairly.
    pub note: String,
}

impl Row {
    /// The median of an operation.
    pub fn median(&self, operation: Operation) -> Option<f64> {
        self.ns.get(&operation).map(|timing| timing.median)
    }

    /// The rate; 0 for a floor.
    pub fn measured_rate(&self) -> f64 {
        self.rate.map_or(0.0, |rate| rate.measured)
    }
}

/// A run and its machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The words of the command line.
    pub command: String,
    /// The commit, with a `+` if the sources were changed since.
    pub commit: String,
    /// The processor.
    pub processor: String,
    /// Its cores, as the system counts them.
    pub cores: usize,
    /// Whether it has AVX2.
    pub avx2: bool,
    /// Whether it has AVX-512 (F).
    pub avx512: bool,
    /// What the one who ran it says of the machine.
    pub remark: String,
    /// Keys planned.
    pub keys: u64,
    /// The rate that filters are planned for, where it can be said.
    pub rate: f64,
    /// Rounds.
    pub rounds: usize,
}

/// A run with its rows.
#[derive(Clone, Debug)]
pub struct Record {
    /// The run.
    pub run: Run,
    /// Its rows.
    pub rows: Vec<Row>,
}

impl Record {
    /// As lines.
    pub fn lines(&self) -> Result<String> {
        let mut lines = serde_json::to_string(&self.run)? + "\n";
        for row in &self.rows {
            lines += &(serde_json::to_string(row)? + "\n");
        }
        Ok(lines)
    }

    /// All runs of a file.
    pub fn read(path: &Path) -> Result<Vec<Self>> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut records: Vec<Self> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let at = || format!("{}, line {}", path.display(), number + 1);
            if let Ok(run) = serde_json::from_str(line) {
                records.push(Self { run, rows: Vec::new() });
            } else {
                let record = records.last_mut().with_context(at)?;
                record.rows.push(serde_json::from_str(line).with_context(at)?);
            }
        }
        ensure!(!records.is_empty(), "{} has no run", path.display());
        Ok(records)
    }
}
