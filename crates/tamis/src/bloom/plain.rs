//! The plain Bloom filter.

use alloc::vec;

use super::params::BloomParams;
use crate::bits::{self, BitVec, Line, OutOfMemory};
use crate::coder::Packing;
use crate::delta::Flips;
use crate::digest::Digest;
use crate::filter::{Filter, Insert, Stored};
use crate::spec::{Full, Invalid, Kind, Label, Mismatch, Params, WireError};
use crate::wire::{self, ContentHasher, ContentId, Encoded, Frame, Payload};

/// The section that holds the bit array.
const ARRAY: u8 = 0;

/// A plain Bloom filter: any number of bits m, any number of hash functions k.
///
/// ```
/// use tamis::{Bloom, Filter, Insert};
/// let mut filter = Bloom::with_rate(1_000, 0.01)?;
/// filter.insert("apple")?;
/// assert!(filter.contains("apple"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bloom {
    params: BloomParams,
    label: Label,
    bits: BitVec,
}

impl Bloom {
    /// A filter around a bit array that was made elsewhere in the house.
    pub(super) fn from_parts(params: BloomParams, label: Label, bits: BitVec) -> Self {
        Self { params, label, bits }
    }

    /// All words, to write. The caller sets no bit beyond the end.
    #[cfg(feature = "std")]
    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.bits.words_mut()
    }

    pub(super) fn into_bits(self) -> BitVec {
        self.bits
    }

    /// Flips bits.
    pub(crate) fn flip(&mut self, flips: &Flips) -> Result<(), &'static str> {
        flips.apply(self.bits.words_mut())
    }

    pub(crate) fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    /// The bit array.
    pub fn bits(&self) -> &BitVec {
        &self.bits
    }

    /// Adds the keys of another filter: the result is what inserting both sets into one filter gives.
    pub fn union(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_compatible(other)?;
        self.bits.union(&other.bits);
        self.label.merge(&other.label);
        Ok(())
    }

    /// Keeps the bits that both filters have. Every key that is in both sets stays; the rate is at most that of
    /// either filter, and somewhat above that of a filter built from the common keys. [`keys`](Filter::keys)
    /// becomes the smaller of the two: an upper bound.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Mismatch> {
        self.check_compatible(other)?;
        self.bits.intersect(&other.bits);
        self.label.keys = self.label.keys.min(other.label.keys);
        Ok(())
    }

    fn check_compatible(&self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::check_hashers(self.label.hasher, other.label.hasher)?;
        Mismatch::check("bits", &self.params.bits(), &other.params.bits())?;
        Mismatch::check("hashes", &self.params.hashes(), &other.params.hashes())
    }

    /// How many distinct keys are in, estimated from the fill: ln(1 - fill) / (k ln(1 - 1/m)). Infinite when
    /// every bit is set.
    pub fn estimated_keys(&self) -> f64 {
        let (m, k) = (self.params.bits() as f64, f64::from(self.params.hashes()));
        match self.bits.ones() {
            0 => return 0.0,
            ones if ones == self.params.bits() => return f64::INFINITY,
            _ => {}
        }
        libm::log1p(-self.fill()) / (k * libm::log1p(-1.0 / m))
    }
}

impl Filter for Bloom {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let words = self.bits.words().as_slice();
        self.params.positions(digest).all(|at| bits::test(words, at))
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        let words = self.bits.words().as_slice();
        for at in self.params.positions(digest) {
            bits::prefetch(words, (at / 64) as usize);
        }
    }

    fn footprint(&self) -> u64 {
        self.bits.words().footprint()
    }

    fn rate(&self) -> f64 {
        super::plain_rate(self.fill(), self.params.hashes(), self.label.keys)
    }

    fn fill(&self) -> f64 {
        self.bits.ones() as f64 / self.params.bits() as f64
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        let words = self.bits.words().as_slice();
        let mut going = true;
        let read = self
            .params
            .positions(digest)
            .take_while(|&at| core::mem::replace(&mut going, bits::test(words, at)));
        super::distinct_lines(read.map(|at| at / Line::BITS))
    }
}

impl Insert for Bloom {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let words = self.bits.words_mut();
        let mut new = false;
        for at in self.params.positions(digest) {
            new |= bits::set(words, at);
        }
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        let all = self.params.positions(digest);
        super::distinct_lines(all.map(|at| at / Line::BITS))
    }
}

impl Stored for Bloom {
    const KIND: Kind = Kind::Bloom;
    type Params = BloomParams;

    fn params(&self) -> BloomParams {
        self.params
    }

    fn new(params: BloomParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self { params, label: label.into(), bits: BitVec::zeroed(params.bits())? })
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        if self.bits.tail_is_zero() { Ok(()) } else { Err(super::STRAY_BITS) }
    }

    fn content_id(&self) -> ContentId {
        let mut id = ContentHasher::new(Self::KIND, self.label.hasher, &self.params.values());
        id.words(self.bits.words());
        id.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        wire::encode(self, vec![Payload::raw(ARRAY, self.bits.words())])
    }

    fn pack(&self, how: impl Into<Packing>) -> Encoded<'_> {
        let words = self.bits.words().as_slice();
        let bytes = how.into().array(words, self.params.bits());
        wire::encode(self, vec![Payload::packed(ARRAY, bytes, words.len() as u64 * 8)])
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = frame.begin::<Self>()?;
        let words = frame.array(ARRAY, params.bits())?;
        let bits = BitVec::from_words(words, params.bits()).ok_or(super::STRAY_BITS)?;
        Ok(Self { params, label, bits })
    }
}
