//! What a user asks for.

use alloc::string::String;
use alloc::vec::Vec;

use super::params::require;
use super::{AtMost, PlanError};
use crate::bits::Line;

/// How large a filter is to be: by its rate, by its memory or by its bytes on the wire.
///
/// ```
/// use tamis::{Bloom, Goal, Size, Stored};
/// let params = Bloom::plan(&Goal::sized(10_000, Size::BitsPerKey(12.0)))?;
/// assert!(Bloom::predict(&params, 10_000).rate < 0.01);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Size {
    /// At most this rate, in the least memory.
    Rate(f64),
    /// At most this number of bits of array for each key, with the lowest rate.
    BitsPerKey(f64),
    /// At most this number of bytes held in all, with the lowest rate. Memory is held in lines of
    /// 64 bytes.
    Memory(u64),
    /// At most `bytes` bytes on the wire, with the lowest rate: of a delta if the goal has a
    /// churn, otherwise of a packed snapshot.
    ///
    /// [`AnyParams::plan`](crate::AnyParams::plan), [`Plan::of`](crate::Plan::of) and
    /// [`choose`](crate::choose) plan for it; [`Stored::plan`](crate::Stored::plan) does not.
    /// Plain and counting filters may take eight times the memory that their rate needs, or what
    /// [`AtMost::bits_per_key`] allows.
    Wire {
        /// The bytes, header included.
        bytes: u64,
        /// The share of `bytes` that the mean message leaves free, because sizes vary: 0.01 in
        /// the paper. `None` leaves five standard deviations free; one message in three million
        /// is longer.
        margin: Option<f64>,
    },
}

/// What a filter must be able to do beyond answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Take keys one by one.
    Insert,
    /// Have keys removed.
    Remove,
    /// Say how often a key is in.
    Count,
    /// Add the keys of another filter.
    Merge,
    /// Be laid out anew for more keys, without the keys.
    Grow,
    /// Keep a value of this number of bits for every key.
    Values(u32),
}

impl Operation {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Remove => "remove",
            Self::Count => "count",
            Self::Merge => "merge",
            Self::Grow => "grow",
            Self::Values(_) => "value",
        }
    }
}

/// What matters most among the filters that meet a goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Minimise {
    /// Memory, with a tenth more of it for every block beyond the first that a lookup reads.
    #[default]
    Balanced,
    /// Bits of memory.
    Memory,
    /// Bytes on the wire: of a delta where a churn is given, otherwise of a snapshot.
    Wire,
    /// Blocks that a lookup reads.
    Lookups,
}

impl Minimise {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Balanced, Self::Memory, Self::Wire, Self::Lookups];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Memory => "memory",
            Self::Wire => "wire",
            Self::Lookups => "lookups",
        }
    }
}

/// What a user asks of a filter.
///
/// ```
/// use tamis::{Goal, Kind, Operation, choose};
/// let mut goal = Goal::rate(1_000_000, 0.001).needs([Operation::Insert, Operation::Remove]);
/// goal.at_most.blocks = Some(1.5);
/// let plans = choose(&goal)?;
/// assert_eq!(plans[0].params.kind(), Kind::BlockedRank);
/// assert!(plans[0].predicted.rate <= 0.001);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Goal {
    /// How many keys will be in the filter. 0 is allowed.
    pub keys: u64,
    /// How large the filter is to be.
    pub size: Size,
    /// Params that are fixed, by name. The planner chooses the others.
    pub fixed: Vec<(String, u64)>,
    /// What the filter must be able to do beyond answering. Kinds that are built once can do none
    /// of it.
    pub needs: Vec<Operation>,
    /// What the filter may take.
    pub at_most: AtMost,
    /// The share of the keys that is replaced from one delta to the next, if deltas are sent.
    ///
    /// The model replaces keys at random, with new keys in their places and the others in the
    /// same order. The order matters only for balanced kinds, which are built anew for every
    /// delta.
    pub churn: Option<f64>,
    /// What matters most among the filters that meet the rest.
    pub minimise: Minimise,
}

impl Goal {
    /// `keys` keys with the rate `rate`.
    pub fn rate(keys: u64, rate: f64) -> Self {
        Self::sized(keys, Size::Rate(rate))
    }

    /// `keys` keys in a filter of size `size`.
    pub fn sized(keys: u64, size: Size) -> Self {
        Self {
            keys,
            size,
            fixed: Vec::new(),
            needs: Vec::new(),
            at_most: AtMost::default(),
            churn: None,
            minimise: Minimise::default(),
        }
    }

    /// The same goal with another size.
    #[must_use]
    pub fn size(mut self, size: Size) -> Self {
        self.size = size;
        self
    }

    /// The same goal with these params fixed, by name.
    #[must_use]
    pub fn params<N: Into<String>>(mut self, params: impl IntoIterator<Item = (N, u64)>) -> Self {
        self.fixed.extend(params.into_iter().map(|(name, value)| (name.into(), value)));
        self
    }

    /// The same goal for a filter that can do all of `needs`.
    #[must_use]
    pub fn needs(mut self, needs: impl IntoIterator<Item = Operation>) -> Self {
        self.needs = needs.into_iter().collect();
        self
    }

    /// The same goal within these limits.
    #[must_use]
    pub fn at_most(mut self, at_most: AtMost) -> Self {
        self.at_most = at_most;
        self
    }

    /// The same goal where the share `churn` of the keys is replaced from one delta to the next.
    #[must_use]
    pub fn churn(mut self, churn: impl Into<Option<f64>>) -> Self {
        self.churn = churn.into();
        self
    }

    /// The same goal where `minimise` matters most.
    #[must_use]
    pub fn minimise(mut self, minimise: Minimise) -> Self {
        self.minimise = minimise;
        self
    }

    /// The number of keys to plan for: a filter for no keys is planned for one.
    pub(crate) fn sized_keys(&self) -> u64 {
        self.keys.max(1)
    }

    /// The fixed values of the params `names`, of which there are `N`. It is an error if another
    /// param is fixed, or one of these twice.
    pub(crate) fn fixed_params<const N: usize>(
        &self,
        kind: &'static str,
        names: impl AsRef<[&'static str]>,
    ) -> Result<[Option<u64>; N], PlanError> {
        let names = names.as_ref();
        if let Size::Wire { .. } = self.size {
            return Err(PlanError::Message { kind });
        }
        let mut values = [None; N];
        for (name, value) in &self.fixed {
            let place = names.iter().position(|known| known == name).ok_or_else(|| {
                PlanError::UnknownParam { kind, name: name.clone(), known: names.join(", ") }
            })?;
            if values[place].replace(*value).is_some() {
                return Err(PlanError::RepeatedParam { name: name.clone() });
            }
        }
        Ok(values)
    }

    /// Checks that the goal makes sense, before any kind looks at it.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        match self.size {
            Size::Rate(rate) if !(rate > 0.0 && rate < 1.0) => Err(PlanError::Rate { rate }),
            Size::BitsPerKey(bits) if !(bits > 0.0 && bits <= 4096.0) => {
                Err(PlanError::BitsPerKey { bits })
            }
            Size::Memory(bytes) if bytes < Line::BYTES as u64 => Err(PlanError::Memory { bytes }),
            Size::Wire { margin: Some(margin), .. } if !(0.0..1.0).contains(&margin) => {
                Err(PlanError::Margin { margin })
            }
            _ => Ok(()),
        }?;
        match self.churn {
            Some(churn) if !(churn > 0.0 && churn <= 1.0) => Err(PlanError::Churn { churn }),
            None if self.at_most.delta_bytes.is_some() => Err(PlanError::NoChurn),
            _ => self.at_most.check(),
        }
    }

    /// The number of items of `width` bits: the fixed number, which must keep within the memory
    /// that the goal allows, or as many as that allows; `None` if the goal says neither.
    pub(crate) fn within_budget(
        &self,
        name: &'static str,
        fixed: Option<u64>,
        width: u64,
    ) -> Result<Option<u64>, PlanError> {
        let allowed = self.budget().map(|bits| bits / width);
        if let (Some(fixed), Some(allowed)) = (fixed, allowed) {
            let expected = "at most what the memory that is asked for allows";
            require(fixed <= allowed.max(1), name, fixed, expected)?;
        }
        Ok(fixed.or(allowed))
    }

    /// The rate that the goal asks for, if it asks for one.
    pub(crate) fn asked_rate(&self) -> Option<f64> {
        if let Size::Rate(asked) = self.size { Some(asked) } else { None }
    }

    /// The bits of array that the goal allows; `None` if it asks for a rate or for bytes on the
    /// wire.
    pub(crate) fn budget(&self) -> Option<u64> {
        /// No filter has more, and sums of a few of them are numbers.
        const MOST: u64 = 1 << 60;
        let bits = match self.size {
            Size::Rate(_) | Size::Wire { .. } => return None,
            Size::BitsPerKey(bits) => (bits * self.sized_keys() as f64) as u64,
            Size::Memory(bytes) => (bytes / Line::BYTES as u64).saturating_mul(Line::BITS),
        };
        Some(bits.min(MOST))
    }
}
