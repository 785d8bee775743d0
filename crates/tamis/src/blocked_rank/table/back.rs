//! What is behind blocks: blocks again, or a list.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::blocks::Blocks;
use crate::entry::{Entry, Overflow};
use crate::spec::{Absent, Full};

/// What is behind blocks.
#[derive(Clone, Debug)]
pub(super) enum Back {
    Blocks(Box<Blocks>),
    /// Sorted, and counts to any number.
    List(Overflow),
}

/// The identities behind one location of the blocks in front: those that begin at `first` and
/// differ in their `width` lowest bits only. They are neighbours in one location behind.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) first: u64,
    pub(super) width: u32,
}

impl Part {
    fn range(self) -> core::ops::Range<u64> {
        self.first..self.first + (1 << self.width)
    }
}

impl Back {
    pub(super) fn prefetch(&self, identity: u64) {
        if let Self::Blocks(blocks) = self {
            blocks.prefetch(blocks.cut.place_of(identity));
        }
    }

    /// Whether there is an identity that differs from `identity` in the lowest `value` bits only,
    /// which must be 0.
    pub(super) fn contains(&self, identity: u64, value: u8) -> bool {
        match self {
            Self::Blocks(blocks) => blocks.contains(blocks.cut.place_of(identity)),
            Self::List(list) => !list.range(identity..identity + (1 << value)).is_empty(),
        }
    }

    pub(super) fn insert(&mut self, identity: u64) -> Result<bool, Full> {
        match self {
            Self::Blocks(blocks) => blocks.insert(blocks.cut.place_of(identity)),
            Self::List(list) => {
                let is_new = list.count(identity) == 0;
                if list.add(identity, 0, 1) { Ok(is_new) } else { Err(FULL) }
            }
        }
    }

    /// Inserts fingerprints of a part of which nothing else is in: all or, if there is no memory,
    /// none. They come in order, and less the first of the part.
    pub(super) fn insert_part(
        &mut self,
        part: Part,
        prints: &mut dyn Iterator<Item = u64>,
    ) -> Result<(), Full> {
        match self {
            Self::Blocks(blocks) => blocks.insert_part(part, prints),
            Self::List(list) => {
                for print in prints {
                    if !list.add(part.first + print, 0, 1) {
                        list.drain(part.range());
                        return Err(FULL);
                    }
                }
                Ok(())
            }
        }
    }

    pub(super) fn add(&mut self, identity: u64, count: u64) -> Result<(), Full> {
        match self {
            Self::Blocks(blocks) => blocks.add(blocks.cut.place_of(identity), count),
            Self::List(list) => list.add(identity, 0, count).then_some(()).ok_or(FULL),
        }
    }

    pub(super) fn remove(&mut self, identity: u64) -> Result<(), Absent> {
        match self {
            Self::Blocks(blocks) => blocks.remove(blocks.cut.place_of(identity)),
            Self::List(list) => list.take(identity, 0).then_some(()).ok_or(Absent),
        }
    }

    pub(super) fn take(&mut self, identity: u64, count: u64) -> Result<(), Absent> {
        match self {
            Self::Blocks(blocks) => blocks.take(blocks.cut.place_of(identity), count),
            Self::List(list) => {
                (list.take_up_to(identity, 0, count) == count).then_some(()).ok_or(Absent)
            }
        }
    }

    /// Calls `take` with every fingerprint of a part, less the first, and its count, in order.
    pub(super) fn for_each(&self, part: Part, take: &mut dyn FnMut(u64, u64)) {
        match self {
            Self::Blocks(blocks) => blocks.for_each(part, take),
            Self::List(list) => {
                for entry in list.range(part.range()) {
                    take(entry.identity - part.first, entry.count);
                }
            }
        }
    }

    pub(super) fn count_of(&self, part: Part) -> u64 {
        let mut all = 0_u64;
        self.for_each(part, &mut |_, count| all = all.saturating_add(count));
        all
    }

    pub(super) fn has(&self, part: Part) -> bool {
        match self {
            Self::Blocks(blocks) => blocks.has(part),
            Self::List(list) => !list.range(part.range()).is_empty(),
        }
    }

    pub(super) fn take_part(&mut self, part: Part, most: u64, take: &mut dyn FnMut(u64)) -> bool {
        match self {
            Self::Blocks(blocks) => blocks.take_part(part, most, take),
            Self::List(list) => {
                let entries = list.range(part.range()).iter().map(|entry| entry.count);
                if entries.fold(0, u64::saturating_add) > most {
                    return false;
                }
                for entry in list.drain(part.range()) {
                    for _ in 0..entry.count {
                        take(entry.identity - part.first);
                    }
                }
                true
            }
        }
    }

    /// Takes what blocks in front refuse, in order, every identity once. Nothing is in yet.
    pub(super) fn fill(&mut self, entries: Vec<Entry>) -> Result<(), Full> {
        match self {
            Self::Blocks(blocks) => blocks.fill(entries.into_iter()),
            Self::List(list) => list.fill(entries).then_some(()).ok_or(FULL),
        }
    }

    pub(super) fn used(&self) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks.used(),
            Self::List(list) => list.len() as u64,
        }
    }

    /// Keys, each as often as it is in.
    pub(super) fn keys(&self) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks.cells().saturating_add(blocks.back.keys()),
            Self::List(list) => {
                list.entries().iter().fold(0, |all, entry| all.saturating_add(entry.count))
            }
        }
    }

    pub(super) fn footprint(&self) -> u64 {
        match self {
            Self::Blocks(blocks) => blocks.footprint() + super::OWN_BITS,
            Self::List(list) => list.footprint(),
        }
    }

    pub(super) fn lines(&self, identity: u64) -> u32 {
        match self {
            Self::Blocks(blocks) => blocks.lines_to_contain(blocks.cut.place_of(identity)),
            Self::List(list) => (list.len() + 1).ilog2() + 1,
        }
    }
}

/// There is no memory. (How many keys are in is known to the caller.)
pub(super) const FULL: Full = Full { keys: 0, inserted: 0 };
