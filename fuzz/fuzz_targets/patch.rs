//! Whatever the bytes, patching ends in the promised content or leaves the base as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::{AnyFilter, AnyParams, Delta, Goal, Hasher, Kind, Label, Limits};
use tamis_testkit::hostile;

/// A small filter of every kind that has deltas.
fn bases() -> Vec<AnyFilter> {
    let hasher = Hasher::xxh3(7);
    let keys: Vec<_> = (1..=60_u64).map(|key| hasher.digest(&key.to_string())).collect();
    let kinds = Kind::ALL.iter().copied().filter(|kind| kind.can_insert());
    kinds
        .map(|kind| {
            let params = AnyParams::plan(kind, &Goal::rate(60, 0.05)).expect("a plan");
            params.build_from(Label::planned(hasher, 60), &keys).expect("a filter")
        })
        .collect()
}

fuzz_target!(|bytes: &[u8]| {
    thread_local!(static BASES: Vec<AnyFilter> = bases());
    let Some(repaired) = hostile::repair(bytes) else { return };
    let Ok(delta) = Delta::decode(&repaired, Limits::memory(1 << 24)) else { return };
    // Its own base, whatever it claims: the content id in section 0 stands behind the header.
    BASES.with(|bases| {
        for base in bases.iter().filter(|base| base.kind() == delta.kind()) {
            let mut filter = base.clone();
            match delta.apply(&mut filter) {
                Ok(()) => assert_eq!(filter.content_id(), delta.result()),
                Err(_) => assert_eq!(&filter, base, "half done"),
            }
            filter.validate().expect("valid in any case");
        }
    });
});
