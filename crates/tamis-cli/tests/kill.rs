//! Killing `tamis add` at each of its system calls leaves the old or the new file, never a broken
//! one.

#[allow(dead_code, reason = "only part of what the other suite uses")]
#[path = "cli/tool.rs"]
mod tool;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use tool::{Folder, TAMIS, numbers};

const SIGKILL: i32 = 9;

/// The system calls that replace a file, and those that might one day.
const CALLS: [&str; 15] = [
    "openat",
    "flock",
    "write",
    "writev",
    "pwrite64",
    "copy_file_range",
    "ftruncate",
    "fchmod",
    "fchown",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
];

/// Runs `tamis add f more` and kills it at the `n`-th of these calls. Returns whether there were
/// as many. (A question mark in front of a call says that not every machine has it.)
fn killed(folder: &Folder, call: &str, n: u32) -> bool {
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace=?{call}")])
        .args(["-e", &format!("inject=?{call}:signal=KILL:when={n}")])
        .args([TAMIS, "add", "f", "more"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .status()
        .expect("install strace: without it nothing can be killed at a given system call");
    assert!(
        status.success()
            || status.signal() == Some(SIGKILL)
            || status.code() == Some(128 + SIGKILL),
        "strace ended with {status}"
    );
    !status.success()
}

#[test]
fn a_kill_at_any_system_call_leaves_the_old_or_the_new_filter() {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    folder.write("more", "and\none\nor\nmore\n");
    folder.ok(&["build", "--keys", "5000", "-o", "f", "keys"]);
    let old_bytes = folder.read("f");
    let old = folder.content_id("f");
    folder.ok(&["add", "f", "-o", "expected", "more"]);
    let new = folder.content_id("expected");
    assert_ne!(old, new);

    let mut seen = BTreeSet::new();
    for call in CALLS {
        for n in 1.. {
            folder.write("f", &old_bytes);
            let killed = killed(&folder, call, n);
            assert_eq!(folder.ok(&["verify", "f"]), "f: ok\n", "killed at {call} {n}");
            let left = folder.content_id("f");
            assert!(left == old || left == new, "killed at {call} {n}: {left}");
            folder.ok(&["add", "f", "more"]);
            assert_eq!(folder.content_id("f"), new, "after a kill at {call} {n}");
            if !killed {
                assert_eq!(left, new);
                break;
            }
            seen.insert((call, left == new));
        }
    }
    for call in ["openat", "write", "fsync", "rename"] {
        let at_call = |(name, _): &(&str, bool)| name.starts_with(call);
        assert!(seen.iter().any(at_call), "never killed at {call}: {seen:?}");
    }
    for is_new in [false, true] {
        assert!(seen.iter().any(|(_, new)| *new == is_new), "only one content was left: {seen:?}");
    }
}

#[test]
fn a_file_that_is_being_written_is_for_its_owner_alone() {
    let folder = Folder::new();
    folder.write("more", "a\n");
    folder.ok(&["build", "--keys", "5000", "-o", "f", "more"]);
    // Everything is written when the permissions change.
    assert!(killed(&folder, "fchmod", 1));
    let left: Vec<_> = folder.names().into_iter().filter(|name| name.contains(".tamis-")).collect();
    let [left] = &left[..] else { panic!("one file is left, not {left:?}") };
    assert_eq!(folder.read(left).len(), folder.read("f").len());
    let facts = std::fs::metadata(folder.join(left)).expect("a file");
    assert_eq!(facts.permissions().mode() & 0o7777, 0o600);
}
