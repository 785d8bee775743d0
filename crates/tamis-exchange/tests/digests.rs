//! What it takes to keep a peer's cache digest current, beside Squid's own way: whole digests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tamis_exchange::squid::{Agent, CacheDigest, PageKey};
use tamis_exchange::{Folder, Follower, Publisher, SecretKey};

const VERSIONS: u32 = 5;

/// Both ends of a set in `folder`.
fn ends(folder: &Path) -> (Publisher, Follower) {
    let set = || Box::new(Folder::new(folder, "a").unwrap());
    let key = SecretKey::generate().unwrap();
    let public = key.public();
    let publisher = Publisher::new(set(), "a", Some(key)).reach(1);
    (publisher, Follower::new(set(), "a", Some(public)))
}

/// A digest of `pages` pages, after `replaced` of them were replaced.
fn digest(pages: u32, replaced: u32, bits_per_entry: u8) -> CacheDigest {
    let mut digest = CacheDigest::new(pages, bits_per_entry).unwrap();
    for page in replaced..replaced + pages {
        digest.insert(PageKey::get(format!("http://example.org/page/{page}")));
    }
    digest
}

/// Bytes that a peer fetches for a digest, on average, where each version replaces 1% of `pages`
/// pages.
fn exchange(pages: u32, bits_per_entry: u8) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let (agent, (publisher, mut follower)) = (Agent::default(), ends(folder.path()));
    let mut bytes = 0;
    for version in 0..VERSIONS {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(version) + 1_700_000_000);
        let digest = digest(pages, version * (pages / 100), bits_per_entry);
        publisher.publish(&digest.to_filter().unwrap(), now).unwrap();
        let step = agent.follow("a", &mut follower, now).unwrap();
        assert_eq!(agent.digest("a", now).unwrap().0.mask(), digest.mask());
        assert_eq!(step.snapshot, version == 0);
        bytes += if version > 0 { step.bytes } else { 0 };
    }
    bytes as f64 / f64::from(VERSIONS - 1)
}

/// Bytes that no code can go below on average: the entropy of a digest for someone who knows the
/// one before, where 1% of the pages was replaced. With c bits a page a bit is clear with the
/// probability e^(-4/c), and is then set by the new pages with 1 - e^(-0.04/c). As many are
/// cleared again, because a digest has as many set bits as the one before.
fn entropy(pages: u32, bits_per_entry: u8) -> f64 {
    let load = 4.0 / f64::from(bits_per_entry);
    let clear = (-load).exp();
    let set = clear * -(-0.01 * load).exp_m1();
    let of = |part: f64| -part * part.log2() - (1.0 - part) * (1.0 - part).log2();
    let bits = clear * of(set / clear) + (1.0 - clear) * of(set / (1.0 - clear));
    f64::from(pages) * f64::from(bits_per_entry) * bits / 8.0
}

/// A twentieth of Squid's own bytes cannot be had at its default of 5 bits a page, and is had from
/// 10 bits on.
#[test]
fn digests_travel_in_a_fraction_of_their_bytes() {
    let pages = 200_000;
    let whole = |bits_per_entry: u8| 128.0 + f64::from(pages / 8 * u32::from(bits_per_entry));
    assert!(entropy(pages, 5) * 16.4 > whole(5), "{}", whole(5) / entropy(pages, 5));
    for (bits_per_entry, times) in [(5, 15.5), (10, 20.0), (12, 22.0)] {
        let (bytes, least) = (exchange(pages, bits_per_entry), entropy(pages, bits_per_entry));
        let ratio = whole(bits_per_entry) / bytes;
        println!(
            "{bits_per_entry} bits a page: {bytes:.0} of {} bytes, 1/{ratio:.1}; entropy {least:.0}",
            whole(bits_per_entry)
        );
        assert!(ratio > times, "{bits_per_entry} bits a page: {bytes} bytes");
        // A manifest, a header, and a coder that wastes little. (Flips differ by chance: 1%.)
        assert!(bytes < 330.0 + 1.03 * least && bytes > 0.99 * least, "{bytes} and {least}");
    }
}

/// Status and headers of what an agent answers.
fn asked(agent: SocketAddr) -> String {
    let mut stream = TcpStream::connect(agent).unwrap();
    stream.write_all(b"HEAD /a HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_digest_is_served_until_its_publisher_was_silent_for_too_long() {
    let folder = tempfile::tempdir().unwrap();
    let (publisher, mut follower) = ends(folder.path());
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let agent = Agent::default().max_age(minutes(10));
    let filter = digest(100, 0, 5).to_filter().unwrap();
    let now = SystemTime::now();
    let mut sign = |agent: &Agent, time: SystemTime| {
        publisher.publish(&filter, time).unwrap();
        agent.follow("a", &mut follower, time).unwrap();
    };
    sign(&agent, now - minutes(20));
    // (The time of a manifest has whole seconds.)
    let left = |now| agent.digest("a", now).map(|(_, left)| left.as_secs().div_ceil(60));
    assert_eq!(left(now - minutes(20)), Some(10));
    assert_eq!(left(now - minutes(11)), Some(1));
    assert_eq!(left(now - minutes(9)), None);
    assert_eq!(agent.digest("b", now), None);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = agent.clone();
    std::thread::spawn(move || serving.serve(&listener, minutes(3)));
    assert!(asked(address).starts_with("HTTP/1.1 404 "));
    // The same content, signed anew. No cache keeps it longer than the agent would.
    for (ago, kept) in [(minutes(8), 90..=120), (minutes(1), 180..=180)] {
        sign(&agent, now - ago);
        let answer = asked(address);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let (_, age) = answer.split_once("max-age=").unwrap();
        let age: u64 = age.lines().next().unwrap().parse().unwrap();
        assert!(kept.contains(&age), "{age}");
    }
}
