//! Plans, and what is built from them, keep their promises.

use crate::tool::{Folder, numbers};

#[test]
fn plan_keeps_its_contract() {
    let folder = Folder::new();
    let goal = ["plan", "--keys", "1M", "--rate", "0.1%", "--json"];
    let all = folder.json(&goal);
    let all = all.as_array().expect("an array");
    for kind in ["bloom", "counting", "blocked"] {
        assert_eq!(all.iter().filter(|plan| plan["kind"] == kind).count(), 1, "{kind}");
    }
    assert!(all.iter().all(|plan| plan["reason"].is_string()));
    let bits = |plan: &serde_json::Value| plan["predicted"]["bits_per_key"].as_f64();
    let least = folder.json(&[&goal[..], &["--minimise", "memory"]].concat());
    let least = least.as_array().expect("an array");
    assert!(least.is_sorted_by_key(|plan| bits(plan).expect("bits")), "best first");
    for kind in ["bloom", "counting", "blocked"] {
        let plan = folder.json(&[&goal[..], &["--kind", kind, "--seed", "7"]].concat());
        assert_eq!(plan["kind"], kind);
        assert!(
            plan["params"].as_object().expect("params").values().all(serde_json::Value::is_u64)
        );
        for fact in [
            "rate",
            "bits_per_key",
            "wire_bits_per_key",
            "blocks_per_insert",
            "blocks_per_hit",
            "blocks_per_miss",
            "snapshot_bytes",
        ] {
            assert!(plan["predicted"][fact].is_f64(), "{fact}");
        }
        assert!(plan["predicted"]["rate"].as_f64() <= Some(0.001));
    }
    assert!(folder.ok(&["plan", "--keys", "1M"]).contains("blocked"));
}

#[test]
fn estimates_are_called_so() {
    let folder = Folder::new();
    let build = |said, keys| {
        let run = folder.feed(&["build", "--keys", said, "-o", "f"], numbers(keys));
        assert_eq!(run.code, Some(0));
        run.stderr
    };
    assert!(build("1000", 200_000).contains("about 200000 keys came, more than --keys 1000"));
    assert!(build("1000", 1001).contains("about 1001 keys came"));
    assert!(build("10", 11).contains("tamis: 11 keys came"));
}

#[test]
fn without_keys_there_are_no_bits_per_key() {
    let folder = Folder::new();
    let plan = folder.json(&["plan", "--keys", "0", "--kind", "bloom", "--json"]);
    assert!(plan["predicted"]["bits_per_key"].is_null());
    let bench = ["bench", "--keys", "0", "--kind", "bloom", "--queries", "1k"];
    assert!(folder.json(&[&bench[..], &["--json"]].concat())["bits_per_key"].is_null());
    let text = folder.ok(&bench);
    assert!(
        text.lines().any(|line| line.starts_with("bits per key, held") && line.ends_with(" -"))
    );
}

#[test]
fn plans_keep_to_needs_and_limits() {
    let folder = Folder::new();
    let goal = ["plan", "--keys", "100k", "--rate", "0.1%", "--json"];
    let with = |more: &[&str]| folder.json(&[&goal[..], more].concat());
    let removing = with(&["--ops", "insert,remove"]);
    assert_eq!((removing[0]["kind"].as_str(), removing[7].is_null()), (Some("blocked-rank"), true));
    let limited = with(&["--max-blocks", "1.2", "--max-bits-per-key", "16", "--churn", "1%"]);
    for plan in limited.as_array().expect("an array") {
        assert!(plan["predicted"]["blocks_per_hit"].as_f64() <= Some(1.2));
        assert!(plan["predicted"]["bits_per_key"].as_f64() <= Some(16.0));
        assert!(plan["predicted"]["delta_bytes"].is_f64());
    }
    let valued = with(&["--kind", "rank-map", "--ops", "value=5"]);
    assert_eq!(valued["params"]["extra"], 5);
    let explained = with(&["--kind", "dleft", "--explain"]);
    assert!(explained["explanation"][1].as_str().expect("a line").contains("d = 4 subtables"));
    let goal = &goal[..5];
    let refused = |more: &[&str], said: &[&str]| folder.run(&[goal, more].concat()).refused(said);
    refused(&["--max-bits-per-key", "3"], &["bits of memory per key", "the nearest is"]);
    refused(&["--kind", "bloom", "--ops", "remove"], &["bloom cannot remove", "blocked-rank"]);
    refused(&["--ops", "fly"], &["insert, remove, count"]);
    refused(&["--ops", "value=99"], &["1 to 32 bits"]);
    refused(&["--max-delta", "1k"], &["--churn"]);
    refused(&["--churn", "0", "--max-delta", "1k"], &["--churn", "above 0%"]);
    refused(&["--max-snapshot", "0"], &["must be above 0"]);
    let text = folder.ok(&[goal, &["--explain", "--plot", "bits.svg"]].concat());
    assert!(text.contains("symbols") && text.contains("bits.svg"), "{text}");
    let plot = std::fs::read_to_string(folder.join("bits.svg")).expect("a plot");
    assert!(plot.starts_with("<svg") && plot.contains("information bound"));
    assert!(plot.contains("rank-indexed") && plot.contains("compressed"));
}

/// The goal of paper 004: the least rate for a message, which is then sent in no more.
#[test]
fn messages_are_planned_built_and_sent_within_their_bytes() {
    let folder = Folder::new();
    let goal = ["--keys", "5000", "--wire", "8kB"];
    let all = folder.json(&[&["plan", "--json"][..], &goal].concat());
    let rates: Vec<f64> = all
        .as_array()
        .expect("an array")
        .iter()
        .map(|plan| {
            assert!(plan["predicted"]["snapshot_bytes"].as_f64() < Some(8000.0), "{plan}");
            plan["predicted"]["rate"].as_f64().expect("a rate")
        })
        .collect();
    assert!(rates.len() > 8 && rates.is_sorted(), "{rates:?}");
    folder.write("keys", numbers(5000));
    let margin = ["--margin", "1%"];
    for kind in ["bloom", "dleft"] {
        let goal = [&goal[..], &margin, &["--kind", kind]].concat();
        let plan = folder.json(&[&["plan", "--json"][..], &goal].concat());
        folder.ok(&[&["build"][..], &goal, &["-o", "filter", "keys"]].concat());
        assert_eq!(folder.json(&["info", "--json", "filter"])["params"], plan["params"]);
        folder.ok(&["pack", "--best", "filter", "-o", "packed"]);
        let sent = folder.read("packed").len();
        assert!((7300..=8000).contains(&sent), "{kind}: {sent} bytes");
    }
    folder
        .run(&["plan", "--keys", "1M", "--wire", "1kB"])
        .refused(&["1000 bytes of snapshot", "the nearest is"]);
    folder.run(&["plan", "--keys", "1M", "--margin", "1%"]).refused(&["--wire"]);
    folder.run(&[&["plan"][..], &goal, &["--margin", "100%"]].concat()).refused(&["margin"]);
    folder.run(&[&["plan"][..], &goal, &["--rate", "1%"]].concat()).refused(&["--wire", "--rate"]);
}

#[test]
fn bench_confirms_the_best_plan() {
    let folder = Folder::new();
    let wishes = ["--keys", "50k", "--rate", "0.1%", "--ops", "insert,remove", "--json"];
    let plan = &folder.json(&[&["plan"], &wishes[..]].concat())[0];
    let kind = plan["kind"].as_str().expect("a kind");
    let bench = folder.json(&[&["bench", "--kind", kind], &wishes[..]].concat());
    assert_eq!(bench["params"], plan["params"]);
    let predicted = |fact: &str| plan["predicted"][fact].as_f64().expect("a number");
    let measured = |fact: &str| bench[fact].as_f64().expect("a number");
    assert_eq!(measured("predicted_rate"), predicted("rate"));
    assert!(
        measured("rate_low") <= predicted("rate") && predicted("rate") <= measured("rate_high")
    );
    for fact in ["bits_per_key", "wire_bits_per_key"] {
        assert!((measured(fact) / predicted(fact) - 1.0).abs() < 0.005, "{fact}: {bench}");
    }
}

#[test]
fn build_takes_the_kind_that_meets_the_goal_best() {
    let folder = Folder::new();
    folder.write("keys", numbers(1000));
    let kind = |options: &[&str]| {
        let run = folder.run(&[&["build", "-o", "f"], options, &["keys"]].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let kind =
            folder.json(&["info", "--json", "f"])["kind"].as_str().expect("a kind").to_owned();
        (kind, run.stderr)
    };
    assert_eq!(kind(&[]), ("bloom".to_owned(), String::new()));
    let (chosen, said) = kind(&["--auto", "--ops", "insert,remove"]);
    assert!(said.contains(&chosen), "{said}");
    assert!(folder.ok(&["count", "f", "keys"]).starts_with('1'));
    assert!(!said.contains("nothing can be added"), "{said}");
    let (chosen, said) = kind(&["--auto", "--minimise", "memory"]);
    assert!(said.contains("nothing can be added") && said.contains("--ops insert"), "{said}");
    folder.feed(&["add", "f"], "more\n").refused(&[&chosen, "cannot"]);
    // Needs are reason enough to choose.
    assert_eq!(kind(&["--ops", "value=4,count"]).0, "dleft");
    assert_eq!(kind(&["--minimise", "lookups"]).0, "blocked");
    folder.run(&["build", "--auto", "--kind", "bloom", "-o", "f", "keys"]).refused(&["--auto"]);
}

#[test]
fn demo_shows_promises_kept_and_writes_a_page() {
    let folder = Folder::new();
    let facts = folder.json(&["demo", "--keys", "20k", "--json"]);
    let needs = facts["needs"].as_array().expect("needs");
    assert_eq!(needs.len(), 3);
    for need in needs {
        let rows = need["rows"].as_array().expect("rows");
        assert!(rows[0]["chosen"] == true && rows[2]["name"] == "hash set");
        for row in &rows[..2] {
            let pair = |fact: &str| {
                let number = |of: &str| row[fact][of].as_f64().expect("a number");
                (number("promised"), number("measured"))
            };
            // The keys are the same in every run, and so is what is measured.
            let (promised, measured) = pair("rate");
            let end = |at: usize| row["rate_interval"][at].as_f64().expect("a number");
            assert!(end(0) <= measured && measured <= end(1), "{row}");
            assert!(0.9 * end(0) <= promised && promised <= 1.1 * end(1), "{row}");
            for fact in ["bits_per_key", "snapshot_bytes", "delta_bytes"] {
                let (promised, measured) = pair(fact);
                assert!((measured / promised - 1.0).abs() < 0.02, "{fact}: {row}");
            }
        }
        // The hash set, which is exact, takes many times as much memory.
        let bits = |row: &serde_json::Value| row["bits_per_key"]["measured"].as_f64();
        assert!(bits(&rows[2]) > bits(&rows[0]).map(|bits| 10.0 * bits), "{need}");
    }
    let page = std::fs::read_to_string(folder.join("tamis-demo.html")).expect("a page");
    assert!(
        page.starts_with("<!doctype html>")
            && page.contains("<svg")
            && page.trim_end().ends_with("</html>")
    );
    for outside in ["http://", "src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let text = folder.ok(&["demo", "--keys", "20k", "-o", "again.html"]);
    assert!(text.contains("* blocked-rank") && text.contains("again.html"), "{text}");
    folder.run(&["demo", "-o", "nowhere/x.html"]).refused(&["cannot write nowhere/x.html"]);
}

#[test]
fn peers_are_planned_for_the_fewest_bytes() {
    let folder = Folder::new();
    let plan = |more: &[&str]| {
        let args = ["plan", "--keys", "100k", "--churn", "1%", "--every", "5m", "--peers", "16"];
        folder.run(&[&args[..], more].concat())
    };
    let text = plan(&[]).ok();
    assert!(text.contains("blocked-rank") && text.contains("lost"), "{text}");
    let choices: serde_json::Value =
        serde_json::from_str(&plan(&["--json", "--max-lost", "5%"]).ok()).unwrap();
    let numbers = |name: &str| -> Vec<f64> {
        choices.as_array().unwrap().iter().map(|one| one[name].as_f64().unwrap()).collect()
    };
    assert!(numbers("bytes_an_hour").is_sorted());
    assert!(numbers("lost").iter().all(|&lost| lost < 0.0501));
    // Whole Bloom filters take several times as many bytes.
    let hours = numbers("bytes_an_hour");
    assert!(hours[hours.len() - 1] > 3.0 * hours[0], "{hours:?}");
    plan(&["--max-lost", "1e-12"]).refused(&["--max-lost"]);
    plan(&["--kind", "bloom"]).refused(&["cannot be used with"]);
    folder.run(&["plan", "--keys", "9", "--peers", "16"]).refused(&["--every"]);
    let alone = ["plan", "--keys", "9", "--churn", "1%", "--every", "5m", "--peers", "1"];
    folder.run(&alone).refused(&["nobody to tell"]);
}
