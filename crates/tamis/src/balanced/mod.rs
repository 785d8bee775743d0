//! Filters with few memory accesses at low rates, for keys that are never removed: blocked filters
//! whose blocks are filled evenly ("balanced Bloom filters").
//!
//! After Y. Kanizo, D. Hay, I. Keslassy, "Access-Efficient Balanced Bloom Filters" (ICC 2012;
//! technical report). A blocked filter reads one block for a lookup, but most of its false
//! positives come from its fullest blocks. Here a block that is full refuses further keys. They go
//! on to another block or, in the end, to a small overflow list. A lookup follows the same way,
//! and most lookups still read one block.
//!
//! ```text
//! MHT, three choices        [block][block][block][block][block]..   83% of the blocks
//!                           [block][block]..                        14%
//!                           [block]                                  3%
//!                           list of digests                         0.5% of the keys
//!
//! block of 512 bits         |  bits of keys (B' = 507)                         | counter (5) |
//! ```
//!
//! ```
//! use tamis::BalancedMht;
//! let mut filter = BalancedMht::with_rate(10_000, 0.0001)?;
//! filter.insert("apple")?;
//! assert!(filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Kinds
//!
//! - [`BalancedSingle`]: one choice, then the list.
//! - [`BalancedSequential`]: up to four choices in one table.
//! - [`BalancedMht`]: up to four choices, each in a subtable of its own, every subtable smaller
//!   than the one before. A block counts its keys and refuses from a threshold on. At the
//!   threshold itself a coin decides, which is part of the key's digest.
//! - [`BalancedPopcount`]: as MHT, but a block refuses a key if more than `threshold` of its bits
//!   would be set. It has no counter and no coin, and the lowest rate of these four.
//! - [`BalancedTwoChoice`]: a key goes to the emptier of two blocks. Both are always read, and
//!   there is no list.
//!
//! # Limits
//!
//! Nothing can be removed: bits are shared, and a block that opened again would hide the keys that
//! it has sent on. Blocks have 256 or 512 bits. There are at most 32 bits for a key, 4 choices and
//! 2^39 blocks.
//!
//! Keys beyond the planned number are accepted: the list grows, unless [`Policy`] says otherwise,
//! and the rate rises as the model says.
//!
//! "Blocks read" are blocks of the array; a walk that ends in the list reads one or two cache
//! lines more.

mod chain;
mod kind;
mod list;
pub(crate) mod model;
mod params;
mod plan;
mod profile;
mod replace;
mod two_choice;
mod walk;

use alloc::vec::Vec;

pub use params::{BalancedParams, Layout, Policy};

use self::list::List;
use self::walk::{Answer, Choice};
use crate::bits::{self, Words};
use crate::block::{self, Backend};
use crate::digest::Digest;
use crate::filter::{Filter, Insert};
use crate::spec::{Full, Kind, Label, digest_floor};

/// The word of a choice's digest that is its coin. Frozen.
const COIN_WORD: u64 = 16;

/// How a block refuses keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// By the number of its keys.
    Counter,
    /// By the number of its set bits.
    Ones,
    /// Never: the emptiest of a key's blocks takes it.
    Least,
}

/// Where a key's walk ends.
enum End {
    /// A block or the list holds it, or seems to.
    Held,
    /// At a block that would take it.
    Open(Choice),
    /// All its blocks refuse it, and it is not in the list.
    Nowhere,
}

/// How keys are spread over blocks; one type a kind.
pub trait Scheme: sealed::Sealed {}

impl<S: sealed::Sealed> Scheme for S {}

mod sealed {
    /// What distinguishes a scheme. It is sealed, so that there are no others.
    pub trait Sealed: core::fmt::Debug + Copy + PartialEq + Eq {
        const KIND: crate::spec::Kind;
        const REASON: &'static str;
        #[expect(private_interfaces, reason = "sealed")]
        const RULE: super::Rule;
        /// Whether all choices lie in one table.
        const SHARED: bool;
        const MOST_CHOICES: u32;
        /// The range of choices in words.
        const CHOICES: &'static str;
    }
}

macro_rules! schemes {
    ($($name:ident $kind:ident $rule:ident $shared:literal $most:literal $range:literal $doc:literal
        $reason:literal)*) => {
        $(
            #[doc = $doc]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name {}

            impl sealed::Sealed for $name {
                const KIND: Kind = Kind::$kind;
                const REASON: &'static str = $reason;
                #[expect(private_interfaces, reason = "sealed")]
                const RULE: Rule = Rule::$rule;
                const SHARED: bool = $shared;
                const MOST_CHOICES: u32 = $most;
                const CHOICES: &'static str = $range;
            }
        )*
    };
}
// Name, kind, rule, whether all choices lie in one table, the most choices and their range; what
// it is, and when to take it.
schemes! {
    Single BalancedSingle Counter true 1 "1" "One choice."
        "as blocked, with a list for the keys of its fullest blocks"
    Sequential BalancedSequential Counter true 4 "1 to 4" "Choices in one table."
        "as blocked, but full blocks send keys on in one table: most lookups read one block"
    Mht BalancedMht Counter false 4 "1 to 4" "Choices in subtables."
        "as blocked, but full blocks send keys on to smaller tables: most lookups read one block"
    Popcount BalancedPopcount Ones false 4 "1 to 4" "As MHT, limited by set bits."
        "as balanced-mht, but a block is full when enough of its bits are set: for low rates"
    TwoChoice BalancedTwoChoice Least true 2 "1 or 2" "The emptier one of two blocks."
        "a key goes to the emptier of two blocks; a lookup reads two at most, and there is no list"
}

/// A blocked filter with a list for the keys of its fullest blocks; see [the module](self).
pub type BalancedSingle = Balanced<Single>;
/// A blocked filter whose full blocks send keys on in one table; see [the module](self).
pub type BalancedSequential = Balanced<Sequential>;
/// A blocked filter whose full blocks send keys on to smaller tables; see [the module](self).
pub type BalancedMht = Balanced<Mht>;
/// A blocked filter for low rates: as [`BalancedMht`], with blocks that are limited by their set
/// bits. It has the lowest rate of the four kinds with a list; see [the module](self).
pub type BalancedPopcount = Balanced<Popcount>;
/// A blocked filter for low rates, without a list: a key goes to the emptier of two blocks, and
/// both are read.
///
/// ```compile_fail
/// use tamis::{Insert, BalancedTwoChoice, Remove};
/// let mut filter = BalancedTwoChoice::with_rate(100, 0.01).unwrap();
/// filter.remove("apple"); // Bits are shared: removing one key would lose another.
/// ```
pub type BalancedTwoChoice = Balanced<TwoChoice>;

/// A balanced filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balanced<S> {
    params: BalancedParams<S>,
    label: Label,
    words: Words,
    list: List,
    backend: Backend,
}

impl<S: Scheme> Balanced<S> {
    /// The words of each block, subtable after subtable.
    pub fn blocks(&self) -> impl Iterator<Item = &[u64]> {
        self.words.as_slice().chunks_exact(self.params.layout().words())
    }

    /// The digests in the overflow list, in order.
    pub fn listed(&self) -> Vec<u64> {
        self.list.sorted()
    }

    /// The chance that a block of subtable `stage` holds an absent key, and the chance that it
    /// refuses it; the mean over all its blocks.
    fn met_by_absent_keys(&self, powers: &[f64], refusals: &[f64], stage: u32) -> (f64, f64) {
        let layout = self.params.layout();
        let (start, size) = layout.subtable(stage);
        let coin = layout.coin as f64 / params::ONE as f64;
        let (mut held, mut refused) = (0.0, 0.0);
        for block in self.blocks().skip(start as usize).take(size as usize) {
            let ones = layout.ones(block) as usize;
            held += powers[ones];
            refused += match (layout.rule, layout.load(block).cmp(&layout.threshold)) {
                (Rule::Ones, _) => refusals[ones],
                (Rule::Counter, core::cmp::Ordering::Less) => 0.0,
                (Rule::Counter, core::cmp::Ordering::Equal) => (1.0 - coin) * (1.0 - powers[ones]),
                _ => 1.0 - powers[ones],
            };
        }
        (held / size as f64, refused / size as f64)
    }

    /// Where a key's walk ends.
    #[inline]
    fn follow(&self, digest: Digest) -> End {
        let layout = self.params.layout();
        let words = self.words.as_slice();
        for choice in layout.walk(digest) {
            match layout.ask(self.backend, layout.block_of(words, &choice), &choice) {
                Answer::Held => return End::Held,
                Answer::Open => return End::Open(choice),
                Answer::Refused => {}
            }
        }
        if self.list.contains(digest) { End::Held } else { End::Nowhere }
    }
}

impl<S: Scheme> Filter for Balanced<S> {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        matches!(self.follow(digest), End::Held)
    }

    /// The first block, and the second where that is always read.
    #[inline]
    fn prefetch(&self, digest: Digest) {
        let layout = self.params.layout();
        let sure = if layout.rule == Rule::Least { layout.choices } else { 1 };
        for stage in 0..sure {
            let block = layout.choice(digest, stage).block as usize;
            bits::prefetch(self.words.as_slice(), block * layout.words());
        }
    }

    fn footprint(&self) -> u64 {
        self.words.footprint() + self.list.footprint()
    }

    /// Computed from the set bits and the counter of every block: they say how likely it is that a
    /// block holds an absent key, and that it refuses it.
    fn rate(&self) -> f64 {
        let layout = self.params.layout();
        let (bits, k) = (layout.key_bits(), layout.hashes);
        let throws = chain::Throws::new(bits, k);
        let refusals = throws.refusals(layout.threshold);
        let tables: Vec<(f64, f64)> = (0..layout.subtables())
            .map(|stage| self.met_by_absent_keys(throws.held(), &refusals, stage))
            .collect();
        let walk = (0..layout.choices as usize).map(|stage| tables[stage.min(tables.len() - 1)]);
        let rate = walk.rev().fold(0.0, |rest, (held, refused)| held + refused * rest);
        (rate + digest_floor(self.label.keys)).min(1.0)
    }

    fn fill(&self) -> f64 {
        let layout = self.params.layout();
        let ones: u64 = self.blocks().map(|block| u64::from(layout.ones(block))).sum();
        ones as f64 / (layout.blocks * u64::from(layout.key_bits())) as f64
    }

    /// Keys in the list; `None` where there is none.
    fn overflow(&self) -> Option<u64> {
        (S::RULE != Rule::Least).then(|| self.list.len())
    }

    /// The different blocks that a walk visits.
    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        let layout = self.params.layout();
        let mut seen: Vec<u64> = Vec::new();
        for choice in layout.walk(digest) {
            if !seen.contains(&choice.block) {
                seen.push(choice.block);
            }
            let block = layout.block_of(self.words.as_slice(), &choice);
            if layout.ask(self.backend, block, &choice) != Answer::Refused {
                break;
            }
        }
        seen.len() as u32
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        self.blocks_to_contain(digest)
    }
}

impl<S: Scheme> Insert for Balanced<S> {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let layout = *self.params.layout();
        let full = Full { keys: self.label.keys, inserted: 0 };
        let end = self.follow(digest);
        match end {
            End::Held => {}
            End::Open(choice) => layout.put(self.words.as_mut_slice(), &choice),
            End::Nowhere => {
                let no_room = layout.policy != Policy::Grow && self.list.is_full();
                if no_room && layout.policy == Policy::Error {
                    return Err(full);
                }
                // With `Rule::Least` there is no list: the emptiest block takes every key.
                let forced = no_room || layout.rule == Rule::Least;
                if forced {
                    let choice = layout.emptiest(self.words.as_slice(), digest);
                    layout.put(self.words.as_mut_slice(), &choice);
                } else {
                    self.list.insert(digest).map_err(|_| full)?;
                }
            }
        }
        let new = !matches!(end, End::Held);
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }
}

face!(<S: Scheme> Balanced<S>);
try_inserts!(<S: Scheme> Balanced<S>);

impl Layout {
    /// Set bits of a block beside its counter.
    pub(crate) fn ones(&self, block: &[u64]) -> u32 {
        block::ones(block) - self.load(block).count_ones()
    }
}
