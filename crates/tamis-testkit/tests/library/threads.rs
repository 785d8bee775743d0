//! Filters under several threads: nothing is lost, and bytes do not depend on the order of
//! operations.

use std::sync::Barrier;
use std::thread;

use tamis::bloom::{BlockedParams, BloomParams};
use tamis::{
    Aging, AnyFilter, AnyParams, AtomicBlockedBloom, AtomicBloom, BlockedBloom, BlockedRank, Bloom,
    ContentId, Count, CountingBloom, DLeft, Digest, FastTable, Filter, Full, Goal, Hasher, Insert,
    Kind, Label, Limits, RankCounting, RankIndexed, RankSet, Remove, Sharded, Size, Stored,
};
use tamis_report::{keys::KeyStream, memory};

const THREADS: usize = 4;

/// Filters go to other threads, and several threads ask one at once. (An [`AnyFilter`] has a
/// filter of each kind inside.)
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<AnyFilter>();
    is_shared::<Sharded<AnyFilter>>();
    is_shared::<AtomicBloom>();
    is_shared::<AtomicBlockedBloom>();
    is_shared::<Aging>();
    is_shared::<FastTable<String, u64>>();
};

fn members(keys: u64) -> Vec<Digest> {
    KeyStream::new(11).members(Hasher::default(), 0..keys).collect()
}

fn absent_keys(keys: u64) -> Vec<Digest> {
    KeyStream::new(11).absent_keys(Hasher::default(), 0..keys).collect()
}

fn sharded<F: Stored>(keys: u64, shards: usize) -> Sharded<F> {
    Sharded::plan(&Goal::rate(keys, 0.01), Hasher::default(), shards).unwrap()
}

fn contents<F: Stored>(filter: &Sharded<F>) -> Vec<ContentId> {
    let mut ids = Vec::new();
    filter.for_each_shard(|shard| ids.push(shard.content_id()));
    ids
}

fn all_in(filter: &impl Filter, digests: &[Digest]) -> bool {
    let mut answers = vec![false; digests.len()];
    filter.contains_many(digests, &mut answers);
    answers.iter().all(|&answer| answer)
}

/// Every thread inserts, looks up and removes keys of its own, one by one and in batches, and one
/// key that all threads share. In the end every shard holds exactly what one thread would have
/// left.
fn stress<F: Stored + Remove + Count + Send + Sync>() {
    const KEYS: u64 = 24_000;
    const ROUNDS: usize = 5;
    let everybody = Hasher::default().digest("everybody");
    let filter = sharded::<F>(KEYS, 16);
    let all = members(KEYS);
    let parts: Vec<&[Digest]> = all.chunks(all.len() / THREADS).collect();
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for part in &parts {
            scope.spawn(|| {
                let (kept, passing) = part.split_at(part.len() / 2);
                start.wait();
                filter.insert_many(kept).unwrap();
                for _ in 0..ROUNDS {
                    for (&passing, &kept) in passing.iter().zip(kept) {
                        filter.insert_digest(passing).unwrap();
                        assert!(filter.contains_digest(kept), "lost while others insert");
                    }
                    filter.insert_digest(everybody).unwrap();
                    filter.insert_many(passing).unwrap();
                    assert!(all_in(&filter, kept) && all_in(&filter, passing), "lost in a batch");
                    assert!(filter.contains_digest(everybody));
                    assert_eq!(filter.remove_many(passing), passing.len() as u64);
                    for (&passing, &kept) in passing.iter().zip(kept) {
                        assert!(filter.count_digest(passing).is_none_or(|count| count >= 1));
                        filter.remove_digest(passing).unwrap();
                        assert!(filter.contains_digest(kept), "lost while others remove");
                    }
                }
            });
        }
    });
    assert_eq!(filter.keys(), KEYS / 2 + (THREADS * ROUNDS) as u64);

    let alone = sharded::<F>(KEYS, 16);
    for part in &parts {
        part[..part.len() / 2].iter().for_each(|&kept| {
            alone.insert_digest(kept).unwrap();
        });
    }
    (0..THREADS * ROUNDS).for_each(|_| {
        alone.insert_digest(everybody).unwrap();
    });
    assert!(contents(&filter) == contents(&alone), "not what one thread would have left");
    let counts = |filter: &Sharded<F>| all.iter().map(|&key| filter.count_digest(key)).collect();
    let (counts, expected): (Vec<_>, Vec<_>) = (counts(&filter), counts(&alone));
    assert_eq!(counts, expected);
    assert_eq!(filter.count_digest(everybody), alone.count_digest(everybody));
    for shard in filter.into_shards() {
        shard.validate().unwrap();
    }
}

#[test]
fn rank_indexed_under_stress() {
    stress::<RankIndexed>();
}

#[test]
fn dleft_under_stress() {
    stress::<DLeft>();
}

#[test]
fn blocked_rank_under_stress() {
    stress::<BlockedRank>();
}

/// All threads insert the same keys at the same time, then all remove them: for each key, exactly
/// one thread is told that it was new, and one that it was removed.
#[test]
fn one_thread_is_told_that_a_key_is_new_and_each_removal_counts_once() {
    let filter = sharded::<RankIndexed>(20_000, 8);
    let all = members(20_000);
    let barrier = Barrier::new(THREADS);
    let together = |change: &(dyn Fn(Digest) -> bool + Sync)| -> u64 {
        thread::scope(|scope| {
            let threads = [(); THREADS].map(|()| {
                scope.spawn(|| {
                    barrier.wait();
                    all.iter().map(|&digest| u64::from(change(digest))).sum::<u64>()
                })
            });
            threads.map(|thread| thread.join().unwrap()).iter().sum()
        })
    };
    let told_new = together(&|digest| filter.insert_digest(digest).unwrap());
    let mut distinct = 0;
    filter.for_each_shard(|shard| distinct += shard.entries().len() as u64);
    assert_eq!(told_new, distinct, "once for every identity");
    assert_eq!(filter.keys(), 20_000 * THREADS as u64);
    let removed = together(&|digest| filter.remove_digest(digest).is_ok());
    assert_eq!((removed, filter.keys()), (20_000 * THREADS as u64, 0));
    assert_eq!(together(&|digest| filter.remove_digest(digest).is_ok()), 0);
}

/// A sharded filter answers as its shards do, and its batches as its single operations.
fn same_alone<F: Stored + Insert>() {
    for (keys, shards) in [(0, 1), (1, 1), (2, 5), (5000, 1), (5000, 7), (300, 1000)] {
        let (single, batched) = (sharded::<F>(keys, shards), sharded::<F>(keys, shards));
        let (members, absent) = (members(keys), absent_keys(2000));
        for &digest in &members {
            let before = single.contains_digest(digest);
            assert_eq!(single.insert_digest(digest).unwrap(), !before);
        }
        batched.insert_many(&members).unwrap();
        assert_eq!(contents(&single), contents(&batched));
        assert_eq!((single.keys(), batched.keys()), (keys, keys));
        assert!(all_in(&batched, &members), "false negative");
        let mut answers = vec![true; absent.len()];
        batched.contains_many(&absent, &mut answers);
        for (&digest, &answer) in absent.iter().zip(&answers) {
            assert_eq!(batched.contains_digest(digest), answer);
            batched.prefetch(digest);
            assert!(batched.blocks_to_contain(digest) > 0);
        }
        assert!((0.0..=1.0).contains(&batched.rate()) && (0.0..=1.0).contains(&batched.fill()));
        let again = Sharded::from_shards(batched.into_shards()).unwrap();
        assert_eq!(contents(&again), contents(&single));
        assert!(all_in(&again, &members));
    }
}

#[test]
fn every_kind_can_be_sharded() {
    same_alone::<Bloom>();
    same_alone::<BlockedBloom>();
    same_alone::<CountingBloom>();
    same_alone::<RankIndexed>();
    same_alone::<RankSet>();
    same_alone::<RankCounting>();
    same_alone::<BlockedRank>();
    same_alone::<DLeft>();
    for kind in Kind::ALL.iter().copied().filter(|kind| kind.can_insert()) {
        let goal = Goal::rate(1000, 0.01);
        let filter = Sharded::plan_kind(kind, &goal, Hasher::default(), 4).unwrap();
        let all = members(1000);
        filter
            .with_groups_mut(&all, |shard, digests| -> Result<(), Full> {
                shard.as_insert().expect("a kind that takes keys").insert_many(digests)
            })
            .unwrap();
        assert!(all_in(&filter, &all), "{}", kind.name());
    }
}

/// Shards fill evenly, within what was planned, and keep the rate and the footprint that they
/// promise.
#[test]
fn shards_share_the_goal() {
    const KEYS: u64 = 100_000;
    let before = memory::held();
    let filter = sharded::<BlockedBloom>(KEYS, 64);
    assert_eq!(filter.footprint() as i64, 8 * (memory::held() - before), "footprint");
    filter.insert_many(&members(KEYS)).unwrap();
    assert!(!filter.is_crowded(), "a shard holds more than was planned for");
    assert!(filter.capacity() < KEYS + KEYS / 8);
    let absent = absent_keys(400_000);
    let mut answers = vec![false; absent.len()];
    filter.contains_many(&absent, &mut answers);
    let passed = answers.iter().filter(|&&answer| answer).count() as u64;
    let (low, high) =
        tamis_report::papers::statistics::exact_interval(passed, absent.len() as u64, 0.999);
    assert!((low..=high).contains(&filter.rate()), "{low} {} {high}", filter.rate());
    assert!(filter.rate() < 0.01);

    for size in [Size::BitsPerKey(12.0), Size::Memory(200_000)] {
        let goal = Goal::sized(KEYS, size);
        let filter = Sharded::<Bloom>::plan(&goal, Hasher::default(), 10).unwrap();
        let mut bits = 0;
        filter.for_each_shard(|shard| bits += shard.params().bits());
        let allowed = match size {
            Size::Memory(bytes) => bytes * 8,
            _ => KEYS * 12,
        };
        assert!(bits <= allowed && bits > allowed - allowed / 50, "{bits} of {allowed}");
    }
    for shards in [0, 1 << 20] {
        let goal = Goal::rate(KEYS, 0.01);
        assert!(Sharded::<Bloom>::plan(&goal, Hasher::default(), shards).is_err());
    }
    assert!(Sharded::<Bloom>::plan(&Goal::rate(1, 7.0), Hasher::default(), 2).is_err());
}

#[test]
fn merged_into_one() {
    let filter = sharded::<RankIndexed>(10_000, 8);
    let all = members(10_000);
    filter.insert_many(&all).unwrap();
    let one = filter.merged(RankIndexed::merge).unwrap();
    assert!(all_in(&one, &all));
    assert_eq!(one.keys(), 10_000);
    let mut sum = 0.0;
    filter.for_each_shard(|shard| sum += shard.rate());
    assert!(one.rate() <= sum && one.rate() > 0.9 * sum, "rates add up, less what coincides");

    let seeds = [1, 2].map(|seed| Bloom::new(BloomParams::new(64, 1).unwrap(), Hasher::xxh3(seed)));
    let apart = seeds.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(Sharded::from_shards(apart).unwrap_err().field, "seed");
    assert_eq!(Sharded::<Bloom>::from_shards(Vec::new()).unwrap_err().field, "shards");
}

#[test]
fn built_in_parallel_with_the_same_bytes() {
    for keys in [0, 1, 2, 3, 50_000, 150_000] {
        let goal = Goal::rate(keys, 0.01);
        let mut sorted = members(keys);
        sorted.sort_unstable_by_key(|digest| digest.0);
        // Keys that come twice, and more keys than planned.
        let twice = [&members(keys)[..], &members(keys / 3)].concat();
        // (Arrays are built by one thread if there are fewer keys; others would take long.)
        let is_array = |kind: &&Kind| matches!(kind, Kind::Bloom | Kind::Blocked);
        for &kind in Kind::ALL.iter().filter(|kind| keys <= 50_000 || is_array(kind)) {
            let params = AnyParams::plan(kind, &goal).unwrap();
            let label = Label::planned(Hasher::default(), keys);
            // (Kinds that are built once take long.)
            let sets = if kind.can_insert() { 3 } else { 1 };
            for digests in [&members(keys), &sorted, &twice].into_iter().take(sets) {
                let alone = params.build_from(label, digests).unwrap().encode().to_vec();
                for threads in [0, 1, 2, 7] {
                    let built = params.build_in_parallel(label, digests, threads).unwrap();
                    assert_eq!(built.encode().to_vec(), alone, "{} by {threads}", kind.name());
                }
                // As if they had come one by one; the layout may differ in kinds that keep what
                // came first.
                let mut filter = params.build(label).unwrap();
                let Some(insert) = filter.as_insert() else { continue };
                assert!(digests.iter().all(|&digest| insert.insert_digest(digest).is_ok()));
                let built = AnyFilter::decode(&alone, Limits::NONE).unwrap();
                assert_eq!(filter.content_id(), built.content_id(), "{}", kind.name());
                assert_eq!(filter.keys(), built.keys(), "{}", kind.name());
                if kind == Kind::BlockedRank {
                    assert_eq!(filter.encode().to_vec(), alone);
                }
            }
        }
    }
}

/// Four threads insert and look up keys at the same time; the result is as if one thread had done
/// it.
#[test]
fn atomic_filters_lose_nothing() {
    fn check<A: Filter + Sync>(atomic: &A, insert: impl Fn(Digest) -> bool + Sync, all: &[Digest]) {
        let new: usize = thread::scope(|scope| {
            let parts = all.chunks(all.len() / THREADS).map(|part| {
                scope.spawn(|| {
                    let mut new = 0;
                    for (index, &digest) in part.iter().enumerate() {
                        new += usize::from(insert(digest));
                        assert!(atomic.contains_digest(part[index / 2]), "lost its own key");
                    }
                    new
                })
            });
            parts.collect::<Vec<_>>().into_iter().map(|part| part.join().unwrap()).sum()
        });
        // All keys are new; a thread that was told otherwise met a false positive, which is rarer
        // while filling than at the end.
        let told_otherwise = (all.len() - new) as f64;
        assert!(told_otherwise < atomic.rate() * all.len() as f64, "{told_otherwise} not new");
        assert!(all_in(atomic, all), "false negative");
    }
    let (all, absent) = (members(40_000), absent_keys(40_000));
    let same = |atomic: &dyn Filter, plain: &dyn Filter| {
        assert_eq!(atomic.label(), plain.label());
        assert_eq!(atomic.rate(), plain.rate());
        assert_eq!(atomic.fill(), plain.fill());
        assert_eq!(atomic.footprint(), plain.footprint());
        for &digest in &absent {
            assert_eq!(atomic.contains_digest(digest), plain.contains_digest(digest));
            assert_eq!(atomic.blocks_to_contain(digest), plain.blocks_to_contain(digest));
        }
    };

    let mut plain = Bloom::with_rate(40_000, 0.01).unwrap();
    let atomic = AtomicBloom::from(plain.clone());
    check(&atomic, |digest| atomic.insert_digest(digest), &all);
    plain.insert_many(&all).unwrap();
    same(&atomic, &plain);
    assert_eq!(Bloom::from(atomic), plain);

    for block in [256, 512] {
        let params = BlockedParams::new(40_000 * 10 / u64::from(block), block, 6).unwrap();
        let mut plain = BlockedBloom::new(params, Hasher::default()).unwrap();
        let atomic = AtomicBlockedBloom::from(plain.clone());
        check(&atomic, |digest| atomic.insert_digest(digest), &all);
        plain.insert_many(&all).unwrap();
        same(&atomic, &plain);
        assert_eq!(BlockedBloom::from(atomic), plain);
    }
}

#[test]
fn atomic_and_back_in_the_same_memory() {
    let params = BloomParams::new(1_000_003, 7).unwrap();
    let mut filter = Bloom::new(params, Label::planned(Hasher::xxh3(5), 9)).unwrap();
    filter.insert("apple");
    let (before, copy) = (memory::held(), filter.clone());
    let after = memory::held();
    memory::forget_largest();
    let atomic = AtomicBloom::from(filter);
    assert_eq!(atomic.footprint() as i64, 8 * (after - before));
    assert_eq!(Bloom::from(atomic), copy);
    assert!(memory::largest() < 64, "the bits were copied");

    let blocked = BlockedBloom::with_rate(10_000, 0.01).unwrap();
    memory::forget_largest();
    let blocked = BlockedBloom::from(AtomicBlockedBloom::from(blocked));
    assert!(memory::largest() < 64, "the bits were copied");
    assert_eq!(AnyFilter::Blocked(blocked).keys(), 0);
}
