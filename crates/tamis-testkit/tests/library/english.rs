//! Plain English: one word a thing, and lines that fit a screen.
//!
//! The words are those of the table "Words to avoid" in `CONTRIBUTING.md`.

use std::fs;
use std::path::{Path, PathBuf};

/// Files and folders of the repository that have been gone through. It grows until it is all.
const DONE: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "crates/tamis-bench/src",
    "crates/tamis-cli",
    "crates/tamis-exchange",
    "crates/tamis-gpu",
    "crates/tamis-python",
    "crates/tamis-report/src",
    "crates/tamis-testkit/src",
    "crates/tamis-testkit/tests",
    "crates/tamis-valkey",
    "crates/tamis/examples",
    "crates/tamis/src/address.rs",
    "crates/tamis/src/any",
    "crates/tamis/src/balanced",
    "crates/tamis/src/bits",
    "crates/tamis/src/block",
    "crates/tamis/src/blocked_rank",
    "crates/tamis/src/bloom",
    "crates/tamis/src/builder.rs",
    "crates/tamis/src/change",
    "crates/tamis/src/compressed",
    "crates/tamis/src/coder",
    "crates/tamis/src/delta",
    "crates/tamis/src/digest.rs",
    "crates/tamis/src/dleft",
    "crates/tamis/src/entry",
    "crates/tamis/src/face.rs",
    "crates/tamis/src/fast_table",
    "crates/tamis/src/filter.rs",
    "crates/tamis/src/identities",
    "crates/tamis/src/internals.rs",
    "crates/tamis/src/key.rs",
    "crates/tamis/src/kinds.rs",
    "crates/tamis/src/lib.rs",
    "crates/tamis/src/math",
    "crates/tamis/src/partitioned",
    "crates/tamis/src/permutation.rs",
    "crates/tamis/src/plan",
    "crates/tamis/src/rank_indexed",
    "crates/tamis/src/ribbon",
    "crates/tamis/src/serde.rs",
    "crates/tamis/src/sharded",
    "crates/tamis/src/spec",
    "crates/tamis/src/stored.rs",
    "crates/tamis/src/threads.rs",
    "crates/tamis/src/traffic",
    "crates/tamis/src/wire",
    "crates/tamis/tests",
    "docs/decisions",
    "docs/exchange.md",
    "docs/kinds.md",
    "docs/squid.md",
    "docs/papers",
    "docs/python.md",
    "docs/redis-valkey.md",
    "docs/reproduce.md",
    "docs/wire.md",
    "fuzz/fuzz_targets",
];

/// What is in a folder of [`DONE`], and still has a word to avoid in a text that it prints.
const NOT_YET: &[&str] = &[
    "crates/tamis-report/src/reproduce/balanced/mod.rs",
    "crates/tamis-report/src/reproduce/dleft.rs",
    "crates/tamis/src/coder/error.rs",
];

/// The first column that comments and Markdown may not reach.
const COLUMNS: usize = 100;

/// A word, or the beginning of one, and what to write instead.
type Avoided = (String, String);

/// A line that a person reads, with its number.
struct Line {
    number: usize,
    text: String,
    /// Tables and code blocks may be wider.
    is_wide: bool,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Sources and documents in a file or folder.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return entries.flat_map(|path| files(&path)).collect();
    }
    let is_read = path.extension().is_some_and(|extension| extension == "rs" || extension == "md");
    if is_read { vec![path.to_owned()] } else { Vec::new() }
}

/// The rows under this heading: what to avoid, what to write.
fn table(document: &str) -> Vec<Avoided> {
    let (_, section) = document.split_once("\n### Words to avoid\n").expect("the heading");
    let rows = section.lines().take_while(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = rows.filter_map(|row| row.split_once(" | "));
    rows.skip(1).map(|(word, instead)| (word.to_owned(), instead.to_owned())).collect()
}

/// The lines of a document, without the table of words to avoid.
fn markdown(text: &str) -> Vec<Line> {
    let (mut in_code, mut in_table) = (false, false);
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if line.starts_with('#') {
            in_table = line == "### Words to avoid";
        }
        let is_row = line.starts_with('|');
        if !(in_table && is_row) {
            let is_wide = in_code || is_fence || is_row;
            lines.push(Line { number: at + 1, text: line.to_owned(), is_wide });
        }
    }
    lines
}

/// The comments and the texts of a source.
fn source(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let trimmed = line.trim_start();
        if trimmed.starts_with("//") {
            let is_wide = trimmed.trim_start_matches(['/', '!', ' ']).starts_with('|');
            lines.push(Line { number, text: line.to_owned(), is_wide });
        } else {
            let quoted = line.split('"').skip(1).step_by(2);
            lines.extend(quoted.map(|text| Line { number, text: text.to_owned(), is_wide: true }));
            let behind = line.split_once(" // ").map(|(_, comment)| comment.to_owned());
            lines.extend(behind.map(|text| Line { number, text, is_wide: true }));
        }
    }
    lines
}

/// A text in small letters, without the names of code that it quotes.
fn prose(text: &str) -> String {
    text.split('`').step_by(2).collect::<String>().to_lowercase()
}

/// Whether a word, or one that begins with it, stands in a text.
fn says(text: &str, word: &str) -> bool {
    let starts = text.match_indices(word).map(|(at, _)| at);
    let mut before = starts.map(|at| text[..at].chars().next_back());
    before.any(|before| !before.is_some_and(|c| c.is_alphanumeric() || c == '_'))
}

/// What is wrong with a file.
fn complaints(file: &str, text: &str, avoided: &[Avoided]) -> Vec<String> {
    let is_markdown = Path::new(file).extension().is_some_and(|extension| extension == "md");
    let lines = if is_markdown { markdown(text) } else { source(text) };
    let mut complaints = Vec::new();
    for Line { number, text, is_wide } in lines {
        let columns = text.chars().count();
        if columns >= COLUMNS && !is_wide {
            complaints.push(format!("{file}:{number}: {columns} columns, not below {COLUMNS}"));
        }
        let text = prose(&text);
        for (word, instead) in avoided.iter().filter(|(word, _)| says(&text, word)) {
            complaints.push(format!("{file}:{number}: not \"{word}\" but {instead}"));
        }
    }
    complaints
}

#[test]
fn what_is_done_is_in_plain_english() {
    let avoided = table(&fs::read_to_string(repository().join("CONTRIBUTING.md")).unwrap());
    assert!(avoided.len() >= 10, "{avoided:?}");
    let mut wrong = Vec::new();
    for done in DONE {
        let found = files(&repository().join(done));
        assert!(!found.is_empty(), "there is no {done}");
        for file in found {
            let name = file.strip_prefix(repository()).unwrap().display().to_string();
            if !NOT_YET.contains(&name.as_str()) {
                wrong.extend(complaints(&name, &fs::read_to_string(&file).unwrap(), &avoided));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_plain_is_found() {
    let avoided = [("stub".to_owned(), "overflow".to_owned())];
    let long = ["/// ", &"long ".repeat(20), "\n/// | ", &"wide ".repeat(20), "\n"].concat();
    let code = "let stub = 1; // It Stubs.\nerror(\"a stub\");\n/// unstubbed, `stub`\n";
    let found = complaints("a.rs", &[&long, code].concat(), &avoided);
    let words = |line: usize| format!("a.rs:{line}: not \"stub\" but overflow");
    let columns = "a.rs:1: 104 columns, not below 100".to_owned();
    assert_eq!(found, [columns, words(3), words(4)]);
    let document = "```\n".to_owned() + &"long ".repeat(20) + "\n```\n| stub |\n";
    assert_eq!(complaints("a.md", &document, &avoided), ["a.md:4: not \"stub\" but overflow"]);
}
