//! Eight fields of 16 bits compared at once.
#![allow(unsafe_code)] // Vector instructions are unsafe where a machine may lack them; the block says why this one cannot.

/// Two bits for each of the eight fields of 16 bits in these words whose masked bits are `wanted`.
#[inline]
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) fn equal_lanes(words: [u64; 2], wanted: u16, mask: u16) -> u32 {
    use core::arch::x86_64::{
        _mm_and_si128, _mm_cmpeq_epi16, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi16,
    };
    // SAFETY: this is compiled only for targets that have SSE2, and no memory is touched.
    unsafe {
        let fields = _mm_set_epi64x(words[1] as i64, words[0] as i64);
        let masked = _mm_and_si128(fields, _mm_set1_epi16(mask as i16));
        _mm_movemask_epi8(_mm_cmpeq_epi16(masked, _mm_set1_epi16(wanted as i16))) as u32
    }
}

/// The same for machines without SSE2. (Bare-metal targets of x86-64 are among these.)
#[inline]
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) fn equal_lanes(words: [u64; 2], wanted: u16, mask: u16) -> u32 {
    equal_lanes_portable(words, wanted, mask)
}

/// What [`equal_lanes`] computes, in plain code.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
fn equal_lanes_portable(words: [u64; 2], wanted: u16, mask: u16) -> u32 {
    let field = |at: u32| (words[at as usize / 4] >> (at % 4 * 16)) as u16;
    (0..8).filter(|&at| field(at) & mask == wanted).fold(0, |bits, at| bits | 3 << (2 * at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;

    #[test]
    fn instructions_and_plain_code_agree() {
        for seed in 0..2000 {
            let words = [0, 1].map(|at| Digest(seed).word(at) & Digest(seed).word(2));
            let mask = Digest(seed).word(3) as u16;
            for field in 0..8_u32 {
                let wanted = (words[field as usize / 4] >> (field % 4 * 16)) as u16 & mask;
                let found = equal_lanes(words, wanted, mask);
                assert_eq!(found, equal_lanes_portable(words, wanted, mask));
                assert_eq!(found >> (2 * field) & 3, 3);
            }
        }
    }

    /// `cargo check --target x86_64-unknown-none`, which has no SSE2, would need that target;
    /// reading the source needs nothing.
    #[test]
    fn no_instruction_is_taken_for_granted() {
        let this = include_str!("vector.rs");
        for guard in this.lines().filter(|line| line.starts_with("#[cfg")) {
            let named = guard.contains("x86_64");
            assert!(!named || guard.contains("target_feature"), "{guard}");
        }
    }
}
