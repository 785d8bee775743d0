//! The tool as a user has it: a process, its output and its exit status, in a folder of its own.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The binary under test.
pub(crate) const TAMIS: &str = env!("CARGO_BIN_EXE_tamis");

/// A folder that goes away with the test.
pub(crate) struct Folder(tempfile::TempDir);

/// How a run ended.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.join(name), content).expect("a file of keys");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.join(name)).expect("a file that was written")
    }

    /// The names of all files, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the folder");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("an entry").file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }

    /// The command, ready to run in this folder.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(TAMIS);
        command.args(args).current_dir(self.path());
        command
    }

    /// Runs the tool without input.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.feed(args, "")
    }

    /// Runs the tool with this input on a pipe.
    pub(crate) fn feed(&self, args: &[&str], input: impl AsRef<[u8]>) -> Run {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tamis starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.as_ref().to_vec();
        // Apart, because the tool may write before it has read all.
        let feeder = std::thread::spawn(move || {
            let _ = stdin.write_all(&input); // a tool that stops early closes the pipe
        });
        let output = child.wait_with_output().expect("tamis ends");
        feeder.join().expect("the feeder ends");
        output.into()
    }

    /// Runs the tool, which must succeed, and returns what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        self.run(args).ok()
    }

    /// Runs the tool, which must succeed, and parses what it printed.
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.ok(args)).expect("JSON")
    }

    pub(crate) fn content_id(&self, filter: &str) -> String {
        let facts = self.json(&["info", "--json", filter]);
        facts["content_id"].as_str().expect("a content id").to_owned()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Run {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What it printed; it must have succeeded without a word on stderr.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""));
        self.text()
    }

    /// It must have failed with exit status 2 and one line on stderr that says all this.
    #[track_caller]
    pub(crate) fn refused(self, words: &[&str]) {
        assert_eq!(self.code, Some(2), "{}", self.stderr);
        assert_eq!(self.text(), "", "stdout carries data only");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in {:?}", self.stderr);
        }
        if !self.stderr.starts_with("error: ") {
            // Not a usage error, which clap words: one line with our name.
            assert!(self.stderr.starts_with("tamis: "), "{:?}", self.stderr);
            assert_eq!(self.stderr.lines().count(), 1, "{:?}", self.stderr);
        }
    }
}

/// The numbers from 1 to `n`, a line each.
pub(crate) fn numbers(n: u64) -> String {
    let lines: Vec<_> = (1..=n).map(|i| format!("{i}\n")).collect();
    lines.concat()
}
