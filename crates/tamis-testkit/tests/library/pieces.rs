//! Filters packed in pieces: every kind that is an array, and a plain one that answers without
//! being unpacked.

use tamis::compressed::PackedBloom;
use tamis::{
    AnyFilter, AnyParams, Bloom, Digest, Effort, Filter, Goal, Hasher, Insert, Kind, Label, Limits,
    Operation, Packing, Stored, WireError,
};
use tamis_report::keys::KeyStream;
use tamis_report::memory;
use tamis_testkit::hostile::repair;

const KEYS: u64 = 3000;

fn digests(hasher: Hasher) -> Vec<Digest> {
    KeyStream::new(4).members(hasher, 0..KEYS).collect()
}

fn in_pieces(bits: u64, effort: Effort) -> Packing {
    Packing::from(effort).in_pieces(bits)
}

#[test]
fn arrays_are_packed_in_pieces_and_read_back() {
    let hasher = Hasher::default();
    for &kind in Kind::ALL {
        let mut goal = Goal::rate(KEYS, 0.02);
        if kind == Kind::RankMap {
            goal.needs = vec![Operation::Values(3)];
        }
        let params = tamis::Plan::of(kind, &goal).unwrap().params;
        let filter = params.build_from(Label::planned(hasher, KEYS), &digests(hasher)).unwrap();
        for effort in [Effort::Fast, Effort::Best] {
            let whole = filter.pack(effort).to_vec();
            for bits in [1, 1 << 10, 1 << 12, 1 << 40] {
                let cut = filter.pack(in_pieces(bits, effort)).to_vec();
                assert_eq!(AnyFilter::decode(&cut, Limits::default()).unwrap(), filter, "{kind:?}");
                if !filter.packs_an_array() {
                    assert_eq!(cut, whole, "{kind:?} cannot be cut");
                    continue;
                }
                assert!(cut != whole, "{kind:?} is cut");
                // A piece adds its end, its coder, its count and rounding: at most twelve bytes.
                let pieces = filter.footprint().div_ceil(bits.max(64)) + 2;
                let most = whole.len() as u64 + 3 + 12 * pieces;
                assert!(cut.len() as u64 <= most, "{kind:?} {bits}: {} of {most}", cut.len());
            }
        }
    }
}

fn plain() -> Bloom {
    let AnyParams::Bloom(params) = AnyParams::plan(Kind::Bloom, &Goal::rate(KEYS, 0.01)).unwrap()
    else {
        unreachable!()
    };
    let mut filter = Bloom::new(params, Label::planned(Hasher::xxh3(3), KEYS)).unwrap();
    filter.insert_many(&digests(filter.hasher())).unwrap();
    filter
}

#[test]
fn a_packed_filter_answers_as_the_unpacked_one_does() {
    let filter = plain();
    for bits in [64, 4096, 1 << 20] {
        let bytes = filter.pack(in_pieces(bits, Effort::Best)).to_vec();
        let packed = PackedBloom::open(&bytes, Limits::default()).unwrap();
        assert_eq!((packed.params(), packed.label()), (filter.params(), filter.label()));
        assert_eq!(packed.pieces().pieces(), filter.params().bits().div_ceil(bits));
        let absent =
            KeyStream::new(4).absent_keys(filter.hasher(), 0..if bits > 4096 { 50 } else { 3000 });
        for digest in digests(filter.hasher()).into_iter().take(200).chain(absent) {
            assert_eq!(packed.contains_digest(digest).unwrap(), filter.contains_digest(digest));
        }
    }
}

/// A lookup takes the memory of a piece, not of the filter.
#[test]
fn an_answer_takes_the_memory_of_one_piece() {
    let filter = plain();
    let bytes = filter.pack(in_pieces(1024, Effort::Best)).to_vec();
    let packed = PackedBloom::open(&bytes, Limits::memory(128)).unwrap();
    let (found, peak) = memory::peak_of(|| {
        let keys = digests(filter.hasher());
        drop(keys);
        0
    });
    assert!(found == 0 && peak >= KEYS * 8, "the allocator counts");
    let keys = digests(filter.hasher());
    let (found, peak) = memory::peak_of(|| {
        keys.iter().filter(|&&key| packed.contains_digest(key).unwrap()).count()
    });
    assert_eq!(found as u64, KEYS);
    assert!(peak <= 512, "{peak} bytes at once; a piece has 128");
}

#[test]
fn what_cannot_be_read_piece_by_piece_is_refused() {
    let filter = plain();
    let open = |bytes: &[u8], memory| PackedBloom::open(bytes, Limits::memory(memory)).map(|_| ());
    let whole = filter.pack(Effort::Best).to_vec();
    assert!(open(&whole, 1 << 20).unwrap_err().to_string().contains("not cut into pieces"));
    assert!(matches!(open(&filter.encode().to_vec(), 1 << 20), Err(WireError::Value { .. })));
    let cut = filter.pack(in_pieces(4096, Effort::Best)).to_vec();
    assert!(matches!(open(&cut, 511), Err(WireError::Limit { field: "piece", need: 512, .. })));
    assert!(open(&cut, 512).is_ok());
    // Every changed byte is noticed; with valid checksums, nothing panics.
    for at in 0..cut.len() {
        let mut damaged = cut.clone();
        damaged[at] ^= 0x41;
        assert!(open(&damaged, 1 << 30).is_err(), "byte {at}");
        let Some(forged) = repair(&damaged) else { continue };
        if let Ok(packed) = PackedBloom::open(&forged, Limits::memory(1 << 20)) {
            for digest in digests(filter.hasher()).into_iter().take(20) {
                let _ = packed.contains_digest(digest);
            }
        }
    }
}
