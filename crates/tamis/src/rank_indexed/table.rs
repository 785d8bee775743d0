//! The table behind all rank-indexed kinds: a multiset of identities that never loses one.

use alloc::vec::Vec;
use core::ops::Range;

use super::bucket::{self, Bucket, BucketMut, Cell};
use super::chains::{self, Chains};
use super::params::RankParams;
use super::plan::grown_capacity;
use super::store::Store;
use crate::address::{identity, reduce};
use crate::bits::{Line, OutOfMemory, Words};
use crate::digest::Digest;
use crate::group::{Group, Spill, merged};
use crate::spec::{Absent, Full, Invalid};

/// Equal cells that a bucket holds of one identity; further copies are counted in the spill, so that one key inserted a
/// million times takes no bucket from others. Frozen.
pub(crate) const MAX_COPIES: u32 = 16;
/// The largest counter of a cell, which stores one less than its count. Frozen.
pub(crate) const MAX_COUNTER: u64 = 3;
/// One entry of the spill for so many keys of capacity is tolerated before the table grows: at 24 bytes each they cost
/// less than a bit per key.
const KEYS_PER_SPILLED: u64 = 200;

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
pub(crate) struct Place {
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
pub(crate) struct Table {
    params: RankParams,
    mode: Mode,
    store: Store,
    /// Cells in use.
    cells: u64,
    spill: Spill,
    /// The table grows when so much is in use; its capacity, unless growing has failed before.
    grow_at: u64,
    /// The table grows when the spill has more entries.
    spill_limit: u64,
    /// Growing does not cut fingerprints narrower than this.
    narrowest: u32,
}

impl Table {
    pub(crate) fn new(params: RankParams, mode: Mode) -> Result<Self, OutOfMemory> {
        let words = Words::zeroed(params.layout().bits().div_ceil(64))?;
        Ok(Self::of_parts(params, mode, (words, 0, Spill::default())))
    }

    /// A table whose words, cells in use and spill are given. Words may lie: then so do answers, and nothing else.
    pub(super) fn of_parts(params: RankParams, mode: Mode, parts: (Words, u64, Spill)) -> Self {
        let (words, cells, spill) = parts;
        let (store, grow_at) = (Store::of_words(&params.layout(), words), params.capacity());
        let (spill_limit, narrowest) = (0, 1);
        let mut table = Self { params, mode, store, cells, spill, grow_at, spill_limit, narrowest };
        table.settle_spill_limit();
        table
    }

    /// The same, whose fingerprints become no narrower than this when it grows.
    pub(crate) fn no_narrower_than(self, narrowest: u32) -> Self {
        Self { narrowest, ..self }
    }

    /// All memory but the spill, cells in use, and the spill.
    pub(crate) fn parts(&self) -> (&Words, u64, &Spill) {
        (self.store.as_words(), self.cells, &self.spill)
    }

    /// What found no cell, to be read.
    pub(crate) fn spill_mut(&mut self) -> &mut Spill {
        &mut self.spill
    }

    pub(crate) fn params(&self) -> &RankParams {
        &self.params
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Cells and spilled entries in use.
    pub(crate) fn used(&self) -> u64 {
        self.cells + self.spill.len() as u64
    }

    /// Entries that found no cell.
    pub(crate) fn spilled(&self) -> u64 {
        self.spill.len() as u64
    }

    pub(crate) fn footprint(&self) -> u64 {
        self.store.footprint() + self.spill.footprint()
    }

    pub(crate) fn clear(&mut self) {
        self.store.clear();
        self.cells = 0;
        self.spill.clear();
    }

    #[inline]
    pub(crate) fn prefetch(&self, digest: Digest) {
        self.store.prefetch(reduce(digest.0, self.params.layout().buckets));
    }

    #[inline]
    pub(crate) fn prefetch_place(&self, place: Place) {
        self.store.prefetch(place.bucket);
    }

    /// Where a digest belongs. (The bucket is the same as the identity's quotient, without a division.)
    #[inline]
    pub(crate) fn place(&self, digest: Digest) -> Place {
        let bucket = reduce(digest.0, self.params.layout().buckets);
        self.place_in(bucket, identity(digest, self.params.universe()))
    }

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

    /// The cells with this fingerprint (and this value, if it matters), from first to last in their chain.
    #[inline]
    fn equal_cells(&self, place: Place, value: Option<u64>) -> impl Iterator<Item = (u32, Cell)> {
        bucket::chain(self.store.bucket(place.bucket), place.location)
            .skip_while(move |(_, content)| content.print < place.print)
            .take_while(move |(_, content)| content.print == place.print)
            .filter(move |(_, content)| value.is_none_or(|value| content.extra == value))
    }

    #[inline]
    pub(crate) fn contains(&self, place: Place) -> bool {
        let mut chain = bucket::chain(self.store.bucket(place.bucket), place.location);
        // In order of fingerprint.
        let found = chain.find(|(_, content)| content.print >= place.print);
        found.is_some_and(|(_, content)| content.print == place.print)
            || !self.spill.is_empty() && !self.spill.of(place.identity).is_empty()
    }

    /// How often an identity is in.
    pub(crate) fn count(&self, place: Place) -> u64 {
        let units = |content: Cell| if self.mode == Mode::Counting { content.extra + 1 } else { 1 };
        let cells: u64 = self.equal_cells(place, None).map(|(_, content)| units(content)).sum();
        cells.saturating_add(self.spill.count(place.identity))
    }

    /// The values of an identity, smallest first, each as often as it is in.
    pub(crate) fn values(&self, place: Place) -> Vec<u64> {
        let mut values: Vec<u64> =
            self.equal_cells(place, None).map(|(_, content)| content.extra).collect();
        let spilled = self.spill.of(place.identity).iter();
        values.extend(spilled.flat_map(|entry| {
            core::iter::repeat_n(entry.value, entry.count.min(MAX_COPIES.into()) as usize)
        }));
        values.sort_unstable();
        values
    }

    /// The value that cells of equal content must agree in: only a map tells them apart by it.
    fn told_apart(&self, value: u64) -> Option<u64> {
        (self.mode == Mode::Map).then_some(value)
    }

    /// Inserts; true if the identity was not in before.
    pub(crate) fn insert(&mut self, place: Place, value: u64) -> Result<bool, Full> {
        let (mut place, mut copies) = (place, self.copies(place, value));
        let new = match self.mode {
            // Others may have another value.
            Mode::Map => !self.contains(place),
            _ => copies.cells == 0 && self.spill.of(place.identity).is_empty(),
        };
        if !new && self.mode == Mode::Set {
            return Ok(false);
        }
        if self.used() >= self.grow_at {
            place = self.grow_for(place);
            copies = self.copies(place, value);
        }
        if !self.put_beside(place, value, copies) {
            if !self.spill.add(place.identity, value, 1) {
                return Err(Full { keys: self.used(), inserted: 0 });
            }
            if self.spill.len() as u64 > self.spill_limit {
                self.relieve();
            }
        }
        Ok(new)
    }

    /// The cells that are equal to one with this value.
    fn copies(&self, place: Place, value: u64) -> Copies {
        self.equal_cells(place, self.told_apart(value)).fold(Copies::default(), |copies, last| {
            Copies { cells: copies.cells + 1, last: Some(last) }
        })
    }

    /// Puts one more into the bucket: counts up, or takes a cell. False, and nothing changed, if that cannot be.
    fn put(&mut self, place: Place, value: u64) -> bool {
        self.put_beside(place, value, self.copies(place, value))
    }

    fn put_beside(&mut self, place: Place, value: u64, copies: Copies) -> bool {
        let mut view = self.store.bucket_mut(place.bucket);
        if self.mode == Mode::Counting
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
        let is_map = self.mode == Mode::Map;
        bucket::insert(&mut view, place.location, content, |a, b| {
            a.print > b.print || is_map && a.print == b.print && a.extra > b.extra
        });
        self.cells += 1;
        true
    }

    /// Removes one, with this value if the mode is `Map` and one is given; otherwise of several values the smallest.
    pub(crate) fn remove(&mut self, place: Place, value: Option<u64>) -> Result<(), Absent> {
        let spilled = self.spill.of(place.identity).iter().map(|entry| entry.value);
        let spilled = spilled.filter(|&entry| value.is_none_or(|value| value == entry)).min();
        // Only a map tells copies apart; of equal ones what is spilled goes first.
        let in_cells = match self.mode {
            Mode::Map => self.equal_cells(place, value).next().map(|(_, content)| content.extra),
            Mode::Multiset | Mode::Set | Mode::Counting => None,
        };
        if let Some(spilled) = spilled
            && in_cells.is_none_or(|in_cells| spilled <= in_cells)
        {
            self.spill.take(place.identity, spilled);
            return Ok(());
        }
        // The last of equal cells is the one that is not full.
        let (cell, content) = self.equal_cells(place, value.or(in_cells)).last().ok_or(Absent)?;
        let mut view = self.store.bucket_mut(place.bucket);
        if self.mode == Mode::Counting && content.extra > 0 {
            view.set_cell(cell, Cell { extra: content.extra - 1, ..content });
            return Ok(());
        }
        bucket::remove(&mut view, place.location, cell);
        view.release_room();
        // (Bytes may claim any number.)
        self.cells = self.cells.saturating_sub(1);
        if !self.spill.is_empty() {
            self.take_back(place.bucket);
        }
        Ok(())
    }

    /// Moves back into a bucket what was spilled from it, as far as there is room.
    fn take_back(&mut self, bucket: u64) {
        let spilled = self.spill.range(self.identities_of(bucket)).to_vec();
        for entry in spilled {
            let place = self.place_of(entry.identity);
            let mut left = entry.count;
            while left > 0 && self.put(place, entry.value) {
                self.spill.take(entry.identity, entry.value);
                left -= 1;
            }
        }
    }

    /// Takes many copies away; on an error some are gone.
    pub(crate) fn take(&mut self, group: Group) -> Result<(), Absent> {
        let value = self.told_apart(group.value);
        // The spill may count to any number; cells do not.
        let spilled = self.spill.take_up_to(group.identity, group.value, group.count);
        for _ in spilled..group.count {
            self.remove(self.place_of(group.identity), value)?;
        }
        Ok(())
    }

    /// Adds many copies at once.
    pub(crate) fn add(&mut self, group: Group) -> Result<(), Full> {
        let place = self.place_of(group.identity);
        if self.mode == Mode::Set {
            return self.insert(place, 0).map(|_| ());
        }
        let mut left = group.count;
        while left > 0 {
            if self.used() >= self.grow_at {
                // The table may have another cut afterwards; what is left goes in from the start.
                self.grow_for(place);
            }
            if !self.put(self.place_of(group.identity), group.value) {
                break;
            }
            left -= 1;
        }
        if left > 0 && !self.spill.add(group.identity, group.value, left) {
            return Err(Full { keys: self.used(), inserted: 0 });
        }
        Ok(())
    }

    /// Grows by a quarter and returns the new place of a key. If there is no memory, or no larger layout, all stays as it is
    /// and the spill takes what finds no cell.
    fn grow_for(&mut self, place: Place) -> Place {
        if !self.lay_out_for(grown_capacity(self.params.capacity().max(self.used()))) {
            // Not again for every key: planning takes longer than inserting.
            self.grow_at = self.used().saturating_mul(2).max(1);
        }
        self.place_of(place.identity)
    }

    /// Lays a table out anew that has come to hold more than it has room for, or will with `more`.
    pub(crate) fn settle(&mut self, more: u64) {
        if self.used().saturating_add(more) > self.params.capacity() {
            self.lay_out_for(self.used().saturating_add(more));
        } else if self.spilled() > self.tolerated() {
            self.relieve();
        }
    }

    /// Lays a table with a long spill out anew: for more keys if it is nearly full, or with the levels that a plan would
    /// choose if it has others. If neither, somebody chooses keys that fall into one bucket: more memory would not help.
    fn relieve(&mut self) {
        let (capacity, used) = (self.params.capacity(), self.used());
        let full = used >= capacity - capacity / 4;
        self.lay_out_for(if full { grown_capacity(capacity.max(used)) } else { capacity });
    }

    /// Lays the table out for `capacity` keys, or as many as there is a layout for. False, and only the spill is allowed to
    /// become longer, if that is the layout it has, or there is no memory.
    fn lay_out_for(&mut self, capacity: u64) -> bool {
        let params = if capacity > self.params.capacity() {
            self.params.with_room_for(capacity, self.narrowest)
        } else {
            self.params.with_capacity(capacity, self.narrowest).unwrap_or(self.params)
        };
        let other = Some(params).filter(|params| *params != self.params);
        if let Some(Ok(table)) = other.map(|params| self.rebuilt(params, 0)) {
            *self = table.no_narrower_than(self.narrowest);
            return true;
        }
        self.spill_limit = self.spill_limit.max(2 * self.spill.len() as u64);
        false
    }

    /// Entries of the spill that are no reason to grow.
    fn tolerated(&self) -> u64 {
        (self.params.capacity() / KEYS_PER_SPILLED).max(4)
    }

    fn settle_spill_limit(&mut self) {
        // If growing did not help, somebody chooses keys: then it must not go on for ever.
        self.spill_limit = self.tolerated().max(2 * self.spill.len() as u64);
    }

    /// The same content under other params, whose universe is 2^`dropped` times smaller.
    pub(crate) fn rebuilt(&self, params: RankParams, dropped: u32) -> Result<Self, Full> {
        let full = Full { keys: self.used(), inserted: 0 };
        let mut table = Self::new(params, self.mode).map_err(|_| full)?;
        let (mut from, mut groups, mut chains) = (Vec::new(), Vec::new(), Chains::default());
        let (mut bucket, per_bucket) = (0, params.identities_per_bucket());
        let is_set = self.mode == Mode::Set;
        for number in 0..self.params.layout().buckets {
            self.groups_of(number, &mut from);
            // (They are in order, but not in bytes that nobody has checked.)
            from.sort_unstable_by_key(Group::key);
            for &group in &from {
                let group = Group { identity: group.identity >> dropped, ..group };
                if group.identity - bucket * per_bucket >= per_bucket {
                    table.fill(bucket, merged(&mut groups, is_set), &mut chains)?;
                    groups.clear();
                    bucket = group.identity / per_bucket;
                }
                groups.push(group);
            }
        }
        table.fill(bucket, merged(&mut groups, is_set), &mut chains)?;
        Ok(table)
    }

    /// Lays out what an empty table is to hold: groups in order.
    pub(crate) fn fill_all(&mut self, groups: &[Group]) -> Result<(), Full> {
        let per_bucket = self.params.identities_per_bucket();
        let bucket = |group: &Group| group.identity / per_bucket;
        let mut chains = Chains::default();
        let mut buckets = groups.chunk_by(|a, b| bucket(a) == bucket(b));
        buckets.try_for_each(|groups| self.fill(bucket(&groups[0]), groups, &mut chains))
    }

    /// Lays out what an empty bucket is to hold: its groups, in order. What finds no cell is spilled, and nothing grows, so
    /// that a table which is read is laid out as it was written.
    pub(super) fn fill(
        &mut self,
        number: u64,
        groups: &[Group],
        chains: &mut Chains,
    ) -> Result<(), Full> {
        let wanted = groups.iter().map(|group| u64::from(chains::cells_of(group, self.mode)));
        let wanted = wanted.sum::<u64>().min(u32::MAX.into()) as u32;
        let room = self.store.bucket_mut(number).reserve(wanted);
        chains.clear();
        for group in groups {
            let room = room - chains.len();
            let place = self.place_in(number, group.identity);
            let left = chains.push((place.location, place.print), group, self.mode, room);
            if left > 0 && !self.spill.add(group.identity, group.value, left) {
                return Err(Full { keys: self.used(), inserted: 0 });
            }
        }
        self.store.bucket_mut(number).fill(chains.base(), chains.numbered());
        self.cells += u64::from(chains.len());
        self.settle_spill_limit();
        Ok(())
    }

    /// Adds all of another table, whose identities lose their lowest `dropped` bits.
    pub(crate) fn add_all(&mut self, other: &Self, dropped: u32) -> Result<(), Full> {
        let mut result = Ok(());
        other.for_each_group(|group| {
            if result.is_ok() {
                result = self.add(Group { identity: group.identity >> dropped, ..group });
            }
        });
        result
    }

    /// All that is in, in order of identity and value.
    pub(crate) fn for_each_group(&self, mut take: impl FnMut(Group)) {
        let mut groups = Vec::new();
        for bucket in 0..self.params.layout().buckets {
            self.groups_of(bucket, &mut groups);
            for &group in &groups {
                take(group);
            }
        }
    }

    /// What a bucket holds, the spill included, in order.
    pub(crate) fn groups_of(&self, number: u64, groups: &mut Vec<Group>) {
        groups.clear();
        let view = self.store.bucket(number);
        let start = self.identities_of(number).start;
        let width = self.params.layout().fingerprint;
        let mut base = view.base();
        while base != 0 {
            let location = base.trailing_zeros();
            base &= base - 1;
            for (_, Cell { print, extra }) in bucket::chain(view, location) {
                let identity = start + (u64::from(location) << width) + print;
                let (value, count) = match self.mode {
                    Mode::Counting => (0, extra + 1),
                    Mode::Multiset | Mode::Set | Mode::Map => (extra, 1),
                };
                match groups.last_mut() {
                    Some(last) if (last.identity, last.value) == (identity, value) => {
                        last.count += count;
                    }
                    _ => groups.push(Group { identity, value, count }),
                }
            }
        }
        for entry in self.spill.range(self.identities_of(number)) {
            match groups.binary_search_by_key(&entry.key(), Group::key) {
                Ok(at) => groups[at].count = groups[at].count.saturating_add(entry.count),
                Err(at) => groups.insert(at, *entry),
            }
        }
    }

    /// How often identities of a range are in, all together.
    pub(crate) fn count_between(&self, range: Range<u64>) -> u64 {
        let width = self.params.layout().fingerprint;
        let in_cells = range.clone().step_by(1 << width).map(|start| {
            let place = self.place_of(start);
            let chain_start = start >> width << width;
            bucket::chain(self.store.bucket(place.bucket), place.location)
                .filter(|(_, content)| range.contains(&(chain_start + content.print)))
                .count() as u64
        });
        let in_cells = in_cells.sum();
        let spilled = self.spill.range(range.clone()).iter().map(|entry| entry.count);
        spilled.fold(in_cells, u64::saturating_add)
    }

    /// Removes all of a range of identities if they fit into `gone`: what they are, less the first of the range, and how many.
    pub(crate) fn remove_all(&mut self, range: Range<u64>, gone: &mut [u32]) -> Option<usize> {
        if self.count_between(range.clone()) > gone.len() as u64 {
            return None;
        }
        let mut count = 0;
        while let Some(identity) = self.first_between(range.clone()) {
            *gone.get_mut(count)? = (identity - range.start) as u32;
            self.remove(self.place_of(identity), None).ok()?;
            count += 1;
        }
        Some(count)
    }

    /// Some one of a range of identities that is in.
    fn first_between(&self, range: Range<u64>) -> Option<u64> {
        let width = self.params.layout().fingerprint;
        let in_cells = range.clone().step_by(1 << width).find_map(|start| {
            let place = self.place_of(start);
            let chain_start = start >> width << width;
            bucket::chain(self.store.bucket(place.bucket), place.location)
                .map(|(_, content)| chain_start + content.print)
                .find(|identity| range.contains(identity))
        });
        in_cells.or_else(|| self.spill.range(range).first().map(|entry| entry.identity))
    }

    /// Checks every invariant.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        let buckets = self.params.layout().buckets;
        if !self.store.check_extensions(buckets) {
            return Err(Invalid("a bucket and its extensions disagree"));
        }
        let mut cells = 0;
        for number in 0..buckets {
            let view = self.store.bucket(number);
            cells += u64::from(view.len());
            let mut walked = 0;
            for location in 0..self.params.layout().locations {
                let mut before: Option<Cell> = None;
                for (_, content) in bucket::chain(view, location) {
                    if before.is_some_and(|before| !self.in_order(before, content)) {
                        return Err(Invalid("a chain is not in order"));
                    }
                    before = Some(content);
                    walked += 1;
                }
            }
            if walked != view.len() {
                return Err(Invalid("a cell belongs to no chain"));
            }
        }
        if cells == self.cells { Ok(()) } else { Err(Invalid("the number of cells is wrong")) }
    }

    /// Whether two cells may follow each other in a chain.
    fn in_order(&self, first: Cell, second: Cell) -> bool {
        match self.mode {
            Mode::Multiset => first.print <= second.print,
            Mode::Set => first.print < second.print,
            // Of equal fingerprints only the last counts less than four.
            Mode::Counting => {
                first.print < second.print
                    || first.print == second.print && first.extra == MAX_COUNTER
            }
            Mode::Map => first <= second,
        }
    }

    /// Distinct cache lines that a question for this place reads.
    pub(crate) fn lines_to_contain(&self, place: Place) -> u32 {
        let view = self.store.bucket(place.bucket);
        let mut walked = Vec::new();
        for (cell, content) in bucket::chain(view, place.location) {
            walked.push(cell);
            if content.print >= place.print {
                break;
            }
        }
        lines(view.spans(&walked))
    }

    /// Distinct cache lines of the records that an insertion at this place may move.
    pub(crate) fn lines_to_insert(&self, place: Place) -> u32 {
        lines(self.store.bucket(place.bucket).record_spans())
    }
}

/// Distinct cache lines among spans of bits.
fn lines(spans: Vec<(u64, u64)>) -> u32 {
    let line = |bit: u64| bit / Line::BITS;
    let of_span = |(start, bits): (u64, u64)| line(start)..=line(start + bits.max(1) - 1);
    let mut lines: Vec<u64> = spans.into_iter().flat_map(of_span).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len() as u32
}
