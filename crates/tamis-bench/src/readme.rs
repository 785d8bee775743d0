//! The table and the sentences of the README that a record tells.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::chart;
use crate::record::{Operation, Record, Row, Run, Side};

const BEGIN: &str = "<!-- scripts/speed writes from here -->\n";
const END: &str = "<!-- to here -->\n";
/// Rates that are further apart are not compared.
const APART: f64 = 1.3;
/// What the table has of each row, behind rate and memory.
const COLUMNS: [Operation; 9] = [
    Operation::Insert,
    Operation::Hit,
    Operation::Miss,
    Operation::Remove,
    Operation::Churn,
    Operation::BatchInsert,
    Operation::BatchHit,
    Operation::BatchMiss,
    Operation::BatchRemove,
];
/// Of ours, what the table has.
const SHOWN: [&str; 6] = [
    "tamis blocked",
    "tamis blocked-rank",
    "tamis rank-indexed",
    "tamis bloom",
    "tamis compressed",
    "tamis ribbon",
];
/// What has a row of its own in records alone: half-empty tables, and what is no filter.
const HIDDEN: [&str; 3] = ["qfilter as asked", "cuckoo as asked", "HashSet<u64>"];

/// A file that is made of a record: its path from the root of the repository, what it is about,
/// and what it holds.
pub type Drawing = (&'static str, &'static str, fn(&Record) -> String);

/// The charts.
pub const CHARTS: [Drawing; 2] = [
    ("docs/speed-questions.svg", "lookups", chart::questions),
    ("docs/speed-churn.svg", "churn", chart::churn),
];

/// The rows of a record that may be compared.
pub struct Speed<'a> {
    /// With rates near the one that was asked for.
    pub equal: Vec<&'a Row>,
    /// Rivals with longer fingerprints, behind ours at their rate.
    pub finer: Vec<&'a Row>,
}

impl<'a> Speed<'a> {
    /// The rows of full filters.
    pub fn of(record: &'a Record) -> Self {
        let full = || record.rows.iter().filter(|row| row.load == 1.0);
        let is_near =
            |row: &Row, rate: f64| (rate / APART..=rate * APART).contains(&row.measured_rate());
        let ours = SHOWN.iter().filter_map(|&name| full().find(|row| row.name == name));
        let rivals: Vec<&Row> = full()
            .filter(|row| row.side == Side::Rival && !HIDDEN.contains(&row.name.as_str()))
            .collect();
        let near = rivals.iter().copied().filter(|row| is_near(row, record.run.rate));
        // The partner of what is not near.
        let partner = full().filter(|row| !row.partner_of.is_empty());
        let partner = partner.filter(|row| !is_near(row, record.run.rate));
        let finer = partner.flat_map(|partner| {
            let is_its = |row: &&Row| partner.partner_of.contains(&row.name);
            std::iter::once(partner)
                .chain(rivals.iter().copied().filter(is_its).collect::<Vec<_>>())
        });
        Self { equal: ours.chain(near).collect(), finer: finer.collect() }
    }
}

/// The name of a row in tables and charts.
pub fn label(row: &Row) -> String {
    let name = match row.name.strip_prefix("tamis ") {
        Some(ours) => format!("`{}`", ours.split(' ').next().unwrap_or(ours)),
        None => row.name.clone(),
    };
    let bits =
        name.split_once(' ').filter(|(_, bits)| bits.bytes().all(|byte| byte.is_ascii_digit()));
    let name = bits.map_or(name.clone(), |(name, bits)| format!("{name} ({bits} bits)"));
    if row.built_once { format!("{name} (built once)") } else { name }
}

/// The README with what `records` tell between its marks. `name` is the file of the records, from
/// the root of the repository; the first of them is in the table.
pub fn written(readme: &str, name: &str, records: &[Record]) -> Result<String> {
    let (before, rest) = readme.split_once(BEGIN).context("the README has no first mark")?;
    let (_, behind) = rest.split_once(END).context("the README has no last mark")?;
    Ok([before, BEGIN, &section(name, records), END, behind].concat())
}

/// The file of the records that the README was made of.
pub fn source(readme: &str) -> Result<&str> {
    let (_, rest) = readme.split_once(BEGIN).context("the README has no first mark")?;
    let (_, link) = rest.split_once("](records/").context("the README names no record")?;
    let (path, _) = link.split_once(')').context("the README names no record")?;
    Ok(path)
}

fn section(name: &str, records: &[Record]) -> String {
    let record = &records[0];
    let Run { keys, processor, cores, remark, .. } = &record.run;
    let speed = Speed::of(record);
    let remark = if remark.is_empty() { String::new() } else { format!(", {remark}") };
    let mut text = wrapped(&format!(
        "How fast? {} keys, in nanoseconds of processor time for each operation, hashing excluded, \
         on one of {cores} cores ({processor}{remark}). A step of *churn* removes a key of a full \
         filter, inserts another, and looks up one that is in and one that is not. [The record]({name}) \
         has {}times with hashing; `scripts/speed` makes it on your machine.",
        if *keys == 1_000_000 { "A million".to_owned() } else { keys.to_string() },
        if records.len() > 1 { "more sizes, and " } else { "" },
    ));
    text += "\n|filter|rate|bits per key";
    let rule = COLUMNS.iter().fold("|---|---|---|".to_owned(), |rule, _| rule + "---|");
    let names = COLUMNS.iter().fold(String::new(), |names, column| names + "|" + column.name());
    let _ = writeln!(text, "{names}|\n{rule}");
    for row in speed.equal.iter().chain(&speed.finer) {
        let times = COLUMNS.map(|operation| printed(row, operation).unwrap_or_default());
        let rate = row.measured_rate() * 100.0;
        let (bits, times) = (bits(row.bits_per_key), times.join("|"));
        let _ = writeln!(text, "|{}|{rate:.2}%|{bits}|{times}|", label(row));
    }
    text += "\n";
    text += &wrapped(&comparison(&speed));
    text += "\n";
    for (path, about, _) in CHARTS {
        let alt = format!("Bits per key against time of {about}, at equal rates");
        let _ = writeln!(text, "<img src=\"{path}\" width=\"480\"\n    alt=\"{alt}\">");
    }
    text
}

fn bits(bits_per_key: f64) -> String {
    format!("{bits_per_key:.1}")
}

fn printed(row: &Row, operation: Operation) -> Option<String> {
    let ns = row.median(operation)?;
    Some(if ns < 9.95 { format!("{ns:.1}") } else { format!("{ns:.0}") })
}

/// What each rival does better than ours at its rate, as the table shows it: those that remove
/// than `blocked-rank`, the others than `blocked`.
fn comparison(speed: &Speed) -> String {
    let mut sentences = Vec::new();
    let mut better = |than: &str, rivals: Vec<String>| {
        if !rivals.is_empty() {
            sentences.push(format!("{than}: {}.", rivals.join("; ")));
        }
    };
    let of = |rows: &[&Row], ours: &str, removes: bool| {
        let ours = rows.iter().find(|row| label(row) == ours).copied();
        let rivals = rows.iter().filter(|row| {
            row.side == Side::Rival && row.ns.contains_key(&Operation::Remove) == removes
        });
        let told = |rival: &&Row| Some(format!("{} in {}", label(rival), merits(rival, ours?)?));
        rivals.filter_map(told).collect::<Vec<String>>()
    };
    better(
        "Of filters that cannot remove, ahead of `blocked`",
        of(&speed.equal, "`blocked`", false),
    );
    let mut rivals = of(&speed.equal, "`blocked-rank`", true);
    rivals.extend(of(&speed.finer, "`blocked-rank`", true));
    better("Of those that can, ahead of a `blocked-rank` of the same or a lower rate", rivals);
    let rows = speed.equal.iter().chain(&speed.finer);
    let grown = rows.filter_map(|row| {
        let held = row.churned?.bits_per_key;
        (held > 1.01 * row.bits_per_key).then(|| format!("{} {}", label(row), bits(held)))
    });
    let grown: Vec<String> = grown.collect();
    if !grown.is_empty() {
        sentences.push(format!("Bits per key after churn: {}.", grown.join(", ")));
    }
    sentences.push(
        "Bits behind a name are those of a fingerprint; these filters got the keys that fill 95% of \
         a power of two, their best case."
            .to_owned(),
    );
    sentences.join(" ")
}

/// In what a rival is better, by the printed digits.
fn merits(rival: &Row, ours: &Row) -> Option<String> {
    let number = |text: String| text.parse::<f64>().ok();
    let mut merits = Vec::new();
    if number(bits(rival.bits_per_key)) < number(bits(ours.bits_per_key)) {
        merits.push("memory");
    }
    for operation in Operation::PLAIN.into_iter().chain([Operation::Churn]) {
        let of = |row| printed(row, operation).and_then(number);
        if let (Some(theirs), Some(ours)) = (of(rival), of(ours))
            && theirs < ours
            && !(rival.built_once && operation == Operation::Insert)
        {
            merits.push(operation.name());
        }
    }
    let (last, others) = merits.split_last()?;
    Some(if others.is_empty() {
        (*last).to_owned()
    } else {
        format!("{} and {last}", others.join(", "))
    })
}

/// Lines of less than 100 columns.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        if length + word.len() >= 99 {
            lines += "\n";
            length = 0;
        } else if length > 0 {
            lines += " ";
            length += 1;
        }
        lines += word;
        length += word.chars().count();
    }
    lines + "\n"
}

/// Writes the README and the charts of the repository at `root` from the record `name`.
pub fn write(root: &Path, name: &str) -> Result<()> {
    let records = Record::read(&root.join(name))?;
    let path = root.join("README.md");
    let readme = written(&std::fs::read_to_string(&path)?, name, &records)?;
    std::fs::write(path, readme)?;
    for (path, _, draw) in CHARTS {
        std::fs::write(root.join(path), draw(&records[0]))?;
    }
    Ok(())
}
