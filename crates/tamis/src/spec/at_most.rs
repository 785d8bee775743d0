//! Limits that a goal sets beside its size.

use alloc::format;
use alloc::string::String;

use super::PlanError;

/// The most that a filter may take; `None` where it does not matter.
///
/// Limits are promises for the filter that will be built, not for the mean of many: sizes that vary from filter to filter
/// keep five standard deviations away from theirs, and blocks of fingerprint kinds, which models know to some per cent, a twentieth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AtMost {
    /// Bits of memory held, over keys.
    pub bits_per_key: Option<f64>,
    /// Bytes of a packed snapshot.
    pub snapshot_bytes: Option<u64>,
    /// Bytes of a delta after [`churn`](crate::Goal::churn) of the keys were replaced; of a snapshot, for kinds that have no deltas.
    pub delta_bytes: Option<u64>,
    /// Blocks of memory read by a lookup on average, of a member or of a stranger, whichever reads more.
    pub blocks: Option<f64>,
}

/// What is limited.
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

    /// A number as a person would write it.
    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::BitsPerKey | Self::Blocks => format!("{value:.3}"),
            Self::Snapshot | Self::Delta => format!("{value}"),
        }
    }

    /// The next number that is written in full: what is offered must do.
    pub(crate) fn round_up(self, value: f64) -> f64 {
        match self {
            Self::BitsPerKey | Self::Blocks => libm::ceil(value * 1000.0) / 1000.0,
            Self::Snapshot | Self::Delta => libm::ceil(value),
        }
    }
}

impl AtMost {
    /// Every limit that is set must leave something.
    pub(crate) fn check(&self) -> Result<(), PlanError> {
        let bytes = |limit: Option<u64>| limit.map(|bytes| bytes as f64);
        let all = [
            (Limited::BitsPerKey, self.bits_per_key),
            (Limited::Snapshot, bytes(self.snapshot_bytes)),
            (Limited::Delta, bytes(self.delta_bytes)),
            (Limited::Blocks, self.blocks),
        ];
        for (of, asked) in all {
            if let Some(asked) = asked
                && (asked.is_nan() || asked <= 0.0)
            {
                return Err(PlanError::BadLimit { what: of.name(), asked });
            }
        }
        Ok(())
    }

    /// These limits with another instead of one of them: such as the nearest that can be had.
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

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
