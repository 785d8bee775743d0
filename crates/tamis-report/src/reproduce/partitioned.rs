//! Document 002, first half: partitioned hashing. The second half is in `fast_tables`.

use serde::{Deserialize, Serialize};
use tamis::bloom::BloomParams;
use tamis::bloom::model::{predict_bloom, rate as plain_rate};
use tamis::partitioned::{PartitionedParams, model};
use tamis::{Bloom, Digest, Filter, Hasher, Insert, Label, PartitionedBloom, Stored};

use super::{Document, Effort, Estimate, Experiment, Item, Results, Row, Trouble, fast_tables};
use crate::keys::KeyStream;
use crate::plot::{Axis, Mark, Plot, Point, Series};

/// Bits of every filter, as in the source.
const BITS: u64 = 10_000;

/// One filter of the source: keys, groups, candidates and functions for each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting {
    keys: u64,
    groups: u64,
    candidates: u32,
    hashes: u32,
}

/// The source's own: 350 groups, 10,000 candidates, 6 functions.
const OWN: Setting = Setting { keys: 1000, groups: 350, candidates: 10_000, hashes: 6 };

const GROUPS: [u64; 9] = [1, 5, 20, 50, 100, 200, 350, 500, 2000];
const CANDIDATES: [u32; 8] = [8, 30, 100, 300, 1000, 3000, 10_000, 30_000];
const HASHES: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const KEYS: [u64; 4] = [800, 1000, 1200, 1600];

impl Setting {
    fn params(self) -> Result<PartitionedParams, Trouble> {
        Ok(PartitionedParams::new(BITS, 1, self.groups, self.candidates, self.hashes)?)
    }

    fn name(self) -> String {
        let Self { keys, groups, candidates, hashes } = self;
        format!("partitioned {keys} {groups} {candidates} {hashes}")
    }

    /// The model's rate, where empty groups answer too, as in the source: fill to the power of k.
    fn predicted(self) -> Result<f64, Trouble> {
        Ok(model::expected_fill(&self.params()?, self.keys).powi(self.hashes as i32))
    }

    /// What 3% of the fill make of k positions: as near as the model comes.
    fn model_error(self) -> f64 {
        1.03_f64.powi(self.hashes as i32) - 1.0
    }
}

/// One filter that was built.
#[derive(Serialize, Deserialize)]
struct Filled {
    fill: f64,
    passed: u64,
    queries: u64,
}

fn build(setting: Setting, seed: u64) -> Result<Filled, Trouble> {
    let (stream, hasher) = (KeyStream::new(seed), Hasher::default());
    let digests: Vec<Digest> = stream.members(hasher, 0..setting.keys).collect();
    let filter = PartitionedBloom::build(setting.params()?, hasher, &digests)?;
    ask(&filter, &digests, stream, 100_000)
}

fn build_plain(keys: u64, hashes: u32, seed: u64) -> Result<Filled, Trouble> {
    let (stream, hasher) = (KeyStream::new(seed), Hasher::default());
    let digests: Vec<Digest> = stream.members(hasher, 0..keys).collect();
    let mut filter = Bloom::new(BloomParams::new(BITS, hashes)?, Label::from(hasher))?;
    filter.insert_many(&digests)?;
    ask(&filter, &digests, stream, 100_000)
}

fn ask<F: Filter>(
    filter: &F,
    digests: &[Digest],
    stream: KeyStream,
    queries: u64,
) -> Result<Filled, Trouble> {
    if !digests.iter().all(|&digest| filter.contains_digest(digest)) {
        return Err("a filter lost a key".into());
    }
    let strangers = stream.strangers(filter.hasher(), 0..queries);
    let passed = strangers.filter(|&digest| filter.contains_digest(digest)).count() as u64;
    Ok(Filled { fill: filter.fill(), passed, queries })
}

fn settings() -> Vec<Setting> {
    let groups = GROUPS.map(|groups| Setting { groups, ..OWN });
    let candidates = CANDIDATES.map(|candidates| Setting { candidates, ..OWN });
    let hashes = HASHES.map(|hashes| Setting { hashes, ..OWN });
    let keys = KEYS.map(|keys| Setting { keys, ..OWN });
    groups.into_iter().chain(candidates).chain(hashes).chain(keys).collect()
}

fn plain_name(keys: u64, hashes: u32) -> String {
    format!("plain {keys} {hashes}")
}

pub(super) fn experiments(effort: Effort) -> Vec<Experiment> {
    let trials = effort.pick(1, 6, 30);
    let mut all: Vec<Experiment> = settings()
        .into_iter()
        .map(|setting| {
            let cost = 0.01 + f64::from(setting.candidates) * f64::from(setting.hashes) * 4e-6;
            Experiment::new(setting.name(), trials, cost, move |seed| build(setting, seed))
        })
        .collect();
    let by_keys = KEYS.map(|keys| (keys, OWN.hashes));
    let by_hashes = HASHES.map(|hashes| (OWN.keys, hashes));
    for (keys, hashes) in by_keys.into_iter().chain(by_hashes) {
        let run = move |seed| build_plain(keys, hashes, seed);
        all.push(Experiment::new(plain_name(keys, hashes), effort.pick(4, 20, 100), 0.005, run));
    }
    all.extend(fast_tables::experiments(effort));
    all
}

pub(super) fn document(results: &Results) -> Result<Document, Trouble> {
    let mut items = vec![
        figure_three(results)?,
        figure_four(results)?,
        figure_five(results)?,
        figure_six(results)?,
        stored_choices(results)?,
    ];
    items.extend(fast_tables::items(results)?);
    Ok(Document {
        remarks: &[
            "\"Number of keys per group (k)\" is the number of hash functions per group.",
            "Pruned table, insertion: step 3 must empty the indexed lists; the counters stay.",
            "Pruned table, deletion: step 1 must gather the items of the off-line full lists, and step 3 must move them without touching the counters again.",
        ],
        number: "002",
        title: "Partitioned hashing and fast hash tables",
        source: "Project report on partitioned hashing (Hao, Kodialam, Lakshman: SIGMETRICS 2007) and fast hash tables (Song, Dharmapurikar, Turner, Lockwood: SIGCOMM 2005).",
        finding: "Partitioning lowers the rate as the report says, but the report does not count the stored choices: with them a plain filter of the same \
            size is better from 100 groups on. There is no best number of groups or candidates. Of the fast tables the pruned one is the one to use, and only with enough buckets.",
        items,
    })
}

/// The measured fill to the power of k, in the mean over key sets.
fn measured(results: &Results, setting: Setting) -> Result<Estimate, Trouble> {
    let trials: Vec<Filled> = results.get(&setting.name())?;
    let fills: Vec<f64> = trials.iter().map(|trial| trial.fill).collect();
    Ok(Estimate::mean(&fills).map(|fill| fill.max(0.0).powi(setting.hashes as i32)))
}

/// A figure of the rate over one parameter.
struct Sweep<'a> {
    results: &'a Results,
    rows: Vec<Row>,
    line: Vec<(f64, f64)>,
    marks: Vec<Point>,
}

impl<'a> Sweep<'a> {
    fn new(results: &'a Results) -> Self {
        Self { results, rows: Vec::new(), line: Vec::new(), marks: Vec::new() }
    }

    fn add(&mut self, name: String, x: f64, setting: Setting) -> Result<(), Trouble> {
        let (predicted, measured) = (setting.predicted()?, measured(self.results, setting)?);
        self.line.push((x, predicted));
        let interval = Some((measured.low, measured.high));
        self.marks.push(Point { x, y: measured.value, interval });
        let row = Row::new(name).predicted(predicted).measured(measured);
        self.rows.push(row.model_within(setting.model_error()));
        Ok(())
    }

    /// Whether the measured rate falls from point to point.
    fn falls(&self) -> bool {
        self.marks.windows(2).all(|pair| pair[1].y < pair[0].y)
    }

    fn plot(&self, name: &str, across: Axis) -> Plot {
        Plot::new(name, across, Axis::log("rate (share of strangers that pass)"))
            .with(Series::line("partitioned", self.line.clone()).coloured(0))
            .with(
                Series::marks("partitioned, measured", self.marks.clone())
                    .marked(Mark::Ring)
                    .coloured(0),
            )
    }

    fn claim(&mut self, name: &str, text: &'static str, holds: bool, wrong: &'static str) {
        let last = self.line.last().map_or(0.0, |point| point.1);
        let row = Row::new(name).predicted(last).claims(text, holds);
        self.rows.push(if holds { row } else { row.erratum(wrong) });
    }
}

fn figure_three(results: &Results) -> Result<Item, Trouble> {
    let mut sweep = Sweep::new(results);
    for candidates in CANDIDATES {
        let name = format!("H = {candidates}");
        sweep.add(name, candidates.into(), Setting { candidates, ..OWN })?;
    }
    let falls = sweep.falls();
    sweep.claim(
        "H = 30000: rate beyond the best H",
        "least at H = 10,000",
        !falls,
        "The rate falls on to 30,000 candidates and beyond; 10,000 was presumably the largest that was tried. Stored choices are not counted.",
    );
    let plot = sweep.plot("Figure 3", Axis::log("candidate functions, H"));
    let about = "Rate against candidate functions: 1000 keys, 10,000 bits, 350 groups, 6 functions each. The figure of the source is lost.";
    Ok(Item::figure("Figure 3", about, plot, sweep.rows))
}

fn figure_four(results: &Results) -> Result<Item, Trouble> {
    let mut sweep = Sweep::new(results);
    for groups in GROUPS {
        sweep.add(format!("g = {groups}"), groups as f64, Setting { groups, ..OWN })?;
    }
    let falls = sweep.falls();
    sweep.claim("g = 2000: rate with more groups", "falls with g", falls, "");
    sweep.claim(
        "g = 2000: rate beyond the best g",
        "least at g = 350",
        !falls,
        "The rate falls on to 2000 groups; 350 was presumably the largest that was tried. Stored choices are not counted.",
    );
    let with_choices: Vec<(f64, f64)> = GROUPS
        .into_iter()
        .map(|groups| Ok((groups as f64, equal_memory(Setting { groups, ..OWN })?)))
        .collect::<Result<_, Trouble>>()?;
    let plot = sweep.plot("Figure 4", Axis::log("groups, g")).with(
        Series::line("plain filter with the stored choices' bits too", with_choices).coloured(6),
    );
    let about = "Rate against groups: 1000 keys, 10,000 bits, 10,000 candidates, 6 functions for each group. The figure of the source is lost; \
        the black line is not in it.";
    Ok(Item::figure("Figure 4", about, plot, sweep.rows))
}

fn figure_five(results: &Results) -> Result<Item, Trouble> {
    let mut sweep = Sweep::new(results);
    for hashes in HASHES {
        sweep.add(format!("k = {hashes}"), hashes.into(), Setting { hashes, ..OWN })?;
    }
    let falls = sweep.falls();
    sweep.claim(
        "k = 8: rate with more functions",
        "rises with k",
        !falls,
        "It falls with k in every case tried; it rises only for a standard filter beyond ln 2 m/n functions.",
    );
    let (line, marks) =
        plain_series(results, &mut sweep.rows, HASHES.map(|k| (k.into(), OWN.keys, k)))?;
    let plot = with_plain(
        sweep.plot("Figure 5", Axis::linear("functions for each group, k")),
        line,
        marks,
    );
    let about = "Rate against functions for each group: 1000 keys, 10,000 bits, 350 groups, 10,000 candidates. The figure of the source is lost.";
    Ok(Item::figure("Figure 5", about, plot, sweep.rows))
}

fn figure_six(results: &Results) -> Result<Item, Trouble> {
    let mut sweep = Sweep::new(results);
    for keys in KEYS {
        sweep.add(format!("n = {keys}, partitioned"), keys as f64, Setting { keys, ..OWN })?;
    }
    let points = KEYS.map(|keys| (keys as f64, keys, OWN.hashes));
    let (line, marks) = plain_series(results, &mut sweep.rows, points)?;
    let better = line.iter().zip(&sweep.marks).all(|(plain, ours)| ours.y < plain.1);
    sweep.claim("n = 1600: partitioned against standard", "partitioned is better", better, "");
    let plot = with_plain(sweep.plot("Figure 6", Axis::linear("keys, n")), line, marks);
    let about = "Rate against keys, beside a standard filter of 10,000 bits and 6 functions. The figure of the source is lost, and it does not count the stored choices.";
    Ok(Item::figure("Figure 6", about, plot, sweep.rows))
}

type PlainSeries = (Vec<(f64, f64)>, Vec<Point>);

/// The standard filter beside it: places on the axis, keys and functions.
fn plain_series(
    results: &Results,
    rows: &mut Vec<Row>,
    points: impl IntoIterator<Item = (f64, u64, u32)>,
) -> Result<PlainSeries, Trouble> {
    let (mut line, mut marks) = (Vec::new(), Vec::new());
    for (x, keys, hashes) in points {
        let predicted = plain_rate(BITS, hashes, keys);
        let trials: Vec<Filled> = results.get(&plain_name(keys, hashes))?;
        let passed = trials.iter().map(|trial| trial.passed).sum();
        let queries = trials.iter().map(|trial| trial.queries).sum();
        let params = BloomParams::new(BITS, hashes)?;
        let spread = predict_bloom(&params, keys).rate_spread / (trials.len() as f64).sqrt();
        let measured = Estimate::rate(passed, queries, spread);
        line.push((x, predicted));
        marks.push(Point { x, y: measured.value, interval: Some((measured.low, measured.high)) });
        let row = Row::new(format!("n = {keys}, k = {hashes}: standard"));
        rows.push(row.predicted(predicted).measured(measured));
    }
    Ok((line, marks))
}

fn with_plain(plot: Plot, line: Vec<(f64, f64)>, marks: Vec<Point>) -> Plot {
    plot.with(Series::line("standard", line).coloured(1))
        .with(Series::marks("standard, measured", marks).marked(Mark::Ring).coloured(1))
}

/// The rate of a plain filter that has the bits of the array and of the stored choices, with its best k.
fn equal_memory(setting: Setting) -> Result<f64, Trouble> {
    let bits = BITS + setting.params()?.choice_bits();
    Ok((1..64).map(|hashes| plain_rate(bits, hashes, setting.keys)).fold(1.0, f64::min))
}

fn stored_choices(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for groups in GROUPS {
        let setting = Setting { groups, ..OWN };
        rows.push(
            Row::new(format!("g = {groups}: stored choices, bits"))
                .predicted(setting.params()?.choice_bits() as f64),
        );
        let plain = equal_memory(setting)?;
        rows.push(Row::new(format!("g = {groups}: plain filter of equal memory")).predicted(plain));
    }
    let own = Setting { groups: 350, ..OWN };
    rows.push(
        Row::new("g = 350: rate of a plain filter of equal memory")
            .claims("partitioned is better", equal_memory(own)? > measured(results, own)?.value)
            .predicted(equal_memory(own)?)
            .erratum("The report does not count the stored choices, three times the filter at 350 groups; with them partitioning wins only for groups of 20 keys and more."),
    );
    // Not a number of the report: the best of the notes at 10 bits per key in total.
    let fair = PartitionedParams::new(8080, 1, 20, 1 << 12, 8)?;
    rows.push(
        Row::new("10 bits per key in total, g = 20, H = 4096, k = 8: rate")
            .predicted(model::rate(&fair, OWN.keys)),
    );
    rows.push(
        Row::new("10 bits per key in total: rate of a plain filter")
            .predicted(plain_rate(BITS, 7, OWN.keys)),
    );
    Ok(Item::table(
        "Stored choices",
        "What the comparison of the report leaves out: the bits that say which functions a group has.",
        rows,
    ))
}
