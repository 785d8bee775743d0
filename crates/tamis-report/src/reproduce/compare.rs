//! The comparison that none of the sources makes: all kinds under one accounting, every bit counted.

use tamis::Kind;

use super::built::{self, Built, Predicted};
use super::{Document, Effort, Estimate, Experiment, Item, Results, Row, Trouble};
use crate::plot::{Axis, Mark, Plot, Series};

/// Rates at which filters of all kinds are built.
const BUILT: [f64; 3] = [1e-2, 1e-3, 1e-4];

/// Rates of the curves: two for each decade.
fn rates() -> impl Iterator<Item = f64> {
    (2..=12).map(|half| 10_f64.powf(-f64::from(half) / 2.0))
}

/// A map keeps values, and is no rival of filters that do not.
fn kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|&kind| kind != Kind::RankMap)
}

pub(super) fn experiments(effort: Effort) -> Vec<Experiment> {
    let built = kinds().flat_map(|kind| BUILT.map(|rate| built::experiment(kind, rate, effort)));
    let points: Vec<f64> = match effort {
        Effort::Least => BUILT.to_vec(),
        Effort::Quick | Effort::Full => rates().collect(),
    };
    let curves = kinds().map(move |kind| built::curve(kind, points.clone()));
    built.chain(curves).collect()
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
                |built| built.bits_per_key,
            )?,
            curves(
                results,
                "Wire size against rate",
                "Bits of the encoded filter per key, header and checksums included, 100,000 keys. Dashed: kinds that can remove keys.",
                "wire size, bits per key",
                |predicted| predicted.wire_bits_per_key,
                |built| built.wire_bits_per_key,
            )?,
            measured_rates(results)?,
        ],
    })
}

fn curves(
    results: &Results,
    name: &'static str,
    about: &'static str,
    label: &'static str,
    predicted: fn(&Predicted) -> f64,
    measured: fn(&Built) -> f64,
) -> Result<Item, Trouble> {
    // 38 bits per key of `counting` would press all others to the ground.
    let up = Axis::linear(label).over(0.0, 44.0);
    let mut plot = Plot::new(name, Axis::log("rate (share of strangers that pass)"), up);
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
        for rate in BUILT {
            let Some(built) = built::get(results, kind, rate)? else { continue };
            rows.push(
                Row::new(format!("{} at {rate:e}", kind.name()))
                    .predicted(predicted(&built.predicted))
                    .measured(Estimate::exact(measured(&built)))
                    .model_within(0.01),
            );
        }
    }
    Ok(Item::figure(name, about, plot, rows))
}

fn measured_rates(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for kind in kinds() {
        for rate in BUILT {
            let Some(built) = built::get(results, kind, rate)? else { continue };
            rows.push(
                Row::new(format!("{} at {rate:e}", kind.name()))
                    .predicted(built.predicted.rate)
                    .measured(built.rate()),
            );
        }
    }
    Ok(Item::table(
        "Rates of all kinds",
        "What was asked for, promised and found: rates of filters of 100,000 keys.",
        rows,
    ))
}
