//! Filters whose keys expire.

use std::collections::BTreeMap;

use tamis::internals::address::identity;
use tamis::{Aging, Digest, Effort, Hasher, Limits};
use tamis_report::memory::held;
use tamis_report::papers::statistics::exact_interval;
use tamis_testkit::ages::{LOADS, Load, Outcome, Setup, run};
use tamis_testkit::hostile;

const HOUR: u64 = 3_600_000;

fn empty(capacity: u64, lifetime: u64, steps: u32) -> Aging {
    Aging::new(Hasher::xxh3(3), capacity, 0.01, lifetime, steps).unwrap()
}

fn copy(filter: &Aging) -> Aging {
    Aging::decode(&filter.encode().to_vec(), Limits::default()).unwrap()
}

/// The short form of `examples/expiry.rs`.
#[test]
fn keys_live_as_long_as_promised_whatever_the_load() {
    let mut of_all = (0, 0, 0.0);
    for steps in [1, 4, 8] {
        for load in LOADS {
            let setup = Setup {
                load,
                keys: 60_000,
                rate: 0.01,
                lifetime: HOUR,
                steps,
                operations: 400_000,
            };
            let Outcome { young, missing, old, found, expected, excess_bits, .. } = run(setup);
            println!("{load:?} {steps}: {found} of {old}, {expected:.0}; {excess_bits:.2} bits");
            assert!(young > 4000 && missing == 0, "{load:?} {steps}: {missing} of {young}");
            assert!(old > 5_000, "{load:?} {steps}: {old}");
            // While the clock is back, nothing expires, and there are more keys than planned for.
            assert!(load == Load::Back || expected / old as f64 <= 0.01, "{load:?} {steps}");
            assert!(excess_bits < 4.0, "{load:?} {steps}: {excess_bits} bits");
            of_all = (of_all.0 + found, of_all.1 + old, of_all.2 + expected);
        }
    }
    // Pairs of the same keys meet again and again, so found keys are no independent trials: the
    // next test has those.
    let (found, _, expected) = of_all;
    let ratio = found as f64 / expected;
    assert!((0.9..1.1).contains(&ratio), "{ratio} times as many as expected");
}

/// Ages take at most 4 bits a key, on average over a run, if a step has some thousand keys. (The
/// bounds are little above what is reached: `examples/expiry_sizes.rs` has more.)
#[test]
fn ages_take_few_bits() {
    for (keys, steps, bits) in
        [(3_000, 1, 2.0), (10_000, 4, 3.6), (30_000, 8, 4.0), (100_000, 12, 4.0)]
    {
        let load = Load::Even;
        let operations = (12 * keys).max(200_000);
        let setup = Setup { load, keys, rate: 0.01, lifetime: HOUR, steps, operations };
        let mean = run(setup).mean_excess;
        assert!(mean < bits, "{keys} {steps}: {mean} bits");
    }
}

#[test]
fn the_rate_is_that_of_the_keys_that_are_alive() {
    for steps in [1, 4, 8] {
        let mut filter = Aging::new(Hasher::xxh3(steps.into()), 60_000, 0.01, HOUR, steps).unwrap();
        for key in 0..100_000_u64 {
            filter.insert(&key, key * (HOUR / 50_000)).unwrap();
        }
        let (now, asked) = (2 * HOUR, 1_000_000_u64);
        let absent = (0..asked).map(|number| number + (1 << 40));
        let found = absent.filter(|key| filter.contains(key, now)).count() as u64;
        let (low, high) = exact_interval(found, asked, 0.999);
        let rate = filter.rate(now);
        assert!((low..=high).contains(&rate), "{steps}: {rate:e} is not in {low:e} to {high:e}");
    }
}

/// What a filter must answer: the latest step of each identity.
struct Truth {
    steps: BTreeMap<u64, u64>,
    latest: u64,
}

/// Every answer is that of an exact map from identities to steps, with removals, clocks that go
/// anywhere, capacities that are passed by far, and lifetimes of a moment.
#[test]
fn every_answer_is_that_of_an_exact_map() {
    for (case, (capacity, lifetime, steps)) in
        [(0, 1, 1), (1, 1, 64), (1, 1000, 1), (50, 7, 3), (300, HOUR, 4), (40, u64::MAX, 64)]
            .into_iter()
            .enumerate()
    {
        let mut filter = empty(capacity, lifetime, steps);
        let mut truth = Truth { steps: BTreeMap::new(), latest: 0 };
        let mut now = 0_u64;
        let mut twin = filter.clone();
        for turn in 0..6_000_u64 {
            let random = |salt: u64| Digest(turn << 8 | case as u64).word(salt);
            let span = (lifetime / u64::from(steps)).max(1);
            now = match random(1) % 64 {
                0 => random(2),
                1 => now / 2,
                2 => now.saturating_sub(random(2) % span.saturating_mul(3)),
                3..20 => now.saturating_add(random(2) % span),
                _ => now,
            };
            let step = u128::from(now) * u128::from(steps) / u128::from(lifetime);
            let step = u64::try_from(step).unwrap_or(u64::MAX);
            let digest = Digest((random(3) % 500) << 53);
            let name = identity(digest, filter.universe());
            let present = truth.latest.max(step);
            let alive = |&then: &u64| present - then <= u64::from(steps);
            let is_in = truth.steps.get(&name).is_some_and(alive);
            assert_eq!(filter.contains_digest(digest, now), is_in, "{case} {turn}");
            match random(4) % 5 {
                0 | 1 => {
                    assert_eq!(filter.insert_digest(digest, now), Ok(!is_in));
                    truth.steps.insert(name, present);
                    truth.latest = present;
                }
                2 => {
                    assert_eq!(filter.touch_digest(digest, now), Ok(is_in));
                    if is_in {
                        truth.steps.insert(name, present);
                        truth.latest = present;
                    }
                }
                3 => {
                    assert_eq!(filter.remove_digest(digest, now).is_ok(), is_in);
                    if is_in {
                        truth.steps.remove(&name);
                        truth.latest = present;
                    }
                }
                _ => filter.advance({
                    truth.latest = present;
                    now
                }),
            }
            if turn % 500 == 499 {
                filter.validate().unwrap();
                let latest = truth.latest;
                let alive = truth.steps.values().filter(|&&then| latest - then <= steps.into());
                assert_eq!(filter.keys(0), alive.count() as u64);
                assert_eq!(copy(&filter), filter);
                let delta = twin.delta_to(&filter).unwrap().to_vec();
                twin.patch(&delta, Limits::default()).unwrap();
                assert_eq!(twin.content_id(), filter.content_id());
            }
        }
    }
}

#[test]
fn a_lifetime_ends_between_its_bounds() {
    for (lifetime, steps) in [(1, 1), (1000, 1), (1000, 4), (10, 3), (HOUR, 64), (7, 64)] {
        for start in [0, 1, 12_345_678, 1 << 50, u64::MAX / 64 - 3 * lifetime] {
            let mut filter = empty(10, lifetime, steps);
            assert_eq!(filter.insert("apple", start), Ok(true));
            assert!(filter.contains("apple", start) && filter.contains("apple", start + lifetime));
            let end = start + lifetime + lifetime.div_ceil(steps.into());
            assert!(!filter.contains("apple", end), "{lifetime} {steps} {start}");
            // An hour back is not an hour lost.
            assert!(filter.contains("apple", start.saturating_sub(lifetime)));
        }
    }
}

#[test]
fn a_touched_key_starts_anew_and_an_absent_one_does_not_come() {
    let mut filter = empty(10, 1000, 4);
    filter.insert("apple", 0).unwrap();
    assert_eq!(filter.touch("apple", 900), Ok(true));
    assert_eq!(filter.touch("pear", 900), Ok(false));
    assert!(filter.contains("apple", 1900) && !filter.contains("pear", 900));
    assert_eq!(filter.insert("apple", 1900), Ok(false));
    assert_eq!(filter.keys(1900), 1);
    filter.remove("apple", 1900).unwrap();
    filter.remove("apple", 1900).unwrap_err();
    assert_eq!(filter.keys(1900), 0);
}

#[test]
fn a_merged_filter_has_the_younger_of_both_ages() {
    let insert = |filter: &mut Aging, keys: std::ops::Range<u64>, now: u64| {
        keys.for_each(|key| assert!(filter.insert(&key, now).is_ok()));
    };
    let new = || empty(9_000, 1000, 4);
    let (mut first, mut second, mut both, mut older) = (new(), new(), new(), new());
    for filter in [&mut first, &mut both] {
        insert(filter, 0..1000, 0);
        insert(filter, 1000..2000, 600);
    }
    for filter in [&mut second, &mut both] {
        insert(filter, 500..1500, 900);
    }
    let other = empty(5_000, 1000, 4).merge(&second).unwrap_err();
    assert_eq!(other.field(), Some("universe"));
    let (mut one, mut other) = (first.clone(), second.clone());
    one.merge(&second).unwrap();
    other.merge(&first).unwrap();
    assert_eq!(one.content_id(), other.content_id());
    assert_eq!(one.content_id(), both.content_id());
    one.validate().unwrap();
    // What is too old beside the other is gone.
    insert(&mut older, 0..10, 0);
    let mut late = new();
    late.insert("late", 5000).unwrap();
    older.merge(&late).unwrap();
    assert_eq!((older.keys(5000), older.ages().sum::<u64>()), (1, 1));
}

#[test]
fn footprint_is_memory_and_follows_what_is_alive() {
    let mut filter = empty(100_000, HOUR, 4);
    let before = held();
    let (_, none) = (filter.insert("apple", 0), filter.footprint());
    assert_eq!(
        (held() - before + 8 * 5) as u64,
        none / 8,
        "the list of generations was there before"
    );
    for key in 0..100_000_u64 {
        filter.insert(&key, key * 36).unwrap();
    }
    let most = filter.footprint();
    assert_eq!((held() - before + 8 * 5) as u64, most / 8);
    filter.advance(3 * HOUR);
    assert_eq!(filter.footprint(), 8 * 8 * 5, "an empty filter has no table");
    assert!(most < 16 * 100_000, "{most}");
}

/// A filter with three generations.
fn sample() -> Aging {
    let mut filter = empty(60, 1000, 4);
    for key in 0..60_u64 {
        filter.insert(&key, key * 12).unwrap();
    }
    filter
}

#[test]
fn bytes_are_faithful_in_both_forms() {
    for filter in [empty(0, 1, 1), sample()] {
        let plain = filter.encode().to_vec();
        let packed = filter.pack(Effort::Best).to_vec();
        for bytes in [&plain, &packed] {
            let read = Aging::decode(bytes, Limits::default()).unwrap();
            assert_eq!(read, filter);
            read.validate().unwrap();
        }
        assert_eq!(copy(&filter).encode().to_vec(), plain);
    }
    let json = serde_json::to_string(&sample()).unwrap();
    assert_eq!(serde_json::from_str::<Aging>(&json).unwrap(), sample());
}

#[test]
fn hostile_bytes_are_refused_by_name() {
    let filter = sample();
    let bytes = filter.encode().to_vec();
    for len in 0..bytes.len() {
        Aging::decode(&bytes[..len], Limits::default()).unwrap_err();
    }
    let mut changed = bytes.clone();
    for at in 0..bytes.len() {
        changed[at] ^= 0x11;
        assert!(Aging::decode(&changed, Limits::default()).is_err(), "byte {at}");
        changed[at] ^= 0x11;
    }
    let refusal = |at: usize, value: u64| {
        let forged = hostile::forge(&bytes, |head| {
            head[at..at + 8].copy_from_slice(&value.to_le_bytes());
        });
        Aging::decode(&forged, Limits::default()).unwrap_err().to_string()
    };
    for (at, value, word) in [
        (32, 59, "keys: 59"),
        (48, 0, "param universe must be 135"),
        (48, 1 << 20, "universe"),
        (48, 105 << 20, "another universe"),
        (56, 0, "lifetime must be 1 or more, not 0"),
        (64, 0, "steps must be 1 to 64, not 0"),
        (64, 65, "steps must be 1 to 64, not 65"),
        (80, 0x0103, "section role"),
        (80, 0x0105, "section role"),
        (80, 1 << 56 | 0x0100, "section reserved"),
    ] {
        let refusal = refusal(at, value);
        assert!(refusal.contains(word), "{at} {value}: {refusal}");
    }
    // A filter or a delta is not one whose keys expire, and the other way round.
    let delta = empty(60, 1000, 4).delta_to(&filter).unwrap().to_vec();
    let plain = tamis::BlockedRank::with_rate(10, 0.01).unwrap().to_bytes();
    for (bytes, word) in [(&delta, "a delta, not a filter"), (&plain, "do not expire")] {
        let refusal = Aging::decode(bytes, Limits::default()).unwrap_err().to_string();
        assert!(refusal.contains(word), "{refusal}");
    }
    let refusal = tamis::AnyFilter::decode(&bytes, Limits::default()).unwrap_err().to_string();
    assert!(refusal.contains("a filter whose keys expire"), "{refusal}");
}

/// The bytes after some bytes of a generation were changed, with valid checksums inside and
/// outside.
fn changed_inside(bytes: &[u8], seed: u64) -> Option<Vec<u8>> {
    let random = |salt: u64| Digest(seed).word(salt) as usize;
    let mut source = bytes;
    let header = tamis::wire::Frame::read(&mut source, Limits::NONE).ok()?.header().clone();
    let section = header.sections[random(1) % header.sections.len()];
    let place = section.offset as usize..(section.offset + section.stored) as usize;
    let mut inside = bytes[place.clone()].to_vec();
    for change in 0..=random(2) as u64 % 3 {
        let at = random(3 + change) % inside.len();
        inside[at] ^= 1 << (random(13 + change) % 8);
    }
    let mut changed = bytes.to_vec();
    changed[place].copy_from_slice(&hostile::repair(&inside)?);
    hostile::repair(&changed)
}

#[test]
fn mutated_bytes_are_refused_or_harmless_within_the_limit() {
    let (old, mut new) = (sample(), sample());
    for key in 30..90_u64 {
        new.insert(&key, 800).unwrap();
    }
    let forms = [
        new.encode().to_vec(),
        new.pack(Effort::Best).to_vec(),
        old.delta_to(&new).unwrap().to_vec(),
    ];
    let (mut accepted, mut patched) = (0, 0);
    for seed in 0..6_000 {
        let bytes = &forms[seed as usize % 3];
        let changed =
            if seed % 2 == 0 { hostile::mutated(bytes, seed) } else { changed_inside(bytes, seed) };
        let Some(changed) = changed else { continue };
        let (read, peak) =
            tamis_report::memory::peak_of(|| Aging::decode(&changed, hostile::LIMITS));
        assert!(peak <= hostile::LIMITS.memory + (1 << 20), "{peak} bytes for {seed}");
        if let Ok(mut read) = read {
            accepted += 1;
            read.validate().unwrap();
            for key in 0..100_u64 {
                read.insert(&key, 900).unwrap();
                assert!(read.contains(&key, 900));
            }
            read.validate().unwrap();
            assert_eq!(copy(&read), read);
        }
        let mut base = old.clone();
        match base.patch(&changed, hostile::LIMITS) {
            Ok(()) => {
                patched += 1;
                assert_eq!(base.content_id(), new.content_id(), "another result than it names");
            }
            Err(_) => assert_eq!(base, old, "half done"),
        }
    }
    println!("{accepted} accepted, {patched} patched");
    assert!(accepted > 100, "{accepted}");
    assert!(patched > 5, "{patched}");
}

#[test]
fn a_delta_fits_its_base_alone() {
    let (old, mut new) = (sample(), sample());
    for key in 30..90_u64 {
        new.insert(&key, 1300).unwrap();
    }
    let delta = old.delta_to(&new).unwrap().to_vec();
    let mut patched = old.clone();
    patched.patch(&delta, Limits::default()).unwrap();
    assert_eq!(patched, new);
    let again = patched.patch(&delta, Limits::default()).unwrap_err();
    assert!(matches!(again, tamis::DeltaError::Base { .. }), "{again}");
    let other = empty(60, 1001, 4);
    assert!(other.delta_to(&new).unwrap_err().to_string().contains("lifetime"));
}

#[test]
fn what_cannot_be_is_refused() {
    let new = |rate, lifetime, steps| Aging::new(Hasher::default(), 100, rate, lifetime, steps);
    for (rate, lifetime, steps, word) in [
        (0.0, 1, 1, "rate"),
        (1.0, 1, 1, "rate"),
        (f64::NAN, 1, 1, "rate"),
        (1e-18, 1, 1, "rate"),
        (0.1, 0, 1, "lifetime"),
        (0.1, 1, 0, "steps"),
        (0.1, 1, 65, "steps"),
    ] {
        let refusal = new(rate, lifetime, steps).unwrap_err().to_string();
        assert!(refusal.contains(word), "{refusal}");
    }
    let full = Aging::new(Hasher::default(), u64::MAX, 0.5, 1, 1).unwrap_err().to_string();
    assert!(full.contains("cannot be reached"), "{full}");
}

/// Bytes of earlier versions, which are those of [`sample`] and of a delta from it.
#[test]
fn golden_bytes_are_read_and_written_as_ever() {
    let folder = tamis_testkit::golden::folder();
    let bytes = std::fs::read(folder.join("aging.aged")).unwrap();
    let mut filter = Aging::decode(&bytes, Limits::default()).unwrap();
    assert_eq!(filter.encode().to_vec(), bytes);
    assert_eq!(filter, sample());
    assert_eq!(filter.content_id().to_string(), "0606c47cefa4aa9072a8a9381c2a239b");
    let delta = std::fs::read(folder.join("aging.aged-delta")).unwrap();
    filter.patch(&delta, Limits::default()).unwrap();
    assert_eq!(filter.content_id().to_string(), "d73ba24569d5943c72259e45a56cd51d");
    assert_eq!(filter.ages().collect::<Vec<_>>(), [60, 0, 0, 0, 9]);
}
