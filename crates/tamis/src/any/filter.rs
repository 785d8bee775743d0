//! A filter of any kind.

use alloc::vec::Vec;

use super::{AnyParams, Listed, by_kind, each};
use crate::bits::{OutOfMemory, SharedBytes};
use crate::change::{Change, Resolved};
use crate::coder::{Effort, Packing};
use crate::digest::Digest;
use crate::entry::Entry;
use crate::filter::{Count, Filter, Insert, Remove};
use crate::spec::{
    Absent, Full, Invalid, Kind, Label, Limits, MergeError, Mismatch, ResizeError, WireError,
};
use crate::stored::Stored;
use crate::wire::{ContentId, Encoded, Frame, Source};

macro_rules! define {
    ($($id:literal $kind:ident $name:literal $type:ty,)*) => {
        /// A filter of any kind, for programs that learn the kind at run time.
        ///
        /// ```
        /// use tamis::{AnyFilter, Bloom, Filter, Kind, Limits};
        /// let mut seen = Bloom::with_rate(1_000, 0.01)?;
        /// seen.insert("apple");
        /// let any = AnyFilter::decode(&seen.to_bytes(), Limits::default())?;
        /// assert_eq!(any.kind(), Kind::Bloom);
        /// assert!(any.contains("apple"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum AnyFilter {
            $(#[doc = concat!("`", $name, "`.")] $kind($type),)*
        }
    };
}
kinds!(define);

/// Methods that do what those of the filter inside do.
macro_rules! relay {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident($self:ident: $Self:ty $(, $arg:ident: $type:ty)*)
        $(-> $result:ty)?;)*) => {
        $($(#[$doc])* $vis fn $name($self: $Self $(, $arg: $type)*) $(-> $result)? {
            each!(AnyFilter: $self, F, filter => filter.$name($($arg),*))
        })*
    };
}

impl AnyFilter {
    relay! {
        /// The filter as an [`Insert`]; `None` for kinds that are built once.
        pub fn as_insert(self: &mut Self) -> Option<&mut dyn Insert>;

        /// The filter as a [`Remove`]; `None` for kinds from which keys cannot be removed.
        pub fn as_remove(self: &mut Self) -> Option<&mut dyn Remove>;

        /// The filter as a [`Count`]; `None` for kinds that do not count.
        pub fn as_count(self: &Self) -> Option<&dyn Count>;

        /// Makes room for twice as many keys. The keys are not needed.
        ///
        /// Answers do not change, but every further key raises the rate: with twice the keys it
        /// is about twice as high.
        pub fn grow(self: &mut Self) -> Result<(), ResizeError>;

        /// Lays the filter out anew for half as many keys. The keys are not needed, and answers
        /// stay as they are.
        pub fn shrink(self: &mut Self) -> Result<(), ResizeError>;

        /// Removes all keys.
        pub fn clear(self: &mut Self);

        /// Checks every invariant. An error says that the content was not made by this library.
        pub fn validate(self: &Self) -> Result<(), Invalid>;

        /// A name for what the filter holds. Filters with the same id answer alike.
        pub fn content_id(self: &Self) -> ContentId;

        /// The filter as bytes.
        pub fn encode(self: &Self) -> Encoded<'_>;

        /// The entropy of the content in bits, given its size and density alone. No coder makes
        /// the content much shorter.
        pub fn entropy_bits(self: &Self) -> f64;

        /// The name of the coder that [`pack`](Self::pack) uses.
        pub fn coder_name(self: &Self, effort: Effort) -> &'static str;

        /// The words of a filter that is an array of bits and nothing else, as `bloom` and
        /// `blocked` are; `None` for other kinds.
        pub fn words(self: &Self) -> Option<&[u64]>;

        /// The same, to write: a program that moves a filter piece by piece fills an empty one.
        /// Call [`validate`](Self::validate) afterwards.
        pub fn words_mut(self: &mut Self) -> Option<&mut [u64]>;

        /// The content id, and the change with the identities that it removes, if it has only
        /// their positions.
        pub(crate) fn resolve(self: &Self, change: &Change) -> Resolved;

        /// Changes the content, with a change that was resolved. On an error it may be half
        /// changed.
        pub(crate) fn apply(self: &mut Self, change: &Change) -> Result<(), &'static str>;
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        each!(AnyFilter: self, F, _filter => F::KIND)
    }

    /// The params, which fix the layout.
    pub fn params(&self) -> AnyParams {
        each!(AnyFilter: self, F, filter => F::hold_params(filter.params()))
    }

    /// Adds the keys of `other`, which must be of the same kind. Each kind decides what else must
    /// agree; the error names what does not. Nothing has changed on an error.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        let (mine, theirs) = (self.kind().name(), other.kind().name());
        each!(AnyFilter: self, F, filter => match F::inside(other) {
            Some(other) => filter.merge(other),
            None => Ok(Mismatch::check("kind", mine, theirs)?),
        })
    }

    /// The filter as fewer bytes: entropy-coded, for transfer. `how` is an [`Effort`] or a
    /// [`Packing`].
    pub fn pack(&self, how: impl Into<Packing>) -> Encoded<'_> {
        self.packed(how.into())
    }

    /// Once for all callers: it is long.
    fn packed(&self, how: Packing) -> Encoded<'_> {
        each!(AnyFilter: self, F, filter => filter.pack(how))
    }

    /// The part of the filter that readers need. Of a counting Bloom filter that is the plain
    /// filter with the same answers, without the counters; of any other kind it is a copy.
    pub fn projection(&self) -> Result<Self, OutOfMemory> {
        match self {
            Self::Counting(filter) => filter.to_bloom().map(Self::Bloom),
            _ => Ok(self.clone()),
        }
    }

    /// Whether [`pack`](Self::pack) codes an array of bits, which can be cut into pieces
    /// ([`Packing`]). Other kinds pack counters or sorted numbers.
    pub fn packs_an_array(&self) -> bool {
        each!(AnyFilter: self, F, filter => filter.array().is_some())
    }

    /// All entries, in order of identity and value, for kinds that keep identities; nothing for
    /// the others.
    pub fn entries(&self) -> Vec<Entry> {
        each!(AnyFilter: self, F, filter => filter.held_entries())
    }

    /// The largest value that a key can have; 0 for filters that keep no values.
    pub fn max_value(&self) -> u64 {
        each!(AnyFilter: self, F, filter => filter.largest_value())
    }

    /// Inserts a key with `value`. Bits of `value` above those of [`max_value`](Self::max_value)
    /// are dropped. Returns `Ok(true)` if the key was surely absent before, and [`Full`] if the
    /// filter keeps no values.
    ///
    /// ```
    /// use tamis::{AnyFilter, BlockedMap, Filter};
    /// let mut ports = AnyFilter::from(BlockedMap::with_rate(1_000, 0.001)?);
    /// let http = ports.hasher().digest("http");
    /// ports.insert_value_digest(http, 80)?;
    /// assert!(ports.values_digest(http).contains(&80));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_value_digest(&mut self, digest: Digest, value: u64) -> Result<bool, Full> {
        each!(AnyFilter: self, F, filter => filter.hold_value(digest, value))
    }

    /// The values of a key, smallest first: see [`Identities::values`](crate::Identities::values).
    pub fn values_digest(&self, digest: Digest) -> Vec<u64> {
        each!(AnyFilter: self, F, filter => filter.held_values(digest))
    }

    /// Removes one occurrence of a key with `value`.
    pub fn remove_value_digest(&mut self, digest: Digest, value: u64) -> Result<(), Absent> {
        each!(AnyFilter: self, F, filter => filter.drop_value(digest, value))
    }

    /// A filter with the params `params` that holds `entries`, which come in order of identity and
    /// value, each once, and below the universe of the params. The keys of the label are counted
    /// anew. `None` if entries are none of the layout, for kinds that keep no identities, or if
    /// there is no memory.
    ///
    /// ```
    /// use tamis::{AnyFilter, Filter, RankCounting, Stored};
    /// let mut seen = RankCounting::with_rate(1_000, 0.01)?;
    /// seen.insert("apple")?;
    /// let any = AnyFilter::from(seen.clone());
    /// let entries = seen.entries();
    /// let copy = AnyFilter::of_entries(any.params(), any.label().hasher, entries);
    /// assert!(copy.is_some_and(|copy| copy.contains("apple")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_entries(
        params: AnyParams,
        label: impl Into<Label>,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Option<Self> {
        let mut filter = params.build(label).ok()?;
        let mut entries = entries.into_iter();
        let held = each!(AnyFilter: &mut filter, F, filter => filter.hold_entries(&mut entries));
        held.then_some(filter)
    }

    /// How many identities filters of these kinds tell apart; `None` for kinds that keep none.
    pub fn universe(&self) -> Option<u64> {
        let content = self.content_params();
        content.first().filter(|(name, _)| *name == "universe").map(|&(_, universe)| universe)
    }

    /// Names and values of the params that decide answers. With the hash, the seed and the
    /// content they make up the content id.
    pub(crate) fn content_params(&self) -> Vec<(&'static str, u64)> {
        each!(AnyFilter: self, F, filter => F::content_params(&filter.params()))
    }

    /// What turns the content of this filter into that of `new`; `None` for kinds that are built
    /// once, and for different kinds.
    pub(crate) fn diff(&self, new: &Self) -> Option<Change> {
        each!(AnyFilter: self, F, filter => filter.diff(F::inside(new)?))
    }

    /// Takes over the keys and the capacity of `label`.
    pub(crate) fn set_keys(&mut self, label: Label) {
        let own = each!(AnyFilter: self, F, filter => filter.label_mut());
        (own.keys, own.capacity) = (label.keys, label.capacity);
    }

    /// A filter of the kind that `bytes` hold. Every byte is checked, and no more memory is taken
    /// than `limits` allow.
    pub fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        Self::read(&mut bytes, limits)
    }

    /// A filter from any source of bytes, such as a file; otherwise as [`decode`](Self::decode).
    pub fn read(source: &mut dyn Source, limits: Limits) -> Result<Self, WireError> {
        Self::read_behind(Frame::read(source, limits)?)
    }

    /// A filter from the sections behind a header that has been read already. Every byte is
    /// checked.
    pub fn read_behind(frame: Frame<'_>) -> Result<Self, WireError> {
        by_kind!(frame.header().kind, F => F::read_behind(frame).map(Into::into))
    }

    /// A filter that answers from `bytes` in place. Only the header is checked: damage behind it
    /// goes unnoticed, and answers may be wrong. See [`Stored::open`].
    pub fn open(bytes: &SharedBytes) -> Result<Self, WireError> {
        by_kind!(Frame::share(bytes)?.header().kind, F => F::open(bytes).map(Into::into))
    }
}

impl Filter for AnyFilter {
    relay! {
        fn label(self: &Self) -> Label;
        fn contains_digest(self: &Self, digest: Digest) -> bool;
        fn contains_many(self: &Self, digests: &[Digest], answers: &mut [bool]);
        fn prefetch(self: &Self, digest: Digest);
        fn footprint(self: &Self) -> u64;
        fn rate(self: &Self) -> f64;
        fn fill(self: &Self) -> f64;
        fn overflow(self: &Self) -> Option<u64>;
        fn is_crowded(self: &Self) -> bool;
        fn blocks_to_contain(self: &Self, digest: Digest) -> u32;
        fn blocks_to_insert(self: &Self, digest: Digest) -> u32;
    }
}

/// Filters of kinds that are built once take no keys: they return [`Full`].
impl Insert for AnyFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let full = Full { keys: self.keys(), inserted: 0 };
        self.as_insert().ok_or(full)?.insert_digest(digest)
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        let full = Full { keys: self.keys(), inserted: 0 };
        self.as_insert().ok_or(full)?.insert_many(digests)
    }
}

/// Filters of kinds that do not count return `None`.
impl Count for AnyFilter {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        self.as_count()?.count_digest(digest)
    }

    fn max_count(&self) -> u64 {
        self.as_count().map_or(0, Count::max_count)
    }
}
