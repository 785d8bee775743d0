//! A set that changes, and followers at every distance: what they pay, and that they end with the
//! publisher's content. The large run is `examples/followers`.

#[allow(dead_code, missing_docs, reason = "the example uses all of it")]
#[path = "../examples/followers/run.rs"]
mod run;

use run::Run;

/// Bytes of a manifest.
const MANIFEST: u64 = 192;

#[test]
fn followers_pay_little_more_than_a_direct_delta() {
    let run =
        Run { keys: 50_000, share: 0.01, versions: 80, followers: 2, distances: (1..80).collect() };
    let paid = run.run();
    // A manifest, the header of a delta, and 25 bits for every replaced key.
    let most = paid.bytes.iter().max().unwrap();
    assert!(*most < MANIFEST + 250 + run.keys / 100 * 25 / 8, "{most}");
    // The table, which does not grow with the keys, may take as much as here: two parts of at most
    // 24 bytes a row. With a million keys everything is within the bound (examples/followers).
    let table = |behind: u64| match behind {
        1 => 0,
        2..=32 => 24 * (32 * 9 / 8 + 32 + 2),
        _ => 24 * ((80 + 128) * 9 / 8 + 32 + 2),
    };
    for far in &paid.far {
        let most = (1.3 * far.direct as f64).min(paid.snapshot as f64) as u64;
        let beside = MANIFEST + table(far.behind);
        assert!(far.bytes <= most + beside, "{far:?}, snapshot {}", paid.snapshot);
    }
    assert_eq!(paid.far.len(), 79);
}
