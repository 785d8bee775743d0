//! Output files are replaced all at once, in place of what they were.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::tool::{Folder, Run, TAMIS, numbers};

fn mode(folder: &Folder, name: &str) -> u32 {
    let facts = fs::metadata(folder.join(name)).expect("a file");
    facts.permissions().mode() & 0o7777
}

fn set_mode(folder: &Folder, name: &str, mode: u32) {
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(mode)).expect("permissions");
}

/// Runs the tool as a user whom permissions restrict. Tests in a container often run as the
/// superuser, whom nothing restricts. Then the tool runs as the user `nobody`, who gets the folder
/// and a copy of the binary, because the original may be out of reach.
fn run_unprivileged(folder: &Folder, args: &[&str]) -> Run {
    const NOBODY: u32 = 65534;
    if fs::metadata("/proc/self").expect("this process").uid() != 0 {
        return folder.run(args);
    }
    let binary = Folder::new();
    // Another process makes the copy: a file that this process writes may be inherited, still
    // open, by a process that another test starts, and cannot be run while it is.
    let copied = Command::new("cp").args([TAMIS.as_ref(), binary.path()]).status();
    assert!(copied.expect("cp").success());
    fs::set_permissions(binary.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let entries = fs::read_dir(folder.path()).expect("the folder");
    for path in entries.map(|entry| entry.expect("an entry").path()).chain([folder.path().into()]) {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("a new owner");
    }
    let mut command = Command::new(binary.join("tamis"));
    command.args(args).current_dir(folder.path()).stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
    command.output().expect("tamis starts").into()
}

#[test]
fn replacing_leaves_no_other_file_and_keeps_permissions() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.ok(&["build", "--keys", "10", "-o", "f", "keys"]);
    for bits in [0o600, 0o640, 0o444, 0o755] {
        set_mode(&folder, "f", bits);
        folder.ok(&["add", "f", "keys"]);
        assert_eq!(mode(&folder, "f"), bits);
    }
    assert_eq!(folder.names(), ["f", "keys"]);
}

#[test]
fn a_symlink_stays_and_what_it_points_to_is_replaced() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    fs::create_dir(folder.join("deep")).expect("a folder");
    symlink("deep/link", folder.join("f")).expect("a link");
    symlink("real", folder.join("deep/link")).expect("a link");
    // First through a link to nothing, then through one to a file.
    for keys in [1, 2] {
        let verb: &[&str] =
            if keys == 1 { &["build", "--keys", "5", "-o", "f"] } else { &["add", "f"] };
        folder.ok(&[verb, &["keys"]].concat());
        assert!(folder.join("f").is_symlink() && folder.join("deep/link").is_symlink());
        assert!(folder.join("deep/real").is_file());
        assert_eq!(folder.json(&["info", "--json", "deep/real"])["keys"], keys);
    }
    symlink("loop", folder.join("loop")).expect("a link");
    folder.run(&["build", "-o", "loop", "keys"]).refused(&["cannot write loop"]);
}

#[test]
fn a_failed_write_leaves_the_old_file_alone() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.ok(&["build", "--keys", "100000", "-o", "f", "keys"]);
    let before = folder.read("f");
    // The shell's limit on file sizes makes the write fail half-way; the signal is ignored so that
    // it is an error.
    let run = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" add f keys", TAMIS])
        .current_dir(folder.path())
        .output()
        .expect("sh");
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("cannot write f"));
    assert_eq!(folder.read("f"), before);
    assert_eq!(folder.names(), ["f", "keys"]);
}

#[test]
fn special_files_are_written_to_not_replaced() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.ok(&["build", "-o", "/dev/null", "keys"]);
    assert!(!fs::metadata("/dev/null").expect("the device").is_file());
    folder.ok(&["build", "-o", "f", "keys"]);
    for path in ["-", "/dev/stdout"] {
        let run = folder.run(&["build", "-o", path, "keys"]);
        assert_eq!((run.code, run.stdout), (Some(0), folder.read("f")), "{path}");
    }
    assert_eq!(folder.names(), ["f", "keys"]);
}

#[test]
fn a_filter_is_never_written_to_a_terminal() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    // script(1) gives the tool a terminal as stdout.
    let run = Command::new("script")
        .args(["-qec", &format!("'{TAMIS}' build -o - keys"), "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("install script (package util-linux or bsdutils)");
    assert_eq!(run.status.code(), Some(2));
    let shown = String::from_utf8_lossy(&run.stdout);
    assert!(shown.contains("not for a terminal"), "{shown}");
}

#[test]
fn long_names_have_room() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    let name = "n".repeat(255);
    folder.ok(&["build", "-o", &name, "keys"]);
    assert_eq!(folder.names(), ["keys", &name]);
}

#[test]
fn a_new_file_is_for_those_who_may_read_its_origin() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    let under_umask = |command: &str| {
        let status = Command::new("sh")
            .args(["-c", &format!("umask 027; exec \"$0\" {command}"), TAMIS])
            .current_dir(folder.path())
            .status();
        assert!(status.expect("sh").success(), "{command}");
    };
    under_umask("build --keys 9 -o public keys");
    assert_eq!(mode(&folder, "public"), 0o640);
    under_umask("build --keys 9 --random-seed -o secret keys");
    assert_eq!(mode(&folder, "secret"), 0o600);
    under_umask("uniq --keys 9 --random-seed -o seen keys");
    assert_eq!(mode(&folder, "seen"), 0o600);
    under_umask("add secret -o copy keys");
    assert_eq!(mode(&folder, "copy"), 0o600);
    under_umask("merge secret --filter copy -o both");
    assert_eq!(mode(&folder, "both"), 0o600);
    under_umask("uniq --filter secret -o more keys");
    assert_eq!(mode(&folder, "more"), 0o600);
}

#[test]
fn a_secret_in_a_file_for_everyone_is_noted() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.ok(&["build", "-o", "f", "keys"]);
    set_mode(&folder, "f", 0o644);
    let run = folder.run(&["build", "--keys", "9", "--random-seed", "-o", "f", "keys"]);
    assert_eq!((run.code, mode(&folder, "f")), (Some(0), 0o644));
    assert!(run.stderr.contains("everyone can read the seed"), "{}", run.stderr);
    folder.ok(&["add", "f", "keys"]);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_noticed_before_keys_are_read() {
    let folder = Folder::new();
    // Nobody may make files in /sys, not even the superuser. Stdin stays open and silent.
    let mut child = folder
        .command(&["build", "--keys", "5", "-o", "/sys/f"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tamis starts");
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().expect("a child").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it runs");
            panic!("it waits for keys that it cannot store");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let run = Run::from(child.wait_with_output().expect("output"));
    run.refused(&["cannot write /sys/f"]);

    folder.write("keys", "a\n");
    set_mode(&folder, ".", 0o555);
    run_unprivileged(&folder, &["build", "-o", "f", "keys"]).refused(&["cannot write f"]);
    set_mode(&folder, ".", 0o755);
}

#[test]
fn a_folder_that_cannot_be_listed_is_written_to() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.ok(&["build", "--keys", "5", "-o", "f", "keys"]);
    set_mode(&folder, ".", 0o300);
    let run = run_unprivileged(&folder, &["add", "f", "keys"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("f is written, but its folder cannot be synced"), "{}", run.stderr);
    set_mode(&folder, ".", 0o755);
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 2);
    assert_eq!(folder.names(), ["f", "keys"]);
}

#[test]
fn a_run_that_fails_later_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.write("keys", numbers(100));
    folder.ok(&["build", "-o", "f", "keys"]);
    folder.run(&["remove", "f", "-o", "g", "keys"]).refused(&["cannot remove keys"]);
    folder.run(&["add", "keys", "-o", "g", "keys"]).refused(&["not a tamis file"]);
    assert_eq!(folder.names(), ["f", "keys"]);
}

#[test]
fn no_key_is_lost_when_many_change_one_file() {
    let folder = Folder::new();
    folder.write("none", "");
    folder.ok(&["build", "--keys", "100000", "--rate", "1e-9", "-o", "f", "none"]);
    symlink("f", folder.join("link")).expect("a link");
    let lines = |from, to| (from..to).map(|i| format!("{i}\n")).collect::<Vec<_>>().concat();
    std::thread::scope(|scope| {
        for adder in 0..8 {
            let (folder, lines) = (&folder, &lines);
            scope.spawn(move || {
                for round in 0..4 {
                    let from = adder * 1000 + round * 100;
                    let file = ["f", "link"][round as usize % 2];
                    if adder == 0 {
                        let uniq = ["uniq", "--filter", file, "-o", file];
                        folder.feed(&uniq, lines(from, from + 100)).ok();
                    } else {
                        folder.feed(&["add", file], lines(from, from + 100)).ok();
                    }
                }
            });
        }
    });
    let all: String = (0_u64..8).map(|adder| lines(adder * 1000, adder * 1000 + 400)).collect();
    assert_eq!(folder.feed(&["check", "-c", "f"], all).ok(), "3200\n");
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 3200);
    assert_eq!(folder.names(), ["f", "link", "none"]);
}

#[test]
fn whoever_waits_says_so_and_changes_the_file_that_is_there_then() {
    let folder = Folder::new();
    folder.write("old", "old\n");
    folder.write("new", "new\n");
    folder.write("more", "more\n");
    for name in ["old", "new"] {
        let filter = format!("{name}.tamis");
        folder.ok(&["build", "--keys", "9", "--rate", "1e-9", "-o", &filter, name]);
    }
    let held = fs::File::open(folder.join("old.tamis")).expect("a filter");
    held.lock().expect("a lock");
    // script(1) gives the tool a terminal as stderr.
    let mut child = Command::new("script")
        .args(["-qec", &format!("'{TAMIS}' add old.tamis more"), "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("install script (package util-linux or bsdutils)");
    let mut said = String::new();
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    output.read_line(&mut said).expect("a line");
    assert!(said.contains("waiting for another tamis to finish with old.tamis"), "{said}");
    fs::rename(folder.join("new.tamis"), folder.join("old.tamis")).expect("a new file");
    drop(held);
    assert!(child.wait().expect("tamis ends").success());
    assert_eq!(folder.feed(&["check", "old.tamis"], "old\nnew\nmore\n").ok(), "new\nmore\n");
}
