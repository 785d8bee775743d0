//! The rooms of the library, from the ground up: no room knows of one above it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A file or folder of `crates/tamis/src` may import from those before it, and from no other.
const ROOMS: [&str; 33] = [
    // What any program could use.
    "math",
    "key",
    "digest",
    "bits",
    "address",
    "permutation",
    "block",
    "threads",
    // What everything here speaks of.
    "kinds",
    "spec",
    "coder",
    "wire",
    "filter",
    "entry",
    "change",
    "traffic",
    "stored",
    "builder",
    "face",
    "identities",
    // Structures.
    "bloom",
    "compressed",
    "partitioned",
    "ribbon",
    "balanced",
    "rank_indexed",
    "blocked_rank",
    "dleft",
    "fast_table",
    // What knows them all.
    "any",
    "plan",
    "delta",
    "aging",
];

/// What is above all of these.
const ROOFS: [&str; 4] = ["sharded", "serde", "internals", "lib"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tamis/src")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                return files(&path);
            }
            vec![path]
        })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// The code of a file without its comments and its unit tests, which may look further.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| [line, "\n"].concat())
        .collect()
}

/// The rooms that a piece of code names.
fn imports(code: &str) -> BTreeSet<String> {
    let named = code.split("crate::").skip(1).map(|rest| {
        rest.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect::<String>()
    });
    named.filter(|name| !name.is_empty()).collect()
}

#[test]
fn no_room_knows_of_one_above_it() {
    let height = |room: &str| ROOMS.iter().position(|&name| name == room);
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files(&source()) {
        let path = file.strip_prefix(source()).unwrap();
        let room = path.components().next().unwrap().as_os_str().to_string_lossy();
        let room = room.trim_end_matches(".rs").to_string();
        seen.insert(room.clone());
        if ROOFS.contains(&room.as_str()) {
            continue;
        }
        let Some(own) = height(&room) else {
            wrong.push(format!("{room} has no place among ROOMS"));
            continue;
        };
        // The list names all structures: a room that uses it is above them, or uses only the
        // names.
        if room == "kinds" {
            continue;
        }
        for import in imports(&code(&file)) {
            match height(&import) {
                Some(other) if other <= own => {}
                Some(_) => {
                    wrong.push(format!("{} imports {import}, which is above", path.display()));
                }
                None => {
                    wrong.push(format!("{} imports {import}, which is no room", path.display()));
                }
            }
        }
    }
    for room in ROOMS.iter().filter(|&&room| !seen.contains(room)) {
        wrong.push(format!("there is no room {room}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No file has more lines than a person reads at once.
#[test]
fn files_are_short() {
    let mut lengths: Vec<(usize, PathBuf)> = files(&source())
        .into_iter()
        .map(|file| (fs::read_to_string(&file).unwrap().lines().count(), file))
        .collect();
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2].0;
    assert!(median <= 200, "half of the files have more than {median} lines");
    let long: Vec<_> = lengths.iter().filter(|(lines, _)| *lines > 500).collect();
    assert!(long.is_empty(), "{long:?}");
}
