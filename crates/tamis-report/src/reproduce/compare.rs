//! The comparison that none of the sources makes: all kinds, with every bit of memory counted.

use tamis::Kind;

use super::built::{self, Built, Predicted, Purpose};
use super::{Document, Effort, Estimate, Experiment, Item, Results, Row, Trouble};
use crate::plot::{Axis, Mark, Plot, Series};

/// Rates at which filters of all kinds are built. A quick run leaves out those for which it would
/// have to look up a billion keys.
const BUILT: [f64; 4] = [0.2, 1e-2, 1e-3, 1e-4];

fn built_at(effort: Effort) -> &'static [f64] {
    effort.pick(&BUILT[1..2], &BUILT[..2], &BUILT[..])
}

/// Rates of the curves: two for each decade.
fn rates() -> impl Iterator<Item = f64> {
    (2..=12).map(|half| 10_f64.powf(-f64::from(half) / 2.0))
}

/// All kinds but the map, which keeps values and cannot be compared with filters that do not.
fn kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(|&kind| kind != Kind::RankMap)
}

pub(super) fn experiments(effort: Effort) -> Vec<Experiment> {
    let mut all = Vec::new();
    for kind in kinds() {
        all.extend(built_at(effort).iter().map(|&rate| built::asked(kind, rate, effort)));
    }
    let points: Vec<f64> = match effort {
        Effort::Least => BUILT[1..].to_vec(),
        Effort::Quick | Effort::Full => rates().collect(),
    };
    all.extend(kinds().map(move |kind| built::curve(kind, points.clone())));
    all
}

pub(super) fn document(results: &Results) -> Result<Document, Trouble> {
    Ok(Document {
        remarks: &[],
        number: "all",
        title: "All schemes side by side",
        source: "The sources compare with one or two others, each under its own accounting.",
        finding: "Every bit is counted: stored choices, overflow lists, pointers, rounding, headers. Memory, wire size and rate of every kind come out as its model says.",
        items: vec![
            curves(
                results,
                "Memory against rate",
                "Bits of memory per key, 100,000 keys. The information bound is log2(1/rate), for any filter; counting leaves the picture at 38 bits. Dashed: kinds that can remove keys.",
                "memory, bits per key",
                |predicted| predicted.bits_per_key,
                Built::bits_per_key,
                memory_slack,
            )?,
            curves(
                results,
                "Wire size against rate",
                "Bits of the packed filter per key, header and checksums included, 100,000 keys: what entropy predicts, and what the coder makes. Dashed: kinds that can remove keys.",
                "wire size, bits per key",
                |predicted| predicted.packed_bits_per_key,
                Built::packed_bits_per_key,
                wire_slack,
            )?,
            measured_rates(results)?,
        ],
    })
}

/// The filters of a kind that were built, by rate.
fn built_of(results: &Results, kind: Kind) -> Result<Vec<(f64, Built)>, Trouble> {
    let mut all = Vec::new();
    for rate in BUILT {
        all.extend(built::get(results, Purpose::Asked, kind, rate)?.map(|built| (rate, built)));
    }
    if all.is_empty() { Err(format!("no {} was built", kind.name()).into()) } else { Ok(all) }
}

/// How much slack rows of a kind have, by what is predicted, and why; 0 for none.
type Slack = fn(Kind, f64) -> (f64, &'static str);

fn memory_slack(_: Kind, _: f64) -> (f64, &'static str) {
    let why = "Boxes, lengths and whole lines beside the arrays: up to 256 bytes of a filter.";
    (8.0 * 256.0 / built::KEYS as f64, why)
}

fn wire_slack(kind: Kind, predicted: f64) -> (f64, &'static str) {
    if kind == Kind::Partitioned {
        let why = "The model takes every group for a mean one: its snapshots are 0.02% off.";
        return (4e-4 * predicted, why);
    }
    let why = "Snapshots of balanced kinds are taken for those of blocked ones with evenly spread keys and no counters: they are 0.2% off.";
    if kind.name().starts_with("balanced") { (3e-3 * predicted, why) } else { (0.0, "") }
}

fn curves(
    results: &Results,
    name: &'static str,
    about: &'static str,
    label: &'static str,
    predicted: fn(&Predicted) -> f64,
    measured: fn(&Built) -> Estimate,
    slack: Slack,
) -> Result<Item, Trouble> {
    // With the 38 bits per key of `counting` on the axis, all others would lie at its bottom.
    let up = Axis::linear(label).over(0.0, 44.0);
    let mut plot = Plot::new(name, Axis::log("rate (share of absent keys that pass)"), up);
    let bound = rates().map(|rate| (rate, -rate.log2()));
    plot = plot.with(Series::line("information bound", bound).coloured(6).dashed(2));
    let mut rows = Vec::new();
    for (number, kind) in kinds().enumerate() {
        let line = built::get_curve(results, kind)?.into_iter();
        let line = line.map(|(rate, prediction)| (rate, predicted(&prediction)));
        let marks = [Mark::Disc, Mark::Square, Mark::Ring][number % 3];
        let series = Series::line(kind.name(), line)
            .marked(marks)
            .coloured([0, 1, 2, 3, 4, 5, 7][number % 7])
            .dashed(usize::from(kind.can_remove()));
        plot = plot.with(series);
        for (rate, built) in built_of(results, kind)? {
            let expected = predicted(&built.predicted);
            let row = Row::new(format!("{} at {rate:e}", kind.name()))
                .predicted(expected)
                .measured(measured(&built));
            rows.push(match slack(kind, expected) {
                (0.0, _) => row,
                (amount, why) => row.slack(amount, why),
            });
        }
    }
    Ok(Item::figure(name, about, plot, rows))
}

fn measured_rates(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for kind in kinds() {
        for (rate, built) in built_of(results, kind)? {
            rows.push(
                Row::new(format!("{} at {rate:e}", kind.name()))
                    .predicted(built.predicted.rate)
                    .measured(built.rate()),
            );
        }
    }
    Ok(Item::table(
        "Rates of all kinds",
        "What was promised and found: rates of filters of 100,000 keys.",
        rows,
    ))
}
