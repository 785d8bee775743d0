//! Tables for the terminal.

use comfy_table::{Table, presets};
use tamis_bench::record::{Operation, Row, Side, Timing};

/// A row each, and what a reader must know of them.
pub(crate) fn print_results(rows: &[Row]) {
    let mut table = plain();
    let names = Operation::ALL.map(|operation| operation.name().to_owned());
    table.set_header(
        ["filter", "keys", "bits/key", "rate"].map(String::from).into_iter().chain(names),
    );
    for row in rows {
        let times = Operation::ALL.map(|operation| row.ns.get(&operation).map(time));
        let facts = [
            row.name.clone(),
            row.keys.to_string(),
            format!("{:.2}", row.bits_per_key),
            row.rate.map_or(String::new(), |rate| format!("{:.3e}", rate.measured)),
        ];
        table.add_row(facts.into_iter().chain(times.map(Option::unwrap_or_default)));
    }
    println!(
        "{table}\n\nns of processor time an operation: median (quartiles); text: keys of 20 letters, hashed; all others: digests\n"
    );
    for same in rows.chunk_by(|row, next| row.note == next.note) {
        let names: Vec<&str> = same.iter().map(|row| row.name.as_str()).collect();
        if !same[0].note.is_empty() {
            println!("- {}: {}", names.join("; "), same[0].note);
        }
    }
}

/// What removes, before and after its keys were replaced.
pub(crate) fn print_churn(rows: &[Row]) {
    let mut table = plain();
    table.set_header([
        "after churn",
        "steps",
        "bits/key",
        "before",
        "rate",
        "before",
        "a step, ns",
        "over the sum of its operations",
    ]);
    for row in rows {
        let Some(churned) = &row.churned else { continue };
        table.add_row([
            row.name.clone(),
            churned.steps.to_string(),
            format!("{:.2}", churned.bits_per_key),
            format!("{:.2}", row.bits_per_key),
            format!("{:.3e}", churned.rate.measured),
            format!("{:.3e}", row.measured_rate()),
            row.ns.get(&Operation::Churn).map_or(String::new(), time),
            format!("{:.2}", churned.ratio.median),
        ]);
    }
    println!("\n{table}");
}

/// For each operation, how many times quicker each of ours is than each of the others.
pub(crate) fn print_ratios(rows: &[Row]) {
    let (ours, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.side == Side::Ours);
    for operation in Operation::ALL {
        let ratio = |row: &Row, rival: &Row| {
            row.ratios.get(&rival.name).and_then(|ratios| ratios.get(&operation)).copied()
        };
        let is_compared = |rival: &&Row| ours.iter().any(|row| ratio(row, rival).is_some());
        let rivals: Vec<&Row> = others.iter().copied().filter(is_compared).collect();
        if rivals.is_empty() {
            continue;
        }
        let mut table = plain();
        let title = format!("{}, times quicker than", operation.name());
        table.set_header(
            std::iter::once(title).chain(rivals.iter().map(|rival| rival.name.clone())),
        );
        for row in ours.iter().filter(|row| row.ns.contains_key(&operation)) {
            let cells = rivals.iter().map(|rival| {
                let mark = if is_coarser(row, rival) { "*" } else { "" };
                ratio(row, rival)
                    .map_or(String::new(), |ratio| format!("{:.2}{mark}", ratio.median))
            });
            table.add_row(std::iter::once(row.name.clone()).chain(cells));
        }
        println!("\n{table}");
    }
    println!(
        "\nMedian over rounds of the same run; * at a higher rate than the rival's; where the other has no batches, against its \
         plain operation."
    );
}

/// Whether the rate of ours is above a rival's, beyond chance: then being quicker proves little.
fn is_coarser(ours: &Row, rival: &Row) -> bool {
    let rates = ours.rate.zip(rival.rate);
    rates.is_some_and(|(ours, rival)| ours.low > rival.high)
}

fn time(timing: &Timing) -> String {
    format!("{:.1} ({:.1}-{:.1})", timing.median, timing.low, timing.high)
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table
}
