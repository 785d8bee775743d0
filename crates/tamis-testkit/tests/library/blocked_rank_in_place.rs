//! The blocks of all levels of a blocked rank-indexed filter, used where they lie in a file.

use std::sync::Arc;

use proptest::prelude::*;
use tamis::blocked_rank::BlockedRankParams;
use tamis::wire::{Encoding, Frame};
use tamis::{
    AnyFilter, BlockedRank, Count, Delta, Digest, Effort, Filter, Goal, Hasher, Insert, Label,
    Limits, Params, Remove, SharedBytes, Stored,
};
use tamis_report::keys::KeyStream;
use tamis_testkit::{hostile, laws};

fn members(keys: u64) -> Vec<Digest> {
    KeyStream::new(5).members(Hasher::default(), 0..keys).collect()
}

fn filled(params: BlockedRankParams, digests: &[Digest]) -> BlockedRank {
    let label = Label::planned(Hasher::default(), params.capacity());
    let mut filter = BlockedRank::new(params, label).unwrap();
    filter.insert_many(digests).unwrap();
    filter
}

/// A filter that is planned for `keys` keys, and holds as many.
fn planned(keys: u64, rate: f64) -> BlockedRank {
    filled(BlockedRank::plan(&Goal::rate(keys, rate)).unwrap(), &members(keys))
}

fn open(bytes: &[u8]) -> Result<BlockedRank, tamis::WireError> {
    let shared: SharedBytes = Arc::new(bytes.to_vec());
    BlockedRank::open(&shared)
}

/// Role, offset and length of every section.
fn sections(bytes: &[u8]) -> Vec<(u8, usize, usize)> {
    let mut source = bytes;
    let frame = Frame::read(&mut source, Limits::NONE).unwrap();
    let place = |it: &tamis::wire::Section| (it.role, it.offset as usize, it.stored as usize);
    frame.header().sections.iter().map(place).collect()
}

fn roles(bytes: &[u8]) -> Vec<u8> {
    sections(bytes).into_iter().map(|(role, ..)| role).collect()
}

/// Checks that both ways of reading give the same filter, which gives the same bytes again.
fn check_round_trip(filter: &BlockedRank) {
    filter.validate().unwrap();
    let bytes = filter.encode().to_vec();
    let copies = [BlockedRank::decode(&bytes, Limits::default()), open(&bytes)].map(Result::unwrap);
    for copy in &copies {
        copy.validate().unwrap();
        assert_eq!(copy, filter);
        assert_eq!(copy.encode().to_vec(), bytes);
    }
    // (In the filter itself runs may be behind that would fit into their blocks.)
    let [one, other] = copies.map(|copy| (copy.used(), copy.overflow()));
    assert_eq!(one, other);
}

/// With all levels; empty, half full and full.
#[test]
fn large_filters_are_used_where_they_lie() {
    for (keys, rate) in [(3_200_000_u64, 0.003), (2_400_000, 0.0002)] {
        let params = BlockedRank::plan(&Goal::rate(keys, rate)).unwrap();
        let digests = members(keys);
        for share in [0, keys / 2, keys] {
            let filter = filled(params, &digests[..share as usize]);
            let bytes = filter.encode().to_vec();
            assert_eq!(roles(&bytes)[..3], [0, 3, 4]);
            // The predicted bytes are those that are written, whatever the filter holds, but for
            // a few entries of the list.
            let predicted = BlockedRank::predict(&params, share).wire_bits_per_key;
            let wrong = predicted * share.max(1) as f64 / 8.0 - bytes.len() as f64;
            assert!(wrong.abs() < 512.0, "{wrong}");
            let opened = open(&bytes).unwrap();
            assert!(opened.footprint() < 8 * 1024, "{}", opened.footprint());
            let answers = |filter: &BlockedRank| {
                let mut answers = vec![false; digests.len()];
                filter.contains_many(&digests, &mut answers);
                answers
            };
            assert!(answers(&opened) == answers(&filter));
            assert_eq!(opened, filter);
            opened.validate().unwrap();
        }
    }
}

/// A filter that was opened in place does all that one in memory does, and does not change the
/// bytes.
#[test]
fn what_is_opened_in_place_can_be_changed() {
    let (keys, digests) = (60_000, members(70_000));
    let params = BlockedRank::plan(&Goal::rate(keys, 0.003)).unwrap();
    let whole = filled(params, &digests[..keys as usize]);
    let bytes: SharedBytes = Arc::new(whole.encode().to_vec());
    let open = || BlockedRank::open(&bytes).unwrap();
    let mut changed = open();
    changed.insert_many(&digests[keys as usize..]).unwrap();
    changed.validate().unwrap();
    assert_eq!(changed.content_id(), filled(params, &digests).content_id());
    assert_eq!(changed.remove_many(&digests), 70_000);
    assert_eq!(changed.used(), 0);
    let mut grown = open();
    grown.grow().unwrap();
    grown.validate().unwrap();
    assert_eq!(grown.content_id(), whole.content_id());
    let (mut left, right) = (filled(params, &digests[keys as usize..]), open());
    left.merge(&right).unwrap();
    left.validate().unwrap();
    assert_eq!(left.content_id(), filled(params, &digests).content_id());
    let packed = open().pack(Effort::Best).to_vec();
    assert_eq!(BlockedRank::decode(&packed, Limits::default()).unwrap(), whole);
    let new = AnyFilter::BlockedRank(filled(params, &digests[5000..keys as usize]));
    let mut base = AnyFilter::BlockedRank(open());
    Delta::between(&base, &new).unwrap().apply(&mut base).unwrap();
    base.validate().unwrap();
    assert_eq!(base, new);
    let mut cleared = open();
    cleared.clear();
    cleared.validate().unwrap();
    assert_eq!(cleared.content_id(), filled(params, &[]).content_id());
    assert_eq!(open(), whole);
}

/// Filters that have grown, that hold too much, with copies in the overflow, and with fingerprints
/// that cannot be made shorter.
#[test]
fn whatever_its_history_a_back_table_is_written_as_it_is() {
    let digests = members(60_000);
    let mut crowded = planned(20_000, 0.003);
    for _ in 0..100_000 {
        crowded.insert("often").unwrap();
    }
    check_round_trip(&crowded);
    assert_eq!(open(&crowded.encode().to_vec()).unwrap().count("often"), Some(100_000));
    for (blocks, locations, cells, fingerprint, keys, come) in [
        (460, 62, 50, 8, 20_000, 24_000),
        (460, 62, 50, 8, 20_000, 60_000),
        (30, 64, 49, 1, 1400, 20_000),
        (37, 43, 42, 10, 1900, 1900),
        (4, 1, 1, 16, 1000, 3000),
        (2, 64, 10, 2, 500, 3000),
    ] {
        let params =
            BlockedRankParams::new(512, blocks, locations, cells, fingerprint, keys).unwrap();
        let mut filter = filled(params, &digests[..come]);
        check_round_trip(&filter);
        filter.remove_many(&digests[..come / 2]);
        check_round_trip(&filter);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// What is read is what was written, whatever the filter holds. (The model test goes on with
    /// it.)
    #[test]
    fn filters_are_read_in_place(
        before in 0..900_usize,
        blocks in 3..=6_u64,
        locations in 1..=20_u32,
        cells in 1..=28_u32,
        fingerprint in 4..=16_u32,
    ) {
        let params = BlockedRankParams::new(512, blocks, locations, cells, fingerprint, 600).unwrap();
        let digests = members(before as u64);
        let mut filter = filled(params, &digests);
        check_round_trip(&filter);
        filter.remove_many(&digests);
        check_round_trip(&filter);
    }
}

#[test]
fn copies_of_bytes_keep_the_laws() {
    let params = BlockedRankParams::new(512, 40, 43, 42, 10, 1900).unwrap();
    let make = |hasher| {
        let empty = BlockedRank::new(params, hasher).unwrap();
        BlockedRank::decode(&empty.encode().to_vec(), Limits::default()).unwrap()
    };
    laws::check(make, 1700);
    laws::check_removal(make, 1700);
}

/// A sample with two levels behind the blocks, and a list.
fn sample() -> Vec<u8> {
    let mut filter = planned(150_000, 0.003);
    for key in 0..40_u64 {
        for _ in 0..60 {
            filter.insert(&key).unwrap();
        }
    }
    let bytes = filter.encode().to_vec();
    assert_eq!(roles(&bytes), [0, 3, 4, 1]);
    bytes
}

/// The place of a param in the header, and its value.
fn param(bytes: &[u8], name: &str) -> (usize, u64) {
    let number = BlockedRankParams::NAMES.iter().position(|&one| one == name).unwrap();
    let at = 48 + 8 * number;
    (at, u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
}

/// The bytes with one param changed, and valid checksums.
fn with_param(bytes: &[u8], name: &str, value: u64) -> Vec<u8> {
    let (at, _) = param(bytes, name);
    hostile::forge(bytes, |head| head[at..at + 8].copy_from_slice(&value.to_le_bytes()))
}

/// Every number of the layout is changed to an invalid one.
#[test]
fn a_layout_that_lies_is_refused_by_name() {
    let bytes = sample();
    let held = |name| param(&bytes, name).1;
    let refusal = |name: &str, value: u64| {
        let forged = with_param(&bytes, name, value);
        let said = hostile::decode(&forged).expect_err("a lie must be refused").to_string();
        assert!(open(&forged).is_err(), "{said}");
        said
    };
    for (name, value) in [
        ("second_blocks", 0),
        ("second_blocks", held("second_blocks") / 2),
        ("second_blocks", 1 << 40),
        ("second_locations", 0),
        ("second_locations", 129),
        ("second_block", 0),
        ("second_block", 1025),
        ("second_cells", 0),
        ("second_cells", u64::MAX),
        ("second_fingerprint", 7),
        ("second_fingerprint", 49),
        ("third_blocks", 0),
        ("third_blocks", held("third_blocks") / 2),
        ("third_locations", 0),
        ("third_locations", 1 << 20),
        ("third_cells", 1 << 20),
        ("third_fingerprint", held("second_fingerprint") - 1),
        ("third_fingerprint", 49),
        ("block", 0),
        ("block", 256),
        ("block", 513),
        ("block", 65536),
    ] {
        let said = refusal(name, value);
        let wanted = format!("param {name} must be ");
        assert!(said.starts_with(&wanted), "{name} as {value}: {said}");
    }
    let said = refusal("third_blocks", held("third_blocks") + 1);
    assert!(said.starts_with("section length"), "{said}");
}

/// The words of a file that is opened in place are not checked: blocks of all levels may be
/// anything.
#[test]
fn words_behind_the_blocks_may_lie_and_do_no_harm() {
    let bytes = sample();
    let digests = members(150_000);
    let places = sections(&bytes);
    let mut random = (0..).map(|step| Digest(77).word(step));
    let mut next = |below: usize| (random.next().unwrap() % below as u64) as usize;
    for round in 0..60 {
        let mut changed = bytes.clone();
        for &(role, offset, len) in &places {
            // Words of zeros and of ones make maps that are empty or full.
            let changes = match role {
                0 if round % 3 == 0 => 3000,
                3 | 4 => 50 * (1 + round * round),
                _ => 0,
            };
            for _ in 0..changes {
                let (at, run) = (offset + next(len), 1 + next(12));
                let end = (offset + len).min(at + run);
                match next(3) {
                    0 => changed[at..end].fill(0xff),
                    1 => changed[at..end].fill(0),
                    _ => changed[at] = next(256) as u8,
                }
            }
        }
        let mut filter = open(&changed).unwrap();
        let mut answers = vec![false; digests.len()];
        filter.contains_many(&digests, &mut answers);
        for &digest in &digests[..2000] {
            filter.contains_digest(digest);
            filter.count_digest(digest);
            filter.blocks_to_contain(digest);
            filter.blocks_to_insert(digest);
        }
        if round % 10 == 0 {
            let _ = filter.validate();
            filter.content_id();
            let _ = (filter.encode().len(), filter.pack(Effort::Fast).len(), filter.overflow());
            let _ = hostile::decode(&hostile::repair(&changed).unwrap());
        }
        filter.remove_many(&digests[..30_000]);
        let _ = filter.insert_many(&digests[..40_000]);
        if round % 20 == 0 {
            let _ = filter.grow();
        }
    }
}

/// Sections in another order, of another encoding, or missing.
#[test]
fn sections_that_do_not_belong_are_refused() {
    let bytes = planned(1_000_000, 0.003).encode().to_vec();
    let entry = |section: usize| 48 + 8 * 16 + 40 * section;
    let refusal = |at: usize, value: u8| {
        let forged = hostile::forge(&bytes, |head| head[at] = value);
        hostile::decode(&forged).expect_err("a lie must be refused").to_string()
    };
    assert!(refusal(entry(1), 1).starts_with("section role"));
    assert!(refusal(entry(2), 5).starts_with("section role"));
    assert!(refusal(entry(1) + 1, Encoding::Packed as u8).starts_with("section"));
    assert!(refusal(entry(2) + 1, Encoding::Packed as u8).starts_with("section"));
    // Values are bits of identities here, so that the list has none.
    let lists = sample();
    let &(_, start, _) = sections(&lists).last().unwrap();
    let mut forged = lists;
    forged[start + 8] = 1;
    let said = hostile::decode(&hostile::repair(&forged).unwrap()).unwrap_err().to_string();
    assert!(said.contains("the overflow is not in order"), "{said}");
    // The params have no second level, but the file has its blocks.
    let second = BlockedRankParams::NAMES.iter().filter(|name| name.contains('_'));
    let forged = second.fold(bytes, |bytes: Vec<u8>, name| with_param(&bytes, name, 0));
    let said = hostile::decode(&forged).unwrap_err().to_string();
    assert!(said.starts_with("section role"), "{said}");
}
