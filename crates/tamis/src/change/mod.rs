//! What turns the content of one filter into that of another.

mod flips;
mod moves;
mod steps;
mod wire;

pub(crate) use self::flips::Flips;
pub(crate) use self::moves::Moves;
pub(crate) use self::steps::Steps;
use crate::wire::ContentId;

/// The change itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Bits that flip, and digests that are added to a list beside them or removed from it.
    Bits(Flips),
    /// Counters that go up or down.
    Counters(Steps),
    /// Identities that are removed and inserted.
    Identities(Moves),
}

impl Change {
    /// Both changes, one after the other.
    pub(crate) fn then(&self, next: &Self) -> Result<Self, &'static str> {
        Ok(match (self, next) {
            (Self::Bits(first), Self::Bits(second)) => Self::Bits(first.then(second).ok_or(KINDS)?),
            (Self::Counters(first), Self::Counters(second)) => Self::Counters(first.then(second)),
            (Self::Identities(first), Self::Identities(second)) => {
                Self::Identities(first.then(second).ok_or(UNRESOLVED)?)
            }
            _ => return Err(KINDS),
        })
    }
}

/// The content id of a base, and a change of it with what it removes by identity; without one if
/// the change says that already.
pub(crate) type Resolved = (ContentId, Result<Option<Change>, &'static str>);

/// The error for changes of different kinds, one after the other.
const KINDS: &str = "the deltas are of different kinds";

/// The error for a change that must be resolved first.
pub(crate) const UNRESOLVED: &str =
    "removed identities are known by position only: resolve the delta first";

/// The error for a change that is of another kind than the filter.
pub(crate) const OTHER_KIND: &str = "the delta is for another kind";

/// What the changes of a filter are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Bits that flip, in an array of this many bits.
    Bits(u64),
    /// The same, and digests in a list beside them.
    Listed(u64),
    /// Counters that go up or down.
    Counters {
        /// How many there are.
        counters: u64,
        /// Bits of each.
        width: u32,
    },
    /// Identities that are removed and inserted.
    Identities {
        /// They are below this.
        universe: u64,
        /// Bits of a value.
        value_bits: u32,
    },
}
