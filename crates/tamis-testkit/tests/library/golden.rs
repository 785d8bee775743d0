//! Bytes of earlier versions: read, write and answer as they did.

use std::sync::Arc;

use tamis::{AnyFilter, Delta, Filter, Kind, Limits, SharedBytes};
use tamis_testkit::golden;

#[test]
fn golden_files_are_read_written_and_answered_as_ever() {
    let files = golden::files();
    assert!(files.len() >= Kind::ALL.len(), "a golden file for every kind");
    for path in files {
        golden::check(&path);
    }
}

#[test]
fn every_supported_kind_has_a_golden_file() {
    let held: Vec<Kind> = golden::files()
        .iter()
        .map(|path| {
            AnyFilter::decode(&std::fs::read(path).unwrap(), Limits::default()).unwrap().kind()
        })
        .collect();
    assert!(Kind::ALL.iter().all(|kind| held.contains(kind)), "{held:?}");
}

#[test]
fn packed_golden_files_hold_the_filters_beside_them() {
    let mut packed = 0;
    for path in golden::files() {
        let Ok(bytes) = std::fs::read(path.with_extension("packed")) else { continue };
        let plain = std::fs::read(&path).unwrap();
        let held = AnyFilter::decode(&bytes, Limits::default()).unwrap();
        assert_eq!(held, AnyFilter::decode(&plain, Limits::default()).unwrap(), "{path:?}");
        packed += 1;
    }
    assert!(packed >= 6);
}

#[test]
fn golden_deltas_lead_on_from_the_filters_beside_them() {
    let mut deltas = 0;
    for path in golden::files() {
        let Ok(bytes) = std::fs::read(path.with_extension("delta")) else { continue };
        let mut filter =
            AnyFilter::decode(&std::fs::read(&path).unwrap(), Limits::default()).unwrap();
        let delta = Delta::decode(&bytes, Limits::default()).unwrap();
        delta.apply(&mut filter).unwrap();
        assert_eq!(filter.content_id(), delta.result());
        deltas += 1;
    }
    assert!(deltas >= 3);
}

/// Bytes that start at an odd address, behind one more.
struct Crooked(Vec<u8>);

impl AsRef<[u8]> for Crooked {
    fn as_ref(&self) -> &[u8] {
        &self.0[1..]
    }
}

#[test]
fn golden_files_answer_in_place_as_they_do_in_memory() {
    for path in golden::files() {
        let bytes = std::fs::read(path).unwrap();
        let loaded = AnyFilter::decode(&bytes, Limits::default()).unwrap();
        let crooked = Crooked([&[0], &bytes[..]].concat());
        let shared: [SharedBytes; 2] = [Arc::new(bytes), Arc::new(crooked)];
        for shared in shared {
            let opened = AnyFilter::open(&shared).unwrap();
            opened.validate().unwrap();
            assert_eq!(opened.content_id(), loaded.content_id());
            for key in (0..20_000_u64).map(|number| number.to_string()) {
                assert_eq!(opened.contains(&key), loaded.contains(&key));
            }
        }
    }
}
