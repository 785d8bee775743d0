//! One block of 256 or 512 bits: does it hold the bits of a key, and how full would it be with
//! them? The bits of a key may be anywhere in the block (here), or one in each section
//! (`split.rs`).
//!
//! The portable code says what is right; the code for AVX2 gives the same answers faster. Which of
//! them runs is decided at run time.
#![allow(unsafe_code)] // Calls into code for instructions that were found to be there; each block says so.

mod split;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod split_x86;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod x86;

pub(crate) use self::split::Split;
use crate::address::BlockProbes;

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
}
