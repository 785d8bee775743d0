//! Plots as SVG: lines and marks over linear and logarithmic axes, with values on hover and a
//! legend below the data, so that it never covers them.
//!
//! ```
//! use tamis_report::plot::{Axis, Plot, Series};
//!
//! let rates = [0.1, 0.01, 0.001];
//! let bound = rates.map(|rate: f64| (rate, -rate.log2()));
//! let plot = Plot::new("Bits", Axis::log("rate"), Axis::linear("bits per key"))
//!     .with(Series::line("information bound", bound));
//! assert!(plot.svg().starts_with("<svg"));
//! ```

mod axis;

use std::fmt::Write;

pub use axis::{Axis, Scale};
use axis::{Laid, short};

/// The style of plots, as classes, so that a page has it once. Light and dark.
///
/// The colours are Okabe and Ito's, which people with any colour vision can tell apart; their
/// black turns white in the dark, and grey replaces their yellow, which is hard to see on white.
pub const STYLE: &str = "\
.plot{--c0:#0072B2;--c1:#D55E00;--c2:#009E73;--c3:#CC79A7;--c4:#E69F00;--c5:#56B4E9;--c6:#000;--c7:#888;\
--ink:#222;--faint:#ddd;--ground:#fff}\
@media(prefers-color-scheme:dark){.plot{--c0:#3D9BD6;--c1:#E8743B;--c2:#1FB58C;--c6:#fff;--c7:#999;\
--ink:#ddd;--faint:#3a3f47;--ground:#16191d}}\
.plot{font-family:system-ui,sans-serif;font-size:13px;background:var(--ground)}\
.plot text{fill:var(--ink)}.plot .grid{stroke:var(--faint)}.plot .axis{stroke:var(--ink)}\
.plot .line{fill:none;stroke-width:1.8;stroke-linejoin:round}.plot .bar{stroke-width:1.2}\
.plot .hover{fill:transparent;stroke:none}.plot .hover:hover{fill:var(--ink);fill-opacity:.35}\
.plot .mark{stroke:var(--ground);stroke-width:.8}.plot .open{stroke-width:1.6;fill:var(--ground)}\
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}\
.c6{--c:var(--c6)}.c7{--c:var(--c7)}.plot .line,.plot .bar,.plot .open{stroke:var(--c)}.plot .mark{fill:var(--c)}";

const COLOURS: usize = 8;
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

const WIDTH: f64 = 480.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 466.0;
const HEIGHT: f64 = 260.0;
const LEGEND_LINE: f64 = 20.0;

/// How the points of a series are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Not marked; points still show their values on hover.
    None,
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A ring.
    Ring,
}

/// One value, with the interval around it where there is one.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// The interval of `y`.
    pub interval: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, interval: None }
    }
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The points, in the order in which a line joins them. A point that is not a number breaks
    /// the line.
    pub points: Vec<Point>,
    /// Whether a line joins the points.
    pub joined: bool,
    /// How points are marked.
    pub mark: Mark,
    /// The number of its colour; if `None`, its place among the series of the plot.
    pub colour: Option<usize>,
    /// The number of its dashes, 0 for none. If `None`, there are no dashes; but if `colour` is
    /// `None` too, each round of colours has its own dashes.
    pub dashes: Option<usize>,
}

impl Series {
    /// A line without marks: for models.
    pub fn line<P: Into<Point>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().map(Into::into).collect(),
            joined: true,
            mark: Mark::None,
            colour: None,
            dashes: None,
        }
    }

    /// Marks without a line: for measurements.
    pub fn marks<P: Into<Point>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self { joined: false, mark: Mark::Disc, ..Self::line(name, points) }
    }

    /// A level line across the plot: for bounds and floors.
    pub fn level(name: impl Into<String>, y: f64) -> Self {
        Self::line(name, [(f64::NEG_INFINITY, y), (f64::INFINITY, y)])
    }

    /// The same series with another mark.
    #[must_use]
    pub fn marked(mut self, mark: Mark) -> Self {
        self.mark = mark;
        self
    }

    /// The same series in another colour.
    #[must_use]
    pub fn coloured(mut self, colour: usize) -> Self {
        self.colour = Some(colour);
        self
    }

    /// The same series with other dashes.
    #[must_use]
    pub fn dashed(mut self, dashes: usize) -> Self {
        self.dashes = Some(dashes);
        self
    }
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub across: Axis,
    /// The vertical axis.
    pub up: Axis,
    /// What is drawn, in this order.
    pub series: Vec<Series>,
}

impl Plot {
    /// An empty plot.
    pub fn new(title: impl Into<String>, across: Axis, up: Axis) -> Self {
        Self { title: title.into(), across, up, series: Vec::new() }
    }

    /// The same plot with one more series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// A file of its own, with its title and its style.
    pub fn svg(&self) -> String {
        let style = format!("<style>{STYLE}</style>");
        self.draw(r#" xmlns="http://www.w3.org/2000/svg""#, &style, 44.0)
    }

    /// For a page that says the title and the [`STYLE`] itself.
    pub fn inline(&self) -> String {
        self.draw("", "", 14.0)
    }

    fn draw(&self, namespace: &str, style: &str, top: f64) -> String {
        let bottom = top + HEIGHT;
        let points = || self.series.iter().flat_map(|series| &series.points);
        let heights = points().flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [low, point.y, high]
        });
        let across = self.across.lay(points().map(|point| point.x), LEFT, RIGHT);
        let up = self.up.lay(heights, bottom, top);
        let columns = self.legend_columns();
        let rows = self.series.len().div_ceil(columns);
        let height = bottom + 58.0 + rows as f64 * LEGEND_LINE;

        let title = escaped(&self.title);
        let mut svg = format!(
            "<svg{namespace} class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n{style}"
        );
        if !style.is_empty() {
            put(
                &mut svg,
                format_args!(r#"<rect width="100%" height="100%" style="fill:var(--ground)"/>"#),
            );
            put(&mut svg, format_args!(r#"<text x="{LEFT}" y="26" font-size="15">{title}</text>"#));
        }
        self.draw_axes(&mut svg, &across, &up, (top, bottom));
        for (number, series) in self.series.iter().enumerate() {
            Look::of(series, number).draw(&mut svg, series, &across, &up);
        }
        self.draw_legend(&mut svg, bottom + 58.0, columns);
        svg + "</svg>\n"
    }

    fn draw_axes(&self, svg: &mut String, across: &Laid, up: &Laid, (top, bottom): (f64, f64)) {
        let below = bottom + 18.0;
        for (tick, name) in across.ticks(7) {
            let x = across.near(tick);
            line(svg, "grid", (x, top), (x, bottom));
            put(
                svg,
                format_args!(
                    r#"<text x="{x:.1}" y="{below:.1}" text-anchor="middle">{name}</text>"#
                ),
            );
        }
        for (tick, name) in up.ticks(8) {
            let (x, y) = (LEFT - 7.0, up.near(tick));
            line(svg, "grid", (LEFT, y), (RIGHT, y));
            put(
                svg,
                format_args!(
                    r#"<text x="{x:.1}" y="{:.1}" text-anchor="end">{name}</text>"#,
                    y + 4.5
                ),
            );
        }
        line(svg, "axis", (LEFT, bottom), (RIGHT, bottom));
        line(svg, "axis", (LEFT, top), (LEFT, bottom));
        let (middle, centre) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(top, bottom));
        let (across, up) = (escaped(&self.across.label), escaped(&self.up.label));
        put(
            svg,
            format_args!(
                r#"<text x="{middle}" y="{}" text-anchor="middle">{across}</text>"#,
                bottom + 38.0
            ),
        );
        put(
            svg,
            format_args!(
                r#"<text transform="translate(15 {centre}) rotate(-90)" text-anchor="middle">{up}</text>"#
            ),
        );
    }

    /// As many columns as the longest name leaves room for.
    fn legend_columns(&self) -> usize {
        let longest =
            self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let wide = 44.0 + longest as f64 * 6.9;
        (((WIDTH - 20.0) / wide) as usize).clamp(1, self.series.len().max(1)).min(4)
    }

    fn draw_legend(&self, svg: &mut String, top: f64, columns: usize) {
        let wide = (WIDTH - 20.0) / columns as f64;
        for (number, series) in self.series.iter().enumerate() {
            let x = 20.0 + (number % columns) as f64 * wide;
            let y = top + (number / columns) as f64 * LEGEND_LINE;
            let look = Look::of(series, number);
            if series.joined {
                look.line(svg, &format!("M{x:.1} {y:.1}h22"));
            }
            look.mark(svg, x + 11.0, y, "");
            let name = escaped(&series.name);
            put(svg, format_args!(r#"<text x="{:.1}" y="{:.1}">{name}</text>"#, x + 30.0, y + 4.5));
        }
    }
}

/// How one series is drawn.
struct Look {
    colour: usize,
    dashes: &'static str,
    mark: Mark,
}

impl Look {
    fn of(series: &Series, number: usize) -> Self {
        let round = if series.colour.is_some() { 0 } else { number / COLOURS };
        Self {
            colour: series.colour.unwrap_or(number) % COLOURS,
            dashes: DASHES[series.dashes.unwrap_or(round) % DASHES.len()],
            mark: series.mark,
        }
    }

    fn draw(&self, svg: &mut String, series: &Series, across: &Laid, up: &Laid) {
        if series.joined {
            let mut path = String::new();
            let mut pen = 'M';
            for point in &series.points {
                // An infinite point is where a level line leaves the plot.
                let x = if point.x.is_infinite() {
                    Some(across.near(point.x))
                } else {
                    across.at(point.x)
                };
                if let (Some(x), Some(y)) = (x, up.at(point.y)) {
                    let _ = write!(path, "{pen}{x:.1} {y:.1}");
                    pen = 'L';
                } else {
                    pen = 'M';
                }
            }
            self.line(svg, &path);
        }
        for point in &series.points {
            let (Some(x), Some(y)) = (across.at(point.x), up.at(point.y)) else { continue };
            let mut told = format!("{}: {} at {}", series.name, told(point.y), told(point.x));
            if let Some((low, high)) = point.interval {
                let class = format!("bar c{}", self.colour);
                line(svg, &class, (x, up.near(low)), (x, up.near(high)));
                let _ = write!(told, ", interval {} to {}", self::told(low), self::told(high));
            }
            self.mark(svg, x, y, &escaped(&told));
        }
    }

    fn line(&self, svg: &mut String, path: &str) {
        let dashes = match self.dashes {
            "" => String::new(),
            dashes => format!(r#" stroke-dasharray="{dashes}""#),
        };
        put(svg, format_args!(r#"<path class="line c{}" d="{path}"{dashes}/>"#, self.colour));
    }

    fn mark(&self, svg: &mut String, x: f64, y: f64, told: &str) {
        let colour = self.colour;
        let title = if told.is_empty() { String::new() } else { format!("<title>{told}</title>") };
        match self.mark {
            Mark::None if told.is_empty() => {}
            Mark::None => {
                put(
                    svg,
                    format_args!(
                        r#"<circle class="hover" cx="{x:.1}" cy="{y:.1}" r="6">{title}</circle>"#
                    ),
                );
            }
            Mark::Disc => put(
                svg,
                format_args!(
                    r#"<circle class="mark c{colour}" cx="{x:.1}" cy="{y:.1}" r="4.6">{title}</circle>"#
                ),
            ),
            Mark::Ring => put(
                svg,
                format_args!(
                    r#"<circle class="open c{colour}" cx="{x:.1}" cy="{y:.1}" r="4">{title}</circle>"#
                ),
            ),
            Mark::Square => put(
                svg,
                format_args!(
                    r#"<rect class="mark c{colour}" x="{:.1}" y="{:.1}" width="8.4" height="8.4">{title}</rect>"#,
                    x - 4.2,
                    y - 4.2
                ),
            ),
        }
    }
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    put(
        svg,
        format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ),
    );
}

fn put(svg: &mut String, element: std::fmt::Arguments) {
    // Writing to a string never fails.
    let _ = writeln!(svg, "{element}");
}

/// A value on hover, to four significant digits.
fn told(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return short(value);
    }
    let power = value.abs().log10().floor() as i32;
    let unit = 10_f64.powi(power - 3);
    short((value / unit).round() * unit)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
