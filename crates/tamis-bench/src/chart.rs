//! Bits per key against nanoseconds per miss, as SVG.

use std::fmt::Write;

use crate::lineup::Side;
use crate::row::{MISS, Row, Timing};

/// Okabe and Ito's colours, which people with any colour vision can tell apart, and a grey.
const COLOURS: [&str; 9] = [
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
    "#999999",
];

/// For floors.
const DASHES: [&str; 2] = [r#" stroke-dasharray="9 3""#, r#" stroke-dasharray="2 4""#];

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 640.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 500.0;
const LEGEND: f64 = 665.0;
const LINE: f64 = 22.0;

/// A logarithmic axis.
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// From pixel to pixel, wide enough for all values with a margin.
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (least, most) = values
            .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
        Self { least: least / 1.15, most: most * 1.15, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        self.from + share * (self.to - self.from)
    }

    /// Round numbers inside.
    fn ticks(&self) -> Vec<f64> {
        let decades = (-2..5).map(|power| 10_f64.powi(power));
        let ticks =
            decades.flat_map(|decade| [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(|digit| digit * decade));
        ticks.filter(|&tick| tick >= self.least && tick <= self.most).collect()
    }
}

/// A point, as it is drawn and explained.
struct Point<'a> {
    row: &'a Row,
    miss: Timing,
    /// A colour, or the dashes of a floor.
    look: &'static str,
}

/// The chart. What has no memory or no time for a miss is left out; floors are lines across.
pub(crate) fn svg(title: &str, rows: &[Row]) -> String {
    let on = |side: Side, looks: &'static [&'static str]| {
        let rows = rows.iter().filter(move |row| row.entry.side == side);
        rows.filter_map(|row| Some((row, row.times[MISS]?)))
            .zip(looks.iter().copied().cycle())
            .map(|((row, miss), look)| Point { row, miss, look })
    };
    let points: Vec<Point> = on(Side::Ours, &COLOURS).chain(on(Side::Rival, &COLOURS)).collect();
    let floors: Vec<Point> = on(Side::Floor, &DASHES).collect();
    let heights = points.iter().chain(&floors).flat_map(|point| [point.miss.low, point.miss.high]);
    if points.is_empty() {
        return r#"<svg xmlns="http://www.w3.org/2000/svg"/>"#.to_owned();
    }
    let across = Axis::over(points.iter().map(|point| point.row.bits_per_key), LEFT, RIGHT);
    let up = Axis::over(heights, BOTTOM, TOP);

    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" fill="#222">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
<text x="{LEFT}" y="28" font-size="16">{title}</text>
"##
    );
    axes(&mut svg, &across, &up);
    for floor in &floors {
        let y = up.at(floor.miss.median);
        line(&mut svg, (LEFT, y), (RIGHT, y), "#222", floor.look);
    }
    for point in &points {
        let x = across.at(point.row.bits_per_key);
        line(&mut svg, (x, up.at(point.miss.low)), (x, up.at(point.miss.high)), "#222", "");
        mark(&mut svg, point, x, up.at(point.miss.median));
    }
    legend(&mut svg, &points, &floors);
    svg + "</svg>\n"
}

fn axes(svg: &mut String, across: &Axis, up: &Axis) {
    for tick in across.ticks() {
        let x = across.at(tick);
        line(svg, (x, TOP), (x, BOTTOM), "#ddd", "");
        put(
            svg,
            format_args!(
                r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{tick}</text>"#,
                BOTTOM + 20.0
            ),
        );
    }
    for tick in up.ticks() {
        let y = up.at(tick);
        line(svg, (LEFT, y), (RIGHT, y), "#ddd", "");
        put(
            svg,
            format_args!(
                r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{tick}</text>"#,
                LEFT - 8.0,
                y + 4.0
            ),
        );
    }
    line(svg, (LEFT, BOTTOM), (RIGHT, BOTTOM), "#222", "");
    line(svg, (LEFT, TOP), (LEFT, BOTTOM), "#222", "");
    let (middle, centre) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM));
    put(
        svg,
        format_args!(
            r#"<text x="{middle}" y="{}" text-anchor="middle">memory held, bits per key (log)</text>"#,
            BOTTOM + 44.0
        ),
    );
    put(
        svg,
        format_args!(
            r#"<text transform="translate(20 {centre}) rotate(-90)" text-anchor="middle">time of a miss, ns (log)</text>"#
        ),
    );
}

/// Outside the plot, so that it covers nothing.
fn legend(svg: &mut String, points: &[Point], floors: &[Point]) {
    let mut y = TOP + 6.0;
    for point in points {
        mark(svg, point, LEGEND, y);
        let (name, rate) = (escaped(point.row.entry.name), percent(point.row.rate.measured));
        put(
            svg,
            format_args!(r#"<text x="{}" y="{}">{name} ({rate})</text>"#, LEGEND + 14.0, y + 4.0),
        );
        y += LINE;
    }
    for floor in floors {
        line(svg, (LEGEND - 8.0, y), (LEGEND + 8.0, y), "#222", floor.look);
        let name = escaped(floor.row.entry.name);
        put(
            svg,
            format_args!(r#"<text x="{}" y="{}">floor: {name}</text>"#, LEGEND + 14.0, y + 4.0),
        );
        y += LINE;
    }
    put(
        svg,
        format_args!(
            r#"<text x="{}" y="{}" font-size="11">round: ours; square: rivals; bars: quartiles</text>"#,
            LEGEND - 8.0,
            y + 6.0
        ),
    );
}

/// Ours are round, rivals square.
fn mark(svg: &mut String, point: &Point, x: f64, y: f64) {
    let style = format!(r##"fill="{}" stroke="#222""##, point.look);
    if point.row.entry.side == Side::Ours {
        put(svg, format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="6" {style}/>"#));
    } else {
        put(
            svg,
            format_args!(
                r#"<rect x="{:.1}" y="{:.1}" width="11" height="11" {style}/>"#,
                x - 5.5,
                y - 5.5
            ),
        );
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, more: &str) {
    put(
        svg,
        format_args!(
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{colour}"{more}/>"#,
            from.0, from.1, to.0, to.1
        ),
    );
}

fn put(svg: &mut String, element: std::fmt::Arguments) {
    // Writing to a string never fails.
    let _ = writeln!(svg, "{element}");
}

/// With two digits that count.
fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    let places = if percent > 0.0 { (1.0 - percent.log10().floor()).max(0.0) as usize } else { 0 };
    format!("{percent:.places$}%")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
