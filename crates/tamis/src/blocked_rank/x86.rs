//! AVX2, with POPCNT and BMI2: two vectors a block.
#![allow(unsafe_code)]
// Vector instructions are unsafe because a machine may lack them; every block says why it does
// not.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use core::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_alignr_epi8, _mm256_and_si256, _mm256_andnot_si256,
    _mm256_blend_epi32, _mm256_blendv_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8,
    _mm256_loadu_si256, _mm256_max_epi32, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_permute4x64_epi64, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_setr_epi8, _mm256_setr_epi64x, _mm256_setzero_si256, _mm256_sll_epi64,
    _mm256_sllv_epi64, _mm256_srl_epi64, _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_sub_epi64,
};

use super::backend::Backend;
use super::block::{self, Block, Inserted, Removed, Shape};
use super::many;
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

/// The shape of most plans. Code for it is compiled by itself, with constant positions.
pub(super) const COMMON: Shape = Shape::new(49, 64, 0);

/// The operations with these instructions, for blocks of any shape or, with `COMMON_ONLY`, of the
/// common one.
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

    /// As [`find_many`](many::find_many).
    #[inline]
    pub(super) fn find_many(
        self,
        blocks: &[Block],
        cut: &Cut,
        questions: (&[Digest], &mut [bool]),
        from: usize,
    ) -> Option<(usize, Place)> {
        // SAFETY: as in `find`.
        unsafe { find_many::<COMMON_ONLY>(blocks, cut, questions, from) }
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

    /// As [`lower`](block::lower).
    pub(super) fn lower(self, block: &mut Block, shape: &Shape) {
        // SAFETY: as in `find`.
        unsafe { lower::<COMMON_ONLY>(block, shape) }
    }

    /// As [`insert_many`](many::insert_many).
    pub(super) fn insert_many(
        self,
        blocks: &mut [Block],
        cut: &Cut,
        digests: &[Digest],
        from: usize,
    ) -> Option<(usize, Place, Inserted)> {
        // SAFETY: as in `find`.
        unsafe { insert_many::<COMMON_ONLY>(blocks, cut, digests, from) }
    }

    /// As [`remove_many`](many::remove_many).
    pub(super) fn remove_many(
        self,
        blocks: &mut [Block],
        cut: &Cut,
        digests: &[Digest],
        from: usize,
    ) -> Option<(usize, Place, Removed)> {
        // SAFETY: as in `find`.
        unsafe { remove_many::<COMMON_ONLY>(blocks, cut, digests, from) }
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

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn lower<const COMMON_ONLY: bool>(block: &mut Block, shape: &Shape) {
    block::lower::<Vectors>(block, known::<COMMON_ONLY>(shape));
}

#[inline(always)]
fn known<const COMMON_ONLY: bool>(shape: &Shape) -> &Shape {
    if COMMON_ONLY { &COMMON } else { shape }
}

#[inline(always)]
fn known_cut<const COMMON_ONLY: bool>(cut: &Cut) -> Cut {
    if COMMON_ONLY { cut.with_shape(COMMON) } else { *cut }
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
    questions: (&[Digest], &mut [bool]),
    from: usize,
) -> Option<(usize, Place)> {
    many::find_many::<Vectors>(blocks, &known_cut::<COMMON_ONLY>(cut), questions, from)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn insert_many<const COMMON_ONLY: bool>(
    blocks: &mut [Block],
    cut: &Cut,
    digests: &[Digest],
    from: usize,
) -> Option<(usize, Place, Inserted)> {
    many::insert_many::<Vectors>(blocks, &known_cut::<COMMON_ONLY>(cut), digests, from)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
fn remove_many<const COMMON_ONLY: bool>(
    blocks: &mut [Block],
    cut: &Cut,
    digests: &[Digest],
    from: usize,
) -> Option<(usize, Place, Removed)> {
    many::remove_many::<Vectors>(blocks, &known_cut::<COMMON_ONLY>(cut), digests, from)
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
    fn is_equal(_: &Block, equal: u64, cell: u32, _: u8) -> u64 {
        equal >> cell & 1
    }

    #[inline(always)]
    fn open(block: &mut Block, cells: u32, at: u32, byte: u8) {
        let ((low, high), (low_at, high_at)) = (load(block), numbers());
        // SAFETY: AVX2 as in `numbers`.
        let opened = unsafe {
            // Every byte one place up, across the middle of each half and from the low to the high
            // half.
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

    #[inline(always)]
    fn open_field(block: &mut Block, end: u32, at: u32, width: u32, value: u64) {
        let (low, high) = load(block);
        // SAFETY: AVX2 as in `numbers`.
        let opened = unsafe {
            // The word before each.
            let last = _mm256_permute4x64_epi64::<0b11_11_11_11>(low);
            let before_low = _mm256_permute4x64_epi64::<0b10_01_00_00>(low);
            let before_high = _mm256_permute4x64_epi64::<0b10_01_00_00>(high);
            let before_high = _mm256_blend_epi32::<0b11>(before_high, last);
            (
                opened::<0>((low, before_low), (at, end), width, value),
                opened::<1>((high, before_high), (at, end), width, value),
            )
        };
        store(block, opened);
    }

    #[inline(always)]
    fn close_field(block: &mut Block, end: u32, at: u32, width: u32, changed: u32, value: u64) {
        let (low, high) = load(block);
        let low = changed_to::<0>(low, changed, width, value);
        let high = changed_to::<1>(high, changed, width, value);
        // SAFETY: AVX2 as in `numbers`.
        let closed = unsafe {
            // The word after each.
            let first = _mm256_permute4x64_epi64::<0>(high);
            let after_low = _mm256_permute4x64_epi64::<0b11_11_10_01>(low);
            let after_low = _mm256_blend_epi32::<0b1100_0000>(after_low, first);
            let after_high = _mm256_permute4x64_epi64::<0b11_11_10_01>(high);
            (
                closed::<0>((low, after_low), (at, end), width),
                closed::<1>((high, after_high), (at, end), width),
            )
        };
        store(block, closed);
    }
}

// These are functions because closures would be compiled without the instructions.

/// A half with a field opened; `before` has the word before each of its words.
#[inline(always)]
fn opened<const HALF: i64>(
    (old, before): (__m256i, __m256i),
    (at, end): (u32, u32),
    width: u32,
    value: u64,
) -> __m256i {
    // SAFETY: AVX2 as in `numbers`.
    unsafe {
        let (up, carry) = (_mm_cvtsi32_si128(width as i32), _mm_cvtsi32_si128(64 - width as i32));
        let shifted = _mm256_or_si256(_mm256_sll_epi64(old, up), _mm256_srl_epi64(before, carry));
        let behind_all = from::<HALF>(end);
        let moves = _mm256_andnot_si256(behind_all, from::<HALF>(at + width));
        let new = _mm256_or_si256(_mm256_and_si256(shifted, moves), put::<HALF>(value, at));
        _mm256_or_si256(around(old, from::<HALF>(at), behind_all), new)
    }
}

/// A half with a field closed; `after` has the word after each of its words.
#[inline(always)]
fn closed<const HALF: i64>(
    (old, after): (__m256i, __m256i),
    (at, end): (u32, u32),
    width: u32,
) -> __m256i {
    // SAFETY: AVX2 as in `numbers`.
    unsafe {
        let (down, carry) = (_mm_cvtsi32_si128(width as i32), _mm_cvtsi32_si128(64 - width as i32));
        let shifted = _mm256_or_si256(_mm256_srl_epi64(old, down), _mm256_sll_epi64(after, carry));
        let here = from::<HALF>(at);
        let moves = _mm256_andnot_si256(from::<HALF>(end - width), here);
        _mm256_or_si256(around(old, here, from::<HALF>(end)), _mm256_and_si256(shifted, moves))
    }
}

/// A half with another value in a field.
#[inline(always)]
fn changed_to<const HALF: i64>(old: __m256i, at: u32, width: u32, value: u64) -> __m256i {
    // SAFETY: AVX2 as in `numbers`.
    unsafe {
        let field = _mm256_andnot_si256(from::<HALF>(at + width), from::<HALF>(at));
        _mm256_or_si256(_mm256_andnot_si256(field, old), put::<HALF>(value, at))
    }
}

/// The bits of `old` outside `here`, and those in `behind_all`.
#[inline(always)]
fn around(old: __m256i, here: __m256i, behind_all: __m256i) -> __m256i {
    // SAFETY: AVX2 as in `numbers`.
    unsafe { _mm256_or_si256(_mm256_andnot_si256(here, old), _mm256_and_si256(behind_all, old)) }
}

/// How far a bit of the block is behind the beginning of each word of a half; below 0 if it is
/// before.
#[inline(always)]
fn distances<const HALF: i64>(bit: u32) -> __m256i {
    // SAFETY: AVX2 as in `numbers`.
    unsafe {
        let starts =
            _mm256_setr_epi64x(256 * HALF, 256 * HALF + 64, 256 * HALF + 128, 256 * HALF + 192);
        _mm256_sub_epi64(_mm256_set1_epi64x(bit.into()), starts)
    }
}

/// The bits of a half from this bit of the block on.
#[inline(always)]
fn from<const HALF: i64>(bit: u32) -> __m256i {
    // SAFETY: AVX2 as in `numbers`.
    unsafe {
        // A shift by 64 or more leaves nothing; distances below 0 become 0.
        let distances = _mm256_max_epi32(distances::<HALF>(bit), _mm256_setzero_si256());
        _mm256_sllv_epi64(_mm256_set1_epi64x(-1), distances)
    }
}

/// A half with `value` at this bit of the block, and zeros around it.
#[inline(always)]
fn put<const HALF: i64>(value: u64, bit: u32) -> __m256i {
    // SAFETY: AVX2 as in `numbers`.
    unsafe {
        let (value, up) = (_mm256_set1_epi64x(value as i64), distances::<HALF>(bit));
        let down = _mm256_sub_epi64(_mm256_setzero_si256(), up);
        // A shift by 64 or more, or by a negative distance, leaves nothing.
        _mm256_or_si256(_mm256_sllv_epi64(value, up), _mm256_srlv_epi64(value, down))
    }
}

#[cfg(test)]
mod tests {
    use super::super::backend::Portable;
    use super::*;

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
    fn open(block: &mut Block, end: u32, at: u32, width: u32, value: u64) {
        Vectors::open_field(block, end, at, width, value);
    }

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
    fn close(block: &mut Block, end: u32, at: u32, width: u32, changed: u32, value: u64) {
        Vectors::close_field(block, end, at, width, changed, value);
    }

    /// Fields of every width at every position, also of widths that no shape has.
    #[test]
    fn fields_open_and_close_as_the_portable_ones() {
        if Avx2::detect().is_none() {
            return;
        }
        for width in 1..=16 {
            for start in [0, 8, 63, 64, 250, 256] {
                let fields = (512 - start) / width;
                let end = start + fields * width;
                let mut block = [0; 8].map(|_: u64| Digest(u64::from(width * end)).word(7));
                let mut same = block;
                for turn in 0..2 * fields {
                    let random = Digest(turn.into()).word(u64::from(width));
                    let at = start + random as u32 % fields * width;
                    let changed =
                        start + (random >> 32) as u32 % ((at - start) / width + 1) * width;
                    let value = random >> 40 & ((1 << width) - 1);
                    if turn % 2 == 0 {
                        // SAFETY: detected above.
                        unsafe { open(&mut block, end, at, width, value) };
                        Portable::open_field(&mut same, end, at, width, value);
                    } else {
                        // SAFETY: detected above.
                        unsafe { close(&mut block, end, at, width, changed, value) };
                        Portable::close_field(&mut same, end, at, width, changed, value);
                    }
                    assert_eq!(block, same, "{width} bits at {at} of {start} to {end}");
                }
            }
        }
    }
}
