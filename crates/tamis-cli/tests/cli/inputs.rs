//! Files as they come: encodings, compression, records, and what is no list of keys.

use crate::tool::{Folder, numbers};

fn unhex(text: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digit).collect()
}

/// The lines `a` and `b`, as gzip, bzip2, xz and zstd wrote them.
const PACKED: [&str; 4] = [
    "1f8b08000000000002034be44ae20200972a571804000000",
    "425a68393141592653593c854112000001410000103000200030cc0c7a8271772453850903c8541120",
    "fd377a585a000004e6d6b4460200210116000000742fe5a3010003610a620a00448e2cb5ada0cdac00011c046f2c\
     9cc11fb6f37d010000000004595a",
    "28b52ffd0458210000610a620a2550b323",
];

/// What `uniq` makes of an input: its distinct keys, from a pipe and from a file.
#[track_caller]
fn lines(options: &[&str], input: &[u8], expected: &str) {
    let folder = Folder::new();
    let piped = folder.feed(&[&["uniq"], options].concat(), input);
    assert_eq!((piped.code, piped.text().as_str()), (Some(0), expected), "{}", piped.stderr);
    folder.write("keys", input);
    let read = folder.run(&[&["uniq"], options, &["keys"]].concat());
    assert_eq!((read.code, read.text().as_str()), (Some(0), expected), "{}", read.stderr);
}

/// The input must be refused, with these words, and nothing written.
#[track_caller]
fn refused(options: &[&str], input: &[u8], words: &[&str]) {
    let folder = Folder::new();
    folder.feed(&[&["build", "-o", "f"], options].concat(), input).refused(words);
    folder.write("keys", input);
    folder.run(&[&["build", "-o", "f"], options, &["keys"]].concat()).refused(words);
    assert_eq!(folder.names(), ["keys"]);
}

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

#[test]
fn encodings_tell_themselves_by_their_marks() {
    lines(&[], b"\xef\xbb\xbfa\nb\n", "a\nb\n");
    lines(&[], "a\nb\u{e9}\n\u{4e2d}".as_bytes(), "a\nb\u{e9}\n\u{4e2d}\n");
    lines(&[], b"caf\xe9\n".as_slice(), "caf\u{fffd}\n"); // Latin-1: bytes are bytes
    let text = "\u{feff}a\n\u{e9}\u{1f600}\n";
    for encoded in [utf16(text, u16::to_le_bytes), utf16(text, u16::to_be_bytes)] {
        lines(&[], &encoded, "a\n\u{e9}\u{1f600}\n");
        refused(&[], &encoded[..encoded.len() - 1], &["UTF-16", "half a character"]);
    }
    refused(&[], &utf16("abc\ndef\n", u16::to_le_bytes), &["UTF-16 without", "iconv", "--force"]);
    refused(&[], b"\xff\xfe\0\0a\0\0\0", &["UTF-32", "iconv"]);
}

#[test]
fn windows_line_ends_are_noticed_once() {
    let folder = Folder::new();
    let run = folder.feed(&["uniq"], "a\r\nb\r\na\n");
    assert_eq!((run.code, run.text().as_str()), (Some(0), "a\r\nb\r\na\n"));
    assert_eq!(run.stderr.matches("--crlf").count(), 1, "{}", run.stderr);
    lines(&["--crlf"], b"a\r\nb\r\na\n", "a\r\nb\r\n");
    let text = utf16("\u{feff}a\r\nb\r\n", u16::to_le_bytes);
    lines(&["--crlf"], &text, "a\r\nb\r\n");
}

#[test]
fn compressed_files_are_unpacked() {
    for packed in PACKED.map(unhex) {
        lines(&[], &packed, "a\nb\n");
        lines(&[], &[packed.as_slice(), &packed].concat(), "a\nb\n"); // as `cat` joins them
        refused(&[], &packed[..packed.len() - 5], &["cannot read"]);
        let mut damaged = packed.clone();
        let at = packed.len() - 3;
        damaged[at] ^= 1;
        refused(&[], &damaged, &["cannot read"]);
        lines(&["--force", "-0"], b"\x1f\x8b\0", "\u{1f}\u{fffd}\0");
    }
    // Compressed twice, and UTF-16 inside.
    let twice = unhex(
        "1f8b080000000000020393efe660000126e6dffff52736762b7276306a7f7edcc505140300304ba35f1c000000",
    );
    lines(&[], &twice, "a\nb\n");
    let four_times = unhex(
        "1f8b080000000000020393efe660000126e6c9ef9f253030aa3d3bf97ebeaa81c1aaa57bc3bf3fac3c2c5b6f3e\
         f5a5f0612135d350c3053a0c2f2c39dbd480ca01a086ee9337000000",
    );
    refused(&[], &four_times, &["more than 3 times"]);
}

#[test]
fn what_is_no_list_of_keys_is_refused_by_its_name() {
    for (first, what) in [
        (&b"PAR1\x15\x04"[..], "Parquet"),
        (b"ARROW1\0\0", "Arrow"),
        (b"ORC\x08", "ORC"),
        (b"Obj\x01\x04", "Avro"),
        (b"\x93NUMPY\x01", "NumPy"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"SQLite format 3\0", "SQLite"),
        (b"PK\x03\x04\x14", "zip archive"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"\x1f\x9d\x90", "compress(1)"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"!<arch>\ndebian", "ar archive"),
        (b"\x7fELF\x02", "ELF"),
        (b"MZ\x90\0", "Windows program"),
        (b"\0asm\x01", "WebAssembly"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"GIF89a", "GIF"),
        (b"%PDF-1.7", "PDF"),
        (b"\x80\x04\x95", "pickle"),
        (b"key\0more\n", "NUL bytes"),
    ] {
        refused(&[], first, &[what, "--force"]);
        let folder = Folder::new();
        assert_eq!(folder.feed(&["build", "--force", "-o", "f"], first).code, Some(0));
    }
    let mut tar = vec![b'x'; 512];
    tar[257..262].copy_from_slice(b"ustar");
    refused(&[], &tar, &["tar archive"]);
    let folder = Folder::new();
    folder.feed(&["build", "-o", "f"], numbers(10)).ok();
    folder.run(&["build", "-o", "g", "f"]).refused(&["f is a tamis filter", "--force"]);
    // The first letters of a format are keys like others.
    lines(&[], b"PAR\nBZ\n%PD\n", "PAR\nBZ\n%PD\n");
    lines(&[], b"P", "P\n");
    lines(&["-0"], b"a\0b\0", "a\0b\0");
}

#[test]
fn columns_of_csv_are_keys() {
    let users = "id,name,mail\n1,\"Ann, B.\",a@x\n2,\"two\nlines\",b@x\n3,Ann,a@x\n";
    lines(&["--csv", "mail"], users.as_bytes(), &users[..users.len() - "3,Ann,a@x\n".len()]);
    lines(&["--csv", "mail", "--csv", "name"], users.as_bytes(), users);
    lines(&["--csv", "b", "-d", "\\t"], b"a\tb\r\n1\tx\r\n2\tx\r\n", "a\tb\n1\tx\n");
    lines(&["--csv", "b"], b"\xef\xbb\xbfb,a\n1,x\n1,y\n", "b,a\n1,x\n");
    refused(&["--csv", "none"], users.as_bytes(), &["no column none", "id, name, mail"]);
    refused(&["--csv", "a"], b"a,a\n1,2\n", &["several columns a"]);
    refused(&["--csv", "a"], b"a,b\n1,2\n1\n", &["line: 3"]);
    let folder = Folder::new();
    folder.write("users.csv", users);
    folder.ok(&["build", "--rate", "1e-9", "--csv", "mail", "-o", "f", "users.csv"]);
    assert_eq!(folder.feed(&["check", "f"], "a@x\nAnn\n").ok(), "a@x\n");
    let visits = "mail,page\nc@x,1\nb@x,2\n";
    assert_eq!(folder.feed(&["check", "--csv", "mail", "f"], visits).ok(), "mail,page\nb@x,2\n");
    assert_eq!(folder.feed(&["check", "--csv", "mail", "-c", "f"], visits).ok(), "1\n");
    folder.feed(&["check", "-d,", "f"], visits).refused(&["--field", "--csv"]);
}

#[test]
fn several_columns_are_a_tuple_of_the_library() {
    use tamis::{Filter, Hasher, Limits};
    let folder = Folder::new();
    let pairs = "a,b\nx,yz\n";
    folder.feed(&["build", "--rate=1e-9", "--csv=a", "--csv=b", "-o", "f"], pairs).ok();
    let object = "{\"b\": \"yz\", \"a\": \"x\"}\n";
    folder.feed(&["build", "--rate=1e-9", "--jsonl=a", "--jsonl=b", "-o", "g"], object).ok();
    assert_eq!(folder.read("f"), folder.read("g"));
    let filter = tamis::AnyFilter::decode(&folder.read("f"), Limits::default()).expect("a filter");
    assert!(filter.contains_digest(Hasher::default().digest(&("x", "yz"))));
    assert!(!filter.contains_digest(Hasher::default().digest(&("xy", "z"))));
}

#[test]
fn fields_of_json_are_keys() {
    let events = "{\"id\": 7, \"user\": {\"name\": \"\\u00e9\"}}\n{\"id\": 8, \"user\": {\"name\": \"\u{e9}\"}}\n";
    lines(&["--jsonl", "id"], events.as_bytes(), events);
    let first = &events[..=events.find('\n').expect("two lines")];
    lines(&["--jsonl", "user.name"], events.as_bytes(), first);
    refused(&["--jsonl", "mail"], events.as_bytes(), &["line 1", "no field mail"]);
    refused(&["--jsonl", "user"], events.as_bytes(), &["line 1", "neither text nor a number"]);
    refused(&["--jsonl", "id"], b"{\"id\": 1}\nnot json\n", &["line 2", "no JSON object"]);
    refused(&["--jsonl", "id"], b"[{\"id\": 1}]\n", &["line 1", "no JSON object"]);
}
