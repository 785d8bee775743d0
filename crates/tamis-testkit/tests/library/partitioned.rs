//! Partitioned filters: the fast choice of functions compared with the literal one, degenerate
//! sizes, threads, rates.

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use tamis::internals::partitioned::assign::Assigner;
use tamis::internals::partitioned::model;
use tamis::partitioned::{Family, Partition, PartitionedParams};
use tamis::{
    AnyFilter, AnyParams, Digest, Filter, Goal, Hasher, Kind, Label, Limits, PartitionedBloom,
    PlanError, SharedBytes, Size, Stored, WireError,
};
use tamis_report::keys::KeyStream;
use tamis_report::memory;
use tamis_report::papers::statistics::exact_interval;

fn digests(keys: u64) -> Vec<Digest> {
    KeyStream::new(5).members(Hasher::default(), 0..keys).collect()
}

/// All functions that a filter may have.
const FUNCTIONS: [(Partition, Family); 4] = [
    (Partition::Top, Family::Mixers),
    (Partition::Rs, Family::Mixers),
    (Partition::Top, Family::Crc),
    (Partition::Rs, Family::Crc),
];

/// The algorithm as it is printed: insert the group by every candidate, count the whole array,
/// remove the group; k times. Counts bits read and positions computed.
#[derive(Default)]
struct Literal {
    operations: u64,
}

impl Literal {
    fn assign(
        &mut self,
        array: &mut [bool],
        keys: &[Digest],
        params: &PartitionedParams,
    ) -> Vec<u32> {
        let (candidates, hashes) = (params.candidates(), params.hashes());
        let bits = array.len() as u64;
        let at = |key: Digest, j| params.family().position(key, j, bits) as usize;
        let positions: Vec<Vec<usize>> =
            (0..candidates).map(|j| keys.iter().map(|&key| at(key, j)).collect()).collect();
        let mut chosen: Vec<u32> = Vec::new();
        for _ in 0..hashes {
            let mut fills = Vec::new();
            for j in (0..candidates).filter(|j| !chosen.contains(j)) {
                let before: Vec<bool> = positions[j as usize].iter().map(|&at| array[at]).collect();
                positions[j as usize].iter().for_each(|&at| array[at] = true);
                fills.push((array.iter().filter(|&&bit| bit).count(), j));
                // Backwards is not needed: all keys of one place saw the same bit before.
                for (&at, before) in positions[j as usize].iter().zip(before) {
                    array[at] = before;
                }
                self.operations += array.len() as u64 + 2 * keys.len() as u64;
            }
            let (_, best) = *fills.iter().min().expect("a candidate is left");
            positions[best as usize].iter().for_each(|&at| array[at] = true);
            chosen.push(best);
        }
        chosen
    }
}

/// Runs both algorithms on all groups, and returns what each has cost.
fn compare(params: PartitionedParams, keys: &[Digest]) -> (u64, u64) {
    let bits = params.bits();
    let (mut literal, mut assigner) = (Literal::default(), Assigner::default());
    let positions = Cell::new(0);
    let mut array = vec![false; bits as usize];
    let mut words = vec![0; bits.div_ceil(64) as usize];
    let mut sorted = keys.to_vec();
    sorted.sort_unstable_by_key(|&key| (params.group(key), key));
    for keys in sorted.chunk_by(|a, b| params.group(*a) == params.group(*b)) {
        let expected = literal.assign(&mut array, keys, &params);
        let candidate = |key, candidate| {
            positions.set(positions.get() + 1);
            params.family().position(key, candidate, bits)
        };
        let (candidates, hashes) = (params.candidates(), params.hashes());
        let chosen = assigner.assign(&mut words, keys, candidates, hashes, candidate);
        assert_eq!(chosen, expected, "{params:?}, a group of {}", keys.len());
        assert!(
            array
                .iter()
                .enumerate()
                .all(|(at, &bit)| bit == (words[at / 64] >> (at % 64) & 1 == 1))
        );
    }
    (literal.operations, positions.get())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_quick_choice_is_the_literal_one(
        bits in 1..2000_u64,
        groups in 1..12_u64,
        candidates in 1..80_u32,
        hashes in 1..8_u32,
        keys in proptest::collection::vec(any::<u64>(), 0..80),
        repeated in 0..4_usize,
        functions in 0..4_usize,
    ) {
        let mut keys: Vec<Digest> = keys.into_iter().map(Digest).collect();
        keys.extend_from_within(..repeated.min(keys.len()));
        let (partition, family) = FUNCTIONS[functions];
        let bits = if family == Family::Crc { 2 * bits + 1 } else { bits };
        let params = PartitionedParams::new(bits, 1, groups, candidates, hashes.min(candidates));
        let params = params.unwrap().with_functions(partition, family).unwrap();
        compare(params, &keys);
        let filter = PartitionedBloom::build(params, Hasher::default(), &keys).unwrap();
        prop_assert!(keys.iter().all(|&key| filter.contains_digest(key)));
    }
}

#[test]
fn the_quick_choice_is_a_hundred_times_cheaper() {
    // The report's array; few candidates, because the literal algorithm takes seconds otherwise.
    for (keys, groups, candidates) in [(1000, 350, 60), (1000, 100, 60), (1000, 20, 200)] {
        let params = PartitionedParams::new(10_000, 1, groups, candidates, 6).unwrap();
        let (literal, quick) = compare(params, &digests(keys));
        println!("{groups} groups: {literal} operations against {quick}, {}", literal / quick);
        assert!(literal >= 100 * quick, "{groups} groups: {literal} and {quick}");
    }
}

/// Builds a filter from these keys, and checks everything that must hold.
fn check(params: PartitionedParams, keys: &[Digest]) -> PartitionedBloom {
    let label = Label::planned(Hasher::default(), keys.len() as u64);
    let filter = PartitionedBloom::build(params, label, keys).unwrap();
    // A copy is made by this thread alone, whose memory is counted.
    let before = memory::held();
    let copy = filter.clone();
    assert_eq!((memory::held() - before) as u64 * 8, copy.footprint());
    assert_eq!(copy.footprint(), filter.footprint());
    assert_eq!(filter.keys(), keys.len() as u64);
    filter.validate().unwrap();
    assert!(keys.iter().all(|&key| filter.contains_digest(key)));
    let mut answers = vec![false; keys.len()];
    filter.contains_many(keys, &mut answers);
    assert!(answers.into_iter().all(|answer| answer));
    // The functions of a group are different candidates; a group without keys has none, where that
    // can be told.
    for group in 0..params.groups() {
        let mut functions: Vec<u32> = filter.functions(group).collect();
        functions.sort_unstable();
        functions.dedup();
        let used = keys.iter().any(|&key| params.group(key) == group);
        let expected = if used || params.width() == 0 { params.hashes() } else { 0 };
        assert_eq!(functions.len() as u32, expected);
        assert!(functions.iter().all(|&function| function < params.candidates()));
    }
    let bytes = filter.encode().to_vec();
    assert_eq!(filter.encoded_len(), bytes.len() as u64);
    assert_eq!(PartitionedBloom::decode(&bytes, Limits::default()).unwrap(), filter);
    let shared: SharedBytes = Arc::new(bytes.clone());
    let opened = PartitionedBloom::open(&shared).unwrap();
    assert_eq!((opened.footprint(), &opened), (0, &filter));
    for effort in [tamis::Effort::Fast, tamis::Effort::Best] {
        let packed = filter.pack(effort).to_vec();
        let unpacked = PartitionedBloom::decode(&packed, Limits::default()).unwrap();
        assert_eq!(unpacked, filter);
        assert_eq!(unpacked.encode().to_vec(), bytes);
    }
    let mut cleared = filter.clone();
    cleared.clear();
    assert_eq!(cleared, PartitionedBloom::new(params, label).unwrap());
    assert!(cleared.rate() == 0.0 && !keys.iter().any(|&key| cleared.contains_digest(key)));
    filter
}

#[test]
fn built_filters_keep_the_laws() {
    let shapes = [
        (1, 1, 1, 1, 1),
        (1, 1, 3, 5, 1),
        (64, 1, 1, 64, 64),
        (100, 1, 7, 2, 1),
        (100, 1, 7, 2, 2),
        (10_007, 1, 40, 100, 6),
        (10_007, 1, 4000, 16, 3),
        (64 * 160, 4, 40, 33, 6),
        (64 * 15, 5, 40, 33, 6),
        (64 * 3, 3, 3, 9, 2),
    ];
    for (bits, segments, groups, candidates, hashes) in shapes {
        let params = PartitionedParams::new(bits, segments, groups, candidates, hashes).unwrap();
        let all = FUNCTIONS.map(|(partition, family)| params.with_functions(partition, family));
        // The CRC family refuses powers of two and multiples of large ones.
        let segment = bits / segments;
        let all_go = !segment.is_power_of_two() && segment % 128 > 0;
        assert_eq!(all.iter().filter(|params| params.is_ok()).count(), if all_go { 4 } else { 2 });
        for params in all.into_iter().flatten() {
            keeps_the_laws(params);
        }
    }
}

fn keeps_the_laws(params: PartitionedParams) {
    for keys in [0, 1, 2, 37, 1000] {
        let filter = check(params, &digests(keys));
        assert_eq!(filter.rate() == 0.0, keys == 0, "{params:?} {keys}");
    }
    // Keys that come twice change nothing but their number.
    let keys = digests(300);
    let twice: Vec<Digest> = keys.iter().chain(&keys).copied().collect();
    let (once, twice) = (check(params, &keys), check(params, &twice));
    assert_eq!(once.content_id(), twice.content_id());
    assert_eq!((once.keys(), twice.keys()), (300, 600));
}

#[test]
fn absent_keys_of_empty_groups_are_refused_without_a_look_at_the_array() {
    let params = PartitionedParams::new(300, 1, 2000, 8, 2).unwrap();
    let filter = check(params, &digests(1000));
    let absent: Vec<Digest> =
        KeyStream::new(5).absent_keys(Hasher::default(), 0..200_000).collect();
    let empty = |digest: &Digest| filter.functions(params.group(*digest)).next().is_none();
    let refused = absent.iter().filter(|digest| empty(digest));
    assert!(refused.clone().all(|&digest| !filter.contains_digest(digest)));
    // One line of choices, sometimes two.
    assert!(refused.clone().all(|&digest| (1..=2).contains(&filter.blocks_to_contain(digest))));
    let (share, expected) = (refused.count() as f64 / 2e5, (1.0_f64 - 1.0 / 2000.0).powi(1000));
    assert!((share - expected).abs() < 0.03, "{share} {expected}");
    // Without the marks the rate would be more than twice as high.
    assert!(filter.rate() < 0.45 * filter.fill().powi(2));
    let passed = absent.iter().filter(|&&digest| filter.contains_digest(digest)).count() as u64;
    let (low, high) = exact_interval(passed, 200_000, 0.999);
    assert!((low..=high).contains(&filter.rate()), "{low} {high} {}", filter.rate());
}

#[test]
fn threads_make_no_difference() {
    let params = PartitionedParams::new(64 * 320, 5, 50, 64, 5).unwrap();
    let keys = digests(2000);
    let filter = check(params, &keys);
    // Segment after segment and group after group, by hand.
    let mut words = vec![0; 320];
    for segment in 0..5 {
        let array = &mut words[segment as usize * 64..][..64];
        for group in segment * 10..(segment + 1) * 10 {
            let mut members = keys.clone();
            members.retain(|&key| params.group(key) == group);
            let candidate =
                |key, candidate| Family::Mixers.position(key, candidate, params.segment_bits());
            let mut assigner = Assigner::default();
            let mut chosen = assigner.assign(array, &members, 64, 5, candidate);
            chosen.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(filter.functions(group).collect::<Vec<_>>(), chosen);
        }
    }
    assert_eq!(filter.bits().as_slice(), words);
}

#[test]
fn choices_that_nobody_made_are_refused() {
    let params = PartitionedParams::new(64, 1, 1, 6, 3).unwrap();
    let filter = check(params, &digests(4));
    let bytes = filter.encode().to_vec();
    // The choices are the last section, a word: three fields of three bits.
    let mut refused = 0;
    for choices in 0..512_u64 {
        let mut forged = bytes.clone();
        let at = forged.len() - 8;
        forged[at..].copy_from_slice(&choices.to_le_bytes());
        let forged = tamis_testkit::hostile::repair(&forged).unwrap();
        let fields = [0, 3, 6].map(|shift| choices >> shift & 7);
        let falling = fields[0] < 6 && fields[0] > fields[1] && fields[1] > fields[2];
        match PartitionedBloom::decode(&forged, Limits::default()) {
            Ok(_) => assert!(falling || choices == 0),
            Err(WireError::Content(_)) => {
                assert!(!falling && choices != 0);
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    // Of the triples below six, 20 are in falling order.
    assert_eq!(refused, 512 - 21);
}

#[test]
fn params_out_of_range_are_refused() {
    let field = |bits, segments, groups, candidates, hashes| {
        PartitionedParams::new(bits, segments, groups, candidates, hashes).unwrap_err().name
    };
    assert_eq!(field(0, 1, 1, 1, 1), "bits");
    assert_eq!(field((1 << 48) + 1, 1, 1, 1, 1), "bits");
    assert_eq!(field(1, 1, 0, 1, 1), "groups");
    assert_eq!(field(1, 0, 1, 1, 1), "segments");
    assert_eq!(field(128, 2, 3, 1, 1), "segments");
    assert_eq!(field(130, 2, 2, 1, 1), "segments");
    assert_eq!(field(1, 1, 1, 0, 1), "candidates");
    assert_eq!(field(1, 1, 1, 5, 6), "hashes");
    assert_eq!(field(1, 1, 1, 100, 65), "hashes");
}

/// A hundred thousand keys in 10 bits each, all memory included: at most half the rate of a plain
/// filter, with params that the search finds.
#[test]
fn half_the_rate_of_a_plain_filter_at_ten_bits_in_all() {
    const KEYS: u64 = 100_000;
    const QUERIES: u64 = 4_000_000;
    let goal = Goal::sized(KEYS, Size::BitsPerKey(10.0));
    let plain = AnyParams::plan(Kind::Bloom, &goal).unwrap().predict(KEYS).rate;
    assert!((plain - 0.0082).abs() < 5e-5, "{plain}");
    let params = AnyParams::plan(Kind::Partitioned, &goal).unwrap();
    let predicted = params.predict(KEYS);
    let hasher = Hasher::default();
    let stream = KeyStream::new(2);
    let keys: Vec<Digest> = stream.members(hasher, 0..KEYS).collect();
    let filter = params.build_from(Label::planned(hasher, KEYS), &keys).unwrap();
    assert!(keys.iter().all(|&key| filter.contains_digest(key)));
    let held = filter.footprint() as f64 / KEYS as f64;
    // The last line is held as a whole.
    assert!(held <= 10.0 + 512.0 / KEYS as f64, "{held} bits per key");
    assert_eq!(held, predicted.bits_per_key);
    let passed =
        stream.absent_keys(hasher, 0..QUERIES).filter(|&key| filter.contains_digest(key)).count();
    let (low, high) = exact_interval(passed as u64, QUERIES, 0.999);
    println!(
        "{params:?}: predicted {:e}, of the fill {:e}, measured {low:e} to {high:e}, plain {plain:e}",
        predicted.rate,
        filter.rate()
    );
    assert!(high <= plain / 2.0);
    assert!((low..=high).contains(&filter.rate()));
    assert!((predicted.rate / filter.rate() - 1.0).abs() < 0.01);
}

/// Predicted fills beside measured ones, for the sizes of groups and numbers of candidates that
/// plans have.
#[test]
fn the_model_keeps_to_half_a_percent_of_the_fill() {
    let shapes = [
        (131_072, 1, 320, 1024, 8, 16_000),
        (131_072, 1, 160, 256, 8, 16_000),
        (131_072, 1, 400, 4, 3, 30_000),
        (262_144, 2, 320, 64, 10, 20_000),
        (40_000, 1, 100, 512, 7, 5_000),
        (100_000, 1, 1_000, 16, 1, 50_000),
    ];
    for (bits, segments, groups, candidates, hashes, keys) in shapes {
        let params = PartitionedParams::new(bits, segments, groups, candidates, hashes).unwrap();
        let keys = digests(keys);
        let filter = PartitionedBloom::build(params, Hasher::default(), &keys).unwrap();
        let expected = model::expected_fill(&params, keys.len() as u64);
        println!("{params:?}: predicted {expected}, measured {}", filter.fill());
        assert!((expected / filter.fill() - 1.0).abs() < 0.005, "{params:?}");
    }
}

/// With far too many keys the model still predicts the fill, and no plan promises what the filter
/// cannot keep.
#[test]
fn fills_of_overfull_filters_are_predicted() {
    let shapes = [
        (1000, 100, 8, 4, 5000),
        (1000, 3876, 8, 4, 200_000),
        (10_000, 1000, 64, 3, 30_000),
        (10_000, 1000, 64, 3, 200_000),
        (15, 3876, 2, 1, 200_000),
    ];
    for (bits, groups, candidates, hashes, keys) in shapes {
        let params = PartitionedParams::new(bits, 1, groups, candidates, hashes).unwrap();
        let filter = PartitionedBloom::build(params, Hasher::default(), &digests(keys)).unwrap();
        let expected = model::expected_fill(&params, keys);
        println!("{params:?}: predicted {expected}, measured {}", filter.fill());
        assert!((expected / filter.fill() - 1.0).abs() < 0.005, "{params:?}");
    }
    let goal = Goal::rate(1_000_000, 0.01).params([("bits", 1000)]);
    assert!(AnyParams::plan(Kind::Partitioned, &goal).is_err());
}

#[test]
fn a_single_group_without_keys_is_predicted() {
    let params = PartitionedParams::new(64, 1, 1, 4, 2).unwrap();
    let filter = PartitionedBloom::build(params, Hasher::default(), &[]).unwrap();
    let predicted = model::predict(&params, 0);
    assert_eq!((predicted.rate, filter.rate()), (0.0, 0.0));
    assert_eq!(predicted.blocks_per_miss, 1.0);
}

/// Groups without choices take no bytes, so that a short file may claim any number of them.
#[test]
fn groups_that_are_not_stored_take_no_time() {
    let params = PartitionedParams::new(64, 1, 1 << 40, 3, 3).unwrap();
    let filter = PartitionedBloom::build(params, Hasher::default(), &digests(5)).unwrap();
    let fill = filter.bits().ones() as f64 / 64.0;
    assert!((filter.rate() / fill.powi(3) - 1.0).abs() < 1e-9);
}

#[test]
fn fixed_params_are_kept() {
    let plan = |size: Size, fixed: &[(&str, u64)]| {
        let goal = Goal::sized(20_000, size).params(fixed.iter().copied());
        AnyParams::plan(Kind::Partitioned, &goal)
    };
    let rate = Size::Rate(0.01);
    for (name, value) in
        [("bits", 190_000), ("segments", 2), ("groups", 100), ("candidates", 100), ("hashes", 5)]
    {
        for size in [rate, Size::BitsPerKey(10.0), Size::Memory(25_600)] {
            let params = plan(size, &[(name, value)]).unwrap();
            assert!(params.named().contains(&(name, value)), "{params:?}");
            let predicted = params.predict(20_000);
            match size {
                Size::Rate(rate) => assert!(predicted.rate <= rate),
                _ => assert!(predicted.bits_per_key <= 10.24, "{params:?}"),
            }
        }
    }
    let all = [("bits", 1000), ("groups", 7), ("candidates", 64), ("hashes", 3)];
    let params = plan(rate, &all).unwrap();
    assert_eq!(params.named()[1], ("segments", 1));
    let refusal = |size, fixed: &[(&str, u64)]| plan(size, fixed).unwrap_err().to_string();
    assert!(refusal(rate, &[("bits", 20_000)]).starts_with("partitioned: rate 0.01 cannot"));
    assert!(refusal(rate, &[("bits", 0)]).starts_with("param bits must be "));
    assert!(refusal(rate, &[("hashes", 65)]).starts_with("param hashes must be "));
    assert!(
        refusal(rate, &[("candidates", 4), ("hashes", 5)]).starts_with("param hashes must be ")
    );
    assert!(refusal(Size::BitsPerKey(5.0), &[("bits", 190_000)]).contains("at most"));
    assert!(refusal(rate, &[("segments", 0)]).starts_with("param segments must be "));
    assert!(
        refusal(rate, &[("segments", 7), ("groups", 10)]).starts_with("param segments must be ")
    );
    assert!(
        refusal(Size::Rate(1e-30), &[]).ends_with("the nearest is 1.1e-15 (digests have 64 bits)")
    );
    assert!(refusal(rate, &[("blocks", 5)]).contains("no param blocks"));
    // For this many keys there is no time to try candidates: the nearest rate is that of a plain
    // filter.
    let beyond = AnyParams::plan(Kind::Partitioned, &Goal::rate(10_000_000_000, 1e-30));
    let plain = AnyParams::plan(Kind::Bloom, &Goal::rate(10_000_000_000, 1e-30));
    let nearest = |refused: Result<AnyParams, PlanError>| match refused {
        Err(PlanError::Unreachable { nearest, .. }) => nearest,
        other => panic!("{other:?}"),
    };
    assert_eq!(nearest(beyond), nearest(plain));
    // If candidates are fixed, building may take as long as it takes.
    let many = vec![("candidates".to_string(), 16)];
    let goal = Goal::rate(10_000_000_000, 0.01).params(many);
    assert!(AnyParams::plan(Kind::Partitioned, &goal).unwrap().predict(goal.keys).rate <= 0.01);
    assert!(
        refusal(Size::BitsPerKey(2.0), &[("groups", 20_000), ("candidates", 64)])
            .contains("too few")
    );
}

#[test]
fn no_functions_set_no_bits() {
    let mut words = [0; 4];
    let chosen = Assigner::default().assign(&mut words, &[1_u64, 2, 3], 100, 0, |key, _| key);
    assert!(chosen.is_empty() && words == [0; 4]);
}

#[test]
fn built_once_is_said_where_something_else_is_asked() {
    let goal = Goal::rate(500, 0.01);
    let params = AnyParams::plan(Kind::Partitioned, &goal).unwrap();
    let mut filter: AnyFilter = params.build_from(Hasher::default(), &digests(500)).unwrap();
    let other = filter.clone();
    assert!(filter.as_insert().is_none() && filter.as_remove().is_none());
    assert!(filter.as_count().is_none());
    assert!(filter.merge(&other).unwrap_err().to_string().contains("built once"));
    let delta = tamis::Delta::between(&filter, &other).unwrap_err().to_string();
    assert!(delta.starts_with("partitioned filters are built once"), "{delta}");
}
