//! A set that grows by layers, each a filter of the library: what BF.* works on.
//!
//! # Rates
//!
//! Layer i (from 0) is planned for the asked rate over (i + 1)(i + 2): a half, a sixth, a twelfth
//! ... These shares add up to 1 - 1/n after n layers, so that all together stay below the asked
//! rate, however many there are; and they fall slowly, so that late layers do not pay in bits for
//! what early ones were allowed. A filter that may not grow has one layer with all of the rate.

use tamis::{AnyFilter, AnyParams, Digest, Filter, Kind, Label, MergeError};

use crate::asked::Asked;
use crate::memory::NoMemory;
use crate::multiset::{self, Full, Table};
use crate::plans::{self, Unreachable};
use crate::reply::Refusal;

/// The most layers: a question may have to read them all.
pub(crate) const MOST_LAYERS: usize = 1024;
/// The most keys of a small layer: one leaf holds them.
const MOST_SMALL: u64 = 512;

/// A layer that is to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// A sorted list of identities, which takes the memory of what is in.
    Small(multiset::Plan),
    /// A filter of the library.
    Large { params: AnyParams, capacity: u64 },
}

impl Plan {
    /// The next layer of a set that has `layers` layers.
    pub(crate) fn next(asked: &Asked, layers: usize) -> Result<Self, Unreachable> {
        let number = u32::try_from(layers).unwrap_or(u32::MAX);
        let factor = u64::from(asked.expansion.max(1)).saturating_pow(number);
        let capacity = asked.capacity.saturating_mul(factor);
        let rate = layer_rate(asked, layers);
        if capacity <= MOST_SMALL
            && let Ok(plan) = multiset::Plan::exact(capacity, rate)
        {
            return Ok(Self::Small(plan));
        }
        Ok(Self::Large { params: plans::layout(rate, capacity)?, capacity })
    }

    /// Bytes of memory that it will take.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Small(plan) => plan.bytes(),
            Self::Large { params, .. } => plans::bytes(params) + size_of::<AnyFilter>() as u64,
        }
    }
}

/// A layer.
#[derive(Clone, Debug)]
pub(crate) enum Layer {
    /// A sorted list of identities.
    Small(Table),
    /// A filter of the library.
    Large(Box<AnyFilter>),
}

impl Layer {
    pub(crate) fn keys(&self) -> u64 {
        match self {
            Self::Small(table) => table.distinct(),
            Self::Large(filter) => filter.keys(),
        }
    }

    /// The name of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Small(_) => multiset::KIND,
            Self::Large(filter) => filter.kind().name(),
        }
    }

    /// Keys that it was planned for.
    pub(crate) fn capacity(&self) -> u64 {
        match self {
            Self::Small(table) => table.most(),
            Self::Large(filter) => filter.capacity(),
        }
    }

    /// The rate that it has; by the model, if it is large.
    pub(crate) fn rate(&self) -> f64 {
        match self {
            Self::Small(table) => table.rate(),
            Self::Large(filter) => filter.params().predict(filter.keys()).rate,
        }
    }

    /// Bytes of memory held, beside this struct.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Self::Small(table) => table.memory(),
            Self::Large(filter) => filter.footprint() / 8 + size_of::<AnyFilter>() as u64,
        }
    }

    fn contains(&self, digest: Digest) -> bool {
        match self {
            Self::Small(table) => table.contains(digest),
            Self::Large(filter) => filter.contains_digest(digest),
        }
    }

    /// Whether it answers as a layer with this plan does.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Small(mine), Self::Small(theirs)) => mine.universe() == theirs.universe(),
            (Self::Large(mine), Self::Large(theirs)) => mine.params() == theirs.params(),
            _ => false,
        }
    }

    /// Adds what another layer like this one holds.
    fn merge(&mut self, other: &Self) -> Result<(), Refusal> {
        match (self, other) {
            (Self::Small(mine), Self::Small(theirs)) => {
                for (identity, _) in theirs.items() {
                    if mine.count(identity) == 0 {
                        mine.add(identity, 1).map_err(|_| NoMemory)?;
                    }
                }
                Ok(())
            }
            (Self::Large(mine), Self::Large(theirs)) => {
                let mismatch = |error: MergeError| Refusal::from(format!("ERR {error}"));
                mine.merge(theirs).map_err(mismatch)
            }
            _ => Err("ERR the layers differ".into()),
        }
    }
}

/// The rate that a layer is planned for.
pub(crate) fn layer_rate(asked: &Asked, layer: usize) -> f64 {
    if asked.expansion == 0 {
        return asked.rate;
    }
    let layer = layer as f64;
    asked.rate / ((layer + 1.0) * (layer + 2.0))
}

/// Whether layers may be of this kind: they may come from elsewhere.
pub(crate) fn takes(kind: Kind) -> bool {
    kind.can_insert()
}

/// A set of one layer or more, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Scaling {
    asked: Asked,
    layers: Vec<Layer>,
}

impl Scaling {
    /// A filter without a layer yet.
    pub(crate) fn new(asked: Asked) -> Self {
        Self { asked, layers: Vec::new() }
    }

    /// A filter of layers that were read from somewhere; `None` if they cannot belong together.
    pub(crate) fn of_layers(asked: Asked, mut layers: Vec<Layer>) -> Option<Self> {
        let fits = |layer: &Layer| match layer {
            Layer::Small(_) => true,
            Layer::Large(filter) => filter.hasher() == asked.hasher && takes(filter.kind()),
        };
        if !(1..=MOST_LAYERS).contains(&layers.len()) || !layers.iter().all(fits) {
            return None;
        }
        layers.shrink_to_fit();
        Some(Self { asked, layers })
    }

    /// What was asked for.
    pub(crate) fn asked(&self) -> &Asked {
        &self.asked
    }

    /// The layers, the oldest first.
    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Adds all that another filter holds; on an error some of it may be in. A layer is merged
    /// into ours of the same number if that has room for both, and becomes a layer of its own
    /// otherwise.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), Refusal> {
        for (number, theirs) in other.layers.iter().enumerate() {
            let room = |mine: &Layer| {
                mine.is_like(theirs) && mine.keys().saturating_add(theirs.keys()) <= mine.capacity()
            };
            let layers = self.layers.len();
            match self.layers.get_mut(number) {
                Some(mine) if room(mine) => mine.merge(theirs)?,
                _ if layers >= MOST_LAYERS => {
                    return Err("ERR bloom object reached max number of filters".into());
                }
                _ => self.layers.push(theirs.clone()),
            }
        }
        Ok(())
    }

    /// Adds an empty layer.
    pub(crate) fn push(&mut self, plan: Plan) -> Result<(), NoMemory> {
        let layer = match plan {
            Plan::Small(plan) => Layer::Small(Table::new(plan)),
            Plan::Large { params, capacity } => {
                let label = Label::planned(self.asked.hasher, capacity);
                Layer::Large(Box::new(params.build(label).map_err(|_| NoMemory)?))
            }
        };
        self.layers.try_reserve_exact(1).map_err(|_| NoMemory)?; // Most have one layer for ever.
        self.layers.push(layer);
        Ok(())
    }

    /// Keys in.
    pub(crate) fn keys(&self) -> u64 {
        self.layers.iter().map(Layer::keys).fold(0, u64::saturating_add)
    }

    /// Keys that all layers were planned for.
    pub(crate) fn capacity(&self) -> u64 {
        self.layers.iter().map(Layer::capacity).fold(0, u64::saturating_add)
    }

    /// The probability that some layer answers yes for an absent key.
    pub(crate) fn rate(&self) -> f64 {
        1.0 - self.layers.iter().map(|layer| 1.0 - layer.rate()).product::<f64>()
    }

    /// Bytes of memory held, beside this struct.
    pub(crate) fn memory(&self) -> u64 {
        let layers: u64 = self.layers.iter().map(Layer::memory).sum();
        layers + (self.layers.capacity() * size_of::<Layer>()) as u64
    }

    /// Whether the key may be in.
    pub(crate) fn contains(&self, digest: Digest) -> bool {
        // The newest is the largest.
        self.layers.iter().rev().any(|layer| layer.contains(digest))
    }

    /// Inserts a key unless it seems to be in; true if it was not.
    pub(crate) fn insert_new(&mut self, digest: Digest) -> Result<bool, Full> {
        if self.contains(digest) {
            return Ok(false);
        }
        let newest = self.layers.last_mut().ok_or(Full::NeedsPart)?;
        if newest.keys() >= newest.capacity() {
            return Err(Full::NeedsPart);
        }
        match newest {
            Layer::Small(table) => table.add(table.identity(digest), 1).map_err(Full::from)?,
            Layer::Large(filter) => {
                let inserted = filter.as_insert().map(|layer| layer.insert_digest(digest));
                inserted.and_then(Result::ok).ok_or(Full::NeedsPart)?
            }
        };
        Ok(true)
    }
}
