//! Limits that a goal sets beside its size.

use alloc::format;
use alloc::string::String;

use super::PlanError;

/// The most that a filter may take; `None` where it does not matter.
///
/// A limit is a promise for the one filter that will be built, not for the mean of many. So
/// predictions must stay below it by a margin: five standard deviations for sizes that vary from
/// filter to filter, and a twentieth for the blocks of fingerprint kinds, which models do not
/// know exactly.
///
/// ```
/// use tamis::{AtMost, Goal, Limited, choose};
/// let limits = AtMost::default().with(Limited::BitsPerKey, 12.0);
/// let plans = choose(&Goal::rate(1_000_000, 0.01).at_most(limits))?;
/// assert!(plans[0].predicted.bits_per_key <= 12.0);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AtMost {
    /// Bits of memory held, for each key.
    pub bits_per_key: Option<f64>,
    /// Bytes of a packed snapshot.
    pub snapshot_bytes: Option<u64>,
    /// Bytes of a delta after the share [`churn`](crate::Goal::churn) of the keys was replaced.
    /// Kinds without deltas send a snapshot, and that is what is limited.
    pub delta_bytes: Option<u64>,
    /// Blocks of memory that a lookup reads on average, for present keys or for absent ones,
    /// whichever is more.
    pub blocks: Option<f64>,
}

/// Which of the limits of [`AtMost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limited {
    /// [`AtMost::bits_per_key`].
    BitsPerKey,
    /// [`AtMost::snapshot_bytes`].
    Snapshot,
    /// [`AtMost::delta_bytes`].
    Delta,
    /// [`AtMost::blocks`].
    Blocks,
}

impl Limited {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BitsPerKey => "bits of memory per key",
            Self::Snapshot => "bytes of snapshot",
            Self::Delta => "bytes of delta",
            Self::Blocks => "blocks per lookup",
        }
    }

    /// `value` in the form in which errors print it.
    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::BitsPerKey | Self::Blocks => format!("{value:.3}"),
            Self::Snapshot | Self::Delta => format!("{value}"),
        }
    }

    /// The next value above that [`write`](Self::write) prints exactly. The limit that an error
    /// offers must be one that can be met.
    pub(crate) fn round_up(self, value: f64) -> f64 {
        match self {
            Self::BitsPerKey | Self::Blocks => libm::ceil(value * 1000.0) / 1000.0,
            Self::Snapshot | Self::Delta => libm::ceil(value),
        }
    }
}

impl AtMost {
    /// Checks that every limit that is set is above 0.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        match self.asked().find(|(_, asked)| asked.is_nan() || *asked <= 0.0) {
            Some((of, asked)) => Err(PlanError::BadLimit { what: of.name(), asked }),
            None => Ok(()),
        }
    }

    /// The limits that are there.
    pub(crate) fn asked(&self) -> impl Iterator<Item = (Limited, f64)> {
        let bytes = |limit: Option<u64>| limit.map(|bytes| bytes as f64);
        let all = [
            (Limited::BitsPerKey, self.bits_per_key),
            (Limited::Snapshot, bytes(self.snapshot_bytes)),
            (Limited::Delta, bytes(self.delta_bytes)),
            (Limited::Blocks, self.blocks),
        ];
        all.into_iter().filter_map(|(of, asked)| Some((of, asked?)))
    }

    /// The same limits, with `most` for `limited`: such as the nearest limit that an error
    /// offers.
    #[must_use]
    pub fn with(mut self, limited: Limited, most: f64) -> Self {
        match limited {
            Limited::BitsPerKey => self.bits_per_key = Some(most),
            Limited::Snapshot => self.snapshot_bytes = Some(most as u64),
            Limited::Delta => self.delta_bytes = Some(most as u64),
            Limited::Blocks => self.blocks = Some(most),
        }
        self
    }

    /// Whether no limit is set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
