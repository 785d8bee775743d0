//! A set that changes, and followers at every distance: what they pay, and that they end with the
//! publisher's content.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tamis::{AnyFilter, BlockedRank, Delta, Digest, Effort, Insert, Remove};
use tamis_exchange::{Folder, Follower, PublicKey, Publisher, SecretKey};

/// A set of keys, of which the oldest are replaced.
struct Set {
    filter: BlockedRank,
    keys: u64,
    first: u64,
}

impl Set {
    fn new(keys: u64, rate: f64) -> Self {
        let mut filter = BlockedRank::with_rate(keys, rate).unwrap();
        (0..keys).for_each(|key| assert!(filter.insert_digest(digest(key)).is_ok()));
        Self { filter, keys, first: 0 }
    }

    fn replace(&mut self, keys: u64) {
        for key in self.first..self.first + keys {
            self.filter.remove_digest(digest(key)).unwrap();
            self.filter.insert_digest(digest(key + self.keys)).unwrap();
        }
        self.first += keys;
    }

    fn any(&self) -> AnyFilter {
        self.filter.clone().into()
    }
}

/// Bytes of a manifest.
const MANIFEST: u64 = 192;
/// The most bytes of a row.
const ROW: u64 = 24;

/// Rows of a table, at most: a step and its share of the longer ones for every version that can be
/// reached, leaps, and snapshots.
fn published_rows(distances: &[u64]) -> u64 {
    distances.len() as u64 * 9 / 8 + 128 + 32 + 8
}

fn digest(key: u64) -> Digest {
    Digest(Digest(key).word(1))
}

fn at(version: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + version)
}

fn follower(store: &Path, key: PublicKey) -> Follower {
    Follower::new(Box::new(Folder::new(store, "set").unwrap()), "set", Some(key))
}

/// Publishes `versions` versions, of which each replaces `share` of the keys, with a follower at
/// every distance; returns what a follower paid for one step, at most.
fn pays_little(keys: u64, share: f64, versions: u64, distances: &[u64]) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let key = SecretKey::generate().unwrap();
    let public = key.public();
    let store = Folder::new(folder.path(), "set").unwrap();
    let publisher = Publisher::new(Box::new(store), "set", Some(key));
    let mut set = Set::new(keys, 0.01);
    let mut near = follower(folder.path(), public);
    let mut far: Vec<(u64, AnyFilter, Follower)> = Vec::new();
    let mut most = 0;
    for version in 1..=versions {
        let filter = set.any();
        let published = publisher.publish(&filter, at(version)).unwrap();
        assert_eq!((published.version, published.new_epoch), (version, None));
        let step = near.step(at(version)).unwrap();
        assert_eq!(near.live().load().unwrap().manifest.content, filter.content_id());
        if version > 1 {
            assert_eq!((step.deltas, step.snapshot), (1, false));
            most = most.max(step.bytes);
        }
        if distances.contains(&(versions - version)) {
            let mut one = follower(folder.path(), public);
            one.step(at(version)).unwrap();
            far.push((versions - version, filter, one));
        }
        set.replace((keys as f64 * share) as u64);
    }
    let newest = near.live().load().unwrap().filter.clone();
    let snapshot = newest.pack(Effort::Best).len();
    for (distance, old, mut one) in far {
        let step = one.step(at(versions)).unwrap();
        assert_eq!(one.live().load().unwrap().filter.content_id(), newest.content_id());
        let direct = Delta::between(&old, &newest).unwrap().encode().len();
        let most = (snapshot as f64).min(1.3 * direct as f64);
        // The manifest, and a table of some hundred rows.
        let table = if distance > 1 { ROW * published_rows(distances) } else { 0 };
        let paid = step.bytes - MANIFEST;
        assert!(paid as f64 <= most + table as f64, "{distance} behind: {step:?} {direct}");
        assert_eq!(one.totals().fallbacks, 0);
    }
    most
}

#[test]
fn followers_pay_little_more_than_a_direct_delta() {
    let distances: Vec<u64> = (1..80).collect();
    let keys = 10_000;
    let most = pays_little(keys, 0.01, 80, &distances);
    // A manifest, the header of a delta, and 25 bits for every replaced key.
    assert!(most < MANIFEST + 250 + keys / 100 * 25 / 8, "{most}");
}
