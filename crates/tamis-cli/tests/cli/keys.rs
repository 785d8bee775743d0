//! Keys are bytes between separators.

use crate::tool::{Folder, numbers};

/// A filter with so low a rate that no test meets a false positive.
fn exact(folder: &Folder, options: &[&str], input: impl AsRef<[u8]>) {
    let size = ["build", "--keys", "1000", "--rate", "1e-12", "-o", "f"];
    folder.feed(&[&size, options].concat(), input).ok();
}

#[test]
fn keys_need_not_be_text() {
    let folder = Folder::new();
    let keys = b"\xff\xfe\n\x00\n\xc3\x28\n";
    exact(&folder, &["--force"], keys);
    assert_eq!(folder.feed(&["check", "--force", "f"], keys).stdout, keys);
    assert_eq!(folder.feed(&["check", "f"], b"\xff\n").code, Some(1));
}

#[test]
fn the_last_line_may_lack_its_end() {
    let folder = Folder::new();
    exact(&folder, &[], "a\nb");
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 2);
    assert_eq!(folder.feed(&["check", "f"], "x\nb").ok(), "b\n");
    folder.write("keys", "a\nb");
    folder.ok(&["build", "-o", "g", "keys"]);
    assert_eq!(folder.json(&["info", "--json", "g"])["capacity"], 2);
}

#[test]
fn empty_lines_are_keys_and_empty_input_is_none() {
    let folder = Folder::new();
    exact(&folder, &[], "");
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 0);
    assert_eq!(folder.feed(&["check", "f"], "\n").code, Some(1));
    exact(&folder, &[], "\n");
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 1);
    assert_eq!(folder.feed(&["check", "f"], "\n").ok(), "\n");
    assert_eq!(folder.feed(&["check", "f"], "").code, Some(1));
}

#[test]
fn nul_ends_lines_on_request() {
    let folder = Folder::new();
    exact(&folder, &["-0"], b"two\nlines\0other\0");
    let run = folder.feed(&["check", "-0", "f"], b"other\0none\0two\nlines");
    assert_eq!(run.ok(), "other\0two\nlines\0");
}

#[test]
fn crlf_drops_one_cr_from_the_key_only() {
    let folder = Folder::new();
    exact(&folder, &["--crlf"], "a\r\nb\nc\r\r\n");
    assert_eq!(folder.feed(&["check", "f"], "a\nb\nc\nc\r\n").text(), "a\nb\nc\r\n");
    assert_eq!(folder.feed(&["check", "--crlf", "f"], "b\r\nx\r\n").ok(), "b\r\n");
}

#[test]
fn a_field_is_the_key_and_the_line_is_printed() {
    let folder = Folder::new();
    exact(&folder, &["-f", "2"], "1\tapple\tred\n2\tpear\n");
    let csv = "x,apple\ny,fig\nz,pear,z\n";
    assert_eq!(folder.feed(&["check", "-d,", "-f2", "f"], csv).ok(), "x,apple\nz,pear,z\n");
    assert_eq!(folder.feed(&["check", "-v", "-d", ",", "-f2", "f"], csv).ok(), "y,fig\n");
    let twice = "1,a\n2,b\n3,a\n";
    assert_eq!(
        folder.feed(&["uniq", "--keys=3", "--rate=1e-9", "-d,", "-f2"], twice).ok(),
        "1,a\n2,b\n"
    );
}

#[test]
fn a_missing_field_is_the_empty_key() {
    let folder = Folder::new();
    exact(&folder, &["-d,", "-f2"], "a,b\nshort\n");
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 2);
    assert_eq!(folder.feed(&["check", "f"], "\n").ok(), "\n");
    assert_eq!(folder.feed(&["check", "-d,", "-f3", "f"], "x,y\n").ok(), "x,y\n");
}

#[test]
fn lines_longer_than_any_buffer_are_whole_keys() {
    let folder = Folder::new();
    let long = "x".repeat(3_000_000);
    let input = format!("short\n{long}\n{long}y\nend");
    exact(&folder, &[], &input);
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 4);
    assert_eq!(folder.feed(&["check", "f"], &input).ok(), format!("{input}\n"));
    assert_eq!(folder.feed(&["check", "f"], &long[1..]).code, Some(1));
    folder.write("keys", &input);
    folder.ok(&["build", "-o", "g", "keys"]);
    assert_eq!(folder.json(&["info", "--json", "g"])["capacity"], 4);
}

#[test]
fn many_files_and_stdin_are_one_input() {
    let folder = Folder::new();
    folder.write("a", "1\n");
    folder.write("b", "2");
    folder.feed(&["build", "--keys", "3", "-o", "f", "a", "-", "b"], "3\n").ok();
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 3);
    assert_eq!(folder.ok(&["check", "f", "a", "b"]), "1\n2\n");
}

#[test]
fn lines_are_counted_across_buffers() {
    let folder = Folder::new();
    folder.write("keys", numbers(200_000));
    folder.ok(&["build", "-o", "f", "keys"]);
    let facts = folder.json(&["info", "--json", "f"]);
    assert_eq!((&facts["keys"], &facts["capacity"]), (&200_000.into(), &200_000.into()));
    assert_eq!(folder.ok(&["check", "f", "keys"]), numbers(200_000));
}

#[test]
fn a_redirected_file_is_counted_and_then_read() {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    let keys = std::fs::File::open(folder.join("keys")).expect("keys");
    let status = folder.command(&["build", "-o", "f"]).stdin(keys).status().expect("tamis");
    assert!(status.success());
    let facts = folder.json(&["info", "--json", "f"]);
    assert_eq!((&facts["keys"], &facts["capacity"]), (&1000.into(), &1000.into()));
}

#[test]
fn a_filter_may_come_from_stdin() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.ok(&["build", "-o", "f", "keys"]);
    let filter = folder.read("f");
    assert_eq!(folder.feed(&["check", "-", "keys"], &filter).ok(), "a\n");
    assert_eq!(folder.feed(&["verify", "-"], &filter).ok(), "-: ok\n");
    let run = folder.feed(&["add", "-", "-o", "-", "keys"], &filter);
    assert_eq!((run.code, run.stdout.len()), (Some(0), filter.len()));
    folder.feed(&["check", "-"], &filter).refused(&["stdin", "name files"]);
    folder.feed(&["add", "-", "keys"], &filter).refused(&["-o"]);
    folder
        .feed(&["check", "--mmap", "-", "keys"], &filter)
        .refused(&["stdin: --mmap needs a regular file"]);
}
