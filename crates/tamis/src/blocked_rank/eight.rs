//! Questions for eight keys at once, with AVX-512.
//!
//! [`block::find`] says what is right. Here each of the eight lanes of a vector does the same for
//! a key of its own, without branches.
#![allow(unsafe_code)] // Lanes read at addresses of their own; each block says why they are in bounds.

use core::arch::x86_64::{
    __m512i, __mmask8, _mm_cvtsi32_si128, _mm_set_epi64x, _mm512_add_epi64, _mm512_and_si512,
    _mm512_andnot_si512, _mm512_broadcast_i64x2, _mm512_cmpge_epu64_mask, _mm512_cmpgt_epu64_mask,
    _mm512_cmple_epu8_mask, _mm512_cmplt_epu64_mask, _mm512_loadu_si512, _mm512_lzcnt_epi64,
    _mm512_mask_add_epi64, _mm512_mask_blend_epi64, _mm512_mask_sub_epi64,
    _mm512_maskz_compress_epi64, _mm512_maskz_mov_epi64, _mm512_maskz_set1_epi8, _mm512_max_epu64,
    _mm512_min_epu64, _mm512_mul_epu32, _mm512_mullo_epi64, _mm512_or_si512, _mm512_popcnt_epi8,
    _mm512_popcnt_epi64, _mm512_sad_epu8, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_shuffle_epi8, _mm512_sll_epi64, _mm512_slli_epi64, _mm512_sllv_epi64, _mm512_srl_epi64,
    _mm512_srli_epi64, _mm512_srlv_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    _mm512_test_epi8_mask, _mm512_test_epi64_mask, _mm512_testn_epi64_mask, _mm512_xor_si512,
    _pdep_u64,
};

use super::block;
use super::line::{One, Portable, Two};
use super::machine::{Behind, fetch};
use super::place::{Cut, Place};
use super::shape::LEAST_WORDS;
use crate::bits::{self, prefetch};
use crate::digest::Digest;

/// The keys that are asked for at once: the words of a vector. (Frozen: it has eight.)
pub(super) const LANES: usize = 8;

/// How many digests have their lines fetched at once: twice as many as where keys are looked for
/// one by one, because these are done in half the time.
const AHEAD: usize = 2 * bits::AHEAD;

/// Whether the machine has the instructions.
#[cfg(feature = "std")]
pub(super) fn is_detected() -> bool {
    std::is_x86_feature_detected!("bmi2")
        && std::is_x86_feature_detected!("popcnt")
        && std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512cd")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512bitalg")
        && std::is_x86_feature_detected!("avx512vpopcntdq")
}

/// Whether digests of a table are looked for here: the numbers of blocks, and of the identities of
/// a block, must be below 2^32.
pub(super) fn takes(cut: &Cut) -> bool {
    (cut.blocks | cut.keys) >> 32 == 0
}

/// Functions with these instructions.
macro_rules! wide {
    ($($(#[$meta:meta])* fn $name:ident $(<const $lines:ident: usize>)? ($($arg:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {
        $($(#[$meta])*
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512bitalg,avx512vpopcntdq,bmi2,popcnt")]
        fn $name $(<const $lines: usize>)? ($($arg: $type),*) $(-> $result)? $body)*
    };
}

/// Where eight keys belong.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Places {
    /// The first bytes of their blocks.
    blocks: [u64; LANES],
    /// Their locations and fingerprints.
    rests: [u64; LANES],
}

/// Answers for digests from number `from` on, eight at once, in blocks of `LINES` lines, and adds
/// the numbers of those whose locations are behind to `behind`. Returns the number of the next
/// digest: fewer than eight are left, or `behind` is full. Lines are fetched ahead.
///
/// The table must be one that it [`takes`].
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512bitalg,avx512vpopcntdq,bmi2,popcnt"
)]
pub(super) fn find_many<const LINES: usize>(
    words: &[u64],
    cut: &Cut,
    digests: &[Digest],
    answers: &mut [bool],
    from: usize,
    behind: &mut Behind,
) -> usize {
    assert!(takes(cut));
    let mut ahead = [Places { blocks: [0; LANES], rests: [0; LANES] }; AHEAD / LANES];
    for (group, places) in ahead.iter_mut().enumerate() {
        let Some(first) = digests[from..].get(group * LANES..) else { break };
        match first.first_chunk() {
            Some(eight) => *places = fetch_eight::<LINES>(words, cut, eight),
            None => first.iter().for_each(|&digest| fetch(words, cut, digest)),
        }
    }
    let mut slot = 0;
    let places = |number: usize| {
        let places = ahead[slot];
        if let Some(later) = digests.get(number + AHEAD..) {
            match later.first_chunk() {
                Some(later) => ahead[slot] = fetch_eight::<LINES>(words, cut, later),
                None => later.iter().for_each(|&digest| fetch(words, cut, digest)),
            }
        }
        slot = (slot + 1) % (AHEAD / LANES);
        places
    };
    // SAFETY: a digest belongs to a block that there is. (Where there was no digest to fetch, a
    // slot has those of earlier ones.)
    unsafe { find_all::<LINES>(words, cut, answers, from, behind, places) }
}

/// Answers for places of any table, whose lines were fetched before, as [`find_many`] does.
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512bitalg,avx512vpopcntdq,bmi2,popcnt"
)]
pub(super) fn find_places<const LINES: usize>(
    words: &[u64],
    cut: &Cut,
    places: &[Place],
    answers: &mut [bool],
    behind: &mut Behind,
) -> usize {
    assert!(places.iter().all(|place| place.block < cut.blocks));
    let places = |number: usize| {
        let eight = places[number..].first_chunk::<LANES>().expect("as many as answers");
        Places {
            blocks: eight.map(|place| place.block * 64 * LINES as u64),
            rests: eight.map(|place| place.rest),
        }
    };
    // SAFETY: this was just looked at.
    unsafe { find_all::<LINES>(words, cut, answers, 0, behind, places) }
}

/// Answers for the lanes of `long`, whose runs are longer than a window.
#[cold]
fn answer_long<const LINES: usize>(
    words: &[u64],
    cut: &Cut,
    places: &Places,
    answers: &mut [bool; LANES],
    long: __mmask8,
) {
    for lane in (0..LANES).filter(|lane| long >> lane & 1 == 1) {
        let block = &words[places.blocks[lane] as usize / 8..][..8 * LINES];
        let cell = cut.cell(Place { block: 0, rest: places.rests[lane] });
        let found = match LINES {
            1 => block::find::<One<Portable>>(block, &cut.shape, cell),
            _ => block::find::<Two<Portable>>(block, &cut.shape, cell),
        };
        answers[lane] = found == Some(true);
    }
}

wide! {
    fn load(numbers: &[u64; LANES]) -> __m512i {
        // SAFETY: eight words are 64 bytes, and the load needs no alignment.
        unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
    }

    fn store(vector: __m512i) -> [u64; LANES] {
        let mut numbers = [0; LANES];
        // SAFETY: as in `load`.
        unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), vector) };
        numbers
    }

    fn splat(number: u64) -> __m512i {
        _mm512_set1_epi64(number as i64)
    }

    /// Where digests belong, as [`Cut::place`] says it.
    fn places_of<const LINES: usize>(cut: &Cut, digests: &[Digest; LANES]) -> Places {
        let digests = load(&digests.map(|digest| digest.0));
        let (blocks, keys) = (splat(cut.blocks), splat(cut.keys));
        // A product of 64 by 32 bits is two of 32.
        let low = _mm512_mul_epu32(digests, blocks);
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(digests), blocks);
        let high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(low));
        let rest = _mm512_srli_epi64::<32>(_mm512_mul_epu32(low, keys));
        let rest = _mm512_add_epi64(_mm512_mul_epu32(high, keys), rest);
        let rest = _mm512_srli_epi64::<32>(rest);
        let rest = _mm512_sll_epi64(rest, _mm_cvtsi32_si128(cut.shape.value.into()));
        let block = _mm512_mul_epu32(_mm512_srli_epi64::<32>(high), splat(64 * LINES as u64));
        Places { blocks: store(block), rests: store(rest) }
    }

    /// Starts fetching the blocks of digests.
    fn fetch_eight<const LINES: usize>(words: &[u64], cut: &Cut, digests: &[Digest; LANES]) -> Places {
        let places = places_of::<LINES>(cut, digests);
        for block in places.blocks {
            for line in 0..LINES {
                prefetch(words, (block as usize / 8) + line * LEAST_WORDS as usize);
            }
        }
        places
    }

    /// Adds the numbers from `first` on whose bits are set. (How many there are cannot be
    /// predicted.)
    fn push(behind: &mut Behind, first: usize, bits: __mmask8) {
        let lanes = _mm512_add_epi64(splat(first as u64), load(&[0, 1, 2, 3, 4, 5, 6, 7]));
        behind.push_some(store(_mm512_maskz_compress_epi64(bits, lanes)), bits.count_ones());
    }

    fn store_answers(answers: &mut [bool; LANES], here: __mmask8) {
        let ones = _pdep_u64(here.into(), 0x0101_0101_0101_0101);
        *answers = ones.to_le_bytes().map(|byte| byte == 1);
    }

    /// The sum of each byte and all below it in its word; it must be below 256.
    fn sums(bytes: __m512i) -> __m512i {
        let sums = _mm512_add_epi64(bytes, _mm512_slli_epi64::<8>(bytes));
        let sums = _mm512_add_epi64(sums, _mm512_slli_epi64::<16>(sums));
        _mm512_add_epi64(sums, _mm512_slli_epi64::<32>(sums))
    }

    /// The lowest byte of each word, in all its bytes.
    fn lowest(words: __m512i) -> __m512i {
        // Of the first and the second word of each 128 bits.
        let bytes = _mm_set_epi64x(0x0808_0808_0808_0808, 0);
        _mm512_shuffle_epi8(words, _mm512_broadcast_i64x2(bytes))
    }

    /// How many bytes of each word are at most the lowest byte of the word of `most`.
    fn at_most(bytes: __m512i, most: __m512i) -> __m512i {
        let small = _mm512_maskz_set1_epi8(_mm512_cmple_epu8_mask(bytes, lowest(most)), 1);
        _mm512_sad_epu8(small, _mm512_setzero_si512())
    }

    /// The numbers of set bits `ranks` of words; 64 or more if there are fewer.
    fn nth(words: __m512i, ranks: __m512i) -> __m512i {
        // The byte of that bit, and then the bit, as `block::nth` does it.
        let of_bytes = sums(_mm512_popcnt_epi8(words));
        let whole = _mm512_slli_epi64::<3>(at_most(of_bytes, ranks));
        let before = _mm512_srlv_epi64(_mm512_slli_epi64::<8>(of_bytes), whole);
        let left = _mm512_sub_epi64(ranks, before);
        let byte = lowest(_mm512_srlv_epi64(words, whole));
        let bits = _mm512_test_epi8_mask(byte, splat(0x8040_2010_0804_0201));
        let of_bits = sums(_mm512_maskz_set1_epi8(bits, 1));
        _mm512_add_epi64(whole, at_most(of_bits, left))
    }

    /// All bits below bit number `bits` of a word; all, if there are fewer.
    fn below(bits: __m512i) -> __m512i {
        _mm512_sub_epi64(_mm512_sllv_epi64(splat(1), bits), splat(1))
    }

    /// The number of bits up to the last one set.
    fn length(words: __m512i) -> __m512i {
        _mm512_sub_epi64(splat(64), _mm512_lzcnt_epi64(words))
    }
}

/// The words that begin `more` bytes after bytes `at`. (Eight loads are as quick as the
/// instruction for it, and quicker where several need the same addresses.)
///
/// # Safety
///
/// These must be bytes of `words`.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512bitalg,avx512vpopcntdq,bmi2,popcnt"
)]
unsafe fn gather(words: &[u64], at: &[u64; LANES], more: usize) -> __m512i {
    let start = words.as_ptr().cast::<u8>();
    load(&at.map(|at| {
        debug_assert!(at as usize + more + 8 <= 8 * words.len());
        // SAFETY: the caller says so.
        unsafe { start.add(at as usize + more).cast::<u64>().read_unaligned() }
    }))
}

/// Answers for places, eight at once, from number `from` on; `places` says where those from a
/// number on belong.
///
/// # Safety
///
/// `places` must name blocks of `cut`.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512bitalg,avx512vpopcntdq,bmi2,popcnt"
)]
unsafe fn find_all<const LINES: usize>(
    words: &[u64],
    cut: &Cut,
    answers: &mut [bool],
    from: usize,
    behind: &mut Behind,
    mut places: impl FnMut(usize) -> Places,
) -> usize {
    // There are all blocks that may be named, and every lane reads within its own.
    assert!(words.len() as u64 >= 8 * LINES as u64 * cut.blocks);
    let shape = &cut.shape;
    let mut number = from;
    while let Some(eight) = answers[number..].first_chunk_mut() {
        let places = places(number);
        let rest = load(&places.rests);
        let location = _mm512_srl_epi64(rest, _mm_cvtsi32_si128(shape.width as i32));
        let print = _mm512_and_si512(rest, splat(shape.mask));
        // SAFETY: as said above, here and below.
        let word = |number: usize| unsafe { gather(words, &places.blocks, 8 * number) };
        let ends = |line: usize| {
            let not_ends = splat(shape.not_ends[2 - LINES + line]);
            _mm512_andnot_si512(not_ends, word(7 * LINES + line))
        };

        let (occupied, bit) = (word(0), _mm512_sllv_epi64(splat(1), location));
        let mut rank = _mm512_popcnt_epi64(_mm512_and_si512(occupied, below(location)));
        let mut is_occupied = _mm512_test_epi64_mask(occupied, bit);
        let mut map = ends(0);
        let mut is_second = 0;
        let first_ends = map;
        if LINES == 2 {
            let (occupied, beyond) = (word(1), _mm512_sub_epi64(location, splat(64)));
            let is_beyond = _mm512_cmpge_epu64_mask(location, splat(64));
            let counted = _mm512_maskz_mov_epi64(is_beyond, below(beyond));
            let more = _mm512_popcnt_epi64(_mm512_and_si512(occupied, counted));
            rank = _mm512_add_epi64(rank, more);
            let bit = _mm512_sllv_epi64(splat(1), beyond);
            is_occupied |= _mm512_test_epi64_mask(occupied, bit);
            let ones = _mm512_popcnt_epi64(map);
            is_second = _mm512_cmpge_epu64_mask(rank, ones);
            rank = _mm512_mask_sub_epi64(rank, is_second, rank, ones);
            map = _mm512_mask_blend_epi64(is_second, map, ends(1));
        }
        let end = nth(map, rank);
        let is_here = _mm512_cmplt_epu64_mask(end, splat(64));
        // From the bit after the end before.
        let before = _mm512_and_si512(map, below(end));
        let mut start = length(before);
        let mut next = _mm512_add_epi64(end, splat(1));
        if LINES == 2 {
            let is_first_there = is_second & _mm512_testn_epi64_mask(before, before);
            start = _mm512_mask_add_epi64(start, is_second, start, splat(64));
            start = _mm512_mask_blend_epi64(is_first_there, start, length(first_ends));
            next = _mm512_mask_add_epi64(next, is_second, next, splat(64));
        }
        let unused = splat(64 * LINES as u64 - u64::from(shape.cells));
        start = _mm512_sub_epi64(_mm512_max_epu64(start, unused), unused);
        let len = _mm512_sub_epi64(_mm512_sub_epi64(next, unused), start);

        // The window of the run.
        let width = splat(shape.width.into());
        let at = _mm512_add_epi64(_mm512_mul_epu32(start, width), splat(shape.locations.into()));
        let byte = _mm512_min_epu64(_mm512_srli_epi64::<3>(at), splat(64 * LINES as u64 - 8));
        let offset = _mm512_sub_epi64(at, _mm512_slli_epi64::<3>(byte));
        let bytes = store(_mm512_add_epi64(load(&places.blocks), byte));
        // SAFETY: as above.
        let window = unsafe { gather(words, &bytes, 0) };
        let window = _mm512_srlv_epi64(window, offset);

        // As `Shape::equal` does it.
        let differs = _mm512_xor_si512(window, _mm512_mullo_epi64(print, splat(shape.ones)));
        let others = splat(shape.others_of_keys);
        let sum = _mm512_add_epi64(_mm512_and_si512(differs, others), others);
        let beyond = _mm512_sllv_epi64(splat(u64::MAX), _mm512_mul_epu32(len, width));
        let unequal = _mm512_or_si512(_mm512_or_si512(sum, differs), beyond);
        let tops = splat(shape.tops);
        let equal = _mm512_andnot_si512(unequal, tops);
        let mine = is_here & is_occupied;
        store_answers(eight, mine & _mm512_test_epi64_mask(equal, equal));
        let long = mine & _mm512_cmpgt_epu64_mask(len, splat(shape.lanes.into()));
        if long != 0 {
            answer_long::<LINES>(words, cut, &places, eight, long);
        }
        push(behind, number, is_occupied & !is_here);
        number += LANES;
        if behind.is_full() {
            break;
        }
    }
    number
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::params::Level;
    use super::*;

    #[test]
    fn eight_digests_have_the_places_of_each() {
        if !is_detected() {
            return;
        }
        for (blocks, locations, fingerprint, value) in
            [(1, 1, 1, 0), (u32::MAX, 64, 24, 0), (12_345, 62, 12, 4), (1 << 31, 1, 32, 8)]
        {
            let (blocks, block) = (u64::from(blocks), 512);
            let level = Level { block, blocks, locations, cells: 1, fingerprint, value };
            let cut = Cut::new(&level);
            assert!(takes(&cut));
            for seed in 0..1000 {
                let mut eight: [_; LANES] =
                    core::array::from_fn(|lane| Digest(Digest(seed).word(lane as u64)));
                eight[..4].copy_from_slice(&[0, 1, u64::MAX - 1, u64::MAX].map(Digest));
                // SAFETY: the instructions are there.
                let places = unsafe { places_of::<1>(&cut, &eight) };
                for (lane, digest) in eight.into_iter().enumerate() {
                    let place = cut.place(digest);
                    let mine = (places.blocks[lane], places.rests[lane]);
                    assert_eq!(mine, (64 * place.block, place.rest), "{level:?} {digest:?}");
                }
            }
        }
    }
}
