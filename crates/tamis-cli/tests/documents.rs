//! What the documents show is what happens.

#[allow(dead_code, reason = "only part of what the other suite uses")]
#[path = "cli/tool.rs"]
mod tool;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tamis::{Kind, Operation};
use tool::{Folder, TAMIS};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The contents of all fenced blocks of a document that are marked with this word.
fn blocks(document: &str, mark: &str) -> Vec<String> {
    let opening = format!("```{mark}\n");
    let bodies = document.split(&opening).skip(1);
    bodies.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// Runs a command in a shell that finds the tool. (A shell, because the examples have pipes, which
/// crates for testing documents do not run.)
fn shell(command: &str, folder: &Folder) -> Output {
    let tamis = Path::new(TAMIS).parent().expect("a folder").display();
    Command::new("bash")
        .args(["-c", command])
        .env("PATH", format!("{tamis}:{}", std::env::var("PATH").expect("a path")))
        .current_dir(folder.path())
        .output()
        .expect("bash runs")
}

/// Runs the commands of a console block, and checks what each prints.
fn run_console(block: &str, folder: &Folder) {
    let mut lines = block.lines().peekable();
    while let Some(line) = lines.next() {
        let command = line.strip_prefix("$ ").expect("a command").to_owned();
        let mut expected = String::new();
        while let Some(output) = lines.next_if(|line| !line.starts_with("$ ")) {
            expected += output;
            expected += "\n";
        }
        let output = shell(&command.replace("cargo run --release --", "tamis"), folder);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{command}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
    }
}

#[test]
fn the_readme_examples_print_what_they_show() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("README.md");
    // Rows of tables are looked up, not read.
    let read = readme.lines().filter(|line| !line.starts_with('|'));
    let words: usize = read.map(|line| line.split_whitespace().count()).sum();
    assert!(words <= 1250, "a README is read in five minutes: {words} words");
    let examples = blocks(&readme, "console");
    assert!(examples.len() >= 4);
    let folder = Folder::new();
    for block in &examples {
        run_console(block, &folder);
    }
}

#[test]
fn the_tutorial_of_exchange_prints_what_it_shows() {
    let document = fs::read_to_string(repository().join("docs/exchange.md")).expect("exchange.md");
    let [tutorial] = &blocks(&document, "console")[..] else { panic!("one tutorial") };
    // Without the web server, which would outlive the test: tests/cli/exchange.rs has several.
    let lines = tutorial.lines().filter(|line| !line.contains("http.server"));
    let lines = lines.map(|line| line.replace("http://localhost:8000/", "sets/") + "\n");
    run_console(&lines.collect::<String>(), &Folder::new());
}

#[test]
fn tables_of_kinds_say_what_plan_says() {
    let page = |path| fs::read_to_string(repository().join(path)).expect(path);
    let (readme, kinds) = (page("README.md"), page("docs/kinds.md"));
    let plans = Folder::new().json(&["plan", "--keys", "1M", "--rate", "1%", "--json"]);
    let plans = plans.as_array().expect("candidates");
    for plan in plans {
        let kind = plan["kind"].as_str().expect("a kind");
        // Variants, and kinds that are for lower rates.
        if kind == "rank-set" || kind.starts_with("balanced-") {
            continue;
        }
        let number = |name: &str| format!("{:.1}", plan["predicted"][name].as_f64().expect(name));
        let (bits, lines) = (number("bits_per_key"), number("blocks_per_miss"));
        let row = |line: &&str| line.starts_with("| ") && line.contains(&format!("| `{kind}`"));
        let row = kinds.lines().find(row).expect(kind);
        assert!(row.ends_with(&format!("| {bits} | {lines} |")), "{row}: {bits} and {lines}");
    }
    // The README has some of these rows.
    let rows = readme.lines().filter(|line| line.starts_with("| "));
    assert_eq!(rows.inspect(|row| assert!(kinds.contains(row), "{row}")).count(), 7);
}

#[test]
fn the_table_of_operations_says_what_kinds_can_do() {
    let kinds = fs::read_to_string(repository().join("docs/kinds.md")).expect("docs/kinds.md");
    for &kind in Kind::ALL {
        let operations = [
            Operation::Insert,
            Operation::Remove,
            Operation::Count,
            Operation::Values(1),
            Operation::Merge,
            Operation::Grow,
        ];
        let row = operations.iter().fold(format!("| `{}` |", kind.name()), |row, &operation| {
            row + if kind.can(operation) { " yes |" } else { " no |" }
        });
        assert!(kinds.lines().any(|line| line == row), "{row}");
    }
}

#[test]
fn the_wire_document_shows_the_golden_file() {
    let document = fs::read_to_string(repository().join("docs/wire.md")).expect("wire.md");
    let golden = repository().join("golden/v1/bloom-small.tamis");
    let drawn = Folder::new().ok(&["inspect", &golden.display().to_string()]);
    assert_eq!(blocks(&document, "text"), [drawn]);
}

#[test]
fn the_golden_files_are_made_by_the_commands_beside_them() {
    let golden = repository().join("golden/v1");
    let readme = fs::read_to_string(golden.join("README.md")).expect("the golden README");
    let commands = blocks(&readme, "sh").concat();
    let folder = Folder::new();
    for command in commands.lines() {
        let command = command.replace("$GOLDEN", &golden.display().to_string());
        assert!(shell(&command, &folder).status.success(), "{command}");
    }
    let made = folder.names();
    assert!(!made.is_empty());
    // Packed files and deltas may be written in fewer bytes one day; other tests check that they
    // are read.
    let plain = |name: &String| Path::new(name).extension().is_some_and(|end| end == "tamis");
    for name in made.into_iter().filter(plain) {
        let frozen = fs::read(golden.join(&name)).expect("a golden file of this name");
        assert!(folder.read(&name) == frozen, "{name} is made of other bytes now");
    }
}
