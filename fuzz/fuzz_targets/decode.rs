//! Whatever the bytes, decoding ends in a filter that keeps its laws, or in an error; with small
//! allocations only.
//!
//! Random bytes never have a right checksum, so the target also repairs them and goes on with what
//! lies behind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::{AnyFilter, Digest, Filter, Limits};
use tamis_testkit::hostile;

tamis_testkit::install_counting_allocator!();

fuzz_target!(|bytes: &[u8]| {
    try_bytes(bytes);
    if let Some(repaired) = hostile::repair(bytes) {
        try_bytes(&repaired);
    }
});

fn try_bytes(bytes: &[u8]) {
    let Ok(mut filter) = hostile::decode(bytes) else { return };
    filter.validate().expect("decoding validates");
    let again = filter.encode().to_vec();
    assert!(!hostile::is_raw(bytes) || again == bytes, "raw bytes are canonical");
    let copy = AnyFilter::decode(&again, Limits::default()).expect("own bytes");
    assert_eq!(copy.content_id(), filter.content_id());
    for digest in [Digest(0), Digest(u64::MAX), Digest(0x1234_5678_9abc_def0)] {
        let inserted = filter.as_insert().is_some_and(|filter| filter.insert_digest(digest).is_ok());
        assert!(!inserted || filter.contains_digest(digest), "lost");
        if let Some(filter) = filter.as_remove() {
            filter.remove_digest(digest).expect("just inserted");
        }
    }
    let _ = (filter.rate(), filter.fill(), copy.contains_digest(Digest(7)));
}
