//! A set that changes, and followers at every distance: what they pay, and that they end with the
//! publisher's content. The large run is `examples/followers`.

#[allow(dead_code, missing_docs, reason = "the example uses all of it")]
#[path = "../examples/followers/run.rs"]
mod run;

use run::{Paid, Run, Which};

/// Bytes of a manifest.
const MANIFEST: u64 = 192;

/// What followers pay at every distance. scripts/long has more versions.
fn paid(keys: u64, share: f64, which: Which) -> Paid {
    let versions = std::env::var("TAMIS_CHAIN_VERSIONS").map_or(80, |text| text.parse().unwrap());
    let run =
        Run { keys, share, which, versions, followers: 2, distances: (1..versions).collect() };
    let paid = run.run();
    assert_eq!(paid.far.len() as u64, versions - 1);
    let (worst, far) = paid.worst();
    eprintln!(
        "{keys} keys, {share} of them replaced ({which:?}), {versions} versions: at worst {worst:.3} \
         of what it may pay, {far:?}; {:.3} with the table; snapshot {}",
        paid.worst_in_all(),
        paid.snapshot
    );
    for far in &paid.far {
        // Rows of at most 24 bytes: 32 steps and their longer ones, leaps to the newest, and all
        // steps that leaps start from; a leap from each version where the newest are replaced.
        let rows = match far.behind {
            1 => 0,
            2..=32 => 32 * 9 / 8 + 40,
            _ if which == Which::Newest => (versions + 128) * 9 / 8 + versions + 40,
            _ => (versions + 128) * 9 / 8 + 40,
        };
        assert!(far.beside <= MANIFEST + 60 + 24 * rows, "{far:?}");
    }
    paid
}

#[test]
fn followers_pay_little_more_than_a_direct_delta() {
    for (keys, share) in [(50_000, 0.01), (20_000, 0.001)] {
        let paid = paid(keys, share, Which::Oldest);
        // A manifest, the header of a delta, and 25 bits for every replaced key; 32 where they are
        // few among many.
        let most = paid.bytes.iter().max().unwrap();
        let bits = if share < 0.005 { 32.0 } else { 25.0 };
        let replaced = (keys as f64 * share * bits / 8.0) as u64;
        assert!(*most < MANIFEST + 250 + replaced, "{most}");
        assert!(paid.worst().0 <= 1.0, "{:?}", paid.worst());
    }
}

/// The worst for deltas: each version replaces the keys of the one before, so that a direct delta
/// over many versions is as small as that of one step, and a path of several is not.
#[test]
fn followers_pay_as_little_whichever_keys_are_replaced() {
    for which in [Which::Newest, Which::Random] {
        let paid = paid(20_000, 0.01, which);
        assert!(paid.worst().0 <= 1.0, "{:?}", paid.worst());
    }
}
