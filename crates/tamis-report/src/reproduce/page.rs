//! The report for people: a page in one file, the same as Markdown, and the figures.

use std::fs;
use std::path::Path;

use askama::Template;

use super::{CONFIDENCE, Document, Effort, Item, Report, Row, Trouble, Verdict};
use crate::plot::STYLE;

/// Tables with more rows are folded away, and so are tables of figures.
const LONGEST_OPEN: usize = 60;
/// A figure with more lines takes the whole width.
const MOST_LINES: usize = 12;

#[derive(Template)]
#[template(path = "index.html")]
struct Page {
    plot_style: &'static str,
    report: ReportView,
}

#[derive(Template)]
#[template(path = "report.md", escape = "none")]
struct Markdown {
    report: ReportView,
}

struct ReportView {
    documents: Vec<DocumentView>,
    total: usize,
    figures: usize,
    unfit: usize,
    verdicts: &'static [Verdict],
    effort: &'static str,
    confidence: String,
    command: &'static str,
}

struct DocumentView {
    number: &'static str,
    /// Whether it is a source, and not the comparison or the simulation.
    is_source: bool,
    title: &'static str,
    source: &'static str,
    finding: &'static str,
    /// Rows by verdict, in the order of [`Verdict::ALL`].
    counts: Vec<(&'static str, usize)>,
    items: Vec<ItemView>,
    remarks: &'static [&'static str],
}

struct ItemView {
    id: String,
    name: &'static str,
    about: &'static str,
    is_figure: bool,
    /// Whether it takes the whole width, as tables and figures with many lines do.
    wide: bool,
    svg: String,
    /// The name of the figure's file.
    file: String,
    folded: bool,
    tally: String,
    rows: Vec<RowView>,
}

struct RowView {
    name: String,
    printed: &'static str,
    predicted: String,
    evidence: String,
    range: String,
    /// The smallest error that would be noticed.
    detects: String,
    verdict: &'static str,
    reason: String,
}

impl Report {
    /// Writes `index.html`, `REPORT.md` and the figures into a folder.
    pub fn write(&self, folder: &Path) -> Result<(), Trouble> {
        fs::create_dir_all(folder)?;
        for document in &self.documents {
            for item in &document.items {
                if let Some(plot) = &item.plot {
                    fs::write(folder.join(file_name(document, item)), plot.svg())?;
                }
            }
        }
        fs::write(folder.join("index.html"), self.html()?)?;
        fs::write(folder.join("REPORT.md"), self.markdown()?)?;
        Ok(())
    }

    /// The page.
    pub fn html(&self) -> Result<String, Trouble> {
        Ok(Page { plot_style: STYLE, report: self.view() }.render()?)
    }

    /// The same as Markdown.
    pub fn markdown(&self) -> Result<String, Trouble> {
        Ok(Markdown { report: self.view() }.render()?)
    }

    /// How many figures there are.
    pub fn figures(&self) -> usize {
        let items = self.documents.iter().flat_map(|document| &document.items);
        items.filter(|item| item.plot.is_some()).count()
    }

    fn view(&self) -> ReportView {
        ReportView {
            documents: self.documents.iter().map(DocumentView::new).collect(),
            total: self.lines().count(),
            figures: self.figures(),
            unfit: self.count(Verdict::Differs) + self.count(Verdict::Weak),
            verdicts: &Verdict::ALL,
            effort: self.effort_in_words(),
            confidence: format!("{:.3}%", 100.0 * CONFIDENCE),
            command: self.command(),
        }
    }

    fn effort_in_words(&self) -> &'static str {
        match self.effort {
            Effort::Least => "hardly any trials, as in tests",
            Effort::Quick => "a quick run, with fewer trials and fewer rates than a full one",
            Effort::Full => "a full run",
        }
    }

    fn command(&self) -> &'static str {
        if self.effort == Effort::Full { "tamis reproduce" } else { "tamis reproduce --quick" }
    }
}

/// The name of an item in the page and among files, such as `000-figure-5`.
fn id(document: &Document, item: &Item) -> String {
    let name = item.name.to_lowercase();
    let name: String = name.chars().filter(|&c| c.is_alphanumeric() || c == ' ').collect();
    format!("{}-{}", document.number, name.split_whitespace().collect::<Vec<_>>().join("-"))
}

fn file_name(document: &Document, item: &Item) -> String {
    format!("{}.svg", id(document, item))
}

fn count(rows: &[Row], verdict: Verdict) -> usize {
    rows.iter().filter(|row| row.verdict() == verdict).count()
}

impl DocumentView {
    fn new(document: &Document) -> Self {
        let total = |verdict| document.items.iter().map(|item| count(&item.rows, verdict)).sum();
        Self {
            number: document.number,
            is_source: !["all", "peers"].contains(&document.number),
            title: document.title,
            source: document.source,
            finding: document.finding,
            counts: Verdict::ALL.map(|verdict| (verdict.name(), total(verdict))).to_vec(),
            remarks: document.remarks,
            items: document.items.iter().map(|item| ItemView::new(document, item)).collect(),
        }
    }
}

impl ItemView {
    fn new(document: &Document, item: &Item) -> Self {
        let tally =
            Verdict::ALL.into_iter().filter_map(|verdict| match count(&item.rows, verdict) {
                0 => None,
                rows => Some(format!("{rows} {}", verdict.name())),
            });
        Self {
            id: id(document, item),
            name: item.name,
            about: item.about,
            is_figure: item.plot.is_some(),
            wide: item.plot.as_ref().is_none_or(|plot| plot.series.len() > MOST_LINES),
            svg: item.plot.as_ref().map(crate::plot::Plot::inline).unwrap_or_default(),
            file: file_name(document, item),
            folded: item.plot.is_some() || item.rows.len() > LONGEST_OPEN,
            tally: tally.collect::<Vec<_>>().join(", "),
            rows: item.rows.iter().map(RowView::new).collect(),
        }
    }
}

impl RowView {
    fn new(row: &Row) -> Self {
        let estimate = row.evidence();
        let range = estimate.filter(|estimate| estimate.low < estimate.high);
        let computed = row.computation().map(|how| format!("Checked {how}."));
        let reasons = [row.reason.map(str::to_owned), row.slack_reason(), computed];
        Self {
            name: row.name.clone(),
            printed: row.printed.unwrap_or_default(),
            predicted: row.predicted.map_or(String::new(), number),
            evidence: estimate.map_or(String::new(), |estimate| number(estimate.value)),
            range: range.map_or(String::new(), |estimate| {
                format!("{} to {}", number(estimate.low), number(estimate.high))
            }),
            detects: row.detects().filter(|_| range.is_some()).map_or(String::new(), number),
            verdict: row.verdict().name(),
            reason: reasons.into_iter().flatten().collect::<Vec<String>>().join(" "),
        }
    }
}

/// A number with five significant digits.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let power = value.abs().log10().floor() as i32;
    if (-3..7).contains(&power) {
        let places = (4 - power).clamp(0, 7) as usize;
        let text = format!("{value:.places$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    } else {
        format!("{value:.3e}")
    }
}
