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

/// Which keys are replaced.
#[derive(Clone, Copy)]
enum Order {
    /// Random keys: the number of the set.
    Random(u64),
    Oldest,
    Newest,
}

/// The filter after a share of its keys was replaced, each by a new one in its place.
fn successor(params: AnyParams, keys: u64, churn: f64, order: Order) -> AnyFilter {
    let replaced = (churn * keys as f64).round() as usize;
    let mut places: Vec<u64> = (0..keys).collect();
    match order {
        Order::Random(set) => places.sort_by_cached_key(|&place| Digest(set).word(place)),
        Order::Oldest => {}
        Order::Newest => places.reverse(),
    }
    let mut members: Vec<u64> = (0..keys).collect();
    for &place in &places[..replaced] {
        members[place as usize] += keys;
    }
    build(params, members.into_iter())
}

fn delta_bytes(old: &AnyFilter, new: &AnyFilter) -> u64 {
    Delta::between(old, new).unwrap().encode().len()
}

/// Checks that the difference is within five standard deviations and the error of the models of
/// fills.
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
                let predicted = params.traffic(keys, Some(churn)).delta.unwrap();
                let what = format!("{what} delta of {churn}");
                if !kind.can_insert() {
                    assert_eq!(predicted, snapshot, "{what}: a new snapshot");
                    continue;
                }
                let sent = |order: Order| delta_bytes(&old, &successor(params, keys, churn, order));
                assert_near(sent(Order::Random(1)), predicted, &format!("{what}, random keys"));
                let [oldest, newest] = [Order::Oldest, Order::Newest].map(sent);
                if kind.name().starts_with("balanced-") {
                    // Early keys move others, late ones hardly any.
                    assert!(newest as f64 <= predicted.most(), "{what}: {newest} {predicted:?}");
                    let most = 1.6 * predicted.mean + 5.0 * predicted.deviation;
                    assert!(oldest as f64 <= most, "{what}: {oldest} {predicted:?}");
                } else {
                    assert_near(oldest, predicted, &format!("{what}, oldest keys"));
                    assert_near(newest, predicted, &format!("{what}, newest keys"));
                }
            }
        }
    });
}

/// What is promised is what random keys cost, to 3%. The mean over a few sets of keys is compared,
/// because sets differ by a per cent or two. `scripts/long` does the same with a million keys.
#[test]
fn deltas_of_random_keys_cost_what_is_promised() {
    const KEYS: u64 = 50_000;
    const SETS: u64 = 4;
    in_parallel(Kind::ALL.len() as u64, |number| {
        let kind = Kind::ALL[number as usize];
        if !kind.can_insert() {
            return;
        }
        for (rate, churn) in [(0.2, 0.01), (0.01, 0.01), (1e-4, 0.01), (0.01, 0.1)] {
            let params = AnyParams::plan(kind, &Goal::rate(KEYS, rate)).unwrap();
            let old = build(params, 0..KEYS);
            let promised = params.traffic(KEYS, Some(churn)).delta.unwrap().mean;
            let sent = (0..SETS)
                .map(|set| delta_bytes(&old, &successor(params, KEYS, churn, Order::Random(set))));
            let off = sent.sum::<u64>() as f64 / SETS as f64 / promised - 1.0;
            println!("{} {rate} {churn}: {promised:.0} promised, {off:+.4} off", kind.name());
            assert!(off.abs() <= 0.03, "{} {rate} {churn}: {off} off", kind.name());
        }
    });
}
