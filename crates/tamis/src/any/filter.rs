//! A filter of any kind.

use alloc::vec::Vec;

use super::{AnyParams, Listed, by_kind, each};
use crate::bits::{OutOfMemory, SharedBytes};
use crate::change::Change;
use crate::coder::{Effort, Packing};
use crate::digest::Digest;
use crate::entry::Entry;
use crate::filter::{Count, Filter, Insert, Remove};
use crate::spec::{
    Full, Invalid, Kind, Label, Limits, MergeError, Mismatch, ResizeError, WireError,
};
use crate::stored::Stored;
use crate::wire::{ContentId, Encoded, Frame, Source};

macro_rules! define {
    ($($id:literal $kind:ident $name:literal $type:ty,)*) => {
        /// A filter of any kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum AnyFilter {
            $(#[doc = concat!("`", $name, "`.")] $kind($type),)*
        }
    };
}
kinds!(define);

impl AnyFilter {
    /// The kind.
    pub fn kind(&self) -> Kind {
        each!(AnyFilter: self, F, _filter => F::KIND)
    }

    /// The layout.
    pub fn params(&self) -> AnyParams {
        each!(AnyFilter: self, F, filter => F::hold_params(filter.params()))
    }

    /// The filter as one that takes keys, if it does.
    pub fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        each!(AnyFilter: self, F, filter => filter.as_insert())
    }

    /// The filter as one that gives keys up, if it does.
    pub fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        each!(AnyFilter: self, F, filter => filter.as_remove())
    }

    /// The filter as one that counts, if it does.
    pub fn as_count(&self) -> Option<&dyn Count> {
        each!(AnyFilter: self, F, filter => filter.as_count())
    }

    /// Adds the keys of another filter of the same kind; what else must agree is the kind's affair.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        let (mine, theirs) = (self.kind().name(), other.kind().name());
        each!(AnyFilter: self, F, filter => match F::inside(other) {
            Some(other) => filter.merge(other),
            None => Ok(Mismatch::check("kind", mine, theirs)?),
        })
    }

    /// Lays the filter out anew for twice as many keys, without the keys: answers stay.
    pub fn grow(&mut self) -> Result<(), ResizeError> {
        each!(AnyFilter: self, F, filter => Stored::grow(filter))
    }

    /// Lays the filter out anew for half as many keys, without the keys: answers stay.
    pub fn shrink(&mut self) -> Result<(), ResizeError> {
        each!(AnyFilter: self, F, filter => Stored::shrink(filter))
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        each!(AnyFilter: self, F, filter => filter.clear());
    }

    /// Checks every invariant.
    pub fn validate(&self) -> Result<(), Invalid> {
        each!(AnyFilter: self, F, filter => filter.validate())
    }

    /// A name for what the filter holds.
    pub fn content_id(&self) -> ContentId {
        each!(AnyFilter: self, F, filter => filter.content_id())
    }

    /// The filter as bytes.
    pub fn encode(&self) -> Encoded<'_> {
        each!(AnyFilter: self, F, filter => filter.encode())
    }

    /// The filter as fewer bytes, entropy-coded.
    pub fn pack(&self, how: impl Into<Packing>) -> Encoded<'_> {
        let how = how.into();
        each!(AnyFilter: self, F, filter => filter.pack(how))
    }

    /// What readers need of this filter: of a counting Bloom filter the plain one that answers alike, while the counters stay
    /// at home; of any other kind all of it.
    pub fn projection(&self) -> Result<Self, OutOfMemory> {
        match self {
            Self::Counting(filter) => filter.to_bloom().map(Self::Bloom),
            _ => Ok(self.clone()),
        }
    }

    /// What the content takes at least on the wire if only its size and its density are known: no coder does much better.
    pub fn entropy_bits(&self) -> f64 {
        each!(AnyFilter: self, F, filter => filter.entropy_bits())
    }

    /// What [`pack`](Self::pack) codes with.
    pub fn coder_name(&self, effort: Effort) -> &'static str {
        each!(AnyFilter: self, F, filter => filter.coder_name(effort))
    }

    /// Whether what the filter is packed into is an array of bits, which can be cut into pieces ([`Packing`]); others are counters or
    /// sorted numbers.
    pub fn packs_an_array(&self) -> bool {
        each!(AnyFilter: self, F, filter => filter.array().is_some())
    }

    /// All that is in, in order of identity and value, where a kind keeps identities; nothing for the others.
    pub fn entries(&self) -> Vec<Entry> {
        each!(AnyFilter: self, F, filter => filter.held_entries())
    }

    /// Names and values of all that decides answers beside hash, seed and content.
    pub(crate) fn content_params(&self) -> Vec<(&'static str, u64)> {
        each!(AnyFilter: self, F, filter => F::content_params(&filter.params()))
    }

    /// What turns this content into that of another filter; `None` for kinds that are built once, and for different kinds.
    pub(crate) fn diff(&self, new: &Self) -> Option<Change> {
        each!(AnyFilter: self, F, filter => filter.diff(F::inside(new)?))
    }

    /// Changes the content; on an error it is half changed.
    pub(crate) fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        each!(AnyFilter: self, F, filter => filter.apply(change))
    }

    /// Takes over keys and planned keys from a label.
    pub(crate) fn set_keys(&mut self, label: Label) {
        let own = each!(AnyFilter: self, F, filter => filter.label_mut());
        (own.keys, own.capacity) = (label.keys, label.capacity);
    }

    /// A filter of whatever kind from bytes, everything checked.
    pub fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        Self::read(&mut bytes, limits)
    }

    /// A filter of whatever kind from any source of bytes, everything checked.
    pub fn read(source: &mut dyn Source, limits: Limits) -> Result<Self, WireError> {
        Self::read_behind(Frame::read(source, limits)?)
    }

    /// A filter of whatever kind behind a header that was read and looked at, everything checked.
    pub fn read_behind(frame: Frame<'_>) -> Result<Self, WireError> {
        by_kind!(frame.header().kind, F => F::read_behind(frame).map(Listed::hold))
    }

    /// A filter of whatever kind that answers from bytes kept elsewhere; only the header is checked.
    pub fn open(bytes: &SharedBytes) -> Result<Self, WireError> {
        by_kind!(Frame::share(bytes)?.header().kind, F => F::open(bytes).map(Listed::hold))
    }
}

impl Filter for AnyFilter {
    fn label(&self) -> Label {
        each!(AnyFilter: self, F, filter => filter.label())
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        each!(AnyFilter: self, F, filter => filter.contains_digest(digest))
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        each!(AnyFilter: self, F, filter => filter.contains_many(digests, answers));
    }

    fn prefetch(&self, digest: Digest) {
        each!(AnyFilter: self, F, filter => filter.prefetch(digest));
    }

    fn footprint(&self) -> u64 {
        each!(AnyFilter: self, F, filter => filter.footprint())
    }

    fn rate(&self) -> f64 {
        each!(AnyFilter: self, F, filter => filter.rate())
    }

    fn fill(&self) -> f64 {
        each!(AnyFilter: self, F, filter => filter.fill())
    }

    fn overflow(&self) -> Option<u64> {
        each!(AnyFilter: self, F, filter => filter.overflow())
    }

    fn is_crowded(&self) -> bool {
        each!(AnyFilter: self, F, filter => filter.is_crowded())
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        each!(AnyFilter: self, F, filter => filter.blocks_to_contain(digest))
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        each!(AnyFilter: self, F, filter => filter.blocks_to_insert(digest))
    }
}

/// Kinds that are built once take no keys, and say that they are full.
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

/// Kinds that do not count know no count.
impl Count for AnyFilter {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        self.as_count()?.count_digest(digest)
    }

    fn max_count(&self) -> u64 {
        self.as_count().map_or(0, Count::max_count)
    }
}
