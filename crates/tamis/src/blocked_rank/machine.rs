//! Which instructions the machine has, and what is done with them.

use super::backend::Portable;
use super::block::{self, Block, Found, Inserted, Removed, Shape};
use super::place::{Cut, Place};
#[cfg(target_arch = "x86_64")]
use super::x86::Avx2;
use crate::digest::Digest;

#[derive(Clone, Copy, Debug)]
pub(super) enum Machine {
    Any,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Machine {
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = Avx2::detect() {
            return Self::Avx2(proof);
        }
        Self::Any
    }

    #[inline]
    pub(super) fn find(self, block: &Block, shape: &Shape, location: u32, print: u32) -> Found {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.find(block, shape, location, print),
            Self::Any => portable::find(block, shape, location, print),
        }
    }

    /// As [`block::find_many`].
    pub(super) fn find_many(
        self,
        blocks: &[Block],
        cut: &Cut,
        digests: &[Digest],
        tell: impl FnMut(usize, Place, Found),
    ) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.find_many(blocks, cut, digests, tell),
            Self::Any => block::find_many::<Portable>(blocks, cut, digests, tell),
        }
    }

    #[inline]
    pub(super) fn insert(
        self,
        block: &mut Block,
        shape: &Shape,
        location: u32,
        print: u32,
    ) -> Inserted {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.insert(block, shape, location, print),
            Self::Any => portable::insert(block, shape, location, print),
        }
    }

    #[inline]
    pub(super) fn remove(
        self,
        block: &mut Block,
        shape: &Shape,
        location: u32,
        print: u32,
    ) -> Removed {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.remove(block, shape, location, print),
            Self::Any => portable::remove(block, shape, location, print),
        }
    }
}

/// Calls of their own, as those of a special machine are: a caller need not prepare for what is compiled for both.
mod portable {
    use super::{Block, Found, Inserted, Portable, Removed, Shape, block};

    #[inline(never)]
    pub(super) fn find(block: &Block, shape: &Shape, location: u32, print: u32) -> Found {
        block::find::<Portable>(block, shape, location, print)
    }

    #[inline(never)]
    pub(super) fn insert(block: &mut Block, shape: &Shape, location: u32, print: u32) -> Inserted {
        block::insert::<Portable>(block, shape, location, print)
    }

    #[inline(never)]
    pub(super) fn remove(block: &mut Block, shape: &Shape, location: u32, print: u32) -> Removed {
        block::remove::<Portable>(block, shape, location, print)
    }
}
