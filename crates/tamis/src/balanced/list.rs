//! The overflow list: a set of whole digests, found in one or two cache lines.
//!
//! It is a table with open addressing, at most three quarters full. Its size depends only on the
//! planned and the present number of entries, so a filter takes the same memory wherever it was
//! built.

use alloc::vec;
use alloc::vec::Vec;

use crate::address::reduce;
use crate::bits::{OutOfMemory, filled};
use crate::digest::Digest;

/// The word of a digest that says where its slot is.
const MIXED: u64 = 32;
/// A slot without an entry. Frozen.
const FREE: u64 = 0;

/// A set of digests. Digest 0 is kept as 1. The two are then the same, which adds 2^-64 to the
/// rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    slots: Vec<u64>,
    len: u64,
    planned: u64,
}

/// The number that stands for a digest in the list.
fn entry(digest: Digest) -> u64 {
    digest.0.max(1)
}

/// How many entries a list has room for: `planned`, doubled until `len` entries fit.
fn room(planned: u64, len: u64) -> u64 {
    let mut room = if len > 0 { planned.max(4) } else { planned };
    while room < len {
        room = room.saturating_mul(2);
    }
    room
}

/// How many slots a list has that is planned for `planned` entries and holds `len`.
pub(super) fn slots_for(planned: u64, len: u64) -> u64 {
    let room = room(planned, len);
    room.saturating_add(room.div_ceil(3))
}

impl List {
    /// An empty list with room for `planned` entries.
    pub(crate) fn new(planned: u64) -> Result<Self, OutOfMemory> {
        Self::with_room(planned, 0)
    }

    /// An empty list that is planned for `planned` entries and has room for `entries`.
    fn with_room(planned: u64, entries: u64) -> Result<Self, OutOfMemory> {
        Ok(Self { slots: filled(slots_for(planned, entries), FREE)?, len: 0, planned })
    }

    /// A list that is planned for `planned` entries and holds `entries`.
    pub(crate) fn of(
        planned: u64,
        mut entries: impl ExactSizeIterator<Item = u64>,
    ) -> Result<Self, OutOfMemory> {
        let mut list = Self::with_room(planned, entries.len() as u64)?;
        entries.try_for_each(|entry| list.insert(Digest(entry)))?;
        Ok(list)
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Bits of heap memory held.
    pub(crate) fn footprint(&self) -> u64 {
        self.slots.capacity() as u64 * 64
    }

    /// Bytes that the slots take.
    pub(super) fn slot_bytes(&self) -> u64 {
        self.slots.len() as u64 * 8
    }

    /// Whether another entry would make the list grow beyond its plan.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.planned
    }

    /// The slot of an entry, or the free one where it would go.
    fn find(&self, entry: u64) -> usize {
        // Keys of one crowded block share their top bits. By these bits they would crowd here too.
        let mut at = reduce(Digest(entry).word(MIXED), self.slots.len() as u64) as usize;
        while self.slots[at] != FREE && self.slots[at] != entry {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        at
    }

    #[inline]
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        self.len > 0 && self.slots[self.find(entry(digest))] != FREE
    }

    /// Adds a digest; on an error nothing has changed.
    pub(crate) fn insert(&mut self, digest: Digest) -> Result<(), OutOfMemory> {
        if self.contains(digest) {
            return Ok(());
        }
        if slots_for(self.planned, self.len + 1) > self.slots.len() as u64 {
            let mut grown = Self::with_room(self.planned, self.len + 1)?;
            for entry in self.slots.iter().copied().filter(|&entry| entry != FREE) {
                grown.put(entry);
            }
            *self = grown;
        }
        self.put(entry(digest));
        Ok(())
    }

    /// Adds an entry that is not in the list. There must be room.
    fn put(&mut self, entry: u64) {
        let at = self.find(entry);
        self.slots[at] = entry;
        self.len += 1;
    }

    /// All entries in order.
    pub(crate) fn sorted(&self) -> Vec<u64> {
        let mut entries: Vec<u64> =
            self.slots.iter().copied().filter(|&entry| entry != FREE).collect();
        entries.sort_unstable();
        entries
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        // This allocation succeeded before, when the list was made.
        let slots = slots_for(self.planned, 0) as usize;
        self.slots = vec![FREE; slots];
        self.len = 0;
    }
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.sorted() == other.sorted()
    }
}

impl Eq for List {}
