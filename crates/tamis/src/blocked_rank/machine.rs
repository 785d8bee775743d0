//! Which instructions the machine has, and the operations with them.

use super::backend::Portable;
use super::block::{self, Block, Inserted, Removed, Shape};
use super::many;
use super::place::{Cut, Place};
#[cfg(target_arch = "x86_64")]
use super::x86::{Avx2, COMMON, Operations};
use crate::digest::Digest;

#[derive(Clone, Copy, Debug)]
pub(super) enum Machine {
    Any,
    #[cfg(target_arch = "x86_64")]
    Avx2(Operations<false>),
    #[cfg(target_arch = "x86_64")]
    Avx2Common(Operations<true>),
}

impl Machine {
    /// The best operations for blocks of this shape with fingerprints of `width` bits.
    pub(super) fn detect(shape: &Shape, width: u32) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = Avx2::detect() {
            let is_common = *shape == COMMON && width == 8;
            return if is_common {
                Self::Avx2Common(Operations(proof))
            } else {
                Self::Avx2(Operations(proof))
            };
        }
        Self::Any
    }

    #[inline]
    pub(super) fn find(
        self,
        block: &Block,
        shape: &Shape,
        location: u32,
        print: u32,
    ) -> Option<bool> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.find(block, shape, location, print),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Common(avx2) => avx2.find(block, shape, location, print),
            Self::Any => portable::find(block, shape, location, print),
        }
    }

    /// As [`many::find_many`].
    pub(super) fn find_many(
        self,
        blocks: &[Block],
        cut: &Cut,
        questions: (&[Digest], &mut [bool]),
        from: usize,
    ) -> Option<(usize, Place)> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.find_many(blocks, cut, questions, from),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Common(avx2) => avx2.find_many(blocks, cut, questions, from),
            Self::Any => many::find_many::<Portable>(blocks, cut, questions, from),
        }
    }

    /// As [`many::insert_many`].
    pub(super) fn insert_many(
        self,
        blocks: &mut [Block],
        cut: &Cut,
        digests: &[Digest],
        from: usize,
    ) -> Option<(usize, Place, Inserted)> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.insert_many(blocks, cut, digests, from),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Common(avx2) => avx2.insert_many(blocks, cut, digests, from),
            Self::Any => many::insert_many::<Portable>(blocks, cut, digests, from),
        }
    }

    /// As [`many::remove_many`].
    pub(super) fn remove_many(
        self,
        blocks: &mut [Block],
        cut: &Cut,
        digests: &[Digest],
        from: usize,
    ) -> Option<(usize, Place, Removed)> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.remove_many(blocks, cut, digests, from),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Common(avx2) => avx2.remove_many(blocks, cut, digests, from),
            Self::Any => many::remove_many::<Portable>(blocks, cut, digests, from),
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
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Common(avx2) => avx2.insert(block, shape, location, print),
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
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Common(avx2) => avx2.remove(block, shape, location, print),
            Self::Any => portable::remove(block, shape, location, print),
        }
    }

    /// As [`block::lower`].
    pub(super) fn lower(self, block: &mut Block, shape: &Shape) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2.lower(block, shape),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Common(avx2) => avx2.lower(block, shape),
            Self::Any => block::lower::<Portable>(block, shape),
        }
    }
}

/// Functions that are not inlined, like those for special instructions: so a caller saves no
/// registers for either.
mod portable {
    use super::{Block, Inserted, Portable, Removed, Shape, block};

    #[inline(never)]
    pub(super) fn find(block: &Block, shape: &Shape, location: u32, print: u32) -> Option<bool> {
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
