//! Filters packed, projected and patched.

use crate::tool::{Folder, numbers};

/// Kinds whose filters change, and so have deltas.
const CHANGING: [&str; 14] = [
    "bloom",
    "counting",
    "blocked",
    "rank-indexed",
    "rank-set",
    "rank-counting",
    "rank-map",
    "blocked-rank",
    "blocked-map",
    "balanced-single",
    "balanced-sequential",
    "balanced-mht",
    "balanced-popcount",
    "balanced-two-choice",
];

#[test]
fn packed_filters_are_smaller_and_the_same() {
    let folder = Folder::new();
    folder.write("keys", numbers(5000));
    for kind in CHANGING.iter().chain(&["compressed", "partitioned", "ribbon"]) {
        folder.ok(&["build", "--kind", kind, "--bits-per-key", "40", "-o", "f", "keys"]);
        for best in [&[][..], &["--best"]] {
            let mut args = vec!["pack", "--json", "f", "-o", "p"];
            args.extend(best);
            let facts = folder.json(&args);
            assert_eq!(facts["kind"], *kind);
            let bytes = facts["packed_bytes"].as_u64().expect("bytes");
            assert_eq!(folder.read("p").len() as u64, bytes);
            let entropy = facts["entropy_bytes"].as_f64().expect("a bound");
            assert!(
                bytes as f64 > 0.9 * entropy && (bytes as f64) < 1.1 * entropy + 300.0,
                "{facts}"
            );
            assert_eq!(folder.content_id("p"), folder.content_id("f"));
            assert_eq!(folder.ok(&["check", "-c", "p", "keys"]), "5000\n");
            folder.ok(&["unpack", "p", "-o", "u"]);
            assert_eq!(folder.read("u"), folder.read("f"), "{kind}");
        }
    }
}

#[test]
fn arrays_are_packed_in_pieces() {
    let folder = Folder::new();
    folder.write("keys", numbers(5000));
    folder.ok(&[
        "build",
        "--kind",
        "bloom",
        "--bits-per-key",
        "16",
        "--param",
        "hashes=2",
        "-o",
        "f",
        "keys",
    ]);
    let whole = folder.json(&["pack", "--json", "f", "-o", "p"]);
    let cut = folder.json(&["pack", "--json", "--pieces", "1000", "f", "-o", "q"]);
    assert_eq!(
        (&whole["piece_bytes"], &cut["piece_bytes"]),
        (&serde_json::Value::Null, &1024.into())
    );
    let [whole, cut] = [whole, cut].map(|facts| facts["packed_bytes"].as_u64().expect("bytes"));
    assert!(whole < cut && cut < whole + 200, "{whole} {cut}");
    assert_eq!(folder.ok(&["check", "-c", "q", "keys"]), "5000\n");
    folder.ok(&["unpack", "q", "-o", "u"]);
    assert_eq!(folder.read("u"), folder.read("f"));
    folder.ok(&["build", "--kind", "dleft", "-o", "d", "keys"]);
    folder.run(&["pack", "--pieces", "4KiB", "d", "-o", "q"]).refused(&["--pieces", "dleft"]);
}

#[test]
fn readers_of_a_counting_filter_need_only_its_bits() {
    let folder = Folder::new();
    folder.write("keys", numbers(500));
    folder.ok(&["build", "--kind", "counting", "--rate", "0.1%", "-o", "c", "keys"]);
    folder.ok(&["build", "--kind", "bloom", "--rate", "0.1%", "-o", "b", "keys"]);
    folder.ok(&["pack", "--plain", "c", "-o", "p"]);
    assert_eq!(folder.content_id("p"), folder.content_id("b"));
}

#[test]
fn deltas_turn_the_old_filter_into_the_new_one() {
    let folder = Folder::new();
    folder.write("keys", numbers(3000));
    folder.write("more", "one\ntwo\nthree\n");
    folder.write("most", "four\nfive\n");
    for kind in CHANGING {
        folder.ok(&["build", "--kind", kind, "--keys", "4000", "-o", "a", "keys"]);
        folder.ok(&["add", "a", "-o", "b", "more"]);
        folder.ok(&["add", "b", "-o", "c", "most"]);
        let facts = folder.json(&["diff", "--json", "a", "b", "-o", "ab"]);
        assert_eq!(facts["object"], "delta");
        assert_eq!(facts["base"].as_str(), Some(folder.content_id("a").as_str()));
        folder.ok(&["diff", "b", "--filter", "c", "-o", "bc"]);
        assert!(folder.read("ab").len() < 500, "{kind}");
        let told = folder.json(&["info", "--json", "ab"]);
        assert_eq!(told, facts);
        assert!(folder.ok(&["info", "ab"]).contains("delta"));
        folder.ok(&["patch", "a", "ab", "bc", "-o", "n"]);
        assert_eq!(folder.read("n"), folder.read("c"), "{kind}");
        // Deltas in the wrong order are refused, and change nothing.
        let before = folder.read("a");
        folder.run(&["patch", "a", "bc"]).refused(&["bc: the delta is for content"]);
        assert_eq!(folder.read("a"), before);
        folder.run(&["patch", "a", "b"]).refused(&["this is a filter, not a delta"]);
        folder.run(&["check", "ab", "keys"]).refused(&["this is a delta, not a filter"]);
        folder.ok(&["patch", "a", "ab"]);
        let after = folder.read("a");
        let again = folder.run(&["patch", "a", "ab"]);
        assert!(again.code == Some(0) && again.stderr.contains("a already is the result of ab"));
        assert_eq!(folder.read("a"), after);
        assert_eq!(folder.content_id("a"), folder.content_id("b"));
    }
    for kind in ["partitioned", "compressed", "ribbon"] {
        folder.ok(&["build", "--kind", kind, "-o", "s", "keys"]);
        folder.run(&["diff", "s", "s", "-o", "d"]).refused(&["send snapshots instead of deltas"]);
    }
    folder.run(&["add", "s", "more"]).refused(&["kinds that can: bloom"]);
    folder.run(&["diff", "a", "s", "-o", "d"]).refused(&["differ in kind"]);
}
