//! The mask of a key by vector instructions: eight lanes of 32 bits at once.
#![allow(unsafe_code)] // Vectors are loaded from arrays and stored to them; each block says why it is sound.

use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_andnot_si256, _mm256_loadu_si256, _mm256_mulhi_epu16,
    _mm256_mullo_epi32, _mm256_or_si256, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_sllv_epi32, _mm256_sllv_epi64, _mm256_srli_epi32,
    _mm256_storeu_si256, _mm256_testz_si256,
};

use super::split::{Code, Split};
use crate::address::{SECTION_SALTS, Sections};
use crate::bits::{Line, Words};
use crate::digest::Digest;

/// What the lanes of a block take from a digest: a section may have several lanes, and a lane the
/// end of one section and the beginning of the next.
#[derive(Debug)]
pub(super) struct Lanes {
    /// For the sections of the first bits of the lanes, by halves of the block.
    first: [Eight; 2],
    /// For the sections of their last bits.
    last: [Eight; 2],
}

/// One section for each of eight lanes.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Eight {
    salts: [u32; 8],
    /// Bits of the section.
    sizes: [u32; 8],
    /// Where the section begins, counted from the lane: added to a position in the section, it
    /// gives the position in the lane, or at least 32 if the bit is in another lane.
    bases: [u32; 8],
}

impl Lanes {
    pub(super) fn of(sections: Sections) -> &'static Self {
        static SMALL: [Lanes; 8] = lanes(256);
        static LARGE: [Lanes; 16] = lanes(512);
        let table = if sections.block == 256 { &SMALL[..] } else { &LARGE[..] };
        &table[sections.number as usize - 1]
    }

    const EMPTY: Self = {
        let eight = Eight { salts: [0; 8], sizes: [0; 8], bases: [0; 8] };
        Self { first: [eight; 2], last: [eight; 2] }
    };

    const fn new(sections: Sections) -> Self {
        let mut lanes = Self::EMPTY;
        let mut lane = 0;
        while lane < sections.block / 32 {
            let (half, at) = (lane as usize / 8, lane as usize % 8);
            lanes.first[half].put(at, lane, sections, 32 * lane);
            lanes.last[half].put(at, lane, sections, 32 * lane + 31);
            lane += 1;
        }
        lanes
    }
}

impl Eight {
    /// Gives lane `lane` the section that bit `bit` of the block is in.
    const fn put(&mut self, at: usize, lane: u32, sections: Sections, bit: u32) {
        let mut index = sections.number - 1;
        while sections.section(index).0 > bit {
            index -= 1;
        }
        let (start, size) = sections.section(index);
        self.salts[at] = SECTION_SALTS[index as usize];
        self.sizes[at] = size;
        self.bases[at] = start.wrapping_sub(32 * lane);
    }
}

/// The lanes of blocks of `block` bits with 1 to `MOST` sections.
const fn lanes<const MOST: usize>(block: u32) -> [Lanes; MOST] {
    let mut all = [const { Lanes::EMPTY }; MOST];
    let mut number = 0;
    while number < MOST {
        all[number] = Lanes::new(Sections { block, number: number as u32 + 1 });
        number += 1;
    }
    all
}

/// How blocks are cut: each section is a word. (Frozen: these are names.)
const WORDS: u8 = 0;
/// Each section is one lane or several. (Frozen.)
const EVEN: u8 = 1;
/// Sections begin and end within lanes. (Frozen.)
const UNEVEN: u8 = 2;

/// The code for blocks with these sections.
pub(super) fn code(sections: Sections) -> Code {
    let even = sections.number.is_power_of_two();
    match (sections.block, sections.block / sections.number) {
        (512, 64) if even => make::<8, WORDS>(),
        (512, _) if even => make::<8, EVEN>(),
        (512, _) => make::<8, UNEVEN>(),
        (_, 64) if even => make::<4, WORDS>(),
        (_, _) if even => make::<4, EVEN>(),
        (_, _) => make::<4, UNEVEN>(),
    }
}

const fn make<const BLOCK: usize, const CUT: u8>() -> Code {
    Code {
        contains: contains::<BLOCK, CUT>,
        insert: insert::<BLOCK, CUT>,
        contains_many: contains_many::<BLOCK, CUT>,
        insert_many: insert_many::<BLOCK, CUT>,
        mask: mask::<BLOCK, CUT>,
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load<T: Into<u64>, const N: usize>(array: &[T; N]) -> __m256i {
    const { assert!(size_of::<[T; N]>() == 32) };
    // SAFETY: 32 bytes of integers are read, and need no alignment.
    unsafe { _mm256_loadu_si256((&raw const *array).cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(words: &mut [u64; 4], vector: __m256i) {
    // SAFETY: 32 bytes of integers are written, and need no alignment.
    unsafe { _mm256_storeu_si256((&raw mut *words).cast(), vector) }
}

/// The bits of one section in each lane; none where a lane does not have the bit.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(eight: &Eight, low: __m256i) -> __m256i {
    let upper = _mm256_srli_epi32::<16>(_mm256_mullo_epi32(low, load(&eight.salts)));
    let position = _mm256_mulhi_epu16(upper, load(&eight.sizes));
    let in_lane = _mm256_add_epi32(position, load(&eight.bases));
    _mm256_sllv_epi32(_mm256_set1_epi32(1), in_lane)
}

/// The salts of four sections that are words. The other lanes are multiplied by zero, so that
/// two lanes together are a position.
const WORD_SALTS: [[u32; 8]; 2] = {
    let mut salts = [[0; 8]; 2];
    let mut word = 0;
    while word < 8 {
        salts[word / 4][word % 4 * 2] = SECTION_SALTS[word];
        word += 1;
    }
    salts
};

/// The bits of a digest in half a block.
#[inline]
#[target_feature(enable = "avx2")]
fn half_mask<const CUT: u8>(lanes: &Lanes, half: usize, digest: Digest) -> __m256i {
    let low = _mm256_set1_epi32(digest.0 as i32);
    match CUT {
        WORDS => {
            let position =
                _mm256_srli_epi32::<26>(_mm256_mullo_epi32(low, load(&WORD_SALTS[half])));
            _mm256_sllv_epi64(_mm256_set1_epi64x(1), position)
        }
        EVEN => bits(&lanes.first[half], low),
        _ => _mm256_or_si256(bits(&lanes.first[half], low), bits(&lanes.last[half], low)),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn holds<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    block: &[u64; BLOCK],
    digest: Digest,
) -> bool {
    let mut missing = _mm256_setzero_si256();
    for (half, words) in block.as_chunks::<4>().0.iter().enumerate() {
        let mask = half_mask::<CUT>(split.lanes, half, digest);
        missing = _mm256_or_si256(missing, _mm256_andnot_si256(load(words), mask));
    }
    _mm256_testz_si256(missing, missing) == 1
}

#[inline]
#[target_feature(enable = "avx2")]
fn set<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    block: &mut [u64; BLOCK],
    digest: Digest,
) -> bool {
    let mut missing = _mm256_setzero_si256();
    for (half, words) in block.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let (before, mask) = (load(words), half_mask::<CUT>(split.lanes, half, digest));
        missing = _mm256_or_si256(missing, _mm256_andnot_si256(before, mask));
        store(words, _mm256_or_si256(before, mask));
    }
    _mm256_testz_si256(missing, missing) == 0
}

/// Every instruction counts here: the fewer there are, the more questions are under way at once
/// while memory is waited for. So what hardly ever happens is left to a function that is called
/// at the end, for which no register must be kept.
#[target_feature(enable = "avx2,bmi2")]
fn contains<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    words: &Words,
    digest: Digest,
) -> bool {
    let (at, each) = (split.block(digest), Line::WORDS / BLOCK);
    let line = words.owned().and_then(|lines| lines.get(at / each));
    match line.and_then(|line| line.0.as_chunks::<BLOCK>().0.get(at % each)) {
        Some(block) => holds::<BLOCK, CUT>(split, block, digest),
        None => contains_shared::<BLOCK, CUT>(split, words, digest),
    }
}

#[cold]
#[target_feature(enable = "avx2,bmi2")]
fn contains_shared<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    words: &Words,
    digest: Digest,
) -> bool {
    let blocks = words.as_slice().as_chunks::<BLOCK>().0;
    holds::<BLOCK, CUT>(split, &blocks[split.block(digest)], digest)
}

#[target_feature(enable = "avx2,bmi2")]
fn insert<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    words: &mut Words,
    digest: Digest,
) -> bool {
    let (at, each) = (split.block(digest), Line::WORDS / BLOCK);
    let line = words.owned_mut().and_then(|lines| lines.get_mut(at / each));
    match line.and_then(|line| line.0.as_chunks_mut::<BLOCK>().0.get_mut(at % each)) {
        Some(block) => set::<BLOCK, CUT>(split, block, digest),
        None => insert_shared::<BLOCK, CUT>(split, words, digest),
    }
}

#[cold]
#[target_feature(enable = "avx2,bmi2")]
fn insert_shared<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    words: &mut Words,
    digest: Digest,
) -> bool {
    let blocks = words.as_mut_slice().as_chunks_mut::<BLOCK>().0;
    set::<BLOCK, CUT>(split, &mut blocks[split.block(digest)], digest)
}

#[target_feature(enable = "avx2,bmi2")]
fn contains_many<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    words: &[u64],
    digests: &[Digest],
    answers: &mut [bool],
) {
    split.ahead(words, digests, |words, at, digest| {
        let block = &words.as_chunks::<BLOCK>().0[split.block(digest)];
        answers[at] = holds::<BLOCK, CUT>(split, block, digest);
    });
}

#[target_feature(enable = "avx2,bmi2")]
fn insert_many<const BLOCK: usize, const CUT: u8>(
    split: &Split,
    words: &mut [u64],
    digests: &[Digest],
) {
    split.ahead(words, digests, |words, _, digest| {
        let block = &mut words.as_chunks_mut::<BLOCK>().0[split.block(digest)];
        set::<BLOCK, CUT>(split, block, digest);
    });
}

#[target_feature(enable = "avx2")]
fn mask<const BLOCK: usize, const CUT: u8>(split: &Split, digest: Digest) -> [u64; Line::WORDS] {
    let mut mask = [0; Line::WORDS];
    for (half, words) in mask.as_chunks_mut::<4>().0.iter_mut().take(BLOCK / 4).enumerate() {
        store(words, half_mask::<CUT>(split.lanes, half, digest));
    }
    mask
}
