//! What it takes to keep a peer's cache digest current, beside Squid's own way: whole digests.

use std::time::{Duration, SystemTime};

use tamis_exchange::squid::{Agent, CacheDigest, Own, PageKey};
use tamis_exchange::{Folder, Follower, Publisher, SecretKey};

/// Bytes that a peer fetches for a digest, on average, and the part of absent pages that the
/// digests claim, where each version replaces 1% of `pages` pages. Counted is up to the second
/// version that clears old bits: whole cycles, for what is saved before must be paid then.
fn exchange(pages: u32, bits_per_entry: u8, rate: f64) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let set = || Box::new(Folder::new(folder.path(), "a").unwrap());
    let key = SecretKey::generate().unwrap();
    let public = key.public();
    let mut own = Own::new(Publisher::new(set(), "a", Some(key)).reach(1), rate);
    let (agent, mut follower) = (Agent::default(), Follower::new(set(), "a", Some(public)));
    let page = |page: u32| PageKey::get(format!("http://example.org/page/{page}"));
    let (mut bytes, mut rates, mut cleared) = (0, 0.0, Vec::new());
    for version in 0_u32.. {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(version) + 1_700_000_000);
        let mut digest = CacheDigest::new(pages, bits_per_entry).unwrap();
        let first = version * (pages / 100);
        (first..first + pages).for_each(|number| digest.insert(page(number)));
        own.publish(&digest, now).unwrap();
        let step = agent.follow("a", &mut follower, now).unwrap();
        let served = agent.digest("a").unwrap();
        // What is there is found, and what Squid would claim is claimed.
        assert!((first..first + pages).all(|number| served.contains(page(number))));
        if rate == 0.0 {
            assert_eq!(served.mask(), digest.mask());
        }
        let absent = (0..20_000).map(|number| PageKey::get(format!("http://absent/{number}")));
        let wrong = absent.filter(|&key| served.contains(key)).count() as f64 / 20_000.0;
        let spread = (served.rate() / 20_000.0).sqrt();
        assert!((wrong - served.rate()).abs() < 5.0 * spread, "{wrong} and {}", served.rate());
        assert!(served.rate() <= rate.max(digest.rate()));
        if version > 0 {
            bytes += step.bytes;
            rates += wrong;
            cleared.extend((served.mask() == digest.mask()).then_some(version));
        }
        if cleared.len() == 2 {
            let steps = f64::from(version);
            return (bytes as f64 / steps, rates / steps);
        }
    }
    unreachable!()
}

/// As Squid makes it, and with old bits that are cleared when 14% of absent pages are claimed.
#[test]
fn a_digest_takes_a_twentieth_of_squids_bytes() {
    for (bits_per_entry, rate, times) in [(5, 0.0, 15.5), (5, 0.14, 20.5), (12, 0.0, 20.5)] {
        let pages = 200_000;
        let (bytes, wrong) = exchange(pages, bits_per_entry, rate);
        let whole = 128 + pages / 8 * u32::from(bits_per_entry);
        let ratio = f64::from(whole) / bytes;
        println!(
            "{bits_per_entry} bits, up to {rate}: {bytes:.0} of {whole} bytes, 1/{ratio:.1}, {wrong:.4}"
        );
        assert!(
            ratio > times,
            "{bits_per_entry} bits, up to {rate}: {bytes} of {whole}, 1/{ratio:.1}"
        );
    }
}
