//! One block of 256 or 512 bits: does it hold the bits of a key, and how full would it be with
//! them?
//!
//! The portable code says what is right; the code for AVX2 gives the same answers faster. Which of
//! them runs is decided at run time.
#![allow(unsafe_code)] // Calls into code for instructions that were found to be there; each block says so.

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod x86;

use core::ops::Range;

use crate::address::{BlockProbes, reduce};
use crate::bits::{AHEAD, prefetch};
use crate::digest::Digest;

/// An array of blocks in which every key has some bits of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) number: u64,
    /// Bits of a block: 256 or 512.
    pub(crate) bits: u32,
    /// Bits of a key.
    pub(crate) hashes: u32,
}

impl Blocks {
    /// The words of the block of a digest.
    #[inline]
    pub(crate) fn range(&self, digest: Digest) -> Range<usize> {
        let words = (self.bits / 64) as usize;
        let start = reduce(digest.0, self.number) as usize * words;
        start..start + words
    }

    /// The bits of a digest in its block.
    #[inline]
    pub(crate) fn probes(&self, digest: Digest) -> BlockProbes {
        BlockProbes::new(digest, self.hashes, self.bits)
    }

    /// Answers for many digests, with lines fetched ahead.
    #[inline]
    fn contain_many(
        &self,
        words: &[u64],
        digests: &[Digest],
        answers: &mut [bool],
        holds: impl Fn(&[u64], BlockProbes) -> bool,
    ) {
        let fetch = |digest: Digest| prefetch(words, self.range(digest).start);
        digests.iter().take(AHEAD).for_each(|&digest| fetch(digest));
        for (number, (&digest, answer)) in digests.iter().zip(answers).enumerate() {
            if let Some(&next) = digests.get(number + AHEAD) {
                fetch(next);
            }
            *answer = holds(&words[self.range(digest)], self.probes(digest));
        }
    }
}

/// The instructions that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Portable,
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    Avx2,
}

impl Backend {
    /// The best that this machine has. Without `std` there is no way to ask, and the portable code
    /// is used.
    pub(crate) fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        {
            use std::arch::is_x86_feature_detected;
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
            {
                return Self::Avx2;
            }
        }
        Self::Portable
    }

    /// Whether all bits of a key are set in a block.
    #[inline]
    pub(crate) fn holds(self, block: &[u64], probes: BlockProbes) -> bool {
        match self {
            Self::Portable => holds(block, probes),
            // SAFETY: `detect` makes this only where AVX2 is.
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx2 => unsafe { x86::holds_avx2(block, probes) },
        }
    }

    /// Whether the block of a digest holds its bits.
    #[inline]
    pub(crate) fn contains(self, words: &[u64], blocks: &Blocks, digest: Digest) -> bool {
        match self {
            Self::Portable => holds(&words[blocks.range(digest)], blocks.probes(digest)),
            // SAFETY: `detect` makes this only where AVX2 is.
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx2 => unsafe { x86::contains_avx2(words, blocks, digest) },
        }
    }

    /// Answers for many digests.
    pub(crate) fn contains_many(
        self,
        words: &[u64],
        blocks: &Blocks,
        digests: &[Digest],
        answers: &mut [bool],
    ) {
        match self {
            Self::Portable => blocks.contain_many(words, digests, answers, holds),
            // SAFETY: `detect` makes this only where AVX2 is.
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx2 => unsafe { x86::contains_many_avx2(words, blocks, digests, answers) },
        }
    }

    /// Sets the bits of a digest in its block. True if one of them was not set before.
    #[inline]
    pub(crate) fn insert(self, words: &mut [u64], blocks: &Blocks, digest: Digest) -> bool {
        match self {
            Self::Portable => insert(&mut words[blocks.range(digest)], blocks.probes(digest)),
            // SAFETY: `detect` makes this only where AVX2 is.
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx2 => unsafe { x86::insert_avx2(words, blocks, digest) },
        }
    }

    /// Sets the bits of many digests, with lines fetched ahead.
    pub(crate) fn insert_many(self, words: &mut [u64], blocks: &Blocks, digests: &[Digest]) {
        match self {
            Self::Portable => {
                for digests in digests.chunks(AHEAD) {
                    for &digest in digests {
                        prefetch(words, blocks.range(digest).start);
                    }
                    for &digest in digests {
                        self.insert(words, blocks, digest);
                    }
                }
            }
            // SAFETY: `detect` makes this only where AVX2 is.
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx2 => unsafe { x86::insert_many_avx2(words, blocks, digests) },
        }
    }

    /// How many bits would be set in a block that took a key.
    #[inline]
    pub(crate) fn ones_with(self, block: &[u64], probes: BlockProbes) -> u32 {
        match self {
            Self::Portable => ones_with(block, probes),
            // SAFETY: `detect` makes this only where POPCNT is.
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            Self::Avx2 => unsafe { x86::ones_with_popcnt(block, probes) },
        }
    }
}

/// The bits of a key as a block.
#[inline]
fn mask(probes: BlockProbes) -> [u64; 8] {
    let mut mask = [0; 8];
    for at in probes.positions() {
        mask[(at / 64) & 7] |= 1 << (at % 64);
    }
    mask
}

#[inline]
fn holds(block: &[u64], probes: BlockProbes) -> bool {
    probes.positions().all(|at| block[at / 64] >> (at % 64) & 1 == 1)
}

#[inline]
fn insert(block: &mut [u64], probes: BlockProbes) -> bool {
    probes.positions().fold(false, |new, at| {
        let (word, bit) = (&mut block[at / 64], 1 << (at % 64));
        let unset = *word & bit == 0;
        *word |= bit;
        new | unset
    })
}

#[inline]
fn ones_with(block: &[u64], probes: BlockProbes) -> u32 {
    block.iter().zip(mask(probes)).map(|(word, mask)| (word | mask).count_ones()).sum()
}

/// Sets the bits of a key.
#[inline]
pub(crate) fn set(block: &mut [u64], probes: BlockProbes) {
    for at in probes.positions() {
        block[at / 64] |= 1 << (at % 64);
    }
}

/// Set bits of a block.
#[inline]
pub(crate) fn ones(block: &[u64]) -> u32 {
    block.iter().map(|word| word.count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::digest::Digest;

    #[test]
    fn every_backend_does_what_the_portable_one_does() {
        let backend = Backend::detect();
        let mut held = 0;
        for (words, range) in [(4, 256), (4, 251), (4, 246), (8, 512), (8, 507), (8, 502)] {
            for count in 1..=32 {
                for round in 0..300_u64 {
                    let digest = Digest(Digest(round << 8 | u64::from(count)).word(words as u64));
                    let probes = BlockProbes::new(digest, count, range);
                    assert!(probes.positions().all(|at| at < range as usize));
                    let mut block = vec![0_u64; words];
                    // Blocks from empty to full, and some that lack one bit of the key.
                    for other in 0..round % 40 {
                        set(&mut block, BlockProbes::new(Digest(digest.word(other)), 16, range));
                    }
                    if round % 3 > 0 {
                        set(&mut block, probes);
                    }
                    if round % 3 > 1 {
                        let at = probes.positions().nth(round as usize % count as usize).unwrap();
                        block[at / 64] &= !(1 << (at % 64));
                    }
                    assert_eq!(backend.holds(&block, probes), holds(&block, probes));
                    assert_eq!(backend.ones_with(&block, probes), ones_with(&block, probes));
                    held += u32::from(holds(&block, probes));
                }
            }
        }
        assert!((10_000..50_000).contains(&held), "{held} of 57600");
    }

    #[test]
    fn every_backend_makes_the_same_array() {
        for bits in [256, 512] {
            for hashes in 1..=32 {
                let blocks = Blocks { number: 5, bits, hashes };
                let mut arrays = [vec![0; 40], vec![0; 40]];
                let digests = (0..60).map(|key| Digest(Digest(key).word(3))).collect::<Vec<_>>();
                let backends = [Backend::Portable, Backend::detect()];
                for &digest in &digests[..30] {
                    let [one, other] =
                        [0, 1].map(|at| backends[at].insert(&mut arrays[at][..], &blocks, digest));
                    assert_eq!(one, other, "{bits} {hashes}");
                }
                assert_eq!(arrays[0], arrays[1], "{bits} {hashes}");
                for (backend, array) in backends.iter().zip(&mut arrays) {
                    backend.insert_many(array, &blocks, &digests[20..30]);
                }
                assert_eq!(arrays[0], arrays[1], "{bits} {hashes}");
                for (backend, array) in backends.iter().zip(&mut arrays) {
                    backend.insert_many(array, &blocks, &digests[30..50]);
                }
                assert_eq!(arrays[0], arrays[1], "{bits} {hashes}");
                for backend in backends {
                    let mut answers = vec![false; 60];
                    backend.contains_many(&arrays[0], &blocks, &digests, &mut answers);
                    assert!(answers[..50].iter().all(|&answer| answer));
                    for (&digest, answer) in digests.iter().zip(answers) {
                        assert_eq!(Backend::Portable.contains(&arrays[0], &blocks, digest), answer);
                        assert_eq!(backend.contains(&arrays[0], &blocks, digest), answer);
                    }
                }
            }
        }
    }
}
