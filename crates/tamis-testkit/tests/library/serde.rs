//! Filters in serde are the bytes of the wire format.

use tamis::{AnyFilter, AnyParams, Bloom, Delta, Goal, Hasher, Kind};

fn filter(kind: Kind, keys: u64) -> AnyFilter {
    let hasher = Hasher::default();
    let digests: Vec<_> = (0..keys).map(|key| hasher.digest(&key)).collect();
    AnyParams::plan(kind, &Goal::rate(100, 0.01)).unwrap().build_from(hasher, &digests).unwrap()
}

#[test]
fn every_kind_comes_back_as_it_was() {
    for &kind in Kind::ALL {
        let before = filter(kind, 100);
        let json = serde_json::to_string(&before).unwrap();
        let bytes: Vec<u8> = serde_json::from_str(&json).unwrap();
        assert_eq!(bytes, before.encode().to_vec(), "{kind:?}");
        assert_eq!(serde_json::from_str::<AnyFilter>(&json).unwrap(), before, "{kind:?}");
    }
    let before = Bloom::from_keys(["apple", "pear"], 0.01).unwrap();
    let json = serde_json::to_string(&before).unwrap();
    assert_eq!(serde_json::from_str::<Bloom>(&json).unwrap(), before);
    let delta = Delta::between(&filter(Kind::Bloom, 9), &filter(Kind::Bloom, 10)).unwrap();
    let json = serde_json::to_string(&delta).unwrap();
    assert_eq!(serde_json::from_str::<Delta>(&json).unwrap(), delta);
}

#[test]
fn what_is_not_a_filter_is_refused_with_a_reason() {
    let bloom = serde_json::to_string(&filter(Kind::Bloom, 9)).unwrap();
    let refused = serde_json::from_str::<tamis::DLeft>(&bloom).unwrap_err().to_string();
    assert!(refused.contains("kind: the file holds bloom, not dleft"), "{refused}");
    let refused = serde_json::from_str::<AnyFilter>("[1, 2, 3]").unwrap_err().to_string();
    assert!(refused.contains("header"), "{refused}");
    let refused = serde_json::from_str::<AnyFilter>("true").unwrap_err().to_string();
    assert!(refused.contains("the bytes of a tamis file"), "{refused}");
}
