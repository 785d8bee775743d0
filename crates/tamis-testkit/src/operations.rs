//! Random sequences of operations against an exact multiset.

use std::collections::HashMap;
use std::fmt::Debug;

use proptest::prelude::*;
use tamis::{Absent, Count, Digest, Remove, Stored};

/// One operation on one of a few keys, so that keys meet each other often.
#[derive(Clone, Copy, Debug)]
pub enum Operation {
    /// Insert the key with this number.
    Insert(u64),
    /// Remove it.
    Remove(u64),
    /// Ask for it.
    Contains(u64),
}

/// Sequences over `keys` different keys.
pub fn sequences(keys: u64, length: usize) -> impl Strategy<Value = Vec<Operation>> {
    let operation = (0..4_u8, 0..keys).prop_map(|(which, key)| match which {
        0 | 1 => Operation::Insert(key),
        2 => Operation::Remove(key),
        _ => Operation::Contains(key),
    });
    proptest::collection::vec(operation, 0..length)
}

/// Runs a sequence on a filter and on an exact multiset; every answer must agree as the laws say.
///
/// Only keys that are in are removed, or keys that the filter knows it does not have.
///
/// # Panics
///
/// When an answer is wrong.
pub fn run<F>(mut filter: F, sequence: &[Operation])
where
    F: Stored + Remove + Count + Clone + PartialEq + Debug,
{
    let hasher = filter.hasher();
    let digest_of = |key: u64| hasher.digest(&key);
    let mut truth: HashMap<u64, u64> = HashMap::new();
    for &operation in sequence {
        match operation {
            Operation::Insert(key) => {
                filter.insert_digest(digest_of(key)).expect("room");
                *truth.entry(key).or_default() += 1;
            }
            Operation::Remove(key) => {
                remove(&mut filter, digest_of(key), truth.entry(key).or_default());
            }
            Operation::Contains(key) => {
                let member = truth.get(&key).is_some_and(|&count| count > 0);
                assert!(filter.contains_digest(digest_of(key)) || !member, "false negative");
            }
        }
        filter.validate().expect("valid after every step");
    }
    for (&key, &count) in truth.iter().filter(|(_, count)| **count > 0) {
        assert!(filter.contains_digest(digest_of(key)), "false negative");
        assert!(filter.count_digest(digest_of(key)).is_none_or(|told| told >= count), "count low");
    }
    assert_eq!(filter.keys(), truth.values().sum::<u64>());
}

fn remove<F>(filter: &mut F, digest: Digest, count: &mut u64)
where
    F: Stored + Remove + Clone + PartialEq + Debug,
{
    if *count > 0 {
        filter.remove_digest(digest).expect("a member");
        *count -= 1;
    } else if !filter.contains_digest(digest) {
        let before = filter.clone();
        assert_eq!(filter.remove_digest(digest), Err(Absent));
        assert_eq!(*filter, before, "a refused removal changed something");
    }
}
