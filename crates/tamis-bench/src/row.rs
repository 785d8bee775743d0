//! Rounds become rows: medians, rates, and how subjects compare.

use std::collections::BTreeMap;

use tamis_bench::record::{Churned, Operation, Rate, Row, Side, Timing};
use tamis_report::papers::statistics::exact_interval;

use crate::lineup::Entry;
use crate::measure::{Case, Round};

/// The rows of all subjects of a run.
pub(crate) fn rows(entries: &[Entry], rounds: &[Vec<Round>], case: &Case) -> Vec<Row> {
    let subjects = || entries.iter().zip(rounds);
    let row = |(entry, rounds): (&Entry, &Vec<Round>)| {
        let mut row = row(entry, rounds, case);
        if entry.side == Side::Ours {
            let others = subjects().filter(|(other, _)| other.side != Side::Ours);
            let ratios = others.map(|(other, theirs)| (other.name.clone(), ratios(rounds, theirs)));
            row.ratios = ratios.collect();
        }
        row
    };
    subjects().map(row).collect()
}

fn row(entry: &Entry, rounds: &[Round], case: &Case) -> Row {
    let Round { keys, held_bits, false_positives, churned, .. } = rounds[0];
    let timing = |operation: Operation| {
        let times = rounds.iter().filter_map(|round| round.times.get(&operation).copied());
        Some((operation, timing(times.collect())?))
    };
    let of_steps = |round: &Round| {
        let parts = Operation::PLAIN.iter().map(|part| round.times.get(part));
        Some(round.times.get(&Operation::Churn)? / parts.sum::<Option<f64>>()?)
    };
    let churned = churned.and_then(|churned| {
        Some(Churned {
            steps: churned.steps,
            ratio: self::timing(rounds.iter().filter_map(of_steps).collect())?,
            bits_per_key: short(churned.held_bits / keys as f64),
            rate: rate(churned.false_positives, case),
        })
    });
    Row {
        name: entry.name.clone(),
        side: entry.side,
        partner_of: entry.partner_of.clone(),
        built_once: entry.built_once,
        load: case.load,
        keys,
        target_rate: entry.target_rate,
        rate: (entry.side != Side::Floor).then(|| rate(false_positives, case)),
        bits_per_key: short(held_bits / keys as f64),
        ns: Operation::ALL.into_iter().filter_map(timing).collect(),
        churned,
        ratios: BTreeMap::new(),
        note: entry.note.to_owned(),
    }
}

fn rate(false_positives: u64, case: &Case) -> Rate {
    let queries = case.absent.len() as u64;
    let (low, high) = exact_interval(false_positives, queries, 0.999);
    let measured = false_positives as f64 / queries as f64;
    Rate { measured, low: short(low), high: short(high), queries }
}

/// To four digits: more would only lengthen records.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn timing(mut rounds: Vec<f64>) -> Option<Timing> {
    rounds.sort_by(f64::total_cmp);
    let last = rounds.len().checked_sub(1)?;
    // Of few rounds the quartiles are the least and the most.
    Some(Timing {
        median: short(f64::midpoint(rounds[last / 2], rounds[last.div_ceil(2)])),
        low: short(rounds[last / 4]),
        high: short(rounds[last - last / 4]),
    })
}

/// How many times quicker ours is, by rounds of the same run. If the other has no batches, its
/// plain operation counts.
fn ratios(ours: &[Round], theirs: &[Round]) -> BTreeMap<Operation, Timing> {
    let ratio = |operation: Operation| {
        let ratio = |(ours, theirs): (&Round, &Round)| {
            let theirs = &theirs.times;
            let theirs = theirs.get(&operation).or_else(|| theirs.get(&operation.plain()))?;
            Some(theirs / ours.times.get(&operation)?)
        };
        Some((operation, timing(ours.iter().zip(theirs).filter_map(ratio).collect())?))
    };
    Operation::ALL.into_iter().filter_map(ratio).collect()
}
