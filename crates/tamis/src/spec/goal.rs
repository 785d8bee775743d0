//! What a user asks for.

use alloc::string::String;
use alloc::vec::Vec;

use super::{AtMost, InvalidParam, PlanError};
use crate::bits::Line;

/// How large the filter shall be: by what it promises, or by what it may take.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Size {
    /// At most this rate, in the least memory.
    Rate(f64),
    /// At most so many bits of array for each key, with the least rate.
    BitsPerKey(f64),
    /// At most so many bytes held in all, with the least rate; memory is held in lines of 64 bytes.
    Memory(u64),
    /// At most so many bytes on the wire, with the least rate: of a delta where the goal has a churn, otherwise of a
    /// packed snapshot. Planned by [`AnyParams::plan`](crate::AnyParams::plan), [`Plan::of`](crate::Plan::of) and
    /// [`choose`](crate::choose), which know the messages of all kinds. Plain and counting filters may take eight times the
    /// memory that they would need for their rate, or what [`AtMost::bits_per_key`] allows.
    Wire {
        /// The bytes, header included.
        bytes: u64,
        /// The share of the bytes that the mean message leaves free, because sizes vary: 0.01 in the paper. `None` leaves five
        /// standard deviations, which all but one message in three million keep within.
        margin: Option<f64>,
    },
}

/// What a filter must be able to do beyond answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Take keys one by one.
    Insert,
    /// Give keys up.
    Remove,
    /// Say how often a key is in.
    Count,
    /// Take over the keys of another filter.
    Merge,
    /// Be laid out anew for more keys, without the keys.
    Grow,
    /// Keep so many bits for every key.
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
    /// Memory, and a tenth of it more for every block beyond the first that a lookup reads.
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
    /// How many keys will be in. 0 is legal.
    pub keys: u64,
    /// How large.
    pub size: Size,
    /// Params that the user has settled, by name.
    pub fixed: Vec<(String, u64)>,
    /// What the filter must be able to do beyond answering; kinds that are built once can do none of it.
    pub needs: Vec<Operation>,
    /// What it may take.
    pub at_most: AtMost,
    /// The share of the keys that is replaced from one delta to the next, where deltas are sent: any keys, at random, with new ones in their
    /// places and the others in the same order. The order matters to balanced kinds alone, which are built anew for it.
    pub churn: Option<f64>,
    /// What matters most among the filters that meet all this.
    pub minimise: Minimise,
}

impl Goal {
    /// So many keys at this rate.
    pub fn rate(keys: u64, rate: f64) -> Self {
        Self::sized(keys, Size::Rate(rate))
    }

    /// So many keys in a filter of this size.
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

    /// The same goal, sized otherwise.
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

    /// The same goal for a filter that can do all of these.
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

    /// The same goal where this share of the keys is replaced from one delta to the next.
    #[must_use]
    pub fn churn(mut self, churn: impl Into<Option<f64>>) -> Self {
        self.churn = churn.into();
        self
    }

    /// The same goal where this matters most.
    #[must_use]
    pub fn minimise(mut self, minimise: Minimise) -> Self {
        self.minimise = minimise;
        self
    }

    /// The keys to size for: a filter for nothing is built like one for a single key.
    pub(crate) fn sized_keys(&self) -> u64 {
        self.keys.max(1)
    }

    /// The settled values of these params; an error if another name was settled.
    pub(crate) fn settled<const N: usize>(
        &self,
        kind: &'static str,
        names: [&'static str; N],
    ) -> Result<[Option<u64>; N], PlanError> {
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

    /// The goal itself must make sense before any kind looks at it.
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

    /// How many items of `width` bits: the settled number, which must keep within the budget, or as many as that
    /// allows; `None` if neither says.
    pub(crate) fn within_budget(
        &self,
        name: &'static str,
        settled: Option<u64>,
        width: u64,
    ) -> Result<Option<u64>, PlanError> {
        let allowed = self.budget().map(|bits| bits / width);
        if let (Some(value), Some(allowed)) = (settled, allowed)
            && value > allowed.max(1)
        {
            let expected = "at most what the memory that is asked for allows";
            return Err(InvalidParam { name, value, expected }.into());
        }
        Ok(settled.or(allowed))
    }

    /// The bits of array that the goal allows; `None` if it asks for a rate instead.
    pub(crate) fn budget(&self) -> Option<u64> {
        match self.size {
            Size::Rate(_) | Size::Wire { .. } => None,
            Size::BitsPerKey(bits) => Some((bits * self.sized_keys() as f64) as u64),
            Size::Memory(bytes) => Some((bytes / Line::BYTES as u64).saturating_mul(Line::BITS)),
        }
    }
}
