//! Instructions of x86-64 machines: AVX2 moves cells, and PDEP finds set bits by rank.
#![allow(unsafe_code)] // Special instructions are unsafe because a machine may lack them.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

#[cfg(feature = "std")]
use core::arch::x86_64::__cpuid;
use core::arch::x86_64::{
    __m256i, _mm_add_epi64, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_extract_epi32,
    _mm256_add_epi8, _mm256_add_epi64, _mm256_and_si256, _mm256_blend_epi32,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permute4x64_epi64, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_setr_epi8, _mm256_setr_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_sll_epi64, _mm256_sllv_epi64, _mm256_srl_epi64, _mm256_srli_epi16, _mm256_srlv_epi64,
    _mm256_storeu_si256, _mm256_sub_epi64, _mm256_subs_epu16, _mm256_xor_si256, _pdep_u64,
};

use super::line::{Instructions, Maps};

/// AVX2, POPCNT, LZCNT, BMI1 and BMI2. Only functions that have these instructions may use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quick;

/// Whether the machine has the instructions, and PDEP is quick.
#[cfg(feature = "std")]
pub(super) fn is_detected() -> bool {
    std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("popcnt")
        && std::is_x86_feature_detected!("lzcnt")
        && std::is_x86_feature_detected!("bmi1")
        && std::is_x86_feature_detected!("bmi2")
        && !has_slow_pdep()
}

/// Whether PDEP takes hundreds of cycles: on AMD's family 17h (Zen 1 and 2).
#[cfg(feature = "std")]
fn has_slow_pdep() -> bool {
    // SAFETY: every x86-64 machine has the instruction and these two leaves.
    #[allow(unused_unsafe)] // Newer compilers know that.
    let [vendor, version] = [0, 1].map(|leaf| unsafe { __cpuid(leaf) });
    let family = (version.eax >> 8 & 0xf) + (version.eax >> 20 & 0xff);
    vendor.ebx == u32::from_le_bytes(*b"Auth") && family == 0x17
}

impl Instructions for Quick {
    #[inline(always)]
    fn nth(word: u64, rank: u32) -> u64 {
        // SAFETY: only functions that have the instruction use this.
        unsafe { _pdep_u64(1 << rank, word) }
    }

    #[inline(always)]
    fn rank(words: &[[u64; 4]], bits: u32) -> u32 {
        // SAFETY: as in `nth`.
        unsafe { rank(words, bits) }
    }

    /// To the end, because where to stop cannot be predicted.
    #[inline(always)]
    fn select(words: &[[u64; 4]], rank: u32) -> (usize, u32) {
        use core::hint::select_unpredictable;
        let (mut found, mut before, mut ones) = (0, 0, 0);
        for (number, group) in (1..).zip(words) {
            ones += group.iter().map(|word| word.count_ones()).sum::<u32>();
            found = select_unpredictable(ones <= rank, number, found);
            before = select_unpredictable(ones <= rank, ones, before);
        }
        let Some(group) = words.get(found) else { return (4 * found, 0) };
        let (mut number, mut ones) = (4 * found, before);
        for word in &group[..3] {
            ones += word.count_ones();
            number += usize::from(ones <= rank);
            before = select_unpredictable(ones <= rank, ones, before);
        }
        (number, rank - before)
    }

    #[inline(always)]
    fn open(words: &mut [u64], cell: (u32, u32), print: u64, maps: Maps) {
        // SAFETY: as in `nth`.
        unsafe { open(words, cell, print, maps) }
    }

    #[inline(always)]
    fn close(words: &mut [u64], cell: (u32, u32), maps: Maps) {
        // SAFETY: as in `nth`.
        unsafe { close(words, cell, maps) }
    }
}

/// The first bits of the words of vector `number`.
#[inline]
#[target_feature(enable = "avx2")]
fn firsts(number: usize) -> __m256i {
    let at = 256 * number as i64;
    _mm256_setr_epi64x(at, at + 64, at + 128, at + 192)
}

/// The bits from bit `at` on of words that begin at the bits `firsts`.
#[inline]
#[target_feature(enable = "avx2")]
fn from(at: __m256i, firsts: __m256i) -> __m256i {
    // All are below 2^16, so this stops at zero in whole words, too.
    let offset = _mm256_subs_epu16(at, firsts);
    _mm256_sllv_epi64(_mm256_set1_epi64x(-1), offset)
}

/// Counts in all words, because where to stop cannot be predicted.
#[inline]
#[target_feature(enable = "avx2")]
fn rank(words: &[[u64; 4]], bits: u32) -> u32 {
    let bits = _mm256_set1_epi64x(bits.into());
    // The first bits after each word.
    let mut ends = _mm256_add_epi64(firsts(0), _mm256_set1_epi64x(64));
    let four = _mm256_set1_epi8(0xf);
    // The set bits of every number of four bits.
    let counts = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
    );
    let mut sums = _mm256_setzero_si256();
    for vector in words {
        // The bits of each word that do not count; a shift by more than 63 leaves nothing.
        let beyond = _mm256_subs_epu16(ends, bits);
        let counted = _mm256_srlv_epi64(_mm256_set1_epi64x(-1), beyond);
        let vector = _mm256_and_si256(load(vector), counted);
        ends = _mm256_add_epi64(ends, _mm256_set1_epi64x(256));
        let low = _mm256_and_si256(vector, four);
        let high = _mm256_and_si256(_mm256_srli_epi16::<4>(vector), four);
        let of_bytes =
            _mm256_add_epi8(_mm256_shuffle_epi8(counts, low), _mm256_shuffle_epi8(counts, high));
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(of_bytes, _mm256_setzero_si256()));
    }
    let sums = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    (_mm_cvtsi128_si32(sums) + _mm_extract_epi32::<2>(sums)) as u32
}

/// Four words of a block, without its ends.
#[inline]
#[target_feature(enable = "avx2")]
fn read(vectors: &[[u64; 4]], number: usize, maps: &Maps) -> __m256i {
    let vector = load(&vectors[number]);
    if number + 1 < vectors.len() {
        return vector;
    }
    let [before, last] = maps.others.map(|word| word as i64);
    _mm256_and_si256(vector, _mm256_setr_epi64x(-1, -1, before, last))
}

/// Writes four words of a block with its new maps.
#[inline]
#[target_feature(enable = "avx2")]
fn write(vectors: &mut [[u64; 4]], number: usize, vector: __m256i, maps: &Maps) {
    let mut vector = vector;
    if number == 0 {
        let [first, second] = maps.flipped.map(|word| word as i64);
        vector = _mm256_xor_si256(vector, _mm256_setr_epi64x(first, second, 0, 0));
    }
    if number + 1 == vectors.len() {
        let [before, last] = maps.ends.map(|word| word as i64);
        vector = _mm256_or_si256(vector, _mm256_setr_epi64x(0, 0, before, last));
    }
    store(&mut vectors[number], vector);
}

#[inline]
#[target_feature(enable = "avx2")]
fn open(words: &mut [u64], (at, width): (u32, u32), print: u64, maps: Maps) {
    let up = _mm_cvtsi32_si128(width as i32);
    let down = _mm_cvtsi32_si128(64 - width as i32);
    let print = _mm256_set1_epi64x(print as i64);
    let start = _mm256_set1_epi64x(at.into());
    let vectors = words.as_chunks_mut::<4>().0;
    // What moves of the vector before.
    let mut before = _mm256_setzero_si256();
    for i in 0..vectors.len() {
        let here = read(vectors, i, &maps);
        let firsts = firsts(i);
        let moves = _mm256_and_si256(here, from(start, firsts));
        // Each word's predecessor.
        let previous = _mm256_permute4x64_epi64::<0b10_01_00_11>(
            _mm256_blend_epi32::<0b1100_0000>(moves, before),
        );
        let moved = _mm256_or_si256(_mm256_sll_epi64(moves, up), _mm256_srl_epi64(previous, down));
        // A shift by more than 63, or by less than 0, leaves nothing.
        let new = _mm256_or_si256(
            _mm256_sllv_epi64(print, _mm256_sub_epi64(start, firsts)),
            _mm256_srlv_epi64(print, _mm256_sub_epi64(firsts, start)),
        );
        let kept = _mm256_xor_si256(here, moves);
        write(vectors, i, _mm256_or_si256(_mm256_or_si256(kept, moved), new), &maps);
        before = moves;
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn close(words: &mut [u64], (at, width): (u32, u32), maps: Maps) {
    let down = _mm_cvtsi32_si128(width as i32);
    let up = _mm_cvtsi32_si128(64 - width as i32);
    let start = _mm256_set1_epi64x(at.into());
    let vectors = words.as_chunks_mut::<4>().0;
    let mut next = read(vectors, 0, &maps);
    for i in 0..vectors.len() {
        let here = next;
        next = if i + 1 < vectors.len() {
            read(vectors, i + 1, &maps)
        } else {
            _mm256_setzero_si256()
        };
        // Each word's successor.
        let after = _mm256_permute4x64_epi64::<0b00_11_10_01>(_mm256_blend_epi32::<0b0000_0011>(
            here, next,
        ));
        let moved = _mm256_or_si256(_mm256_srl_epi64(here, down), _mm256_sll_epi64(after, up));
        let changed = _mm256_and_si256(_mm256_xor_si256(here, moved), from(start, firsts(i)));
        write(vectors, i, _mm256_xor_si256(here, changed), &maps);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[u64; 4]) -> __m256i {
    // SAFETY: four words are 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(words: &mut [u64; 4], vector: __m256i) {
    // SAFETY: as in `load`.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}
