//! Rank-indexed tables: laws, an exact multiset, growth, merging, hostile streams.

use std::collections::BTreeMap;

use tamis::rank_indexed::RankParams;
use tamis::{
    Absent, Count, Digest, Filter, Goal, Hasher, Insert, Limits, RankCounting, RankIndexed,
    RankMap, RankSet, Remove, Stored,
};
use tamis_report::keys::KeyStream;
use tamis_testkit::laws;

fn make<F: Stored<Params = RankParams>>(params: RankParams) -> impl Fn(Hasher) -> F {
    move |hasher| F::new(params, hasher).unwrap()
}

/// Two buckets, short fingerprints, few keys planned: everything collides, overflows and grows.
fn crowded() -> RankParams {
    RankParams::new(2, 5, 3, 0, 6, 1).unwrap()
}

#[test]
fn all_variants_keep_the_laws() {
    for (keys, rate) in [(1, 0.1), (2, 0.01), (37, 0.02), (1000, 0.001), (3000, 0.5)] {
        let goal = Goal::rate(keys, rate);
        laws::check(make::<RankIndexed>(RankIndexed::plan(&goal).unwrap()), keys);
        laws::check(make::<RankSet>(RankSet::plan(&goal).unwrap()), keys);
        laws::check(make::<RankCounting>(RankCounting::plan(&goal).unwrap()), keys);
        laws::check(make::<RankMap>(RankMap::plan(&goal).unwrap()), keys);
        laws::check_removal(make::<RankIndexed>(RankIndexed::plan(&goal).unwrap()), keys);
        laws::check_removal(make::<RankCounting>(RankCounting::plan(&goal).unwrap()), keys);
        laws::check_removal(make::<RankMap>(RankMap::plan(&goal).unwrap()), keys);
    }
    laws::check(make::<RankIndexed>(crowded()), 300);
    laws::check(make::<RankCounting>(crowded()), 300);
    laws::check(make::<RankSet>(crowded()), 300);
}

fn filled(keys: std::ops::Range<u64>, planned: u64, rate: f64) -> RankIndexed {
    let mut filter = RankIndexed::with_rate(planned, rate).unwrap();
    let members: Vec<Digest> = KeyStream::new(4).members(filter.hasher(), keys).collect();
    filter.insert_many(&members).unwrap();
    filter
}

/// Small pseudorandom numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, range: u64) -> u64 {
        self.0 += 1;
        tamis::internals::address::reduce(Digest(self.0).word(9), range)
    }
}

#[test]
fn a_million_operations_at_full_load_are_exact() {
    const KEYS: u64 = 50_000;
    for rate in [0.01, 0.0001] {
        let mut filter = filled(0..KEYS, KEYS, rate);
        let empty = RankIndexed::with_rate(KEYS, rate).unwrap();
        let hasher = filter.hasher();
        let stream = KeyStream::new(4);
        let mut members: Vec<u64> = (0..KEYS).collect();
        let mut next = KEYS;
        let mut dice = Dice(0);
        for step in 0..500_000 {
            // Removes a key and inserts one: a new key, or a member.
            let out = members.swap_remove(dice.below(KEYS) as usize);
            filter.remove_digest(hasher.digest(&stream.member(out))).unwrap();
            let again = dice.below(10) == 0;
            let new = if again { members[dice.below(KEYS - 1) as usize] } else { next };
            next += u64::from(!again);
            filter.insert_digest(hasher.digest(&stream.member(new))).unwrap();
            members.push(new);
            if step % 50_000 == 0 {
                filter.validate().unwrap();
                let found = |&key: &u64| filter.contains(&stream.member(key));
                assert!(members.iter().all(found), "false negative");
            }
        }
        let mut truth: BTreeMap<u64, u64> = BTreeMap::new();
        for &key in &members {
            let identity = tamis::internals::address::identity(
                hasher.digest(&stream.member(key)),
                filter.params().universe(),
            );
            *truth.entry(identity).or_default() += 1;
        }
        let entries = filter.entries().into_iter().map(|entry| (entry.identity, entry.count));
        assert!(entries.eq(truth), "not the multiset");
        assert_eq!(filter.overflow(), Some(0));
        for key in members {
            filter.remove_digest(hasher.digest(&stream.member(key))).unwrap();
        }
        filter.validate().unwrap();
        assert_eq!(filter.content_id(), empty.content_id());
        assert_eq!(filter.encode().to_vec(), empty.encode().to_vec());
    }
}

#[test]
fn history_leaves_no_trace() {
    let mut there = filled(0..3000, 5000, 0.01);
    let mut back = RankIndexed::with_rate(5000, 0.01).unwrap();
    let stream = KeyStream::new(4);
    for key in (0..5000).rev() {
        back.insert(&stream.member(key)).unwrap();
    }
    for key in 3000..5000 {
        back.remove(&stream.member(key)).unwrap();
    }
    assert_eq!(there.content_id(), back.content_id());
    assert_eq!(there.encode().to_vec(), back.encode().to_vec());
    there.grow().unwrap();
    assert_eq!(there.content_id(), back.content_id());
}

#[test]
fn twice_the_planned_keys_lose_nothing_and_cost_what_the_model_says() {
    for (planned, rate) in [(1, 0.1), (37, 0.01), (20_000, 0.001), (100_000, 0.01)] {
        let filter = filled(0..2 * planned, planned, rate);
        let stream = KeyStream::new(4);
        assert!((0..2 * planned).all(|key| filter.contains(&stream.member(key))));
        filter.validate().unwrap();
        assert_eq!(filter.overflow(), Some(0));
        let plan = RankIndexed::plan(&Goal::rate(planned, rate)).unwrap();
        let predicted = RankIndexed::predict(&plan, 2 * planned);
        let held = filter.footprint() as f64 / (2 * planned) as f64;
        assert!((held - predicted.bits_per_key).abs() < 1e-9, "{held} {}", predicted.bits_per_key);
        let wire = filter.encoded_len() as f64 * 8.0 / (2 * planned) as f64;
        assert!((wire / predicted.wire_bits_per_key - 1.0).abs() < 0.005);
        let spread = (-3.3 * predicted.rate_spread).exp()..=(3.3 * predicted.rate_spread).exp();
        assert!(spread.contains(&(filter.rate() / predicted.rate)), "{}", filter.rate());
        assert!(predicted.rate > 1.9 * RankIndexed::predict(&plan, planned).rate * (1.0 - rate));
    }
}

#[test]
fn one_key_a_million_times() {
    fn check<F: Stored<Params = RankParams> + Remove + Count>(limit: u64) {
        let params = RankIndexed::plan(&Goal::rate(100, 0.01)).unwrap();
        let mut filter = F::new(params, Hasher::default()).unwrap();
        let footprint = filter.footprint();
        filter.insert("another").unwrap();
        for _ in 0..1_000_000 {
            filter.insert("often").unwrap();
        }
        assert_eq!(filter.count("often"), Some(1_000_000));
        assert!(filter.footprint() < footprint + limit);
        filter.validate().unwrap();
        let copy = F::decode(&filter.encode().to_vec(), Limits::default()).unwrap();
        assert_eq!(copy.content_id(), filter.content_id());
        assert_eq!(copy.count("often"), Some(1_000_000));
        for _ in 0..1_000_000 {
            filter.remove("often").unwrap();
        }
        assert_eq!(filter.remove("often"), Err(Absent));
        assert!(filter.contains("another"));
        assert_eq!(filter.keys(), 1);
    }
    check::<RankIndexed>(4096);
    check::<RankCounting>(4096);
}

#[test]
fn keys_that_all_fall_into_one_bucket_are_not_lost() {
    // What an attacker can do who knows the seed.
    let mut filter = RankIndexed::with_rate(5000, 0.001).unwrap();
    let buckets = filter.params().layout().buckets;
    let chosen: Vec<Digest> = KeyStream::new(5)
        .members(filter.hasher(), 0..2_000_000)
        .filter(|digest| tamis::internals::address::reduce(digest.0, buckets) == 7)
        .take(3000)
        .collect();
    assert_eq!(chosen.len(), 3000);
    for &digest in &chosen {
        filter.insert_digest(digest).unwrap();
    }
    assert!(filter.overflow() > Some(0));
    filter.validate().unwrap();
    assert!(chosen.iter().all(|&digest| filter.contains_digest(digest)));
    let copy = RankIndexed::decode(&filter.encode().to_vec(), Limits::default()).unwrap();
    assert_eq!(copy.content_id(), filter.content_id());
    assert!(chosen.iter().all(|&digest| copy.contains_digest(digest)));
    for &digest in &chosen {
        filter.remove_digest(digest).unwrap();
    }
    assert_eq!((filter.overflow(), filter.used()), (Some(0), 0));
    filter.validate().unwrap();
}

#[test]
fn a_hundred_times_the_planned_keys_are_not_lost_either() {
    // No layout holds this many keys of few identities: the overflow takes the rest.
    for (planned, rate) in [(200, 0.5), (1, 0.3)] {
        let filter = filled(0..20_000, planned, rate);
        let stream = KeyStream::new(4);
        assert!((0..20_000).all(|key| filter.contains(&stream.member(key))));
        filter.validate().unwrap();
        assert_eq!(filter.entries().iter().map(|entry| entry.count).sum::<u64>(), 20_000);
        let copy = RankIndexed::decode(&filter.encode().to_vec(), Limits::default()).unwrap();
        assert_eq!(copy.content_id(), filter.content_id());
        let mut twice = filter.clone();
        twice.merge(&filter).unwrap();
        assert_eq!(twice.entries().iter().map(|entry| entry.count).sum::<u64>(), 40_000);
    }
}

#[test]
fn halves_merge_to_the_whole() {
    let (mut left, right, whole) = (
        filled(0..5000, 10_000, 0.01),
        filled(5000..10_000, 10_000, 0.01),
        filled(0..10_000, 10_000, 0.01),
    );
    left.merge(&right).unwrap();
    assert_eq!(left.content_id(), whole.content_id());
    assert_eq!(left.keys(), 10_000);
    assert_eq!(left.encode().to_vec(), whole.encode().to_vec());
    left.validate().unwrap();
}

#[test]
fn filters_of_other_sizes_merge_where_their_universes_allow() {
    let make = |buckets, fingerprint, capacity| {
        RankIndexed::new(
            RankParams::new(buckets, 60, fingerprint, 0, capacity, 1).unwrap(),
            Hasher::default(),
        )
        .unwrap()
    };
    let stream = KeyStream::new(6);
    let fill = |mut filter: RankIndexed, keys: std::ops::Range<u64>| {
        for key in keys {
            filter.insert(&stream.member(key)).unwrap();
        }
        filter
    };
    // The same universe cut otherwise; a finer one; a coarser one.
    for (buckets, fingerprint) in [(40, 9), (80, 8), (20, 12), (20, 7)] {
        let mut left = fill(make(20, 10, 1000), 0..1000);
        let right = fill(make(buckets, fingerprint, 500), 1000..1500);
        left.merge(&right).unwrap();
        left.validate().unwrap();
        assert!((0..1500).all(|key| left.contains(&stream.member(key))));
        let universe = ((20 * 60) << 10).min((buckets * 60) << fingerprint);
        assert_eq!(left.params().universe(), universe);
        let whole = fill(make((universe / 60) >> 7, 7, 1500), 0..1500);
        assert_eq!(left.content_id(), whole.content_id());
    }
    let refused =
        |other: &RankIndexed| make(20, 10, 1000).merge(other).unwrap_err().field().unwrap();
    assert_eq!(refused(&make(21, 10, 1000)), "universe");
    let seeded = RankIndexed::new(RankParams::new(20, 60, 10, 0, 9, 1).unwrap(), Hasher::xxh3(1));
    assert_eq!(refused(&seeded.unwrap()), "seed");
}

#[test]
fn growing_and_shrinking_lose_nothing() {
    let stream = KeyStream::new(4);
    for planned in [1, 50, 3000] {
        let mut filter = filled(0..planned, planned, 0.001);
        let (id, footprint, rate) = (filter.content_id(), filter.footprint(), filter.rate());
        for _ in 0..5 {
            filter.grow().unwrap();
        }
        assert!(filter.params().capacity() >= 32 * planned);
        assert!(filter.footprint() > footprint || planned == 1);
        for _ in 0..5 {
            filter.shrink().unwrap();
            filter.validate().unwrap();
            assert_eq!(filter.content_id(), id);
        }
        assert_eq!(filter.params().capacity(), planned);
        assert!((0..planned).all(|key| filter.contains(&stream.member(key))));
        assert!(filter.footprint() <= footprint + footprint / 50 + 512);
        filter.coarsen(3).unwrap();
        filter.validate().unwrap();
        assert!((0..planned).all(|key| filter.contains(&stream.member(key))));
        assert!((filter.rate() / rate - 8.0).abs() < 0.1, "{} from {rate}", filter.rate());
        assert!(filter.coarsen(60).is_err());
    }
}

/// A filter that has grown as far as it can has no bit left to drop; the other one's layout has.
#[test]
fn a_merge_works_both_ways() {
    let mut fine = RankIndexed::with_rate(100, 0.05).unwrap();
    let mut coarse = fine.clone();
    coarse.coarsen(2).unwrap();
    while fine.grow().is_ok() {}
    assert!((0..60_u64).all(|key| fine.insert(&key).is_ok()));
    assert!((40..90_u64).all(|key| coarse.insert(&key).is_ok()));
    let (mut one, mut other) = (fine.clone(), coarse.clone());
    one.merge(&coarse).unwrap();
    other.merge(&fine).unwrap();
    assert_eq!(one.content_id(), other.content_id());
    assert!((0..90_u64).all(|key| one.contains(&key)));
}

#[test]
fn a_set_stores_equal_identities_once() {
    let params = RankParams::new(4, 8, 4, 0, 100, 1).unwrap();
    let mut set = RankSet::new(params, Hasher::default()).unwrap();
    let mut multiset = RankIndexed::new(params, Hasher::default()).unwrap();
    for key in 0..400_u64 {
        set.insert(&key).unwrap();
        multiset.insert(&key).unwrap();
    }
    let distinct = multiset.entries();
    assert_eq!(set.used(), distinct.len() as u64);
    assert!(set.entries().iter().all(|entry| entry.count == 1));
    assert_eq!(multiset.used(), 400);
    assert_eq!(set.rate(), multiset.rate());
    let mut other = RankSet::new(params, Hasher::default()).unwrap();
    (0..400_u64).for_each(|key| {
        other.insert(&key).unwrap();
    });
    let id = set.content_id();
    set.merge(&other).unwrap();
    assert_eq!(set.content_id(), id, "the union of equal sets");
}

#[test]
fn maps_keep_values_also_of_keys_that_share_an_identity() {
    let params = RankParams::new(2, 4, 2, 12, 30, 1).unwrap();
    let mut map = RankMap::new(params, Hasher::default()).unwrap();
    let value = |key: u64| key * 37 % 4096;
    // 32 identities for 300 keys: all of them are shared.
    for key in 0..300_u64 {
        map.insert_value(&key, value(key)).unwrap();
        assert!(map.values(&key).contains(&value(key)));
    }
    map.validate().unwrap();
    for key in 0..300_u64 {
        assert!(map.values(&key).contains(&value(key)), "every key has its own value");
        assert!(map.get(&key).unwrap() <= value(key), "the smallest is given");
        map.update(&key, value(key), value(key) ^ 5).unwrap();
        assert!(map.values(&key).contains(&(value(key) ^ 5)));
    }
    assert_eq!(map.update(&0_u64, 4095, 1), Err(Absent.into()), "no such old value");
    let copy = RankMap::decode(&map.encode().to_vec(), Limits::default()).unwrap();
    assert_eq!(copy.content_id(), map.content_id());
    for key in 0..300_u64 {
        map.remove_value(&key, value(key) ^ 5).unwrap();
    }
    assert_eq!((map.keys(), map.used()), (0, 0));
    assert_eq!(map.get(&1_u64), None);
    // The widest values there are.
    let params = RankParams::new(20, 64, 56, 32, 100, 1);
    assert!(params.is_err(), "more than 2^62 identities");
    let mut map =
        RankMap::new(RankParams::new(1, 64, 56, 32, 100, 1).unwrap(), Hasher::default()).unwrap();
    for key in 0..100_u64 {
        map.insert_value(&key, u64::MAX - key).unwrap();
    }
    assert!((0..100_u64).all(|key| map.get(&key) == Some((u64::MAX - key) & 0xffff_ffff)));
    map.validate().unwrap();
}

/// An exact map from identities to values beside a map whose keys share a few identities, with
/// more entries than cells.
#[test]
fn a_removal_takes_the_smallest_value_or_the_one_that_is_named() {
    for (buckets, locations, fingerprint) in [(2, 4, 2), (1, 1, 1), (3, 1, 4)] {
        let params = RankParams::new(buckets, locations, fingerprint, 4, 4, 1).unwrap();
        let mut map = RankMap::new(params, Hasher::default()).unwrap();
        let mut truth: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let universe = params.universe();
        let mut dice = Dice(24);
        for step in 0..6000 {
            let key = dice.below(50);
            let identity = tamis::internals::address::identity(map.hasher().digest(&key), universe);
            let held = truth.entry(identity).or_default();
            // More come than go, then more go than come.
            let comes = dice.below(10) < if step < 3000 { 7 } else { 3 };
            let named = 16 + dice.below(16);
            let value = named & 15;
            if comes {
                map.insert_value(&key, named).unwrap();
                held.push(value);
                held.sort_unstable();
            } else if dice.below(2) == 0 {
                let taken = held.iter().position(|&one| one == value).map(|at| held.remove(at));
                assert_eq!(map.remove_value(&key, named).is_ok(), taken.is_some());
            } else {
                let smallest = (!held.is_empty()).then(|| held.remove(0));
                assert_eq!(map.get(&key), smallest);
                assert_eq!(map.remove(&key).is_ok(), smallest.is_some());
            }
            let told = map.values(&key);
            let mut distinct = held.clone();
            distinct.dedup();
            assert!(distinct.iter().all(|value| told.contains(value)), "step {step}");
            assert!(told.iter().all(|value| held.contains(value)), "step {step}");
        }
        map.validate().unwrap();
        let entries: u64 = map.entries().iter().map(|entry| entry.count).sum();
        assert_eq!(entries, truth.values().map(|held| held.len() as u64).sum::<u64>());
    }
}
