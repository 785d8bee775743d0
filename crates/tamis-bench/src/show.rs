//! Tables for the terminal.

use comfy_table::{Table, presets};

use crate::lineup::Side;
use crate::row::{OPERATIONS, Row, Timing};

/// A row each, and what a reader must know of them.
pub(crate) fn print_results(rows: &[Row]) {
    let mut table = plain();
    let names = OPERATIONS.iter().map(|operation| operation.name.replace('_', " "));
    table.set_header(
        ["filter", "keys", "bits/key", "rate"].map(String::from).into_iter().chain(names),
    );
    for row in rows {
        let floor = row.entry.side == Side::Floor;
        let times = row.times.iter().map(|timing| timing.map_or(String::new(), time));
        let rate = if floor { String::new() } else { format!("{:.3e}", row.rate.measured) };
        let facts = [
            row.entry.name.to_owned(),
            row.keys.to_string(),
            format!("{:.2}", row.bits_per_key),
            rate,
        ];
        table.add_row(facts.into_iter().chain(times));
    }
    println!(
        "{table}\n\nns of processor time an operation, hashing excluded: median (quartiles)\n"
    );
    for same in rows.chunk_by(|row, next| row.entry.note == next.entry.note) {
        let names: Vec<&str> = same.iter().map(|row| row.entry.name).collect();
        if !same[0].entry.note.is_empty() {
            println!("- {}: {}", names.join(", "), same[0].entry.note);
        }
    }
}

/// For each operation, how many times quicker each of ours is than each of the others.
pub(crate) fn print_ratios(rows: &[Row]) {
    let (ours, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.entry.side == Side::Ours);
    for (at, operation) in OPERATIONS.iter().enumerate() {
        let rivals: Vec<&Row> = others
            .iter()
            .copied()
            .filter(|rival| ours.iter().any(|row| row.ratio(rival, at).is_some()))
            .collect();
        if rivals.is_empty() {
            continue;
        }
        let mut table = plain();
        let title = format!("{}, times quicker than", operation.name.replace('_', " "));
        table.set_header(
            std::iter::once(title).chain(rivals.iter().map(|rival| rival.entry.name.to_owned())),
        );
        for row in ours.iter().filter(|row| row.times[at].is_some()) {
            let cells = rivals.iter().map(|rival| {
                let mark = if row.is_coarser(rival) { "*" } else { "" };
                row.ratio(rival, at)
                    .map_or(String::new(), |ratio| format!("{:.2}{mark}", ratio.median))
            });
            table.add_row(std::iter::once(row.entry.name.to_owned()).chain(cells));
        }
        println!("\n{table}");
    }
    println!(
        "\nMedian over rounds of the same run; * at a higher rate than the rival's; where the other has no batches, against its \
         plain operation."
    );
}

fn time(timing: Timing) -> String {
    format!("{:.1} ({:.1}-{:.1})", timing.median, timing.low, timing.high)
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table
}
