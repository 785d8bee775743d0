//! Elias-Fano sets and sorted lists against a plain set; degenerate sets; hostile parts.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use tamis::internals::bits::Words;
use tamis::internals::compressed::elias_fano::{EliasFano, PositionsError, nth_one};
use tamis_report::papers::compressed::SortedList;

/// Builds both forms, looks up everything of interest, and rebuilds them from their parts.
fn check(universe: u64, plain: &BTreeSet<u64>) {
    let count = plain.len() as u64;
    let set = EliasFano::new(universe, count, plain.iter().copied()).unwrap();
    assert_eq!((set.len(), set.is_empty(), set.universe()), (count, count == 0, universe));
    assert!(set.iter().eq(plain.iter().copied()));
    assert_eq!(Some(set.footprint_bits()), EliasFano::planned_bits(universe, count));
    let neighbours =
        plain.iter().flat_map(|&at| [at.wrapping_sub(1), at, at + 1, at ^ 64, at ^ 1 << 40]);
    let asked: BTreeSet<u64> = neighbours.chain([0, universe / 2, universe, u64::MAX]).collect();
    for &position in &asked {
        assert_eq!(set.contains(position), plain.contains(&position), "{position}");
    }
    let (lows, fences) = (set.lows().clone(), set.fences().clone());
    assert_eq!(EliasFano::from_parts(universe, count, lows, fences), Ok(set));

    let list = SortedList::new(universe, count, plain.iter().copied());
    if universe > 1 << 57 {
        assert!(matches!(list, Err(PositionsError::Invalid(_))));
        assert_eq!(SortedList::planned_bits(universe, count), None);
        return;
    }
    let list = list.unwrap();
    assert_eq!((list.len(), list.is_empty(), list.universe()), (count, count == 0, universe));
    assert!(list.iter().eq(plain.iter().copied()));
    assert_eq!(Some(list.footprint_bits()), SortedList::planned_bits(universe, count));
    for &position in &asked {
        let (found, probes) = list.probe(position);
        assert_eq!(found, plain.contains(&position), "{position}");
        assert_eq!(found, list.contains(position));
        assert!(probes <= 9 + count.max(1).ilog2(), "{probes}");
    }
    let words = list.words().clone();
    assert_eq!(SortedList::from_words(universe, count, words), Ok(list));
}

#[test]
fn degenerate_sets() {
    for universe in [0, 1, 2, 63, 64, 65, 1000, 1 << 20, 1 << 57, 1 << 60, u64::MAX] {
        check(universe, &BTreeSet::new());
        if universe > 0 {
            check(universe, &BTreeSet::from([0]));
            check(universe, &BTreeSet::from([universe - 1]));
            check(universe, &BTreeSet::from([0, universe / 2, universe - 1]));
        }
    }
    // Full, all but one, the lower and the upper half.
    for universe in [1, 2, 3, 64, 513, 1024, 5000] {
        check(universe, &(0..universe).collect());
        check(universe, &(1..universe).collect());
        check(universe, &(0..universe / 2).collect());
        check(universe, &(universe / 2..universe).collect());
    }
    // All in one bucket, at either end of a huge universe; powers of two, the worst for
    // interpolation.
    check(1 << 60, &(0..3000).collect());
    check(1 << 60, &((1 << 60) - 3000..1 << 60).collect());
    check(1 << 57, &(0..57).map(|bit| 1 << bit).collect());
    check(1 << 50, &(0..3000).chain([(1 << 50) - 1]).collect());
}

#[test]
fn wrong_positions_are_refused() {
    let cases: [(u64, u64, &[u64]); 7] = [
        (10, 2, &[3, 3]),
        (10, 2, &[4, 3]),
        (10, 2, &[3, 10]),
        (10, 2, &[3]),
        (10, 2, &[3, 4, 5]),
        (2, 3, &[0, 1, 2]),
        (0, 1, &[0]),
    ];
    for (universe, count, positions) in cases {
        let set = EliasFano::new(universe, count, positions.iter().copied());
        assert!(matches!(set, Err(PositionsError::Invalid(_))), "{positions:?}");
        let list = SortedList::new(universe, count, positions.iter().copied());
        assert!(matches!(list, Err(PositionsError::Invalid(_))), "{positions:?}");
    }
    // Sizes that no memory holds are refused before anything is computed from them.
    for (universe, count) in [(u64::MAX, u64::MAX), (u64::MAX, 1 << 63), (1 << 62, 1 << 61)] {
        assert!(EliasFano::new(universe, count, []).is_err());
        assert!(SortedList::new(universe, count, []).is_err());
        assert!(EliasFano::from_parts(universe, count, words(&[]), words(&[])).is_err());
        assert!(SortedList::from_words(universe, count, words(&[])).is_err());
    }
}

fn words(content: &[u64]) -> Words {
    let mut words = Words::zeroed(content.len() as u64).unwrap();
    words.as_mut_slice().copy_from_slice(content);
    words
}

/// Checks that what was accepted is a set, in the only form that the set has.
fn accepted(set: &EliasFano) {
    let plain: BTreeSet<u64> = set.iter().collect();
    assert_eq!(plain.len() as u64, set.len());
    let again = EliasFano::new(set.universe(), set.len(), plain.iter().copied()).unwrap();
    assert_eq!(&again, set);
}

#[test]
fn every_flipped_bit() {
    let plain: Vec<u64> = (0..40).map(|index| index * index).collect();
    let set = EliasFano::new(1600, 40, plain.iter().copied()).unwrap();
    let mut kept = 0;
    for bit in 0..set.fences().len() * 64 {
        let mut fences = set.fences().clone();
        fences.as_mut_slice()[bit / 64] ^= 1 << (bit % 64);
        assert!(EliasFano::from_parts(1600, 40, set.lows().clone(), fences).is_err(), "{bit}");
    }
    for bit in 0..set.lows().len() * 64 {
        let mut lows = set.lows().clone();
        lows.as_mut_slice()[bit / 64] ^= 1 << (bit % 64);
        if let Ok(other) = EliasFano::from_parts(1600, 40, lows, set.fences().clone()) {
            accepted(&other);
            kept += 1;
        }
    }
    // A changed low bit mostly gives another set, which no check can tell from the first.
    assert!((1..set.lows().len() * 64).contains(&kept));
    // A moved fence keeps the number of fences: the set is another one, or refused.
    for (from, to) in (0..64).flat_map(|from| (0..64).map(move |to| (from, to))) {
        let mut fences = set.fences().clone();
        let word = &mut fences.as_mut_slice()[0];
        if *word >> from & 1 == 1 && *word >> to & 1 == 0 {
            *word ^= 1 << from | 1 << to;
            if let Ok(other) = EliasFano::from_parts(1600, 40, set.lows().clone(), fences) {
                accepted(&other);
            }
        }
    }
}

proptest! {
    #[test]
    fn sets_and_lists_hold_what_they_are_given(
        bits in 0..=62_u32,
        positions in btree_set(any::<u64>(), 0..3000),
    ) {
        let universe = 1 << bits;
        check(universe, &positions.iter().map(|position| position % universe).collect());
    }

    #[test]
    fn clustered_sets(
        starts in btree_set(0..1_u64 << 40, 1..8),
        len in 1..2000_u64,
    ) {
        check(1 << 41, &starts.iter().flat_map(|&start| start..start + len).collect());
    }

    #[test]
    fn hostile_parts(
        universe in prop_oneof![0..400_u64, any::<u64>()],
        count in prop_oneof![0..100_u64, any::<u64>()],
        lows in vec(prop_oneof![Just(0), any::<u64>()], 0..6),
        fences in vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], 0..6),
    ) {
        if let Ok(set) = EliasFano::from_parts(universe, count, words(&lows), words(&fences)) {
            accepted(&set);
        }
        if let Ok(list) = SortedList::from_words(universe, count, words(&lows)) {
            prop_assert_eq!(list.iter().collect::<BTreeSet<u64>>().len() as u64, list.len());
        }
    }

    #[test]
    fn hostile_parts_of_the_right_size(
        universe in 1..600_u64,
        share in 0..=64_u64,
        content in vec(any::<u64>(), 32),
        probe in any::<u64>(),
    ) {
        let count = universe * share / 64;
        let model = EliasFano::new(universe, count, 0..count).unwrap();
        // Fences that are nearly right: those of a set, with one word rotated.
        let mut lows = model.lows().clone();
        for (word, content) in lows.as_mut_slice().iter_mut().zip(&content) {
            *word = content & content >> 1;
        }
        let mut fences = model.fences().clone();
        if let Some(word) = fences.as_mut_slice().first_mut() {
            *word = word.rotate_left((probe % 3) as u32);
        }
        if let Ok(set) = EliasFano::from_parts(universe, count, lows, fences) {
            accepted(&set);
            set.contains(probe);
        }
    }

    #[test]
    fn set_bits_are_found_by_their_index(words in vec(any::<u64>(), 1..6)) {
        let is_set = |at: &usize| words[at / 64] >> (at % 64) & 1 == 1;
        let ones: Vec<usize> = (0..words.len() * 64).filter(is_set).collect();
        for (index, &at) in ones.iter().enumerate() {
            prop_assert_eq!(nth_one(&words, 0, index as u32), Some(at as u64));
        }
        prop_assert_eq!(nth_one(&words, 0, ones.len() as u32), None);
    }
}
