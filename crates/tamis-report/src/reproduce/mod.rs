//! Every table and figure of the sources, and every number in their text that the checked notes
//! recompute: printed, predicted and measured side by side.
//!
//! Only what is printed is typed in. Predictions come from the library's models. Evidence is an
//! experiment with fixed seeds, or a second computation by other means. The verdict follows from
//! the three: see `row`.

mod balanced;
mod built;
mod compare;
mod compressed;
mod dleft;
mod estimate;
mod fast_tables;
mod lab;
mod line;
mod oracle;
mod own_functions;
mod page;
mod partitioned;
mod peers;
mod rank_indexed;
mod row;

pub use estimate::{CONFIDENCE, Estimate};
pub use lab::{Effort, Experiment, Lab, Results, Trouble};
pub use line::{Line, Printed};
pub use row::{Claim, POWER, RARE_POWER, Row, Unit, Verdict};

use crate::plot::Plot;

/// A table, a figure or a passage of a source.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its name in the source.
    pub name: &'static str,
    /// What it shows, in our words, with the unit of its numbers.
    pub about: &'static str,
    /// Its numbers.
    pub rows: Vec<Row>,
    /// Its figure, if it is one.
    pub plot: Option<Plot>,
}

impl Item {
    /// A table or a passage.
    pub fn table(name: &'static str, about: &'static str, rows: Vec<Row>) -> Self {
        Self { name, about, rows, plot: None }
    }

    /// A figure.
    pub fn figure(name: &'static str, about: &'static str, plot: Plot, rows: Vec<Row>) -> Self {
        Self { name, about, rows, plot: Some(plot) }
    }
}

/// One source.
#[derive(Clone, Debug)]
pub struct Document {
    /// `000` to `004`, `all` for the comparison, or `peers` for the simulation.
    pub number: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What came out, in a sentence or two.
    pub finding: &'static str,
    /// Tables, figures and passages, in the order of the source.
    pub items: Vec<Item>,
    /// Errata that have no number.
    pub remarks: &'static [&'static str],
}

/// The whole report.
#[derive(Clone, Debug)]
pub struct Report {
    /// The sources in order, the comparison and the simulation.
    pub documents: Vec<Document>,
    /// How much was run.
    pub effort: Effort,
}

/// A document: its experiments, and the function that makes it from their results.
struct Chapter {
    number: &'static str,
    experiments: fn(Effort) -> Vec<Experiment>,
    document: fn(&Results) -> Result<Document, Trouble>,
}

const CHAPTERS: [Chapter; 7] = [
    Chapter {
        number: "000",
        experiments: rank_indexed::experiments,
        document: rank_indexed::document,
    },
    Chapter { number: "001", experiments: balanced::experiments, document: balanced::document },
    Chapter {
        number: "002",
        experiments: partitioned::experiments,
        document: partitioned::document,
    },
    Chapter { number: "003", experiments: dleft::experiments, document: dleft::document },
    Chapter { number: "004", experiments: compressed::experiments, document: compressed::document },
    Chapter { number: "all", experiments: compare::experiments, document: compare::document },
    Chapter { number: "peers", experiments: peers::experiments, document: peers::document },
];

/// The numbers of all documents, in order.
pub fn documents() -> impl Iterator<Item = &'static str> {
    CHAPTERS.iter().map(|chapter| chapter.number)
}

/// Runs the experiments of these documents, or of all if none is named, and compares. Calls
/// `progress` with the share that is done.
pub fn run(
    effort: Effort,
    lab: &Lab,
    only: &[String],
    progress: &mut dyn FnMut(f64),
) -> Result<Report, Trouble> {
    let wanted =
        |chapter: &&Chapter| only.is_empty() || only.iter().any(|number| number == chapter.number);
    let chapters: Vec<&Chapter> = CHAPTERS.iter().filter(wanted).collect();
    let experiments: Vec<Experiment> =
        chapters.iter().flat_map(|chapter| (chapter.experiments)(effort)).collect();
    let results = lab.run(experiments, progress)?;
    let documents =
        chapters.iter().map(|chapter| (chapter.document)(&results)).collect::<Result<_, _>>()?;
    Ok(Report { documents, effort })
}

impl Report {
    /// Every row.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.documents.iter().flat_map(|document| {
            document.items.iter().flat_map(|item| {
                item.rows.iter().map(|row| Line::new(document.number, item.name, row))
            })
        })
    }

    /// Whether no row differs, and none is too weak to notice a wrong prediction.
    pub fn is_fit_to_be_shown(&self) -> bool {
        self.count(Verdict::Differs) + self.count(Verdict::Weak) == 0
    }

    /// How many rows have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.lines().filter(|line| line.verdict == verdict).count()
    }
}
