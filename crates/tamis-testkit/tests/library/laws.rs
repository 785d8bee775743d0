//! Every filter through the law suite.

use tamis::balanced::{
    Balanced, BalancedParams, Mht, Popcount, Scheme, Sequential, Single, TwoChoice,
};
use tamis::bloom::{BlockedParams, BloomParams, CountingParams};
use tamis::{BlockedBloom, Bloom, CountingBloom, Hasher, Insert, Params, Stored};
use tamis_testkit::laws;

fn bloom(bits: u64, hashes: u32) -> impl Fn(Hasher) -> Bloom {
    move |hasher| Bloom::new(BloomParams::new(bits, hashes).unwrap(), hasher).unwrap()
}

fn counting(counters: u64, hashes: u32, width: u32) -> impl Fn(Hasher) -> CountingBloom {
    let params = CountingParams::new(counters, hashes, width).unwrap();
    move |hasher| CountingBloom::new(params, hasher).unwrap()
}

fn blocked(blocks: u64, block: u32, hashes: u32) -> impl Fn(Hasher) -> BlockedBloom {
    let params = BlockedParams::new(blocks, block, hashes).unwrap();
    move |hasher| BlockedBloom::new(params, hasher).unwrap()
}

#[test]
fn bloom_keeps_the_laws() {
    laws::check(bloom(10_007, 7), 1000);
    laws::check(bloom(1, 1), 3);
    laws::check(bloom(64, 64), 2);
    laws::check(bloom(100_000, 1), 5000);
}

#[test]
fn counting_keeps_the_laws() {
    laws::check(counting(10_007, 7, 4), 1000);
    laws::check(counting(1, 1, 1), 3);
    laws::check(counting(999, 3, 16), 300);
    laws::check_removal(counting(10_007, 7, 4), 1000);
    laws::check_removal(counting(40_000, 20, 8), 1000);
    laws::check_removal(counting(13, 5, 16), 400);
}

#[test]
fn blocked_keeps_the_laws() {
    laws::check(blocked(20, 512, 7), 1000);
    laws::check(blocked(41, 256, 8), 500);
    laws::check(blocked(9, 512, 16), 500);
    laws::check(blocked(1, 256, 1), 3);
}

/// Blocks, bits of a block, bits of a key, choices, ratio, threshold, coin, list, policy.
fn balanced<S: Scheme>(values: [u64; 9]) -> impl Fn(Hasher) -> Balanced<S> {
    let params = BalancedParams::from_values(&values).unwrap();
    move |hasher| Balanced::new(params, hasher).unwrap()
}

#[test]
fn balanced_filters_keep_the_laws() {
    const HALF: u64 = 1 << 31;
    laws::check(balanced::<Single>([60, 256, 11, 1, 0, 16, HALF, 20, 0]), 1000);
    laws::check(balanced::<Single>([60, 256, 11, 1, 0, 15, 0, 0, 0]), 1000);
    laws::check(balanced::<Single>([1, 512, 32, 1, 0, 0, 1 << 32, 0, 2]), 3);
    laws::check(balanced::<Sequential>([30, 512, 12, 3, 0, 31, HALF, 9, 0]), 1000);
    laws::check(balanced::<Mht>([60, 256, 11, 3, HALF / 2, 16, HALF, 20, 0]), 1000);
    laws::check(balanced::<Mht>([32, 512, 11, 2, HALF / 2, 32, HALF, 0, 2]), 1000);
    laws::check(balanced::<Popcount>([60, 256, 11, 3, HALF / 2, 132, 0, 20, 0]), 1000);
    laws::check(balanced::<Popcount>([4, 512, 1, 4, 0, 0, 0, 0, 0]), 30);
    laws::check(balanced::<TwoChoice>([60, 256, 11, 2, 0, 0, 0, 0, 0]), 1000);
    laws::check(balanced::<TwoChoice>([1, 512, 5, 1, 0, 0, 0, 0, 0]), 3);
}

#[test]
fn saturated_counters_lose_the_count_but_never_a_key() {
    let mut filter = counting(1000, 4, 2)(Hasher::default());
    for _ in 0..10 {
        filter.insert("often");
    }
    assert_eq!(filter.count("often"), None);
    assert!(filter.saturated() >= 1);
    for _ in 0..10 {
        filter.remove("often").unwrap();
    }
    assert!(filter.contains("often"), "a saturated counter is never lowered");
    filter.clear();
    assert_eq!((filter.saturated(), filter.contains("often")), (0, false));
}

#[test]
fn merging_is_inserting_both() {
    fn halves<F: Stored + Insert + Clone>(make: impl Fn(Hasher) -> F, merge: impl Fn(&mut F, &F)) {
        let (mut left, mut right, mut whole) =
            (make(Hasher::default()), make(Hasher::default()), make(Hasher::default()));
        for key in 0..600_u64 {
            if key % 3 == 0 { left.insert(&key) } else { right.insert(&key) }.unwrap();
            whole.insert(&key).unwrap();
        }
        merge(&mut left, &right);
        assert_eq!(left.content_id(), whole.content_id());
        assert_eq!(left.keys(), 600);
    }
    halves(bloom(5000, 5), |left, right| left.merge(right).unwrap());
    halves(counting(5000, 5, 8), |left, right| {
        left.merge(right).unwrap();
    });
    halves(blocked(12, 512, 5), |left, right| {
        left.merge(right).unwrap();
    });
}

#[test]
fn what_differs_cannot_be_merged_and_is_named() {
    let base = bloom(5000, 5)(Hasher::default());
    let field = |other: &Bloom| base.clone().merge(other).unwrap_err().field().unwrap();
    assert_eq!(field(&bloom(5001, 5)(Hasher::default())), "bits");
    assert_eq!(field(&bloom(5000, 6)(Hasher::default())), "hashes");
    assert_eq!(field(&bloom(5000, 5)(Hasher::xxh3(1))), "seed");
    assert_eq!(field(&bloom(5000, 5)(Hasher::sip13(0))), "hash");
    assert_eq!(
        base.clone().intersect(&bloom(5001, 5)(Hasher::default())).unwrap_err().field,
        "bits"
    );

    let base = counting(5000, 5, 4)(Hasher::default());
    let field = |other: &CountingBloom| base.clone().merge(other).unwrap_err().field().unwrap();
    assert_eq!(field(&counting(5001, 5, 4)(Hasher::default())), "counters");
    assert_eq!(field(&counting(5000, 5, 8)(Hasher::default())), "width");

    let base = blocked(50, 512, 5)(Hasher::default());
    let field = |other: &BlockedBloom| base.clone().merge(other).unwrap_err().field().unwrap();
    assert_eq!(field(&blocked(51, 512, 5)(Hasher::default())), "blocks");
    assert_eq!(field(&blocked(50, 256, 5)(Hasher::default())), "block");
}

#[test]
fn a_counting_filter_projects_to_the_plain_one() {
    let (mut counters, mut plain) =
        (counting(5003, 5, 4)(Hasher::default()), bloom(5003, 5)(Hasher::default()));
    for key in 0..500_u64 {
        counters.insert(&key);
        plain.insert(&key);
    }
    assert_eq!(counters.to_bloom().unwrap(), plain);
    assert_eq!(counters.rate(), plain.rate());
}

#[test]
fn bloom_estimates_how_many_keys_are_in() {
    let mut filter = bloom(100_000, 7)(Hasher::default());
    assert_eq!(filter.estimated_keys(), 0.0);
    for key in 0..10_000_u64 {
        filter.insert(&key);
        filter.insert(&key);
    }
    // The standard error of the estimate is below 0.4% at this size; the keys came twice.
    assert!((filter.estimated_keys() / 10_000.0 - 1.0).abs() < 0.016);
    let mut full = bloom(8, 8)(Hasher::default());
    (0..100_u64).for_each(|key| {
        full.insert(&key);
    });
    assert_eq!(full.estimated_keys(), f64::INFINITY);
}

#[test]
fn an_intersection_keeps_what_both_have() {
    let (mut left, mut right) =
        (bloom(50_000, 7)(Hasher::default()), bloom(50_000, 7)(Hasher::default()));
    (0..2000_u64).for_each(|key| {
        left.insert(&key);
        right.insert(&(key + 1000));
    });
    left.intersect(&right).unwrap();
    assert!((1000..2000_u64).all(|key| left.contains(&key)));
    assert!(left.rate() <= right.rate());
}
