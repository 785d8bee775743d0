//! One way to build any filter: how large, which seed, and from which keys.

use alloc::string::String;
use alloc::vec::Vec;
use core::marker::PhantomData;

use crate::digest::{Digest, Hasher};
use crate::key::Key;
use crate::spec::{BuildError, Goal, Label, PlanError, Size};
use crate::stored::Stored;

/// Builds a filter of type `F`. Unless you say otherwise the rate is 1%, the hash function XXH3
/// and the seed 0.
///
/// ```
/// use tamis::{Bloom, CompressedBloom};
/// let mut seen = Bloom::builder(1_000_000).rate(0.001).seed(7).build()?;
/// seen.insert("apple");
///
/// // Kinds that are built once take all their keys at once.
/// let fruit = CompressedBloom::builder(3).rate(0.001).build_from(["apple", "pear", "plum"])?;
/// assert!(fruit.contains("pear"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder<F> {
    goal: Goal,
    hasher: Hasher,
    filter: PhantomData<fn() -> F>,
}

impl<F: Stored> Builder<F> {
    pub(crate) fn new(capacity: u64) -> Self {
        Self { goal: Goal::rate(capacity, 0.01), hasher: Hasher::default(), filter: PhantomData }
    }

    /// Asks for a rate of at most `rate`, in the least memory.
    pub fn rate(self, rate: f64) -> Self {
        self.size(Size::Rate(rate))
    }

    /// Asks for at most `bits` bits of memory for each key, with the lowest rate.
    pub fn bits_per_key(self, bits: f64) -> Self {
        self.size(Size::BitsPerKey(bits))
    }

    /// Asks for at most `bytes` bytes of memory, with the lowest rate.
    pub fn memory(self, bytes: u64) -> Self {
        self.size(Size::Memory(bytes))
    }

    fn size(mut self, size: Size) -> Self {
        self.goal.size = size;
        self
    }

    /// Hashes with XXH3 and this seed. Filters can be merged or compared only if their seeds are
    /// equal.
    pub fn seed(self, seed: u64) -> Self {
        self.hasher(Hasher::xxh3(seed))
    }

    /// Hashes with `hasher`. Use [`Hasher::sip13`] with a secret seed if an adversary may choose
    /// keys.
    pub fn hasher(mut self, hasher: Hasher) -> Self {
        self.hasher = hasher;
        self
    }

    /// Fixes the param `name` of the layout, such as `hashes`, instead of leaving it to the
    /// planner.
    pub fn param(mut self, name: impl Into<String>, value: u64) -> Self {
        self.goal.fixed.push((name.into(), value));
        self
    }

    /// An empty filter. Kinds that are built once would stay empty: use
    /// [`build_from`](Self::build_from) for them.
    pub fn build(self) -> Result<F, PlanError> {
        let params = F::plan(&self.goal)?;
        Ok(F::new(params, Label::planned(self.hasher, self.goal.keys))?)
    }

    /// A filter of `keys`. If there are more keys than the capacity, it is planned for all of
    /// them.
    pub fn build_from<K: Key>(self, keys: impl IntoIterator<Item = K>) -> Result<F, BuildError> {
        let hasher = self.hasher;
        let digests: Vec<Digest> = keys.into_iter().map(|key| hasher.digest(&key)).collect();
        self.build_from_digests(&digests)
    }

    /// As [`build_from`](Self::build_from), for digests that were made with the hasher of this
    /// builder.
    pub fn build_from_digests(mut self, digests: &[Digest]) -> Result<F, BuildError> {
        self.goal.keys = self.goal.keys.max(digests.len() as u64);
        let params = F::plan(&self.goal)?;
        F::build(params, Label::planned(self.hasher, self.goal.keys), digests)
    }
}
