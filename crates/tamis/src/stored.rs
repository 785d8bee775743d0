//! What a kind is to the rest of the library: planned, built, predicted, merged, sent, changed and explained by one trait.

use alloc::vec::Vec;

use crate::bits::{OutOfMemory, SharedBytes};
use crate::change::{Change, OTHER_KIND, Shape};
use crate::coder::{self, Effort, Packing};
use crate::digest::Digest;
use crate::entry::Entry;
use crate::filter::{Count, Filter, Insert, Remove};
use crate::spec::{
    BuildError, Goal, Invalid, Kind, Label, Limits, Lines, MergeError, Operation, Params,
    PlanError, Prediction, ResizeError, Traffic, WireError, in_proportion,
};
use crate::wire::{self, ContentId, Encoded, Frame, Header, Object, Payload, Source};

/// A kind of filter: how it is planned, built, sent and combined.
///
/// ```
/// use tamis::{Bloom, Limits, Stored};
/// let mut filter = Bloom::with_rate(1_000, 0.01)?;
/// filter.insert("apple");
/// let bytes = filter.encode().to_vec();
/// let copy = Bloom::decode(&bytes, Limits::default())?;
/// assert_eq!(copy.content_id(), filter.content_id());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Stored: Filter + Clone + Sized {
    /// The kind, whose number stands in the header.
    const KIND: Kind;

    /// The integers that fix the layout.
    type Params: Params;

    /// What filters of this kind can do beyond answering. [`Operation::Values`] follows from [`VALUES`](Self::VALUES).
    #[doc(hidden)]
    const CAN: &'static [Operation];

    /// The param that says how many bits of value a key has, if it can have any.
    #[doc(hidden)]
    const VALUES: Option<&'static str> = None;

    /// Why one would take it, in a sentence.
    #[doc(hidden)]
    const REASON: &'static str;

    /// Bits of each position, where a kind has more than one: what is in proportion to a rate grows with them.
    #[doc(hidden)]
    const POSITION_BITS: f64 = 1.0;

    /// What a promise of memory, and one of blocks read, must leave to what the model does not know.
    #[doc(hidden)]
    const MARGINS: [f64; 2] = [1.0, 1.0];

    /// The layout.
    fn params(&self) -> Self::Params;

    /// An empty filter. The label is a [`Hasher`](crate::Hasher), or a [`Label`] that also says how many keys are planned.
    fn new(params: Self::Params, label: impl Into<Label>) -> Result<Self, OutOfMemory>;

    /// A filter of `keys`.
    fn build(
        params: Self::Params,
        label: impl Into<Label>,
        keys: &[Digest],
    ) -> Result<Self, BuildError> {
        Self::build_in_parallel(params, label, keys, 1)
    }

    /// A filter of `keys`, built by `threads` threads where the kind allows, and with the same bytes for any number of them.
    fn build_in_parallel(
        params: Self::Params,
        label: impl Into<Label>,
        keys: &[Digest],
        threads: usize,
    ) -> Result<Self, BuildError> {
        let mut filter = Self::new(params, label)?;
        let done = threads > 1 && filter.insert_in_parallel(keys, threads);
        if let Some(insert) = filter.as_insert().filter(|_| !done) {
            insert.insert_many(keys)?;
        }
        Ok(filter)
    }

    /// Inserts keys by several threads; false, and nothing done, where the order of the keys decides where they lie.
    #[doc(hidden)]
    fn insert_in_parallel(&mut self, keys: &[Digest], threads: usize) -> bool {
        let _ = (keys, threads);
        false
    }

    /// The params for a goal: the least memory that meets it, or an error where that is out of all proportion to its rate.
    fn plan(goal: &Goal) -> Result<Self::Params, PlanError> {
        let bits = |params: &Self::Params| Self::predict(params, goal.sized_keys()).bits_per_key;
        in_proportion(Self::KIND, Self::POSITION_BITS, goal, Self::least, bits)
    }

    /// The params for a goal, in proportion or not.
    #[doc(hidden)]
    fn least(goal: &Goal) -> Result<Self::Params, PlanError>;

    /// What a filter with these params and `keys` keys will do.
    fn predict(params: &Self::Params, keys: u64) -> Prediction;

    /// What a filter with these params takes on the wire, and its delta after `replaced` of its `keys` keys were replaced; no
    /// delta for kinds that are built once.
    #[doc(hidden)]
    fn traffic(
        params: &Self::Params,
        keys: u64,
        predicted: &Prediction,
        replaced: Option<u64>,
    ) -> Traffic;

    /// How a prediction comes about, with the symbols of the papers.
    #[doc(hidden)]
    fn explain(params: &Self::Params, keys: u64, predicted: &Prediction, out: &mut Lines);

    /// Names and values of all that decides answers beside hash, seed and content.
    #[doc(hidden)]
    fn content_params(params: &Self::Params) -> Vec<(&'static str, u64)> {
        Self::Params::NAMES.iter().copied().zip(params.values()).collect()
    }

    /// Adds the keys of another filter. What must agree is the kind's affair: the error names what does not.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        let _ = other;
        Err(MergeError::BuiltOnce(Self::KIND.name()))
    }

    /// Lays the filter out anew for twice as many keys, without the keys: answers stay.
    fn grow(&mut self) -> Result<(), ResizeError> {
        Err(ResizeError::Fixed(Self::KIND.name()))
    }

    /// Lays the filter out anew for half as many keys, without the keys: answers stay.
    fn shrink(&mut self) -> Result<(), ResizeError> {
        Err(ResizeError::Fixed(Self::KIND.name()))
    }

    /// Removes all keys.
    fn clear(&mut self);

    /// Checks every invariant; an error means that the content was not made by this library.
    fn validate(&self) -> Result<(), Invalid>;

    /// A name for what the filter holds, whatever its encoding and history.
    fn content_id(&self) -> ContentId;

    /// The filter as bytes.
    fn encode(&self) -> Encoded<'_>;

    /// The filter as fewer bytes: entropy-coded, for transfer. It is decoded like the other form, but cannot be used in place. How
    /// is an [`Effort`], or a [`Packing`] that cuts arrays into pieces.
    fn pack(&self, how: impl Into<Packing>) -> Encoded<'_>;

    /// A filter from a header that has been checked and the sections behind it.
    #[doc(hidden)]
    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError>;

    /// How many bytes [`encode`](Self::encode) makes.
    fn encoded_len(&self) -> u64 {
        self.encode().len()
    }

    /// A filter from bytes, everything checked.
    fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        Self::read(&mut bytes, limits)
    }

    /// A filter from any source of bytes, everything checked.
    fn read(source: &mut dyn Source, limits: Limits) -> Result<Self, WireError> {
        Self::read_behind(Frame::read(source, limits)?)
    }

    /// A filter that answers from bytes kept elsewhere, such as a mapped file. Only the header is checked; the
    /// first change copies the bytes. What is trimmed or packed cannot be used in place, and is read and checked, within the
    /// default limits.
    fn open(bytes: &SharedBytes) -> Result<Self, WireError> {
        let mut frame = Frame::share(bytes)?;
        let filter = Self::from_frame(&mut frame)?;
        frame.finish()?;
        Ok(filter)
    }

    /// A filter behind a header that was read and looked at, everything checked.
    #[doc(hidden)]
    fn read_behind(mut frame: Frame<'_>) -> Result<Self, WireError> {
        let filter = Self::from_frame(&mut frame)?;
        frame.finish()?;
        if !frame.is_sound() {
            filter.validate()?;
        }
        Ok(filter)
    }

    /// Label and params of a filter of this kind.
    #[doc(hidden)]
    fn begin(frame: &Frame<'_>) -> Result<(Label, Self::Params), WireError> {
        let (label, values) = frame.begin(Self::KIND)?;
        Ok((label, Self::Params::from_values(values)?))
    }

    /// The filter's header with these sections behind it.
    #[doc(hidden)]
    fn frame<'a>(&self, payloads: Vec<Payload<'a>>) -> Encoded<'a> {
        let Label { hasher, keys, capacity } = self.label();
        let (object, kind, params) = (Object::Filter, Self::KIND, self.params().values());
        let sections = Vec::new();
        wire::encode(Header { object, kind, hasher, keys, capacity, params, sections }, payloads)
    }

    #[doc(hidden)]
    fn label_mut(&mut self) -> &mut Label;

    /// What turns this content into that of another filter with the same content params; `None` for kinds that are built once.
    #[doc(hidden)]
    fn diff(&self, new: &Self) -> Option<Change> {
        let _ = new;
        None
    }

    /// Changes the content; on an error it is half changed.
    #[doc(hidden)]
    fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        let _ = change;
        Err(OTHER_KIND)
    }

    /// What changes are made of, from the values of the content params; `None` if these are not of the kind.
    #[doc(hidden)]
    fn shape(content: &[u64]) -> Option<Shape> {
        let _ = content;
        None
    }

    /// All that is in, where a kind keeps identities.
    #[doc(hidden)]
    fn held_entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    /// What the content takes at least on the wire if only its size and its density are known: no coder does much better.
    fn entropy_bits(&self) -> f64;

    /// Bits and ones of the array that [`pack`](Self::pack) codes; `None` where that is no array of bits.
    #[doc(hidden)]
    fn array(&self) -> Option<(u64, u64)> {
        None
    }

    /// What [`pack`](Self::pack) codes with.
    #[doc(hidden)]
    fn coder_name(&self, effort: Effort) -> &'static str {
        self.array().map_or("gaps", |(bits, ones)| coder::choose(bits, ones, effort).name())
    }

    /// The filter as one that takes keys, if it does.
    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        None
    }

    /// The filter as one that gives keys up, if it does.
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        None
    }

    /// The filter as one that counts, if it does.
    fn as_count(&self) -> Option<&dyn Count> {
        None
    }
}
