//! Instructions of x86-64 machines: AVX2 moves cells, and PDEP finds set bits by rank.
#![allow(unsafe_code)] // Special instructions are unsafe because a machine may lack them.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

#[cfg(feature = "std")]
use core::arch::x86_64::__cpuid;
use core::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_and_si256, _mm256_andnot_si256, _mm256_blend_epi32,
    _mm256_loadu_si256, _mm256_or_si256, _mm256_permute4x64_epi64, _mm256_set1_epi64x,
    _mm256_setr_epi64x, _mm256_setzero_si256, _mm256_sll_epi64, _mm256_sllv_epi64,
    _mm256_srl_epi64, _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_subs_epu16,
    _pdep_u64,
};

use super::line::{Ends, Instructions};

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
    fn open(words: &mut [u64], cell: (u32, u32), print: u64, ends: Ends) {
        // SAFETY: as in `nth`.
        unsafe { open(words, cell, print, ends) }
    }

    #[inline(always)]
    fn close(words: &mut [u64], cell: (u32, u32), ends: Ends) {
        // SAFETY: as in `nth`.
        unsafe { close(words, cell, ends) }
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

/// The last four words of a block, with these ends.
#[inline]
#[target_feature(enable = "avx2")]
fn with_ends(vector: __m256i, ends: Ends) -> __m256i {
    let [before, last] = ends.words.map(|word| word as i64);
    _mm256_or_si256(without_ends(vector, ends), _mm256_setr_epi64x(0, 0, before, last))
}

#[inline]
#[target_feature(enable = "avx2")]
fn without_ends(vector: __m256i, ends: Ends) -> __m256i {
    let [before, last] = ends.others.map(|word| word as i64);
    _mm256_and_si256(vector, _mm256_setr_epi64x(-1, -1, before, last))
}

#[inline]
#[target_feature(enable = "avx2")]
fn open(words: &mut [u64], (at, width): (u32, u32), print: u64, ends: Ends) {
    let up = _mm_cvtsi32_si128(width as i32);
    let down = _mm_cvtsi32_si128(64 - width as i32);
    let print = _mm256_set1_epi64x(print as i64);
    let start = _mm256_set1_epi64x(at.into());
    let end = _mm256_set1_epi64x((at + width).into());
    let vectors = words.as_chunks_mut::<4>().0;
    let count = vectors.len();
    // From the last on, so that each still finds the one before it.
    let mut next = load(&vectors[count - 1]);
    for i in (0..count).rev() {
        let here = next;
        next = if i > 0 { load(&vectors[i - 1]) } else { _mm256_setzero_si256() };
        // Each word's predecessor.
        let before = _mm256_permute4x64_epi64::<0b10_01_00_11>(_mm256_blend_epi32::<0b1100_0000>(
            here, next,
        ));
        let moved = _mm256_or_si256(_mm256_sll_epi64(here, up), _mm256_srl_epi64(before, down));
        let firsts = firsts(i);
        // A shift by more than 63, or by less than 0, leaves nothing.
        let new = _mm256_or_si256(
            _mm256_sllv_epi64(print, _mm256_sub_epi64(start, firsts)),
            _mm256_srlv_epi64(print, _mm256_sub_epi64(firsts, start)),
        );
        let kept = _mm256_andnot_si256(from(start, firsts), here);
        let moved = _mm256_and_si256(from(end, firsts), moved);
        let mut all = _mm256_or_si256(_mm256_or_si256(kept, moved), new);
        if i + 1 == count {
            all = with_ends(all, ends);
        }
        store(&mut vectors[i], all);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn close(words: &mut [u64], (at, width): (u32, u32), ends: Ends) {
    let down = _mm_cvtsi32_si128(width as i32);
    let up = _mm_cvtsi32_si128(64 - width as i32);
    let start = _mm256_set1_epi64x(at.into());
    let vectors = words.as_chunks_mut::<4>().0;
    let count = vectors.len();
    let read = |vectors: &[[u64; 4]], i: usize| match count - i {
        0 => _mm256_setzero_si256(),
        1 => without_ends(load(&vectors[i]), ends),
        _ => load(&vectors[i]),
    };
    let mut next = read(vectors, 0);
    for i in 0..count {
        let here = next;
        next = read(vectors, i + 1);
        // Each word's successor.
        let after = _mm256_permute4x64_epi64::<0b00_11_10_01>(_mm256_blend_epi32::<0b0000_0011>(
            here, next,
        ));
        let moved = _mm256_or_si256(_mm256_srl_epi64(here, down), _mm256_sll_epi64(after, up));
        let from = from(start, firsts(i));
        let mut all =
            _mm256_or_si256(_mm256_andnot_si256(from, here), _mm256_and_si256(from, moved));
        if i + 1 == count {
            all = with_ends(all, ends);
        }
        store(&mut vectors[i], all);
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
