//! Document 004: compressed Bloom filters.

mod trials;

use tamis::bloom::BloomParams;
use tamis::compressed::elias_fano::EliasFano;
use tamis::compressed::model::{beta, counter_entropy, gamma, limit_rate};

use crate::plot::{Axis, Mark, Plot, Point, Series};
use crate::reproduce::row::deviation;
use crate::reproduce::{Document, Estimate, Item, Results, Row, Trouble};

pub(super) use trials::experiments;
use trials::{
    Array, Bytes, FIGURES, LISTED, Listed, N, Simulated, Table, array, array_for, is_plain,
    simulated, tables, zeros_for,
};

pub(super) fn document(results: &Results) -> Result<Document, Trouble> {
    let mut items = vec![limits()];
    for table in tables() {
        items.push(table_item(results, &table)?);
    }
    items.push(sizes(results)?);
    for (name, bits, most) in FIGURES {
        items.push(figure(results, name, bits, most)?);
    }
    items.push(list_form(results)?);
    items.push(counting());
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

fn limits() -> Item {
    let rows = vec![
        Row::new("beta of an optimal standard filter").printed("0.6185").predicted(beta(0.5)),
        Row::new("gamma at p = 1/2").predicted(gamma(0.5)),
        Row::new("8 bits per key, k = 5: rate")
            .printed("0.0217")
            .predicted(array(80, 5).shape().limit_rate()),
        Row::new("16 bits per key, k = 6: rate")
            .printed("0.000935")
            .predicted(array(160, 6).shape().limit_rate()),
    ];
    Item::table("Sections II and III", "Numbers in the text.", rows)
}

fn measured_rate(results: &Results, array: Array) -> Result<Estimate, Trouble> {
    let trials: Vec<(u64, u64)> = results.get(&format!("rate {}", array.name()))?;
    let passed = trials.iter().map(|trial| trial.0).sum();
    let queries = trials.iter().map(|trial| trial.1).sum();
    let params = BloomParams::new(array.positions(), array.hashes)?;
    let spread = tamis::bloom::model::predict_bloom(&params, N).rate_spread;
    Ok(Estimate::rate(passed, queries, spread / (trials.len() as f64).sqrt()))
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
            // The coder's end and the count of ones take up to 4 bytes.
            let overhead = 4.0 * 8.0 / N as f64 / sent.entropy_per_key();
            rows.push(
                row.predicted(sent.entropy_per_key())
                    .measured(measured)
                    .model_within(overhead)
                    .erratum_if(column.wrong.bits),
            );
            if let Some(per_change) = column.per_change {
                let per_key = 100.0 / table.percent as f64;
                rows.push(
                    Row::new(format!("{name}: bits per replaced key sent"))
                        .printed(per_change)
                        .predicted(per_key * sent.entropy_per_key())
                        .measured(measured.map(|bits| bits * per_key))
                        .model_within(overhead)
                        .erratum_if(column.wrong.per_change),
                );
            }
        }
        rows.push(
            Row::new(format!("{name}: rate"))
                .printed(column.rate)
                .predicted(column.array.shape().limit_rate())
                .measured(measured_rate(results, column.array)?)
                // The printed form is a limit; the exact rate of 10,000 keys is up to this much higher.
                .model_within(0.002)
                .erratum_if(column.wrong.rate),
        );
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
            rows.push(
                Row::new(format!("{name}: bytes by the theory"))
                    .printed(printed)
                    .predicted(shape.entropy_bits(message) / 8.0)
                    .erratum_if(wrong),
            );
        }
        // Whole bytes are 7/16 of a byte longer on average.
        let ideal = shape.coded_bits(message) / 8.0 + 0.4375;
        let row = Row::new(format!("{name}: mean bytes, adaptive coder"));
        let row = match mean {
            Some(mean) => row
                .printed(mean)
                .within(18.0)
                .note("The paper's program costs a constant 12 to 17 bytes more than an exact coder, overhead included."),
            None => row,
        };
        rows.push(
            row.predicted(ideal).measured(Estimate::mean(&lengths)).model_within(1.5 / ideal),
        );
        if let Some(spread) = spread {
            let measured = deviation(&lengths);
            // Of a sample of normal values.
            let error = 4.4 * measured / (2.0 * lengths.len() as f64).sqrt();
            let (low, high) = (measured - error, measured + error);
            rows.push(
                Row::new(format!("{name}: standard deviation of the bytes"))
                    .sampled(spread)
                    .predicted(shape.deviation_bits(message) / 8.0)
                    .measured(Estimate { value: measured, low, high }),
            );
        }
        let largest = lengths.iter().copied().fold(0.0, f64::max);
        let bound: f64 = most.parse()?;
        let row = Row::new(format!("{name}: largest of all messages, bytes"));
        let fits = largest <= bound && room.is_none_or(|room| largest <= room as f64);
        rows.push(row.claims(most, fits).measured(Estimate::exact(largest)));
    }
    Ok(Item::table(
        "Simulations in the text",
        "Bytes of messages for 10,000 keys. Largest messages are compared as bounds: they grow with the number of trials.",
        rows,
    ))
}

fn figure(results: &Results, name: &'static str, bits: f64, most: u32) -> Result<Item, Trouble> {
    let mut rows = Vec::new();
    let (mut compressed, mut standard) = (Vec::new(), Vec::new());
    for hashes in 1..=most {
        let array = array_for(bits, hashes).ok_or("no such array")?;
        let zeros = zeros_for(bits, hashes.into()).ok_or("no such array")?;
        let measured = measured_rate(results, array)?;
        rows.push(
            Row::new(format!("k = {hashes}: compressed"))
                .predicted(beta(zeros).powf(bits))
                .measured(measured)
                // The array is rounded down to tenths of a position for each key.
                .model_within(0.02),
        );
        let interval = Some((measured.low, measured.high));
        compressed.push(Point { x: hashes.into(), y: measured.value, interval });
        let plain = self::array(bits as u64 * 10, hashes);
        let measured = measured_rate(results, plain)?;
        rows.push(
            Row::new(format!("k = {hashes}: standard"))
                .predicted(plain.shape().limit_rate())
                .measured(measured)
                .model_within(0.004),
        );
        let interval = Some((measured.low, measured.high));
        standard.push(Point { x: hashes.into(), y: measured.value, interval });
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
        Axis::log("rate (share of strangers that pass)"),
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
                .claims("log2(92 n), much smaller than 92", list.value < 0.5 * 92.0)
                .predicted(bits)
                .measured(list)
                // Positions have whole bits.
                .model_within(1.0 / bits),
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
                .model_within(0.01),
        );
    }
    Ok(Item::table(
        "List form",
        "One hash function, 92 positions for each key: a list of positions instead of the array. Elias-Fano is ours, and what the kind \"compressed\" keeps.",
        rows,
    ))
}

fn counting() -> Item {
    let mut rows = Vec::new();
    let rate: f64 = 0.01;
    for hashes in [1, 2, 4, 6, 7] {
        let share = rate.powf(1.0 / f64::from(hashes));
        let load = -(-share).ln_1p();
        let per_key = f64::from(hashes) / load;
        let row = Row::new(format!("k = {hashes}: bits per key sent"));
        rows.push(row.predicted(per_key * counter_entropy(load)));
    }
    let ideal = -rate.log2() / std::f64::consts::LN_2;
    rows.push(
        Row::new("half of the counters zero: bits per key sent")
            .predicted(ideal * counter_entropy(std::f64::consts::LN_2)),
    );
    let saved = counter_entropy(std::f64::consts::LN_2);
    rows.push(
        Row::new("half of the counters zero: bits per counter of 4")
            .claims("much smaller than 4", saved < 2.0)
            .predicted(saved),
    );
    Item::table(
        "Section V",
        "Counting filters at a rate of 1%, counters entropy-coded. The source says only that compression would gain much.",
        rows,
    )
}
