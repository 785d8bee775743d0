//! The walk: which of its blocks a key goes to, and where it is looked for. This file is the paper.
//!
//! ```text
//! insert    for every choice: held already -> done; block takes it -> set bits, count, done; block refuses -> go on
//!           then the overflow list
//! contains  for every choice: held -> yes; block would take it -> no; block refuses -> go on
//!           then the overflow list
//! ```
//!
//! A lookup is the insertion replayed. Whether a block refuses a key depends on the key and on something that only rises (the
//! counter, or the set bits), so a block that refused a key once refuses it for ever: a key is where the walk looks for
//! it. For that reason nothing can be removed. The coin is part of the key: one that had to be thrown again would lose
//! keys, and so would the printed rule that a block is full at h + 1 (errata 13).
//!
//! Every choice has a digest of its own, so that block, bits and coin are independent from choice to choice.
//!
//! Whoever lets readers look on while a writer inserts must publish bits and counter of a block together, before the next key is
//! acknowledged: a reader that sees an old counter stops too early.

use super::params::Layout;
use super::{COIN_WORD, Rule};
use crate::address::{BlockProbes, reduce};
use crate::bits::field;
use crate::block::{self, Backend};
use crate::digest::Digest;

/// What a block says to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// All its bits are set.
    Held,
    /// It may come in, and so it is nowhere else.
    Open,
    /// It must go on, now and for ever.
    Refused,
}

/// One of a key's choices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    digest: Digest,
    /// Number of the block.
    pub(super) block: u64,
    probes: BlockProbes,
}

/// The digest of a key's choice number `stage`: its own for the first.
#[inline]
fn stage_digest(digest: Digest, stage: u32) -> Digest {
    if stage == 0 { digest } else { Digest(digest.word(stage.into())) }
}

impl Layout {
    /// A key's choice number `stage`.
    #[inline]
    pub(super) fn choice(&self, digest: Digest, stage: u32) -> Choice {
        let digest = stage_digest(digest, stage);
        let (start, size) = self.subtable(stage);
        Choice {
            digest,
            block: start + reduce(digest.0, size),
            probes: BlockProbes::new(digest, self.hashes, self.key_bits()),
        }
    }

    /// All choices, first to last.
    #[inline]
    pub(super) fn walk(&self, digest: Digest) -> impl Iterator<Item = Choice> {
        (0..self.choices).map(move |stage| self.choice(digest, stage))
    }

    /// The words of a block.
    #[inline]
    pub(super) fn block_of<'a>(&self, words: &'a [u64], choice: &Choice) -> &'a [u64] {
        let start = choice.block as usize * self.words();
        &words[start..start + self.words()]
    }

    #[inline]
    fn block_of_mut<'a>(&self, words: &'a mut [u64], choice: &Choice) -> &'a mut [u64] {
        let start = choice.block as usize * self.words();
        &mut words[start..start + self.words()]
    }

    /// The counter of a block: its uppermost bits.
    #[inline]
    pub(super) fn load(&self, block: &[u64]) -> u32 {
        field::get(block, self.key_bits().into(), self.counter_bits()) as u32
    }

    /// Writes the counter of a block.
    pub(super) fn set_load(&self, block: &mut [u64], load: u32) {
        field::put(block, self.key_bits().into(), self.counter_bits(), load.into());
    }

    /// What a block says to a key.
    #[inline]
    pub(super) fn ask(&self, backend: Backend, block: &[u64], choice: &Choice) -> Answer {
        if backend.holds(block, choice.probes) {
            return Answer::Held;
        }
        let refused = match self.rule {
            Rule::Counter => {
                let load = self.load(block);
                load > self.threshold || load == self.threshold && !self.coin_lets_in(choice)
            }
            Rule::Ones => backend.ones_with(block, choice.probes) > self.threshold,
            Rule::Least => true,
        };
        if refused { Answer::Refused } else { Answer::Open }
    }

    /// Whether the key is one of the share p that a block at its threshold takes.
    #[inline]
    fn coin_lets_in(&self, choice: &Choice) -> bool {
        choice.digest.word(COIN_WORD) >> 32 < self.coin
    }

    /// Puts a key into a block, full or not: a counter stays at h + 1.
    pub(super) fn put(&self, words: &mut [u64], choice: &Choice) {
        let load = self.load(self.block_of(words, choice)).min(self.threshold);
        let block = self.block_of_mut(words, choice);
        block::set(block, choice.probes);
        self.set_load(block, load + 1);
    }

    /// The choice whose block has the fewest bits set; the first of several.
    pub(super) fn emptiest(&self, words: &[u64], digest: Digest) -> Choice {
        let fill = |choice: &Choice| self.ones(self.block_of(words, choice));
        let first = self.choice(digest, 0);
        let mut best = (fill(&first), first);
        for choice in self.walk(digest).skip(1) {
            let fill = fill(&choice);
            if fill < best.0 {
                best = (fill, choice);
            }
        }
        best.1
    }
}
