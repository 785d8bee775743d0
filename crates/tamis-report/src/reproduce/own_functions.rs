//! Document 002 with its own functions: groups by RS, candidates by CRC-32.

use tamis::internals::partitioned::model;
use tamis::partitioned::{Family, Partition, PartitionedParams};

use super::partitioned::{BITS, FILL_SLACK, FILL_SLACK_WHY, Filled, partitioned};
use super::{Effort, Estimate, Experiment, Item, Results, Row, Trouble, Unit};

const KEYS: u64 = 1000;
/// Numbers of groups, and whether enough absent keys are answered yes to be counted.
const GROUPS: [(u64, bool); 2] = [(20, true), (350, false)];

fn params(groups: u64) -> Result<PartitionedParams, Trouble> {
    let params = PartitionedParams::new(BITS, 1, groups, 10_000, 6)?;
    Ok(params.with_functions(Partition::Rs, Family::Crc)?)
}

fn name(groups: u64) -> String {
    format!("own-functions {groups}")
}

pub(super) fn experiments(effort: Effort) -> Vec<Experiment> {
    let trials = effort.pick(3, 24, 150);
    GROUPS
        .map(|(groups, often)| {
            let queries = if often { 2_000_000 / trials } else { 0 };
            let run = move |seed| partitioned(params(groups)?, KEYS, queries, seed);
            Experiment::new(name(groups), trials, 0.15, run).with_setup(queries)
        })
        .into()
}

pub(super) fn item(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for (groups, often) in GROUPS {
        let trials: Vec<Filled> = results.get(&name(groups))?;
        let fills: Vec<f64> = trials.iter().map(|trial| trial.fill).collect();
        let fill = model::expected_fill(&params(groups)?, KEYS);
        rows.push(
            Row::new(format!("g = {groups}: fill with RS and CRC-32"))
                .predicted(fill)
                .measured(Estimate::mean(&fills))
                .slack(FILL_SLACK[0] * fill, FILL_SLACK_WHY),
        );
        if often {
            let passed = trials.iter().map(|trial| trial.passed).sum();
            let queries = trials.iter().map(|trial| trial.queries).sum();
            // The rates of these filters by their own bits, beside those measured by lookups.
            let own = trials.iter().map(|trial| trial.rate).sum::<f64>() / trials.len() as f64;
            rows.push(
                Row::new(format!(
                    "g = {groups}: rate with RS and CRC-32, by the bits that are set"
                ))
                .predicted(own)
                .measured(Estimate::share(passed, queries))
                .unit(Unit::Rare),
            );
        }
    }
    Ok(Item::table(
        "The report's functions",
        "1000 keys in 10,000 bits, 10,000 candidates, 6 functions a group: filters with the params partition = 1 and family = 1.",
        rows,
    ))
}
