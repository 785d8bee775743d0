//! A filter that grows by layers, each a filter of the library.
//!
//! # Rates
//!
//! Layer i (from 0) is planned for the asked rate over (i + 1)(i + 2): a half, a sixth, a twelfth
//! ... These shares add up to 1 - 1/n after n layers, so that all together stay below the asked
//! rate, however many there are; and they fall slowly, so that late layers do not pay in bits for
//! what early ones were allowed. A filter that may not grow has one layer with all of the rate.
//!
//! # Removal is exact across layers
//!
//! A cuckoo family key goes to the oldest layer that already holds its identity, or else to the
//! newest. So a layer that is not the newest never gets a new identity, and the oldest layer that
//! holds a key's identity stays the same while the key is in: counting and removing there never
//! touches what another key relies on.

use std::cell::RefCell;

use tamis::{
    AnyFilter, AnyParams, ContentId, Digest, Filter, Goal, Hasher, Kind, Label, MergeError,
    OutOfMemory, PlanError,
};

use crate::plans;
use crate::remembered::Remembered;
use crate::reply::Refusal;

/// Which commands a filter answers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// BF.*: a set; keys are never removed.
    Bloom,
    /// CF.*: a multiset; keys can be removed and counted.
    Cuckoo,
}

impl Family {
    /// The kind of a layer with this rate.
    ///
    /// Sets: one cache line a question, until a plain filter takes a tenth less memory. Multisets:
    /// cells that count, so that further copies of a key take no other cell at first, and never
    /// more than a few hundred bytes.
    fn kind(self, rate: f64) -> Kind {
        match self {
            Self::Bloom if rate >= 0.001 => Kind::Blocked,
            Self::Bloom => Kind::Bloom,
            Self::Cuckoo => Kind::RankCounting,
        }
    }

    /// Whether layers may be of this kind: they may come from elsewhere.
    pub(crate) fn takes(self, kind: Kind) -> bool {
        match self {
            Self::Bloom => kind.can_insert(),
            Self::Cuckoo => matches!(
                kind,
                Kind::RankIndexed | Kind::RankCounting | Kind::BlockedRank | Kind::DLeft
            ),
        }
    }
}

/// The most layers: a question may have to read them all.
pub(crate) const MOST_LAYERS: usize = 1024;

/// What a user asked for when the filter was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) family: Family,
    pub(crate) rate: f64,
    /// Keys of the first layer.
    pub(crate) capacity: u64,
    /// How many times larger each next layer is; 0 if the filter may not grow.
    pub(crate) expansion: u32,
    /// Reported to clients of cuckoo filters, and without meaning here.
    pub(crate) bucket_size: u16,
    /// As `bucket_size`.
    pub(crate) max_iterations: u16,
    pub(crate) hasher: Hasher,
}

/// A layer that is to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) params: AnyParams,
    pub(crate) capacity: u64,
}

impl Layer {
    /// Bytes of memory when it is full.
    pub(crate) fn bytes(&self) -> u64 {
        let bits = self.params.predict(self.capacity).bits_per_key * self.capacity as f64;
        (bits / 8.0) as u64
    }
}

impl Asked {
    /// The rate that a layer is planned for.
    pub(crate) fn layer_rate(&self, layer: usize) -> f64 {
        if self.expansion == 0 {
            return self.rate;
        }
        let layer = layer as f64;
        self.rate / ((layer + 1.0) * (layer + 2.0))
    }

    fn layer_capacity(&self, layer: usize) -> u64 {
        let layer = u32::try_from(layer).unwrap_or(u32::MAX);
        self.capacity.saturating_mul(u64::from(self.expansion.max(1)).saturating_pow(layer))
    }

    /// The layout of a layer, and the bytes of memory that it will take.
    pub(crate) fn plan(&self, layer: usize) -> Result<(Layer, u64), PlanError> {
        let (rate, capacity) = (self.layer_rate(layer), self.layer_capacity(layer));
        let kind = self.family.kind(rate);
        plans::recall(kind, rate, capacity, || {
            let mut goal = Goal::rate(capacity, rate);
            if kind == Kind::Blocked {
                // These params are what the planner would find in ten times the time, or take at
                // most half a percent more memory.
                let hashes = (1.0 / rate).log2().round().max(1.0) as u64;
                goal.fixed.push(("hashes".into(), hashes));
            }
            let params = AnyParams::plan(kind, &goal)?;
            let layer = Layer { params, capacity };
            Ok((layer, layer.bytes()))
        })
    }
}

/// Every layer is full: another is needed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeedsLayer;

/// A filter of one layer or more.
#[derive(Clone, Debug)]
pub(crate) struct Scaling {
    asked: Asked,
    layers: Vec<AnyFilter>,
    /// Different identities in each layer of a multiset. They decide whether it is full; copies
    /// are only counted.
    distinct: Vec<u64>,
    /// Keys removed so far.
    removed: u64,
    /// Not part of the content: asking for a delta changes no filter.
    remembered: RefCell<Remembered>,
}

impl Scaling {
    /// A filter without a layer yet.
    pub(crate) fn new(asked: Asked) -> Self {
        let (layers, distinct) = (Vec::new(), Vec::new());
        Self { asked, layers, distinct, removed: 0, remembered: RefCell::default() }
    }

    /// A filter of layers that were read from somewhere, and what is distinct in each; `None` if
    /// they cannot belong together.
    pub(crate) fn of_layers(
        asked: Asked,
        mut layers: Vec<AnyFilter>,
        distinct: Vec<u64>,
        removed: u64,
    ) -> Option<Self> {
        let fits =
            |layer: &AnyFilter| layer.hasher() == asked.hasher && asked.family.takes(layer.kind());
        let right = (1..=MOST_LAYERS).contains(&layers.len()) && layers.len() == distinct.len();
        if !right || !layers.iter().all(fits) {
            return None;
        }
        layers.shrink_to_fit();
        Some(Self { asked, layers, distinct, removed, remembered: RefCell::default() })
    }

    /// What was asked for.
    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The layers, the oldest first.
    pub(crate) fn layers(&self) -> &[AnyFilter] {
        &self.layers
    }

    /// Different identities in each layer of a multiset; meaningless for a set.
    pub(crate) fn distinct(&self) -> &[u64] {
        &self.distinct
    }

    /// Remembers what a layer holds now, packed, so that a delta can start from it. All versions
    /// together take at most `most` bytes.
    pub(crate) fn remember(&self, id: ContentId, packed: Vec<u8>, most: u64) {
        self.remembered.borrow_mut().remember(id, packed, most);
    }

    /// The version of a layer that had this content, if it is remembered.
    pub(crate) fn recall(&self, id: ContentId) -> Option<AnyFilter> {
        self.remembered.borrow().get(id)
    }

    /// Adds all that another filter holds; on an error some of it may be in.
    ///
    /// A set's layer is merged into ours of the same number if that has room for both, and becomes
    /// a layer of its own otherwise. Multisets must have one layer each: otherwise a layer that is
    /// not the newest would get new identities, and removal would no longer be exact.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Refusal> {
        let mismatch = |error: MergeError| Refusal::from(format!("ERR {error}"));
        if self.asked.hasher != other.asked.hasher {
            return Err("ERR the filters differ in hash or seed".into());
        }
        if self.asked.family == Family::Cuckoo {
            let ([mine], [theirs]) = (&mut self.layers[..], &other.layers[..]) else {
                return Err("ERR cuckoo filters of several layers cannot be merged".into());
            };
            mine.merge(theirs).map_err(mismatch)?;
            self.distinct = vec![distinct_in(mine)];
            return Ok(());
        }
        for (number, theirs) in other.layers.iter().enumerate() {
            let room = |mine: &AnyFilter| {
                mine.params() == theirs.params()
                    && mine.keys().saturating_add(theirs.keys()) <= mine.capacity()
            };
            let layers = self.layers.len();
            match self.layers.get_mut(number) {
                Some(mine) if room(mine) => mine.merge(theirs).map_err(mismatch)?,
                _ if layers >= MOST_LAYERS => {
                    return Err("ERR bloom object reached max number of filters".into());
                }
                _ => {
                    self.layers.push(theirs.clone());
                    self.distinct.push(0);
                }
            }
        }
        Ok(())
    }

    /// Adds an empty layer.
    pub(crate) fn push(&mut self, layer: Layer) -> Result<(), OutOfMemory> {
        let label = Label::planned(self.asked.hasher, layer.capacity);
        let layer = layer.params.build(label)?;
        self.layers.reserve_exact(1); // Most filters have one layer for ever.
        self.layers.push(layer);
        self.distinct.push(0);
        Ok(())
    }

    /// Keys in: insertions less removals.
    pub(crate) fn keys(&self) -> u64 {
        self.layers.iter().map(Filter::keys).fold(0, u64::saturating_add)
    }

    /// Keys that all layers were planned for.
    pub(crate) fn capacity(&self) -> u64 {
        self.layers.iter().map(Filter::capacity).fold(0, u64::saturating_add)
    }

    /// Keys removed so far.
    pub(crate) fn removed(&self) -> u64 {
        self.removed
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(|layer| layer.footprint() / 8).sum();
        let structs = size_of::<Self>() + self.layers.capacity() * size_of::<AnyFilter>();
        layers + structs as u64 + self.remembered.borrow().bytes()
    }

    /// The digest of an item.
    pub(crate) fn digest(&self, item: &[u8]) -> Digest {
        self.asked.hasher.digest_bytes(item)
    }

    /// Whether the key may be in.
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        // The newest is the largest.
        self.layers.iter().rev().any(|layer| layer.contains_digest(digest))
    }

    /// Inserts a key unless it seems to be in; true if it was not.
    pub(crate) fn insert_new(&mut self, digest: Digest) -> Result<bool, NeedsLayer> {
        if self.contains(digest) {
            return Ok(false);
        }
        self.insert_into_newest(digest)?;
        Ok(true)
    }

    /// Inserts a key once more.
    pub(crate) fn insert(&mut self, digest: Digest) -> Result<(), NeedsLayer> {
        // Where there is one layer with room, old and new keys go to it.
        if self.layers.len() == 1 && !self.is_full(0) {
            return self.insert_into(0, digest);
        }
        match self.home(digest) {
            Some(layer) => self.insert_into(layer, digest),
            None => self.insert_into_newest(digest),
        }
    }

    fn insert_into_newest(&mut self, digest: Digest) -> Result<(), NeedsLayer> {
        let newest = self.layers.len().checked_sub(1).ok_or(NeedsLayer)?;
        if self.is_full(newest) { Err(NeedsLayer) } else { self.insert_into(newest, digest) }
    }

    /// Whether a layer has all the keys that it was planned for.
    fn is_full(&self, layer: usize) -> bool {
        let keys = match self.asked.family {
            Family::Bloom => self.layers[layer].keys(),
            Family::Cuckoo => self.distinct[layer],
        };
        keys >= self.layers[layer].capacity()
    }

    /// Inserts into a layer; one that refuses asks for another.
    fn insert_into(&mut self, layer: usize, digest: Digest) -> Result<(), NeedsLayer> {
        let inserted = self.layers[layer].as_insert().map(|layer| layer.insert_digest(digest));
        let Some(Ok(new)) = inserted else { return Err(NeedsLayer) };
        self.distinct[layer] = self.distinct[layer].saturating_add(u64::from(new));
        Ok(())
    }

    /// The layer that holds all copies of a key.
    fn home(&self, digest: Digest) -> Option<usize> {
        self.layers.iter().position(|layer| layer.contains_digest(digest))
    }

    /// Removes a key once; false if it is not in.
    pub(crate) fn remove(&mut self, digest: Digest) -> bool {
        let Some(home) = self.home(digest) else { return false };
        let Some(layer) = self.layers[home].as_remove() else { return false };
        let removed = layer.remove_digest(digest).is_ok();
        self.removed = self.removed.saturating_add(u64::from(removed));
        if removed && !self.layers[home].contains_digest(digest) {
            self.distinct[home] = self.distinct[home].saturating_sub(1);
        }
        removed
    }

    /// An upper bound on the count of a key; of a set 0 or 1.
    pub(crate) fn count(&self, digest: Digest) -> u64 {
        let Some(home) = self.home(digest) else { return 0 };
        let counted = self.layers[home].as_count().and_then(|layer| layer.count_digest(digest));
        counted.unwrap_or(1)
    }

    /// Drops layers that hold nothing, but keeps at least one layer.
    pub(crate) fn compact(&mut self) {
        let mut number = self.layers.len();
        while number > 0 {
            number -= 1;
            if self.layers.len() > 1 && self.layers[number].keys() == 0 {
                self.layers.remove(number);
                self.distinct.remove(number);
            }
        }
    }
}

/// Different identities in a layer that comes from elsewhere.
pub(crate) fn distinct_in(layer: &AnyFilter) -> u64 {
    if layer.kind().can_count() { layer.entries().len() as u64 } else { 0 }
}
