//! Golden files: bytes that every version must read and write alike.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tamis::{AnyFilter, Filter, Limits};

/// The folder of the golden files.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/v1")
}

/// All golden filters, by path.
///
/// # Panics
///
/// When the folder cannot be read.
pub fn files() -> Vec<PathBuf> {
    ending_in("tamis")
}

/// Packed golden filters.
///
/// # Panics
///
/// When the folder cannot be read.
pub fn packed() -> Vec<PathBuf> {
    ending_in("packed")
}

/// Golden deltas.
///
/// # Panics
///
/// When the folder cannot be read.
pub fn deltas() -> Vec<PathBuf> {
    ending_in("delta")
}

fn ending_in(wanted: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).expect("the golden folder");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry of the golden folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == wanted))
        .collect();
    files.sort();
    files
}

/// Decodes a golden file, writes it again, and compares what it answers with the text beside it.
///
/// # Panics
///
/// When anything differs.
pub fn check(path: &Path) {
    let bytes = fs::read(path).expect("a golden file");
    let filter = AnyFilter::decode(&bytes, Limits::default()).expect("golden bytes decode");
    assert_eq!(filter.encode().to_vec(), bytes, "{} is written in other bytes", path.display());
    let pinned = fs::read_to_string(path.with_extension("txt")).expect("the text beside it");
    assert_eq!(describe(&filter), pinned, "{} answers otherwise", path.display());
}

/// What a golden file pins of a filter: its content id, and the first 20 decimal numbers from
/// 1,000,000 on for which it answers yes.
pub fn describe(filter: &AnyFilter) -> String {
    let mut text = format!("content id {}\nkeys {}\n", filter.content_id(), filter.keys());
    let absent = (1_000_000..50_000_000_u64).map(|number| number.to_string());
    for key in absent.filter(|key| filter.contains(key)).take(20) {
        writeln!(text, "false positive {key}").expect("writing to a string");
    }
    text
}
