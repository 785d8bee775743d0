//! What a kind is to the rest of the library: one trait to plan, build, predict, merge, send,
//! change and explain its filters.

use alloc::vec::Vec;

use crate::bits::{OutOfMemory, SharedBytes, Words, unite};
use crate::change::{Change, Flips, OTHER_KIND, Resolved, Shape};
use crate::coder::{self, Effort, Packing};
use crate::digest::Digest;
use crate::entry::Entry;
use crate::filter::{Count, Filter, Insert, Remove};
use crate::spec::{
    Absent, BuildError, Full, Goal, Invalid, Kind, Label, Limits, Lines, MergeError, Mismatch,
    Operation, Params, PlanError, Prediction, ResizeError, Traffic, WireError, in_proportion,
};
use crate::wire::{
    self, ContentHasher, ContentId, Encoded, Frame, Header, Object, Payload, Source,
};

/// The section that holds the array of bits. Frozen.
pub(crate) const ARRAY: u8 = 0;

/// A kind of filter: how it is planned, built, sent and combined.
///
/// Every filter type of the library implements it. Use it to write code that works with any of
/// them, and to send filters as bytes.
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
    /// The kind. Its number is stored in the header.
    const KIND: Kind;

    /// The integers that fix the layout.
    type Params: Params;

    /// What filters of this kind can do beyond answering. [`Operation::Values`] is not listed: it
    /// follows from [`VALUES`](Self::VALUES).
    #[doc(hidden)]
    const CAN: &'static [Operation];

    /// The name of the param that fixes how many bits of value each key has; `None` if keys
    /// cannot have values.
    #[doc(hidden)]
    const VALUES: Option<&'static str> = None;

    /// Why one would take this kind, in a sentence.
    #[doc(hidden)]
    const REASON: &'static str;

    /// Bits of each position of the array, such as 4 for counters of 4 bits. The memory that is
    /// in proportion to a rate grows with it.
    #[doc(hidden)]
    const POSITION_BITS: f64 = 1.0;

    /// Factors for predicted memory and for predicted blocks read. A limit is promised only if
    /// the prediction times its factor keeps within it, because the model is not exact.
    #[doc(hidden)]
    const MARGINS: [f64; 2] = [1.0, 1.0];

    /// The params, which fix the layout of this filter.
    fn params(&self) -> Self::Params;

    /// An empty filter. `label` is a [`Hasher`](crate::Hasher), or a [`Label`] that also says for
    /// how many keys the filter was planned.
    fn new(params: Self::Params, label: impl Into<Label>) -> Result<Self, OutOfMemory>;

    /// A filter of the keys with the digests `keys`.
    fn build(
        params: Self::Params,
        label: impl Into<Label>,
        keys: &[Digest],
    ) -> Result<Self, BuildError> {
        Self::build_in_parallel(params, label, keys, 1)
    }

    /// A filter of the keys with the digests `keys`, built by `threads` threads if the kind can
    /// use them. The bytes are the same for any number of threads. Kinds that keep identities
    /// copy digests that are not in order, so as to sort them.
    fn build_in_parallel(
        params: Self::Params,
        label: impl Into<Label>,
        keys: &[Digest],
        threads: usize,
    ) -> Result<Self, BuildError> {
        let mut filter = Self::new(params, label)?;
        let done = filter.insert_at_once(keys, threads);
        if let Some(insert) = filter.as_insert().filter(|_| !done) {
            insert.insert_many(keys)?;
        }
        Ok(filter)
    }

    /// Inserts `keys` into an empty filter, by `threads` threads if the kind can use them. Returns
    /// false, and does nothing, if they must be inserted one by one, or are quicker so.
    #[doc(hidden)]
    fn insert_at_once(&mut self, keys: &[Digest], threads: usize) -> bool {
        let _ = (keys, threads);
        false
    }

    /// The params that meet `goal` in the least memory.
    ///
    /// It is an error if no params meet the goal, or if the memory would be out of all proportion
    /// to its rate.
    fn plan(goal: &Goal) -> Result<Self::Params, PlanError> {
        let keys = goal.sized_keys();
        let bits = |params: &Self::Params| Self::planned_bits(params, keys) / keys as f64;
        in_proportion(Self::KIND, Self::POSITION_BITS, goal, Self::least, bits)
    }

    /// The params that meet `goal` in the least memory, even if that is out of proportion to its
    /// rate.
    #[doc(hidden)]
    fn least(goal: &Goal) -> Result<Self::Params, PlanError>;

    /// What a filter with `params` and `keys` keys will do.
    fn predict(params: &Self::Params, keys: u64) -> Prediction;

    /// The bits of memory of a filter with `params` that was planned for `keys` keys: for kinds
    /// that know them without the rest of the prediction.
    #[doc(hidden)]
    fn planned_bits(params: &Self::Params, keys: u64) -> f64 {
        Self::predict(params, keys).bits_per_key * keys as f64
    }

    /// The bytes on the wire of a filter with `params` and `keys` keys, and of its delta after
    /// `replaced` of the keys were replaced. Kinds that are built once have no delta.
    #[doc(hidden)]
    fn traffic(
        params: &Self::Params,
        keys: u64,
        predicted: &Prediction,
        replaced: Option<u64>,
    ) -> Traffic;

    /// Writes to `out` how the prediction comes about, in the symbols of the papers.
    #[doc(hidden)]
    fn explain(params: &Self::Params, keys: u64, predicted: &Prediction, out: &mut Lines);

    /// Names and values of the params that decide answers. With the hash, the seed and the
    /// content they make up the content id.
    #[doc(hidden)]
    fn content_params(params: &Self::Params) -> Vec<(&'static str, u64)> {
        Self::Params::NAMES.iter().copied().zip(params.values()).collect()
    }

    /// Adds the keys of `other`.
    ///
    /// Each kind decides what must agree, such as the seed or the params; the error names what
    /// does not. Nothing has changed on an error.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        let others = other.words().ok_or(MergeError::BuiltOnce(Self::KIND.name()))?;
        self.check_compatible(other)?;
        unite(self.words_mut().unwrap_or_default(), others);
        self.label_mut().merge(&other.label());
        Ok(())
    }

    /// Whether bits or counters mean the same in both filters: an error if hash, seed or params
    /// differ.
    #[doc(hidden)]
    fn check_compatible(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::check_hashers(self.hasher(), other.hasher())?;
        Mismatch::check_params(&self.params(), &other.params())
    }

    /// Makes room for twice as many keys. The keys are not needed.
    ///
    /// Answers do not change, but every further key raises the rate: with twice the keys it is
    /// about twice as high.
    fn grow(&mut self) -> Result<(), ResizeError> {
        Err(ResizeError::Fixed(Self::KIND.name()))
    }

    /// Lays the filter out anew for half as many keys. The keys are not needed, and answers stay
    /// as they are.
    fn shrink(&mut self) -> Result<(), ResizeError> {
        Err(ResizeError::Fixed(Self::KIND.name()))
    }

    /// Removes all keys.
    fn clear(&mut self) {
        self.words_mut().unwrap_or_default().fill(0);
        self.label_mut().keys = 0;
    }

    /// Checks every invariant. An error says that the content was not made by this library.
    fn validate(&self) -> Result<(), Invalid>;

    /// A name for what the filter holds. Filters with the same id answer alike, however they are
    /// encoded and came about.
    fn content_id(&self) -> ContentId {
        let mut id = ContentHasher::new(Self::KIND, self.hasher(), &self.params().values());
        self.array().into_iter().for_each(|(words, _)| id.words(words));
        id.finish()
    }

    /// The filter as bytes, in a form that can be used in place where the kind has one.
    fn encode(&self) -> Encoded<'_> {
        let array = self.array().map(|(words, _)| Payload::raw(ARRAY, words));
        self.frame(array.into_iter().chain(self.beside(None)).collect())
    }

    /// The filter as fewer bytes: entropy-coded, for transfer.
    ///
    /// It is decoded like the bytes of [`encode`](Self::encode), but cannot be used in place.
    /// `how` is an [`Effort`], or a [`Packing`] that cuts arrays into pieces.
    fn pack(&self, how: impl Into<Packing>) -> Encoded<'_> {
        let how = how.into();
        let array = self.array().map(|(words, bits)| Payload::array(ARRAY, words, bits, how));
        self.frame(array.into_iter().chain(self.beside(Some(how))).collect())
    }

    /// What a kind holds beside its array, as the section behind it; packed as `how` says, if it
    /// is given.
    #[doc(hidden)]
    fn beside(&self, how: Option<Packing>) -> Option<Payload<'_>> {
        let _ = how;
        None
    }

    /// A filter from a header that has been checked and the sections behind it.
    #[doc(hidden)]
    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError>;

    /// How many bytes [`encode`](Self::encode) makes.
    fn encoded_len(&self) -> u64 {
        self.encode().len()
    }

    /// A filter from `bytes`. Every byte is checked, and no more memory is taken than `limits`
    /// allow.
    fn decode(mut bytes: &[u8], limits: Limits) -> Result<Self, WireError> {
        Self::read(&mut bytes, limits)
    }

    /// A filter from any source of bytes, such as a file; otherwise as [`decode`](Self::decode).
    fn read(source: &mut dyn Source, limits: Limits) -> Result<Self, WireError> {
        Self::read_behind(Frame::read(source, limits)?)
    }

    /// A filter that answers from `bytes` in place, such as those of a mapped file.
    ///
    /// Only the header is checked: damage behind it goes unnoticed, and answers may be wrong.
    /// [`decode`](Self::decode) checks every byte, as `tamis verify` does for a file. The first
    /// change to the filter copies the bytes.
    ///
    /// Trimmed or packed sections cannot be used in place, nor can bytes that do not start on a
    /// multiple of eight (as those of `include_bytes!` may) or any on a big-endian machine: they
    /// are read and checked, within the default limits.
    fn open(bytes: &SharedBytes) -> Result<Self, WireError> {
        let mut frame = Frame::share(bytes)?;
        let filter = Self::from_frame(&mut frame)?;
        frame.finish()?;
        Ok(filter)
    }

    /// A filter from the sections behind a header that has been read already. Every byte is
    /// checked.
    #[doc(hidden)]
    fn read_behind(mut frame: Frame<'_>) -> Result<Self, WireError> {
        let filter = Self::from_frame(&mut frame)?;
        frame.finish()?;
        if !frame.is_sound() {
            filter.validate()?;
        }
        Ok(filter)
    }

    /// Label and params from the header of a filter of this kind.
    #[doc(hidden)]
    fn begin(frame: &Frame<'_>) -> Result<(Label, Self::Params), WireError> {
        let (label, values) = frame.begin(Object::Filter, Self::KIND)?;
        Ok((label, Self::Params::from_values(values)?))
    }

    /// The header of this filter, with `payloads` as its sections.
    #[doc(hidden)]
    fn frame<'a>(&self, payloads: Vec<Payload<'a>>) -> Encoded<'a> {
        let params = self.params().values();
        wire::encode(Header::new(Object::Filter, Self::KIND, self.label(), params), payloads)
    }

    /// The label, for a delta that changes keys and capacity.
    #[doc(hidden)]
    fn label_mut(&mut self) -> &mut Label;

    /// What turns the content of this filter into that of `new`, which has the same content
    /// params; `None` for kinds that are built once.
    #[doc(hidden)]
    fn diff(&self, new: &Self) -> Option<Change> {
        self.words()?;
        let ((old, bits), (new, _)) = (self.array()?, new.array()?);
        Some(Change::Bits(Flips::between(old, new, bits)))
    }

    /// The content id, and the change with the identities that it removes, if it has only their
    /// positions. Together, because both take a pass over all that is held.
    #[doc(hidden)]
    fn resolve(&self, change: &Change) -> Resolved {
        let _ = change;
        (self.content_id(), Ok(None))
    }

    /// Changes the content, with a change that was resolved. On an error it may be half changed.
    #[doc(hidden)]
    fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        match (change, self.words_mut()) {
            (Change::Bits(flips), Some(words)) => flips.apply(words),
            _ => Err(OTHER_KIND),
        }
    }

    /// What changes are made of, for content params with the values `content`; `None` if the kind
    /// has no such content params, or no deltas.
    #[doc(hidden)]
    fn shape(content: &[u64]) -> Option<Shape> {
        let _ = content;
        None
    }

    /// All entries, in order, for kinds that keep identities; nothing for the others.
    #[doc(hidden)]
    fn held_entries(&self) -> Vec<Entry> {
        Vec::new()
    }

    /// Fills an empty filter with entries, which come in order, each once; false if the kind keeps
    /// none, or there is no memory.
    #[doc(hidden)]
    fn hold_entries(&mut self, entries: &mut dyn Iterator<Item = Entry>) -> bool {
        let _ = entries;
        false
    }

    /// The largest value of a key; 0 where keys have none.
    #[doc(hidden)]
    fn largest_value(&self) -> u64 {
        0
    }

    /// The values of a key, smallest first.
    #[doc(hidden)]
    fn held_values(&self, _: Digest) -> Vec<u64> {
        Vec::new()
    }

    /// Inserts a key with a value of at most [`largest_value`](Self::largest_value).
    #[doc(hidden)]
    fn hold_value(&mut self, _: Digest, _: u64) -> Result<bool, Full> {
        Err(Full { keys: self.keys(), inserted: 0 })
    }

    /// Removes one occurrence of a key with this value.
    #[doc(hidden)]
    fn drop_value(&mut self, _: Digest, _: u64) -> Result<(), Absent> {
        Err(Absent)
    }

    /// The array of bits, for kinds that are one and nothing else, and take keys one by one. All
    /// others have their own [`clear`](Self::clear), and [`merge`](Self::merge) if they can.
    #[doc(hidden)]
    fn words(&self) -> Option<&[u64]> {
        None
    }

    /// The same, to write.
    #[doc(hidden)]
    fn words_mut(&mut self) -> Option<&mut [u64]> {
        None
    }

    /// The entropy of the content in bits, given its size and density alone. No coder makes the
    /// content much shorter.
    fn entropy_bits(&self) -> f64 {
        self.array().map_or(0.0, |(words, bits)| coder::entropy_bits(bits, words.ones()))
    }

    /// The array that [`pack`](Self::pack) codes, and its bits; `None` if it codes something other
    /// than an array of bits.
    ///
    /// A kind that holds more than this array has its own [`beside`](Self::beside),
    /// [`content_id`](Self::content_id) and [`entropy_bits`](Self::entropy_bits); a kind without
    /// one has its own [`encode`](Self::encode) and [`pack`](Self::pack) too.
    #[doc(hidden)]
    fn array(&self) -> Option<(&Words, u64)> {
        None
    }

    /// The name of the coder that [`pack`](Self::pack) uses.
    #[doc(hidden)]
    fn coder_name(&self, effort: Effort) -> &'static str {
        let coder = |(words, bits): (&Words, _)| coder::choose(bits, words.ones(), effort);
        self.array().map_or("gaps", |array| coder(array).name())
    }

    /// The filter as an [`Insert`]; `None` for kinds that are built once.
    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        None
    }

    /// The filter as a [`Remove`]; `None` for kinds from which keys cannot be removed.
    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        None
    }

    /// The filter as a [`Count`]; `None` for kinds that do not count.
    fn as_count(&self) -> Option<&dyn Count> {
        None
    }
}
