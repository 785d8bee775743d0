//! Words of bits that several threads set at once, without locks.
//!
//! All orderings are relaxed. Bits are only ever set, each by one atomic operation on its own
//! word. So a thread that has learnt of an insertion by any means that orders memory (a join, a
//! lock, a channel, a flag that is released and acquired) sees that word with the bits of the
//! insertion. Nothing else is promised, and no other memory is published.

use alloc::vec::Vec;
#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

use super::line::Line;
use super::words::Words;
use crate::digest::Digest;

/// One cache line of words.
#[derive(Debug)]
#[repr(C, align(64))]
struct AtomicLine([AtomicU64; Line::WORDS]);

/// A fixed number of words whose bits can be set through a shared reference.
#[derive(Debug)]
pub struct AtomicWords {
    lines: Vec<AtomicLine>,
    len: usize,
}

impl AtomicWords {
    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.lines[index / Line::WORDS].0[index % Line::WORDS]
    }

    /// Whether bit `position` is set.
    #[inline]
    pub(crate) fn test(&self, position: u64) -> bool {
        self.word((position >> 6) as usize).load(Ordering::Relaxed) >> (position & 63) & 1 == 1
    }

    /// Sets bit `position`; true if this very call set it.
    #[inline]
    pub(crate) fn set(&self, position: u64) -> bool {
        let (word, bit) = (self.word((position >> 6) as usize), 1 << (position & 63));
        // A read is much cheaper than a write, and leaves the line shared.
        word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// The words from `start` on in its line, each with one of `masks`.
    #[inline]
    fn with_masks<'a>(
        &'a self,
        start: usize,
        masks: &'a [u64],
    ) -> impl Iterator<Item = (&'a AtomicU64, u64)> {
        let line = &self.lines[start / Line::WORDS].0;
        line[start % Line::WORDS..].iter().zip(masks.iter().copied())
    }

    /// Whether all bits of `masks` are set in the words from `start` on, in one line.
    #[inline]
    pub(crate) fn hold(&self, start: usize, masks: &[u64]) -> bool {
        let missing = |(word, mask): (&AtomicU64, _)| mask & !word.load(Ordering::Relaxed);
        self.with_masks(start, masks).map(missing).fold(0, |all, missing| all | missing) == 0
    }

    /// Sets the bits of `masks` in the words from `start` on, in one line; true if this very call
    /// set one.
    #[inline]
    pub(crate) fn set_all(&self, start: usize, masks: &[u64]) -> bool {
        self.with_masks(start, masks).fold(false, |new, (word, mask)| {
            // A read is much cheaper than a write, and leaves the line shared.
            let missing = mask & !word.load(Ordering::Relaxed);
            let set =
                missing != 0 && word.fetch_or(missing, Ordering::Relaxed) & missing != missing;
            new | set
        })
    }

    /// Starts fetching the line of bit `position`.
    #[inline]
    pub(crate) fn prefetch(&self, position: u64) {
        super::prefetch(&self.lines, (position / Line::BITS) as usize);
    }

    /// The words as they are now, one after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let words = self.lines.iter().flat_map(|line| &line.0).take(self.len);
        words.map(|word| word.load(Ordering::Relaxed))
    }

    /// Bits of heap memory held.
    pub(crate) fn footprint(&self) -> u64 {
        self.lines.capacity() as u64 * Line::BITS
    }
}

/// Keeps the memory, unless the words were shared with a mapped file.
impl From<Words> for AtomicWords {
    fn from(words: Words) -> Self {
        let len = words.len();
        let lines = words.into_lines().into_iter();
        Self { lines: lines.map(|line| AtomicLine(line.0.map(AtomicU64::new))).collect(), len }
    }
}

/// Keeps the memory.
impl From<AtomicWords> for Words {
    fn from(words: AtomicWords) -> Self {
        let lines = words.lines.into_iter();
        let lines = lines.map(|line| Line(line.0.map(AtomicU64::into_inner))).collect();
        Self::from_lines(lines, words.len)
    }
}

/// A number that several threads add to: the sum of several, each on a line of its own, so that
/// threads seldom wait for each other.
#[derive(Debug)]
pub(crate) struct Tally([Part; PARTS]);

/// With loom, all threads must meet in every order, and in the same place in every run.
const PARTS: usize = if cfg!(loom) { 1 } else { 16 };

#[derive(Debug)]
#[repr(align(64))]
struct Part(AtomicU64);

impl Default for Tally {
    fn default() -> Self {
        Self(core::array::from_fn(|_| Part(AtomicU64::new(0))))
    }
}

impl Tally {
    /// Adds to the number.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        // Each thread has a stack of its own, at least a mebibyte from any other.
        let on_stack = 0_u8;
        let stack = (&raw const on_stack).addr() as u64 >> 20;
        let part = Digest(stack).word(0) as usize % PARTS;
        self.0[part].0.fetch_add(more, Ordering::Relaxed);
    }

    /// The number now.
    pub(crate) fn get(&self) -> u64 {
        let parts = self.0.iter().map(|part| part.0.load(Ordering::Relaxed));
        parts.fold(0, u64::saturating_add)
    }
}
