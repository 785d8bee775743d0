//! Pseudorandom numbers, the same in every run.

use tamis::Digest;
use tamis::internals::address::reduce;

/// A stream of numbers from a seed.
#[derive(Clone, Debug)]
pub(super) struct Dice {
    seed: u64,
    drawn: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed: Digest(seed).word(0), drawn: 0 }
    }

    /// Any number.
    pub(super) fn word(&mut self) -> u64 {
        self.drawn += 1;
        Digest(self.seed.wrapping_add(self.drawn)).word(1)
    }

    /// A number below `range`, which is at least 1.
    pub(super) fn below(&mut self, range: u64) -> u64 {
        reduce(self.word(), range)
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below((most.max(least) - least).saturating_add(1))
    }

    /// A number from 1 to `most`, of every magnitude with the same chance, because most faults
    /// show with small numbers.
    pub(super) fn small(&mut self, most: u64) -> u64 {
        let bits = self.below(u64::from(most.max(1).ilog2()) + 1) as u32;
        self.between(1 << bits, ((2_u64 << bits) - 1).min(most.max(1)))
    }

    /// True once in `of` times.
    pub(super) fn once_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    /// One of `of`.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}
