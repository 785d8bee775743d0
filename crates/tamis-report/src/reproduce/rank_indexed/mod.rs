//! Document 000: rank-indexed hashing. Errata are numbered as in the checked notes.

mod trials;

use tamis::Kind;
use tamis::dleft::model as dleft;
use tamis::math::solve::first_true;
use tamis::math::tail::{binomial_above, poisson_above};
use tamis::rank_indexed::model::{self, Layout};
use tamis::rank_indexed::optimise::{Demand, complete, optimise};

use crate::plot::{Axis, Mark, Plot, Series};
use crate::reproduce::{Document, Estimate, Item, Results, Row, Trouble, built};

pub(super) use trials::experiments;
use trials::{
    Beyond, EXAMPLE_BUCKETS, Example, N, OVERFLOW, Printed, Table, d_left, d_left_counting,
    d_left_packed, more_percent, printed_rows, rates, standard, uncompressed,
};

pub(super) fn document(results: &Results) -> Result<Document, Trouble> {
    let tables: Vec<Vec<Table>> = (0..3)
        .map(|index| results.get(&format!("rank-table {index}")))
        .collect::<Result<_, _>>()?;
    Ok(Document {
        remarks: &[
            "E13: the text rounds the d-left fingerprint up to whole bits, the tables do not; with the ceiling the d-left column of Table III would be 16, 20 and 24.",
            "The section on tails writes Pr[Po] where Po is a probability already; the text calls Table I \"III-C\"; Table II heads r as R.",
        ],
        number: "000",
        title: "Rank-indexed hashing",
        source: "N. Hua, H. Zhao, B. Lin, J. Xu: Rank-Indexed Hashing: A compact construction of Bloom filters and variants. ICNP 2008.",
        finding: "The construction does what it promises, and better levels than the printed ones save another 0.2 bits per key. \
            Two d-left entries of Table III, the third line of Table I and the uncompressed sizes of Table V are wrong.",
        items: vec![
            text(),
            table_one(results)?,
            section_three(results)?,
            table_two(results, &tables)?,
            table_three(&tables),
            table_four(&tables),
            table_five(&tables),
            figure_five(results)?,
            figure_six(results)?,
        ],
    })
}

fn text() -> Item {
    let ideal = 2_f64.powi(-7);
    let fingerprint = d_left(ideal) * 6.0 / 8.0;
    let rows = vec![
        Row::new("bits per key and log2(1/rate), optimal standard filter")
            .printed("1.44")
            .predicted(standard(0.5)),
        Row::new("rate of a standard filter with 10 bits per key")
            .printed("0.008")
            .predicted(dleft::counting_rate_for_bits(40.0)),
        Row::new("bits per key of a standard counting filter for it")
            .printed("40")
            .predicted(4.0 * 10.0)
            .note("The source takes 10 bits per key for a rate of 2⁻⁷."),
        Row::new("pointer bits for a million keys").printed("20").predicted(1e6_f64.log2().ceil()),
        Row::new("pointer bits, doubly linked")
            .printed("40")
            .predicted(2.0 * 1e6_f64.log2().ceil()),
        Row::new("d-left fingerprint for 2⁻⁷, bits").printed("12").predicted(fingerprint.ceil()),
        Row::new("d-left bits per key for 2⁻⁷").printed("16").predicted(dleft::bits_per_key(
            8,
            6.0,
            fingerprint.ceil(),
        )),
    ];
    Item::table("Sections I and II", "Numbers in the introduction and the background.", rows)
}

fn table_one(results: &Results) -> Result<Item, Trouble> {
    let trials: Vec<Example> = results.get("rank-example")?;
    let rows = [(64, "0.13"), (74, "0.01"), (128, "8e-17")].into_iter().enumerate();
    let rows = rows.map(|(index, (most, printed))| {
        let above = trials.iter().map(|trial| trial.above[index]).sum();
        let wrong = "E1: the Poisson tail is 5.52e-17; the binomial one is lower, and no formula that was tried gives 8e-17 together with the other two lines.";
        Row::new(format!("load > {most}"))
            .printed(printed)
            .predicted(poisson_above(most, 56.0))
            .measured(Estimate::share(above, trials.len() as u64 * EXAMPLE_BUCKETS))
            .erratum_if((most == 128).then_some(wrong))
    });
    Ok(Item::table(
        "Table I",
        "Share of buckets with more keys than a threshold, for L = 64 and lambda = 0.875.",
        rows.collect(),
    ))
}

fn section_three(results: &Results) -> Result<Item, Trouble> {
    let trials: Vec<Example> = results.get("rank-example")?;
    let cells = 64.0 * EXAMPLE_BUCKETS as f64;
    let unused: Vec<f64> = trials.iter().map(|trial| 1.0 - trial.held as f64 / cells).collect();
    let held: f64 = (0..64).map(|load| poisson_above(load, 56.0)).sum();
    let needed = |chance: f64| {
        let part = OVERFLOW / 3.0;
        first_true(0, EXAMPLE_BUCKETS, |extensions| {
            2.0 * binomial_above(EXAMPLE_BUCKETS, chance, extensions) <= part
        })
    };
    let short = "E11: a mean, not a capacity. As a capacity it runs out in 44% (second level) and 27% (third level) of all tables; the paper's own bound asks for more.";
    let extensions = |name: &str, printed, most: u64| {
        let row = Row::new(name).printed(printed).erratum(short);
        match needed(poisson_above(most, 56.0)) {
            Some(needed) => row.predicted(needed as f64),
            None => row,
        }
    };
    let rows = vec![
        Row::new("mean load, lambda L").printed("56").predicted(0.875 * 64.0),
        Row::new("cells for each key, Z = 64").printed("1.14").predicted(64.0 / 56.0),
        Row::new("share of unused cells, Z = 64")
            .printed("1.14")
            .predicted(1.0 - held / 64.0)
            .measured(Estimate::mean(&unused))
            .erratum("E10: 1.14 is the number of cells for each key. The share of unused cells is 13.4%."),
        extensions("second-level extensions for B = 1000", "130", 64),
        extensions("third-level extensions for B = 1000", "10", 74),
    ];
    Ok(Item::table("Section III-C", "The example of bucket extensions.", rows))
}

fn table_two(results: &Results, tables: &[Vec<Table>]) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    let shares = [("17.9", "2.7"), ("36.0", "1.7"), ("23.3", "1.8")];
    for (index, printed) in printed_rows().iter().enumerate() {
        let Printed { name, layout, .. } = printed;
        let bound = model::overflow_bound(layout, N);
        rows.push(
            Row::new(format!("{name}: chance of overflow"))
                .claims("at most 1e-10", bound <= OVERFLOW)
                .predicted(bound),
        );
        let passed = tables[index].iter().map(|table| table.passed).sum();
        let queries = tables[index].iter().map(|table| table.queries).sum();
        let missed = "E2: 0.86·2⁻¹³ is 1.05e-4. The paper's own rule asks for 14 bits; with 13, lambda must be at most 0.8192.";
        let claim = ["at most 1%", "at most 0.1%", "at most 0.01%"][index];
        rows.push(
            Row::new(format!("{name}: rate"))
                .claims(claim, model::rate(layout, N) <= printed.rate)
                .predicted(model::rate(layout, N))
                .measured(Estimate::share(passed, queries))
                .erratum_if((index == 2).then_some(missed)),
        );
        let needed = |with: &dyn Fn(u64) -> Layout| {
            let fits = |extensions| model::overflow_bound(&with(extensions), N) <= OVERFLOW;
            let least = first_true(1, layout.buckets, fits).unwrap_or(0);
            100.0 * least as f64 / layout.buckets as f64
        };
        let loose = "E12: more than the bound asks for with these Z, so that the row is feasible and not optimal.";
        let by_level = [
            ("J2/B", shares[index].0, needed(&|second| Layout { second, ..*layout })),
            ("J3/B", shares[index].1, needed(&|third| Layout { third, ..*layout })),
        ];
        for (level, text, needed) in by_level {
            let row = Row::new(format!("{name}: {level} in percent, least"));
            rows.push(row.printed(text).predicted(needed).erratum(loose));
        }
        let throws: Vec<Beyond> = results.get(&format!("rank-beyond {index}"))?;
        let mean = |of: fn(&Beyond) -> u64| {
            Estimate::mean(&throws.iter().map(|throw| of(throw) as f64).collect::<Vec<f64>>())
        };
        let (second, third) = model::extension_share(layout, N);
        let buckets = layout.buckets as f64;
        rows.push(
            Row::new(format!("{name}: second-level extensions in use"))
                .predicted(second * buckets)
                .measured(mean(|throw| throw.first)),
        );
        rows.push(
            Row::new(format!("{name}: third-level extensions in use"))
                .predicted(third * buckets)
                .measured(mean(|throw| throw.second)),
        );
        let largest = throws.iter().map(|throw| throw.largest).max().unwrap_or(0);
        rows.push(
            Row::new(format!("{name}: largest bucket of all throws"))
                .claims("fits the three levels", largest <= layout.reach())
                .measured(Estimate::exact(largest as f64)),
        );
    }
    Ok(Item::table(
        "Table II",
        "Sizing for 100,000 keys: what the printed levels promise, and what they are used for.",
        rows,
    ))
}

/// A column: its name, what is printed row by row, what comes out, and the rows that are wrong.
struct Column {
    name: &'static str,
    printed: [&'static str; 3],
    value: fn(&Printed) -> f64,
    wrong: [Option<&'static str>; 3],
}

/// Rows of a table that has a line for each rate.
fn by_rate(columns: &[Column]) -> Vec<Row> {
    let mut rows = Vec::new();
    for column in columns {
        for (index, printed) in printed_rows().iter().enumerate() {
            rows.push(
                Row::new(format!("{}: {}", printed.name, column.name))
                    .printed(column.printed[index])
                    .predicted((column.value)(printed))
                    .erratum_if(column.wrong[index]),
            );
        }
    }
    rows
}

/// The same lambda, L and r with the optimiser's levels, as it is built.
fn better_levels(tables: &[Vec<Table>], extra: u32, held: fn(&Table) -> u64) -> Vec<Row> {
    let rows = printed_rows().into_iter().enumerate().filter_map(|(index, printed)| {
        let demand = Demand { extra, max_groups: 1, ..Demand::new(N) };
        let better = complete(&demand, Layout { extra, ..printed.layout })?;
        let footprint = tables[index].iter().map(held).max()?;
        Some(
            Row::new(format!("{}: Rank with better levels, as built", printed.name))
                .predicted(better.bits_per_key(N))
                .measured(Estimate::exact(footprint as f64 / N as f64))
                // Memory comes in lines of 64 bytes.
                .model_within(0.002),
        )
    });
    rows.collect()
}

fn table_three(tables: &[Vec<Table>]) -> Item {
    let other_draft = "E4: contradicts the table's own percentages and Table IV; the entry is probably of an earlier draft.";
    let other_lambda = "E5: the percentage belongs to a lambda that differs from the printed one in its third digit.";
    let left = |wrong| [None, Some(wrong), Some(wrong)];
    let columns = [
        Column {
            name: "standard",
            printed: ["9.6", "14.6", "19.1"],
            value: |row| standard(row.evaluated_at()),
            wrong: [None; 3],
        },
        Column {
            name: "d-left",
            printed: ["15.0", "18.0", "22.2"],
            value: |row| d_left(row.evaluated_at()),
            wrong: left(other_draft),
        },
        Column {
            name: "Rank",
            printed: ["10.6", "14.4", "18.2"],
            value: |row| row.layout.bits_per_key(N),
            wrong: [None; 3],
        },
        Column {
            name: "Rank against standard, percent",
            printed: ["10.1", "-1.1", "-4.4"],
            value: |row| more_percent(row.layout.bits_per_key(N), standard(row.evaluated_at())),
            wrong: left(other_lambda),
        },
        Column {
            name: "Rank against d-left, percent",
            printed: ["-29.5", "-26.3", "-23.2"],
            value: |row| more_percent(row.layout.bits_per_key(N), d_left(row.evaluated_at())),
            wrong: left(other_lambda),
        },
    ];
    let mut rows = by_rate(&columns);
    rows.extend(better_levels(tables, 0, |table| table.footprint));
    Item::table(
        "Table III",
        "Memory in bits per key. E3: the other schemes are evaluated at lambda 2^-r of the row, not at the round rate.",
        rows,
    )
}

fn table_four(tables: &[Vec<Table>]) -> Item {
    let columns = [
        Column {
            name: "standard",
            printed: ["38.3", "58.4", "76.3"],
            value: |row| 4.0 * standard(row.evaluated_at()),
            wrong: [None; 3],
        },
        Column {
            name: "d-left",
            printed: ["17.6", "22.3", "26.4"],
            value: |row| d_left_counting(row.evaluated_at()),
            wrong: [None; 3],
        },
        Column {
            name: "Rank",
            printed: ["13.0", "16.8", "20.6"],
            value: |row| row.counting().bits_per_key(N),
            wrong: [None; 3],
        },
        Column {
            name: "Rank against standard, percent",
            printed: ["-66", "-71", "-73"],
            value: |row| {
                more_percent(row.counting().bits_per_key(N), 4.0 * standard(row.evaluated_at()))
            },
            wrong: [None; 3],
        },
        Column {
            name: "Rank against d-left, percent",
            printed: ["-27", "-24", "-22"],
            value: |row| {
                more_percent(row.counting().bits_per_key(N), d_left_counting(row.evaluated_at()))
            },
            wrong: [
                Some("E6: off by one; no lambda that rounds to the printed one repairs it."),
                Some("E6: off by one; -24.47 with a lambda of 0.9164."),
                None,
            ],
        },
    ];
    let mut rows = by_rate(&columns);
    let ratio = |row: &Printed| 4.0 * standard(row.evaluated_at()) / row.counting().bits_per_key(N);
    let [first, ..] = printed_rows();
    rows.push(
        Row::new("1%: standard over Rank")
            .claims("three or more", ratio(&first) >= 3.0)
            .predicted(ratio(&first))
            .erratum("E6: 2.94 with the printed row; 3.00 with better levels."),
    );
    rows.extend(better_levels(tables, 2, |table| table.counting_footprint));
    Item::table("Table IV", "Memory of counting filters in bits per key.", rows)
}

fn table_five(tables: &[Vec<Table>]) -> Item {
    let read_off = "E8: fits neither the rate of the row nor the round rate; probably read off a curve. It needs k of 1.36 to 1.51, which cannot be built.";
    let narrow = "E9: with counts of 3 bits, which hold 0 to 7 and not 8.";
    let uncompressed_rank =
        |row: &Printed| uncompressed(row.evaluated_at(), row.packed()).unwrap_or(f64::NAN);
    let columns = [
        Column {
            name: "Rank packed",
            printed: ["8.6", "12.1", "15.2"],
            value: Printed::packed,
            wrong: [None; 3],
        },
        Column {
            name: "d-left packed",
            printed: ["11.7", "15.2", "18.3"],
            value: |row| d_left_packed(row.evaluated_at(), 3.0),
            wrong: [None; 3],
        },
        Column {
            name: "array that compresses as well as Rank",
            printed: ["30", "150", "1.3e3"],
            value: uncompressed_rank,
            wrong: [Some(read_off); 3],
        },
        Column {
            name: "Rank packed over standard, percent",
            printed: ["89", "83", "79"],
            value: |row| 100.0 * row.packed() / standard(row.evaluated_at()),
            wrong: [None, None, Some("E7: 79.5; 79 only with the rounded 19.1 as the divisor.")],
        },
        Column {
            name: "d-left packed over standard, percent",
            printed: ["122", "104", "96"],
            value: |row| {
                100.0 * d_left_packed(row.evaluated_at(), 3.0) / standard(row.evaluated_at())
            },
            wrong: [None; 3],
        },
    ];
    let mut rows = by_rate(&columns);
    for row in &mut rows {
        if row.name.ends_with("d-left packed") {
            row.reason = Some(narrow);
        }
    }
    let [.., last] = printed_rows();
    let as_d_left = uncompressed(last.evaluated_at(), d_left_packed(last.evaluated_at(), 3.0));
    let row = Row::new("0.01%: array that compresses as well as d-left").printed("27");
    rows.push(row.predicted(as_d_left.unwrap_or(f64::NAN)));
    for (printed, tables) in printed_rows().iter().zip(tables) {
        let sent = tables.iter().map(|table| table.wire_bytes as f64 * 8.0 / N as f64);
        rows.push(
            Row::new(format!("{}: Rank packed, as sent", printed.name))
                .predicted(model::trimmed_bits_per_key(&printed.layout, N))
                .measured(Estimate::mean(&sent.collect::<Vec<f64>>()))
                .note("With header and checksums.")
                .model_within(0.005),
        );
    }
    Item::table("Table V", "Sizes on the wire in bits per key.", rows)
}

fn rank(rate: f64, max_lambda: f64, extra: u32) -> Option<f64> {
    let demand = Demand { max_lambda, extra, max_groups: 1, ..Demand::new(N) };
    Some(optimise(&demand, rate)?.bits_per_key(N))
}

/// The figures reach over seven decades; the curve has three points for each.
fn curve(value: impl Fn(f64) -> Option<f64>) -> Vec<(f64, f64)> {
    let rates = (3..=21).map(|third| 10_f64.powf(-f64::from(third) / 3.0));
    rates.filter_map(|rate| Some((rate, value(rate)?))).collect()
}

/// The longest chains of the paper, and longer ones.
const SHORT: f64 = 1.1;
const LONG: f64 = 3.5;

/// Another scheme: its name, and its bits per key at a rate.
type Scheme = (&'static str, fn(f64) -> f64);

fn figure(
    results: &Results,
    (name, about): (&'static str, &'static str),
    kind: Kind,
    extra: u32,
    others: [Scheme; 2],
) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    let mut marks = Vec::new();
    for rate in rates() {
        for (name, value) in others {
            rows.push(Row::new(format!("{rate:e}: {name}")).predicted(value(rate)));
        }
        for (name, lambda) in [("Rank, lambda up to 1.1", SHORT), ("Rank, lambda up to 3.5", LONG)]
        {
            let row = Row::new(format!("{rate:e}: {name}"));
            rows.push(row.predicted(rank(rate, lambda, extra).unwrap_or(f64::NAN)));
        }
        let built = built::get(results, kind, rate)?.ok_or("a rate that cannot be had")?;
        marks.push((rate, built.bits_per_key));
        rows.push(
            Row::new(format!("{rate:e}: Rank, as built"))
                .predicted(built.predicted.bits_per_key)
                .measured(Estimate::exact(built.bits_per_key)),
        );
    }
    let rate = Axis::log("rate (share of strangers that pass)");
    let mut plot = Plot::new(name, rate, Axis::linear("memory, bits per key"));
    for (number, (name, value)) in others.into_iter().enumerate() {
        plot = plot.with(Series::line(name, curve(|rate| Some(value(rate)))).coloured(6 + number));
    }
    let plot = plot
        .with(Series::line("Rank, lambda up to 1.1", curve(|r| rank(r, SHORT, extra))).coloured(0))
        .with(Series::line("Rank, lambda up to 3.5", curve(|r| rank(r, LONG, extra))).coloured(1))
        .with(Series::marks("Rank, as built", marks).marked(Mark::Ring).coloured(2));
    Ok(Item::figure(name, about, plot, rows))
}

fn figure_five(results: &Results) -> Result<Item, Trouble> {
    let about = "Memory against rate, 100,000 keys, in bits per key. The curves of the source are lost; the range is the source's.";
    let others: [Scheme; 2] = [("standard", standard), ("d-left", d_left)];
    figure(results, ("Figure 5", about), Kind::RankIndexed, 0, others)
}

fn figure_six(results: &Results) -> Result<Item, Trouble> {
    let about = "Memory of counting filters against rate, 100,000 keys, in bits per key. The curves of the source are lost.";
    let others: [Scheme; 2] =
        [("standard", dleft::counting_bits_for_rate), ("d-left", d_left_counting)];
    figure(results, ("Figure 6", about), Kind::RankCounting, 2, others)
}
