//! The blocks and what is behind them as one table, which grows.

mod back;
mod batch;
mod blocks;
mod bulk;
mod kind;
mod pass;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use self::back::{Back, Part};
use self::blocks::Blocks;
use super::params::BlockedRankParams;
use super::place::Place;
use crate::bits::Words;
use crate::entry::{Entry, Overflow};
use crate::identities::Table as _;

/// The bits that blocks behind blocks take beside their words.
pub(super) const OWN_BITS: u64 = 8 * size_of::<Blocks>() as u64;

/// A table of identities.
#[derive(Clone, Debug)]
pub struct Table {
    params: BlockedRankParams,
    front: Blocks,
    /// The table grows when more is listed.
    grow_above: u64,
}

impl Table {
    /// A table of the words in front, those of the levels behind, and the list at the end.
    pub(super) fn of_parts(
        params: BlockedRankParams,
        front: Words,
        behind: Vec<Words>,
        list: Vec<Entry>,
    ) -> Self {
        let mut back = Back::List(Overflow::from_entries(list));
        let levels: Vec<_> = params.levels().skip(1).zip(behind).collect();
        for (level, words) in levels.into_iter().rev() {
            back = Back::Blocks(Box::new(Blocks::new(&level, words, back)));
        }
        let front = Blocks::new(&params.front, front, back);
        Self { params, front, grow_above: params.most_listed() }
    }

    /// The words of every level, those in front first, and the list at the end.
    pub(super) fn parts(&self) -> (Vec<&Words>, &Overflow) {
        let mut words = vec![&self.front.words];
        let mut back = &self.front.back;
        loop {
            match back {
                Back::Blocks(blocks) => {
                    words.push(&blocks.words);
                    back = &blocks.back;
                }
                Back::List(list) => return (words, list),
            }
        }
    }

    /// A copy in which all runs are where they fit; `None` if they already are.
    pub(super) fn brought_back(&self) -> Option<Self> {
        self.front.lags().then(|| {
            let mut copy = self.clone();
            copy.front.bring_back();
            copy
        })
    }

    /// Where an identity belongs.
    #[inline]
    pub(super) fn place_of(&self, identity: u64) -> Place {
        self.front.cut.place_of(identity)
    }

    /// Calls `take` with every value of the identity of a place and its count, in order.
    pub(super) fn for_each_value(&self, place: Place, take: &mut dyn FnMut(u64, u64)) {
        let cut = &self.front.cut;
        self.front
            .for_each(Part { first: cut.identity(place), width: cut.shape.value.into() }, take);
    }

    /// Uses portable instructions only.
    pub(super) fn make_portable(&mut self) {
        self.front.make_portable();
    }

    /// Grows to twice the blocks if too much is listed, and there are keys enough to fill them.
    #[inline]
    fn grow_if_crowded(&mut self) {
        if self.front.list().len() as u64 > self.grow_above {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let (listed, used, room) =
            (self.front.list().len() as u64, self.used(), self.params.room());
        if used < room {
            // If few keys fill the list, an adversary chose them, the blocks were planned so, or
            // keys come block by block: more blocks would not help yet. Looking at all blocks
            // takes long, so this waits for a share of the keys that are missing.
            self.grow_above = listed + ((room - used) / 8).max(16);
            return;
        }
        let grown = self.params.grown().ok().and_then(|params| self.rebuilt(params, 0).ok());
        match grown {
            Some(table) => *self = table,
            // Do not try again for every key.
            None => self.grow_above = self.grow_above.saturating_mul(2),
        }
    }
}
