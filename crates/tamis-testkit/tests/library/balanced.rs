//! Balanced filters beyond the law suite: models against filters, full lists, more keys than
//! planned, merging.

use tamis::balanced::{
    Balanced, BalancedParams, Mht, Policy, Popcount, Scheme, Sequential, Single, TwoChoice,
};
use tamis::{
    AnyParams, Digest, Filter, Full, Goal, Hasher, Insert, Kind, Label, Limits, Params, Size,
    Stored,
};
use tamis_report::keys::KeyStream;
use tamis_report::papers::balanced as papers;

fn members(hasher: Hasher, keys: core::ops::Range<u64>) -> Vec<Digest> {
    KeyStream::new(21).members(hasher, keys).collect()
}

fn absent_keys(hasher: Hasher, keys: u64) -> Vec<Digest> {
    KeyStream::new(21).absent_keys(hasher, 0..keys).collect()
}

fn plan<S: Scheme>(keys: u64, bits: f64, fixed: &[(&str, u64)]) -> BalancedParams<S> {
    Balanced::<S>::plan(&Goal::sized(keys, Size::BitsPerKey(bits)).params(fixed.iter().copied()))
        .unwrap()
}

fn filled<S: Scheme>(params: BalancedParams<S>, keys: u64) -> Balanced<S> {
    let mut filter = Balanced::new(params, Label::planned(Hasher::xxh3(4), keys)).unwrap();
    filter.insert_many(&members(filter.hasher(), 0..keys)).unwrap();
    filter
}

fn nothing_lost<S: Scheme>(filter: &Balanced<S>, keys: core::ops::Range<u64>) {
    let lost = members(filter.hasher(), keys)
        .into_iter()
        .filter(|&digest| !filter.contains_digest(digest))
        .count();
    assert_eq!(lost, 0, "{:?}", filter.params());
    filter.validate().unwrap();
}

/// Checks that `measured` divided by `predicted` differs from 1 by at most `most`.
fn near(measured: f64, predicted: f64, most: f64) {
    assert!((measured / predicted - 1.0).abs() <= most, "{measured} for {predicted}");
}

/// Compares filters of every size with their predictions: the rate from the fill, blocks,
/// overflow.
fn keeps_its_word<S: Scheme>(block: u64, bits: f64) {
    const KEYS: u64 = 200_000;
    let params = plan::<S>(KEYS, bits, &[("block", block)]);
    let predicted = Balanced::<S>::predict(&params, KEYS);
    let mut filter = Balanced::new(params, Label::planned(Hasher::xxh3(4), KEYS)).unwrap();
    let keys = members(filter.hasher(), 0..KEYS);
    let mut read = 0;
    for &digest in &keys {
        read += u64::from(filter.blocks_to_insert(digest));
        filter.insert_digest(digest).unwrap();
    }
    nothing_lost(&filter, 0..KEYS);
    let blocks = |digests: &[Digest]| {
        let sum: u64 =
            digests.iter().map(|&digest| u64::from(filter.blocks_to_contain(digest))).sum();
        sum as f64 / digests.len() as f64
    };
    println!(
        "{} {block} {bits}: {:?} rate {:.3} {:.3} overflow {:?} {:?}",
        Balanced::<S>::KIND.name(),
        params.values(),
        predicted.rate.log10(),
        filter.rate().log10(),
        predicted.overflow,
        filter.overflow(),
    );
    let apart = (filter.rate() / predicted.rate).ln() / predicted.rate_spread;
    assert!(apart.abs() <= 4.0, "{apart} deviations apart");
    near(read as f64 / KEYS as f64, predicted.blocks_per_insert, 0.01);
    near(blocks(&keys), predicted.blocks_per_hit, 0.01);
    near(blocks(&absent_keys(filter.hasher(), 300_000)), predicted.blocks_per_miss, 0.01);
    if let (Some(entries), Some(expected)) = (filter.overflow(), predicted.overflow) {
        assert!((entries as f64 - expected).abs() <= 0.7 * (KEYS as f64).sqrt());
    }
    assert!(predicted.bits_per_key <= bits + 512.0 / KEYS as f64);
    near(filter.footprint() as f64 / KEYS as f64, predicted.bits_per_key, 1e-9);
}

#[test]
fn filters_do_what_was_predicted() {
    for block in [256, 512] {
        for bits in [16.0, 24.0, 32.0] {
            keeps_its_word::<Single>(block, bits);
            keeps_its_word::<Sequential>(block, bits);
            keeps_its_word::<Mht>(block, bits);
            keeps_its_word::<Popcount>(block, bits);
            keeps_its_word::<TwoChoice>(block, bits);
        }
    }
}

/// A block that held many of its keys already counts fewer than came, and is fuller than others
/// with that count. Computed by a second program that follows counter and set bits together.
#[test]
fn counters_and_set_bits_are_followed_together() {
    let rows: [([u64; 9], u64, f64); 3] = [
        ([4111, 512, 2, 1, 0, 254, 137_010_047, 5, 0], 1_000_000, 0.38361),
        ([6635, 512, 2, 1, 0, 205, 4_121_292_178, 0, 0], 1_000_000, 0.20318),
        ([10_845, 512, 4, 1, 0, 126, 3_423_695_212, 13, 0], 1_000_000, 0.07397),
    ];
    for (values, keys, rate) in rows {
        let params = BalancedParams::<Single>::from_values(&values).unwrap();
        let predicted = Balanced::<Single>::predict(&params, keys);
        assert!((predicted.rate - rate).abs() <= 5e-6, "{} for {rate}", predicted.rate);
        let built = filled(params, keys).rate();
        let off = (built / predicted.rate).ln() / predicted.rate_spread;
        assert!(off.abs() <= 4.0, "{built} for {}: {off} deviations", predicted.rate);
    }
    // The paper's SINGLE with 8 bits per key: blocks of 256 bits, k = 6, a list of 0.498%.
    let overflow = papers::mht_least_overflow(1.2, 3).unwrap();
    let bound = papers::Bound::new(32.0, 1.0, overflow);
    let papers::Single { h, p } = papers::Single::reaching(&bound, 32.0).unwrap();
    let coin = (p * 4_294_967_296.0).round() as u64;
    let values = [12_000, 256, 6, 1, 0, h.into(), coin, 1912, 0];
    let params = BalancedParams::<Single>::from_values(&values).unwrap();
    let rate = Balanced::<Single>::predict(&params, 384_000).rate.log10();
    assert!((rate + 1.56419).abs() <= 5e-6, "{rate}");
}

/// The design of the paper: three subtables, 1.2 blocks per insertion.
fn design(
    block: u64,
    beta: f64,
    hashes: u64,
    threshold: u64,
    coin: f64,
) -> (BalancedParams<Mht>, u64) {
    const BLOCKS: u64 = 120_000;
    let share = papers::mht_share(1.2, 3).unwrap();
    let parts = |share: f64| (share * 4_294_967_296.0).round() as u64;
    let keys = (BLOCKS as f64 * block as f64 / beta).round() as u64;
    let values = [BLOCKS, block, hashes, 3, parts(share), threshold, parts(coin), keys / 200, 0];
    (BalancedParams::from_values(&values).unwrap(), keys)
}

/// The notes' table of filters beyond their design size.
#[test]
fn beyond_the_design_size() {
    type Row = (f64, f64, f64, f64, f64);
    let check = |(params, keys): (BalancedParams<Mht>, u64), rows: &[Row]| {
        for &(fill, overflow, insert, miss, rate) in rows {
            let keys = (keys as f64 * fill) as u64;
            let predicted = Balanced::<Mht>::predict(&params, keys);
            let listed = predicted.overflow.unwrap() / keys as f64 * 100.0;
            println!("{fill}: {listed} {predicted:?}");
            assert!((listed - overflow).abs() <= 0.051, "{fill}: {listed}% for {overflow}%");
            assert!((predicted.blocks_per_insert - insert).abs() <= 0.0011);
            assert!((predicted.blocks_per_miss - miss).abs() <= 0.0051);
            assert!((predicted.rate.log10() - rate).abs() <= 0.0031, "{fill}");
        }
    };
    check(
        design(256, 24.0, 17, 11, 0.156568728),
        &[
            (0.5, 0.0, 1.007, 1.053, -5.685),
            (0.8, 0.0, 1.080, 1.399, -4.849),
            (0.9, 0.0, 1.127, 1.637, -4.638),
            (1.0, 0.50, 1.200, 2.095, -4.286),
            (1.05, 2.7, 1.248, 2.303, -4.098),
            (1.1, 5.5, 1.299, 2.453, -4.014),
            (1.2, 11.3, 1.404, 2.639, -3.933),
        ],
    );
    check(
        design(512, 16.0, 11, 32, 0.052804865),
        &[
            (0.5, 0.0, 1.000, 1.004, -4.553),
            (0.8, 0.0, 1.051, 1.413, -3.470),
            (0.9, 0.0, 1.106, 1.675, -3.310),
            (1.0, 0.50, 1.200, 2.539, -2.874),
            (1.05, 4.2, 1.270, 2.755, -2.784),
            (1.1, 8.1, 1.340, 2.838, -2.758),
            (1.2, 15.2, 1.469, 2.919, -2.735),
        ],
    );
}

fn each_key_three_times<S: Scheme>() {
    let params = plan::<S>(20_000, 20.0, &[("block", 256)]);
    let once = filled(params, 20_000);
    let mut thrice = Balanced::new(params, once.label().hasher).unwrap();
    let keys = members(once.hasher(), 0..20_000);
    // A key comes again right after the first time, and much later.
    for (index, &digest) in keys.iter().enumerate() {
        thrice.insert_digest(digest).unwrap();
        assert_eq!(thrice.insert_digest(digest), Ok(false));
        assert_eq!(thrice.insert_digest(keys[index / 2]), Ok(false));
    }
    assert_eq!(thrice.content_id(), once.content_id(), "a key that is in changes nothing");
    assert_eq!(thrice.keys(), 60_000);
    nothing_lost(&thrice, 0..20_000);
}

fn more_keys_than_planned<S: Scheme>() {
    let params = plan::<S>(20_000, 20.0, &[("block", 256)]);
    let filter = filled(params, 24_000);
    nothing_lost(&filter, 0..24_000);
    let predicted = Balanced::<S>::predict(&params, 24_000);
    let apart = (filter.rate() / predicted.rate).ln() / predicted.rate_spread;
    assert!(apart.abs() <= 4.0, "{apart} deviations apart");
    if let (Some(entries), Some(expected)) = (filter.overflow(), predicted.overflow) {
        assert!((entries as f64 - expected).abs() <= 0.7 * 24_000_f64.sqrt());
    }
    let bytes = filter.encode().to_vec();
    let copy = Balanced::<S>::decode(&bytes, Limits::default()).unwrap();
    assert_eq!(copy, filter);
    assert_eq!(copy.footprint(), filter.footprint(), "a grown list takes the same memory again");
}

#[test]
fn duplicates_and_keys_beyond_the_plan_lose_nothing() {
    each_key_three_times::<Single>();
    each_key_three_times::<Sequential>();
    each_key_three_times::<Mht>();
    each_key_three_times::<Popcount>();
    each_key_three_times::<TwoChoice>();
    more_keys_than_planned::<Single>();
    more_keys_than_planned::<Sequential>();
    more_keys_than_planned::<Mht>();
    more_keys_than_planned::<Popcount>();
    more_keys_than_planned::<TwoChoice>();
}

fn without_a_list<S: Scheme>(fixed: &[(&str, u64)], policy: Policy) -> BalancedParams<S> {
    let fixed = [fixed, &[("block", 256), ("list", 0), ("policy", policy as u64)]].concat();
    plan::<S>(20_000, 16.0, &fixed)
}

/// `price` is what forcing may cost, in orders of magnitude of the rate.
fn every_policy<S: Scheme>(fixed: &[(&str, u64)], price: core::ops::Range<f64>) {
    let grown = filled(without_a_list::<S>(fixed, Policy::Grow), 20_000);
    let listed = grown.overflow().unwrap();
    assert!(listed > 20, "{listed}");
    nothing_lost(&grown, 0..20_000);

    let forced = filled(without_a_list::<S>(fixed, Policy::Force), 20_000);
    assert_eq!(forced.overflow(), Some(0));
    nothing_lost(&forced, 0..20_000);
    let paid = forced.rate().log10() - grown.rate().log10();
    assert!(price.contains(&paid), "{paid}");

    let params = without_a_list::<S>(fixed, Policy::Error);
    let mut strict = Balanced::<S>::new(params, Hasher::xxh3(4)).unwrap();
    let mut refused = 0;
    for digest in members(strict.hasher(), 0..20_000) {
        let before = (strict.content_id(), strict.keys());
        match strict.insert_digest(digest) {
            Ok(_) => assert!(strict.contains_digest(digest)),
            Err(Full { keys, .. }) => {
                assert_eq!(
                    (strict.content_id(), strict.keys(), keys),
                    (before.0, before.1, before.1)
                );
                assert!(!strict.contains_digest(digest));
                refused += 1;
                if refused > 20 {
                    break;
                }
            }
        }
    }
    assert!(refused > 20);
}

#[test]
fn a_list_of_size_zero_with_each_policy() {
    // The design of the paper at 16 bits: 0.044 orders of magnitude in the notes.
    let paper = [("choices", 3), ("hashes", 11), ("threshold", 16), ("coin", 972_858_497)];
    every_policy::<Mht>(&paper, 0.03..0.06);
    let open = [("choices", 3), ("hashes", 11), ("threshold", 18)];
    every_policy::<Sequential>(&open, 0.0..0.1);
    every_policy::<Single>(&[("hashes", 11), ("threshold", 22)], 0.05..0.15);
    every_policy::<Popcount>(&[("choices", 2), ("hashes", 10), ("threshold", 138)], 0.0..0.1);
}

fn few<S: Scheme>() {
    for keys in [0, 1, 2] {
        let filter = filled(Balanced::<S>::plan(&Goal::rate(keys, 0.01)).unwrap(), keys);
        nothing_lost(&filter, 0..keys);
        assert!(filter.rate() <= 0.05);
        assert_eq!(Balanced::<S>::decode(&filter.encode().to_vec(), Limits::default()), Ok(filter));
    }
    // The smallest filter, with far more keys than it can hold.
    let mut values = [1, 256, 1, 1, 0, 0, 0, 0, 0];
    let filter = filled(BalancedParams::<S>::from_values(&values).unwrap(), 500);
    nothing_lost(&filter, 0..500);
    values[3] = 2;
    assert!(BalancedParams::<S>::from_values(&values).is_err(), "more choices than blocks");
}

#[test]
fn few_keys_and_few_blocks() {
    few::<Single>();
    few::<Sequential>();
    few::<Mht>();
    few::<Popcount>();
    few::<TwoChoice>();
}

fn merged<S: Scheme>() {
    let params = plan::<S>(20_000, 20.0, &[("block", 256)]);
    let make = |range: core::ops::Range<u64>| {
        let mut filter = Balanced::<S>::new(params, Hasher::xxh3(4)).unwrap();
        filter.insert_many(&members(filter.hasher(), range)).unwrap();
        filter
    };
    let (mut left, right) = (make(0..14_000), make(12_000..20_000));
    left.merge(&right).unwrap();
    nothing_lost(&left, 0..20_000);
    assert_eq!(left.keys(), 22_000);
    let other = Balanced::<S>::new(params, Hasher::xxh3(5)).unwrap();
    assert_eq!(left.merge(&other).unwrap_err().field().unwrap(), "seed");
    let smaller = plan::<S>(20_000, 19.0, &[("block", 256)]);
    let other = Balanced::<S>::new(smaller, Hasher::xxh3(4)).unwrap();
    assert_eq!(left.merge(&other).unwrap_err().field().unwrap(), "blocks");
}

#[test]
fn merging_loses_nothing() {
    merged::<Single>();
    merged::<Sequential>();
    merged::<Mht>();
    merged::<Popcount>();
    merged::<TwoChoice>();
}

/// The table of `docs/papers/001-balanced.md` has what is planned.
#[test]
fn the_recorded_figures_are_the_planned_ones() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/papers/001-balanced.md");
    let page = std::fs::read_to_string(page).unwrap();
    let planned = |kind: Kind, bits: f64, fixed: &[(&str, u64)]| {
        let goal = Goal::sized(1_000_000, Size::BitsPerKey(bits)).params(fixed.iter().copied());
        let predicted = AnyParams::plan(kind, &goal).unwrap().predict(goal.keys);
        assert!(predicted.bits_per_key <= bits + 1e-3);
        (predicted.rate.log10(), predicted.blocks_per_miss)
    };
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| 24 |") || line.starts_with("| 32 |"))
    {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let (bits, kind) = (cells[1].parse().unwrap(), Kind::from_name(cells[2]).unwrap());
        let (rate, miss) = planned(kind, bits, &[]);
        assert_eq!(
            (format!("{rate:.3}"), format!("{miss:.2}")),
            (cells[3].into(), cells[4].into())
        );
        if !cells[5].is_empty() {
            let (rate, miss) = planned(kind, bits, &[("reads", 149)]);
            assert_eq!(format!("{rate:.3} ({miss:.2})"), cells[5]);
            assert!(miss < 1.5);
            if kind == Kind::BalancedPopcount {
                assert!(
                    rate <= planned(Kind::Blocked, bits, &[]).0 - 0.15,
                    "an order of 0.15 less"
                );
            }
        }
        rows += 1;
    }
    assert_eq!(rows, 14);
}

/// The sizes of subtables follow a stated rule: every subtable has a block, and all add up.
#[test]
fn subtables_add_up() {
    for blocks in [1, 2, 3, 4, 5, 7, 100, 12_345, 1 << 39] {
        for choices in 1..=4.min(blocks) {
            for ratio in [0, 1, 700_000_000, 3_000_000_000, 1 << 32] {
                let ratio = if choices == 1 { 0 } else { ratio };
                let values = [blocks, 512, 8, choices, ratio, 20, 0, 0, 0];
                let params = BalancedParams::<Mht>::from_values(&values).unwrap();
                let mut end = 0;
                for stage in 0..choices as u32 {
                    let (start, size) = params.layout().subtable(stage);
                    assert_eq!(start, end);
                    assert!(size >= 1);
                    end = start + size;
                }
                assert_eq!(end, blocks, "{values:?}");
            }
        }
    }
}

/// Where only a rate is asked for, the shape follows a rule. A limit on reads that nothing reaches
/// makes the planner search.
#[test]
fn rules_are_as_good_as_searches() {
    for kind in [
        Kind::BalancedSingle,
        Kind::BalancedSequential,
        Kind::BalancedMht,
        Kind::BalancedPopcount,
        Kind::BalancedTwoChoice,
    ] {
        for keys in [1000, 30_000, 1_000_000, 300_000_000] {
            for rate in [0.3, 0.04, 0.01, 0.004, 0.001, 2e-4, 2e-5, 1e-6] {
                let goal = Goal::rate(keys, rate);
                let by_rule = AnyParams::plan(kind, &goal).unwrap().predict(keys);
                let search = goal.params([("reads", 1_000_000)]);
                let found = AnyParams::plan(kind, &search).unwrap().predict(keys);
                assert!(by_rule.rate <= rate, "{} {keys} {rate}: {by_rule:?}", kind.name());
                let more = by_rule.bits_per_key / found.bits_per_key - 1.0;
                println!("{} {keys} {rate}: {:.3}% more", kind.name(), 100.0 * more);
                // Half a per cent, and where the list of few keys takes room a little more.
                let most = if keys < 1_000_000 { 0.02 } else { 0.005 };
                assert!(more <= most, "{} {keys} {rate}: {more} more", kind.name());
            }
        }
    }
}
