//! The parameters of a balanced filter, and the layout that follows from them.

use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use super::{Rule, Scheme};
use crate::address::MAX_BLOCK_PROBES;
use crate::spec::{InvalidParam, Params, as_stored, require};

/// The most choices of a key.
const MAX_CHOICES: u32 = 4;
/// The highest threshold of a counter: ten bits of the block.
pub(super) const MAX_THRESHOLD: u32 = 1022;
/// The most blocks: far beyond any memory, and safe from overflow.
pub(crate) const MAX_BLOCKS: u64 = 1 << 39;
/// The most entries that a list is planned for.
const MAX_LIST: u64 = 1 << 40;
/// Coins and ratios are shares of this.
pub(super) const ONE: u64 = 1 << 32;

/// What happens to a key that no block takes when the list is full. No key is lost under any
/// policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Policy {
    /// The list grows.
    Grow = 0,
    /// The insertion fails, and the filter is unchanged.
    Error = 1,
    /// The emptiest of the key's blocks takes it all the same. Without any list, this raises the
    /// rate by 0.04 to 0.08 orders of magnitude.
    Force = 2,
}

/// Every number that fixes how the memory of a filter is cut. The walk and the models use it,
/// whatever the scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How a block refuses.
    pub(crate) rule: Rule,
    /// Whether all choices of a key are in one table. Otherwise each is in a subtable of its own.
    pub(crate) shared: bool,
    /// Blocks in all.
    pub blocks: u64,
    /// Bits of a block.
    pub block: u32,
    /// Bits that a key sets.
    pub hashes: u32,
    /// Blocks that a key may be in.
    pub choices: u32,
    /// The blocks of a subtable divided by those of the one before, in units of 2^-32; 0 where
    /// there is one table.
    pub ratio: u64,
    /// Keys, or set bits, up to which a block takes any key; 0 where there is no limit.
    pub threshold: u32,
    /// The share of keys that a block at its threshold takes, in units of 2^-32.
    pub coin: u64,
    /// Entries that the overflow list has room for from the start.
    pub list: u64,
    /// What happens when the list is full.
    pub policy: Policy,
    /// Where each subtable starts, and where the last one ends.
    starts: [u64; MAX_CHOICES as usize + 1],
}

impl Layout {
    /// Bits of the counter in a block.
    pub fn counter_bits(&self) -> u32 {
        match self.rule {
            Rule::Counter => super::model::counter_bits(self.threshold),
            Rule::Ones | Rule::Least => 0,
        }
    }

    /// Bits of a block that keys set.
    pub fn key_bits(&self) -> u32 {
        self.block - self.counter_bits()
    }

    /// Words of a block.
    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.block as usize / 64
    }

    /// The first block of choice `stage` and how many there are.
    #[inline]
    pub fn subtable(&self, stage: u32) -> (u64, u64) {
        let (start, end) = (self.starts[stage as usize], self.starts[stage as usize + 1]);
        if self.shared { (0, self.blocks) } else { (start, end - start) }
    }

    /// How many subtables there are.
    pub fn subtables(&self) -> u32 {
        if self.shared { 1 } else { self.choices }
    }
}

/// Where each subtable starts, and where the last one ends.
///
/// Subtable j + 1 has `ratio` / 2^32 times the blocks of subtable j, but at least one. What
/// rounding leaves is given to the first.
fn starts(blocks: u64, choices: u32, ratio: u64) -> [u64; MAX_CHOICES as usize + 1] {
    let mut weights = [0_u64; MAX_CHOICES as usize];
    let mut weight = ONE;
    for slot in &mut weights[..choices as usize] {
        *slot = weight;
        weight = (u128::from(weight) * u128::from(ratio) / u128::from(ONE)) as u64;
    }
    let sum: u64 = weights.iter().sum();
    let mut starts = [blocks; MAX_CHOICES as usize + 1];
    for stage in (1..choices as usize).rev() {
        let share = u128::from(blocks) * u128::from(weights[stage]) / u128::from(sum);
        starts[stage] = starts[stage + 1] - (share as u64).max(1);
    }
    starts[0] = 0;
    starts
}

/// Layout of a [`Balanced`](super::Balanced) filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalancedParams<S> {
    layout: Layout,
    scheme: PhantomData<S>,
}

impl<S: Scheme> BalancedParams<S> {
    /// How the memory is cut.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Params of a smaller filter whose blocks behave alike. `scale` maps the number of blocks,
    /// and the number of entries that the list is planned for, to those of the smaller filter.
    pub(super) fn scaled(&self, scale: impl Fn(u64) -> u64) -> Self {
        let Layout { blocks, choices, ratio, list, .. } = self.layout;
        let blocks = scale(blocks).max(choices.into());
        let starts = starts(blocks, choices, ratio);
        Self { layout: Layout { blocks, list: scale(list), starts, ..self.layout }, ..*self }
    }

    /// Bits in the array.
    pub fn bits(&self) -> u64 {
        self.layout.blocks * u64::from(self.layout.block)
    }
}

impl<S: Scheme> Params for BalancedParams<S> {
    const NAMES: &'static [&'static str] =
        &["blocks", "block", "hashes", "choices", "ratio", "threshold", "coin", "list", "policy"];

    fn values(&self) -> Vec<u64> {
        let Layout { blocks, block, hashes, choices, ratio, threshold, coin, list, policy, .. } =
            self.layout;
        let small = [block, hashes, choices].map(u64::from);
        let [block, hashes, choices] = small;
        vec![blocks, block, hashes, choices, ratio, threshold.into(), coin, list, policy as u64]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let values: [u64; 9] = as_stored(values)?;
        let check = |at: usize, most: u64, expected| {
            let value = values[at];
            let fits = value <= most && (value > 0 || at > 3);
            require(fits, Self::NAMES[at], value, expected).map(|()| value)
        };
        let blocks = check(0, MAX_BLOCKS, "1 to 2^39")?;
        require(matches!(values[1], 256 | 512), "block", values[1], "256 or 512 bits")?;
        let block = values[1] as u32;
        let hashes = check(2, MAX_BLOCK_PROBES.into(), "1 to 32")? as u32;
        let choices = check(3, S::MOST_CHOICES.into(), S::CHOICES)? as u32;
        let fits = u64::from(choices) <= blocks;
        require(fits, "choices", choices, "at most one for each block")?;
        let ratio = if choices == 1 || S::SHARED {
            check(4, 0, "0, because there is one table")?
        } else {
            check(4, ONE, "0 to 2^32")?
        };
        let threshold = match S::RULE {
            Rule::Counter => check(5, MAX_THRESHOLD.into(), "0 to 1022 keys")?,
            Rule::Ones => check(5, block.into(), "at most the bits of a block")?,
            Rule::Least => check(5, 0, "0, because there is none")?,
        } as u32;
        let coin = match S::RULE {
            Rule::Counter => check(6, ONE, "0 to 2^32")?,
            Rule::Ones | Rule::Least => check(6, 0, "0, because there is none")?,
        };
        let list = match S::RULE {
            Rule::Least => check(7, 0, "0, because there is none")?,
            Rule::Counter | Rule::Ones => check(7, MAX_LIST, "at most 2^40 entries")?,
        };
        let policy = match S::RULE {
            Rule::Least => check(8, 0, "0, because there is no list")?,
            Rule::Counter | Rule::Ones => check(8, 2, "0 (grow), 1 (error) or 2 (force)")?,
        };
        let policy = [Policy::Grow, Policy::Error, Policy::Force][policy as usize];
        let layout = Layout {
            rule: S::RULE,
            shared: S::SHARED,
            blocks,
            block,
            hashes,
            choices,
            ratio,
            threshold,
            coin,
            list,
            policy,
            starts: starts(blocks, choices, ratio),
        };
        Ok(Self { layout, scheme: PhantomData })
    }
}
