//! Partitioned filters with the report's functions, planned, built and measured.

use tamis::{AnyParams, Digest, Filter, Goal, Hasher, Kind, Label, Size};
use tamis_report::keys::KeyStream;
use tamis_report::papers::statistics::exact_interval;

fn goal(goal: Goal, fixed: &[(&str, u64)]) -> Goal {
    goal.params(fixed.iter().copied())
}

/// Filters with each choice of functions keep the promised rate, planned by rate and by memory.
#[test]
fn plans_with_the_reports_functions_keep_their_rates() {
    const KEYS: u64 = 20_000;
    const QUERIES: u64 = 2_000_000;
    for (partition, family) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
        let functions = [("partition", partition), ("family", family), ("candidates", 128)];
        let goals = [Goal::rate(KEYS, 0.01), Goal::sized(KEYS, Size::BitsPerKey(12.0))];
        for (case, sized) in goals.into_iter().enumerate() {
            let params = AnyParams::plan(Kind::Partitioned, &goal(sized, &functions)).unwrap();
            let named = params.named();
            assert_eq!(named[5..], functions[..2], "{named:?}");
            let predicted = params.predict(KEYS);
            let hasher = Hasher::xxh3(partition + 2 * family);
            let stream = KeyStream::new(2);
            let keys: Vec<Digest> = stream.members(hasher, 0..KEYS).collect();
            let filter = params.build_from(Label::planned(hasher, KEYS), &keys).unwrap();
            assert!(keys.iter().all(|&key| filter.contains_digest(key)));
            let absent = stream.absent_keys(hasher, 0..QUERIES);
            let passed = absent.filter(|&key| filter.contains_digest(key)).count() as u64;
            let (low, high) = exact_interval(passed, QUERIES, 0.999);
            println!("{named:?}: {:e}, {:e}, {low:e} to {high:e}", predicted.rate, filter.rate());
            assert!((low..=high).contains(&filter.rate()), "{named:?}");
            assert!((predicted.rate / filter.rate() - 1.0).abs() < 0.02, "{named:?}");
            match case {
                0 => assert!(predicted.rate <= 0.01),
                _ => assert!(predicted.bits_per_key <= 12.0 + 1024.0 / KEYS as f64),
            }
        }
    }
}

/// A plain filter of CRC candidates cannot tell apart what has equal CRCs: with many keys that is
/// the rate.
#[test]
fn thirty_two_bits_are_counted() {
    const KEYS: u64 = 1_000_000;
    let fixed = [("bits", (1 << 32) - 1), ("groups", 1), ("candidates", 2), ("hashes", 2)];
    let rate = |family| {
        let fixed: Vec<_> = fixed.into_iter().chain([("family", family)]).collect();
        let goal = goal(Goal::sized(KEYS, Size::BitsPerKey(4096.0)), &fixed);
        let goal = goal.size(Size::Memory(1 << 30));
        AnyParams::plan(Kind::Partitioned, &goal).unwrap().predict(KEYS).rate
    };
    let floor = KEYS as f64 / 4_294_967_296.0;
    assert!((rate(1) - rate(0) - floor).abs() < 1e-9 * floor, "{} {}", rate(1), rate(0));
    // A lower rate is refused, or reached with groups, in which few keys have equal CRCs.
    let asked = goal(Goal::rate(KEYS, 1e-4), &[("family", 1), ("candidates", 32)]);
    let predicted = AnyParams::plan(Kind::Partitioned, &asked).unwrap().predict(KEYS);
    assert!(predicted.rate <= 1e-4, "{}", predicted.rate);
}

#[test]
fn functions_and_sizes_that_do_not_go_together_are_refused() {
    let refused = |fixed: &[(&str, u64)]| {
        let goal = goal(Goal::rate(1000, 0.01), fixed);
        AnyParams::plan(Kind::Partitioned, &goal).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&[("partition", 2)]),
        "param partition must be 0 (the top of the digest) or 1 (RS), not 2"
    );
    assert_eq!(refused(&[("family", 7)]), "param family must be 0 (mixers) or 1 (CRC-32), not 7");
    for bits in [1 << 14, 3 << 7] {
        let message = refused(&[("family", 1), ("bits", bits)]);
        let expected = "param bits must be no power of two in a segment";
        assert!(message.starts_with(expected), "{message}");
    }
    let message = refused(&[("partition", 1), ("groups", 1 << 33)]);
    assert!(message.starts_with("param groups must be at most 2^32"), "{message}");
}
