//! AVX2, with POPCNT and BMI2: two vectors a block.
#![allow(unsafe_code)]
// Vector instructions are unsafe where a machine may lack them; every block says why it does not here.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use core::arch::x86_64::{
    __m256i, _mm256_alignr_epi8, _mm256_and_si256, _mm256_blendv_epi8, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_permute2x128_si256,
    _mm256_set1_epi8, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_storeu_si256,
};

use super::backend::Backend;
use super::block::{self, Block, Inserted, Removed, Shape};
use super::place::{Cut, Place};
use crate::digest::Digest;

/// Proof that this machine has the instructions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The proof, if there is one.
    pub(super) fn detect() -> Option<Self> {
        #[cfg(feature = "std")]
        if std::is_x86_feature_detected!("avx2")
            && std::is_x86_feature_detected!("popcnt")
            && std::is_x86_feature_detected!("bmi1")
            && std::is_x86_feature_detected!("bmi2")
            && std::is_x86_feature_detected!("lzcnt")
        {
            return Some(Self(()));
        }
        None
    }
}

/// The cut of most plans, compiled by itself: then where things lie is known.
pub(super) const COMMON: Shape = Shape::new(49, 64, 0);

/// What is done with the instructions, for blocks of any shape or, where `COMMON_ONLY`, of the common one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operations<const COMMON_ONLY: bool>(pub(super) Avx2);

#[expect(clippy::unused_self, reason = "the value is the proof")]
impl<const COMMON_ONLY: bool> Operations<COMMON_ONLY> {
    #[inline]
    pub(super) fn find(
        self,
        block: &Block,
        shape: &Shape,
        location: u32,
        print: u32,
    ) -> Option<bool> {
        // SAFETY: a value of `Avx2` exists only where the instructions were detected.
        unsafe { find::<COMMON_ONLY>(block, shape, location, print) }
    }

    /// As [`find_many`](block::find_many).
    #[inline]
    pub(super) fn find_many(
        self,
        blocks: &[Block],
        cut: &Cut,
        digests: &[Digest],
        tell: impl FnMut(usize, Place, Option<bool>),
    ) {
        // SAFETY: as in `find`.
        unsafe { find_many::<COMMON_ONLY>(blocks, cut, digests, tell) }
    }

    #[inline]
    pub(super) fn insert(
        self,
        block: &mut Block,
        shape: &Shape,
        location: u32,
        print: u32,
    ) -> Inserted {
        // SAFETY: as in `find`.
        unsafe { insert::<COMMON_ONLY>(block, shape, location, print) }
    }

    #[inline]
    pub(super) fn remove(
        self,
        block: &mut Block,
        shape: &Shape,
        location: u32,
        print: u32,
    ) -> Removed {
        // SAFETY: as in `find`.
        unsafe { remove::<COMMON_ONLY>(block, shape, location, print) }
    }
}

#[inline(always)]
fn known<const COMMON_ONLY: bool>(shape: &Shape) -> &Shape {
    if COMMON_ONLY { &COMMON } else { shape }
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn find<const COMMON_ONLY: bool>(
    block: &Block,
    shape: &Shape,
    location: u32,
    print: u32,
) -> Option<bool> {
    block::find::<Vectors>(block, known::<COMMON_ONLY>(shape), location, print)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn find_many<const COMMON_ONLY: bool>(
    blocks: &[Block],
    cut: &Cut,
    digests: &[Digest],
    tell: impl FnMut(usize, Place, Option<bool>),
) {
    let cut = if COMMON_ONLY { cut.with_shape(COMMON) } else { *cut };
    block::find_many::<Vectors>(blocks, &cut, digests, tell);
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn insert<const COMMON_ONLY: bool>(
    block: &mut Block,
    shape: &Shape,
    location: u32,
    print: u32,
) -> Inserted {
    block::insert::<Vectors>(block, known::<COMMON_ONLY>(shape), location, print)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn remove<const COMMON_ONLY: bool>(
    block: &mut Block,
    shape: &Shape,
    location: u32,
    print: u32,
) -> Removed {
    block::remove::<Vectors>(block, known::<COMMON_ONLY>(shape), location, print)
}

/// The operations themselves; used only inside the functions above, into which they are inlined.
struct Vectors;

/// The numbers of the bytes of both halves.
#[inline(always)]
fn numbers() -> (__m256i, __m256i) {
    // SAFETY: called only from functions that were compiled for AVX2 and entered with its proof.
    unsafe {
        let low = _mm256_setr_epi8(
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
            24, 25, 26, 27, 28, 29, 30, 31,
        );
        let high = _mm256_setr_epi8(
            32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53,
            54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
        );
        (low, high)
    }
}

/// The halves of a block.
#[inline(always)]
fn load(block: &Block) -> (__m256i, __m256i) {
    let start: *const __m256i = block.as_ptr().cast();
    // SAFETY: a block is 64 bytes, and loads need no alignment; AVX2 as in `numbers`.
    unsafe { (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))) }
}

#[inline(always)]
fn store(block: &mut Block, (low, high): (__m256i, __m256i)) {
    let start: *mut __m256i = block.as_mut_ptr().cast();
    // SAFETY: as in `load`, and the block is borrowed to write.
    unsafe {
        _mm256_storeu_si256(start, low);
        _mm256_storeu_si256(start.add(1), high);
    }
}

impl Backend for Vectors {
    #[inline(always)]
    fn equal(block: &Block, byte: u8) -> u64 {
        let (low, high) = load(block);
        // SAFETY: AVX2 as in `numbers`.
        unsafe {
            let wanted = _mm256_set1_epi8(byte as i8);
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)) as u32;
            u64::from(high) << 32 | u64::from(low)
        }
    }

    #[inline(always)]
    fn open(block: &mut Block, cells: u32, at: u32, byte: u8) {
        let ((low, high), (low_at, high_at)) = (load(block), numbers());
        // SAFETY: AVX2 as in `numbers`.
        let opened = unsafe {
            // Every byte one place up, across the middle of each half and from the low to the high half.
            let low_up = _mm256_alignr_epi8::<15>(low, _mm256_permute2x128_si256::<0x08>(low, low));
            let high_up =
                _mm256_alignr_epi8::<15>(high, _mm256_permute2x128_si256::<0x21>(low, high));
            let place = |old, up, numbers| {
                let (at, end) = (_mm256_set1_epi8(at as i8), _mm256_set1_epi8(cells as i8));
                let behind = _mm256_and_si256(
                    _mm256_cmpgt_epi8(numbers, at),
                    _mm256_cmpgt_epi8(end, numbers),
                );
                let moved = _mm256_blendv_epi8(old, up, behind);
                let here = _mm256_cmpeq_epi8(numbers, at);
                _mm256_blendv_epi8(moved, _mm256_set1_epi8(byte as i8), here)
            };
            (place(low, low_up, low_at), place(high, high_up, high_at))
        };
        store(block, opened);
    }

    #[inline(always)]
    fn close(block: &mut Block, cells: u32, at: u32, changed: u32, byte: u8) {
        let ((low, high), (low_at, high_at)) = (load(block), numbers());
        // SAFETY: AVX2 as in `numbers`.
        let closed = unsafe {
            let change = |old, numbers| {
                let here = _mm256_cmpeq_epi8(numbers, _mm256_set1_epi8(changed as i8));
                _mm256_blendv_epi8(old, _mm256_set1_epi8(byte as i8), here)
            };
            let (low, high) = (change(low, low_at), change(high, high_at));
            // Every byte one place down.
            let low_down =
                _mm256_alignr_epi8::<1>(_mm256_permute2x128_si256::<0x21>(low, high), low);
            let high_down =
                _mm256_alignr_epi8::<1>(_mm256_permute2x128_si256::<0x81>(high, high), high);
            let place = |old, down, numbers| {
                let (at, last) = (_mm256_set1_epi8(at as i8), _mm256_set1_epi8(cells as i8 - 1));
                // From `at` to the last but one.
                let behind = _mm256_cmpgt_epi8(last, numbers);
                let stays = _mm256_cmpgt_epi8(at, numbers);
                let moved = _mm256_blendv_epi8(_mm256_blendv_epi8(old, down, behind), old, stays);
                let ends = _mm256_cmpeq_epi8(numbers, last);
                _mm256_blendv_epi8(moved, _mm256_setzero_si256(), ends)
            };
            (place(low, low_down, low_at), place(high, high_down, high_at))
        };
        store(block, closed);
    }
}
