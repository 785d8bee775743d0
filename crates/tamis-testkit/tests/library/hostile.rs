//! Bytes that were not made by the encoder.

use std::path::PathBuf;
use std::sync::Arc;

use tamis::{
    AnyFilter, AnyParams, Bloom, CountingBloom, DLeft, Digest, Filter, Goal, Hasher, Kind, Label,
    Limits, SharedBytes, Stored, WireError,
};
use tamis_testkit::{golden, hostile};

fn sample(kind: Kind) -> Vec<u8> {
    let params = AnyParams::plan(kind, &Goal::rate(60, 0.05)).unwrap();
    let hasher = Hasher::xxh3(1);
    let keys: Vec<Digest> = (0..60_u64).map(|key| hasher.digest(&key)).collect();
    params.build_from(Label::planned(hasher, 60), &keys).unwrap().encode().to_vec()
}

/// All forms of bytes that are not entropy-coded.
fn golden_files() -> Vec<PathBuf> {
    golden::files()
}

#[test]
fn every_truncation_and_every_changed_byte_is_refused() {
    for &kind in Kind::ALL {
        hostile::attack(&sample(kind));
    }
    for path in golden_files() {
        hostile::attack(&std::fs::read(path).unwrap());
    }
}

/// Changes every byte of every golden file and makes the checksums valid again. What is then
/// accepted keeps its laws.
#[test]
fn changes_behind_right_checksums_are_refused_or_harmless() {
    for path in golden_files() {
        let bytes = std::fs::read(path).unwrap();
        let mut accepted = 0;
        for at in 0..bytes.len() {
            for change in [0x01, 0x10, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let Some(repaired) = hostile::repair(&changed) else { continue };
                let Ok(mut filter) = hostile::decode(&repaired) else { continue };
                accepted += 1;
                filter.validate().unwrap();
                let digest = filter.hasher().digest("an absent key");
                if let Some(insert) = filter.as_insert() {
                    // By its policy a filter may be full, and then insertion fails.
                    let taken = insert.insert_digest(digest).is_ok();
                    assert!(!taken || filter.contains_digest(digest));
                }
                filter.validate().unwrap();
            }
        }
        assert!(accepted > 0, "data may be anything");
    }
}

/// Every golden file, in every form, changed at random with valid checksums: `TAMIS_HOSTILE`
/// inputs, or a few thousand. The most memory held is checked while they are read, and while what
/// is accepted is used.
#[test]
fn mutated_files_stay_within_the_limit() {
    let inputs = std::env::var("TAMIS_HOSTILE")
        .map_or(6_000, |inputs| inputs.parse().expect("TAMIS_HOSTILE: a number of inputs"));
    let filters = golden::files().into_iter().chain(golden::packed());
    let filters: Vec<_> = filters.map(|path| (std::fs::read(&path).unwrap(), path)).collect();
    let deltas: Vec<_> = golden::deltas()
        .into_iter()
        .map(|path| {
            let base = std::fs::read(path.with_extension("tamis")).unwrap();
            (std::fs::read(&path).unwrap(), AnyFilter::decode(&base, Limits::default()).unwrap())
        })
        .collect();
    let (mut accepted, mut patches) = (0, 0);
    for seed in 0..inputs {
        let all = (filters.len() + deltas.len()) as u64;
        let at = (seed % all) as usize;
        if let Some((bytes, path)) = filters.get(at) {
            let Some(changed) = hostile::mutated(bytes, seed) else { continue };
            let Ok(filter) = hostile::decode(&changed) else { continue };
            accepted += 1;
            println!("{seed} {}", path.display());
            hostile::use_fully(filter);
        } else {
            let (bytes, base) = &deltas[at - filters.len()];
            let Some(changed) = hostile::mutated(bytes, seed) else { continue };
            let Ok(delta) = hostile::decode_delta(&changed) else { continue };
            patches += 1;
            let mut patched = base.clone();
            if delta.apply(&mut patched).is_err() {
                assert_eq!(&patched, base, "half done");
            }
        }
    }
    println!("{inputs} inputs: {accepted} filters and {patches} deltas accepted");
    assert!(accepted > inputs / 50 && patches > inputs / 1000, "{accepted} {patches} of {inputs}");
}

/// Writes a little-endian word.
fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn refusal(bytes: &[u8]) -> String {
    hostile::decode(bytes).expect_err("a lie must be refused").to_string()
}

/// Offsets in the header of a filter with two params and one section.
const BITS: usize = 48;
const HASHES: usize = 56;
const ENTRY: usize = 64;

#[test]
fn lies_with_a_right_checksum_are_refused_by_name() {
    let bytes = sample(Kind::Bloom);
    let lie = |at: usize, value: u64| refusal(&hostile::forge(&bytes, |head| put(head, at, value)));
    let byte = |at: usize, value: u8| refusal(&hostile::forge(&bytes, |head| head[at] = value));
    assert_eq!(lie(BITS, 1 << 60), "param bits must be 1 to 2^48, not 1152921504606846976");
    assert!(lie(BITS, 1 << 47).starts_with("section length"));
    assert_eq!(lie(BITS, 0), "param bits must be 1 to 2^48, not 0");
    assert_eq!(lie(HASHES, 65), "param hashes must be 1 to 64, not 65");
    assert_eq!(lie(HASHES, 1 << 32 | 3), "param hashes must be 1 to 64, not 4294967295");
    assert!(lie(ENTRY + 8, 0).starts_with("section offset"));
    assert!(lie(ENTRY + 8, u64::MAX).starts_with("section offset"));
    assert!(lie(ENTRY + 16, 1 << 58).starts_with("section length"));
    assert!(lie(ENTRY + 24, 8).starts_with("section length"));
    assert!(lie(ENTRY + 32, 1).starts_with("section checksums"));
    assert!(byte(ENTRY, 3).starts_with("section role"));
    assert!(byte(ENTRY + 1, 200).starts_with("section encoding: 200 is not known"));
    assert!(byte(ENTRY + 2, 1).starts_with("section reserved: 1 is not known"));
    assert!(byte(0, b'x').starts_with("not a tamis file"));
    assert!(byte(8, 2).starts_with("version: 2 is not known to this version"));
    assert!(byte(10, 9).starts_with("object: 9 is not known"));
    assert!(byte(11, 9).starts_with("hash: 9 is not known"));
    assert_eq!(byte(12, 99), "kind: 99 is not known to this version of tamis; use a newer one");
    assert!(byte(13, 9).starts_with("kind: "));
    assert!(byte(31, 1).starts_with("seed"));
}

#[test]
fn a_claim_of_two_to_the_sixty_bits_allocates_nothing() {
    // Everything is consistent, params, table and offset; only the data is missing.
    let bytes = sample(Kind::Blocked);
    let (blocks, entry) = (48, 48 + 24);
    for stored in [1_u64 << 57, 1 << 44, 1 << 30] {
        let forged = hostile::forge(&bytes, |head| {
            put(head, blocks, stored * 8 / 512);
            put(head, entry + 16, stored);
            put(head, entry + 24, stored);
            let lead = 120_u64 + stored.div_ceil(1 << 20) * 8;
            put(head, entry + 8, lead.next_multiple_of(64));
        });
        let said = refusal(&forged);
        assert!(said.starts_with("the file is cut off: "), "{said}");
    }
}

#[test]
fn limits_are_kept() {
    let bytes = sample(Kind::Counting);
    let filter = AnyFilter::decode(&bytes, Limits::default()).unwrap();
    let need = filter.params().named()[0].1 * 4 / 8;
    let refused = AnyFilter::decode(&bytes, Limits::memory(need - 8)).unwrap_err();
    assert!(matches!(refused, WireError::Limit { field: "sections", .. }), "{refused}");
}

#[test]
fn stray_bits_behind_the_array_are_refused() {
    use xxhash_rust::xxh3::xxh3_64;
    let mut bytes = sample(Kind::Bloom);
    let last = bytes.len() - 1;
    bytes[last] |= 0x80;
    let data = u64::from_le_bytes(bytes[ENTRY + 8..ENTRY + 16].try_into().unwrap()) as usize;
    let list = xxh3_64(&bytes[data..]).to_le_bytes();
    bytes[data - 8..data].copy_from_slice(&list);
    let forged = hostile::forge(&bytes, |head| put(head, ENTRY + 32, xxh3_64(&list)));
    assert_eq!(refusal(&forged), "content: bits are set beyond the end of the array");
}

#[test]
fn another_kind_is_named() {
    let bytes = sample(Kind::Bloom);
    let said = CountingBloom::decode(&bytes, Limits::default()).unwrap_err().to_string();
    assert_eq!(said, "kind: the file holds bloom, not counting");
    assert!(Bloom::decode(&bytes, Limits::default()).is_ok());
}

#[test]
fn large_filters_are_checked_chunk_by_chunk() {
    // Three chunks and a part of one: a change in any of them is found, and reported as data.
    let params = tamis::bloom::BloomParams::new(8 * (3 << 20) + 77, 1).unwrap();
    let filter = Bloom::new(params, Hasher::default()).unwrap();
    let mut bytes = filter.encode().to_vec();
    assert_eq!(Bloom::decode(&bytes, Limits::default()).unwrap(), filter);
    for at in [bytes.len() - 1, bytes.len() - (1 << 20), 1 << 20, 2 << 20, 300] {
        bytes[at] ^= 4;
        let said = Bloom::decode(&bytes, Limits::default()).unwrap_err();
        assert_eq!(said, WireError::Checksum { field: "section data" });
        bytes[at] ^= 4;
    }
}

/// Counts in the overflow may be any numbers, and the sum of those of one identity may exceed all
/// numbers.
#[test]
fn counts_that_overflow_are_as_many_as_can_be_said() {
    let params = tamis::dleft::DLeftParams::new(2, 4, 4, 8, 1).unwrap();
    let mut filter = DLeft::new(params, Hasher::default()).unwrap();
    for value in [0, 0, 0, 0, 0, 1, 1, 1, 1, 1] {
        filter.insert_value("often", value).unwrap();
    }
    assert_eq!(filter.overflow(), Some(2), "one of each value found no room in its cell");
    let mut bytes = filter.encode().to_vec();
    let len = bytes.len();
    put(&mut bytes, len - 32, u64::MAX);
    put(&mut bytes, len - 8, u64::MAX);
    let forged = hostile::decode(&hostile::repair(&bytes).unwrap()).unwrap();
    let AnyFilter::DLeft(forged) = forged else { panic!("still the same kind") };
    assert_eq!(forged.count("often"), Some(u64::MAX));
}

/// A file that is opened in place is not checked: whatever its blocks hold, lookups and insertions
/// end without a panic.
#[test]
fn bytes_opened_in_place_may_lie_and_do_no_harm() {
    for path in golden_files() {
        let bytes = std::fs::read(&path).unwrap();
        for at in (64..bytes.len()).step_by(3) {
            for change in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                // A run of ones: full index maps and counters.
                if at % 2 == 0 {
                    let end = bytes.len().min(at + 24);
                    changed[at..end].fill(0xff);
                }
                let shared: SharedBytes = Arc::new(changed);
                let Ok(mut filter) = AnyFilter::open(&shared) else { continue };
                let digests =
                    (0..40_u64).map(|key| filter.hasher().digest(&key)).collect::<Vec<_>>();
                for &digest in &digests {
                    filter.contains_digest(digest);
                }
                if let Some(insert) = filter.as_insert() {
                    let _ = insert.insert_many(&digests);
                }
                if let Some(remove) = filter.as_remove() {
                    remove.remove_many(&digests);
                }
            }
        }
    }
}
