//! Every verb does what its help says.

use serde_json::Value;

use crate::tool::{Folder, numbers};

#[test]
fn build_inserts_every_line_and_check_finds_it() {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    for kind in ["bloom", "counting", "blocked"] {
        folder.ok(&["build", "--kind", kind, "--rate", "1%", "-o", "f", "keys"]);
        assert_eq!(folder.ok(&["check", "f", "keys"]), numbers(1000), "{kind}");
        let facts = folder.json(&["info", "--json", "f"]);
        assert_eq!(facts["kind"], kind);
        assert_eq!((facts["keys"].as_u64(), facts["capacity"].as_u64()), (Some(1000), Some(1000)));
    }
}

#[test]
fn sizes_are_met() {
    let folder = Folder::new();
    folder.write("keys", numbers(10_000));
    let bits = |options: &[&str]| {
        let args = [&["build", "-o", "f"], options, &["keys"]].concat();
        folder.ok(&args);
        let facts = folder.json(&["info", "--json", "f"]);
        facts["params"]["bits"].as_u64().expect("bits")
    };
    assert_eq!(bits(&["--bits-per-key", "12"]), 120_000);
    assert_eq!(bits(&["--memory", "8KiB"]), 65_536);
    assert_eq!(bits(&["--param", "bits=60000", "--memory", "8KiB"]), 60_000);
    assert_eq!(bits(&["--rate", "1%"]), bits(&[]), "1% is the default");
    assert!(bits(&["--rate", "0.1%"]) > bits(&["--rate", "1%"]));
}

#[test]
fn a_crowded_table_says_so_and_loses_nothing() {
    let folder = Folder::new();
    let build = |keys: String| {
        folder.write("keys", keys.clone());
        let fixed = ["--param", "buckets=64", "--param", "remainder=14"];
        let run =
            folder.run(&[&["build", "--kind", "dleft"], &fixed[..], &["-o", "f", "keys"]].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert_eq!(folder.ok(&["check", "f", "keys"]), keys);
        folder.json(&["info", "--json", "f"])
    };
    // 4 subtables of 64 buckets of 8 cells: a load of 6 and of 7.5; then a key with more copies
    // than a cell counts.
    let facts = build(numbers(1536));
    assert_eq!((&facts["warning"], &facts["overflow"]), (&Value::Null, &0.into()));
    let facts = build(numbers(1920));
    assert!(facts["warning"].as_str().expect("a warning").contains("the table is 93."));
    assert!(build(numbers(1920) + &"7\n".repeat(50))["overflow"].as_u64() > Some(0));
    let run = folder.run(&["info", "f"]);
    assert!(run.stderr.contains("entries beside it: answers stay right"), "{}", run.stderr);
    assert!(String::from_utf8_lossy(&run.stdout).contains("overflow"));
}

#[test]
fn more_lines_than_planned_are_noted() {
    let folder = Folder::new();
    folder.write("keys", numbers(100));
    folder.feed(&["build", "--keys", "10", "-o", "f"], "").ok();
    let run = folder.run(&["add", "--overfill", "f", "keys"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("holds 100 keys but was planned for 10"), "{}", run.stderr);
    let facts = folder.json(&["info", "--json", "f"]);
    assert!(facts["warning"].as_str().expect("a warning").contains("planned for 10"));
    let run = folder.run(&["info", "f"]);
    assert!(run.stderr.contains("planned for 10"), "{}", run.stderr);
}

#[test]
fn repeats_are_not_too_many() {
    let folder = Folder::new();
    let twice = numbers(1000).repeat(2);
    for kind in ["bloom", "blocked", "blocked-rank"] {
        let build = ["build", "--kind", kind, "--keys", "1000", "-o", "f"];
        folder.feed(&build, &twice).ok();
        assert_eq!(folder.json(&["info", "--json", "f"])["warning"], Value::Null, "{kind}");
        let run = folder.feed(&["add", "--overfill", "f"], numbers(1200));
        assert!(run.stderr.contains("3200 keys but was planned for 1000"), "{}", run.stderr);
    }
}

#[test]
fn a_filter_planned_for_no_keys_is_soon_crowded() {
    let folder = Folder::new();
    folder.write("keys", numbers(5));
    folder.write("none", "");
    let run = folder.run(&["build", "-o", "f", "none"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.contains("no keys came") && run.stderr.contains("--keys N"));
    folder.ok(&["build", "--keys", "0", "-o", "g", "none"]);
    for filter in ["f", "g"] {
        let facts = folder.json(&["info", "--json", filter]);
        assert_eq!(
            (&facts["bits_per_key"], &facts["wire_bits_per_key"]),
            (&Value::Null, &Value::Null)
        );
        let run = folder.run(&["add", "--overfill", filter, "keys"]);
        assert!(run.stderr.contains("holds 5 keys but was planned for 1"), "{}", run.stderr);
    }
}

#[test]
fn few_keys_are_legal() {
    let folder = Folder::new();
    for (n, kind) in [0, 1, 2].into_iter().zip(["bloom", "counting", "blocked"]) {
        folder.write("keys", numbers(n));
        let run = folder.run(&["build", "--kind", kind, "-o", "f", "keys"]);
        assert_eq!((run.code, run.stderr.contains("no keys came")), (Some(0), n == 0));
        folder.ok(&["verify", "f"]);
        let run = folder.run(&["check", "f", "keys"]);
        assert_eq!((run.code, run.text()), (Some((n == 0).into()), numbers(n)));
        folder.json(&["plan", "--keys", &n.to_string(), "--kind", kind, "--json"]);
    }
}

#[test]
fn check_selects_as_grep_does() {
    let folder = Folder::new();
    folder.write("keys", "apple\npear\n");
    folder.ok(&["build", "--rate", "1e-9", "-o", "f", "keys"]);
    let input = "apple\nfig\npear\nplum\n";
    assert_eq!(folder.feed(&["check", "f"], input).ok(), "apple\npear\n");
    assert_eq!(folder.feed(&["check", "-v", "f"], input).ok(), "fig\nplum\n");
    assert_eq!(folder.feed(&["check", "-c", "f"], input).ok(), "2\n");
    assert_eq!(folder.feed(&["check", "-q", "f"], input).ok(), "");
    let facts = folder.feed(&["check", "--json", "f", "-"], input).ok();
    let facts: serde_json::Value = serde_json::from_str(&facts).expect("JSON");
    assert_eq!((facts["lines"].as_u64(), facts["selected"].as_u64()), (Some(4), Some(2)));
    for args in [&["check", "f"][..], &["check", "-q", "f"]] {
        let none = folder.feed(args, "fig\n");
        assert_eq!((none.code, none.text().as_str(), none.stderr.as_str()), (Some(1), "", ""));
    }
    let none = folder.feed(&["check", "-c", "f"], "fig\n");
    assert_eq!((none.code, none.text().as_str()), (Some(1), "0\n"));
}

#[test]
fn mapped_answers_are_loaded_answers() {
    let folder = Folder::new();
    folder.write("keys", numbers(2_000));
    folder.write("questions", numbers(40_000));
    for kind in ["bloom", "counting", "blocked"] {
        folder.ok(&["build", "--kind", kind, "--rate", "5%", "-o", "f", "keys"]);
        let loaded = folder.ok(&["check", "f", "questions"]);
        assert!(loaded.lines().count() > 2_000, "some absent keys pass at 5%");
        assert_eq!(folder.ok(&["check", "--mmap", "f", "questions"]), loaded, "{kind}");
    }
}

#[test]
fn add_changes_the_file_or_another() {
    let folder = Folder::new();
    folder.write("keys", "apple\n");
    folder.write("more", "pear\n");
    folder.ok(&["build", "--keys", "10", "--rate", "1e-9", "-o", "f", "keys"]);
    folder.ok(&["add", "f", "-o", "g", "more"]);
    assert_eq!(folder.run(&["check", "f", "more"]).code, Some(1));
    assert_eq!(folder.ok(&["check", "g", "keys", "more"]), "apple\npear\n");
    folder.feed(&["add", "f"], "pear\n").ok();
    assert_eq!(folder.content_id("f"), folder.content_id("g"));
}

#[test]
fn remove_does_all_lines_and_says_which_were_absent() {
    let folder = Folder::new();
    folder.write("keys", numbers(100));
    folder.ok(&["build", "--kind", "counting", "--rate", "1e-9", "-o", "f", "keys"]);
    folder.ok(&["build", "--kind", "counting", "--rate", "1e-9", "-o", "g", "keys"]);
    folder.feed(&["add", "g"], "extra\n");
    folder.feed(&["remove", "g"], "extra\n").ok();
    assert_eq!(folder.content_id("f"), folder.content_id("g"));
    let run = folder.feed(&["remove", "--json", "f"], "1\nstranger\n2\n");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("1 of 3 lines"), "{}", run.stderr);
    let facts: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!((facts["removed"].as_u64(), facts["absent"].as_u64()), (Some(2), Some(1)));
    assert_eq!(folder.feed(&["check", "-c", "f"], numbers(100)).text(), "98\n");
}

#[test]
fn remove_says_which_counts_are_lost() {
    let folder = Folder::new();
    folder.write("keys", "many\n".repeat(20) + "a\nb\n");
    folder.ok(&["build", "--kind", "counting", "--rate", "1e-9", "-o", "f", "keys"]);
    let run = folder.feed(&["remove", "f"], "many\na\n");
    let note = "1 line has reached the largest count, 15, and cannot be removed any more";
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), format!("tamis: {note}\n").as_str()));
    let run = folder.feed(&["remove", "--json", "f"], "many\nmany\nb\na\n");
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("2 lines have reached") && run.stderr.contains("1 of 4 lines"));
    let facts: Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let counts = serde_json::json!({"lines": 4, "removed": 1, "absent": 1, "saturated": 2});
    assert_eq!(facts, counts);
    // Other kinds have no such limit.
    folder.ok(&["build", "--kind", "blocked-rank", "-o", "g", "keys"]);
    folder.feed(&["remove", "g"], "many\n".repeat(20)).ok();
}

#[test]
fn a_filter_that_would_be_useless_is_left_as_it_is() {
    let folder = Folder::new();
    folder.feed(&["build", "--keys", "100", "-o", "f"], numbers(100)).ok();
    let before = folder.read("f");
    let words = ["f would answer yes for", "--keys 10100", "--overfill"];
    folder.feed(&["add", "f"], numbers(10_000)).refused(&words);
    folder.feed(&["add", "f", "-o", "g"], numbers(10_000)).refused(&words);
    assert_eq!((folder.read("f"), folder.names()), (before, vec!["f".to_owned()]));
    let run = folder.feed(&["add", "--overfill", "f"], numbers(10_000));
    assert_eq!(run.code, Some(0));
    assert_eq!(folder.json(&["info", "--json", "f"])["keys"], 10_100);
    // Kinds that grow are.
    folder.feed(&["build", "--kind", "blocked-rank", "--keys", "9", "-o", "g"], "1\n").ok();
    assert_eq!(folder.feed(&["add", "g"], numbers(10_000)).code, Some(0));
}

#[test]
fn info_goes_on_after_a_bad_file_and_names_each() {
    let folder = Folder::new();
    folder.write("keys", numbers(10));
    folder.ok(&["build", "-o", "f", "keys"]);
    let run = folder.run(&["info", "--json", "f", "missing", "keys", "f"]);
    assert_eq!((run.code, run.stderr.lines().count()), (Some(2), 2));
    let mut facts = serde_json::Deserializer::from_slice(&run.stdout).into_iter::<Value>();
    for _ in 0..2 {
        let facts = facts.next().expect("two filters").expect("JSON");
        assert_eq!((&facts["file"], &facts["kind"]), (&"f".into(), &"bloom".into()));
    }
    assert!(folder.json(&["info", "--json", "f"])["file"].is_null());
    let run = folder.run(&["info", "missing", "f", "f"]);
    assert_eq!((run.code, run.text().matches("f:\nkind").count()), (Some(2), 2));
}

#[test]
fn count_prints_multiplicities() {
    let folder = Folder::new();
    folder.write("keys", "a\nb\na\n".to_owned() + &"many\n".repeat(20));
    folder.ok(&["build", "--kind", "counting", "--rate", "1e-9", "-o", "f", "keys"]);
    let input = "a\nb\nc\nmany\n";
    assert_eq!(folder.feed(&["count", "f"], input).ok(), "2\ta\n1\tb\n0\tc\n15+\tmany\n");
    let json = folder.feed(&["count", "--json", "f"], input).ok();
    let counts: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect();
    assert_eq!(counts[0], serde_json::json!({"key": "a", "count": 2}));
    assert_eq!(counts[3], serde_json::json!({"key": "many", "count": null}));
}

#[test]
fn check_asks_for_keys_that_are_named() {
    let folder = Folder::new();
    folder.feed(&["build", "--rate", "1e-9", "-o", "f"], "a\n-b\n").ok();
    assert_eq!(folder.ok(&["check", "f", "--key", "a", "--key", "c", "--key", "-b"]), "a\n-b\n");
    assert_eq!(folder.run(&["check", "f", "--key", "c"]).code, Some(1));
    assert_eq!(folder.ok(&["check", "-v", "f", "--key", "c"]), "c\n");
    folder.run(&["check", "f", "--key", "a", "keys"]).refused(&["--key"]);
}

#[test]
fn maps_keep_values() {
    let folder = Folder::new();
    for kind in ["rank-map", "blocked-map", "dleft"] {
        let build = ["build", "--kind", kind, "--ops", "insert,remove,value=8", "--rate", "1e-6"];
        folder.feed(&[&build[..], &["--keys", "100", "-o", "m"]].concat(), "").ok();
        folder.feed(&["map", "set", "m"], "web\t80\na\tb\t7\nweb\t81\n").ok();
        assert_eq!(
            folder.feed(&["map", "get", "m"], "a\tb\nnone\nweb\n").ok(),
            "a\tb\t7\nweb\t80,81\n"
        );
        folder.feed(&["map", "unset", "m"], "web\t80\n").ok();
        assert_eq!(folder.feed(&["map", "get", "m"], "web\n").ok(), "web\t81\n");
        assert_eq!(folder.feed(&["map", "unset", "m"], "web\t80\n").code, Some(1));
        assert_eq!(folder.feed(&["map", "get", "m"], "none\n").code, Some(1));
        let before = folder.read("m");
        for (line, words) in [("x", "no tab"), ("x\ty", "no number"), ("x\t256", "up to 255")] {
            folder
                .feed(&["map", "set", "m"], format!("ok\t1\n{line}\n"))
                .refused(&["line 2", words]);
        }
        assert_eq!(folder.read("m"), before);
    }
    folder.feed(&["build", "-o", "f"], "a\n").ok();
    folder.feed(&["map", "get", "f"], "a\n").refused(&["bloom", "value=8"]);
}

#[test]
fn info_takes_several_files() {
    let folder = Folder::new();
    folder.feed(&["build", "-o", "f"], "a\n").ok();
    folder.feed(&["build", "-o", "g"], "b\n").ok();
    let both = folder.ok(&["info", "f", "g"]);
    assert!(both.starts_with("f:\nkind") && both.contains("\n\ng:\nkind"), "{both}");
    assert_eq!(folder.ok(&["info", "--json", "f", "g"]).matches("content_id").count(), 2);
}

#[test]
fn streams_grow_and_lose_nothing() {
    let folder = Folder::new();
    // Past several sizes, and past what is kept in memory.
    let lines = numbers(1_300_000);
    folder.write("lines", &lines);
    for keys in [&[][..], &["--keys", "1000"]] {
        let run = folder.feed(&[&["uniq", "-o", "seen"], keys].concat(), &lines);
        let printed = run.ok().lines().count();
        // At 1e-6 one and a bit may be dropped; ten or more would be a wonder.
        assert!((1_299_990..=1_300_000).contains(&printed), "{printed}");
        assert_eq!(folder.ok(&["check", "-c", "seen", "lines"]), "1300000\n");
        let facts = folder.json(&["info", "--json", "seen"]);
        assert!(facts["keys"].as_u64() <= facts["capacity"].as_u64(), "{facts}");
    }
    // Where lines are dropped, all that were printed are in, before and after the filter grew.
    let run = folder.feed(&["uniq", "--rate", "1%", "-o", "seen"], &lines);
    let printed = run.ok();
    let number = printed.lines().count();
    assert!((1_287_000..1_299_900).contains(&number), "{number}");
    folder.write("printed", printed);
    assert_eq!(folder.ok(&["check", "-c", "seen", "printed"]), format!("{number}\n"));
    // What is built from a pipe is what is built from a file, whatever the kind.
    for kind in ["bloom", "blocked-rank", "compressed"] {
        folder.ok(&["build", "--kind", kind, "-o", "counted", "lines"]);
        folder.feed(&["build", "--kind", kind, "-o", "piped"], &lines).ok();
        assert_eq!(folder.read("piped"), folder.read("counted"), "{kind}");
    }
    let more = folder.feed(&["build", "--keys", "1000", "-o", "more"], &lines);
    assert!(more.stderr.contains("more than --keys 1000"), "{}", more.stderr);
    let planned = || folder.json(&["info", "--json", "more"])["capacity"].clone();
    assert_eq!(planned(), 1_300_000);
    // Repeats are not counted where the number of keys was said.
    for fixed in [&[][..], &["--fixed"]] {
        let build = ["build", "--kind=rank-set", "--keys", "5000", "-o", "more"];
        let run = folder.feed(&[&build[..], fixed].concat(), numbers(5000).repeat(9));
        assert_eq!((run.code, planned()), (Some(0), 5000.into()));
    }
}

#[test]
fn uniq_prints_first_occurrences_and_remembers() {
    let folder = Folder::new();
    folder.write("keys", "b\na\nb\nc\na\n");
    assert_eq!(folder.ok(&["uniq", "--rate", "1e-9", "keys"]), "b\na\nc\n");
    folder.ok(&["uniq", "--keys", "100", "--rate", "1e-9", "-o", "seen", "keys"]);
    assert_eq!(folder.json(&["info", "--json", "seen"])["keys"], 3);
    // Repeats near and far: within what is fetched at once, and beyond it.
    let near = (0..20_000).map(|i| format!("{}\n{}\n{}\n", i, i / 2, i % 1000)).collect::<Vec<_>>();
    let mut once = std::collections::HashSet::new();
    let near = near.concat();
    let first: Vec<_> = near.lines().filter(|line| once.insert(*line)).collect();
    let run = folder.feed(&["uniq", "--keys", "20k", "--rate", "1e-9"], &near);
    assert_eq!(run.ok().lines().collect::<Vec<_>>(), first);
    let run = folder.feed(&["uniq", "--filter", "seen", "-o", "seen"], "a\nd\n");
    assert_eq!(run.ok(), "d\n");
    assert_eq!(folder.feed(&["uniq", "--filter", "seen"], "d\ne\n").ok(), "e\n");
    for size in [["--rate", "1%"], ["--wire", "10kB"]] {
        folder.run(&["uniq", "--filter", "seen", size[0], size[1]]).refused(&[size[0]]);
    }
}

/// By the clock of the events: an hour is cut into four, so a line goes after an hour, and before
/// an hour and a quarter.
#[test]
fn uniq_within_a_time_prints_lines_again() {
    let folder = Folder::new();
    let event = |user: u64, at: f64| format!("{{\"user\": {user}, \"at\": {at}}}\n");
    let uniq = ["uniq", "--within", "1h", "--jsonl", "user", "--time", "at"];
    for (at, printed) in
        [(0.0, false), (1800.0, false), (3600.0, false), (4500.0, true), (1e9, true)]
    {
        let (first, again) = (event(7, 0.0), event(7, at));
        let run = folder.feed(&uniq, [&*first, &again].concat());
        let expected = if printed { [&*first, &again].concat() } else { first.clone() };
        assert_eq!(run.ok(), expected, "{at}");
    }
    // A line that comes every minute is printed once in every period, and a clock that goes back
    // loses nothing.
    let often: String = (0..600).map(|minute| event(7, f64::from(minute) * 60.0)).collect();
    let printed = folder.feed(&uniq, &often).ok().lines().count();
    assert!((8..=10).contains(&printed), "{printed}");
    let back = [event(1, 9000.0), event(2, 0.0), event(2, 3600.0), event(1, 1.0)].concat();
    assert_eq!(folder.feed(&uniq, &back).ok().lines().count(), 2);
    // Far more lines than the first filter is planned for, all within the time.
    let many: String = (0..3000).chain(0..3000).map(|user| event(user, 5.5)).collect();
    let run = folder.feed(&[&uniq[..], &["--keys", "10"]].concat(), &many);
    assert_eq!(run.ok().lines().count(), 3000);
    // By the clock of the machine.
    assert_eq!(
        folder.feed(&["uniq", "--within", "1d", "--steps", "8"], "a\nb\na\n").ok(),
        "a\nb\n"
    );
    for (options, word) in [
        (&["--within", "0"][..], "remembers nothing"),
        (&["--within", "1y"], "unit of time"),
        (&["--within", "1h", "--steps", "65"], "65"),
        (&["--within", "1h", "-o", "seen"], "--output"),
        (&["--within", "1h", "--fixed", "--keys", "9"], "--fixed"),
        (&["--time", "at", "--jsonl", "user"], "--within"),
    ] {
        folder.feed(&[&["uniq"], options].concat(), "a\n").refused(&[word]);
    }
    let refused = folder.feed(&uniq, "{\"user\": 1, \"at\": \"noon\"}\n");
    refused.refused(&["'noon' is no time in seconds"]);
}

#[test]
fn merge_is_building_from_all_keys() {
    let folder = Folder::new();
    folder.write("a", "1\n2\n");
    folder.write("b", "3\n");
    for kind in ["bloom", "counting", "blocked"] {
        for (filter, keys) in [("fa", &["a"][..]), ("fb", &["b"]), ("fab", &["a", "b"])] {
            let args = [&["build", "--kind", kind, "--keys", "10", "-o", filter], keys].concat();
            folder.ok(&args);
        }
        folder.ok(&["merge", "fa", "fb", "-o", "m"]);
        for args in [&["fa", "--filter", "fb"][..], &["--filter", "fa", "--filter", "fb"]] {
            folder.ok(&[&["merge", "-o", "n"], args].concat());
            assert_eq!(folder.read("m"), folder.read("n"));
        }
        assert_eq!(folder.content_id("m"), folder.content_id("fab"), "{kind}");
        assert_eq!(folder.read("m"), folder.read("fab"), "{kind}");
    }
}

#[test]
fn info_has_the_facts_of_the_contract() {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    folder.ok(&["build", "--hash", "sip13", "--seed", "0xffffffffffffffffff", "-o", "f", "keys"]);
    let facts = folder.json(&["info", "--json", "f"]);
    assert_eq!((facts["kind"].as_str(), facts["hash"].as_str()), (Some("bloom"), Some("sip13")));
    assert_eq!(facts["seed"], "0xffffffffffffffffff");
    assert!(facts["params"]["bits"].is_u64() && facts["params"]["hashes"].is_u64());
    assert_eq!(facts["content_id"].as_str().map(str::len), Some(32));
    let rate = facts["predicted_rate"].as_f64().expect("a rate");
    assert!((0.005..0.02).contains(&rate), "{rate}");
    assert!((0.4..0.6).contains(&facts["fill"].as_f64().expect("a share")));
    let file_bytes = facts["file_bytes"].as_u64().expect("bytes");
    assert_eq!(file_bytes, folder.read("f").len() as u64);
    assert_eq!(facts["wire_bits_per_key"].as_f64(), Some(file_bytes as f64 * 8.0 / 1000.0));
    assert!(facts["bits_per_key"].as_f64().expect("bits") > 9.0);
    let table = folder.ok(&["info", "f"]);
    for word in ["kind", "bloom", "rate", "content id", "sip13"] {
        assert!(table.contains(word), "{word} is not in\n{table}");
    }
}

#[test]
fn inspect_draws_header_and_bits() {
    let folder = Folder::new();
    folder.write("keys", "apple\npear\n");
    for (kind, drawn) in [("bloom", "#"), ("counting", "2"), ("blocked", "block 0")] {
        folder.ok(&["build", "--kind", kind, "-o", "f", "keys"]);
        let picture = folder.ok(&["inspect", "f"]);
        for word in ["89 54 41 4d 49 53 0d 0a", "magic", "section 0 offset", "raw", kind, drawn] {
            assert!(picture.contains(word), "{word} is not in\n{picture}");
        }
        let facts = folder.json(&["inspect", "--json", "f"]);
        let fields = facts["fields"].as_array().expect("fields");
        let last = fields.last().expect("a field");
        let end = last["offset"].as_u64().expect("an offset") + 8;
        assert_eq!(Some(end), facts["header_bytes"].as_u64(), "every byte has a name");
        assert_eq!(facts["sections"][0]["encoding"], "raw");
    }
    folder.write("keys", numbers(10_000));
    // An encoding of the kind's own has no bits to draw.
    folder.ok(&["build", "--kind", "rank-indexed", "-o", "f", "keys"]);
    let picture = folder.ok(&["inspect", "f"]);
    for word in ["locations", "trimmed", "bytes from byte", "bytes more"] {
        assert!(picture.contains(word), "{word} is not in\n{picture}");
    }
    assert_eq!(folder.feed(&["inspect", "-"], folder.read("f")).ok(), picture);
    folder.ok(&["build", "-o", "f", "keys"]);
    let picture = folder.ok(&["inspect", "f"]);
    assert!(picture.contains("more") && picture.lines().count() < 120, "{picture}");
}

#[test]
fn inspect_draws_what_is_left_of_a_damaged_filter() {
    let folder = Folder::new();
    folder.write("keys", numbers(100));
    folder.ok(&["build", "-o", "f", "keys"]);
    let whole = folder.read("f");
    let header = folder.ok(&["inspect", "f"]);
    let header = header.split("\n\n").nth(1).expect("the fields");
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("a byte") ^= 1;
    folder.write("flipped", &flipped);
    folder.write("cut", &whole[..whole.len() - 9]);
    folder.write("bare", &whole[..112]);
    folder.write("long", [&whole[..], b"\n"].concat());
    for (file, words) in [
        ("flipped", "flipped: section data: checksum"),
        ("cut", "cut: the file is cut off: "),
        ("bare", "bare: the file is cut off: 112 bytes of "),
        ("long", "long: 1 byte too many at the end"),
    ] {
        let run = folder.run(&["inspect", file]);
        assert_eq!(run.code, Some(2), "{file}");
        assert!(run.stderr.contains(words) && run.stderr.lines().count() == 1, "{}", run.stderr);
        let picture = run.text();
        for part in [header, "bytes from byte 128 on:"] {
            assert!(picture.contains(part), "{part} is not in\n{picture}");
        }
        let run = folder.run(&["inspect", "--json", file]);
        let facts: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
        assert_eq!((run.code, facts["header_bytes"].as_u64()), (Some(2), Some(112)));
        let error = facts["error"].as_str().expect("an error");
        assert!(format!("{file}: {error}").starts_with(words), "{error}");
        let piped = folder.feed(&["inspect", "-"], folder.read(file));
        assert_eq!((piped.code, piped.text()), (Some(2), picture));
    }
    folder.write("damaged", [&whole[..40], b"?", &whole[41..]].concat());
    folder.run(&["inspect", "damaged"]).refused(&["damaged: header: checksum"]);
}

#[test]
fn verify_names_the_damaged_field() {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    folder.ok(&["build", "-o", "f", "keys"]);
    assert_eq!(folder.ok(&["verify", "f"]), "f: ok\n");
    let mut bytes = folder.read("f");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    folder.write("damaged", bytes);
    let run = folder.run(&["verify", "damaged", "f"]);
    assert_eq!((run.code, run.text().as_str()), (Some(2), "f: ok\n"));
    assert!(run.stderr.contains("damaged: section data"), "{}", run.stderr);
    let run = folder.run(&["verify", "--json", "f", "damaged"]);
    assert_eq!(run.code, Some(2));
    let facts: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    assert_eq!((facts[0]["ok"].as_bool(), facts[1]["ok"].as_bool()), (Some(true), Some(false)));
    assert!(facts[1]["error"].as_str().expect("an error").contains("section data"));
}

/// At ten million keys: records/2026-11-15-planner.md.
#[test]
fn seeds_decide_content() {
    let folder = Folder::new();
    folder.write("keys", numbers(100));
    let id = |options: &[&str]| {
        let _ = std::fs::remove_file(folder.join("f")); // a secret in a public file would be noted
        folder.ok(&[&["build", "-o", "f"], options, &["keys"]].concat());
        folder.content_id("f")
    };
    assert_eq!(id(&[]), id(&["--seed", "0"]));
    assert_eq!(id(&["--seed", "255"]), id(&["--seed", "0xff"]));
    assert_ne!(id(&["--seed", "1"]), id(&["--seed", "2"]));
    assert_ne!(id(&["--random-seed"]), id(&["--random-seed"]));
    assert_eq!(folder.json(&["info", "--json", "f"])["hash"], "sip13");
}

#[test]
fn completions_and_manual_pages_are_written() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(folder.ok(&["completions", shell]).contains("tamis"), "{shell}");
    }
    assert!(folder.ok(&["man"]).contains(".TH tamis 1"));
    folder.ok(&["man", "--dir", "."]);
    let names = folder.names();
    assert!(names.contains(&"tamis.1".to_owned()) && names.contains(&"tamis-build.1".to_owned()));
}

#[test]
fn every_help_has_an_example() {
    let folder = Folder::new();
    let help = folder.ok(&["--help"]);
    let (_, verbs) = help.split_once("Commands:\n").expect("the verbs");
    let (verbs, _) = verbs.split_once("\n\n").expect("an end of the verbs");
    // (Lines with more than two spaces in front go on from the line before.)
    let verbs = verbs.lines().filter_map(|line| line.strip_prefix("  "));
    let verbs: Vec<_> = verbs.filter(|line| !line.starts_with(' ')).collect();
    assert!(verbs.len() > 20, "{verbs:?}");
    let verbs = verbs.iter().filter_map(|line| line.split_whitespace().next());
    for verb in verbs.filter(|verb| *verb != "help") {
        let help = folder.ok(&[verb, "--help"]);
        assert!(help.contains("Example") && help.contains(&format!("tamis {verb}")), "{help}");
        assert_eq!(folder.ok(&["help", verb]), help);
    }
    assert!(folder.ok(&["uniq", "--help"]).contains("may be dropped"));
    for (verb, may_be_left_out) in
        [("build", true), ("uniq", true), ("plan", false), ("bench", false)]
    {
        let help = folder.ok(&[verb, "--help"]);
        assert!(help.contains("Keys to plan for"), "{help}");
        assert_eq!(help.contains("may be left out"), may_be_left_out, "{help}");
    }
}

#[test]
fn bench_prints_the_facts_of_the_contract() {
    let folder = Folder::new();
    for kind in ["bloom", "counting", "blocked"] {
        for keys in ["0", "1", "2", "5000"] {
            let facts = folder.json(&[
                "bench",
                "--kind",
                kind,
                "--keys",
                keys,
                "--rate",
                "2%",
                "--queries",
                "200k",
                "--json",
            ]);
            for name in [
                "kind",
                "keys",
                "params",
                "target_rate",
                "predicted_rate",
                "fill_rate",
                "measured_rate",
                "rate_low",
                "rate_high",
                "queries",
                "false_negatives",
                "bits_per_key",
                "wire_bits_per_key",
                "insert_ns",
                "hit_ns",
                "miss_ns",
                "remove_ns",
                "batch_miss_ns",
                "blocks_per_insert",
                "blocks_per_hit",
                "blocks_per_miss",
                "overflow_share",
            ] {
                assert!(facts.get(name).is_some(), "{name} is missing");
            }
            assert_eq!(facts["false_negatives"], 0);
            assert_eq!(facts["remove_ns"].is_number(), kind == "counting");
            let number = |name: &str| facts[name].as_f64().expect("a number");
            assert!(number("rate_low") <= number("predicted_rate"));
            assert!(number("predicted_rate") <= number("rate_high"));
        }
    }
    folder.run(&["bench", "--rate", "1%"]).refused(&["--keys"]);
}
