//! The laws of `tamis::filter`, run against any filter.

use std::fmt::Debug;
use std::sync::Arc;

use tamis::{Absent, Digest, Hasher, Insert, Limits, Remove, SharedBytes, Stored};
use tamis_report::keys::KeyStream;
use tamis_report::memory;

/// Checks every law that an inserting filter keeps, with `keys` keys.
///
/// # Panics
///
/// When a law is broken.
pub fn check<F>(make: impl Fn(Hasher) -> F, keys: u64)
where
    F: Stored + Insert + Clone + PartialEq + Debug,
{
    for hasher in [Hasher::xxh3(0), Hasher::xxh3(99), Hasher::sip13(1 << 100 | 5)] {
        let members: Vec<Digest> = KeyStream::new(1).members(hasher, 0..keys).collect();
        let absent: Vec<Digest> = KeyStream::new(1).absent_keys(hasher, 0..2000).collect();
        let empty = make(hasher);
        assert!(!absent.iter().any(|&digest| empty.contains_digest(digest)), "empty says yes");
        let filled = insert_one_by_one(&empty, &members);
        check_batches(&empty, &filled, &members, &absent);
        check_bytes(&filled, &members, &absent);
        check_bytes(&empty, &[], &absent);
        check_memory(&make, hasher, &members);
        let mut cleared = filled.clone();
        cleared.clear();
        assert_eq!(cleared.content_id(), empty.content_id(), "clear leaves something");
        assert_eq!(cleared.keys(), 0);
        assert!(filled.rate() >= 0.0 && filled.rate() <= 1.0, "rate {}", filled.rate());
        assert!(filled.fill() >= 0.0 && filled.fill() <= 1.0, "fill {}", filled.fill());
    }
}

fn insert_one_by_one<F: Stored + Insert + Clone>(empty: &F, members: &[Digest]) -> F {
    let mut filter = empty.clone();
    for (index, &digest) in members.iter().enumerate() {
        assert!(filter.blocks_to_insert(digest) > 0);
        let before = filter.contains_digest(digest);
        let new = filter.insert_digest(digest).expect("room for the planned keys");
        assert_eq!(new, !before, "`insert` answers what `contains` answered before");
        assert!(filter.contains_digest(digest), "lost at once");
        assert!(filter.blocks_to_contain(digest) > 0);
        if index % 97 == 0 {
            filter.validate().expect("valid after every step");
        }
    }
    assert_eq!(filter.keys(), members.len() as u64);
    assert!(members.iter().all(|&digest| filter.contains_digest(digest)), "false negative");
    filter.validate().expect("valid when filled");
    filter
}

fn check_batches<F>(empty: &F, filled: &F, members: &[Digest], absent: &[Digest])
where
    F: Stored + Insert + Clone + PartialEq + Debug,
{
    let mut batched = empty.clone();
    batched.insert_many(members).expect("room for the planned keys");
    assert_eq!(&batched, filled, "a batch is not its keys one by one");
    for digests in [members, absent, &[]] {
        let mut answers = vec![true; digests.len()];
        filled.contains_many(digests, &mut answers);
        let single: Vec<bool> =
            digests.iter().map(|&digest| filled.contains_digest(digest)).collect();
        assert_eq!(answers, single);
    }
}

fn check_bytes<F>(filter: &F, members: &[Digest], absent: &[Digest])
where
    F: Stored + Insert + Clone + PartialEq + Debug,
{
    let bytes = filter.encode().to_vec();
    assert_eq!(bytes.len() as u64, filter.encoded_len());
    let decoded = F::decode(&bytes, Limits::default()).expect("own bytes");
    assert_eq!(&decoded, filter);
    assert_eq!(decoded.content_id(), filter.content_id());
    assert_eq!(decoded.encode().to_vec(), bytes, "encoding again gives other bytes");

    // The allocator decides whether a vector of bytes is aligned to words. In practice it is.
    let shared: SharedBytes = Arc::new(bytes);
    let mut opened = F::open(&shared).expect("own bytes, in place");
    let same = |&digest: &Digest| opened.contains_digest(digest) == filter.contains_digest(digest);
    assert!(members.iter().chain(absent).all(same), "other answers in place");
    if let Some(&digest) = absent.first() {
        let mut copy = filter.clone();
        copy.insert_digest(digest).expect("room for one more");
        opened.insert_digest(digest).expect("room for one more");
        assert_eq!(opened, copy, "the first write ends sharing");
        assert_eq!(F::open(&shared).expect("unchanged").content_id(), filter.content_id());
    }
}

fn check_memory<F: Stored + Insert>(make: impl Fn(Hasher) -> F, hasher: Hasher, keys: &[Digest]) {
    let before = memory::held();
    let mut filter = make(hasher);
    assert_eq!(filter.footprint() as i64, 8 * (memory::held() - before), "footprint when empty");
    for &digest in keys {
        filter.insert_digest(digest).expect("room for the planned keys");
    }
    assert_eq!(filter.footprint() as i64, 8 * (memory::held() - before), "footprint when filled");
}

/// Checks the laws of removal on a filter whose counters do not saturate with `keys` keys.
///
/// # Panics
///
/// When a law is broken.
pub fn check_removal<F>(make: impl Fn(Hasher) -> F, keys: u64)
where
    F: Stored + Remove + Clone + PartialEq + Debug,
{
    let hasher = Hasher::xxh3(3);
    let members: Vec<Digest> = KeyStream::new(2).members(hasher, 0..keys).collect();
    let absent: Vec<Digest> = KeyStream::new(2).absent_keys(hasher, 0..2000).collect();
    let empty = make(hasher);
    let filled = insert_one_by_one(&empty, &members);
    let mut filter = filled.clone();
    for &digest in &absent {
        filter.insert_digest(digest).expect("room");
        filter.remove_digest(digest).expect("just inserted");
    }
    assert_eq!(filter.content_id(), filled.content_id(), "insert and remove leave a trace");
    for &digest in absent.iter().filter(|&&digest| !filled.contains_digest(digest)) {
        assert_eq!(filter.remove_digest(digest), Err(Absent));
        assert_eq!(filter, filled, "a refused removal changed something");
    }
    check_removal_batches(&filled, &members, &absent);
    for (index, &digest) in members.iter().enumerate() {
        filter.remove_digest(digest).expect("a member");
        assert!(members[index + 1..].iter().take(50).all(|&other| filter.contains_digest(other)));
    }
    assert_eq!(filter.content_id(), empty.content_id(), "something is left when all is removed");
    assert_eq!(filter.keys(), 0);
    filter.validate().expect("valid when emptied");
}

/// Checks that a batch removes what its digests would remove one by one: members, absent keys that
/// are refused, and members that have been removed before.
fn check_removal_batches<F>(filled: &F, members: &[Digest], absent: &[Digest])
where
    F: Stored + Remove + Clone + PartialEq + Debug,
{
    let absent = absent.iter().filter(|&&digest| !filled.contains_digest(digest));
    let half = &members[..members.len() / 2];
    let mixed: Vec<Digest> = half.iter().chain(absent).chain(half).copied().collect();
    let (mut batched, mut single) = (filled.clone(), filled.clone());
    // A second removal that succeeds may remove another member, so the two filters are compared
    // and members are not counted.
    let removed = mixed.iter().filter(|&&digest| single.remove_digest(digest).is_ok()).count();
    assert_eq!(batched.remove_many(&mixed), removed as u64);
    assert_eq!(batched, single, "a batch is not its keys one by one");
    assert_eq!(batched.remove_many(&[]), 0);
    batched.validate().expect("valid after a batch");
    let mut emptied = filled.clone();
    assert_eq!(emptied.remove_many(members), members.len() as u64, "a member was not found");
    assert_eq!(emptied.keys(), 0);
}
