//! Blocks in which a key has one bit in each section. The bits of a key are one mask, so that an
//! insertion is an OR of one or two vectors, and a question one test.
#![allow(unsafe_code)] // Calls into code for instructions that were found to be there; each block says so.

use core::ops::{Deref, Range};

use super::Backend;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::split_x86::{self, Lanes};
use crate::address::{Sections, reduce};
use crate::bits::{AHEAD, Line, Words, prefetch};
use crate::digest::Digest;

/// An array of blocks in which every key has one bit of each section of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// Blocks.
    pub(crate) number: u64,
    pub(crate) sections: Sections,
    code: Code,
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    pub(super) lanes: &'static Lanes,
}

/// What is done with blocks, in instructions that this machine has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub(super) contains: unsafe fn(&Split, &Words, Digest) -> bool,
    pub(super) insert: unsafe fn(&Split, &mut Words, Digest) -> bool,
    pub(super) contains_many: unsafe fn(&Split, &[u64], &[Digest], &mut [bool]),
    pub(super) insert_many: unsafe fn(&Split, &mut [u64], &[Digest]),
    pub(super) mask: unsafe fn(&Split, Digest) -> [u64; Line::WORDS],
}

/// The code follows from the sections.
impl PartialEq for Split {
    fn eq(&self, other: &Self) -> bool {
        (self.number, self.sections) == (other.number, other.sections)
    }
}

impl Eq for Split {}

impl Split {
    /// `number` blocks of 256 or 512 bits, with at most a section for each 32 bits.
    pub(crate) fn new(number: u64, sections: Sections) -> Self {
        Self {
            number,
            sections,
            code: match Backend::detect() {
                Backend::Portable => portable::CODE,
                #[cfg(all(target_arch = "x86_64", feature = "std"))]
                Backend::Avx2 => split_x86::code(sections),
            },
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            lanes: Lanes::of(sections),
        }
    }

    /// The number of the block of a digest.
    #[inline]
    pub(super) fn block(&self, digest: Digest) -> usize {
        reduce(digest.0, self.number) as usize
    }

    /// The words of the block of a digest.
    #[inline]
    pub(crate) fn range(&self, digest: Digest) -> Range<usize> {
        let words = (self.sections.block / 64) as usize;
        let start = self.block(digest) * words;
        start..start + words
    }

    /// Calls `each` with every digest in turn, while the blocks of the next ones are fetched.
    #[inline]
    pub(super) fn ahead<W: Deref<Target = [u64]>>(
        &self,
        mut words: W,
        digests: &[Digest],
        mut each: impl FnMut(&mut W, usize, Digest),
    ) {
        let fetch = |words: &W, digest| prefetch(words, self.range(digest).start);
        digests.iter().take(AHEAD).for_each(|&digest| fetch(&words, digest));
        for (at, &digest) in digests.iter().enumerate() {
            if let Some(&next) = digests.get(at + AHEAD) {
                fetch(&words, next);
            }
            each(&mut words, at, digest);
        }
    }

    /// Whether the block of a digest holds its bits.
    #[inline]
    pub(crate) fn contains(&self, words: &Words, digest: Digest) -> bool {
        // SAFETY: `new` takes only code whose instructions are there, here and below.
        unsafe { (self.code.contains)(self, words, digest) }
    }

    /// Answers for many digests.
    pub(crate) fn contains_many(&self, words: &[u64], digests: &[Digest], answers: &mut [bool]) {
        // SAFETY: as above.
        unsafe { (self.code.contains_many)(self, words, digests, answers) }
    }

    /// Sets the bits of a digest in its block. True if one of them was not set before.
    #[inline]
    pub(crate) fn insert(&self, words: &mut Words, digest: Digest) -> bool {
        // SAFETY: as above.
        unsafe { (self.code.insert)(self, words, digest) }
    }

    /// Sets the bits of many digests.
    pub(crate) fn insert_many(&self, words: &mut [u64], digests: &[Digest]) {
        // SAFETY: as above.
        unsafe { (self.code.insert_many)(self, words, digests) }
    }

    /// The bits of a digest, as its block would have them.
    #[inline]
    pub(crate) fn mask(&self, digest: Digest) -> [u64; Line::WORDS] {
        // SAFETY: as above.
        unsafe { (self.code.mask)(self, digest) }
    }
}

/// Bit by bit.
mod portable {
    use super::{Code, Digest, Line, Split, Words};

    pub(super) const CODE: Code = Code { contains, insert, contains_many, insert_many, mask };

    fn holds(split: &Split, words: &[u64], digest: Digest) -> bool {
        let block = &words[split.range(digest)];
        split.sections.positions(digest).all(|at| block[at / 64] >> (at % 64) & 1 == 1)
    }

    fn set(split: &Split, words: &mut [u64], digest: Digest) -> bool {
        let block = &mut words[split.range(digest)];
        split.sections.positions(digest).fold(false, |new, at| {
            let (word, bit) = (&mut block[at / 64], 1 << (at % 64));
            let unset = *word & bit == 0;
            *word |= bit;
            new | unset
        })
    }

    fn contains(split: &Split, words: &Words, digest: Digest) -> bool {
        holds(split, words.as_slice(), digest)
    }

    fn insert(split: &Split, words: &mut Words, digest: Digest) -> bool {
        set(split, words.as_mut_slice(), digest)
    }

    fn contains_many(split: &Split, words: &[u64], digests: &[Digest], answers: &mut [bool]) {
        split.ahead(words, digests, |words, at, digest| {
            answers[at] = holds(split, words, digest);
        });
    }

    fn insert_many(split: &Split, words: &mut [u64], digests: &[Digest]) {
        split.ahead(words, digests, |words, _, digest| {
            set(split, words, digest);
        });
    }

    fn mask(split: &Split, digest: Digest) -> [u64; Line::WORDS] {
        let mut mask = [0; Line::WORDS];
        for at in split.sections.positions(digest) {
            mask[at / 64] |= 1 << (at % 64);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_backend_makes_the_same_array() {
        let digests = (0..60).map(|key| Digest(Digest(key).word(3))).collect::<Vec<_>>();
        for block in [256, 512] {
            for number in 1..=block / 32 {
                let split = Split::new(5, Sections { block, number });
                let both = [Split { code: portable::CODE, ..split }, split];
                let mut arrays = [Words::zeroed(40).unwrap(), Words::zeroed(40).unwrap()];
                for &digest in &digests[..30] {
                    let [one, other] = [0, 1].map(|at| both[at].insert(&mut arrays[at], digest));
                    assert_eq!(one, other, "{block} {number}");
                    let [one, other] = both.map(|split| split.mask(digest));
                    assert_eq!(one, other, "{block} {number}");
                    assert_eq!(one.map(u64::count_ones).iter().sum::<u32>(), number);
                }
                assert_eq!(arrays[0], arrays[1], "{block} {number}");
                for (split, array) in both.iter().zip(&mut arrays) {
                    split.insert_many(array.as_mut_slice(), &digests[20..50]);
                }
                assert_eq!(arrays[0], arrays[1], "{block} {number}");
                for split in both {
                    let mut answers = vec![false; 60];
                    split.contains_many(arrays[0].as_slice(), &digests, &mut answers);
                    assert!(answers[..50].iter().all(|&answer| answer));
                    for (&digest, answer) in digests.iter().zip(answers) {
                        assert_eq!(split.contains(&arrays[0], digest), answer);
                        assert_eq!(both[0].contains(&arrays[0], digest), answer);
                    }
                }
            }
        }
    }

    /// As the format says it: the block from the high half of the hash and the number of blocks,
    /// a bit of each of eight words from the low half.
    fn insert_as_parquet(words: &mut [u32], hash: u64) {
        let salts: [u32; 8] = [
            0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947,
            0x5c6bfb31,
        ];
        let block = (((hash >> 32) * (words.len() as u64 / 8)) >> 32) as usize;
        for (word, salt) in words[block * 8..].iter_mut().zip(salts) {
            *word |= 1 << ((hash as u32).wrapping_mul(salt) >> 27);
        }
    }

    #[test]
    fn eight_sections_of_a_small_block_are_a_filter_of_parquet() {
        for blocks in (0..=12).map(|power| 1 << power) {
            let (mut ours, mut theirs) =
                (Words::zeroed(blocks * 4).unwrap(), vec![0_u32; blocks as usize * 8]);
            let split = Split::new(blocks, Sections { block: 256, number: 8 });
            for digest in (0..1000).map(|key| Digest(Digest(key).word(0))) {
                split.insert(&mut ours, digest);
                insert_as_parquet(&mut theirs, digest.0);
            }
            let halves =
                ours.as_slice().iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
            assert!(halves.eq(theirs), "{blocks}");
        }
    }

    /// Parquet takes the block from half of the hash, which makes no difference if the number of
    /// blocks is a power of two; their lengths are at most 2^31 bytes.
    #[test]
    fn powers_of_two_of_blocks_are_addressed_as_parquet_does() {
        let edges = |block: u64, power: u32| {
            let first = if power == 0 { 0 } else { block << (64 - power) };
            [first, first.wrapping_sub(1), first | u64::from(u32::MAX)]
        };
        let theirs = |hash: u64, blocks: u64| (((hash >> 32) * blocks) >> 32) as usize;
        for power in 0..=26 {
            let blocks = 1 << power;
            let split = Split::new(blocks, Sections { block: 256, number: 8 });
            let random = (0..100).map(|key| Digest(key).word(1));
            let ends = [0, 1, blocks / 2, blocks - 1].into_iter().flat_map(|at| edges(at, power));
            for hash in random.chain(ends) {
                assert_eq!(split.block(Digest(hash)), theirs(hash, blocks), "{blocks} {hash:x}");
            }
        }
        // With other numbers it does, where the lower half decides.
        let three = Split::new(3, Sections { block: 256, number: 8 });
        assert_ne!(three.block(Digest(0x5555_5555_ffff_ffff)), theirs(0x5555_5555_ffff_ffff, 3));
    }
}
