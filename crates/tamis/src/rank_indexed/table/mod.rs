//! The table behind all rank-indexed kinds: a multiset of identities that never loses one.

mod kind;

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;

use super::Variant;
use super::bucket::Cell;
use super::chains::{self, Chains};
use super::params::RankParams;
use super::plan::grown_capacity;
use super::store::Store;
use crate::entry::{Entry, Overflow, order};
use crate::identities::Table as _;
use crate::spec::{Full, ResizeError};

/// The most equal cells of one identity. Further copies are counted in the overflow, so that one
/// key inserted a million times does not fill a bucket. Frozen.
pub(super) const MAX_COPIES: u32 = 16;
/// The largest counter of a cell, which stores one less than its count. Frozen.
pub(super) const MAX_COUNTER: u64 = 3;
/// The overflow may have one entry for this many keys of capacity before the table grows: at 24
/// bytes each that is less than a bit per key.
const KEYS_PER_OVERFLOWN: u64 = 200;

/// What cells mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every insertion takes a cell.
    Multiset,
    /// Equal identities share a cell.
    Set,
    /// A cell counts up to four.
    Counting,
    /// A cell carries a value.
    Map,
}

/// Where a key belongs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    bucket: u64,
    location: u32,
    print: u64,
    identity: u64,
}

/// Equal cells of a chain.
#[derive(Clone, Copy, Default)]
struct Copies {
    cells: u32,
    /// The last of them is the one that is not full.
    last: Option<(u32, Cell)>,
}

/// A table of identities.
#[derive(Clone, Debug)]
pub struct Table<V> {
    params: RankParams,
    variant: PhantomData<V>,
    store: Store,
    /// Cells in use.
    cells: u64,
    overflow: Overflow,
    /// The table grows when this many cells are in use: its capacity, or more if growing has
    /// failed before.
    grow_at: u64,
    /// The table grows when the overflow has more entries.
    overflow_limit: u64,
}

impl<V: Variant> Table<V> {
    /// Where an identity belongs.
    pub(crate) fn place_of(&self, identity: u64) -> Place {
        self.place_in(identity / self.params.identities_per_bucket(), identity)
    }

    #[inline]
    fn place_in(&self, bucket: u64, identity: u64) -> Place {
        let within = identity - bucket * self.params.identities_per_bucket();
        let width = self.params.layout().fingerprint;
        Place {
            bucket,
            location: (within >> width) as u32,
            print: within & ((1 << width) - 1),
            identity,
        }
    }

    /// Location and fingerprint of an identity in its bucket.
    pub(super) fn within(&self, identity: u64) -> (u32, u64) {
        let Place { location, print, .. } = self.place_of(identity);
        (location, print)
    }

    /// The identities of a bucket.
    fn identities_of(&self, bucket: u64) -> Range<u64> {
        let per_bucket = self.params.identities_per_bucket();
        bucket * per_bucket..(bucket + 1) * per_bucket
    }

    /// The cells with this fingerprint (and this value, if it matters), from first to last in
    /// their chain.
    #[inline]
    fn equal_cells(&self, place: Place, value: Option<u64>) -> impl Iterator<Item = (u32, Cell)> {
        let chain = self.store.bucket(place.bucket).chain(place.location);
        chain
            .skip_while(move |(_, content)| content.print < place.print)
            .take_while(move |(_, content)| content.print == place.print)
            .filter(move |(_, content)| value.is_none_or(|value| content.extra == value))
    }

    /// The value that equal cells must agree in; `None` except for a map, which alone tells cells
    /// apart by it.
    fn told_apart(value: u64) -> Option<u64> {
        (V::MODE == Mode::Map).then_some(value)
    }

    /// The cells that are equal to one with this value.
    fn copies(&self, place: Place, value: u64) -> Copies {
        self.equal_cells(place, Self::told_apart(value)).fold(Copies::default(), |copies, last| {
            Copies { cells: copies.cells + 1, last: Some(last) }
        })
    }

    /// Puts one more copy into the bucket: counts up, or takes a cell. Returns false, and changes
    /// nothing, if there is no room.
    fn put(&mut self, place: Place, value: u64) -> bool {
        self.put_beside(place, value, self.copies(place, value))
    }

    fn put_beside(&mut self, place: Place, value: u64, copies: Copies) -> bool {
        let mut view = self.store.bucket_mut(place.bucket);
        if V::MODE == Mode::Counting
            && let Some((cell, content)) = copies.last
            && content.extra < MAX_COUNTER
        {
            view.set_cell(cell, Cell { extra: content.extra + 1, ..content });
            return true;
        }
        if copies.cells >= MAX_COPIES || !view.make_room() {
            return false;
        }
        let content = Cell { print: place.print, extra: value };
        let is_map = V::MODE == Mode::Map;
        view.insert(place.location, content, |a, b| {
            a.print > b.print || is_map && a.print == b.print && a.extra > b.extra
        });
        self.cells += 1;
        true
    }

    /// Moves entries of a bucket from the overflow back into it, as far as there is room.
    fn take_back(&mut self, bucket: u64) {
        let overflow = self.overflow.range(self.identities_of(bucket)).to_vec();
        for entry in overflow {
            let place = self.place_of(entry.identity);
            let mut left = entry.count;
            while left > 0 && self.put(place, entry.value) {
                self.overflow.take(entry.identity, entry.value);
                left -= 1;
            }
        }
    }

    /// Grows by a quarter and returns the new place of a key. If there is no memory, or no larger
    /// layout, the table stays as it is and the overflow takes what finds no cell.
    fn grow_for(&mut self, place: Place) -> Place {
        if !self.lay_out_for(grown_capacity(self.params.capacity().max(self.used()))) {
            // Do not try again for every key: planning takes longer than inserting.
            self.grow_at = self.used().saturating_mul(2).max(1);
        }
        self.place_of(place.identity)
    }

    /// Lays a table with a long overflow out anew: for more keys if it is nearly full, or with the
    /// levels that a plan would choose if it has others. If neither applies, an adversary chose
    /// keys of one bucket, and more memory would not help.
    fn relieve(&mut self) {
        let (capacity, used) = (self.params.capacity(), self.used());
        let full = used >= capacity - capacity / 4;
        self.lay_out_for(if full { grown_capacity(capacity.max(used)) } else { capacity });
    }

    /// Lays the table out for `capacity` keys, or as many as there is a layout for. If that is the
    /// layout it has, or there is no memory, returns false and only allows a longer overflow.
    fn lay_out_for(&mut self, capacity: u64) -> bool {
        let params = if capacity > self.params.capacity() {
            self.params.with_room_for(capacity)
        } else {
            self.params.with_capacity(capacity).unwrap_or(self.params)
        };
        let other = Some(params).filter(|params| *params != self.params);
        if let Some(Ok(table)) = other.map(|params| self.rebuilt(params, 0)) {
            *self = table;
            return true;
        }
        self.overflow_limit = self.overflow_limit.max(2 * self.overflow.len() as u64);
        false
    }

    fn reset_overflow_limit(&mut self) {
        let tolerated = (self.params.capacity() / KEYS_PER_OVERFLOWN).max(4);
        // If growing did not help, the keys are chosen; growing must not go on for ever.
        self.overflow_limit = tolerated.max(2 * self.overflow.len() as u64);
    }

    /// The same content, laid out for `capacity` keys.
    pub(super) fn resized(&self, capacity: u64) -> Result<Self, ResizeError> {
        Ok(self.rebuilt(self.params.with_capacity(capacity.max(1))?, 0)?)
    }

    /// Lays the entries of a bucket, which must be in order, out in an empty bucket. What finds no
    /// cell goes to the overflow.
    pub(super) fn lay_out_bucket(
        &mut self,
        number: u64,
        entries: impl Iterator<Item = Entry>,
        chains: &mut Chains,
    ) -> Result<(), Full> {
        chains.clear();
        let (mut room, mut can_extend) = (self.params.layout().level1, true);
        for entry in entries {
            let wanted = chains.len() + chains::cells_of(&entry, V::MODE);
            if wanted > room && can_extend {
                room = self.store.bucket_mut(number).reserve(wanted);
                // The search for an extension is long where there is none.
                can_extend = wanted <= room;
            }
            let most = room - chains.len();
            let place = self.place_in(number, entry.identity);
            let left = chains.push((place.location, place.print), &entry, V::MODE, most);
            if left > 0 && !self.overflow.add(entry.identity, entry.value, left) {
                return Err(self.full());
            }
        }
        self.cells += u64::from(chains.len());
        let base = chains.base();
        self.store.bucket_mut(number).fill(base, chains.numbered());
        Ok(())
    }

    /// Adds what a bucket holds, the overflow included, to `entries`, in order.
    pub(super) fn list_bucket(&self, number: u64, entries: &mut Vec<Entry>) {
        let identities = self.identities_of(number);
        let width = self.params.layout().fingerprint;
        let from = entries.len();
        self.store.bucket(number).for_each_cell(|location, Cell { print, extra }| {
            let identity = identities.start + (u64::from(location) << width) + print;
            let (value, count) = match V::MODE {
                Mode::Counting => (0, extra + 1),
                Mode::Multiset | Mode::Set | Mode::Map => (extra, 1),
            };
            // (Entries before are of other buckets.)
            match entries.last_mut() {
                Some(last) if (last.identity, last.value) == (identity, value) => {
                    last.count += count;
                }
                _ => entries.push(Entry { identity, value, count }),
            }
        });
        if self.overflow.is_empty() {
            return;
        }
        let overflown = self.overflow.range(identities);
        if !overflown.is_empty() {
            entries.extend_from_slice(overflown);
            order::put_in_order(entries, from, false);
        }
    }

    /// Whether two cells may follow each other in a chain.
    fn in_order(first: Cell, second: Cell) -> bool {
        match V::MODE {
            Mode::Multiset => first.print <= second.print,
            Mode::Set => first.print < second.print,
            // Of equal fingerprints only the last may count less than four.
            Mode::Counting => {
                first.print < second.print
                    || first.print == second.print && first.extra == MAX_COUNTER
            }
            Mode::Map => first <= second,
        }
    }
}
