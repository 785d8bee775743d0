//! The table as a kind of filter.

use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

use super::super::chains::Chains;
use super::super::params::RankParams;
use super::super::store::Store;
use super::super::{Variant, model, plan, sections};
use super::{Cell, MAX_COPIES, Mode, Place, Table};
use crate::address::{identity, reduce};
use crate::bits::{Line, OutOfMemory};
use crate::digest::Digest;
use crate::entry::{Entry, Overflow, order};
use crate::filter::{Count, Remove};
use crate::identities::{self, CHUNK, Identities};
use crate::spec::{
    Absent, Full, Goal, Invalid, InvalidParam, Kind, Lines, Operation, PlanError, Prediction,
    ResizeError, WireError, explain, require,
};
use crate::wire::{Frame, Payload};

impl<V: Variant> identities::Table for Table<V> {
    const KIND: Kind = V::KIND;
    const CAN: &'static [Operation] = V::CAN;
    const VALUES: Option<&'static str> = match V::MODE {
        Mode::Map => Some("extra"),
        _ => None,
    };
    const REASON: &'static str = V::REASON;
    const MARGINS: [f64; 2] = identities::MARGINS;
    const IS_SET: bool = matches!(V::MODE, Mode::Set);
    type Params = RankParams;
    type Place = Place;

    fn least(goal: &Goal) -> Result<RankParams, PlanError> {
        plan::plan(V::KIND.name(), goal, V::EXTRA)
    }

    fn predict(params: &RankParams, keys: u64) -> Prediction {
        plan::predict(params, keys, V::MODE)
    }

    fn planned_bits(params: &RankParams) -> u64 {
        params.layout().bits()
    }

    /// Paper 000.
    fn explain(params: &RankParams, n: u64, out: &mut Lines) {
        let layout = params.layout();
        let model::Layout { buckets: b, locations: l, fingerprint: r, extra, .. } = layout;
        let pointer = model::pointer_bits(layout.second);
        explain! { out;
            "symbols": "n = {n} keys, B = {b} buckets, L = {l} locations, r = {r} bits";
            "universe": "U = B L 2^r = {}", params.universe();
            "chains": "lambda = n / (B L) = {:.4}", layout.lambda(n);
            "rate": "f = 1 - (1 - 1/U)^n = {:.4e}; the paper's bound lambda 2^-r = {:.4e}",
                model::rate(&layout, n), model::rate_bound(&layout, n);
            "bucket": "S1 = L + Z1 c + 1 + ceil(log2 J2) = {l} + {} * {} + 1 + {pointer} = {} bits",
                layout.level1, 1 + r + extra, layout.bucket_bits();
            "levels": "J2 = {} of S2 = {} bits, J3 = {} of S3 = {} bits, in each of S = {} groups",
                layout.second, layout.second_bits(), layout.third, layout.third_bits(),
                layout.groups;
            "memory": "B S1 + S (J2 S2 + J3 S3) = {} bits", layout.bits();
            "overflow": "a key finds no cell with chance Po <= {:.1e}",
                model::overflow_bound(&layout, n);
        }
    }

    fn universe(params: &RankParams) -> u64 {
        params.universe()
    }

    fn value_bits(params: &RankParams) -> u32 {
        if V::MODE == Mode::Map { params.layout().extra } else { 0 }
    }

    fn content_params(params: &RankParams) -> Vec<(&'static str, u64)> {
        vec![("universe", params.universe()), ("extra", params.layout().extra.into())]
    }

    fn checked(params: RankParams) -> Result<RankParams, InvalidParam> {
        let extra = params.layout().extra;
        let fits = if V::MODE == Mode::Map { extra > 0 } else { extra == V::EXTRA };
        require(fits, "extra", extra, "the counter or value bits of the kind").map(|()| params)
    }

    /// Counter bits are those of the kind, and a map has at least one value bit, whatever the
    /// params say.
    fn new(params: RankParams) -> Result<Self, OutOfMemory> {
        let extra = params.layout().extra;
        let right = if V::MODE == Mode::Map { extra.max(1) } else { V::EXTRA };
        let params = if extra == right { params } else { params.with_extra(right) };
        let mut table = Self {
            params,
            variant: PhantomData,
            store: Store::new(&params.layout())?,
            cells: 0,
            overflow: Overflow::default(),
            grow_at: params.capacity(),
            overflow_limit: 0,
        };
        table.reset_overflow_limit();
        Ok(table)
    }

    fn params(&self) -> RankParams {
        self.params
    }

    #[inline]
    fn place(&self, digest: Digest) -> Place {
        let bucket = reduce(digest.0, self.params.layout().buckets);
        self.place_in(bucket, identity(digest, self.params.universe()))
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.store.prefetch(reduce(digest.0, self.params.layout().buckets));
    }

    #[inline]
    fn contains(&self, place: Place) -> bool {
        let mut chain = self.store.bucket(place.bucket).chain(place.location);
        // Chains are in order of fingerprint.
        let found = chain.find(|(_, content)| content.print >= place.print);
        found.is_some_and(|(_, content)| content.print == place.print)
            || !self.overflow.is_empty() && !self.overflow.of(place.identity).is_empty()
    }

    fn count(&self, place: Place) -> u64 {
        let units = |content: Cell| if V::MODE == Mode::Counting { content.extra + 1 } else { 1 };
        let cells: u64 = self.equal_cells(place, None).map(|(_, content)| units(content)).sum();
        cells.saturating_add(self.overflow.count(place.identity))
    }

    fn values(&self, place: Place) -> Vec<u64> {
        let mut values: Vec<u64> =
            self.equal_cells(place, None).map(|(_, content)| content.extra).collect();
        let overflow = self.overflow.of(place.identity).iter();
        values.extend(overflow.flat_map(|entry| {
            core::iter::repeat_n(entry.value, entry.count.min(MAX_COPIES.into()) as usize)
        }));
        values.sort_unstable();
        values
    }

    fn insert(&mut self, place: Place, value: u64) -> Result<bool, Full> {
        let (mut place, mut copies) = (place, self.copies(place, value));
        let new = match V::MODE {
            // Other copies may have another value.
            Mode::Map => !self.contains(place),
            _ => copies.cells == 0 && self.overflow.of(place.identity).is_empty(),
        };
        if !new && V::MODE == Mode::Set {
            return Ok(false);
        }
        if self.used() >= self.grow_at {
            place = self.grow_for(place);
            copies = self.copies(place, value);
        }
        if !self.put_beside(place, value, copies) {
            if !self.overflow.add(place.identity, value, 1) {
                return Err(self.full());
            }
            if self.overflow.len() as u64 > self.overflow_limit {
                self.relieve();
            }
        }
        Ok(new)
    }

    fn remove(&mut self, place: Place, value: Option<u64>) -> Result<(), Absent> {
        let overflow = self.overflow.of(place.identity).iter().map(|entry| entry.value);
        let in_overflow = overflow.filter(|&entry| value.is_none_or(|value| value == entry)).min();
        // Only a map tells copies apart. Of equal copies those in the overflow are removed first.
        let in_cells = match V::MODE {
            Mode::Map => self.equal_cells(place, value).next().map(|(_, content)| content.extra),
            Mode::Multiset | Mode::Set | Mode::Counting => None,
        };
        if let Some(value) = in_overflow
            && in_cells.is_none_or(|in_cells| value <= in_cells)
        {
            self.overflow.take(place.identity, value);
            return Ok(());
        }
        // The last of equal cells is the one that is not full.
        let (cell, content) = self.equal_cells(place, value.or(in_cells)).last().ok_or(Absent)?;
        let mut view = self.store.bucket_mut(place.bucket);
        if V::MODE == Mode::Counting && content.extra > 0 {
            view.set_cell(cell, Cell { extra: content.extra - 1, ..content });
            return Ok(());
        }
        view.remove(place.location, cell);
        view.release_room();
        // (Forged bytes may claim any number.)
        self.cells = self.cells.saturating_sub(1);
        if !self.overflow.is_empty() {
            self.take_back(place.bucket);
        }
        Ok(())
    }

    fn add(&mut self, entry: Entry) -> Result<(), Full> {
        let place = self.place_of(entry.identity);
        if V::MODE == Mode::Set {
            return self.insert(place, 0).map(|_| ());
        }
        let mut left = entry.count;
        while left > 0 {
            if self.used() >= self.grow_at {
                // The table may cut identities elsewhere afterwards; the remaining copies are
                // inserted anew.
                self.grow_for(place);
            }
            if !self.put(self.place_of(entry.identity), entry.value) {
                break;
            }
            left -= 1;
        }
        if left > 0 && !self.overflow.add(entry.identity, entry.value, left) {
            return Err(self.full());
        }
        Ok(())
    }

    fn take(&mut self, entry: Entry) -> Result<(), Absent> {
        let value = Self::told_apart(entry.value);
        // The overflow counts to any number; cells do not.
        let taken = self.overflow.take_up_to(entry.identity, entry.value, entry.count);
        for _ in taken..entry.count {
            self.remove(self.place_of(entry.identity), value)?;
        }
        Ok(())
    }

    fn list_from(&self, part: u64, entries: &mut Vec<Entry>) -> Option<u64> {
        for bucket in part..self.params.layout().buckets {
            if entries.len() >= CHUNK {
                return Some(bucket);
            }
            self.list_bucket(bucket, entries);
        }
        None
    }

    fn lay_out(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), Full> {
        let per_bucket = self.params.identities_per_bucket();
        let (mut entries, mut chains) = (entries.peekable(), Chains::default());
        while let Some(first) = entries.peek() {
            let bucket = first.identity / per_bucket;
            let end = (bucket + 1) * per_bucket;
            let of_bucket = core::iter::from_fn(|| entries.next_if(|entry| entry.identity < end));
            self.lay_out_bucket(bucket, of_bucket, &mut chains)?;
        }
        self.reset_overflow_limit();
        Ok(())
    }

    /// In order, bucket by bucket, because a bucket that is written once takes a fraction of the
    /// time of one that is written for every key. Sorting is the smaller part.
    fn insert_at_once(&mut self, digests: &[Digest], _: usize) -> bool {
        // One by one the table might grow.
        if digests.len() as u64 > self.grow_at {
            return false;
        }
        let mut sorted = Vec::new();
        let digests = if digests.is_sorted() {
            digests
        } else {
            if sorted.try_reserve_exact(digests.len()).is_err() {
                return false;
            }
            sorted.extend_from_slice(digests);
            sorted.sort_unstable();
            &sorted
        };
        let universe = self.params.universe();
        let identities = digests.iter().map(|&digest| identity(digest, universe));
        let most = self.overflow_limit;
        let done = self.lay_out(order::counted(identities, Self::IS_SET)).is_ok();
        let done = done && self.overflow.len() as u64 <= most;
        if !done {
            self.clear();
        }
        self.overflow_limit = most;
        done
    }

    fn clear(&mut self) {
        self.store.clear();
        self.cells = 0;
        self.overflow.clear();
    }

    fn validate(&self) -> Result<(), Invalid> {
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
                for (_, content) in view.chain(location) {
                    if before.is_some_and(|before| !Self::in_order(before, content)) {
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

    fn footprint(&self) -> u64 {
        self.store.footprint() + self.overflow.footprint()
    }

    fn used(&self) -> u64 {
        self.cells + self.overflow.len() as u64
    }

    /// The cells in use, as a share of the planned number.
    fn fill(&self) -> f64 {
        (self.used() as f64 / self.params.capacity() as f64).min(1.0)
    }

    /// Entries in the overflow: none with probability 1 - 10^-10, unless an adversary chooses the
    /// keys or one key is inserted very often.
    fn overflow(&self) -> u64 {
        self.overflow.len() as u64
    }

    fn lines_to_contain(&self, place: Place) -> u32 {
        let view = self.store.bucket(place.bucket);
        let mut walked = Vec::new();
        for (cell, content) in view.chain(place.location) {
            walked.push(cell);
            if content.print >= place.print {
                break;
            }
        }
        lines(view.spans(&walked))
    }

    fn lines_to_insert(&self, place: Place) -> u32 {
        lines(self.store.bucket(place.bucket).record_spans())
    }

    fn grown(&self) -> Result<Self, ResizeError> {
        self.resized(self.params.capacity().saturating_mul(2))
    }

    /// For half the keys, or for those that are in if these are more.
    fn shrunk(&self) -> Result<Self, ResizeError> {
        self.resized((self.params.capacity() / 2).max(self.used()))
    }

    fn with(&self, dropped: u32, other: &Self, other_dropped: u32) -> Option<Result<Self, Full>> {
        let coarse = self.params.coarser(dropped).ok()?;
        // If no layout has room for all, the overflow takes what finds no cell.
        let params = coarse.with_room_for(self.used().saturating_add(other.used()));
        Some(self.joined(params, dropped, other, other_dropped))
    }

    fn sections(&self) -> Vec<Payload<'_>> {
        sections::encode(self)
    }

    fn decode(frame: &mut Frame<'_>, params: RankParams) -> Result<Self, WireError> {
        sections::decode(frame, params)
    }

    fn overflow_mut(&mut self) -> &mut Overflow {
        &mut self.overflow
    }

    /// An entry takes a cell at least, or more in the list.
    fn least_trimmed(params: &RankParams, entries: u64) -> u64 {
        let layout = params.layout();
        let cell = u64::from(1 + layout.fingerprint + layout.extra);
        (layout.buckets * u64::from(layout.locations) + entries * cell) / 8
    }

    fn decoded_bytes(params: &RankParams) -> u64 {
        params.layout().bits().div_ceil(8)
    }

    fn as_remove(filter: &mut Identities<Self>) -> Option<&mut dyn Remove> {
        V::as_remove(filter)
    }

    fn as_count(filter: &Identities<Self>) -> Option<&dyn Count> {
        V::as_count(filter)
    }
}

/// Distinct cache lines among spans of bits.
fn lines(spans: Vec<(u64, u64)>) -> u32 {
    let line = |bit: u64| bit / Line::BITS;
    let of_span = |(start, bits): (u64, u64)| line(start)..=line(start + bits.max(1) - 1);
    Line::distinct(spans.into_iter().flat_map(of_span))
}
