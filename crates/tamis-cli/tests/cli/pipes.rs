//! Other programs at either end.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::tool::{Folder, numbers};

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = Folder::new();
    folder.write("keys", numbers(500_000));
    folder.ok(&["build", "--kind", "counting", "-o", "f", "keys"]);
    for args in [
        &["check", "f", "keys"][..],
        &["check", "-v", "f", "keys", "keys"],
        &["count", "f", "keys"],
        &["uniq", "keys"],
        &["completions", "bash"],
        &["man"],
        &["info", "f"],
        &["build", "-o", "-", "keys"],
    ] {
        let mut child = folder
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tamis starts");
        drop(child.stdout.take());
        let mut said = String::new();
        let mut stderr = child.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).expect("text");
        let code = child.wait().expect("tamis ends").code();
        assert_eq!(said, "", "{args:?}");
        // -v prints next to nothing, so it may not notice.
        assert!(matches!(code, Some(0 | 1 | 141)), "{args:?}: {code:?}");
    }
}

#[test]
fn answers_come_as_soon_as_the_input_pauses() {
    let questions = ["a\n".to_owned(), "b\n".to_owned(), "a\n".repeat(1024), "b\n".repeat(1025)];
    answered_at_once(&["check", "f"], &questions.map(|question| (question.clone(), question)));
}

/// Records are answered when they are whole, whatever has come of the next.
#[test]
fn records_are_answered_as_soon_as_the_input_pauses() {
    let both = |text: &str| (text.to_owned(), text.to_owned());
    let pieces = [
        both("id,text\na,1\n"),
        both("b,\"two\nlines\"\n"),
        ("a,3\nb,".into(), "a,3\n".into()),
        ("4\n".into(), "b,4\n".into()),
        ("a,5\r\n".into(), "a,5\n".into()),
        both(&"b,6\n".repeat(5000)),
    ];
    answered_at_once(&["check", "--csv", "id", "f"], &pieces);
}

/// Writes pieces to a verb that knows `a` and `b`, and waits for the answer to each: for ever if
/// it is held back.
fn answered_at_once(args: &[&str], pieces: &[(String, String)]) {
    let folder = Folder::new();
    folder.write("keys", "a\nb\n");
    folder.ok(&["build", "-o", "f", "keys"]);
    let mut child = folder
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("tamis starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut answers = child.stdout.take().expect("a pipe");
    for (question, expected) in pieces {
        stdin.write_all(question.as_bytes()).expect("tamis reads");
        let mut answer = vec![0; expected.len()];
        answers.read_exact(&mut answer).expect("bytes");
        assert_eq!(String::from_utf8_lossy(&answer), *expected);
    }
    drop(stdin);
    assert!(child.wait().expect("tamis ends").success());
}

#[test]
fn nothing_but_data_is_coloured_or_printed() {
    let folder = Folder::new();
    folder.write("keys", numbers(10));
    folder.ok(&["build", "-o", "f", "keys"]);
    for args in [&["info", "f"][..], &["inspect", "f"], &["plan", "--keys", "5"], &["--help"]] {
        assert!(!folder.ok(args).contains('\x1b'), "{args:?}");
    }
    assert!(!folder.run(&["info", "missing"]).stderr.contains('\x1b'));
}
