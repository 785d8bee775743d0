//! Bit vectors, fields and streams of fields against plain vectors.

use std::sync::Arc;

use proptest::prelude::*;
use tamis::internals::bits::{
    BitReader, BitWriter, MAX_FIELD_WIDTH, Packed, SharedBytes, Words, field,
};

fn each_bit(words: &[u64]) -> Vec<bool> {
    (0..words.len() * 64).map(|at| words[at / 64] >> (at % 64) & 1 == 1).collect()
}

fn value(bits: &[bool]) -> u64 {
    bits.iter().rev().fold(0, |value, &bit| value << 1 | u64::from(bit))
}

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

    #[test]
    fn gaps_open_and_close(
        words in proptest::collection::vec(any::<u64>(), 6),
        at in 0..200_u64,
        room in 0..180_u64,
        width in 1..=64_u32,
        new in any::<u64>(),
    ) {
        let end = at + u64::from(width) + room.min(384 - at - u64::from(width));
        let mut changed = words.clone();
        let pushed = field::open(&mut changed, at, end, width, new);
        let mut plain = each_bit(&words);
        let out: Vec<bool> = plain.drain((end - u64::from(width)) as usize..end as usize).collect();
        let inserted = (0..width).map(|bit| new >> bit & 1 == 1);
        plain.splice(at as usize..at as usize, inserted);
        prop_assert_eq!(each_bit(&changed), plain);
        prop_assert_eq!(pushed, value(&out));
        let closed = field::close(&mut changed, at, end, width, pushed);
        prop_assert_eq!(closed, new & u64::MAX >> (64 - width));
        prop_assert_eq!(&changed, &words);
        prop_assert_eq!(field::ones(&words, at, end - at) as usize,
            each_bit(&words)[at as usize..end as usize].iter().filter(|&&bit| bit).count());
        field::clear(&mut changed, at, end - at);
        prop_assert_eq!(field::ones(&changed, at, end - at), 0);
        prop_assert_eq!(field::get(&changed, 0, 0), 0);
    }

    #[test]
    fn what_is_written_is_read(
        fields in proptest::collection::vec((any::<u64>(), 0..=64_u32), 0..60),
    ) {
        let mut writer = BitWriter::default();
        for &(value, width) in &fields {
            writer.put(value, width);
        }
        let bits: u64 = fields.iter().map(|&(_, width)| u64::from(width)).sum();
        let bytes: Vec<u8> = writer.finish();
        prop_assert_eq!(bytes.len() as u64, bits.div_ceil(8));
        let mut reader = BitReader::new(&bytes);
        for &(value, width) in &fields {
            let expected = if width == 0 { 0 } else { value & u64::MAX >> (64 - width) };
            prop_assert_eq!(reader.get(width), Some(expected));
        }
        prop_assert_eq!(reader.get(8), None);
        prop_assert!(reader.ends_here());
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
    assert!(words.clone().checked(75).is_some());
    assert!(words.clone().checked(74).is_none());
    assert!(words.clone().checked(64).is_none(), "too many words");
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

/// Large arrays ask for huge pages: where the system has them, the flags of their memory say so.
#[cfg(target_os = "linux")]
#[test]
fn large_words_ask_for_huge_pages() {
    let words = Words::zeroed(4 << 20).unwrap();
    // Beyond the first huge page that could be asked for.
    let address = words.as_slice()[words.len() / 2..].as_ptr() as usize;
    let memory = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut holds = false;
    for line in memory.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let end = |text: &str| usize::from_str_radix(text, 16).ok();
        if let Some((Some(from), Some(to))) = range.map(|(from, to)| (end(from), end(to))) {
            holds = (from..to).contains(&address);
        }
        if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| holds) {
            let advised = flags.split(' ').any(|flag| flag == "hg");
            let known = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
            assert!(advised || !known, "{flags}");
            return;
        }
    }
    panic!("no memory holds the words");
}

/// Arrays of several megabytes may lie on huge pages, which must make no difference.
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
