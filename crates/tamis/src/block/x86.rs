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

/// The words that positions in a block are cut from.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(word: u64) -> __m256i {
    _mm256_set1_epi64x(word as i64)
}

/// Eight of the positions of a key.
#[inline]
#[target_feature(enable = "avx2")]
fn positions(halves: __m256i, salts: &[u32; 8], range: u32) -> __m256i {
    let [a, b, c, d, e, f, g, h] = salts.map(|salt| salt as i32);
    let product = _mm256_mullo_epi32(halves, _mm256_setr_epi32(a, b, c, d, e, f, g, h));
    // If the range is a power of two, the top bits are the result without a second multiplication.
    match range {
        512 => _mm256_srli_epi32::<23>(product),
        256 => _mm256_srli_epi32::<24>(product),
        _ => {
            let range = _mm256_set1_epi32(range as i32);
            _mm256_srli_epi32::<22>(_mm256_mullo_epi32(_mm256_srli_epi32::<10>(product), range))
        }
    }
}

/// Whether the bits of a block at eight positions are set, of which the first `left` count.
#[inline]
#[target_feature(enable = "avx2")]
fn are_set((low, high): (__m256i, __m256i), position: __m256i, left: u32) -> bool {
    let index = _mm256_srli_epi32::<5>(position);
    // Bit 3 of the index says which half of the block; it is moved to the bit that the blend
    // tests.
    let words = _mm256_castps_si256(_mm256_blendv_ps(
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(low, index)),
        _mm256_castsi256_ps(_mm256_permutevar8x32_epi32(high, index)),
        _mm256_castsi256_ps(_mm256_slli_epi32::<28>(index)),
    ));
    let bits = _mm256_srlv_epi32(words, _mm256_and_si256(position, _mm256_set1_epi32(31)));
    // A one in every lane that counts.
    let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let counts = _mm256_cmpgt_epi32(_mm256_set1_epi32(left as i32), lanes);
    _mm256_testc_si256(bits, _mm256_srli_epi32::<31>(counts)) == 1
}

/// The salts of a key of `count` bits, eight at a time, each with the number of bits from there
/// on.
#[inline]
fn chunks(count: u32) -> impl Iterator<Item = (&'static [u32; 8], u32)> {
    BLOCK_SALTS
        .as_chunks::<8>()
        .0
        .iter()
        .zip(0..count.div_ceil(8))
        .map(move |(salts, chunk)| (salts, count - 8 * chunk))
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn holds_avx2(block: &[u64], probes: BlockProbes) -> bool {
    let (halves, words) = ((quarter(block, 0), quarter(block, 4)), broadcast(probes.word));
    chunks(probes.count)
        .all(|(salts, left)| are_set(halves, positions(words, salts, probes.range), left))
}

#[target_feature(enable = "popcnt")]
pub(super) fn ones_with_popcnt(block: &[u64], probes: BlockProbes) -> u32 {
    super::ones_with(block, probes)
}
