//! `tamis reproduce`: every table and figure of the sources, recomputed and measured.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use tamis::Hasher;
use tamis_report::reproduce::{self, Effort, Lab, Report, Verdict};

use super::Outcome;
use crate::progress::Progress;
use crate::show;

/// Recompute every table and figure of the papers, and compare with what they print
///
/// Writes a page (index.html), its figures (SVG) and REPORT.md into a folder. Finished experiments
/// are kept there, so that a run that was stopped continues where it was.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tamis reproduce --quick
  tamis reproduce --quick --json --only 004 | jq 'select(.verdict == \"erratum\")'
  tamis reproduce -o full-run        (well under an hour and a half; can be stopped and started again)")]
pub(crate) struct Reproduce {
    /// Fewer trials: a minute on two processors
    #[arg(long)]
    quick: bool,

    /// Print rows as JSON, one per line; without -o no folder is written
    #[arg(long)]
    json: bool,

    /// Folder of the report
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Only these documents
    #[arg(long, value_name = "DOCUMENT", value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(reproduce::documents()))]
    only: Vec<String>,
}

impl Reproduce {
    pub(crate) fn run(self) -> Result<Outcome> {
        let folder = match (self.output, self.json) {
            (None, true) => None,
            (output, _) => Some(output.unwrap_or_else(|| PathBuf::from("reproduction"))),
        };
        let effort = if self.quick { Effort::Quick } else { Effort::Full };
        let kept = folder.as_ref().map(|folder| folder.join("experiments"));
        let lab = Lab { folder: kept, program: program()? };
        let mut progress = Progress::share("reproducing");
        let report = reproduce::run(effort, &lab, &self.only, &mut |share| progress.reach(share))
            .map_err(|error| anyhow!(error))?;
        drop(progress);
        if let Some(folder) = &folder {
            let write = report.write(folder).map_err(|error| anyhow!(error));
            write.with_context(|| format!("cannot write into {}", folder.display()))?;
        }
        if self.json {
            print_lines(&report)?;
        } else {
            print_summary(&report)?;
        }
        if let (Some(folder), false) = (&folder, self.json) {
            show::print(&folder.join("index.html").display())?;
        }
        Ok(if report.is_fit_to_be_shown() { Outcome::Fine } else { Outcome::Wrong })
    }
}

fn print_lines(report: &Report) -> Result<()> {
    let mut out = show::output();
    for line in report.lines() {
        serde_json::to_writer(&mut out, &line)?;
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

fn print_summary(report: &Report) -> Result<()> {
    let mut table = show::table();
    let names = Verdict::ALL.map(Verdict::name);
    table.set_header(["document"].into_iter().chain(names));
    for document in &report.documents {
        let lines = || report.lines().filter(|line| line.document == document.number);
        let count = |verdict| lines().filter(|line| line.verdict == verdict).count().to_string();
        let title = format!("{} {}", document.number, document.title);
        table.add_row([title].into_iter().chain(Verdict::ALL.map(count)));
    }
    show::print_table(table, 1..1 + names.len())?;
    let unfit = [Verdict::Differs, Verdict::Weak];
    for line in report.lines().filter(|line| unfit.contains(&line.verdict)) {
        let verdict = line.verdict.name();
        show::note(&format_args!("{verdict}: {}, {}, {}", line.document, line.item, line.row));
    }
    Ok(())
}

/// A number that changes with the program: another version may compute other results.
fn program() -> Result<u64> {
    let path = std::env::current_exe().context("cannot find this program's file")?;
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Hasher::default().digest(&bytes[..]).0)
}
