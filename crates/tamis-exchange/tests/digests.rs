//! What it takes to keep a peer's cache digest current, beside Squid's own way: whole digests.

use std::time::{Duration, SystemTime};

use tamis_exchange::squid::{Agent, CacheDigest, PageKey};
use tamis_exchange::{Folder, Follower, Publisher, SecretKey};

const VERSIONS: u32 = 5;

/// Bytes that a peer fetches for a digest, on average, where each version replaces 1% of `pages`
/// pages.
fn exchange(pages: u32, bits_per_entry: u8) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let set = || Box::new(Folder::new(folder.path(), "a").unwrap());
    let key = SecretKey::generate().unwrap();
    let public = key.public();
    let publisher = Publisher::new(set(), "a", Some(key)).reach(1);
    let (agent, mut follower) = (Agent::default(), Follower::new(set(), "a", Some(public)));
    let page = |page: u32| PageKey::get(format!("http://example.org/page/{page}"));
    let mut bytes = 0;
    for version in 0..VERSIONS {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(version) + 1_700_000_000);
        let mut digest = CacheDigest::new(pages, bits_per_entry).unwrap();
        let first = version * (pages / 100);
        (first..first + pages).for_each(|number| digest.insert(page(number)));
        publisher.publish(&digest.to_filter().unwrap(), now).unwrap();
        let step = agent.follow("a", &mut follower, now).unwrap();
        assert_eq!(agent.digest("a").unwrap().mask(), digest.mask());
        assert_eq!(step.snapshot, version == 0);
        bytes += if version > 0 { step.bytes } else { 0 };
    }
    bytes as f64 / f64::from(VERSIONS - 1)
}

/// At Squid's default of 5 bits a page the entropy of the flipped bits is 1/16.2 of the digest.
#[test]
fn digests_travel_in_a_fraction_of_their_bytes() {
    for (bits_per_entry, times) in [(5, 15.5), (12, 22.0)] {
        let pages = 200_000;
        let bytes = exchange(pages, bits_per_entry);
        let whole = 128 + pages / 8 * u32::from(bits_per_entry);
        let ratio = f64::from(whole) / bytes;
        println!("{bits_per_entry} bits a page: {bytes:.0} of {whole} bytes, 1/{ratio:.1}");
        assert!(ratio > times, "{bits_per_entry} bits a page: {bytes} of {whole} bytes");
    }
}
