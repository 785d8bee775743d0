//! The traits of a filter that keeps identities, each by the methods of its table.

use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::{Counts, Identities, Removes, Table};
use crate::bits::OutOfMemory;
use crate::change::{Change, Moves, OTHER_KIND, Resolved, Shape, UNRESOLVED};
use crate::coder::{self, Packing};
use crate::digest::Digest;
use crate::entry::{Entry, EntryReader, common_universe, section};
use crate::filter::{Count, Filter, Insert, Remove};
use crate::spec::{
    Absent, Full, Goal, Invalid, Kind, Label, Lines, MergeError, Mismatch, Operation, Params,
    PlanError, Prediction, ResizeError, Traffic, WireError,
};
use crate::stored::Stored;
use crate::traffic;
use crate::wire::{ContentHasher, ContentId, Encoded, Encoding, Frame};

impl<T: Table> PartialEq for Identities<T> {
    /// Two filters are equal if label and content are, however the content is laid out.
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && self.content_id() == other.content_id()
    }
}

impl<T: Table> Eq for Identities<T> {}

impl<T: Table> Filter for Identities<T> {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.table.contains(self.table.place(digest))
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        assert_eq!(digests.len(), answers.len(), "an answer for each digest");
        self.table.contains_many(digests, answers);
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.table.prefetch(digest);
    }

    fn footprint(&self) -> u64 {
        self.table.footprint()
    }

    /// The number of distinct identities over the universe: the probability that an absent key
    /// has one of them.
    fn rate(&self) -> f64 {
        self.table.distinct() as f64 / T::universe(&self.table.params()) as f64
    }

    fn fill(&self) -> f64 {
        self.table.fill()
    }

    fn overflow(&self) -> Option<u64> {
        Some(self.table.overflow())
    }

    fn is_crowded(&self) -> bool {
        self.label.is_exceeded() || self.table.is_crowded()
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        self.table.lines_to_contain(self.table.place(digest))
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        self.table.lines_to_insert(self.table.place(digest))
    }
}

impl<T: Table> Insert for Identities<T> {
    /// Inserts a key. Where keys have values it gets the value 0.
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.insert_with(digest, 0)
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        let done = self.table.insert_many(digests);
        let inserted = done.map_or_else(|(inserted, _)| inserted, |()| digests.len()) as u64;
        self.label.keys = self.label.keys.saturating_add(inserted);
        done.map_err(|(_, full)| Full { inserted, ..full })
    }
}

impl<T: Removes> Remove for Identities<T> {
    /// Removes one occurrence of a key: the one with the smallest value, if there are several.
    ///
    /// Keys with the same identity share their entries. So this may remove the value of another
    /// key and leave that of the key removed. Where values matter, use
    /// [`remove_value`](Identities::remove_value).
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent> {
        self.remove_with(digest, None)
    }

    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        let removed = self.table.remove_many(digests);
        self.label.keys = self.label.keys.saturating_sub(removed);
        removed
    }
}

impl<T: Counts> Count for Identities<T> {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        Some(self.table.count(self.table.place(digest)))
    }

    fn max_count(&self) -> u64 {
        u64::MAX
    }
}

/// The content id of a filter whose entries are given to it.
struct EntryHasher {
    hasher: ContentHasher,
    has_value: bool,
}

impl EntryHasher {
    fn new<T: Table>(filter: &Identities<T>) -> Self {
        let params = T::content_params(&filter.table.params());
        let values: Vec<u64> = params.iter().map(|&(_, value)| value).collect();
        let hasher = ContentHasher::new(T::KIND, filter.label.hasher, &values);
        // Values are part of the content of kinds whose params say how wide a value is.
        Self { hasher, has_value: values.len() > 1 }
    }

    #[inline]
    fn entry(&mut self, entry: &Entry) {
        self.hasher.number(entry.identity);
        if self.has_value {
            self.hasher.number(entry.value);
        }
        self.hasher.number(entry.count);
    }
}

impl<T: Table> Stored for Identities<T> {
    const KIND: Kind = T::KIND;
    type Params = T::Params;
    const CAN: &'static [Operation] = T::CAN;
    const VALUES: Option<&'static str> = T::VALUES;
    const REASON: &'static str = T::REASON;
    const MARGINS: [f64; 2] = T::MARGINS;

    fn params(&self) -> T::Params {
        self.table.params()
    }

    fn new(params: T::Params, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self { label: label.into(), table: T::new(params)? })
    }

    fn insert_at_once(&mut self, keys: &[Digest], threads: usize) -> bool {
        let done = self.table.insert_at_once(keys, threads);
        if done {
            self.label.keys = self.label.keys.saturating_add(keys.len() as u64);
        }
        done
    }

    fn least(goal: &Goal) -> Result<T::Params, PlanError> {
        T::least(goal)
    }

    fn predict(params: &T::Params, keys: u64) -> Prediction {
        T::predict(params, keys)
    }

    fn planned_bits(params: &T::Params, _: u64) -> f64 {
        T::planned_bits(params) as f64
    }

    fn traffic(
        params: &T::Params,
        keys: u64,
        predicted: &Prediction,
        replaced: Option<u64>,
    ) -> Traffic {
        let identities = traffic::Identities {
            params: [T::Params::NAMES.len(), T::content_params(params).len()],
            universe: T::universe(params),
            value_bits: T::value_bits(params),
            set: T::IS_SET,
        };
        let mut traffic = identities.traffic(keys, replaced);
        if T::TRIMS {
            let trimmed = predicted.wire_bits_per_key * keys.max(1) as f64 / 8.0;
            traffic.snapshot.mean = traffic.snapshot.mean.min(trimmed);
        }
        traffic
    }

    fn explain(params: &T::Params, keys: u64, _: &Prediction, out: &mut Lines) {
        T::explain(params, keys, out);
    }

    fn content_params(params: &T::Params) -> Vec<(&'static str, u64)> {
        T::content_params(params)
    }

    /// The sum of two multisets, or the union of two sets. The filter grows to make room.
    ///
    /// Hash and seed must be the same, and the universes must differ by a power of two. The
    /// merged filter has the smaller universe: low bits of the finer identities are dropped.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        Mismatch::check_hashers(self.label.hasher, other.label.hasher)?;
        let (mine, theirs) = (self.table.params(), other.table.params());
        let beside = |params| T::content_params(params).into_iter().skip(1);
        for ((name, mine), (_, theirs)) in beside(&mine).zip(beside(&theirs)) {
            Mismatch::check(name, &mine, &theirs)?;
        }
        let (universe, their_universe) = (T::universe(&mine), T::universe(&theirs));
        let merged =
            common_universe(universe, their_universe).and_then(|(dropped, their_dropped)| {
                // Under params like ours, or like theirs where ours cannot be made as coarse.
                let (ours, theirs) = (&self.table, &other.table);
                let merged = ours.with(dropped, theirs, their_dropped);
                merged.or_else(|| theirs.with(their_dropped, ours, dropped))
            });
        let Some(merged) = merged else {
            let left = universe.to_string();
            let right = their_universe.to_string();
            return Err(Mismatch { field: "universe", left, right }.into());
        };
        self.table = merged.map_err(|_| MergeError::OutOfMemory)?;
        self.label.merge(&other.label);
        Ok(())
    }

    fn grow(&mut self) -> Result<(), ResizeError> {
        self.table = self.table.grown()?;
        Ok(())
    }

    fn shrink(&mut self) -> Result<(), ResizeError> {
        self.table = self.table.shrunk()?;
        Ok(())
    }

    fn clear(&mut self) {
        self.table.clear();
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.table.validate()
    }

    /// Covers the universe and the entries in order, not how they are laid out: a filter that
    /// grew has the same content id.
    fn content_id(&self) -> ContentId {
        let mut id = EntryHasher::new(self);
        self.table.entries().for_each(|entry| id.entry(&entry));
        id.hasher.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        self.frame(self.table.sections())
    }

    /// The packed form, or the trimmed one if that is shorter, as it is where many identities are
    /// equal.
    fn pack(&self, _: impl Into<Packing>) -> Encoded<'_> {
        let params = self.table.params();
        let (universe, values) = (T::universe(&params), T::value_bits(&params));
        // Identities that are in three times or more, which take more cells than two, are few.
        let entries = (|| self.table.entries(), self.table.used());
        let bytes = T::decoded_bytes(&params);
        let (packed, count) = section::pack(section::IDENTITIES, entries, universe, values, bytes);
        let packed = self.frame(vec![packed]);
        if !T::TRIMS || packed.len() <= T::least_trimmed(&params, count) {
            return packed;
        }
        let trimmed = self.frame(self.table.trimmed());
        if packed.len() <= trimmed.len() { packed } else { trimmed }
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = Self::begin(frame)?;
        let params = T::checked(params)?;
        let table = match frame.next_encoding() {
            Some(Encoding::Packed) => unpack(frame, params)?,
            _ => T::decode(frame, params)?,
        };
        Ok(Self { label, table })
    }

    fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    fn diff(&self, new: &Self) -> Option<Change> {
        Some(Change::Identities(Moves::between(self.table.entries(), new.table.entries())))
    }

    fn resolve(&self, change: &Change) -> Resolved {
        match change {
            Change::Identities(moves) if !moves.is_resolved() => {
                let mut id = EntryHasher::new(self);
                let entries = self.table.entries().inspect(|entry| id.entry(entry));
                let resolved = moves.resolved(entries);
                (id.hasher.finish(), resolved.map(|moves| Some(Change::Identities(moves))))
            }
            _ => (self.content_id(), Ok(None)),
        }
    }

    fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        let Change::Identities(moves) = change else { return Err(OTHER_KIND) };
        let (Some(removed), inserted) = moves.entries() else { return Err(UNRESOLVED) };
        for &entry in removed {
            self.table.take(entry).map_err(|Absent| "more is removed than is in")?;
        }
        for &entry in inserted {
            self.table.add(entry).map_err(|_| "there is no memory for what comes")?;
        }
        Ok(())
    }

    fn shape(content: &[u64]) -> Option<Shape> {
        let value_bits = T::VALUES.and(content.get(1)).copied().unwrap_or(0).min(32) as u32;
        Some(Shape::Identities { universe: *content.first()?, value_bits })
    }

    fn held_entries(&self) -> Vec<Entry> {
        self.entries()
    }

    fn hold_entries(&mut self, entries: &mut dyn Iterator<Item = Entry>) -> bool {
        let (universe, most) = (T::universe(&self.table.params()), self.value_mask());
        let most_often = if T::IS_SET { 1 } else { u64::MAX };
        let (mut last, mut all_legal) = (None, true);
        self.label.keys = 0;
        // What follows the first that is not legal has no place.
        let entries = entries.take_while(|entry| {
            let is_legal = entry.identity < universe
                && entry.value <= most
                && (1..=most_often).contains(&entry.count);
            all_legal = is_legal && last < Some(entry.key());
            last = Some(entry.key());
            self.label.keys = self.label.keys.saturating_add(entry.count);
            all_legal
        });
        self.table.lay_out(entries).is_ok() && all_legal
    }

    fn largest_value(&self) -> u64 {
        self.value_mask()
    }

    fn held_values(&self, digest: Digest) -> Vec<u64> {
        self.table.values(self.table.place(digest))
    }

    fn hold_value(&mut self, digest: Digest, value: u64) -> Result<bool, Full> {
        match self.value_mask() {
            0 => Err(self.table.full()),
            mask => self.insert_with(digest, value & mask),
        }
    }

    fn drop_value(&mut self, digest: Digest, value: u64) -> Result<(), Absent> {
        match self.value_mask() {
            0 => Err(Absent),
            mask => self.remove_with(digest, Some(value & mask)),
        }
    }

    /// Which identities are in, which of them several times, and their values. (Counts above two
    /// are few.)
    fn entropy_bits(&self) -> f64 {
        let params = self.table.params();
        let (mut entries, mut several) = (0, 0);
        self.table.entries().for_each(|entry| {
            entries += 1;
            several += u64::from(entry.count > 1);
        });
        let values = entries as f64 * f64::from(T::value_bits(&params));
        coder::set_bits(T::universe(&params), entries) + coder::set_bits(entries, several) + values
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }

    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        T::as_remove(self)
    }

    fn as_count(&self) -> Option<&dyn Count> {
        T::as_count(self)
    }
}

/// The table of packed entries, laid out as they are read, within what reading may take.
fn unpack<T: Table>(frame: &mut Frame<'_>, params: T::Params) -> Result<T, WireError> {
    let (bytes, decoded) = frame.packed(section::IDENTITIES)?;
    section::check_decoded(decoded, T::decoded_bytes(&params))?;
    let mut entries = EntryReader::new(&bytes, T::universe(&params), T::value_bits(&params))?;
    if T::IS_SET && entries.has_several() {
        return Err(Invalid("an identity is in a set twice").into());
    }
    frame.budget().take(decoded)?;
    let mut table = T::new(params)?;
    table.overflow_mut().begin_reading(frame.budget());
    table.lay_out(&mut entries).map_err(|_| OutOfMemory { bytes: u64::MAX })?;
    table.overflow_mut().end_reading();
    entries.finish()?;
    frame.set_sound();
    Ok(table)
}
