//! From goals to layouts.

use tamis::{AnyParams, Goal, Kind, PlanError, Size, choose};

fn goal(keys: u64, size: Size, fixed: &[(&str, u64)]) -> Goal {
    let fixed = fixed.iter().map(|&(name, value)| (name.to_string(), value)).collect();
    Goal { keys, size, fixed }
}

fn is_balanced(kind: Kind) -> bool {
    kind.name().starts_with("balanced-")
}

#[test]
fn any_number_of_keys_and_any_rate_has_a_plan_that_meets_it() {
    for kind in Kind::ALL {
        for keys in [0, 1, 2, 37, 10_000, 1_000_000, 10_000_000_000] {
            for rate in [0.5, 0.1, 0.02, 1e-3, 1e-5, 1e-8] {
                let params = AnyParams::plan(kind, &Goal::rate(keys, rate)).unwrap();
                let predicted = params.predict(keys);
                assert!(predicted.rate <= rate, "{params:?} {keys} {rate}");
                assert!(predicted.bits_per_key.is_finite() && predicted.bits_per_key > 0.0);
                assert!(predicted.wire_bits_per_key >= predicted.bits_per_key * 0.01);
                assert!(predicted.blocks_per_miss >= 1.0 - 1e-12);
                // Strangers meet a full balanced filter, its keys met an emptier one; and where a key has several places, a member ends the
                // search that a stranger goes through.
                if !is_balanced(kind) && kind != Kind::DLeft {
                    assert!(predicted.blocks_per_miss <= predicted.blocks_per_hit + 1e-12);
                }
            }
        }
    }
}

#[test]
fn one_bit_less_would_not_do() {
    for (keys, rate) in [(1, 0.01), (37, 0.001), (5000, 0.02), (3_000_000, 1e-4)] {
        let AnyParams::Bloom(params) =
            AnyParams::plan(Kind::Bloom, &Goal::rate(keys, rate)).unwrap()
        else {
            panic!("a plan of its kind");
        };
        for hashes in 1..=30 {
            let less = tamis::bloom::model::rate(params.bits() - 1, hashes, keys);
            assert!(less > rate, "{keys} {rate}: {} bits with {hashes}", params.bits() - 1);
        }
        let blocked = Goal::rate(keys, rate);
        let AnyParams::Blocked(params) = AnyParams::plan(Kind::Blocked, &blocked).unwrap() else {
            panic!("a plan of its kind");
        };
        if params.blocks() > 1 {
            for hashes in 1..=20 {
                let less = tamis::bloom::BlockedParams::new(params.blocks() - 1, 512, hashes);
                let less = tamis::bloom::model::blocked_rate(&less.unwrap(), keys);
                assert!(less > rate, "{keys} {rate}: a block less with {hashes}");
            }
        }
    }
}

#[test]
fn memory_and_bits_per_key_are_not_exceeded() {
    for kind in Kind::ALL {
        let params = AnyParams::plan(kind, &goal(100_000, Size::Memory(1 << 18), &[])).unwrap();
        assert!(params.predict(100_000).bits_per_key <= f64::from(8 << 18) / 1e5);
        let params = AnyParams::plan(kind, &goal(100_000, Size::BitsPerKey(20.0), &[])).unwrap();
        // Whole cache lines are held: at most one more than asked for.
        assert!(params.predict(100_000).bits_per_key <= 20.0 + 512.0 / 1e5);
        assert!(params.predict(100_000).bits_per_key >= 19.8);
        let array =
            matches!(kind, Kind::Bloom | Kind::Counting | Kind::Blocked | Kind::Partitioned);
        if !array && !is_balanced(kind) {
            // Less than an array of 64 bytes can be asked for, and is not to be had.
            let refused = AnyParams::plan(kind, &goal(1000, Size::Memory(100), &[])).unwrap_err();
            assert!(refused.to_string().contains("bits per key are too few"), "{refused}");
            continue;
        }
        let tiny = AnyParams::plan(kind, &goal(1000, Size::Memory(100), &[])).unwrap();
        assert_eq!(tiny.predict(1000).bits_per_key, 0.512, "one line is legal, if useless");
    }
}

#[test]
fn settled_params_are_kept_or_refused_by_name() {
    let rate = Size::Rate(0.01);
    let plan = |kind, fixed: &[(&str, u64)]| AnyParams::plan(kind, &goal(1000, rate, fixed));
    let named = |kind, fixed: &[(&str, u64)]| plan(kind, fixed).unwrap().named();
    assert_eq!(named(Kind::Bloom, &[("hashes", 3)])[1], ("hashes", 3));
    assert_eq!(named(Kind::Bloom, &[("bits", 20_000)])[0], ("bits", 20_000));
    assert_eq!(named(Kind::Counting, &[("width", 8)])[2], ("width", 8));
    assert_eq!(named(Kind::Blocked, &[("block", 256)])[1], ("block", 256));
    assert_eq!(named(Kind::Blocked, &[("blocks", 99), ("hashes", 5)])[0], ("blocks", 99));
    let said = |kind, fixed: &[(&str, u64)]| plan(kind, fixed).unwrap_err().to_string();
    assert_eq!(
        said(Kind::Bloom, &[("block", 512)]),
        "bloom has no param block; it has bits, hashes"
    );
    assert_eq!(said(Kind::Bloom, &[("hashes", 0)]), "parameter hashes = 0: 1 to 64");
    assert_eq!(said(Kind::Bloom, &[("hashes", 1 << 40)]), "parameter hashes = 4294967295: 1 to 64");
    assert_eq!(said(Kind::Counting, &[("width", 5)]), "parameter width = 5: 1, 2, 4, 8 or 16 bits");
    assert_eq!(said(Kind::Blocked, &[("block", 100)]), "parameter block = 100: 256 or 512 bits");
    assert_eq!(said(Kind::Blocked, &[("hashes", 33)]), "parameter hashes = 33: 1 to 32");
    assert!(said(Kind::Bloom, &[("bits", 100)]).contains("cannot be reached with 1000 keys"));
    assert!(said(Kind::Blocked, &[("blocks", 1)]).contains("cannot be reached with 1000 keys"));
    assert_eq!(said(Kind::Bloom, &[("hashes", 3), ("hashes", 4)]), "param hashes is settled twice");
    let memory = goal(1000, Size::Memory(640), &[("bits", 6000)]);
    assert!(AnyParams::plan(Kind::Bloom, &memory).unwrap_err().to_string().contains("bits = 6000"));
}

#[test]
fn senseless_goals_are_refused() {
    for kind in Kind::ALL {
        for rate in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            let refused = AnyParams::plan(kind, &Goal::rate(10, rate));
            assert!(matches!(refused, Err(PlanError::Rate { .. })));
        }
        for bits in [0.0, -1.0, f64::NAN, f64::INFINITY, 5000.0] {
            let refused = AnyParams::plan(kind, &goal(10, Size::BitsPerKey(bits), &[]));
            assert!(matches!(refused, Err(PlanError::BitsPerKey { .. })));
        }
        let refused = AnyParams::plan(kind, &goal(10, Size::Memory(63), &[]));
        assert_eq!(refused, Err(PlanError::Memory { bytes: 63 }));
        assert!(AnyParams::plan(kind, &Goal::rate(u64::MAX, 0.01)).is_err(), "beyond any memory");
    }
}

#[test]
fn candidates_come_with_the_least_memory_first() {
    let plans = choose(&Goal::rate(1_000_000, 0.001)).unwrap();
    assert_eq!(plans.len(), Kind::ALL.len());
    assert_eq!(plans[0].params.kind(), Kind::Compressed);
    assert_eq!(plans[1].params.kind(), Kind::Partitioned);
    assert_eq!(plans[2].params.kind(), Kind::BlockedRank);
    assert!(plans.is_sorted_by(|a, b| a.predicted.bits_per_key <= b.predicted.bits_per_key));
    assert!(plans.iter().all(|plan| !plan.reason.is_empty()));
    assert!(choose(&Goal::rate(1, 2.0)).is_err());
    // The error of a kind that knows the param, not of the first.
    let refused = choose(&goal(1000, Size::Rate(0.01), &[("width", 3)])).unwrap_err();
    assert_eq!(refused.to_string(), "parameter width = 3: 1, 2, 4, 8 or 16 bits");
    // Only the kinds that have the settled param are left.
    let with_blocks = choose(&goal(1000, Size::Rate(0.01), &[("block", 256)])).unwrap();
    assert_eq!(with_blocks.len(), 6);
}

#[test]
fn kinds_have_one_number_and_one_name_each() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_id(kind.id()), Some(kind));
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    for kind in Kind::ALL {
        let params = AnyParams::plan(kind, &Goal::rate(10, 0.1)).unwrap();
        let mut filter = params.build(tamis::Hasher::default()).unwrap();
        assert_eq!((filter.kind(), filter.params()), (kind, params));
        assert_eq!(filter.as_insert().is_some(), kind.can_insert());
        assert_eq!(filter.as_remove().is_some(), kind.can_remove());
        assert_eq!(filter.as_count().is_some(), kind.can_count());
    }
}
