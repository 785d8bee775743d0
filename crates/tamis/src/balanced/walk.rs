//! The walk: in which of its blocks a key is put, and where it is looked for. This file is what
//! the paper is about.
//!
//! ```text
//! insert    for every choice: held already         -> done
//!                             block takes it       -> set bits, count, done
//!                             block refuses        -> go on
//!           then the overflow list
//! contains  for every choice: held                 -> yes
//!                             block would take it  -> no
//!                             block refuses        -> go on
//!           then the overflow list
//! ```
//!
//! A lookup replays the insertion. Whether a block refuses a key depends on the key and on
//! something that only rises: the counter, or the set bits. So a block that refused a key once
//! refuses it for ever, and a key is where the walk looks for it. This is why nothing can be
//! removed.
//!
//! The coin is part of the key's digest. If it were thrown again for every lookup, keys would be
//! lost. So would they by the printed rule that a block is full at h + 1 (errata 13).
//!
//! Every choice has a digest of its own, so that block, bits and coin are independent from choice
//! to choice.
//!
//! A program with readers beside a writer must publish the bits and the counter of a block
//! together, before the next key is acknowledged. A reader that sees an old counter stops too
//! early.

use super::params::Layout;
use super::{COIN_WORD, Rule};
use crate::address::{BlockProbes, reduce};
use crate::bits::field;
use crate::block::{self, Backend};
use crate::digest::Digest;

/// What a block says to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// All bits of the key are set.
    Held,
    /// The block would take the key, so it is nowhere else.
    Open,
    /// The key goes on to its next block, now and for ever.
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

/// The digest of choice `stage` of a key. The first has the digest of the key.
#[inline]
fn stage_digest(digest: Digest, stage: u32) -> Digest {
    if stage == 0 { digest } else { Digest(digest.word(stage.into())) }
}

impl Layout {
    /// Choice `stage` of a key.
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

    /// All choices of a key, in order.
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

    /// Whether a block at its threshold takes the key: it takes a share p of the keys.
    #[inline]
    fn coin_lets_in(&self, choice: &Choice) -> bool {
        choice.digest.word(COIN_WORD) >> 32 < self.coin
    }

    /// Puts a key into a block, full or not. A counter that has reached h + 1 stays there.
    pub(super) fn put(&self, words: &mut [u64], choice: &Choice) {
        let start = choice.block as usize * self.words();
        let block = &mut words[start..start + self.words()];
        let load = self.load(block).min(self.threshold);
        block::set(block, choice.probes);
        self.set_load(block, load + 1);
    }

    /// The choice whose block has the fewest bits set; the first, if there are several.
    pub(super) fn emptiest(&self, words: &[u64], digest: Digest) -> Choice {
        let fill = |choice: &Choice| self.ones(self.block_of(words, choice));
        self.walk(digest).min_by_key(fill).unwrap_or_else(|| self.choice(digest, 0))
    }
}
