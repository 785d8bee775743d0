//! Eight fields of 16 bits compared at once.
#![allow(unsafe_code)] // Vector instructions are unsafe where a machine may lack them; the block says why this one cannot.

/// Two bits for each of the eight fields of 16 bits in these words whose masked bits are `wanted`.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(crate) fn equal_lanes(words: [u64; 2], wanted: u16, mask: u16) -> u32 {
    use core::arch::x86_64::{
        _mm_and_si128, _mm_cmpeq_epi16, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi16,
    };
    // SAFETY: SSE2 is part of every x86_64 machine, and no memory is touched.
    unsafe {
        let fields = _mm_set_epi64x(words[1] as i64, words[0] as i64);
        let masked = _mm_and_si128(fields, _mm_set1_epi16(mask as i16));
        _mm_movemask_epi8(_mm_cmpeq_epi16(masked, _mm_set1_epi16(wanted as i16))) as u32
    }
}

/// The same where there are no such instructions.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn equal_lanes(words: [u64; 2], wanted: u16, mask: u16) -> u32 {
    let field = |at: u32| (words[at as usize / 4] >> (at % 4 * 16)) as u16;
    (0..8).filter(|&at| field(at) & mask == wanted).fold(0, |bits, at| bits | 3 << (2 * at))
}
