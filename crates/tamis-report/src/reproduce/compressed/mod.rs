//! Document 004: compressed Bloom filters.

mod trials;

use tamis::bloom::BloomParams;
use tamis::internals::bloom::model::rate as exact_rate;
use tamis::internals::compressed::elias_fano::EliasFano;
use tamis::internals::compressed::model::{counter_entropy, limit_rate};

use crate::papers::compressed::{beta, gamma, zeros_bound};
use crate::plot::{Axis, Mark, Plot, Point, Series};
use crate::reproduce::estimate::reach;
use crate::reproduce::{Claim, Document, Estimate, Item, Results, Row, Trouble, Unit, oracle};

pub(super) use trials::experiments;
use trials::{
    Array, Asked, Bytes, FIGURES, LISTED, Listed, N, RARE, SMALL, Sent, Simulated, Table, array,
    array_for, counted, is_plain, simulated, tables, zeros_for,
};

pub(super) fn document(results: &Results) -> Result<Document, Trouble> {
    let mut items = vec![limits(results)?];
    for table in tables() {
        items.push(table_item(results, &table)?);
    }
    items.push(sizes(results)?);
    for (name, bits, most) in FIGURES {
        items.push(figure(results, name, bits, most)?);
    }
    items.push(list_form(results)?);
    items.push(counting(results)?);
    items.push(theorem_one(results)?);
    Ok(Document {
        remarks: &[
            "Theorem 1: the number of zeros after j hashes only falls and is no martingale; its expectation given the first j hashes is one, around m (1 - 1/m)^(nk). The bound is right, and says nothing at these sizes.",
        ],
        number: "004",
        title: "Compressed Bloom filters",
        source: "M. Mitzenmacher: Compressed Bloom Filters. IEEE/ACM Transactions on Networking 10(5), 2002.",
        finding: "Everything comes out, to the byte. Two entries of Table VI are exchanged, and the predicted size of a delta was computed from one of them. \
            The paper's coder spends 12 to 17 bytes a message that a range coder need not.",
        items,
    })
}

const THROWN: &str = "by throwing position by position";
const LIMIT: &str =
    "The printed form is a limit; the exact rate of 10,000 keys is this much higher.";

/// Rows for the rate of an array: filters compared with what is printed, which is a limit, or else
/// with the exact rate. Where false positives are few, the bits of the filters are compared with
/// the prediction, and the false positives have a row of their own.
fn rate_rows(
    results: &Results,
    name: &str,
    array: Array,
    printed: Option<(&'static str, Option<&'static str>)>,
) -> Result<Vec<Row>, Trouble> {
    let exact = exact_rate(array.positions(), array.hashes, N);
    let is_rare = exact < RARE;
    let first = Row::new(name).measured(measured_rate(results, array, is_rare)?);
    let limit = array.shape().limit_rate();
    let mut rows = vec![match printed {
        None => first.predicted(exact),
        Some((text, None)) => first.predicted(limit).slack(exact - limit, LIMIT).printed(text),
        Some((text, Some(wrong))) => {
            // Filters cannot decide a last digit.
            let throws = N * u64::from(array.hashes);
            let ones = oracle::ones_after(array.positions(), throws);
            let again = ones.powi(array.hashes as i32);
            let again = Estimate::about(again, 1e-4 * again);
            first.predicted(limit).printed(text).checked(again, THROWN).erratum(wrong)
        }
    }];
    if is_rare {
        rows.push(
            Row::new(format!("{name}, asked"))
                .predicted(exact)
                .measured(measured_rate(results, array, false)?)
                .unit(Unit::Rare),
        );
    }
    Ok(rows)
}

/// The rate of filters: by their bits, or by lookups of absent keys.
fn measured_rate(results: &Results, array: Array, by_bits: bool) -> Result<Estimate, Trouble> {
    let trials: Vec<Asked> = results.get(&format!("rate {}", array.name()))?;
    let params = BloomParams::new(array.positions(), array.hashes)?;
    let count = trials.len() as f64;
    let spread =
        tamis::internals::bloom::model::predict_bloom(&params, N).rate_spread / count.sqrt();
    if by_bits {
        let mean = trials.iter().map(|trial| trial.rate).sum::<f64>() / count;
        let widening = (reach() * spread).exp();
        return Ok(Estimate { value: mean, low: mean / widening, high: mean * widening });
    }
    let passed = trials.iter().map(|trial| trial.passed).sum();
    let queries = trials.iter().map(|trial| trial.queries).sum();
    Ok(Estimate::rate(passed, queries, spread))
}

fn limits(results: &Results) -> Result<Item, Trouble> {
    let best = 2_f64.powf(-1.0 / oracle::standard_bits(0.5));
    let mut rows = vec![
        Row::new("beta of an optimal standard filter")
            .printed("0.6185")
            .predicted(beta(0.5))
            .checked(Estimate::about(best, 1e-9), "by a search over functions and sizes"),
        Row::new("gamma at p = 1/2").predicted(gamma(0.5)),
    ];
    for (name, array, printed) in [
        ("8 bits per key, k = 5: rate", array(80, 5), "0.0217"),
        ("16 bits per key, k = 6: rate", array(160, 6), "0.000935"),
    ] {
        rows.extend(rate_rows(results, name, array, Some((printed, None)))?);
    }
    Ok(Item::table("Sections II and III", "Numbers in the text.", rows))
}

/// Bits per key of a delta, by other means than the library's.
fn thrown_entropy(sent: Sent) -> Estimate {
    let Array { hashes, .. } = sent.array;
    let bits = oracle::delta_bits(sent.array.positions(), hashes.into(), N, sent.replaced);
    // Exact shares for 10,000 keys and limits of many keys differ by 1e-5.
    Estimate::about(bits / N as f64, 1e-5 * bits / N as f64)
}

fn table_item(results: &Results, table: &Table) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for column in &table.columns {
        let (sent, name) = (table.sent(column), column.array.name());
        let row = Row::new(format!("{name}: bits per key sent")).printed(column.bits);
        if is_plain(column) {
            rows.push(row.predicted(column.array.positions() as f64 / N as f64));
        } else {
            let bytes: Vec<Bytes> = results.get(&sent.name())?;
            let each: Vec<f64> =
                bytes.iter().map(|bytes| bytes.fixed as f64 * 8.0 / N as f64).collect();
            let measured = Estimate::mean(&each);
            let overhead = 4.0 * 8.0 / N as f64;
            let why = "The coder's end and the count of ones take up to 4 bytes.";
            rows.push(
                match column.wrong.bits {
                    None => row.measured(measured).slack(overhead, why),
                    // The two entries that were exchanged differ by less than messages vary.
                    Some(wrong) => row.checked(thrown_entropy(sent), THROWN).erratum(wrong),
                }
                .predicted(sent.entropy_per_key()),
            );
            if let Some(per_change) = column.per_change {
                let per_key = 100.0 / table.percent as f64;
                let row = Row::new(format!("{name}: bits per replaced key sent"))
                    .printed(per_change)
                    .predicted(per_key * sent.entropy_per_key());
                let times = |bits: f64| bits * per_key;
                rows.push(match column.wrong.per_change {
                    None => row.measured(measured.map(times)).slack(overhead * per_key, why),
                    Some(wrong) => {
                        row.checked(thrown_entropy(sent).map(times), THROWN).erratum(wrong)
                    }
                });
            }
        }
        let printed = Some((column.rate, column.wrong.rate));
        rows.extend(rate_rows(results, &format!("{name}: rate"), column.array, printed)?);
    }
    Ok(Item::table(table.name, table.about, rows))
}

fn sizes(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for Simulated { sent, theory, mean, deviation: spread, most, room } in simulated() {
        let (shape, message) = (sent.array.shape(), sent.message());
        let name = match sent.replaced {
            0 => sent.array.name(),
            _ => format!("delta, {}", sent.array.name()),
        };
        let trials: Vec<Bytes> = results.get(&sent.name())?;
        let lengths: Vec<f64> = trials.iter().map(|bytes| bytes.adaptive as f64).collect();
        if let Some((printed, wrong)) = theory {
            let row = Row::new(format!("{name}: bytes by the theory"))
                .printed(printed)
                .predicted(shape.entropy_bits(message) / 8.0)
                .erratum_if(wrong);
            rows.push(if sent.replaced == 0 {
                let throws = N * u64::from(sent.array.hashes);
                let ones = oracle::ones_after(sent.array.positions(), throws);
                let bytes = oracle::message_bits(sent.array.positions(), ones) / 8.0;
                row.checked(Estimate::about(bytes, 0.1), "by throwing position by position")
            } else {
                let fixed: Vec<f64> = trials.iter().map(|bytes| bytes.fixed as f64).collect();
                row.measured(Estimate::mean(&fixed))
                    .slack(4.0, "The coder's end and the count of ones take up to 4 bytes.")
            });
        }
        // Rounding up to whole bytes adds 7/16 of a byte on average.
        let ideal = shape.coded_bits(message) / 8.0 + 0.4375;
        let row = Row::new(format!("{name}: mean bytes, adaptive coder"));
        let row = match mean {
            Some(mean) => row
                .printed(mean)
                .within(18.0, "The paper's program costs a constant 12 to 17 bytes more than an exact coder, overhead included."),
            None => row,
        };
        rows.push(
            row.predicted(ideal)
                .measured(Estimate::mean(&lengths))
                .slack(1.5, "Bytes: the model is that of an ideal coder, to a bit or two, and the coder ends with a byte of its own."),
        );
        if let Some(spread) = spread {
            rows.push(
                Row::new(format!("{name}: standard deviation of the bytes"))
                    .sampled(spread)
                    .predicted(shape.deviation_bits(message) / 8.0)
                    .measured(Estimate::deviation(&lengths))
                    .unit(Unit::Rare),
            );
        }
        let largest = lengths.iter().copied().fold(0.0, f64::max);
        let bound: f64 = most.parse()?;
        let row = Row::new(format!("{name}: largest of all messages, bytes"));
        let bound = room.map_or(bound, |room| bound.min(room as f64));
        rows.push(row.claims(most, Claim::AtMost(bound)).measured(Estimate::exact(largest)));
    }
    Ok(Item::table(
        "Simulations in the text",
        "Bytes of messages for 10,000 keys. Largest messages are compared as bounds: they grow with the number of trials.",
        rows,
    ))
}

fn mark(results: &Results, hashes: u32, array: Array) -> Result<Point, Trouble> {
    let Estimate { value, low, high } = measured_rate(results, array, false)?;
    Ok(Point { x: hashes.into(), y: value, interval: Some((low, high)) })
}

fn figure(results: &Results, name: &'static str, bits: f64, most: u32) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    let (mut compressed, mut standard) = (Vec::new(), Vec::new());
    for hashes in 1..=most {
        let array = array_for(bits, hashes).ok_or("no such array")?;
        // Sizes on the curve are real numbers; an array has multiples of a tenth of a position for
        // each key.
        rows.extend(rate_rows(results, &format!("k = {hashes}: compressed"), array, None)?);
        compressed.push(mark(results, hashes, array)?);
        let plain = self::array(bits as u64 * 10, hashes);
        rows.extend(rate_rows(results, &format!("k = {hashes}: standard"), plain, None)?);
        standard.push(mark(results, hashes, plain)?);
    }
    let steps = |from: f64| {
        let width = (f64::from(most) - from) / 80.0;
        (0..=80).map(move |step| from + f64::from(step) * width)
    };
    let compressed_line =
        steps(1.0).filter_map(|k| Some((k, beta(zeros_for(bits, k)?).powf(bits))));
    let standard_line = steps(1.0).map(|k| (k, limit_rate(k / bits, k)));
    let plot = Plot::new(
        name,
        Axis::linear("hash functions, k"),
        Axis::log("rate (share of absent keys that pass)"),
    )
    .with(Series::line("compressed", compressed_line).coloured(0))
    .with(Series::marks("compressed, measured", compressed).marked(Mark::Ring).coloured(0))
    .with(Series::line("standard", standard_line).coloured(1))
    .with(Series::marks("standard, measured", standard).marked(Mark::Ring).coloured(1));
    let about = if bits < 10.0 {
        "Rate against hash functions with 8 bits per key sent. The standard filter is best where the compressed one is worst. The curves of the source are lost."
    } else {
        "Rate against hash functions with 16 bits per key sent. The curves of the source are lost."
    };
    Ok(Item::figure(name, about, plot, rows))
}

fn list_form(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for keys in LISTED {
        let trials: Vec<Listed> = results.get(&format!("listed {keys}"))?;
        let mean =
            |of: fn(&Listed) -> f64| Estimate::mean(&trials.iter().map(of).collect::<Vec<f64>>());
        let universe = 92 * keys;
        let bits = (universe as f64).log2();
        let list = mean(|trial| trial.list_bits);
        rows.push(
            Row::new(format!("n = {keys}: sorted list, bits per key"))
                .claims("log2(92 n), much smaller than 92", Claim::AtMost(0.5 * 92.0))
                .predicted(bits)
                .measured(list)
                .slack(1.0, "Positions have whole bits."),
        );
        rows.push(
            Row::new(format!("n = {keys}: probes of an interpolation search"))
                .measured(mean(|trial| trial.probes)),
        );
        let share = -(-1.0 / 92.0_f64).exp_m1() * 92.0;
        let count = (share * keys as f64).round() as u64;
        let planned = EliasFano::planned_bits(universe, count).ok_or("no such set")?;
        rows.push(
            Row::new(format!("n = {keys}: Elias-Fano form, bits per key"))
                .predicted(planned as f64 / keys as f64)
                .measured(mean(|trial| trial.compact_bits))
                .slack(
                    8.0 * 24.0 / keys as f64,
                    "Positions that agree vary by a few, and with them the length of the upper half.",
                ),
        );
    }
    Ok(Item::table(
        "List form",
        "One hash function, 92 positions for each key: a list of positions instead of the array. Elias-Fano is ours, and what the kind \"compressed\" keeps.",
        rows,
    ))
}

fn counting(results: &Results) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    for (hashes, load) in counted() {
        let per_key = f64::from(hashes) / load;
        let sent: Vec<f64> = results.get(&format!("counters {hashes}"))?;
        rows.push(
            Row::new(format!("k = {hashes}: bits per key sent"))
                .predicted(per_key * counter_entropy(load))
                .measured(Estimate::mean(&sent))
                .slack(0.15, "Header, checksums and the tables of the planes: 140 bytes."),
        );
    }
    let saved = counter_entropy(std::f64::consts::LN_2);
    rows.push(
        Row::new("half of the counters zero: bits per counter of 4")
            .claims("much smaller than 4", Claim::AtMost(2.0))
            .predicted(saved)
            .checked(
                Estimate::about(oracle::poisson_entropy(std::f64::consts::LN_2), 1e-9),
                "by summing over all counts",
            ),
    );
    Ok(Item::table(
        "Section V",
        "Counting filters at a rate of 1%, counters entropy-coded. The source says only that compression would gain much.",
        rows,
    ))
}

/// Theorem 1 on filters that were built: how many have a number of zeros that is far from the
/// mean.
fn theorem_one(results: &Results) -> Result<Item, Trouble> {
    let zeros: Vec<u64> = results.get("zeros")?;
    let counts: Vec<f64> = zeros.iter().map(|&zeros| zeros as f64).collect();
    let mean = SMALL.positions as f64 * SMALL.exact_zeros();
    let mut rows = vec![
        Row::new("mean number of zeros, m = 1000, k = 4, n = 50")
            .predicted(mean)
            .measured(Estimate::mean(&counts)),
    ];
    for away in [20.0, 28.0, 40.0] {
        let far = counts.iter().filter(|&zeros| (zeros - mean).abs() > away).count() as u64;
        let bound = zeros_bound(&SMALL, away / SMALL.positions as f64);
        rows.push(
            Row::new(format!("share of filters that are more than {away} zeros away"))
                .claims("below the bound", Claim::AtMost(bound))
                .measured(Estimate::share(far, zeros.len() as u64)),
        );
    }
    let about = "Pr[|X - mp| > epsilon m] < 2 exp(-epsilon² m² / 2nk), for filters so small that it says something.";
    Ok(Item::table("Theorem 1", about, rows))
}
