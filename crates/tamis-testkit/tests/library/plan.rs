//! From goals to layouts.

use std::time::{Duration, Instant};

use tamis::internals::compressed::model::Message;
use tamis::internals::compressed::optimise::Demand;
use tamis::{AnyParams, Goal, Kind, Minimise, Operation, Plan, PlanError, Size, choose};
use tamis_report::papers::compressed::{entropy_bits, least_bits};

fn goal(keys: u64, size: Size, fixed: &[(&str, u64)]) -> Goal {
    Goal::sized(keys, size).params(fixed.iter().copied())
}

fn is_balanced(kind: Kind) -> bool {
    kind.name().starts_with("balanced-")
}

#[test]
fn any_number_of_keys_and_any_rate_has_a_plan_that_meets_it() {
    for &kind in Kind::ALL {
        for keys in [0, 1, 2, 37, 10_000, 1_000_000, 10_000_000_000] {
            for rate in [0.5, 0.1, 0.02, 1e-3, 1e-5, 1e-8] {
                if matches!(kind, Kind::BlockedRank | Kind::BlockedMap) && rate < 1e-5 {
                    continue; // Such a plan takes far too much; another test checks it.
                }
                let params = AnyParams::plan(kind, &Goal::rate(keys, rate)).unwrap();
                let predicted = params.predict(keys);
                assert!(predicted.rate <= rate, "{params:?} {keys} {rate}");
                assert!(predicted.bits_per_key.is_finite() && predicted.bits_per_key > 0.0);
                assert!(predicted.wire_bits_per_key >= predicted.bits_per_key * 0.01);
                assert!(predicted.blocks_per_miss >= 1.0 - 1e-12);
                // An absent key meets a full balanced filter, while its members met an emptier
                // one. Where a key has several places, a member ends a search that an absent key
                // goes through.
                if !is_balanced(kind) && kind != Kind::DLeft {
                    assert!(predicted.blocks_per_miss <= predicted.blocks_per_hit + 1e-12);
                }
            }
        }
    }
}

/// At every rate a plan takes what an ideal filter would, within a stated proportion; or the
/// refusal names a rate and a kind that would meet the goal.
#[test]
fn no_plan_is_out_of_all_proportion() {
    let most_bits = |kind: Kind, keys: u64, rate: f64| {
        let each = 3.0 * (5.0 - rate.log2());
        each * if kind == Kind::Counting { 4.0 } else { 1.0 } * keys as f64 + 4096.0
    };
    let mut refused = 0;
    for &kind in Kind::ALL {
        for keys in [1, 37, 12_345, 1_000_000] {
            for rate in [0.5, 0.05, 1e-3, 1e-5, 2.2e-6, 3e-7, 3e-9, 1e-11, 1e-13, 1e-15] {
                let planned = |kind: Kind, rate: f64| {
                    let params = AnyParams::plan(kind, &Goal::rate(keys, rate))?;
                    let bits = params.predict(keys).bits_per_key * keys as f64;
                    assert!(bits <= most_bits(kind, keys, rate), "{kind:?} {keys} {rate}: {bits}");
                    Ok::<_, PlanError>(params)
                };
                match planned(kind, rate) {
                    Ok(_) | Err(PlanError::Unreachable { .. }) => {}
                    Err(PlanError::OutOfProportion { nearest, instead, bits, .. }) => {
                        refused += 1;
                        assert!(nearest > rate && bits * keys as f64 > most_bits(kind, keys, rate));
                        planned(kind, nearest).expect("what is offered can be had");
                        let name = instead.strip_prefix(", or take ").expect("another kind");
                        planned(Kind::from_name(name).unwrap(), rate).expect("it does");
                    }
                    Err(other) => panic!("{kind:?} {keys} {rate}: {other}"),
                }
            }
        }
    }
    assert!(refused > 10, "{refused}");
    let said = |kind, rate| Plan::of(kind, &Goal::rate(1_000_000, rate)).unwrap_err().to_string();
    let blocked = said(Kind::Blocked, 1e-11);
    assert!(blocked.starts_with("blocked: rate 1e-11 would take "), "{blocked}");
    assert!(blocked.contains(" bits per key, which is out of all proportion; ask for "));
    assert_eq!(
        said(Kind::BlockedRank, 3e-9),
        "blocked-rank: rate 3e-9 cannot be reached with 1000000 keys; the nearest is 2e-8"
    );
    // What is offered can be had, and where the keys are the cause they are said to be.
    for &kind in Kind::ALL {
        let goal = |keys, rate| AnyParams::plan(kind, &Goal::rate(keys, rate));
        match goal(1000, 1e-20) {
            Err(error @ PlanError::Unreachable { nearest, .. }) => {
                assert!(error.to_string().len() < 120, "{error}");
                assert!(goal(1000, nearest).is_ok(), "{kind:?}: {nearest:e}");
            }
            other => panic!("{kind:?}: {other:?}"),
        }
        match goal(u64::MAX, 0.01) {
            Err(PlanError::TooManyKeys { most, .. }) => {
                assert!(most > 1 << 33 && goal(most, 0.01).is_ok(), "{kind:?}: {most}");
            }
            other => panic!("{kind:?}: {other:?}"),
        }
    }
    assert_eq!(
        said(Kind::Bloom, 1e-20),
        "bloom: rate 1e-20 cannot be reached with 1000000 keys; the nearest is 5.5e-14 \
         (digests have 64 bits)"
    );
    // Params that the user fixes are built.
    let fixed = Goal::rate(1000, 1e-6).params([("fingerprint", 8)]);
    assert!(AnyParams::plan(Kind::BlockedRank, &fixed).is_ok());
}

/// From what a plan takes at a half on, every number of bits has one, and more bits never cost
/// more than a hundredth of the rate.
#[test]
fn any_number_of_bits_is_used() {
    for kind in [Kind::BlockedRank, Kind::BlockedMap] {
        for keys in [1, 100, 5000, 1_000_000] {
            let least = AnyParams::plan(kind, &Goal::rate(keys, 0.5)).unwrap();
            let least = least.predict(keys).bits_per_key;
            let mut before = 1.0;
            for step in 0..60 {
                let bits = least * 1.001 + f64::from(step) * 0.7;
                let params =
                    AnyParams::plan(kind, &Goal::sized(keys, Size::BitsPerKey(bits))).unwrap();
                let told = params.predict(keys);
                assert!(told.bits_per_key <= bits, "{kind:?} {keys} {bits}: {told:?}");
                assert!(told.rate <= 1.01 * before, "{kind:?} {keys} {bits}: {told:?}");
                before = told.rate;
            }
            let few = AnyParams::plan(kind, &Goal::sized(keys, Size::BitsPerKey(0.99 * least)));
            assert!(few.unwrap_err().to_string().contains("too few"), "{kind:?} {keys}");
        }
    }
}

/// Nanoseconds that this thread has been running; `None` on systems that do not tell.
fn spent() -> Option<u64> {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    spent.split(' ').next()?.parse().ok()
}

/// What stands between a program and its filter: at most 200 microseconds. Here ten times that is
/// allowed, because the machine may be busy and this build is not the fastest.
#[test]
fn kinds_that_are_not_built_once_are_planned_in_microseconds() {
    for kind in Kind::ALL.iter().copied().filter(|kind| kind.can_insert()) {
        for keys in [1000, 100_000, 10_000_000, 1_000_000_000] {
            for rate in [0.1, 0.01, 0.003, 0.001, 1e-4, 1e-6] {
                let goal = Goal::rate(keys, rate);
                let once = || {
                    let before = spent()?;
                    // (What a kind cannot reach is to be refused as quickly.)
                    let _ = AnyParams::plan(kind, &goal);
                    Some(spent()? - before)
                };
                // On systems that do not tell the time, nothing is checked.
                let Some(least) = (0..3).filter_map(|_| once()).min() else { return };
                assert!(least < 2_000_000, "{} {keys} {rate}: {least} ns", kind.name());
            }
        }
    }
}

/// Planning takes at most a tenth of a second. Here five times that is allowed, because the
/// machine may be busy.
#[test]
fn planning_is_quick_for_every_kind_at_every_goal() {
    for &kind in Kind::ALL {
        for (keys, rate) in [(12_345, 1e-15), (1_000_000, 1e-15), (1_000_000, 0.5), (300_000, 1e-6)]
        {
            let goal = Goal::rate(keys, rate).churn(0.001);
            let before = spent();
            let planned = Plan::of(kind, &goal).is_ok();
            // On systems that do not tell the time, nothing is checked.
            let (Some(before), Some(after)) = (before, spent()) else { return };
            let ms = (after - before) / 1_000_000;
            println!("{} {keys} {rate:e}: {ms} ms, {planned}", kind.name());
            assert!(ms < 500, "{} {keys} {rate:e}: {ms} ms of processor time", kind.name());
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
            let less = tamis::internals::bloom::model::rate(params.bits() - 1, hashes, keys);
            assert!(less > rate, "{keys} {rate}: {} bits with {hashes}", params.bits() - 1);
        }
        let blocked = Goal::rate(keys, rate);
        let AnyParams::Blocked(params) = AnyParams::plan(Kind::Blocked, &blocked).unwrap() else {
            panic!("a plan of its kind");
        };
        if params.blocks() > 1 {
            for hashes in 1..=16 {
                let less = tamis::bloom::BlockedParams::new(params.blocks() - 1, 512, hashes);
                let less = tamis::internals::bloom::model::blocked_rate(&less.unwrap(), keys);
                assert!(less > rate, "{keys} {rate}: a block less with {hashes}");
            }
        }
    }
}

#[test]
fn memory_and_bits_per_key_are_not_exceeded() {
    for &kind in Kind::ALL {
        let params = AnyParams::plan(kind, &goal(100_000, Size::Memory(1 << 18), &[])).unwrap();
        assert!(params.predict(100_000).bits_per_key <= f64::from(8 << 18) / 1e5);
        let params = AnyParams::plan(kind, &goal(100_000, Size::BitsPerKey(20.0), &[])).unwrap();
        // Whole cache lines are held: at most one more than asked for.
        assert!(params.predict(100_000).bits_per_key <= 20.0 + 512.0 / 1e5);
        assert!(params.predict(100_000).bits_per_key >= 19.8);
        let array = matches!(
            kind,
            Kind::Bloom | Kind::Counting | Kind::Blocked | Kind::Partitioned | Kind::Ribbon
        );
        if !array && !is_balanced(kind) {
            // A goal may ask for less than an array of 64 bytes, and is refused.
            let refused = AnyParams::plan(kind, &goal(1000, Size::Memory(100), &[])).unwrap_err();
            assert!(refused.to_string().contains("bits per key are too few"), "{refused}");
            continue;
        }
        let tiny = AnyParams::plan(kind, &goal(1000, Size::Memory(100), &[])).unwrap();
        assert_eq!(tiny.predict(1000).bits_per_key, 0.512, "one line is legal, if useless");
    }
}

/// Where many keys share an identity, lists beside the table count.
#[test]
fn few_bits_per_key_are_not_exceeded() {
    let keys = 30_000;
    for &kind in Kind::ALL {
        for bits in [2.0, 4.0, 5.0, 5.5, 6.0, 7.0, 8.0] {
            let planned = AnyParams::plan(kind, &goal(keys, Size::BitsPerKey(bits), &[]));
            if let Ok(params) = &planned {
                let predicted = params.predict(keys).bits_per_key;
                assert!(predicted <= bits + 512.0 / keys as f64, "{kind:?} {bits}: {predicted}");
            }
            if let Err(PlanError::TooFewBits { least, .. }) = planned {
                assert!(least > bits, "{kind:?} {bits}: {least}");
            }
        }
    }
}

/// Extreme goals are planned, and their deltas predicted, without panic and in a moment.
#[test]
fn extreme_goals_take_no_time() {
    let start = Instant::now();
    for hashes in [1, 12, 40, 64] {
        let _ = AnyParams::plan(
            Kind::Partitioned,
            &Goal::rate(1000, 0.01).params([("hashes", hashes)]),
        );
    }
    for &kind in Kind::ALL {
        let goals = [
            (0, Size::Memory(135_379_968)),
            (1, Size::Memory(1 << 36)),
            (10_000_000_000, Size::Memory(64)),
            (1_000_000_000, Size::BitsPerKey(1e-300)),
            (1 << 61, Size::BitsPerKey(5e-324)),
        ];
        for (keys, size) in goals {
            if let Ok(params) = AnyParams::plan(kind, &goal(keys, size, &[])) {
                params.traffic(keys, Some(0.01));
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn blocks_that_are_fixed_keep_to_the_bits_that_are_asked_for() {
    for (kind, own) in [(Kind::BlockedRank, 0.0), (Kind::BlockedMap, 8.0)] {
        let plan = |bits| {
            let fixed = [("blocks", 20_000)];
            AnyParams::plan(kind, &goal(1_000_000, Size::BitsPerKey(bits), &fixed))
        };
        // The blocks alone take 10.24.
        let refused = plan(10.0).unwrap_err().to_string();
        assert!(refused.contains("bits per key are too few"), "{refused}");
        let predicted = plan(12.0 + own).unwrap().predict(1_000_000);
        assert!(predicted.bits_per_key <= 12.0 + own, "{}", predicted.bits_per_key);
        assert!(predicted.rate < 0.01, "{}", predicted.rate);
    }
}

#[test]
fn more_memory_than_there_is_can_be_asked_for() {
    for &kind in Kind::ALL {
        for bytes in [1 << 40, 1 << 52, 1 << 61, u64::MAX] {
            let planned = AnyParams::plan(kind, &goal(1000, Size::Memory(bytes), &[]));
            assert!(!matches!(planned, Err(PlanError::TooFewBits { .. })), "{planned:?}");
        }
        let name = AnyParams::plan(kind, &Goal::rate(1000, 0.01)).unwrap().named()[0].0;
        for other in ["segments", name] {
            let fixed = [(name, 10_000), (other, 1 << 60)];
            let _ = AnyParams::plan(kind, &Goal::rate(1000, 0.01).params(fixed));
        }
    }
}

#[test]
fn fixed_params_are_kept_or_refused_by_name() {
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
    assert_eq!(said(Kind::Bloom, &[("hashes", 0)]), "param hashes must be 1 to 64, not 0");
    assert_eq!(
        said(Kind::Bloom, &[("hashes", 1 << 40)]),
        "param hashes must be 1 to 64, not 4294967295"
    );
    assert_eq!(
        said(Kind::Counting, &[("width", 5)]),
        "param width must be 1, 2, 4, 8 or 16 bits, not 5"
    );
    assert_eq!(
        said(Kind::Blocked, &[("block", 100)]),
        "param block must be 256 or 512 bits, not 100"
    );
    assert_eq!(
        said(Kind::Blocked, &[("hashes", 9), ("block", 256)]),
        "param hashes must be 1 to 16 in 512 bits, 1 to 8 in 256, not 9"
    );
    assert!(said(Kind::Bloom, &[("bits", 100)]).contains("cannot be reached with 1000 keys"));
    assert!(said(Kind::Blocked, &[("blocks", 1)]).contains("cannot be reached with 1000 keys"));
    assert_eq!(said(Kind::Bloom, &[("hashes", 3), ("hashes", 4)]), "param hashes is fixed twice");
    let memory = goal(1000, Size::Memory(640), &[("bits", 6000)]);
    assert!(
        AnyParams::plan(Kind::Bloom, &memory)
            .unwrap_err()
            .to_string()
            .starts_with("param bits must be at most")
    );
}

#[test]
fn senseless_goals_are_refused() {
    for &kind in Kind::ALL {
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
    let goal_of = |minimise| Goal::rate(1_000_000, 0.001).minimise(minimise);
    let plans = choose(&goal_of(Minimise::Memory)).unwrap();
    assert_eq!(plans.len(), Kind::ALL.len());
    let smallest = [Kind::Ribbon, Kind::Compressed, Kind::BlockedRank, Kind::Partitioned];
    assert!(plans.iter().map(|plan| plan.params.kind()).take(4).eq(smallest));
    assert!(plans.is_sorted_by(|a, b| a.predicted.bits_per_key <= b.predicted.bits_per_key));
    assert!(plans.iter().all(|plan| !plan.reason.is_empty()));
    // The least memory with removal is in large blocks, if a lookup may read three lines.
    let removing = goal_of(Minimise::Memory).needs([Operation::Remove]);
    let block = |goal: &Goal| {
        let plan = choose(goal).unwrap().swap_remove(0);
        assert_eq!(plan.params.kind(), Kind::BlockedRank);
        plan.params.named()[0]
    };
    assert_eq!(block(&removing), ("block", 16_384));
    let reading = |blocks| {
        let mut goal = removing.clone();
        goal.at_most.blocks = Some(blocks);
        goal
    };
    assert_eq!(block(&reading(2.5)), ("block", 1024));
    assert_eq!(block(&reading(1.5)), ("block", 512));
    // Other goals choose other kinds.
    let first = |minimise| choose(&goal_of(minimise)).unwrap()[0].params.kind();
    assert_eq!(first(Minimise::Lookups), Kind::Blocked);
    assert_eq!(first(Minimise::Wire), Kind::Ribbon);
    assert_eq!(first(Minimise::Balanced), Kind::Ribbon);
    // Without other limits, the best of a kind is the one in the least memory.
    for plan in choose(&goal_of(Minimise::Balanced)).unwrap() {
        let least = AnyParams::plan(plan.params.kind(), &Goal::rate(1_000_000, 0.001)).unwrap();
        assert_eq!(plan.params, least);
    }
    assert!(choose(&Goal::rate(1, 2.0)).is_err());
    // The error of a kind that knows the param, not of the first.
    let refused = choose(&goal(1000, Size::Rate(0.01), &[("width", 3)])).unwrap_err();
    assert_eq!(refused.to_string(), "param width must be 1, 2, 4, 8 or 16 bits, not 3");
    // Only the kinds that have the fixed param are left.
    let with_blocks = choose(&goal(1000, Size::Rate(0.01), &[("block", 256)])).unwrap();
    assert_eq!(with_blocks.len(), 6, "{with_blocks:?}");
}

#[test]
fn kinds_have_one_number_and_one_name_each() {
    for &kind in Kind::ALL {
        assert_eq!(Kind::from_id(kind.id()), Some(kind));
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    for &kind in Kind::ALL {
        let params = AnyParams::plan(kind, &Goal::rate(10, 0.1)).unwrap();
        let mut filter = params.build(tamis::Hasher::default()).unwrap();
        assert_eq!((filter.kind(), filter.params()), (kind, params));
        assert_eq!(filter.as_insert().is_some(), kind.can_insert());
        assert_eq!(filter.as_remove().is_some(), kind.can_remove());
        assert_eq!(filter.as_count().is_some(), kind.can_count());
    }
}

#[test]
fn only_kinds_that_can_do_it_are_candidates() {
    use Operation::{Count, Grow, Insert, Merge, Remove, Values};
    let able = |needs: &[Operation]| -> Vec<Kind> {
        let goal = Goal::rate(10_000, 0.01).needs(needs.to_vec());
        let mut kinds: Vec<Kind> =
            choose(&goal).unwrap().iter().map(|plan| plan.params.kind()).collect();
        kinds.sort_by_key(|kind| kind.id());
        kinds
    };
    assert_eq!(able(&[]), Kind::ALL);
    for once in [Kind::Partitioned, Kind::Compressed, Kind::Ribbon] {
        assert!(!able(&[Insert]).contains(&once) && !able(&[Merge]).contains(&once));
    }
    let removing = [
        Kind::Counting,
        Kind::RankIndexed,
        Kind::RankCounting,
        Kind::RankMap,
        Kind::BlockedRank,
        Kind::DLeft,
        Kind::BlockedMap,
    ];
    assert_eq!(able(&[Insert, Remove]), removing);
    assert_eq!(able(&[Values(8), Remove]), [Kind::RankMap, Kind::DLeft, Kind::BlockedMap]);
    assert_eq!(able(&[Values(8), Count]), [Kind::DLeft]);
    assert!(!able(&[Grow]).contains(&Kind::Counting));
    // The value bits are those of the layout.
    let goal = Goal::rate(10_000, 0.01).needs([Values(5)]);
    for plan in choose(&goal).unwrap() {
        let name = if plan.params.kind() == Kind::RankMap { "extra" } else { "value" };
        assert!(plan.params.named().contains(&(name, 5)), "{:?}", plan.params);
    }
    let refused = |kind, needs: &[Operation]| {
        let goal = Goal::rate(10_000, 0.01).needs(needs.to_vec());
        Plan::of(kind, &goal).unwrap_err().to_string()
    };
    let said = refused(Kind::Bloom, &[Insert, Remove]);
    assert!(said.starts_with("bloom cannot remove; of all kinds counting, "), "{said}");
    let goal = Goal::rate(10, 0.1).needs([Values(8), Merge, Insert]);
    assert!(choose(&goal).is_ok());
    let said = refused(Kind::RankMap, &[Values(99)]);
    assert!(said.starts_with("param value must be "), "{said}");
}

#[test]
fn what_a_limit_leaves_keeps_to_it() {
    let mut goal = Goal::rate(100_000, 0.001);
    goal.at_most.bits_per_key = Some(15.0);
    goal.at_most.snapshot_bytes = Some(160_000);
    goal.at_most.delta_bytes = Some(6_000);
    goal.at_most.blocks = Some(2.5);
    goal.churn = Some(0.01);
    let plans = choose(&goal).unwrap();
    assert!(plans.len() > 1 && plans.len() < Kind::ALL.len());
    for plan in &plans {
        assert!(plan.predicted.rate <= 0.001 && plan.predicted.bits_per_key <= 15.0);
        assert!(plan.traffic.snapshot.most() <= 160_000.0);
        assert!(plan.traffic.delta.unwrap().most() <= 6_000.0);
        assert!(plan.predicted.blocks_per_hit.max(plan.predicted.blocks_per_miss) <= 2.5);
    }
    // Fewer hash functions read fewer blocks, in more memory.
    let mut goal = Goal::rate(100_000, 0.001);
    goal.at_most.blocks = Some(3.0);
    let plan = Plan::of(Kind::Bloom, &goal).unwrap();
    assert_eq!(plan.params.named()[1], ("hashes", 3));
    assert!(plan.predicted.bits_per_key > 20.0);
}

#[test]
fn a_limit_that_cannot_be_kept_is_named_with_the_nearest_that_can() {
    let nearest = |goal: &Goal, what: &str, beside: &str| -> f64 {
        let refused = choose(goal).unwrap_err();
        let said = refused.to_string();
        assert!(said.contains(what) && said.contains(beside), "{said}");
        let PlanError::Limit { nearest, .. } = refused else { panic!("{said}") };
        nearest
    };
    let goal = Goal::rate(50_000, 0.01).churn(0.01);
    let mut tight = goal.clone();
    tight.at_most.bits_per_key = Some(3.0);
    let found = nearest(&tight, "bits of memory per key", "had; the nearest");
    tight.at_most.bits_per_key = Some(found);
    assert!(choose(&tight).is_ok());
    tight.at_most.bits_per_key = Some(found - 0.002);
    assert!(choose(&tight).is_err(), "nothing is nearer");

    let mut tight = goal.clone();
    tight.at_most.snapshot_bytes = Some(1000);
    tight.at_most.snapshot_bytes = Some(nearest(&tight, "bytes of snapshot", "") as u64);
    assert!(choose(&tight).is_ok());

    let mut tight = goal.clone();
    tight.at_most.delta_bytes = Some(100);
    tight.at_most.delta_bytes = Some(nearest(&tight, "bytes of delta", "") as u64);
    assert!(choose(&tight).is_ok());

    let mut tight = goal.clone();
    tight.at_most.blocks = Some(0.5);
    assert_eq!(nearest(&tight, "blocks per lookup", ""), 1.0);

    // Each limit can be met, but not both.
    let mut tight = goal;
    tight.at_most.blocks = Some(1.0);
    tight.at_most.bits_per_key = Some(9.0);
    let found = nearest(&tight, "bits of memory per key", "beside the other limits");
    tight.at_most.bits_per_key = Some(found);
    assert!(choose(&tight).is_ok());
}

#[test]
fn senseless_limits_are_refused() {
    let mut goal = Goal::rate(1000, 0.01);
    goal.at_most.delta_bytes = Some(1000);
    assert_eq!(choose(&goal), Err(PlanError::NoChurn));
    for churn in [0.0, -0.1, 1.1, f64::NAN] {
        let goal = Goal::rate(1000, 0.01).churn(churn);
        assert!(matches!(choose(&goal), Err(PlanError::Churn { .. })));
    }
    for bits in [0.0, -1.0, f64::NAN] {
        let mut goal = Goal::rate(1000, 0.01);
        goal.at_most.bits_per_key = Some(bits);
        assert!(matches!(choose(&goal), Err(PlanError::BadLimit { .. })));
    }
}

/// The paper's optimum is among the bids, and wins where memory does not matter: its weight of a
/// hundredth is below that of a message here.
#[test]
fn the_smallest_message_is_that_of_the_optimiser() {
    for (rate, churn) in [(0.1, None), (0.03, None), (0.1, Some(0.05))] {
        let keys = 100_000;
        let goal = Goal::rate(keys, rate).minimise(Minimise::Wire).churn(churn);
        let plan = Plan::of(Kind::Bloom, &goal).unwrap();
        let message = churn.map_or(Message::Snapshot, |changed| Message::Delta { changed });
        let demand = Demand::new(keys, message);
        let best = least_bits(&demand, rate).unwrap();
        let [(_, bits), (_, hashes)] = plan.params.named()[..] else { panic!("two params") };
        assert_eq!(hashes, u64::from(best.hashes), "{rate}");
        assert!((bits as f64 / best.positions as f64 - 1.0).abs() < 1e-3);
        let sent = plan.traffic.delta.unwrap_or(plan.traffic.snapshot).mean * 8.0;
        // The header, and what coders lose.
        let entropy = entropy_bits(&demand, &best);
        assert!(sent > entropy && sent < 1.002 * entropy + 2000.0);
    }
}

#[test]
fn every_kind_answers_at_once_for_any_number_of_keys() {
    // The time is measured in records/2026-11-15-planner.md; here it must only end.
    for keys in [0, 1, 10_000_000_000] {
        let goal = Goal::rate(keys, 1e-3).churn(0.01).minimise(Minimise::Wire);
        let plans = choose(&goal).unwrap();
        assert_eq!(plans.len(), Kind::ALL.len());
        for plan in plans {
            assert!(plan.traffic.snapshot.mean > 0.0 && plan.traffic.snapshot.mean.is_finite());
            assert!(plan.traffic.delta.unwrap().mean > 0.0);
        }
    }
}

#[test]
fn every_plan_explains_itself_with_its_own_numbers() {
    for keys in [0, 1, 200_000] {
        let goal = Goal::rate(keys, 0.002).churn(0.01);
        for plan in choose(&goal).unwrap() {
            let text = plan.explain(keys);
            let kind = plan.params.kind().name();
            assert!(text.starts_with(kind) && text.contains(plan.reason), "{text}");
            for name in ["symbols", "rate", "memory", "blocks", "snapshot", "delta"] {
                assert!(text.contains(&format!("\n  {name:<10} ")), "{kind} {name}: {text}");
            }
            let rate = format!("= {:.4e}", plan.predicted.rate);
            assert!(text.contains(&rate), "{kind} {rate}: {text}");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}

#[test]
fn a_layout_comes_back_from_its_values() {
    for &kind in Kind::ALL {
        let params = AnyParams::plan(kind, &Goal::rate(1000, 0.01)).unwrap();
        let values: Vec<u64> = params.named().into_iter().map(|(_, value)| value).collect();
        assert_eq!(AnyParams::from_values(kind, &values), Ok(params), "{kind:?}");
        assert!(AnyParams::from_values(kind, &vec![0; values.len()]).is_err(), "{kind:?}");
        for count in (0..30).filter(|&count| count != values.len()) {
            let wrong: Vec<u64> = values.iter().copied().chain([0; 30]).take(count).collect();
            let fault = AnyParams::from_values(kind, &wrong).unwrap_err();
            assert_eq!((fault.name, fault.value), ("params", count as u64), "{kind:?}");
        }
    }
}

/// A label may say any number of keys, and there is a prediction for it.
#[test]
fn any_number_of_keys_is_predicted_for() {
    for &kind in Kind::ALL {
        let params = AnyParams::plan(kind, &Goal::rate(1000, 0.01)).unwrap();
        for keys in [0, 1, 1 << 40, u64::MAX] {
            let rate = params.predict(keys).rate;
            assert!((0.0..=1.0).contains(&rate), "{kind:?} {keys} {rate}");
        }
    }
}
