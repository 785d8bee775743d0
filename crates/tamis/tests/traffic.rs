//! Predicted and measured bytes on the wire: packed snapshots and deltas of every kind.

use tamis::{AnyFilter, AnyParams, Bytes, Delta, Digest, Effort, Goal, Hasher, Kind, Label};
use tamis_report::keys::KeyStream;
use tamis_report::trials::in_parallel;

/// A filter of these members, in this order.
fn build(params: AnyParams, members: impl Iterator<Item = u64>) -> AnyFilter {
    let hasher = Hasher::xxh3(1);
    let stream = KeyStream::new(9);
    let digests: Vec<Digest> = members.map(|index| hasher.digest(&stream.member(index))).collect();
    params.build_from(Label::planned(hasher, digests.len() as u64), &digests).unwrap()
}

/// Five deviations, and what models of fills are off by.
fn assert_near(measured: u64, predicted: Bytes, what: &str) {
    let off = (measured as f64 - predicted.mean).abs();
    let allowed = 5.0 * predicted.deviation + 0.0002 * predicted.mean;
    println!("{what}: {measured}, predicted {:.0} +- {:.1}", predicted.mean, predicted.deviation);
    assert!(off <= allowed, "{what}: {measured} bytes, predicted {predicted:?}");
}

#[test]
fn snapshots_and_deltas_are_as_long_as_predicted() {
    let sizes = [
        (0, 0.1),
        (1, 0.01),
        (300, 0.1),
        (3000, 0.01),
        (30_000, 0.3),
        (30_000, 1e-3),
        (60_000, 1e-5),
    ];
    in_parallel(Kind::ALL.len() as u64, |number| {
        let kind = Kind::ALL[number as usize];
        for (keys, rate) in sizes {
            if kind == Kind::Partitioned && keys > 3000 {
                continue; // Its building takes seconds, and its array is packed like the others.
            }
            let params = AnyParams::plan(kind, &Goal::rate(keys, rate)).unwrap();
            let old = build(params, 0..keys);
            let what = format!("{} {keys} {rate}", kind.name());
            let snapshot = params.traffic(keys, None).snapshot;
            assert_near(old.pack(Effort::Best).len(), snapshot, &format!("{what} snapshot"));
            for churn in [0.001, 0.01, 0.1, 1.0] {
                let replaced = (churn * keys as f64).round() as u64;
                let predicted = params.traffic(keys, Some(churn)).delta.unwrap();
                let what = format!("{what} delta of {churn}");
                if kind.can_insert() {
                    let new = build(params, (0..keys - replaced).chain(keys..keys + replaced));
                    let delta = Delta::between(&old, &new).unwrap();
                    assert_near(delta.encode().len(), predicted, &what);
                } else {
                    assert_eq!(predicted, snapshot, "{what}: a new snapshot");
                }
            }
        }
    });
}
