//! Document 001: balanced Bloom filters. Errata are numbered as in the checked notes.

mod filters;
mod trials;

use std::f64::consts::LN_2;

use tamis::balanced::Balanced;
use tamis::{Prediction, Stored};

use crate::papers::balanced::{Bound, load_variance};
use crate::plot::{Axis, Mark, Plot, Point, Series};
use crate::reproduce::{Claim, Document, Estimate, Item, Results, Row, Trouble, Unit, oracle};

pub(super) use trials::experiments;
use trials::{
    ACCESSES, BITS, BLOCKED, BLOCKS, BOUND_BUDGETS, Design, HEADLINE, LOAD, LOADS, Models, Reads,
    SCHEMES, SHOWN, SHOWN_BLOCKS, SHOWN_KEYS, STANDARD, STEPS, Walked, Way, budgets,
    headline_params, listed,
};

pub(super) fn document(results: &Results) -> Result<Document, Trouble> {
    let curves = Curves::new(results)?;
    Ok(Document {
        remarks: &[
            "Erratum 1: in Theorem 1 the sum runs over i; k0 = 0 needs e0 = 0; there is no k0 for a up to 1 - gamma.",
            "Erratum 3: in the text of Appendix A the probability is p, not q, and the solution ends with f_(h+1).",
            "Erratum 4: the closed form (6) holds for p < 1; at p = 1 it is the Poisson term.",
            "Erratum 5: the subtables of MHT have alpha_j m blocks; one place has n.",
            "Erratum 7: Section VIII points to Section II for the gain, and means Section IX.",
            "Erratum 13: the access budget and the lookup rule contradict each other, and the lookup rule is incomplete for p > 0: read literally it loses keys.",
            "Erratum 14: \"optimal\" is meant for the mean cost of one block. Blocks that a stranger reads beyond the first are not in it, so that at 16 bits per key and less another design has the lower rate.",
        ],
        number: "001",
        title: "Balanced Bloom filters",
        source: "Y. Kanizo, D. Hay, I. Keslassy: Access-Efficient Balanced Bloom Filters. ICC 2012, with the appendices of the technical report.",
        finding: "Bound and schemes are right, and filters do what the models say. The headline needs care: two orders of magnitude \
            come only from 38 bits per key on, and the 1.2 accesses are those of insertions and members; strangers read two blocks and more.",
        items: vec![
            headlines(results, &curves)?,
            figure_two(results)?,
            figure_three_a(results)?,
            figure_three_b(results)?,
            figure_four(&curves),
            figure_five(results)?,
            appendix_c(results)?,
            filters::in_filters(results)?,
            filters::budget(results)?,
        ],
    })
}

/// Figure 4: log10 of the rate, by bits per key and scheme.
struct Curves {
    by_formula: Vec<[f64; 5]>,
    exact: Vec<[f64; 5]>,
    /// What was built for the figure in this run.
    measured: Vec<[Option<Estimate>; 5]>,
    /// The same, together with what was built for a claim only, with fewer filters than the figure
    /// needs.
    claimed: Vec<[Option<Estimate>; 5]>,
}

impl Curves {
    fn new(results: &Results) -> Result<Self, Trouble> {
        let mut curves =
            Self { by_formula: vec![], exact: vec![], measured: vec![], claimed: vec![] };
        for bits in BITS {
            let models: Vec<Models> = results.get(&format!("figure-4-models {bits}"))?;
            let Models { formula, exact } = *models.first().ok_or("models were not kept")?;
            let (mut measured, mut claimed) = ([None; 5], [None; 5]);
            for (index, scheme) in SCHEMES.into_iter().enumerate() {
                measured[index] = mean_rate(results, &format!("figure-4 {bits} {scheme}"))?;
                let for_claim = mean_rate(results, &format!("claimed {bits} {scheme}"))?;
                claimed[index] = measured[index].or(for_claim);
            }
            curves.by_formula.push(formula);
            curves.exact.push(exact);
            curves.measured.push(measured);
            curves.claimed.push(claimed);
        }
        Ok(curves)
    }

    /// The orders of magnitude between the rates of two schemes, as they are built.
    fn gain(&self, bits: u32, from: &str, to: &str) -> Gain {
        let index = |scheme: &str| SCHEMES.iter().position(|other| *other == scheme).unwrap_or(0);
        let line = BITS.iter().position(|other| *other == bits).unwrap_or(0);
        let (from, to) = (index(from), index(to));
        let measured = self.claimed[line];
        Gain {
            predicted: self.exact[line][from] - self.exact[line][to],
            measured: measured[from].zip(measured[to]).map(|(from, to)| from.less(to)),
        }
    }
}

/// log10 of the mean rate of the filters that were built; `None` if none were.
fn mean_rate(results: &Results, name: &str) -> Result<Option<Estimate>, Trouble> {
    if !results.has(name) {
        return Ok(None);
    }
    let mean = Estimate::mean(&results.get::<f64>(name)?);
    // With few filters the interval may reach below 0.
    let low = mean.low.max(1e-3 * mean.value);
    Ok(Some(Estimate { low, ..mean }.map(f64::log10)))
}

/// How many orders of magnitude one scheme is better than another.
#[derive(Clone, Copy)]
struct Gain {
    predicted: f64,
    measured: Option<Estimate>,
}

impl Gain {
    fn row(self, name: &str) -> Row {
        let row = Row::new(name).predicted(self.predicted);
        match self.measured {
            Some(measured) => row.measured(measured),
            None => row,
        }
    }
}

fn refused_percent(results: &Results, design: &Design) -> Result<Estimate, Trouble> {
    let trials: Vec<Walked> = results.get(&design.name())?;
    let shares: Vec<f64> =
        trials.iter().map(|trial| 100.0 * trial.refused as f64 / trial.keys as f64).collect();
    Ok(Estimate::mean(&shares))
}

const HASHES_TRIED: &str = "by trying every whole number of functions";

fn headlines(results: &Results, curves: &Curves) -> Result<Item, Trouble> {
    let mht = Design::boundary(Way::Mht, LOAD, ACCESSES)?;
    let sequential = Design::boundary(Way::Sequential, LOAD, 1.1)?;
    let trials: Vec<Reads> = results.get("headline")?;
    let mean = |of: fn(&Reads) -> f64| Estimate::mean(&trials.iter().map(of).collect::<Vec<f64>>());
    let predicted: Prediction = Balanced::predict(&headline_params()?, HEADLINE.keys());
    let best = curves.gain(36, BLOCKED, "MHT");
    let rows = vec![
        Row::new("list at 1.2 accesses, percent (MHT)")
            .printed("0.5")
            .predicted(100.0 * mht.overflow)
            .measured(refused_percent(results, &mht)?)
            .note("Erratum 9: on the boundary of MHT, and outside the region of SEQUENTIAL."),
        Row::new("list of SEQUENTIAL at 1.1 accesses and r = 8, percent")
            .claims("1", Claim::Between(0.9, 1.1))
            .predicted(100.0 * sequential.overflow)
            .measured(refused_percent(results, &sequential)?)
            .erratum("Erratum 8: 0.59; 1% belongs to 1.125 accesses."),
        Row::new("blocks per insertion, 24 bits per key")
            .printed("1.2")
            .predicted(predicted.blocks_per_insert)
            .measured(mean(|reads| reads.insert)),
        Row::new("blocks per member, 24 bits per key")
            .printed("1.2")
            .predicted(predicted.blocks_per_hit)
            .measured(mean(|reads| reads.hit)),
        Row::new("blocks per stranger, 24 bits per key")
            .printed("1.2")
            .predicted(predicted.blocks_per_miss)
            .measured(mean(|reads| reads.miss))
            .erratum("Erratum 11: 1.2 are read by insertions and members; strangers meet the final state, and read 2.0 to 2.5."),
        Row::new("share of the keys in the list, 24 bits per key, percent")
            .printed("0.5")
            .predicted(predicted.overflow.unwrap_or(0.0) / HEADLINE.keys() as f64 * 100.0)
            .measured(mean(|reads| reads.listed).map(|share| 100.0 * share))
            .unit(Unit::Rare),
        Row::new("bits read by a standard filter of 30 bits per key")
            .printed("21")
            .predicted(30.0 * LN_2)
            .checked(Estimate::about(f64::from(oracle::best_hashes(30.0)), 0.5), HASHES_TRIED),
        Row::new("k at 24 bits per key")
            .printed("17")
            .predicted(24.0 * LN_2)
            .checked(Estimate::about(f64::from(oracle::best_hashes(24.0)), 0.5), HASHES_TRIED)
            .unit(Unit::Of(17.0)),
        Row::new("k at 24 bits per key, by the printed formula")
            .claims("r ln 2, which is 7.4", Claim::Is(HEADLINE.load() * LN_2))
            .predicted(24.0 * LN_2)
            .checked(Estimate::about(f64::from(oracle::best_hashes(24.0)), 0.5), HASHES_TRIED)
            .erratum("Erratum 6: k is beta ln 2."),
        best.row("orders of magnitude of MHT over blocked, 36 bits per key")
            .claims("two", Claim::AtLeast(2.0))
            .erratum("Erratum 12: by the paper's formula only from 38 bits per key on, with filters as they are built from 40 on."),
        curves
            .gain(40, BLOCKED, "MHT")
            .row("orders of magnitude of MHT over blocked, 40 bits per key")
            .claims("two", Claim::AtLeast(2.0)),
        curves
            .gain(40, "SINGLE", "MHT")
            .row("orders of magnitude of MHT over SINGLE, 40 bits per key")
            .claims("two", Claim::AtLeast(2.0))
            .erratum("Erratum 12: not by 40 bits per key."),
        curves
            .gain(32, "MHT", STANDARD)
            .row("orders of magnitude of MHT behind standard, 32 bits per key")
            .printed("1")
            .unit(Unit::Of(1.0)),
        curves
            .gain(12, BLOCKED, "SINGLE")
            .row("orders of magnitude of SINGLE over blocked, 12 bits per key")
            .claims("slightly better", Claim::AtLeast(0.0))
            .erratum("Erratum 10: only from 16 bits per key on; below, the counter costs more than it gains."),
        curves
            .gain(16, BLOCKED, "SINGLE")
            .row("orders of magnitude of SINGLE over blocked, 16 bits per key")
            .claims("slightly better", Claim::AtLeast(0.0)),
        curves
            .gain(12, BLOCKED, "MHT")
            .row("orders of magnitude of MHT over blocked, 12 bits per key")
            .claims("worse", Claim::AtMost(0.0)),
    ];
    Ok(Item::table("Abstract and text", "The headline and other numbers in the text.", rows))
}

fn figure_two(results: &Results) -> Result<Item, Trouble> {
    let axes = (Axis::linear("keys in a block"), Axis::linear("share of the blocks"));
    let mut plot = Plot::new("Figure 2", axes.0, axes.1);
    let mut rows = Vec::new();
    for (number, accesses) in BOUND_BUDGETS.into_iter().enumerate() {
        let bound = Bound::new(LOAD, accesses, 0.0);
        let trials: Vec<Vec<f64>> = results.get(&format!("bound {accesses}"))?;
        let shares = |load: usize| -> Vec<f64> {
            trials.iter().map(|trial| trial.get(load).copied().unwrap_or(0.0)).collect()
        };
        let drawn = bound.loads.len().min(19);
        let highest = bound.loads.iter().copied().fold(0.0, f64::max);
        let mut marks = Vec::new();
        for (load, &share) in bound.loads.iter().enumerate().take(drawn) {
            let measured = Estimate::mean(&shares(load));
            marks.push((load as f64, measured.value));
            // Where few events were seen, the interval is that of rare events.
            let floor = Estimate::share(
                (measured.value * (trials.len() as u64 * BLOCKS) as f64).round() as u64,
                trials.len() as u64 * BLOCKS,
            );
            let low = measured.low.min(floor.low);
            let high = measured.high.max(floor.high);
            rows.push(
                Row::new(format!("a = {accesses}, load {load}"))
                    .predicted(share)
                    .measured(Estimate { low, high, ..measured })
                    .unit(Unit::Of(highest)),
            );
        }
        let line = bound.loads.iter().take(drawn).enumerate();
        let name = format!("a = {accesses}");
        plot = plot
            .with(
                Series::line(name.clone(), line.map(|(load, &share)| (load as f64, share)))
                    .coloured(number),
            )
            .with(
                Series::marks(format!("{name}, measured"), marks)
                    .marked(Mark::Ring)
                    .coloured(number),
            );
    }
    let about = "The bound of Theorem 1: shares of blocks by load for r = 8, no overflow and an access budget a. \
        The curves of the source are lost. Measured: keys thrown, and the surplus taken from the fullest blocks.";
    Ok(Item::figure("Figure 2", about, plot, rows))
}

/// How much more, in percentage points, the last and small subtable of MHT refuses than in the
/// limit of many blocks.
const SMALL_TABLE: f64 = 0.003;
const SMALL_TABLE_WHY: &str = "The last of three subtables has 12 to 400 of the 12,000 blocks, and refuses more than in the limit: 0.0019 more at a = 1.04.";

/// Figures 3a and 3b: the least overflow in percent, as a function of budgets or loads.
fn regions(
    results: &Results,
    plot: Plot,
    points: &[(f64, f64, f64)],
    name: impl Fn(f64) -> String,
) -> Result<(Plot, Vec<Row>), Trouble> {
    let mut plot = plot;
    let mut rows = Vec::new();
    for (number, way) in [Way::Sequential, Way::Mht].into_iter().enumerate() {
        let (mut line, mut marks) = (Vec::new(), Vec::new());
        let mut highest = 0.0_f64;
        for &(_, load, accesses) in points {
            highest = highest.max(100.0 * Design::boundary(way, load, accesses)?.overflow);
        }
        for &(x, load, accesses) in points {
            let design = Design::boundary(way, load, accesses)?;
            let measured = refused_percent(results, &design)?;
            let predicted = 100.0 * design.overflow;
            line.push((x, predicted));
            let interval = Some((measured.low, measured.high));
            marks.push(Point { x, y: measured.value, interval });
            let row = Row::new(format!("{}, {}", way.name(), name(x)))
                .predicted(predicted)
                .measured(measured)
                .unit(Unit::Of(highest));
            rows.push(if way == Way::Mht { row.slack(SMALL_TABLE, SMALL_TABLE_WHY) } else { row });
        }
        plot = plot.with(Series::line(way.name(), line).coloured(number)).with(
            Series::marks(format!("{}, measured", way.name()), marks)
                .marked(Mark::Ring)
                .coloured(number),
        );
    }
    Ok((plot, rows))
}

fn figure_three_a(results: &Results) -> Result<Item, Trouble> {
    let points: Vec<(f64, f64, f64)> = budgets().map(|a| (a, LOAD, a)).collect();
    let plot = Plot::new(
        "Figure 3a",
        Axis::linear("blocks read per insertion, a"),
        Axis::linear("least overflow, % of the keys"),
    );
    let (plot, rows) = regions(results, plot, &points, |a| format!("a = {a}"))?;
    let about = "The least overflow at which a scheme is optimal, in percent of the keys, for r = 8 and three choices. The curves of the source are lost.";
    Ok(Item::figure("Figure 3a", about, plot, rows))
}

fn figure_three_b(results: &Results) -> Result<Item, Trouble> {
    let points = LOADS.map(|load| (load, load, ACCESSES));
    let plot = Plot::new(
        "Figure 3b",
        Axis::linear("keys per block, r"),
        Axis::linear("least overflow, % of the keys"),
    );
    let (plot, rows) = regions(results, plot, &points, |load| format!("r = {load}"))?;
    let about =
        "The same for 1.2 blocks per insertion and other loads. MHT does not depend on the load.";
    Ok(Item::figure("Figure 3b", about, plot, rows))
}

fn figure_four(curves: &Curves) -> Item {
    let axes = (Axis::linear("bits per key"), Axis::linear("log10 of the rate"));
    let mut plot = Plot::new("Figure 4", axes.0, axes.1);
    let mut rows = Vec::new();
    for (index, scheme) in SCHEMES.into_iter().enumerate() {
        let at = |values: &[[f64; 5]]| -> Vec<(f64, f64)> {
            BITS.iter().zip(values).map(|(&bits, line)| (f64::from(bits), line[index])).collect()
        };
        let marks = BITS.iter().zip(&curves.measured).filter_map(|(&bits, line)| {
            let Estimate { value, low, high } = line[index]?;
            Some(Point { x: bits.into(), y: value, interval: Some((low, high)) })
        });
        let colour = [6, 7, 4, 1, 0][index];
        plot = plot.with(Series::line(scheme, at(&curves.by_formula)).coloured(colour)).with(
            Series::marks(format!("{scheme}, as built"), marks).marked(Mark::Ring).coloured(colour),
        );
        for (line, bits) in BITS.into_iter().enumerate() {
            let (formula, exact) = (curves.by_formula[line][index], curves.exact[line][index]);
            rows.push(
                Row::new(format!("{bits} bits, {scheme}, by the paper's formula"))
                    .predicted(formula),
            );
            let row = Row::new(format!("{bits} bits, {scheme}, as built"))
                .predicted(exact)
                .unit(Unit::Log10);
            rows.extend(curves.measured[line][index].map(|measured| row.measured(measured)));
        }
    }
    let about = "log10 of the rate against bits per key: blocks of 256 bits, three choices, 1.2 accesses, a list of 0.498%, k = beta ln 2 everywhere. \
        The curves of the source are lost. Lines: the paper's formula. Rings: the rates of filters that were built, from the fill of every block; \
        they lie higher because bits of one key may fall together.";
    Item::figure("Figure 4", about, plot, rows)
}

fn figure_five(results: &Results) -> Result<Item, Trouble> {
    let trials: Vec<Vec<[f64; 4]>> = results.get("figure-5")?;
    let mut plot = Plot::new(
        "Figure 5",
        Axis::linear("time, share of the keys inserted"),
        Axis::linear("share of the blocks"),
    );
    let mut rows = Vec::new();
    let load = SHOWN_KEYS as f64 / SHOWN_BLOCKS as f64;
    for height in 0..4 {
        let (mut line, mut marks) = (Vec::new(), Vec::new());
        for step in 0..=STEPS {
            let time = step as f64 / STEPS as f64;
            let model = SHOWN.loads(time * load)[height];
            line.push((time, model));
            let shares: Vec<f64> =
                trials.iter().map(|trial| trial[step as usize][height]).collect();
            let measured = Estimate::mean(&shares);
            let interval = Some((measured.low, measured.high));
            marks.push(Point { x: time, y: measured.value, interval });
            if step > 0 && step % 5 == 0 {
                let row = Row::new(format!("f{height} at t = {time}"));
                rows.push(row.predicted(model).measured(measured).unit(Unit::Of(0.4)));
            }
        }
        plot = plot.with(Series::line(format!("f{height}"), line).coloured(height)).with(
            Series::marks(format!("f{height}, measured"), marks)
                .marked(Mark::Ring)
                .coloured(height),
        );
    }
    // As printed, the last line of the equations has f_(h-1) for f_h.
    let again: f64 = oracle::printed_single(SHOWN.p, load).iter().sum();
    let steps = 10_000;
    let width = load / f64::from(steps);
    let top: f64 = (0..steps)
        .map(|step| SHOWN.p * SHOWN.loads((f64::from(step) + 0.5) * width)[1] * width)
        .sum();
    let sum = SHOWN.loads(load)[..3].iter().sum::<f64>() + top;
    rows.push(
        Row::new("sum of all shares at t = 1, by the printed equations")
            .claims("1, as shares must", Claim::Is(1.0))
            .predicted(sum)
            .checked(Estimate::about(again, 1e-6), "by integrating the printed equations")
            .erratum("Erratum 2: the last line of the SINGLE system must have p f_h."),
    );
    let about = "Shares of blocks with 0 to 3 keys while SINGLE fills them: r = 2.5, p = 0.5, h = 2, and the source's 25,000 keys. Its curves are lost.";
    Ok(Item::figure("Figure 5", about, plot, rows))
}

fn appendix_c(results: &Results) -> Result<Item, Trouble> {
    let variance = |design: &Design| -> Result<Estimate, Trouble> {
        let trials: Vec<Walked> = results.get(&design.name())?;
        let variances: Vec<f64> = trials.iter().map(|trial| trial.variance).collect();
        Ok(Estimate::mean(&variances))
    };
    let single = Design { way: Way::Single, load: LOAD, accesses: 1.0, overflow: listed()? };
    let sequential = Design::boundary(Way::Sequential, LOAD, ACCESSES)?;
    let mht = Design::boundary(Way::Mht, LOAD, ACCESSES)?;
    let levelled = |accesses: f64| -> Result<Estimate, Trouble> {
        let trials: Vec<Vec<f64>> = results.get(&format!("bound {accesses}"))?;
        let variance = |shares: &Vec<f64>| {
            let loads = || shares.iter().enumerate().map(|(load, share)| (load as f64, share));
            let mean: f64 = loads().map(|(load, share)| load * share).sum();
            loads().map(|(load, share)| (load - mean).powi(2) * share).sum()
        };
        Ok(Estimate::mean(&trials.iter().map(variance).collect::<Vec<f64>>()))
    };
    let mut rows = vec![
        Row::new("one choice")
            .predicted(load_variance(&Bound::new(LOAD, 1.0, 0.0).loads))
            .measured(levelled(1.0)?),
    ];
    let names = ["SINGLE, a = 1, list of 0.498%", "SEQUENTIAL, a = 1.2", "MHT, a = 1.2"];
    for (name, design) in names.into_iter().zip([single, sequential, mht]) {
        rows.push(
            Row::new(name)
                .predicted(load_variance(&design.bound().loads))
                .measured(variance(&design)?),
        );
    }
    rows.push(
        Row::new("bound, a = 1.2, no list")
            .predicted(load_variance(&Bound::new(LOAD, ACCESSES, 0.0).loads))
            .measured(levelled(ACCESSES)?),
    );
    let trials: Vec<Walked> = results.get(&mht.name())?;
    let read: Vec<f64> = trials.iter().map(|trial| trial.read as f64 / trial.keys as f64).collect();
    rows.push(
        Row::new("blocks per insertion, MHT at a = 1.2")
            .printed("1.2")
            .predicted(ACCESSES)
            .measured(Estimate::mean(&read)),
    );
    Ok(Item::table(
        "Appendix C",
        "Variance of the load of a block for r = 8, which the source says in symbols only.",
        rows,
    ))
}
