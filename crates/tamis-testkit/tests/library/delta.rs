//! Packed snapshots and deltas, for every kind.

use tamis::internals::math::gamma::ln_choose;
use tamis::{
    AnyFilter, AnyParams, Delta, DeltaError, Digest, Effort, Filter, Goal, Hasher, Kind, Label,
    Limits, Stored,
};
use tamis_report::keys::KeyStream;

/// The kinds that change: others have no deltas.
fn changing() -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().filter(|kind| kind.can_insert())
}

fn empty(kind: Kind, keys: u64, rate: f64) -> AnyFilter {
    let params = AnyParams::plan(kind, &Goal::rate(keys, rate)).unwrap();
    params.build(Label::planned(Hasher::xxh3(1), keys)).unwrap()
}

fn insert(filter: &mut AnyFilter, keys: std::ops::Range<u64>) {
    let digests: Vec<Digest> = KeyStream::new(8).members(filter.hasher(), keys).collect();
    filter.as_insert().unwrap().insert_many(&digests).unwrap();
}

fn remove(filter: &mut AnyFilter, keys: std::ops::Range<u64>) {
    let digests: Vec<Digest> = KeyStream::new(8).members(filter.hasher(), keys).collect();
    let filter = filter.as_remove().unwrap();
    for digest in digests {
        filter.remove_digest(digest).unwrap();
    }
}

/// The filter after one step: some keys removed where the kind can, some inserted, one of them
/// often.
fn step(filter: &AnyFilter, number: u64) -> AnyFilter {
    let mut next = filter.clone();
    if next.as_remove().is_some() {
        remove(&mut next, 20 * number..20 * (number + 1));
    }
    insert(&mut next, 1000 + 30 * number..1000 + 30 * (number + 1));
    let often = next.hasher().digest("often");
    for _ in 0..=number * 9 {
        next.as_insert().unwrap().insert_digest(often).unwrap();
    }
    next
}

#[test]
fn packed_snapshots_are_the_same_filters() {
    for &kind in Kind::ALL {
        for (keys, rate) in [(0, 0.1), (1, 0.01), (1000, 0.02), (3000, 0.3)] {
            let params = AnyParams::plan(kind, &Goal::rate(keys, rate)).unwrap();
            let digests: Vec<Digest> =
                KeyStream::new(8).members(Hasher::xxh3(1), 0..keys).collect();
            let label = Label::planned(Hasher::xxh3(1), keys);
            let filter = params.build_from(label, &digests).unwrap();
            for effort in [Effort::Fast, Effort::Best] {
                let bytes = filter.pack(effort).to_vec();
                let copy = AnyFilter::decode(&bytes, Limits::default()).unwrap();
                assert_eq!(copy, filter, "{kind:?}");
                // A packed filter does not say where these kinds had put their entries.
                if !matches!(kind, Kind::BlockedRank | Kind::DLeft) {
                    assert_eq!(copy.encode().to_vec(), filter.encode().to_vec());
                }
                assert!(bytes.len() as u64 <= filter.encode().len() + 16, "{kind:?}");
            }
        }
    }
}

#[test]
fn deltas_lead_from_filter_to_filter() {
    for kind in changing() {
        let mut base = empty(kind, 3000, 0.01);
        insert(&mut base, 0..1000);
        let mut versions = vec![base];
        for number in 0..5 {
            versions.push(step(&versions[number as usize], number));
        }
        let deltas: Vec<Delta> =
            versions.windows(2).map(|pair| Delta::between(&pair[0], &pair[1]).unwrap()).collect();
        // A chain of deltas, each through bytes.
        let mut peer = versions[0].clone();
        for (delta, version) in deltas.iter().zip(&versions[1..]) {
            let bytes = delta.encode().to_vec();
            let received = Delta::decode(&bytes, Limits::default()).unwrap();
            assert_eq!((received.base(), received.result()), (delta.base(), delta.result()));
            received.apply(&mut peer).unwrap();
            assert_eq!(&peer, version, "{kind:?}");
            peer.validate().unwrap();
            assert_eq!(received.encode().to_vec(), bytes);
        }
        // All of them joined into one.
        let joined =
            deltas.iter().skip(1).fold(deltas[0].clone(), |all, next| all.then(next).unwrap());
        let mut peer = versions[0].clone();
        let joined = Delta::decode(&joined.encode().to_vec(), Limits::default()).unwrap();
        joined.apply(&mut peer).unwrap();
        assert_eq!(peer, versions[5], "{kind:?}");
        // A decoded delta can be joined once its base has told it what it removes.
        let mut first = Delta::decode(&deltas[0].encode().to_vec(), Limits::default()).unwrap();
        first.resolve(&versions[0]).unwrap();
        let mut peer = versions[0].clone();
        first.then(&deltas[1]).unwrap().apply(&mut peer).unwrap();
        assert_eq!(peer, versions[2]);
        assert!(matches!(deltas[0].then(&deltas[2]), Err(DeltaError::Gap { .. })));
        // A delta may be empty.
        let nothing = Delta::between(&versions[3], &versions[3]).unwrap();
        nothing.apply(&mut versions[3].clone()).unwrap();
        assert!(nothing.encode().len() < 320);
    }
}

#[test]
fn a_delta_applies_to_its_base_alone() {
    for kind in changing() {
        let mut base = empty(kind, 3000, 0.01);
        insert(&mut base, 0..1000);
        let new = step(&base, 0);
        let delta = Delta::between(&base, &new).unwrap();
        let mut other = step(&base, 1);
        let before = other.clone();
        assert!(matches!(delta.apply(&mut other), Err(DeltaError::Base { .. })));
        assert_eq!(other, before);
        assert!(matches!(delta.apply(&mut new.clone()), Err(DeltaError::Base { .. })));
        assert!(Delta::between(&base, &empty(kind, 9999, 0.01)).is_err(), "other params");
    }
    let once = empty(Kind::Compressed, 9, 0.1);
    let refused = Delta::between(&once, &once).unwrap_err().to_string();
    assert!(refused.contains("send snapshots instead"), "{refused}");
    let refused = Delta::between(&empty(Kind::Bloom, 9, 0.1), &empty(Kind::Blocked, 9, 0.1));
    assert_eq!(refused.unwrap_err().to_string(), "the filters differ in kind: bloom and blocked");
}

#[test]
fn deltas_apply_across_another_layout_of_the_same_identities() {
    let AnyFilter::RankIndexed(mut grown) = empty(Kind::RankIndexed, 1000, 0.01) else { panic!() };
    let mut base = AnyFilter::RankIndexed(grown.clone());
    insert(&mut base, 0..1000);
    let new = step(&base, 0);
    let delta = Delta::between(&base, &new).unwrap();
    grown.grow().unwrap();
    let mut grown = AnyFilter::RankIndexed(grown);
    insert(&mut grown, 0..1000);
    delta.apply(&mut grown).unwrap();
    assert_eq!(grown.content_id(), new.content_id());
}

#[test]
fn damaged_deltas_leave_the_base_untouched() {
    for kind in changing() {
        let mut base = empty(kind, 200, 0.05);
        insert(&mut base, 0..100);
        let mut new = base.clone();
        insert(&mut new, 500..505);
        let bytes = Delta::between(&base, &new).unwrap().encode().to_vec();
        for len in 0..bytes.len() {
            assert!(Delta::decode(&bytes[..len], Limits::default()).is_err());
        }
        for at in 0..bytes.len() {
            for change in [0x01, 0x40, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert!(Delta::decode(&changed, Limits::default()).is_err(), "{kind:?} {at}");
                // With valid checksums: it is refused when it is decoded, or by the base, or
                // because the result is not the promised one.
                let Some(repaired) = tamis_testkit::hostile::repair(&changed) else { continue };
                let Ok(delta) = Delta::decode(&repaired, Limits::default()) else { continue };
                let mut peer = base.clone();
                if delta.apply(&mut peer).is_err() {
                    assert_eq!(peer, base, "{kind:?} {at}: half done");
                } else {
                    assert_eq!(peer.content_id(), new.content_id(), "{kind:?} {at}");
                }
            }
        }
        assert!(AnyFilter::decode(&bytes, Limits::default()).is_err(), "a delta is no filter");
        assert!(Delta::decode(&base.encode().to_vec(), Limits::default()).is_err());
    }
}

#[test]
fn rank_indexed_snapshots_come_close_to_the_entropy() {
    // The rows of paper 000: U of its params, n = 100,000.
    for (buckets, locations, fingerprint, entropy) in
        [(2605, 60, 6, 8.08), (1699, 64, 10, 11.56), (1907, 61, 13, 14.66)]
    {
        let fixed = [("buckets", buckets), ("locations", locations), ("fingerprint", fingerprint)];
        let fixed = fixed.map(|(name, value)| (name.to_string(), value)).to_vec();
        let goal = Goal::rate(100_000, 0.01).params(fixed);
        let params = AnyParams::plan(Kind::RankIndexed, &goal).unwrap();
        let mut filter = params.build(Hasher::default()).unwrap();
        insert(&mut filter, 0..100_000);
        let bits = filter.pack(Effort::Best).len() as f64 * 8.0 / 1e5;
        assert!((bits / entropy - 1.0).abs() < 0.02, "{bits} for {entropy}");
    }
}

#[test]
fn counting_snapshots_take_the_entropy_of_poisson_counters() {
    // Section 2.5 of the notes: m/n and bits per key at 1%.
    for (hashes, positions, bits) in [(7, 959_300, 15.603), (6, 961_700, 14.464)] {
        let fixed = [("counters", positions), ("hashes", hashes)];
        let fixed = fixed.map(|(name, value)| (name.to_string(), value)).to_vec();
        let goal = Goal::sized(100_000, tamis::Size::BitsPerKey(40.0)).params(fixed);
        let params = AnyParams::plan(Kind::Counting, &goal).unwrap();
        let mut filter = params.build(Hasher::default()).unwrap();
        insert(&mut filter, 0..100_000);
        for effort in [Effort::Fast, Effort::Best] {
            let packed = filter.pack(effort).len() as f64 * 8.0 / 1e5;
            assert!((packed / bits - 1.0).abs() < 0.01, "{packed} for {bits}");
        }
        assert!((filter.entropy_bits() / 1e5 / bits - 1.0).abs() < 0.005);
    }
}

/// Identities that go are some of those in the base, identities that come some of all: no coder
/// can write that in fewer bits.
#[test]
fn a_dleft_delta_comes_close_to_the_entropy() {
    for rate in [0.01, 0.0001] {
        let mut base = empty(Kind::DLeft, 200_000, rate);
        insert(&mut base, 0..200_000);
        let mut new = base.clone();
        remove(&mut new, 50_000..52_000);
        insert(&mut new, 200_000..202_000);
        let AnyFilter::DLeft(filter) = &base else { panic!("d-left") };
        let gone = ln_choose(filter.used(), 2000);
        let comes = ln_choose(filter.params().universe(), 2000);
        let entropy = (gone + comes) / std::f64::consts::LN_2 / 8.0;
        let delta = Delta::between(&base, &new).unwrap();
        let bytes = delta.encode().to_vec();
        println!("{} bytes, entropy {entropy:.0}", bytes.len());
        assert!(bytes.len() as f64 <= 1.1 * entropy);
        Delta::decode(&bytes, Limits::default()).unwrap().apply(&mut base).unwrap();
        assert_eq!(base, new);
    }
}

#[test]
fn a_rank_indexed_delta_of_one_per_cent_takes_36_kilobytes() {
    let mut base = empty(Kind::RankIndexed, 1_000_000, 0.001);
    insert(&mut base, 0..1_000_000);
    let mut new = base.clone();
    remove(&mut new, 500_000..510_000);
    insert(&mut new, 1_000_000..1_010_000);
    let delta = Delta::between(&base, &new).unwrap();
    assert_eq!((delta.changed(), delta.inserted()), (10_000, Some(10_000)));
    let bytes = delta.encode().to_vec();
    assert!(bytes.len() <= 36_000, "{} bytes", bytes.len());
    println!("{} bytes", bytes.len());
    let mut peer = base.clone();
    Delta::decode(&bytes, Limits::default()).unwrap().apply(&mut peer).unwrap();
    assert_eq!(peer.content_id(), new.content_id());
}
