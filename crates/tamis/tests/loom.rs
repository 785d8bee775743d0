//! Every order in which threads can meet in the atomic filters, by loom: `RUSTFLAGS="--cfg loom"`,
//! as scripts/test has it.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use tamis::bloom::{BlockedParams, BloomParams};
use tamis::{
    AtomicBlockedBloom, AtomicBloom, BlockedBloom, Bloom, Digest, Filter, Hasher, Insert, Stored,
};

/// Three bits for a key, some of them in words that other keys use too.
fn bloom() -> Bloom {
    Bloom::new(BloomParams::new(128, 3).unwrap(), Hasher::default()).unwrap()
}

fn blocked() -> BlockedBloom {
    BlockedBloom::new(BlockedParams::new(1, 256, 3).unwrap(), Hasher::default()).unwrap()
}

fn digest(key: u64) -> Digest {
    Hasher::default().digest(&key)
}

fn share<T: Send + Sync + 'static>(value: T) -> Arc<T> {
    Arc::new(value)
}

#[test]
fn two_threads_leave_the_bytes_of_one() {
    let mut expected = bloom();
    (1..=2).for_each(|key| assert!(expected.insert_digest(digest(key)).is_ok()));
    loom::model(move || {
        let filter = share(AtomicBloom::from(bloom()));
        let other = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || filter.insert_digest(digest(1)))
        };
        assert!(filter.insert_digest(digest(2)));
        assert!(other.join().unwrap(), "their bits are not the same");
        assert!(filter.contains_digest(digest(1)) && filter.contains_digest(digest(2)));
        let filter = Arc::try_unwrap(filter).expect("the other thread has ended");
        assert_eq!(Bloom::from(filter), expected);
    });
}

#[test]
fn of_two_who_insert_a_new_key_one_at_least_is_told_so() {
    loom::model(|| {
        let filter = share(AtomicBlockedBloom::from(blocked()));
        let other = {
            let filter = Arc::clone(&filter);
            thread::spawn(move || filter.insert_digest(digest(7)))
        };
        let new = filter.insert_digest(digest(7));
        assert!(filter.contains_digest(digest(7)), "its own insertion");
        assert!(other.join().unwrap() | new);
        assert!(!filter.insert_digest(digest(7)), "it is in by now");
        assert_eq!(filter.keys(), 3);
    });
}

#[test]
fn who_has_heard_of_an_insertion_sees_it() {
    loom::model(|| {
        let filter = share(AtomicBlockedBloom::from(blocked()));
        let done = share(AtomicBool::new(false));
        let other = {
            let (filter, done) = (Arc::clone(&filter), Arc::clone(&done));
            thread::spawn(move || {
                filter.insert_many(&[digest(7)]);
                done.store(true, Ordering::Release);
            })
        };
        let heard = done.load(Ordering::Acquire);
        assert!(filter.contains_digest(digest(7)) | !heard);
        other.join().unwrap();
    });
}
