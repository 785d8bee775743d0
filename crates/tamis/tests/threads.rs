//! Filters under several threads: nothing is lost, and bytes do not depend on who did what when.

use std::thread;

use tamis::bloom::{BlockedParams, BloomParams};
use tamis::{
    AnyFilter, AnyParams, AtomicBlockedBloom, AtomicBloom, BlockedBloom, Bloom, Digest, Filter,
    Goal, Hasher, Insert, Kind, Label, Stored,
};
use tamis_report::{keys::KeyStream, memory};

tamis_testkit::install_counting_allocator!();

fn members(keys: u64) -> Vec<Digest> {
    KeyStream::new(11).members(Hasher::default(), 0..keys).collect()
}

fn strangers(keys: u64) -> Vec<Digest> {
    KeyStream::new(11).strangers(Hasher::default(), 0..keys).collect()
}

#[test]
fn built_in_parallel_with_the_same_bytes() {
    for keys in [0, 1, 2, 3, 50_000] {
        let digests = members(keys);
        let goal = Goal::rate(keys, 0.01);
        for kind in Kind::SUPPORTED {
            let params = AnyParams::plan(kind, &goal).unwrap();
            let label = Label::planned(Hasher::default(), keys);
            let alone = params.build_from(label, &digests).unwrap().encode().to_vec();
            for threads in [0, 1, 2, 7] {
                let built = params.build_in_parallel(label, &digests, threads).unwrap();
                assert_eq!(built.encode().to_vec(), alone, "{} by {threads}", kind.name());
            }
        }
    }
}

/// Four threads insert and ask at the same time; afterwards all is as if one had done it.
#[test]
fn atomic_filters_lose_nothing() {
    fn check<A: Filter + Sync>(atomic: &A, insert: impl Fn(Digest) -> bool + Sync, all: &[Digest]) {
        let new: usize = thread::scope(|scope| {
            let parts = all.chunks(all.len() / 4).map(|part| {
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
        // All keys are new; who was told otherwise met a false positive, rarer while filling than at the end.
        let told_otherwise = (all.len() - new) as f64;
        assert!(told_otherwise < atomic.rate() * all.len() as f64, "{told_otherwise} not new");
        let mut answers = vec![false; all.len()];
        atomic.contains_many(all, &mut answers);
        assert!(answers.iter().all(|&answer| answer), "false negative");
    }
    let (all, strangers) = (members(40_000), strangers(40_000));
    let same = |atomic: &dyn Filter, plain: &dyn Filter| {
        assert_eq!(atomic.label(), plain.label());
        assert_eq!(atomic.rate(), plain.rate());
        assert_eq!(atomic.fill(), plain.fill());
        assert_eq!(atomic.footprint(), plain.footprint());
        for &digest in &strangers {
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
    filter.insert("apple").unwrap();
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
