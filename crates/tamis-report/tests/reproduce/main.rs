//! The report, with hardly any trials: every item is there, no row differs, nothing is confirmed without a comparison, errata are those
//! of the notes, and a run that was stopped goes on.

mod page;
mod verdicts;

use std::collections::BTreeMap;
use std::fs;
use std::sync::OnceLock;

use tamis_report::reproduce::{Effort, Lab, Printed, Report, Verdict, run};

// Rows of memory are measured.
#[global_allocator]
static ALLOCATOR: tamis_report::memory::CountingAllocator = tamis_report::memory::CountingAllocator;

fn lab() -> Lab {
    Lab { folder: None, program: 0 }
}

fn report() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| run(Effort::Least, &lab(), &[], &mut |_| {}).unwrap())
}

fn json(report: &Report) -> String {
    report.lines().map(|line| serde_json::to_string(&line).unwrap() + "\n").collect()
}

#[test]
fn every_item_is_there() {
    let wanted: [(&str, &[&str], &[&str]); 7] = [
        (
            "000",
            &["Table I", "Table II", "Table III", "Table IV", "Table V", "Section III-C"],
            &["Figure 5", "Figure 6"],
        ),
        (
            "001",
            &["Abstract and text", "Appendix C", "In filters"],
            &["Figure 2", "Figure 3a", "Figure 3b", "Figure 4", "Figure 5", "Access budget"],
        ),
        (
            "002",
            &[
                "Stored choices",
                "The report's functions",
                "Fast tables: claims",
                "Fast tables: nodes read",
            ],
            &["Figure 3", "Figure 4", "Figure 5", "Figure 6"],
        ),
        ("003", &["Table 1", "Section 4", "Section 5.2"], &[]),
        (
            "004",
            &[
                "Table I",
                "Table II",
                "Table III",
                "Table IV",
                "Table V",
                "Table VI",
                "Table VII",
                "Simulations in the text",
                "List form",
                "Theorem 1",
            ],
            &["Figure 1", "Figure 2"],
        ),
        ("all", &["Rates of all kinds"], &["Memory against rate", "Wire size against rate"]),
        (
            "peers",
            &["Saving of compressed filters", "Bytes of a message"],
            &["Bytes an hour against the interval"],
        ),
    ];
    let report = report();
    assert_eq!(report.documents.len(), wanted.len());
    for (document, (number, tables, figures)) in report.documents.iter().zip(wanted) {
        assert_eq!(document.number, number);
        for name in tables.iter().chain(figures) {
            let item = document.items.iter().find(|item| item.name == *name);
            let item = item.unwrap_or_else(|| panic!("{number} has no {name}"));
            assert!(!item.rows.is_empty());
            assert_eq!(item.plot.is_some(), figures.contains(name), "{number} {name}");
        }
        for item in document.items.iter().filter_map(|item| item.plot.as_ref()) {
            assert!(!item.series.is_empty());
            for series in &item.series {
                assert!(!series.points.is_empty(), "{number} {}: {}", item.title, series.name);
            }
        }
    }
    // The tables as they are printed: three rates and five columns, nine loads and two columns, and so on.
    let rows = |document: &str, item: &str| {
        let lines = report.lines().filter(|line| (line.document, line.item) == (document, item));
        lines.filter(|line| line.printed.is_some()).count()
    };
    assert_eq!(rows("000", "Table I"), 3);
    assert_eq!(rows("000", "Table III"), 15);
    assert_eq!(rows("000", "Table IV"), 16);
    assert_eq!(rows("000", "Table V"), 16);
    // And that the fourth subtable is never full.
    assert_eq!(rows("003", "Table 1"), 18 + 1);
    assert_eq!(["I", "II", "IV", "V"].map(|table| rows("004", &format!("Table {table}"))), [6; 4]);
    assert_eq!(rows("004", "Table III"), 4);
    assert_eq!(["VI", "VII"].map(|table| rows("004", &format!("Table {table}"))), [12; 2]);
}

#[test]
fn nothing_is_confirmed_without_a_comparison() {
    for line in report().lines() {
        assert_ne!(line.verdict, Verdict::Differs, "{line:?}");
        assert!(line.predicted.is_none_or(f64::is_finite), "{line:?}");
        let (evidence, is_printed) = (line.measured.or(line.checked), line.printed.is_some());
        assert!(line.predicted.is_some() || evidence.is_some(), "{line:?}");
        assert!(evidence.is_none_or(f64::is_finite), "{line:?}");
        assert_eq!(evidence.is_some(), line.low.is_some() && line.high.is_some(), "{line:?}");
        assert_eq!(line.detects.is_some(), line.predicted.is_some() && evidence.is_some());
        assert!(line.slack == 0.0 || line.slack_reason.is_some(), "{line:?}");
        let compared = |party: &str| line.compared.contains(&party);
        let has_evidence = compared("measured") || compared("checked");
        match line.verdict {
            Verdict::Reproduced => assert!(is_printed && compared("predicted") && has_evidence),
            Verdict::Recomputed => assert!(!is_printed && compared("predicted") && has_evidence),
            Verdict::Erratum => {
                assert!(is_printed && has_evidence && line.reason.is_some(), "{line:?}");
                if let Some(Printed::Number(printed)) = line.printed {
                    let low = line.low.unwrap() - line.slack;
                    assert!(printed < low || printed > line.high.unwrap() + line.slack, "{line:?}");
                }
            }
            Verdict::Stated => assert!(evidence.is_none() || line.predicted.is_none(), "{line:?}"),
            Verdict::Bounded | Verdict::Weak => assert!(has_evidence, "{line:?}"),
            Verdict::Differs => unreachable!(),
        }
        if matches!(line.verdict, Verdict::Reproduced | Verdict::Recomputed) {
            assert!(line.detects <= line.required.map(|most| most * 1.0001), "{line:?}");
        }
    }
    let mut names: Vec<_> =
        report().lines().map(|line| (line.document, line.item, line.row)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "no two rows have one name");
}

#[test]
fn errata_are_those_of_the_notes() {
    // With hardly any trials some cannot be shown; a quick run shows them all.
    let mut errata: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for document in &report().documents {
        for item in &document.items {
            for row in item.rows.iter().filter(|row| row.is_erratum()) {
                errata.entry((document.number, item.name)).or_default().push(&row.name);
                assert!([Verdict::Erratum, Verdict::Weak].contains(&row.verdict()), "{row:?}");
            }
        }
    }
    // checked-rank-indexed.md, section 3; by the number of rows that each erratum has here.
    let counts: BTreeMap<_, _> = errata.iter().map(|(item, rows)| (*item, rows.len())).collect();
    let wanted = BTreeMap::from([
        // E1.
        (("000", "Table I"), 1),
        // E10; E11 for two levels.
        (("000", "Section III-C"), 3),
        // E2; E12 for two levels of three rows.
        (("000", "Table II"), 7),
        // E4: two entries; E5: four percentages.
        (("000", "Table III"), 6),
        // E6: two percentages, and "three or more".
        (("000", "Table IV"), 3),
        // E7; E8 for three rows.
        (("000", "Table V"), 4),
        // checked-balanced.md, section 6: errata 6, 8, 10, 11, and 12 twice; erratum 2.
        (("001", "Abstract and text"), 6),
        (("001", "Figure 5"), 1),
        // checked-dleft-compressed-partitioned.md, section 1.
        (("002", "Figure 3"), 1),
        (("002", "Figure 4"), 1),
        (("002", "Figure 5"), 1),
        (("002", "Stored choices"), 1),
        (("002", "Fast tables: claims"), 5),
        (("003", "Section 4"), 1),
        (("003", "Section 5.1: sizes and counters"), 2),
        (("003", "Section 5.1: false positives"), 1),
        (("003", "Section 5.2"), 2),
        (("004", "Table IV"), 1),
        (("004", "Table VI"), 5),
        (("004", "Simulations in the text"), 2),
    ]);
    assert_eq!(counts, wanted, "{errata:#?}");
}

#[test]
fn two_runs_are_alike_and_a_stopped_one_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab { folder: Some(folder.path().join("kept")), program: 1 };
    let only = ["003".to_owned()];
    let again = |lab: &Lab| json(&run(Effort::Least, lab, &only, &mut |_| {}).unwrap());
    let first = again(&lab);
    let fresh: String = json(report())
        .lines()
        .filter(|line| line.contains(r#""document":"003""#))
        .fold(String::new(), |lines, line| lines + line + "\n");
    assert_eq!(first, fresh);
    let journals: Vec<_> = fs::read_dir(folder.path().join("kept"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(journals.len(), 8);
    // As if stopped in the middle of a line; what is left is taken over, and nothing else.
    for path in &journals {
        let text = fs::read_to_string(path).unwrap();
        fs::write(path, &text[..text.len() - 20]).unwrap();
    }
    assert_eq!(again(&lab), first);
    // A result that was kept is believed.
    let text = fs::read_to_string(&journals[0]).unwrap();
    let mut trials = 0;
    run(Effort::Least, &lab, &only, &mut |_| trials += 1).unwrap();
    assert_eq!(trials, 0);
    // That of another program is not.
    let other = Lab { program: 2, ..lab };
    run(Effort::Least, &other, &only, &mut |_| trials += 1).unwrap();
    assert!(trials > 0);
    assert_eq!(fs::read_to_string(&journals[0]).unwrap().len(), text.len());
}
