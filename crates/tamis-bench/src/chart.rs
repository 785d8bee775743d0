//! Bits per key against nanoseconds per miss, as SVG.

use tamis_report::plot::{Axis, Mark, Plot, Point, Series};

use crate::lineup::Side;
use crate::row::{MISS, Row};

/// The chart. What has no memory or no time for a miss is left out. Ours are round, rivals square,
/// floors are lines across; bars are quartiles.
pub(crate) fn svg(title: &str, rows: &[Row]) -> String {
    let across = Axis::log("memory held, bits per key");
    let plot = Plot::new(title, across, Axis::log("time of a miss, ns (bars: quartiles)"));
    let on = |side: Side| rows.iter().filter(move |row| row.entry.side == side).enumerate();
    let series = on(Side::Ours).chain(on(Side::Rival)).chain(on(Side::Floor));
    series.filter_map(|(number, row)| series_of(row, number)).fold(plot, Plot::with).svg()
}

fn series_of(row: &Row, number: usize) -> Option<Series> {
    let miss = row.times[MISS]?;
    let point =
        Point { x: row.bits_per_key, y: miss.median, interval: Some((miss.low, miss.high)) };
    let name = format!("{} ({})", row.entry.name, percent(row.rate.measured));
    Some(match row.entry.side {
        Side::Ours => Series::marks(name, [point]).coloured(number),
        Side::Rival => Series::marks(name, [point]).coloured(number).marked(Mark::Square),
        Side::Floor => {
            let name = format!("floor: {}", row.entry.name);
            Series::level(name, miss.median).coloured(7).dashed(number + 1)
        }
    })
}

/// With two digits that count.
fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    let places = if percent > 0.0 { (1.0 - percent.log10().floor()).max(0.0) as usize } else { 0 };
    format!("{percent:.places$}%")
}
