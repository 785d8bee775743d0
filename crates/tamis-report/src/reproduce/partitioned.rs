//! Document 002, first half: partitioned hashing. The second half is in `fast_tables`.

use serde::{Deserialize, Serialize};
use tamis::bloom::BloomParams;
use tamis::internals::bloom::model::{predict_bloom, rate as plain_rate};
use tamis::internals::partitioned::model;
use tamis::partitioned::PartitionedParams;
use tamis::{Bloom, Digest, Filter, Hasher, Insert, Label, PartitionedBloom, Stored};

use super::{
    Claim, Document, Effort, Estimate, Experiment, Item, Results, Row, Trouble, Unit, built,
    fast_tables, own_functions,
};
use crate::keys::KeyStream;
use crate::plot::{Axis, Mark, Plot, Point, Series};

/// Bits of every filter, as in the source.
pub(super) const BITS: u64 = 10_000;

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

/// Points of the figures.
const GROUPS: [u64; 9] = [1, 5, 20, 50, 100, 200, 350, 500, 2000];
const CANDIDATES: [u32; 8] = [8, 30, 100, 300, 1000, 3000, 10_000, 30_000];
const HASHES: [u32; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const KEYS: [u64; 4] = [800, 1000, 1200, 1600];

/// How far the model may be off, as a share of the fill: with up to 1000 keys, and with more.
pub(super) const FILL_SLACK: [f64; 2] = [0.007, 0.014];
pub(super) const FILL_SLACK_WHY: &str = "The model takes every group for a mean one: its fill is 0.4% off with 20 groups, and 1.1% with 1600 keys (30 filters each).";

impl Setting {
    fn params(self) -> Result<PartitionedParams, Trouble> {
        Ok(PartitionedParams::new(BITS, 1, self.groups, self.candidates, self.hashes)?)
    }

    fn name(self) -> String {
        let Self { keys, groups, candidates, hashes } = self;
        format!("partitioned {keys} {groups} {candidates} {hashes}")
    }

    /// The name of the experiment where it is built for a claim only.
    fn claimed(self) -> String {
        format!("claimed {}", self.name())
    }

    fn fill_slack(self) -> f64 {
        FILL_SLACK[usize::from(self.keys > OWN.keys)]
    }

    /// The factor by which a rate is too large if its fill is off by the slack.
    fn rate_factor(self) -> f64 {
        (1.0 + self.fill_slack()).powi(self.hashes as i32)
    }

    fn predicted_fill(self) -> Result<f64, Trouble> {
        Ok(model::expected_fill(&self.params()?, self.keys))
    }

    /// The rate by the model: the fill to the power of k. As in the source, empty groups count
    /// like others.
    fn predicted(self) -> Result<f64, Trouble> {
        Ok(self.predicted_fill()?.powi(self.hashes as i32))
    }

    /// Its part in a quick run: as a point of a figure, for a claim only, or none. Candidates cost
    /// time, so the source's own point represents its neighbours.
    fn in_quick_run(self) -> Part {
        let Self { keys, groups, candidates, hashes } = self;
        let ends = [
            Setting { groups: 2000, ..OWN },
            Setting { candidates: 30_000, ..OWN },
            Setting { hashes: 1, ..OWN },
            Setting { hashes: 8, ..OWN },
        ];
        if ends.contains(&self) {
            Part::Claim
        } else if candidates < OWN.candidates
            || ([1, 20, 350].contains(&groups) && hashes == 6 && [1000, 1600].contains(&keys))
        {
            Part::Point
        } else {
            Part::None
        }
    }

    /// How many filters are built: a few for a claim, and for a point enough for an interval of
    /// two percent of the fill. With small groups and many candidates fills differ by one percent,
    /// with large groups by a fifth of that.
    fn filters(self, effort: Effort) -> u64 {
        let needed = match self {
            Self { groups: ..350, .. } => 8,
            Self { groups: 2000.., .. } => 34,
            Self { keys: 1600.., .. } | Self { candidates: 3000.., .. } => 30,
            _ => 20,
        };
        match (effort, self.in_quick_run()) {
            (Effort::Full, _) => 4 * needed,
            (_, Part::None) => 0,
            (Effort::Least, _) => 2,
            (Effort::Quick, Part::Point) => needed,
            (Effort::Quick, Part::Claim) => 8,
        }
    }

    /// How many absent keys are looked up in all: enough for some ten thousand false positives, or
    /// some hundred where they are rare; none where even that is too much.
    fn queries(self, effort: Effort) -> u64 {
        let rate = self.predicted().unwrap_or(1.0);
        let passing = if rate >= OFTEN { 30_000.0 } else { 700.0 };
        let queries = passing / rate * effort.pick(0.01, 1.0, 4.0);
        if queries <= effort.pick(1e4, 5e7, 1e9) { queries as u64 } else { 0 }
    }
}

/// The part of a setting in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    None,
    Claim,
    Point,
}

/// Rates from this one up are measured to three percent; lower ones as rare events.
const OFTEN: f64 = 1e-3;

/// One filter that was built.
#[derive(Serialize, Deserialize)]
pub(super) struct Filled {
    pub(super) fill: f64,
    /// The rate by its own bits.
    pub(super) rate: f64,
    pub(super) passed: u64,
    pub(super) queries: u64,
}

fn build(setting: Setting, queries: u64, seed: u64) -> Result<Filled, Trouble> {
    partitioned(setting.params()?, setting.keys, queries, seed)
}

pub(super) fn partitioned(
    params: PartitionedParams,
    keys: u64,
    queries: u64,
    seed: u64,
) -> Result<Filled, Trouble> {
    let (stream, hasher) = (KeyStream::new(seed), Hasher::default());
    let digests: Vec<Digest> = stream.members(hasher, 0..keys).collect();
    let filter = PartitionedBloom::build(params, hasher, &digests)?;
    ask(&filter, &digests, stream, queries)
}

fn plain(bits: u64, keys: u64, hashes: u32, queries: u64, seed: u64) -> Result<Filled, Trouble> {
    let (stream, hasher) = (KeyStream::new(seed), Hasher::default());
    let digests: Vec<Digest> = stream.members(hasher, 0..keys).collect();
    let mut filter = Bloom::new(BloomParams::new(bits, hashes)?, Label::from(hasher))?;
    filter.insert_many(&digests)?;
    ask(&filter, &digests, stream, queries)
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
    let passed = built::passed(filter, stream, 0..queries)?;
    Ok(Filled { fill: filter.fill(), rate: filter.rate(), passed, queries })
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

/// The best of the notes at 10 bits per key in total; not in the source.
fn fair() -> Result<PartitionedParams, Trouble> {
    Ok(PartitionedParams::new(8080, 1, 20, 1 << 12, 8)?)
}

pub(super) fn experiments(effort: Effort) -> Vec<Experiment> {
    let mut all = Vec::new();
    for setting in settings() {
        let filters = setting.filters(effort);
        let queries = setting.queries(effort).checked_div(filters).unwrap_or(0);
        let building = f64::from(setting.candidates) * f64::from(setting.hashes) * 2e-6;
        let cost = 0.01 + building + queries as f64 * 2e-8;
        let run = move |seed| build(setting, queries, seed);
        let is_point = effort == Effort::Full || setting.in_quick_run() == Part::Point;
        let name = if is_point { setting.name() } else { setting.claimed() };
        if filters > 0 {
            all.push(Experiment::new(name, filters, cost, run).with_setup(queries));
        }
    }
    let filters = effort.pick(1, 10, 100);
    let queries = 10_000_000 / filters;
    let run = move |seed| partitioned(fair()?, OWN.keys, queries, seed);
    all.push(Experiment::new("partitioned-fair", filters, 0.1, run).with_setup(queries));
    let by_keys = KEYS.map(|keys| (keys, OWN.hashes));
    let by_hashes = HASHES.map(|hashes| (OWN.keys, hashes));
    // Filters of 1000 keys differ by six percent.
    let filters = effort.pick(4, 800, 3000);
    for (keys, hashes) in by_keys.into_iter().chain(by_hashes) {
        let passing = effort.pick(1e3, 1e5, 4e5);
        let queries = (passing / plain_rate(BITS, hashes, keys)) as u64 / filters;
        let run = move |seed| plain(BITS, keys, hashes, queries, seed);
        let experiment = Experiment::new(plain_name(keys, hashes), filters, 5e-4, run);
        all.push(experiment.with_setup(queries));
    }
    // If this fails, the missing experiment is reported when its results are needed.
    if let Ok((bits, hashes)) = equal_memory(OWN) {
        let run = move |seed| plain(bits, OWN.keys, hashes, 0, seed);
        all.push(Experiment::new("plain-equal", filters, 5e-4, run));
    }
    all.extend(own_functions::experiments(effort));
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
        own_functions::item(results)?,
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

/// The measured fill: the mean over key sets.
fn measured_fill(results: &Results, setting: Setting) -> Result<Estimate, Trouble> {
    let name = if results.has(&setting.name()) { setting.name() } else { setting.claimed() };
    let trials: Vec<Filled> = results.get(&name)?;
    Ok(Estimate::mean(&trials.iter().map(|trial| trial.fill).collect::<Vec<f64>>()))
}

/// The measured fill to the power of k.
fn measured(results: &Results, setting: Setting) -> Result<Estimate, Trouble> {
    let fill = measured_fill(results, setting)?;
    Ok(fill.map(|fill| fill.max(0.0).powi(setting.hashes as i32)))
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

    fn add(&mut self, name: &str, x: f64, setting: Setting) -> Result<(), Trouble> {
        self.line.push((x, setting.predicted()?));
        if !self.results.has(&setting.name()) {
            return Ok(());
        }
        let Estimate { value, low, high } = measured(self.results, setting)?;
        self.marks.push(Point { x, y: value, interval: Some((low, high)) });
        let fill = setting.predicted_fill()?;
        self.rows.push(
            Row::new(format!("{name}: fill"))
                .predicted(fill)
                .measured(measured_fill(self.results, setting)?)
                .slack(setting.fill_slack() * fill, FILL_SLACK_WHY),
        );
        let trials: Vec<Filled> = self.results.get(&setting.name())?;
        let queries: u64 = trials.iter().map(|trial| trial.queries).sum();
        if queries > 0 {
            let passed = trials.iter().map(|trial| trial.passed).sum();
            let rate = trials.iter().map(|trial| trial.rate).sum::<f64>() / trials.len() as f64;
            let unit = if rate >= OFTEN { Unit::Relative } else { Unit::Rare };
            self.rows.push(
                Row::new(format!("{name}: rate"))
                    .predicted(rate)
                    .measured(Estimate::share(passed, queries))
                    .unit(unit)
                    .note("Predicted from the bits of the filters, measured by asking them for absent keys."),
            );
        }
        Ok(())
    }

    fn plot(&self, name: &str, across: Axis) -> Plot {
        Plot::new(name, across, Axis::log("rate (share of absent keys that pass)"))
            .with(Series::line("partitioned", self.line.clone()).coloured(0))
            .with(
                Series::marks("partitioned, measured", self.marks.clone())
                    .marked(Mark::Ring)
                    .coloured(0),
            )
    }

    /// A claim about the ratio of the rates at two settings.
    fn claim(
        &self,
        name: &str,
        text: &'static str,
        claim: Claim,
        (above, below): (Setting, Setting),
    ) -> Result<Row, Trouble> {
        let slack = above.rate_factor() * below.rate_factor() - 1.0;
        let predicted = above.predicted()? / below.predicted()?;
        let ratio = measured(self.results, above)?.over(measured(self.results, below)?);
        let row = Row::new(name).claims(text, claim).predicted(predicted).measured(ratio);
        Ok(row.slack(predicted * slack, FILL_SLACK_WHY))
    }
}

fn figure_three(results: &Results) -> Result<Item, Trouble> {
    let mut sweep = Sweep::new(results);
    for candidates in CANDIDATES {
        let name = format!("H = {candidates}");
        sweep.add(&name, candidates.into(), Setting { candidates, ..OWN })?;
    }
    let more = Setting { candidates: 30_000, ..OWN };
    let best = sweep.claim(
        "rate at H = 30,000 over that at H = 10,000",
        "least at H = 10,000",
        Claim::AtLeast(1.0),
        (more, OWN),
    )?;
    sweep.rows.push(best.erratum("The rate falls on to 30,000 candidates and beyond; 10,000 was presumably the largest that was tried. Stored choices are not counted."));
    let plot = sweep.plot("Figure 3", Axis::log("candidate functions, H"));
    let about = "Rate against candidate functions: 1000 keys, 10,000 bits, 350 groups, 6 functions each. The figure of the source is lost.";
    Ok(Item::figure("Figure 3", about, plot, sweep.rows))
}

fn figure_four(results: &Results) -> Result<Item, Trouble> {
    let mut sweep = Sweep::new(results);
    for groups in GROUPS {
        sweep.add(&format!("g = {groups}"), groups as f64, Setting { groups, ..OWN })?;
    }
    let (one, many) = (Setting { groups: 1, ..OWN }, Setting { groups: 2000, ..OWN });
    let falls = sweep.claim(
        "rate at g = 350 over that at g = 1",
        "falls with g",
        Claim::AtMost(1.0),
        (OWN, one),
    )?;
    sweep.rows.push(falls);
    let best = sweep.claim(
        "rate at g = 2000 over that at g = 350",
        "least at g = 350",
        Claim::AtLeast(1.0),
        (many, OWN),
    )?;
    sweep.rows.push(best.erratum("The rate falls on to 2000 groups; 350 was presumably the largest that was tried. Stored choices are not counted."));
    let with_choices: Vec<(f64, f64)> = GROUPS
        .into_iter()
        .map(|groups| Ok((groups as f64, equal_memory_rate(Setting { groups, ..OWN })?)))
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
        sweep.add(&format!("k = {hashes}"), hashes.into(), Setting { hashes, ..OWN })?;
    }
    let (one, many) = (Setting { hashes: 1, ..OWN }, Setting { hashes: 8, ..OWN });
    let rises = sweep.claim(
        "rate at k = 8 over that at k = 1",
        "rises with k",
        Claim::AtLeast(1.0),
        (many, one),
    )?;
    sweep.rows.push(rises.erratum("It falls with k in every case tried; it rises only for a standard filter beyond ln 2 m/n functions."));
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
        sweep.add(&format!("n = {keys}, partitioned"), keys as f64, Setting { keys, ..OWN })?;
    }
    let points = KEYS.map(|keys| (keys as f64, keys, OWN.hashes));
    let (line, marks) = plain_series(results, &mut sweep.rows, points)?;
    let most = Setting { keys: 1600, ..OWN };
    let beside = measured_plain(results, most.keys, most.hashes)?;
    let predicted = most.predicted()? / plain_rate(BITS, most.hashes, most.keys);
    sweep.rows.push(
        Row::new("n = 1600: rate of partitioned over that of standard")
            .claims("partitioned is better", Claim::AtMost(1.0))
            .predicted(predicted)
            .measured(measured(results, most)?.over(beside))
            .slack(predicted * (most.rate_factor() - 1.0), FILL_SLACK_WHY),
    );
    let plot = with_plain(sweep.plot("Figure 6", Axis::linear("keys, n")), line, marks);
    let about = "Rate against keys, beside a standard filter of 10,000 bits and 6 functions. The figure of the source is lost, and it does not count the stored choices.";
    Ok(Item::figure("Figure 6", about, plot, sweep.rows))
}

/// The rate of standard filters of 10,000 bits, by lookups of absent keys.
fn measured_plain(results: &Results, keys: u64, hashes: u32) -> Result<Estimate, Trouble> {
    let trials: Vec<Filled> = results.get(&plain_name(keys, hashes))?;
    let passed = trials.iter().map(|trial| trial.passed).sum();
    let queries = trials.iter().map(|trial| trial.queries).sum();
    let params = BloomParams::new(BITS, hashes)?;
    let spread = predict_bloom(&params, keys).rate_spread / (trials.len() as f64).sqrt();
    Ok(Estimate::rate(passed, queries, spread))
}

type PlainSeries = (Vec<(f64, f64)>, Vec<Point>);

/// The standard filter for comparison: places on the axis, keys and functions.
fn plain_series(
    results: &Results,
    rows: &mut Vec<Row>,
    points: impl IntoIterator<Item = (f64, u64, u32)>,
) -> Result<PlainSeries, Trouble> {
    let (mut line, mut marks) = (Vec::new(), Vec::new());
    for (x, keys, hashes) in points {
        let predicted = plain_rate(BITS, hashes, keys);
        let measured = measured_plain(results, keys, hashes)?;
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

/// Bits and best k of a plain filter that takes as many bits as the array and the stored choices.
fn equal_memory(setting: Setting) -> Result<(u64, u32), Trouble> {
    let bits = BITS + setting.params()?.choice_bits();
    let at = |hashes: &u32| plain_rate(bits, *hashes, setting.keys);
    let best = (1..64).min_by(|a, b| at(a).total_cmp(&at(b))).unwrap_or(1);
    Ok((bits, best))
}

fn equal_memory_rate(setting: Setting) -> Result<f64, Trouble> {
    let (bits, hashes) = equal_memory(setting)?;
    Ok(plain_rate(bits, hashes, setting.keys))
}

fn stored_choices(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for groups in GROUPS {
        let setting = Setting { groups, ..OWN };
        rows.push(
            Row::new(format!("g = {groups}: stored choices, bits"))
                .predicted(setting.params()?.choice_bits() as f64),
        );
        let plain = equal_memory_rate(setting)?;
        rows.push(Row::new(format!("g = {groups}: plain filter of equal memory")).predicted(plain));
    }
    // Too rare to be measured by lookups: from the fill of filters that were built.
    let beside: Vec<Filled> = results.get("plain-equal")?;
    let rates: Vec<f64> = beside.iter().map(|filter| filter.rate).collect();
    let beside = Estimate::mean(&rates);
    let beside = Estimate { low: beside.low.max(0.0), ..beside };
    rows.push(
        Row::new("g = 350: rate of a plain filter of equal memory over that of partitioned")
            .claims("partitioned is better", Claim::AtLeast(1.0))
            .predicted(equal_memory_rate(OWN)? / OWN.predicted()?)
            .measured(beside.over(measured(results, OWN)?))
            .erratum("The report does not count the stored choices, three times the filter at 350 groups; with them partitioning wins only for groups of 20 keys and more."),
    );
    let trials: Vec<Filled> = results.get("partitioned-fair")?;
    let passed = trials.iter().map(|trial| trial.passed).sum();
    let queries = trials.iter().map(|trial| trial.queries).sum();
    let spread = model::predict(&fair()?, OWN.keys).rate_spread / (trials.len() as f64).sqrt();
    rows.push(
        Row::new("10 bits per key in total, g = 20, H = 4096, k = 8: rate")
            .predicted(model::rate(&fair()?, OWN.keys))
            .measured(Estimate::rate(passed, queries, spread))
            .unit(Unit::Rare)
            .note("Not a number of the report: the best of the notes."),
    );
    rows.push(
        Row::new("10 bits per key in total: rate of a plain filter")
            .predicted(plain_rate(BITS, 7, OWN.keys))
            .measured(measured_plain(results, OWN.keys, 7)?),
    );
    Ok(Item::table(
        "Stored choices",
        "What the comparison of the report leaves out: the bits that say which functions a group has.",
        rows,
    ))
}
