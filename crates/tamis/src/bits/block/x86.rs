//! Eight positions of a key at once.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_blendv_ps, _mm256_castps_si256, _mm256_castsi256_ps,
    _mm256_cmpgt_epi32, _mm256_mullo_epi32, _mm256_permutevar8x32_epi32, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_setr_epi32, _mm256_setr_epi64x, _mm256_slli_epi32,
    _mm256_srli_epi32, _mm256_srlv_epi32, _mm256_testc_si256,
};

use crate::address::{BLOCK_SALTS, BlockProbes};

/// Four words from `at` on, zeros where there are none.
#[inline]
#[target_feature(enable = "avx2")]
fn quarter(block: &[u64], at: usize) -> __m256i {
    match block.get(at..at + 4) {
        Some(words) => {
            _mm256_setr_epi64x(words[0] as i64, words[1] as i64, words[2] as i64, words[3] as i64)
        }
        None => _mm256_set1_epi32(0),
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn holds_avx2(block: &[u64], probes: BlockProbes) -> bool {
    let BlockProbes { word, count, range } = probes;
    let (low, high) = (quarter(block, 0), quarter(block, 4));
    let halves = _mm256_set1_epi64x(word as i64);
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (chunk, salts) in BLOCK_SALTS.as_chunks::<8>().0.iter().enumerate() {
        let left = count as i32 - 8 * chunk as i32;
        if left <= 0 {
            break;
        }
        let [a, b, c, d, e, f, g, h] = salts.map(|salt| salt as i32);
        let product = _mm256_mullo_epi32(halves, _mm256_setr_epi32(a, b, c, d, e, f, g, h));
        let scaled =
            _mm256_mullo_epi32(_mm256_srli_epi32::<10>(product), _mm256_set1_epi32(range as i32));
        let position = _mm256_srli_epi32::<22>(scaled);
        let index = _mm256_srli_epi32::<5>(position);
        // Bit 3 of the index says which half of the block; it goes to where the blend looks for it.
        let words = _mm256_castps_si256(_mm256_blendv_ps(
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index)),
            _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index)),
            _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index)),
        ));
        let bits = _mm256_srlv_epi32(words, _mm256_and_si256(position, _mm256_set1_epi32(31)));
        // A one in every lane that counts.
        let asked = _mm256_srli_epi32::<31>(_mm256_cmpgt_epi32(_mm256_set1_epi32(left), lanes));
        if _mm256_testc_si256(bits, asked) == 0 {
            return false;
        }
    }
    true
}

#[target_feature(enable = "popcnt")]
pub(super) fn ones_with_popcnt(block: &[u64], probes: BlockProbes) -> u32 {
    super::ones_with(block, probes)
}
