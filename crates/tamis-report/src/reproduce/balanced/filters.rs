//! Document 001 in filters that are built, beside experiments that only throw keys; and its access
//! budget.

use serde::{Deserialize, Serialize};
use tamis::balanced::{Balanced, BalancedParams, Mht, Scheme, Sequential, Single as OneChoice};
use tamis::internals::balanced::model::mht_sizes;
use tamis::{Digest, Filter, Hasher, Insert, Params, Stored};

use super::trials::{
    ACCESSES, BLOCKS, CHOICES, Design, LOAD, SHOWN, SHOWN_BLOCKS, SHOWN_KEYS, STEPS, Way, listed,
};
use crate::keys::KeyStream;
use crate::loads::Walk;
use crate::papers::balanced::{Single, load_variance, mht_budget, mht_share};
use crate::plot::{Axis, Mark, Plot, Point, Series};
use crate::reproduce::{Claim, Effort, Estimate, Experiment, Item, Results, Row, Trouble, Unit};

/// Bits of a block, and enough functions that no key is found by mistake, which would take no
/// room.
const BLOCK: u64 = 512;
const HASHES: u64 = 22;
/// The value 1 of a coin and of a ratio.
const ONE: f64 = 4_294_967_296.0;

/// The loads of one filter.
#[derive(Serialize, Deserialize)]
struct Filled {
    keys: u64,
    /// Blocks read by all insertions.
    read: u64,
    listed: u64,
    /// Shares of blocks with 0, 1, 2, ... keys.
    shares: Vec<f64>,
}

/// The designs that are built: those of Appendix C, and points of Figures 3a and 3b.
fn designs() -> Result<Vec<Design>, Trouble> {
    let mut all = vec![Design { way: Way::Single, load: LOAD, accesses: 1.0, overflow: listed()? }];
    for way in [Way::Sequential, Way::Mht] {
        for (load, accesses) in [(LOAD, 1.1), (LOAD, ACCESSES), (16.0, ACCESSES)] {
            all.push(Design::boundary(way, load, accesses)?);
        }
    }
    Ok(all)
}

fn name(design: &Design) -> String {
    format!("filter of {}", design.name())
}

/// An empty filter with this threshold and coin.
fn empty<S: Scheme>(
    blocks: u64,
    choices: u32,
    ratio: f64,
    Single { h, p }: Single,
    seed: u64,
) -> Result<Balanced<S>, Trouble> {
    let [ratio, coin] = [ratio, p].map(|share| (share * ONE).round() as u64);
    let values = [blocks, BLOCK, HASHES, choices.into(), ratio, h.into(), coin, 0, 0];
    Ok(Balanced::new(BalancedParams::from_values(&values)?, Hasher::xxh3(seed))?)
}

/// Shares of blocks with 0, 1, 2, ... keys, by their counters: the uppermost bits of a block, as
/// many as h + 1 takes.
fn shares<S: Scheme>(filter: &Balanced<S>) -> Vec<f64> {
    let layout = *filter.params().layout();
    let bits = (layout.threshold + 1).ilog2() + 1;
    let mut counts = vec![0_u64; layout.threshold as usize + 2];
    for block in filter.blocks() {
        counts[(block[block.len() - 1] >> (64 - bits)) as usize] += 1;
    }
    counts.into_iter().map(|count| count as f64 / layout.blocks as f64).collect()
}

fn fill<S: Scheme>(mut filter: Balanced<S>, keys: u64, seed: u64) -> Result<Filled, Trouble> {
    let mut read = 0;
    let digests: Vec<Digest> = KeyStream::new(seed).members(filter.hasher(), 0..keys).collect();
    for &digest in &digests {
        read += u64::from(filter.blocks_to_insert(digest));
        filter.insert_digest(digest)?;
    }
    if !digests.iter().all(|&digest| filter.contains_digest(digest)) {
        return Err("a balanced filter lost a key".into());
    }
    let listed = filter.overflow().unwrap_or(0);
    Ok(Filled { keys, read, listed, shares: shares(&filter) })
}

fn built(design: &Design, seed: u64) -> Result<Filled, Trouble> {
    let keys = (design.load * BLOCKS as f64).round() as u64;
    let single = design.single()?;
    match design.way {
        Way::Single => fill(empty::<OneChoice>(BLOCKS, 1, 0.0, single, seed)?, keys, seed),
        Way::Sequential => {
            fill(empty::<Sequential>(BLOCKS, CHOICES, 0.0, single, seed)?, keys, seed)
        }
        Way::Mht => {
            let ratio = mht_share(design.accesses, CHOICES).ok_or("no such design")?;
            fill(empty::<Mht>(BLOCKS, CHOICES, ratio, single, seed)?, keys, seed)
        }
    }
}

/// Figure 5 in a filter.
fn over_time(seed: u64) -> Result<Vec<Vec<f64>>, Trouble> {
    let mut filter = empty::<OneChoice>(SHOWN_BLOCKS, 1, 0.0, SHOWN, seed)?;
    let digests: Vec<Digest> =
        KeyStream::new(seed).members(filter.hasher(), 0..SHOWN_KEYS).collect();
    let mut all = Vec::new();
    for step in digests.chunks((SHOWN_KEYS / STEPS) as usize) {
        filter.insert_many(step)?;
        all.push(shares(&filter));
    }
    Ok(all)
}

/// The budget of the curve, and its overflows in percent.
const BUDGET: f64 = 1.1;
const OVERFLOWS: [f64; 6] = [0.2, 0.5, 1.0, 2.0, 3.0, 5.0];

/// Keys that walk until the budget is spent: refused by all blocks, or listed without a look.
#[derive(Serialize, Deserialize)]
struct Spent {
    keys: u64,
    read: u64,
    refused: u64,
    unread: u64,
    shares: Vec<f64>,
}

fn spent(percent: f64, seed: u64) -> Result<Spent, Trouble> {
    let design = Design { way: Way::Mht, load: LOAD, accesses: BUDGET, overflow: percent / 100.0 };
    let Single { h, p } = design.single()?;
    let (share, _) = mht_budget(BUDGET, design.overflow, CHOICES).ok_or("no such design")?;
    let sizes = mht_sizes(share, CHOICES);
    let subtables: Vec<u64> =
        sizes.iter().map(|size| (size * BLOCKS as f64).round() as u64).collect();
    let blocks: u64 = subtables.iter().sum();
    let keys = (LOAD * blocks as f64).round() as u64;
    let walk = Walk { subtables, shared: false, threshold: h, coin: p };
    let walked = walk.run_within(keys, (BUDGET * keys as f64) as u64, seed);
    let mut counts = vec![0_u64; h as usize + 2];
    walked.loads.iter().for_each(|&load| counts[load as usize] += 1);
    let shares = counts.into_iter().map(|count| count as f64 / blocks as f64).collect();
    Ok(Spent { keys, read: walked.read, refused: walked.refused, unread: walked.unread, shares })
}

pub(super) fn experiments(effort: Effort) -> Vec<Experiment> {
    let mut all = Vec::new();
    for design in designs().unwrap_or_default() {
        let trials = effort.pick(3, 60, 600);
        let run = move |seed| built(&design, seed);
        all.push(Experiment::new(name(&design), trials, 0.02 * design.load / LOAD, run));
    }
    all.push(Experiment::new("figure-5 in filters", effort.pick(3, 60, 400), 0.01, over_time));
    for percent in OVERFLOWS {
        let run = move |seed| spent(percent, seed);
        let trials = effort.pick(6, 150, 1000);
        all.push(Experiment::new(format!("budget {percent}"), trials, 2e-3, run));
    }
    all
}

/// The mean of a value over trials.
fn mean<T>(trials: &[T], of: impl Fn(&T) -> f64) -> Estimate {
    Estimate::mean(&trials.iter().map(of).collect::<Vec<f64>>())
}

/// Figures 2, 3 and 5 and Appendix C, in filters.
pub(super) fn in_filters(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for design in designs()? {
        let trials: Vec<Filled> = results.get(&name(&design))?;
        let Design { way, load, accesses, overflow } = design;
        let at = format!("{}, r = {load}, a = {accesses}", way.name());
        let bound = design.bound();
        rows.push(
            Row::new(format!("{at}: listed, percent (Figures 3a and 3b)"))
                .predicted(100.0 * overflow)
                .measured(mean(&trials, |trial| 100.0 * trial.listed as f64 / trial.keys as f64))
                .unit(Unit::Of(3.0)),
        );
        rows.push(
            Row::new(format!("{at}: blocks per insertion"))
                .predicted(accesses)
                .measured(mean(&trials, |trial| trial.read as f64 / trial.keys as f64)),
        );
        let variance = |trial: &Filled| load_variance(&trial.shares);
        rows.push(
            Row::new(format!("{at}: variance of the load (Appendix C)"))
                .predicted(load_variance(&bound.loads))
                .measured(mean(&trials, variance)),
        );
        if (way, load, accesses) == (Way::Mht, LOAD, ACCESSES) {
            for (keys, &share) in bound.loads.iter().enumerate().skip(4) {
                rows.push(
                    Row::new(format!("{at}: share of blocks with {keys} keys (Figure 2)"))
                        .predicted(share)
                        .measured(mean(&trials, |trial| {
                            trial.shares.get(keys).copied().unwrap_or(0.0)
                        }))
                        .unit(Unit::Of(1.0 / 7.0))
                        .note("The figure is drawn without a list, which no scheme reaches; this is the same bound with the list of 0.498%."),
                );
            }
        }
    }
    let trials: Vec<Vec<Vec<f64>>> = results.get("figure-5 in filters")?;
    let load = SHOWN_KEYS as f64 / SHOWN_BLOCKS as f64;
    for step in [5, 10, 15, 20] {
        let time = step as f64 / STEPS as f64;
        for (height, share) in SHOWN.loads(time * load).into_iter().enumerate() {
            rows.push(
                Row::new(format!("f{height} at t = {time} (Figure 5)"))
                    .predicted(share)
                    .measured(mean(&trials, |trial| trial[step - 1][height]))
                    .unit(Unit::Of(0.4)),
            );
        }
    }
    Ok(Item::table(
        "In filters",
        "What Figures 2, 3a, 3b and 5 and Appendix C say of loads, in filters: blocks of 512 bits, counters in them, 22 functions.",
        rows,
    ))
}

/// The budget of a n accesses, after which keys are listed without a look at their blocks: inside
/// the region, where more may be listed than must.
pub(super) fn budget(results: &Results) -> Result<Item, Trouble> {
    let (mut rows, mut line, mut marks) = (Vec::new(), Vec::new(), Vec::new());
    for percent in OVERFLOWS {
        let trials: Vec<Spent> = results.get(&format!("budget {percent}"))?;
        let (_, looked) = mht_budget(BUDGET, percent / 100.0, CHOICES).ok_or("no such design")?;
        let of_keys = |count: u64, trial: &Spent| 100.0 * count as f64 / trial.keys as f64;
        let unread = mean(&trials, |trial| of_keys(trial.unread, trial));
        let predicted = 100.0 * (1.0 - looked);
        line.push((percent, predicted));
        marks.push(Point {
            x: percent,
            y: unread.value,
            interval: Some((unread.low, unread.high)),
        });
        let at = format!("gamma = {percent}%");
        rows.push(
            Row::new(format!("{at}: listed without a look, percent"))
                .predicted(predicted)
                .measured(unread)
                .unit(Unit::Of(5.0)),
        );
        rows.push(
            Row::new(format!("{at}: listed in all, percent"))
                .predicted(percent)
                .measured(mean(&trials, |trial| of_keys(trial.unread + trial.refused, trial)))
                .unit(Unit::Of(5.0)),
        );
        let most = trials.iter().map(|trial| trial.read as f64 / trial.keys as f64);
        rows.push(
            Row::new(format!("{at}: most blocks per insertion of all trials"))
                .claims("at most a", Claim::AtMost(BUDGET))
                .measured(Estimate::exact(most.fold(0.0, f64::max))),
        );
        let design =
            Design { way: Way::Mht, load: LOAD, accesses: BUDGET, overflow: percent / 100.0 };
        rows.push(
            Row::new(format!("{at}: variance of the load"))
                .predicted(load_variance(&design.bound().loads))
                .measured(mean(&trials, |trial| load_variance(&trial.shares))),
        );
    }
    let axes = (
        Axis::linear("listed in all, % of the keys"),
        Axis::linear("listed without a look, % of the keys"),
    );
    let plot = Plot::new("Access budget", axes.0, axes.1)
        .with(Series::line("MHT, a = 1.1", line).coloured(0))
        .with(Series::marks("MHT, a = 1.1, measured", marks).marked(Mark::Ring).coloured(0));
    let about = "An insertion may read a = 1.1 blocks on average; when all are spent, keys are listed without a look. MHT, three choices, r = 8. \
        Keys are thrown, not kept in a filter: a lookup that meets an open block would miss what was listed so (erratum 13).";
    Ok(Item::figure("Access budget", about, plot, rows))
}
