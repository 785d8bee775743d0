//! Eight positions of a key at once.

use core::arch::x86_64::{
    __m256i, _mm256_and_si256, _mm256_blendv_ps, _mm256_castps_si256, _mm256_castsi256_ps,
    _mm256_cmpgt_epi32, _mm256_extract_epi32, _mm256_mullo_epi32, _mm256_permutevar8x32_epi32,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi32, _mm256_setr_epi64x,
    _mm256_slli_epi32, _mm256_srli_epi32, _mm256_srlv_epi32, _mm256_testc_si256,
};

use super::Blocks;
use crate::address::{BLOCK_SALTS, BlockProbes};
use crate::bits::{AHEAD, prefetch};
use crate::digest::Digest;

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

/// Eight bits of 512, as most plans have them: code for these is compiled by itself, without
/// branches.
#[inline]
fn common(blocks: &Blocks) -> Option<Blocks> {
    let common = Blocks { number: blocks.number, bits: 512, hashes: 8 };
    (*blocks == common).then_some(common)
}

#[target_feature(enable = "avx2,bmi2")]
pub(super) fn contains_avx2(words: &[u64], blocks: &Blocks, digest: Digest) -> bool {
    match common(blocks) {
        Some(blocks) => holds_avx2(&words[blocks.range(digest)], blocks.probes(digest)),
        None => holds_avx2(&words[blocks.range(digest)], blocks.probes(digest)),
    }
}

#[target_feature(enable = "avx2,bmi2")]
pub(super) fn contains_many_avx2(
    words: &[u64],
    blocks: &Blocks,
    digests: &[Digest],
    answers: &mut [bool],
) {
    let holds = |block: &[u64], probes| holds_avx2(block, probes);
    match common(blocks) {
        Some(blocks) => blocks.contain_many(words, digests, answers, holds),
        None => blocks.contain_many(words, digests, answers, holds),
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn insert_avx2(words: &mut [u64], blocks: &Blocks, digest: Digest) -> bool {
    if let Some(blocks) = common(blocks) {
        return insert_common(words, &blocks, digest);
    }
    let (block, probes) = (&mut words[blocks.range(digest)], blocks.probes(digest));
    // One branch for each size: then no position needs a bounds check.
    if let Ok(block) = <&mut [u64; 8]>::try_from(&mut *block) {
        insert_into(block, probes)
    } else if let Ok(block) = <&mut [u64; 4]>::try_from(block) {
        insert_into(block, probes)
    } else {
        false
    }
}

/// As [`insert_avx2`], for eight bits of 512.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn insert_common(words: &mut [u64], blocks: &Blocks, digest: Digest) -> bool {
    let (start, probes) = (blocks.range(digest).start, blocks.probes(digest));
    let block = &mut words.as_chunks_mut::<8>().0[start / 8];
    let halves = (quarter(block, 0), quarter(block, 4));
    let position = positions(broadcast(probes.word), &BLOCK_SALTS.as_chunks::<8>().0[0], 512);
    let new = !are_set(halves, position, 8);
    set_eight(block, position);
    new
}

/// Sets the bits at eight positions.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn set_eight<const WORDS: usize>(block: &mut [u64; WORDS], position: __m256i) {
    let mut set = |at: i32| block[at as usize / 64 % WORDS] |= 1 << (at % 64);
    set(_mm256_extract_epi32::<0>(position));
    set(_mm256_extract_epi32::<1>(position));
    set(_mm256_extract_epi32::<2>(position));
    set(_mm256_extract_epi32::<3>(position));
    set(_mm256_extract_epi32::<4>(position));
    set(_mm256_extract_epi32::<5>(position));
    set(_mm256_extract_epi32::<6>(position));
    set(_mm256_extract_epi32::<7>(position));
}

#[target_feature(enable = "avx2,bmi2")]
pub(super) fn insert_many_avx2(words: &mut [u64], blocks: &Blocks, digests: &[Digest]) {
    for (number, &digest) in digests.iter().enumerate() {
        if let Some(&next) = digests.get(number + AHEAD) {
            prefetch(words, blocks.range(next).start);
        }
        insert_avx2(words, blocks, digest);
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn insert_into<const WORDS: usize>(block: &mut [u64; WORDS], probes: BlockProbes) -> bool {
    let (halves, words) = ((quarter(block, 0), quarter(block, 4)), broadcast(probes.word));
    let mut new = false;
    for (salts, left) in chunks(probes.count) {
        let position = positions(words, salts, probes.range);
        new |= !are_set(halves, position, left);
        if left >= 8 {
            set_eight(block, position);
        } else {
            let some = [
                _mm256_extract_epi32::<0>(position),
                _mm256_extract_epi32::<1>(position),
                _mm256_extract_epi32::<2>(position),
                _mm256_extract_epi32::<3>(position),
                _mm256_extract_epi32::<4>(position),
                _mm256_extract_epi32::<5>(position),
                _mm256_extract_epi32::<6>(position),
            ];
            for at in some.into_iter().take(left as usize) {
                block[at as usize / 64 % WORDS] |= 1 << (at % 64);
            }
        }
    }
    new
}

#[target_feature(enable = "popcnt")]
pub(super) fn ones_with_popcnt(block: &[u64], probes: BlockProbes) -> u32 {
    super::ones_with(block, probes)
}
