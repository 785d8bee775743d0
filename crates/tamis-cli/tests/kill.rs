//! Killing `tamis` at each of its system calls leaves the old or the new file, never a broken one:
//! `add`, `build` and `uniq` with lines from a pipe, `publish` and `follow`.

#[allow(dead_code, reason = "only part of what the other suite uses")]
#[path = "cli/tool.rs"]
mod tool;

use std::collections::BTreeSet;
use std::io::Write;
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

/// Runs `tamis` with a pipe that a few lines come from, and kills it at the `n`-th of these calls.
/// Returns whether there were as many. (A question mark in front of a call says that not every
/// machine has it.)
fn killed(folder: &Folder, args: &[&str], lines: &str, call: &str, n: u32) -> bool {
    let mut child = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null"])
        .args(["-e", &format!("trace=?{call}")])
        .args(["-e", &format!("inject=?{call}:signal=KILL:when={n}")])
        .arg(TAMIS)
        .args(args)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("install strace: without it nothing can be killed at a given system call");
    // They fit in the pipe; if nobody reads them any more, so much the better.
    let _ = child.stdin.take().expect("a pipe").write_all(lines.as_bytes());
    let status = child.wait().expect("strace ends");
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
    kill_everywhere(&["add", "f", "more"], "");
}

/// No number of lines is said, so that their digests are kept until the end.
#[test]
fn a_kill_of_a_build_from_a_pipe_leaves_the_old_or_the_new_filter() {
    kill_everywhere(&["build", "-o", "f"], &numbers(3000));
}

#[test]
fn a_kill_of_uniq_from_a_pipe_leaves_the_old_or_the_new_filter() {
    kill_everywhere(&["uniq", "--filter", "f", "-o", "f"], &numbers(3000));
}

/// Kills a verb that replaces `f` at each of its system calls. Done again, it does its work.
fn kill_everywhere(args: &[&str], lines: &str) {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    folder.write("more", "and\none\nor\nmore\n");
    folder.ok(&["build", "--keys", "5000", "-o", "f", "keys"]);
    let old_bytes = folder.read("f");
    let old = folder.content_id("f");
    folder.feed(args, lines).ok();
    let new = folder.content_id("f");
    assert_ne!(old, new);

    let mut seen = BTreeSet::new();
    for call in CALLS {
        for n in 1.. {
            folder.write("f", &old_bytes);
            let killed = killed(&folder, args, lines, call, n);
            assert_eq!(folder.ok(&["verify", "f"]), "f: ok\n", "killed at {call} {n}");
            let left = folder.content_id("f");
            assert!(left == old || left == new, "killed at {call} {n}: {left}");
            folder.feed(args, lines).ok();
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
    assert!(killed(&folder, &["add", "f", "more"], "", "fchmod", 1));
    let left: Vec<_> = folder.names().into_iter().filter(|name| name.contains(".tamis-")).collect();
    let [left] = &left[..] else { panic!("one file is left, not {left:?}") };
    assert_eq!(folder.read(left).len(), folder.read("f").len());
    let facts = std::fs::metadata(folder.join(left)).expect("a file");
    assert_eq!(facts.permissions().mode() & 0o7777, 0o600);
}

#[test]
fn a_kill_at_any_system_call_leaves_a_set_that_is_published_and_followed() {
    let folder = Folder::new();
    folder.write("keys", numbers(300));
    folder.ok(&["build", "--kind", "blocked-rank", "--keys", "1000", "-o", "f", "keys"]);
    folder.ok(&["keygen", "-o", "k"]);
    let publish = ["publish", "sets", "f", "--name", "words", "--sign", "k", "--reach", "2"];
    let follow = ["follow", "sets/words", "-o", "mine", "--key", "k.pub", "--once"];
    folder.ok(&publish);
    let mut contents = vec![folder.content_id("f")];
    let (mut at, mut kills) = (BTreeSet::new(), 0);
    for call in CALLS {
        for n in 1.. {
            folder.write("more", format!("{call} {n}\n"));
            folder.ok(&["add", "f", "more"]);
            contents.push(folder.content_id("f"));
            let (old, new) = (&contents[contents.len() - 2], &contents[contents.len() - 1]);
            let is_killed = killed(&folder, &publish, "", call, n);
            let is_followed = !killed(&folder, &follow, "", call, n);
            kills += u64::from(is_killed) + u64::from(!is_followed);
            if folder.join("mine").exists() {
                // (Before the first success there is no file.)
                let mine = folder.content_id("mine");
                let known = contents.contains(&mine);
                assert!(known, "killed at {call} {n}: it follows what was not published");
                assert!(!is_followed || mine == *old || mine == *new, "killed at {call} {n}");
            }
            // The cause is gone: both go on by themselves.
            folder.ok(&publish);
            folder.ok(&follow);
            assert_eq!(folder.content_id("mine"), *new, "after a kill at {call} {n}");
            if !is_killed && is_followed {
                break;
            }
            at.insert(call);
        }
    }
    eprintln!("hostile runs: {kills}, each killed at a system call");
    for call in ["openat", "write", "fsync", "rename"] {
        assert!(at.iter().any(|at| at.starts_with(call)), "never killed at {call}: {at:?}");
    }
}
