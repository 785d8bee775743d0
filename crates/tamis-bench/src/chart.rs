//! Bits per key against nanoseconds, as SVG, of filters with equal rates. Ours are round, rivals
//! square.

use tamis_report::plot::{Axis, Mark, Plot, Point, Series};

use crate::readme::{Speed, label};
use crate::record::{Operation, Record, Row, Side};

/// The number of the grey, which no filter has.
const GREY: usize = 7;

/// The time of a question, half of them hits. A line leads to a ring: the same in batches.
pub fn questions(record: &Record) -> String {
    let mean = |row: &Row, hit, miss| Some(f64::midpoint(row.median(hit)?, row.median(miss)?));
    let rows = Speed::of(record).equal;
    let mut marks = Vec::new();
    let mut lines = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let at = |ns: f64| Point { x: row.bits_per_key, y: ns, interval: None };
        let Some(one_by_one) = mean(row, Operation::Hit, Operation::Miss).map(at) else { continue };
        marks.push(series(&rows, number, one_by_one));
        if let Some(batches) = mean(row, Operation::BatchHit, Operation::BatchMiss).map(at) {
            // What is not a number ends a line.
            lines.extend([one_by_one, batches, at(f64::NAN)]);
        }
    }
    // Below the marks, which cover the rings at the upper ends.
    let lines = Series::line("the same in batches", lines).marked(Mark::Ring).coloured(GREY);
    let plot = plot("A question, half of them hits", "a question, ns", &rows).with(lines);
    marks.into_iter().fold(plot, Plot::with).svg()
}

/// The time of a step of churn, of filters that remove.
pub fn churn(record: &Record) -> String {
    let equal = Speed::of(record).equal;
    let removes = |row: &Row| row.ns.contains_key(&Operation::Churn);
    let rows: Vec<&Row> = equal.iter().copied().filter(|row| removes(row)).collect();
    let mut plot = plot("A step of churn", "remove, insert, hit and miss, ns", &rows);
    for (number, row) in equal.iter().enumerate() {
        if let Some(timing) = row.ns.get(&Operation::Churn) {
            let interval = Some((timing.low, timing.high));
            let point = Point { x: row.bits_per_key, y: timing.median, interval };
            plot = plot.with(series(&equal, number, point));
        }
    }
    plot.svg()
}

fn plot(what: &str, up: &str, rows: &[&Row]) -> Plot {
    let rates = rows.iter().map(|row| row.measured_rate() * 100.0);
    let least = rates.clone().fold(f64::MAX, f64::min);
    let most = rates.fold(0.0, f64::max);
    let title = format!("{what}, at {least:.2}% to {most:.2}%");
    Plot::new(title, Axis::linear("memory held, bits per key"), Axis::log(up))
}

/// Filter `number` of those with equal rates, which looks alike in all charts. Colours of ours
/// count up, those of rivals down, so that few meet.
fn series(rows: &[&Row], number: usize, point: Point) -> Series {
    let row = rows[number];
    let before = rows[..number].iter().filter(|other| other.side == row.side).count() % GREY;
    let (colour, mark) = match row.side {
        Side::Ours => (before, Mark::Disc),
        Side::Rival | Side::Floor => (GREY - 1 - before, Mark::Square),
    };
    Series::marks(label(row).replace('`', ""), [point]).coloured(colour).marked(mark)
}
