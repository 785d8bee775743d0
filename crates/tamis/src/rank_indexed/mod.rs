//! Rank-indexed hashing: compact fingerprint tables that remove, count and carry values.
//!
//! After N. Hua, H. Zhao, B. Lin, J. Xu, "Rank-Indexed Hashing: A compact construction of Bloom filters and variants",
//! ICNP 2008. A key is kept as its *identity*, an integer in [0, U): bucket, chain location and fingerprint. The
//! fingerprints of a bucket lie in chains without pointers: two bit maps say where chains start and whether they go on,
//! and counting their bits finds every cell. Buckets that overflow borrow extensions from small shared pools.
//!
//! ```text
//! bucket     I0 0101100... (L bits)   IH 01010 ... (Z1 bits)   cells a c e f g ... (Z1 of r bits)   -> extension
//! level 2    IH ... (Z2 bits)         cells ... (Z2 of r bits)                                      -> extension
//! level 3    IH ... (Z3 bits)         cells ... (Z3 of r bits)
//! ```
//!
//! At 1% a key takes 10.3 bits, at 0.1% 14.0, at 0.01% 18.0: removal included, which costs a counting Bloom filter 38 to 77.
//!
//! ```
//! use tamis::rank_indexed::RankIndexed;
//! use tamis::{Filter, Insert, Remove};
//! let mut filter = RankIndexed::with_rate(1_000, 0.001)?;
//! filter.insert("apple")?;
//! assert!(filter.contains("apple"));
//! filter.remove("apple")?;
//! assert!(!filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Kinds
//!
//! - [`RankIndexed`]: a multiset. Every insertion takes a cell, so inserting and removing distinct keys is exact.
//! - [`RankSet`]: equal identities share a cell; cannot remove.
//! - [`RankCounting`]: a cell counts up to four, for keys that come often.
//! - [`RankMap`]: a cell carries a value of 1 to 32 bits.
//!
//! Nothing of an identity is lost, so tables can be listed, merged, grown and shrunk without the keys.
//!
//! # Limits
//!
//! At most 2^62 identities, fingerprints of 1 to 56 bits. A table grows by a quarter when it holds more cells than it
//! was planned for; its universe stays, so that the rate rises with the keys. Up to 16 equal cells are kept of an identity; further
//! copies are counted beside the table. Keys that somebody chooses to fill one bucket go to a sorted list beside the
//! table: nothing is lost, but use a keyed hash against such keys. Packed buckets are the smallest form, not the fastest.

pub(crate) mod bucket;
mod chains;
mod levels;
pub mod model;
pub mod optimise;
mod params;
mod plan;
pub(crate) mod raw;
mod sections;
mod store;
pub(crate) mod table;

use alloc::vec;
use alloc::vec::Vec;
use core::marker::PhantomData;

pub use params::RankParams;

use self::table::{Mode, Table};
use crate::bits::OutOfMemory;
use crate::coder::Packing;
use crate::digest::{Digest, Hasher};
use crate::filter::{Count, Filter, Insert, Remove, Stored};
use crate::group::{Group, common_universe};
use crate::key::Key;
use crate::spec::{
    Absent, Full, Goal, Invalid, InvalidParam, Kind, Label, Mismatch, PlanError, Prediction,
    ResizeError, WireError,
};
use crate::wire::{self, ContentHasher, ContentId, Encoded, Encoding, Frame};

/// What the cells of a table mean; one type a kind.
pub trait Variant: sealed::Sealed {}

mod sealed {
    /// The facts of a variant, which nobody else can add to.
    pub trait Sealed: core::fmt::Debug + Clone + PartialEq + Eq {
        #[doc(hidden)]
        const KIND: crate::spec::Kind;
        #[doc(hidden)]
        #[expect(private_interfaces, reason = "sealed")]
        const MODE: super::Mode;
        /// Counter bits, or value bits unless others are asked for.
        #[doc(hidden)]
        const EXTRA: u32;
    }
}

macro_rules! variant {
    ($name:ident, $kind:ident, $mode:ident, $extra:expr, $doc:expr) => {
        #[doc = $doc]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {}

        impl sealed::Sealed for $name {
            const KIND: Kind = Kind::$kind;
            #[expect(private_interfaces, reason = "sealed")]
            const MODE: Mode = Mode::$mode;
            const EXTRA: u32 = $extra;
        }

        impl Variant for $name {}
    };
}
variant!(Multiset, RankIndexed, Multiset, 0, "Every insertion takes a cell.");
variant!(Distinct, RankSet, Set, 0, "Equal identities share a cell.");
variant!(Counters, RankCounting, Counting, 2, "A cell counts up to four.");
variant!(Values, RankMap, Map, 8, "A cell carries a value.");

/// A multiset of identities; see [the module](self).
pub type RankIndexed = Rank<Multiset>;
/// A set of identities, the smallest by a hair; cannot remove.
///
/// ```compile_fail
/// use tamis::{Insert, RankSet, Remove};
/// let mut set = RankSet::with_rate(100, 0.01).unwrap();
/// set.remove("apple"); // Two keys may share the cell: removing one would lose the other.
/// ```
pub type RankSet = Rank<Distinct>;
/// A multiset whose cells count, for keys that come often.
pub type RankCounting = Rank<Counters>;
/// A map from keys to small values; see [`Rank::get`] for what happens when two keys share an identity.
pub type RankMap = Rank<Values>;

/// A rank-indexed table of identities.
#[derive(Clone, Debug)]
pub struct Rank<V> {
    label: Label,
    table: Table,
    variant: PhantomData<V>,
}

impl<V: Variant> Rank<V> {
    /// An empty filter for so many keys at this rate, with XXH3 and seed 0.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self, PlanError> {
        let params = Self::plan(&Goal::rate(keys, rate))?;
        Ok(Self::new(params, Label::planned(Hasher::default(), keys))?)
    }

    /// The params for a goal.
    pub fn plan(goal: &Goal) -> Result<RankParams, PlanError> {
        plan::plan(V::KIND.name(), goal, V::EXTRA)
    }

    /// What a filter with these params and so many keys will do.
    pub fn predict(params: &RankParams, keys: u64) -> Prediction {
        plan::predict(params, keys, V::MODE)
    }

    /// Cells and spilled entries in use; the table grows when there are more than
    /// [`RankParams::capacity`].
    pub fn used(&self) -> u64 {
        self.table.used()
    }

    /// All that is in, in order of identity and value: enough to build the filter anew, without the keys.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        self.table.for_each_group(|group| groups.push(group));
        groups
    }

    /// Takes identities away and adds others; on an error the table is half changed.
    pub(crate) fn change(
        &mut self,
        removed: &[Group],
        inserted: &[Group],
    ) -> Result<(), &'static str> {
        for group in removed {
            self.table.take(*group).map_err(|Absent| "more is removed than is in")?;
        }
        for group in inserted {
            self.table.add(*group).map_err(|_| "there is no memory for what comes")?;
        }
        Ok(())
    }

    pub(crate) fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    /// Adds all of another filter: the multiset sum, or the union of two sets. Needs the same hash and seed, and universes
    /// that differ by a power of two: the finer filter is then read as coarsely as the other, and so is this one
    /// afterwards.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::check_hashers(self.label.hasher, other.label.hasher)?;
        let (mine, theirs) = (*self.table.params(), *other.table.params());
        Mismatch::check("extra", &mine.layout().extra, &theirs.layout().extra)?;
        let differ = || Mismatch {
            field: "universe",
            left: alloc::format!("{}", mine.universe()),
            right: alloc::format!("{}", theirs.universe()),
        };
        let (dropped, their_dropped) =
            common_universe(mine.universe(), theirs.universe()).ok_or_else(differ)?;
        let coarse = mine.coarser(dropped).map_err(|_| differ())?;
        // Where there is no layout for so many, what finds no cell is kept beside the table.
        let params = coarse.with_room_for(self.used().saturating_add(other.used()), 1);
        // Beside this one, so that it is unchanged if memory runs out.
        let merged = self.table.rebuilt(params, dropped).and_then(|mut table| {
            table.add_all(&other.table, their_dropped)?;
            Ok(table)
        });
        self.table = merged.map_err(|_| Mismatch {
            field: "memory",
            left: alloc::format!("{} cells", self.used()),
            right: alloc::format!("{} cells", other.used()),
        })?;
        self.label.merge(&other.label);
        Ok(())
    }

    /// Lays the table out anew for twice as many keys. Identities stay, so that answers stay; at twice the keys the rate
    /// is twice as high.
    pub fn grow(&mut self) -> Result<(), ResizeError> {
        self.resize(self.table.params().capacity().saturating_mul(2))
    }

    /// Lays the table out anew for half as many keys, or for those that are in if these are more.
    pub fn shrink(&mut self) -> Result<(), ResizeError> {
        self.resize((self.table.params().capacity() / 2).max(self.used()))
    }

    /// Lays the table out anew for so many keys.
    pub fn resize(&mut self, capacity: u64) -> Result<(), ResizeError> {
        let params = self.table.params().with_capacity(capacity.max(1), 1)?;
        self.table = self.table.rebuilt(params, 0)?;
        Ok(())
    }

    /// Drops the lowest bits of all identities: that many bits per key less, and a rate twice as high for each.
    pub fn coarsen(&mut self, bits: u32) -> Result<(), ResizeError> {
        let params = self.table.params().coarser(bits)?;
        self.table = self.table.rebuilt(params, bits)?;
        Ok(())
    }

    fn insert_with(&mut self, digest: Digest, value: u64) -> Result<bool, Full> {
        let place = self.table.place(digest);
        let new = self.table.insert(place, value)?;
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn remove_with(&mut self, digest: Digest, value: Option<u64>) -> Result<(), Absent> {
        let place = self.table.place(digest);
        self.table.remove(place, value)?;
        self.label.keys = self.label.keys.saturating_sub(1);
        Ok(())
    }
}

impl<V: Variant> PartialEq for Rank<V> {
    /// Equal content and label, wherever it lies.
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && self.content_id() == other.content_id()
    }
}

impl<V: Variant> Eq for Rank<V> {}

impl<V: Variant> Filter for Rank<V> {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.table.contains(self.table.place(digest))
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.table.prefetch(digest);
    }

    fn footprint(&self) -> u64 {
        self.table.footprint()
    }

    /// Different identities over all: the chance that a stranger has one of them.
    fn rate(&self) -> f64 {
        let mut distinct = 0_u64;
        let mut last = None;
        self.table.for_each_group(|group| {
            distinct += u64::from(last != Some(group.identity));
            last = Some(group.identity);
        });
        distinct as f64 / self.table.params().universe() as f64
    }

    /// Cells in use over the planned number.
    fn fill(&self) -> f64 {
        (self.used() as f64 / self.table.params().capacity() as f64).min(1.0)
    }

    /// Entries that found no cell and are kept beside the table: 0 but for one chance in 10^10, unless somebody
    /// chooses the keys or inserts one very often.
    fn overflow(&self) -> Option<u64> {
        Some(self.table.spilled())
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        self.table.lines_to_contain(self.table.place(digest))
    }
}

impl<V: Variant> Insert for Rank<V> {
    /// Inserts a key; into a map with the value 0.
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        self.insert_with(digest, 0)
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        self.table.lines_to_insert(self.table.place(digest))
    }
}

impl Remove for RankIndexed {
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent> {
        self.remove_with(digest, None)
    }
}

impl Remove for RankCounting {
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent> {
        self.remove_with(digest, None)
    }
}

impl Remove for RankMap {
    /// Removes one entry of a key: of several values the smallest, which [`get`](RankMap::get) answers.
    ///
    /// Keys that share an identity share their entries, so this may take the value of another key and leave it that of
    /// the one removed. Where values matter, use [`remove_value`](RankMap::remove_value).
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent> {
        self.remove_with(digest, None)
    }
}

impl Count for RankIndexed {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        Some(self.table.count(self.table.place(digest)))
    }

    fn max_count(&self) -> u64 {
        u64::MAX
    }
}

impl Count for RankCounting {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        Some(self.table.count(self.table.place(digest)))
    }

    fn max_count(&self) -> u64 {
        u64::MAX
    }
}

impl RankMap {
    /// The largest value that a cell carries.
    pub fn max_value(&self) -> u64 {
        (1 << self.table.params().layout().extra) - 1
    }

    /// Inserts a key with a value, of which bits beyond the width of a cell are dropped. A key that is in already gets a
    /// second entry: use [`update`](Self::update) to change one.
    pub fn insert_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<bool, Full> {
        let value = value & self.max_value();
        self.insert_with(self.hasher().digest(key), value)
    }

    /// The values of a key, smallest first.
    ///
    /// Two keys that share an identity (with probability `rate`) cannot be told apart: both then have both values.
    /// So a key that is in has its own value among these; one that is not has none, or strangers' values.
    pub fn values<K: Key + ?Sized>(&self, key: &K) -> Vec<u64> {
        self.table.values(self.table.place(self.hasher().digest(key)))
    }

    /// The smallest value of a key; see [`values`](Self::values).
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.values(key).first().copied()
    }

    /// Changes the value of a key from `old` to `new`. The old value picks the entry, so that a key that shares the identity keeps
    /// its own.
    pub fn update<K: Key + ?Sized>(&mut self, key: &K, old: u64, new: u64) -> Result<(), Absent> {
        let place = self.table.place(self.hasher().digest(key));
        let (old, new) = (old & self.max_value(), new & self.max_value());
        self.table.remove(place, Some(old))?;
        // The removed entry has left its place, in the bucket or beside it, so this cannot fail for want of memory but
        // where nothing could be allocated at all; then the old entry goes back where it was.
        if self.table.insert(place, new).is_err() {
            let _ = self.table.insert(place, old);
            return Err(Absent);
        }
        Ok(())
    }

    /// Removes one entry of a key with this value, of which bits beyond the width of a cell are dropped.
    pub fn remove_value<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<(), Absent> {
        self.remove_with(self.hasher().digest(key), Some(value & self.max_value()))
    }
}

impl<V: Variant> Stored for Rank<V> {
    const KIND: Kind = V::KIND;
    type Params = RankParams;

    fn params(&self) -> RankParams {
        *self.table.params()
    }

    /// An empty filter. Counter bits are those of the kind, and a map has one value bit at least, whatever the params say.
    fn new(params: RankParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        let extra = params.layout().extra;
        let right = if V::MODE == Mode::Map { extra.max(1) } else { V::EXTRA };
        let params = if extra == right { params } else { params.with_extra(right) };
        Ok(Self { label: label.into(), table: Table::new(params, V::MODE)?, variant: PhantomData })
    }

    fn clear(&mut self) {
        self.table.clear();
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.table.validate()
    }

    /// Covers the universe and the identities, not how they are cut and laid out: a grown filter is the same set.
    fn content_id(&self) -> ContentId {
        let params = self.table.params();
        let facts = params.content_params().map(|(_, value)| value);
        let mut id = ContentHasher::new(V::KIND, self.label.hasher, &facts);
        self.table.for_each_group(|Group { identity, value, count }| {
            id.numbers([identity, value, count].into_iter());
        });
        id.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        wire::encode(self, sections::encode(&self.table, V::MODE))
    }

    /// The packed form, or the trimmed one where many identities are equal and that is shorter.
    fn pack(&self, _: impl Into<Packing>) -> Encoded<'_> {
        let packed = wire::encode(self, vec![sections::pack(&self.table)]);
        let trimmed = self.encode();
        if packed.len() <= trimmed.len() { packed } else { trimmed }
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = frame.begin::<Self>()?;
        let extra = params.layout().extra;
        let fits = if V::MODE == Mode::Map { extra > 0 } else { extra == V::EXTRA };
        if !fits {
            let expected = "the counter or value bits of the kind";
            return Err(InvalidParam { name: "extra", value: extra.into(), expected }.into());
        }
        let table = match frame.next_encoding() {
            Some(Encoding::Packed) => sections::unpack(frame, params, V::MODE)?,
            _ => sections::decode(frame, params, V::MODE)?,
        };
        Ok(Self { label, table, variant: PhantomData })
    }
}
