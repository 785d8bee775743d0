//! Output files are replaced all at once, in place of what they were.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use crate::tool::{Folder, TAMIS};

fn mode(folder: &Folder, name: &str) -> u32 {
    let facts = fs::metadata(folder.join(name)).expect("a file");
    facts.permissions().mode() & 0o7777
}

#[test]
fn replacing_leaves_no_other_file_and_keeps_permissions() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.ok(&["build", "--keys", "10", "-o", "f", "keys"]);
    for bits in [0o600, 0o640, 0o444, 0o755] {
        let permissions = fs::Permissions::from_mode(bits);
        fs::set_permissions(folder.join("f"), permissions).expect("permissions");
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
    // The shell's limit on file sizes makes the write fail half-way; the signal is ignored so that it is an error.
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
