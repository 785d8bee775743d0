//! Errors exit 2, say what is wrong, and say what to do.

use std::process::{Command, Stdio};

use crate::tool::{Folder, Run, TAMIS, numbers};

#[test]
fn rates_out_of_range_are_refused() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    for rate in ["0", "1", "100%", "2", "-1", "-0.5%", "nan", "inf", "1e-400", "x", ""] {
        let rate = format!("--rate={rate}");
        folder.run(&["build", &rate, "-o", "f", "keys"]).refused(&["--rate", "1e-3"]);
        folder.run(&["plan", "--keys", "1", &rate]).refused(&["--rate"]);
    }
    assert_eq!(folder.names(), ["keys"]);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    folder.run(&["plan", "--keys", "10X"]).refused(&["'X' is not a unit", "10k"]);
    folder.run(&["plan", "--keys", "1.5"]).refused(&["whole number"]);
    folder.run(&["plan", "--keys", "-5"]).refused(&["--keys", "not a whole number"]);
    folder.run(&["plan", "--keys", "2e19"]).refused(&["--keys", "more than 18446744073709551615"]);
    folder.run(&["plan", "--keys", "1e19"]).refused(&["10000000000000000000 keys are too many"]);
    let none = ["plan", "--keys", "5", "--kind", "bloom", "--param", "hashes=0"];
    folder.run(&none).refused(&["param hashes must be 1 to 64, not 0"]);
    folder.run(&["plan", "--keys", "-5M"]).refused(&["--keys", "not a whole number"]);
    folder.run(&["plan", "--keys", "5", "--memory", "-1k"]).refused(&["--memory", "whole number"]);
    folder.run(&["plan", "--keys", "5", "--seed", "-1"]).refused(&["--seed", "a seed is a number"]);
    folder.run(&["bench", "--queries", "-1"]).refused(&["--queries", "not a whole number"]);
    folder.run(&["bench", "--key-seed", "-1"]).refused(&["--key-seed", "invalid digit"]);
    folder.run(&["check", "f", "-f", "-1"]).refused(&["--field", "invalid digit"]);
    folder.run(&["plan", "--keys", "5", "--memory", "8MiX"]).refused(&["8MiB"]);
    folder.run(&["plan", "--keys", "5", "--memory", "0"]).refused(&["memory"]);
    folder.run(&["plan", "--keys", "5", "--bits-per-key=-3"]).refused(&["bits per key"]);
    folder.run(&["plan", "--keys", "5", "--bits-per-key=nan"]).refused(&["bits per key"]);
    folder.run(&["plan"]).refused(&["--keys"]);
    folder
        .run(&["plan", "--keys", "5", "--rate", "1%", "--memory", "1M"])
        .refused(&["cannot be used with"]);
}

#[test]
fn names_that_shards_cannot_have_are_refused() {
    let folder = Folder::new();
    let merge =
        |name, other| folder.run(&["server", "merge", name, other, "--cluster", "localhost:1"]);
    merge("a{b}", "c").refused(&["a{b}", "braces"]);
    merge("c", "a}").refused(&["a}", "braces"]);
    merge("", "c").refused(&["needs a name"]);
}

/// A rate that makes no sense for a kind is refused, with the nearest rate that does, and another
/// kind.
#[test]
fn rates_out_of_all_proportion_are_refused() {
    let folder = Folder::new();
    let plan = |kind, rate| folder.run(&["plan", "--kind", kind, "--keys", "1M", "--rate", rate]);
    plan("blocked", "1e-11").refused(&["blocked: rate 1e-11", "out of all proportion", "or take"]);
    plan("blocked-rank", "3e-9").refused(&["blocked-rank: rate 3e-9", "the nearest is 2e-8"]);
    plan("blocked-rank", "2e-8").ok();
}

#[test]
fn kinds_that_are_built_once_have_no_deltas() {
    let folder = Folder::new();
    folder.write("old", numbers(200));
    folder.write("new", numbers(230));
    for kind in ["compressed", "partitioned", "ribbon"] {
        for name in ["old", "new"] {
            let file = format!("{name}.tamis");
            folder.ok(&["build", "--kind", kind, "--keys", "230", "-o", &file, name]);
        }
        let diff = folder.run(&["diff", "old.tamis", "new.tamis", "-o", "delta"]);
        diff.refused(&[kind, "built once", "send snapshots instead of deltas"]);
    }
}

#[test]
fn a_stream_into_a_filter_of_given_size_needs_keys() {
    let folder = Folder::new();
    folder.feed(&["uniq", "--memory", "1MB"], "a\n").refused(&["--keys 10M", "--rate"]);
    folder.feed(&["uniq", "--memory", "1MB", "--keys", "9"], "a\n").ok();
    folder.feed(&["build", "--memory", "1MB", "-o", "f"], "a\n").ok();
}

#[test]
fn useless_filters_are_not_built() {
    let folder = Folder::new();
    let build = ["build", "--bits-per-key", "0.1", "-o", "f"];
    folder.feed(&build, numbers(100)).refused(&["100 keys", "% of absent keys", "--rate"]);
    let build = ["build", "--rate", "0.6", "-o", "f"];
    folder.feed(&build, numbers(100)).refused(&["rate 60%", "a --rate of 50% or less"]);
    folder.feed(&["build", "--keys", "0", "-o", "f"], numbers(100));
    assert_eq!(folder.json(&["info", "--json", "f"])["capacity"], 100);
}

#[test]
fn fixed_filters_take_no_more_than_they_were_planned_for() {
    let folder = Folder::new();
    let words = ["line 11", "--keys 10", "--fixed"];
    let build = ["build", "--keys", "10", "--fixed", "-o", "f"];
    folder.feed(&build, numbers(11)).refused(&words);
    folder.feed(&["build", "--fixed", "-o", "f"], "a\n").refused(&["--keys"]);
    assert!(folder.names().is_empty());
    folder.feed(&build, numbers(10)).ok();
    let uniq = folder.feed(&["uniq", "--keys", "10", "--fixed"], numbers(10) + &numbers(12));
    assert_eq!(uniq.code, Some(2));
    assert!(uniq.stderr.contains("line 21") && uniq.stderr.contains("--keys 10"));
}

#[test]
fn kinds_that_cannot_remove_or_count_name_those_that_can() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    for kind in ["bloom", "blocked"] {
        folder.ok(&["build", "--kind", kind, "-o", "f", "keys"]);
        let before = folder.read("f");
        folder.run(&["remove", "f", "keys"]).refused(&[kind, "counting"]);
        folder.run(&["count", "f", "keys"]).refused(&[kind, "counting"]);
        assert_eq!(folder.read("f"), before);
    }
}

#[test]
fn mismatches_name_the_field() {
    let folder = Folder::new();
    folder.write("keys", numbers(10));
    let build = |filter: &str, options: &[&str]| {
        let size = ["build", "--keys", "10", "--bits-per-key", "8", "-o", filter];
        folder.ok(&[&size[..], options, &["keys"]].concat());
    };
    build("f", &["--param=hashes=3"]);
    for (options, field) in [
        (&["--param=hashes=3", "--seed=1"][..], "seed"),
        (&["--param=hashes=3", "--hash=sip13"], "hash"),
        (&["--param=hashes=3", "--kind=counting"], "kind"),
        (&["--param=hashes=3", "--param=bits=70"], "bits"),
        (&["--param=hashes=4"], "hashes"),
    ] {
        build("g", options);
        folder.run(&["merge", "f", "--filter", "g", "-o", "m"]).refused(&[
            "f and g",
            "differ in",
            field,
        ]);
    }
    assert!(!folder.names().contains(&"m".to_owned()));
}

#[test]
fn kinds_params_hashes_and_seeds_are_checked() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    let build =
        |options: &[&str]| folder.run(&[&["build", "-o", "f"], options, &["keys"]].concat());
    build(&["--kind", "cuckoo"]).refused(&["bloom", "blocked"]);
    build(&["--kind", "cuckoo"]).refused(&["bloom", "blocked"]);
    build(&["--param", "block=512"]).refused(&["bloom has no param block", "hashes"]);
    build(&["--kind", "blocked", "--param", "block=100"]).refused(&["256 or 512"]);
    build(&["--param", "block"]).refused(&["block=512"]);
    build(&["--hash", "md5"]).refused(&["xxh3", "sip13", "xxh64"]);
    build(&["--seed", "0x1ffffffffffffffff"]).refused(&["xxh3 takes 64 bits", "sip13"]);
    build(&["--seed=0x1ffffffffffffffff", "--hash=xxh64"]).refused(&["xxh64 takes 64 bits"]);
    for hash in ["xxh3", "xxh64"] {
        build(&["--random-seed", "--hash", hash]).refused(&[hash, "say --hash sip13"]);
    }
    build(&["--integers=16"]).refused(&["16", "--integers"]);
    folder.feed(&["uniq", "--integers=32"], "4294967296\n").refused(&["from -2^31 to 2^32 - 1"]);
    build(&["--random-seed", "--seed", "1"]).refused(&["cannot be used with"]);
    build(&["-d", ","]).refused(&["--field"]);
    build(&["-f", "0"]).refused(&["--field"]);
    assert_eq!(folder.names(), ["keys"]);
}

/// A few bytes may decode into a large filter. The memory that may take has a limit, which can be
/// raised.
#[test]
fn files_that_claim_much_are_refused_unless_the_limit_is_raised() {
    let folder = Folder::new();
    folder.write("keys", numbers(3));
    folder.ok(&["build", "--kind", "bloom", "--keys", "10M", "-o", "f", "keys"]);
    folder.ok(&["pack", "f", "-o", "p"]);
    assert!(folder.read("p").len() < 400 && folder.read("f").len() > 10_000_000);
    let refusal = ["beyond the limit of 1048576", "raise --limit"];
    for verb in ["check", "info", "verify", "count"] {
        if verb != "count" {
            folder.run(&[verb, "--limit", "1MiB", "p"]).refused(&refusal);
        }
        folder.run(&[verb, "--limit", "1MiB", "f"]).refused(&refusal);
    }
    folder.feed(&["info", "--limit", "1MiB", "-"], folder.read("f")).refused(&refusal);
    folder.ok(&["info", "--limit", "20MB", "p"]);
    folder.ok(&["info", "p"]);
    for verb in [&["check"][..], &["map", "get"], &["digest", "info"], &["uniq"], &["patch"]] {
        let help = folder.ok(&[verb, &["-h"]].concat());
        assert!(help.contains("--limit") && help.contains("[default: 1GiB"), "{help}");
    }
    for verb in [&["plan"][..], &["build"], &["keygen"], &["digest", "build"], &["server", "add"]] {
        assert!(!folder.ok(&[verb, &["-h"]].concat()).contains("--limit"), "{verb:?}");
    }
    assert!(folder.ok(&["check", "--help"]).contains("must not be changed"));
}

#[test]
fn what_is_not_a_filter_is_refused() {
    let folder = Folder::new();
    folder.write("keys", numbers(100));
    folder.write("empty", "");
    folder.write("short", "a\n");
    folder.write("start", b"\x89TAM");
    folder.ok(&["build", "-o", "f", "keys"]);
    let cut = folder.read("f");
    let len = cut.len();
    let cut_off = |file| format!("{file}: the file is cut off: {} bytes of {len}", len - 1);
    folder.write("cut", &cut[..cut.len() - 1]);
    for verb in ["check", "info", "inspect", "add", "verify", "remove", "count"] {
        folder.run(&[verb, "keys"]).refused(&["keys: not a tamis file"]);
        folder.run(&[verb, "empty"]).refused(&["empty: not a tamis file"]);
        folder.run(&[verb, "short"]).refused(&["short: not a tamis file"]);
        folder
            .run(&[verb, "start"])
            .refused(&["start: the file is cut off after 4 bytes, in the header"]);
        if verb != "inspect" {
            folder.run(&[verb, "cut"]).refused(&[&cut_off("cut")]);
        }
        folder.run(&[verb, "missing"]).refused(&["missing: No such file"]);
    }
    folder.run(&["check", "--mmap", "cut"]).refused(&[&cut_off("cut")]);
    folder.run(&["check", "--mmap", "empty"]).refused(&["empty: not a tamis file"]);
    folder.feed(&["info", "-"], "a\n").refused(&["stdin: not a tamis file"]);
    folder.feed(&["info", "-"], "").refused(&["stdin: not a tamis file"]);
    folder
        .feed(&["info", "-"], &cut[..60])
        .refused(&["stdin: the file is cut off after 60 bytes, in the header"]);
    folder.feed(&["info", "-"], &cut[..cut.len() - 1]).refused(&[&cut_off("stdin")]);
    folder
        .feed(&["info", "-"], [&cut[..], b"\n"].concat())
        .refused(&["stdin: 1 byte too many at the end"]);
    let mut damaged = cut.clone();
    damaged[80] ^= 1; // in the section table, so that nothing there can be trusted
    folder.feed(&["info", "-"], damaged).refused(&["stdin: header: checksum"]);
}

#[test]
fn a_compressed_filter_is_called_so() {
    let folder = Folder::new();
    for (format, magic) in [
        ("gzip", &b"\x1f\x8b\x08\0"[..]),
        ("zstd", b"\x28\xb5\x2f\xfd"),
        ("bzip2", b"BZh9"),
        ("xz", b"\xfd7zXZ\0"),
    ] {
        folder.write("f", magic);
        let words = format!("compressed with {format}; unpack it first");
        folder.run(&["info", "f"]).refused(&["f: ", &words]);
        folder.run(&["check", "--mmap", "f"]).refused(&["f: ", &words]);
        folder.feed(&["check", "-", "f"], magic).refused(&["stdin: ", &words]);
    }
}

#[test]
fn deltas_and_filters_are_told_apart() {
    let folder = Folder::new();
    for (name, keys) in [("old", 10), ("new", 20)] {
        folder.feed(&["build", "--keys", "20", "-o", name], numbers(keys)).ok();
    }
    folder.ok(&["diff", "old", "new", "-o", "d"]);
    let delta = "d: this is a delta, not a filter; apply it with tamis patch";
    folder.run(&["check", "d"]).refused(&[delta]);
    folder.run(&["patch", "old", "new"]).refused(&["new: this is a filter, not a delta"]);
}

#[test]
fn a_line_that_is_no_integer_is_named() {
    let folder = Folder::new();
    folder.feed(&["build", "--integers", "--keys", "9", "-o", "f"], "1\n2\n").ok();
    let add = ["add", "--integers", "f"];
    folder.feed(&add, "1\nx\n").refused(&["stdin, line 2: 'x' is no integer"]);
    folder.feed(&add, numbers(3000) + "y\n").refused(&["stdin, line 3001: 'y'"]);
    let csv = [&add[..], &["--csv", "n"]].concat();
    folder.feed(&csv, "n\n1\nx\n").refused(&["stdin, record 2: 'x'"]);
}

#[test]
fn verbs_that_were_left_out_say_how_to_get_them() {
    let folder = Folder::new();
    let verbs = [("gate", cfg!(feature = "gate")), ("parquet", cfg!(feature = "parquet"))];
    for (verb, _) in verbs.into_iter().filter(|(_, is_there)| !is_there) {
        let words = [
            &format!("built without {verb}")[..],
            &format!("cargo install --path crates/tamis-cli --features {verb}"),
        ];
        for args in [&[verb][..], &[verb, "--help"], &[verb, "--origin", "x", "import", "-o", "f"]]
        {
            folder.run(args).refused(&words);
        }
        assert!(!folder.ok(&["--help"]).contains(&format!("  {verb} ")));
    }
    if cfg!(not(feature = "parquet")) {
        folder.run(&["check", "f", "--parquet", "x"]).refused(&["--path crates/tamis-cli"]);
    }
}

#[test]
fn inputs_and_outputs_that_cannot_be_are_refused() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    folder.run(&["build", "-o", "f", "missing"]).refused(&["cannot open missing"]);
    folder.run(&["build", "-o", "f", "."]).refused(&["directory"]);
    folder.run(&["build", "-o", ".", "keys"]).refused(&["directory"]);
    folder.run(&["build", "-o", "no/f", "keys"]).refused(&["no folder no"]);
    folder.run(&["uniq", "-o", "-", "keys"]).refused(&["stdout carries the lines"]);
    folder.run(&["merge", "keys", "-o", "m"]).refused(&["two filters or more"]);
    folder.run(&["merge", "-o", "m"]).refused(&["two filters or more"]);
    folder.run(&["build", "keys"]).refused(&["--output"]);
    assert_eq!(folder.names(), ["keys"]);
}

#[test]
fn a_filter_that_cannot_be_allocated_is_refused() {
    let folder = Folder::new();
    // Beyond the address space, so that no system promises the memory.
    let huge = ["--kind", "counting", "--param", "width=16", "--memory", "500T", "--keys", "1"];
    folder
        .run(&[&["build", "-o", "f"], &huge[..]].concat())
        .refused(&["cannot allocate", "--memory"]);
}

#[test]
fn an_endless_stream_is_refused_in_little_memory() {
    let folder = Folder::new();
    folder.write("keys", numbers(100));
    folder.ok(&["build", "-o", "f", "keys"]);
    for (command, words) in [
        ("yes | \"$0\" info -", "stdin: not a tamis file"),
        ("\"$0\" info /dev/zero", "/dev/zero: not a tamis file"),
        ("(cat f; yes) | \"$0\" inspect -", "stdin: 1 byte too many"),
        // A line without an end.
        ("\"$0\" check --force f /dev/zero", "cannot read /dev/zero: a line is longer than"),
    ] {
        let run = Command::new("sh")
            .args(["-c", &format!("ulimit -v 400000; {command}"), TAMIS])
            .current_dir(folder.path())
            .output();
        let run = Run::from(run.expect("sh"));
        assert!(run.stderr.contains(words), "{command}: {}", run.stderr);
        assert_eq!(run.code, Some(2), "{command}");
    }
}

#[test]
fn only_regular_files_are_mapped() {
    let folder = Folder::new();
    folder.write("keys", "a\n");
    let made = Command::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    for path in [".", "pipe", "/dev/null"] {
        let words = format!("{path}: --mmap needs a regular file");
        folder.run(&["check", "--mmap", path, "keys"]).refused(&[&words]);
    }
}

#[test]
fn stdin_and_stdout_are_called_by_name() {
    let folder = Folder::new();
    folder.write("keys", numbers(10));
    folder.ok(&["build", "-o", "f", "keys"]);
    for args in [&["build", "-o", "-", "keys"][..], &["check", "f", "keys"], &["info", "f"]] {
        let full = std::fs::File::create("/dev/full").expect("the device that is always full");
        let run = folder.command(args).stdout(full).stderr(Stdio::piped()).output();
        Run::from(run.expect("tamis starts")).refused(&["cannot write stdout: No space left"]);
    }
    let folder_as_stdin = std::fs::File::open(folder.path()).expect("the folder");
    let run = folder.command(&["check", "f"]).stdin(folder_as_stdin).output();
    Run::from(run.expect("tamis starts")).refused(&["cannot read stdin: Is a directory"]);
}

#[test]
fn an_output_that_is_a_file_of_keys_is_refused() {
    let folder = Folder::new();
    folder.write("keys", numbers(10));
    folder.write("more", numbers(10));
    folder.ok(&["build", "--keys", "100", "-o", "f", "keys"]);
    let filter = folder.read("f");
    std::os::unix::fs::symlink("keys", folder.join("link")).expect("a link");
    std::fs::hard_link(folder.join("keys"), folder.join("twin")).expect("a link");
    for output in ["keys", "link", "twin", "./keys"] {
        let refused = ["keys holds keys"];
        folder.run(&["build", "-o", output, "more", "keys"]).refused(&refused);
        folder.run(&["uniq", "-o", output, "keys"]).refused(&refused);
        folder.run(&["add", "f", "-o", output, "keys"]).refused(&refused);
        folder.run(&["remove", "f", "-o", output, "keys"]).refused(&refused);
        let stdin = std::fs::File::open(folder.join("keys")).expect("keys");
        let run = folder.command(&["build", "-o", output]).stdin(stdin).output();
        Run::from(run.expect("tamis starts")).refused(&["stdin holds keys"]);
    }
    folder.run(&["add", "f", "f"]).refused(&["f holds keys"]);
    assert_eq!(folder.read("keys"), numbers(10).as_bytes());
    assert_eq!(folder.read("f"), filter);
    // A filter may take its own place, and a device is not replaced.
    folder.ok(&["merge", "f", "--filter", "f", "-o", "f"]);
    folder.ok(&["build", "-o", "/dev/null", "/dev/null", "--keys", "1"]);
}

#[test]
fn inputs_that_are_not_there_are_noticed_before_any_is_read() {
    let folder = Folder::new();
    folder.write("keys", numbers(10));
    folder.ok(&["build", "-o", "f", "keys"]);
    for args in [
        &["check", "f", "keys", "missing"][..],
        &["uniq", "--keys", "10", "keys", "missing"],
        &["build", "--keys", "10", "-o", "g", "keys", "missing"],
        &["add", "f", "keys", "missing"],
    ] {
        folder.run(args).refused(&["cannot open missing: No such file"]);
    }
    folder.run(&["check", "f", "keys", "."]).refused(&[". is a directory"]);
    folder.feed(&["check", "f", "-", "-"], "1\n").refused(&["stdin can be read only once"]);
    folder.feed(&["uniq", "--keys", "9", "-", "-"], "1\n").refused(&["only once"]);
    assert_eq!(folder.names(), ["f", "keys"]);
}
