//! Bit vectors and packed fields against plain vectors.

use std::sync::Arc;

use proptest::prelude::*;
use tamis::internals::bits::{BitVec, MAX_FIELD_WIDTH, Packed, SharedBytes, Words};

proptest! {
    #[test]
    fn packed_fields_keep_what_they_are_given(
        width in 1..=MAX_FIELD_WIDTH,
        writes in proptest::collection::vec((0..200_u64, any::<u64>()), 0..400),
    ) {
        let mut packed = Packed::zeroed(200, width).unwrap();
        let mut plain = vec![0_u64; 200];
        for (index, value) in writes {
            packed.set(index, value);
            plain[index as usize] = value & packed.max_value();
        }
        prop_assert_eq!(packed.iter().collect::<Vec<_>>(), plain);
        let again = Packed::from_words(packed.words().clone(), 200, width);
        prop_assert_eq!(again, Some(packed));
    }
}

#[test]
fn words_are_line_aligned_and_refuse_the_impossible() {
    for len in [0, 1, 7, 8, 9, 1000] {
        let words = Words::zeroed(len).unwrap();
        assert_eq!(words.as_slice().len() as u64, len);
        assert_eq!(words.as_slice().as_ptr() as usize % 64, 0);
        assert_eq!(words.footprint(), len.div_ceil(8) * 512);
        assert_eq!(words.is_empty(), len == 0);
    }
    assert!(Words::zeroed(1 << 60).is_err());
    assert!(Words::zeroed(u64::MAX).is_err());
    assert!(Packed::zeroed(u64::MAX, 2).is_err());
}

#[test]
fn stray_bits_are_refused() {
    let mut words = Words::zeroed(2).unwrap();
    words.as_mut_slice()[1] = 1 << 10;
    assert!(BitVec::from_words(words.clone(), 75).is_some());
    assert!(BitVec::from_words(words.clone(), 74).is_none());
    assert!(BitVec::from_words(words.clone(), 64).is_none(), "too many words");
    assert!(Packed::from_words(words.clone(), 15, 5).is_some());
    assert!(Packed::from_words(words.clone(), 37, 2).is_none());
    assert!(Packed::from_words(words.clone(), 2, 0).is_none());
    assert!(Packed::from_words(words, 2, 58).is_none());
}

#[test]
fn shared_words_are_copied_by_the_first_write() {
    let mut source = Words::zeroed(16).unwrap();
    source.as_mut_slice()[5] = 42;
    let bytes: SharedBytes = Arc::new(source.as_le_bytes().into_owned());
    let mut shared = Words::shared(&bytes, 8, 13).expect("aligned");
    assert_eq!(shared.as_slice()[4], 42);
    assert_eq!(shared.footprint(), 0);
    shared.as_mut_slice()[4] = 7;
    assert_eq!(shared.as_slice()[4], 7);
    assert_eq!(shared.footprint(), 2 * 512);
    assert_eq!(Words::shared(&bytes, 8, 13).unwrap().as_slice()[4], 42);
    assert!(Words::shared(&bytes, 4, 1).is_none(), "not on a word");
    assert!(Words::shared(&bytes, 8, 16).is_none(), "beyond the end");
    assert!(Words::shared(&bytes, usize::MAX, 2).is_none(), "overflow");
}

/// Arrays of several megabytes may lie on huge pages: nobody can tell.
#[test]
fn large_words_are_zero_and_hold_what_is_written() {
    let mut words = Words::zeroed(1_000_003).unwrap();
    assert_eq!(words.footprint(), 1_000_003_u64.div_ceil(8) * 512);
    assert!(words.as_slice().iter().all(|&word| word == 0));
    for (index, word) in words.as_mut_slice().iter_mut().enumerate() {
        *word = index as u64;
    }
    assert!(words.as_slice().iter().copied().eq(0..1_000_003));
}
