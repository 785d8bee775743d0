//! Counters that one key has raised far above all others.

use std::time::Duration;

use tamis::bloom::CountingParams;
use tamis::{AnyFilter, CountingBloom, Delta, Effort, Hasher, Insert, Label, Limits, Stored};
use tamis_testkit::bombs::processor_time;

/// A filter of 10,000 keys with counters of `width` bits, of which one key was inserted `times`
/// times more.
fn filter(width: u32, times: u64) -> CountingBloom {
    let params = CountingParams::new(95_851, 7, width).unwrap();
    let mut filter = CountingBloom::new(params, Label::planned(Hasher::default(), 10_000)).unwrap();
    for key in 0..10_000_u64 {
        filter.insert(&key);
    }
    for _ in 0..times {
        filter.insert(&77_u64);
    }
    filter
}

/// The time that packing or unpacking may take. They took 19 and 28 seconds when every count was a
/// plane.
const QUICK: Duration = Duration::from_millis(60);

fn timed<T>(run: impl FnOnce() -> T) -> T {
    let before = processor_time();
    let done = run();
    let took = processor_time().saturating_sub(before);
    assert!(took <= QUICK, "{took:?}");
    done
}

#[test]
fn one_key_that_comes_again_and_again_costs_milliseconds_and_a_few_bytes() {
    for width in [1, 2, 4, 8, 16] {
        let even = filter(width, 0).pack(Effort::Best).len();
        for times in [1, 10, 14, 15, 16, 17, 254, 255, 60_000, 70_000] {
            let filter = filter(width, times);
            for effort in [Effort::Fast, Effort::Best] {
                let packed = timed(|| filter.pack(effort).to_vec());
                assert!(packed.len() as u64 <= filter.encode().len());
                // Planes for a few counters, and three bytes for each of these.
                let most = even + even / 100 + 250;
                assert!(packed.len() as u64 <= most, "{width} {times}: {} {even}", packed.len());
                let again = timed(|| CountingBloom::decode(&packed, Limits::default()).unwrap());
                assert_eq!(again, filter, "{width} {times}");
            }
        }
    }
}

#[test]
fn deltas_of_such_a_key_are_as_short() {
    let old = AnyFilter::Counting(filter(16, 0));
    for times in [1, 7, 8, 9, 30_000, 32_768, 60_000, 65_535] {
        let new = AnyFilter::Counting(filter(16, times));
        let delta = Delta::between(&old, &new).unwrap();
        let bytes = timed(|| delta.encode().to_vec());
        assert!(bytes.len() < 400, "{times}: {}", bytes.len());
        let read = timed(|| Delta::decode(&bytes, Limits::default()).unwrap());
        let mut patched = old.clone();
        read.apply(&mut patched).unwrap();
        assert_eq!(patched, new, "{times}");
        // And back, where counters fall.
        let back = Delta::between(&new, &old).unwrap().encode().to_vec();
        Delta::decode(&back, Limits::default()).unwrap().apply(&mut patched).unwrap();
        assert_eq!(patched, old, "{times}");
    }
}

/// Equal counters are not written as planes: the few bytes would stand for too large a sum.
#[test]
fn equal_counters_are_read_back_whatever_they_are() {
    for width in [1, 2, 4, 8, 16] {
        for rounds in [0, 1, 2, 15, 16, 17, 200] {
            let params = CountingParams::new(40_000, 1, width).unwrap();
            let mut filter = CountingBloom::new(params, Hasher::default()).unwrap();
            let digests: Vec<_> =
                (0..40_000_u64).map(|at| at * ((u64::MAX / 40_000) + 1)).collect();
            for _ in 0..rounds {
                for &digest in &digests {
                    filter.insert_digest(tamis::Digest(digest)).unwrap();
                }
            }
            for effort in [Effort::Fast, Effort::Best] {
                let packed = filter.pack(effort).to_vec();
                assert!(packed.len() as u64 <= filter.encode().len());
                assert_eq!(CountingBloom::decode(&packed, Limits::default()).unwrap(), filter);
            }
        }
    }
}
