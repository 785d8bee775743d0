//! The setting of paper 004, simulated: proxies that tell each other what is in their caches.

use super::{Claim, Document, Effort, Estimate, Experiment, Item, Results, Row, Trouble};
use crate::peers::{Sent, Setting, Tally, params, simulate, stale};
use crate::plot::{Axis, Mark, Plot, Series};

/// Seconds between two filters.
const INTERVALS: [u64; 3] = [60, 300, 900];
const RATES: [f64; 2] = [0.01, 0.001];
const SENT: [(Sent, &str); 3] = [
    (Sent::Whole, "whole Bloom filters"),
    (Sent::Compressed, "compressed filters"),
    (Sent::Deltas, "deltas"),
];
const WHY: &str = "Predicted are means; these are the sizes of some filters.";

/// Caches of 1,000 pages, and one request a second.
fn setting(sent: Sent, rate: f64, every: u64) -> Setting {
    let periods = 900_u64.div_ceil(every);
    Setting { proxies: 16, cache: 1000, pages: 20_000, requests: 3600, every, periods, rate, sent }
}

/// Two proxies with caches of 10,000 pages, as the paper's tables have.
fn large(sent: Sent, rate: f64) -> Setting {
    Setting { proxies: 2, cache: 10_000, pages: 40_000, periods: 2, ..setting(sent, rate, 60) }
}

fn name(setting: &Setting) -> String {
    let Setting { proxies, rate, every, sent, .. } = setting;
    format!("peers {proxies} {sent:?} {rate} {every}")
}

fn settings() -> impl Iterator<Item = Setting> {
    SENT.into_iter().flat_map(|(sent, _)| {
        RATES.into_iter().flat_map(move |rate| {
            let small = INTERVALS.into_iter().map(move |every| setting(sent, rate, every));
            small.chain([large(sent, rate)])
        })
    })
}

/// Every run does the same: it takes seconds.
pub(super) fn experiments(_: Effort) -> Vec<Experiment> {
    let run = |setting: Setting| move |_| Ok(simulate(&setting)?);
    settings().map(|setting| Experiment::new(name(&setting), 1, 0.3, run(setting))).collect()
}

fn tally(results: &Results, setting: &Setting) -> Result<Tally, Trouble> {
    let found: Vec<Tally> = results.get(&name(setting))?;
    found.first().copied().ok_or_else(|| "a simulation was run and not kept".into())
}

pub(super) fn document(results: &Results) -> Result<Document, Trouble> {
    Ok(Document {
        remarks: &[],
        number: "peers",
        title: "Proxies that tell each other what they have",
        source: "Paper 004 has this setting in mind, and ends before it.",
        finding: "Compressed filters save what the model says. Deltas take a quarter of whole filters where a minute lies between two, and as much as compressed ones where most of a cache is replaced.",
        items: vec![saving(results)?, bytes(results)?, found(results)?],
    })
}

/// What compressed filters save of whole ones.
fn saving(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for rate in RATES {
        let [whole, compressed] = [Sent::Whole, Sent::Compressed].map(|sent| large(sent, rate));
        let sent = |setting: &Setting| -> Result<f64, Trouble> {
            Ok(tally(results, setting)?.update_bytes(setting))
        };
        let modelled = params(&compressed)?.traffic(compressed.cache as u64, None).snapshot.mean;
        let (whole, compressed) = (sent(&whole)?, sent(&compressed)?);
        let predicted = 1.0 - modelled / whole;
        rows.push(
            Row::new(format!("rate {rate}"))
                .predicted(predicted)
                .measured(Estimate::exact(1.0 - compressed / whole))
                .slack(0.02 * predicted, WHY),
        );
    }
    Ok(Item::table(
        "Saving of compressed filters",
        "Part of the bytes of a whole Bloom filter that a compressed one saves; caches of 10,000 pages.",
        rows,
    ))
}

/// Bytes of a message.
fn bytes(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for (sent, what) in &SENT[1..] {
        for rate in RATES {
            for every in INTERVALS {
                let setting = setting(*sent, rate, every);
                let tally = tally(results, &setting)?;
                let churn = (*sent == Sent::Deltas).then(|| tally.churn(&setting));
                let traffic = params(&setting)?.traffic(setting.cache as u64, churn);
                let predicted = traffic.delta.map_or(f64::INFINITY, |delta| delta.mean);
                let predicted = predicted.min(traffic.snapshot.mean);
                rows.push(
                    Row::new(format!("{what}, rate {rate}, every {every} s"))
                        .predicted(predicted)
                        .measured(Estimate::exact(tally.update_bytes(&setting)))
                        .slack(0.02 * predicted, WHY),
                );
            }
        }
    }
    let about = "Bytes of a message; caches of 1,000 pages. The model of deltas is given how many pages were replaced.";
    Ok(Item::table("Bytes of a message", about, rows))
}

/// Hits that are found, and bytes an hour.
fn found(results: &Results) -> Result<Item, Trouble> {
    let title = "Bytes an hour against the interval";
    let (across, up) = (Axis::log("seconds between two filters"), Axis::log("MB an hour"));
    let mut plot = Plot::new(title, across, up);
    let mut rows = Vec::new();
    for (number, (sent, what)) in SENT.into_iter().enumerate() {
        let mut points = Vec::new();
        for every in INTERVALS {
            let setting = setting(sent, RATES[0], every);
            let tally = tally(results, &setting)?;
            points.push((every as f64, tally.bytes_an_hour(&setting) / 1e6));
            // Hits are lost for pages that came since the last filter, and where several proxies
            // have a page, only if it is new to all of them.
            let least = 1.0 - stale(tally.churn(&setting), 1.0);
            rows.push(
                Row::new(format!("{what}, every {every} s: hits found"))
                    .measured(Estimate::exact(tally.found()))
                    .bounded(Claim::AtLeast(least)),
            );
        }
        let marks = [Mark::Disc, Mark::Square, Mark::Ring][number];
        plot = plot.with(Series::line(what, points).marked(marks).coloured(number));
    }
    let about = "16 proxies, caches of 1,000 pages, one request a second each, Zipf's law with 0.8 over 20,000 pages, filters of 1%. Rows: the part of the hits that ICP finds, with a bound from the pages that were replaced.";
    Ok(Item::figure(title, about, plot, rows))
}
