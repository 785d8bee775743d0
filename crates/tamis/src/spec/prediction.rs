//! What models say of a filter before it is built.

/// Standard deviations by which a mean must stay below a limit: one filter in three million
/// exceeds it.
const DEVIATIONS: f64 = 5.0;

/// What the model of a kind says that a filter with given params and keys will do.
///
/// ```
/// use tamis::{Bloom, Goal, Stored};
/// let params = Bloom::plan(&Goal::rate(1_000_000, 0.01))?;
/// let predicted = Bloom::predict(&params, 1_000_000);
/// assert!(predicted.rate <= 0.01 && predicted.bits_per_key < 10.0);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// The expected rate, over all filters of this layout with random keys.
    pub rate: f64,
    /// The standard deviation of ln(rate) from one such filter to another.
    pub rate_spread: f64,
    /// Bits of memory held for each key: payload, index, overflow, stored choices, rounding.
    pub bits_per_key: f64,
    /// Bits of the encoded filter for each key, header included.
    pub wire_bits_per_key: f64,
    /// Distinct blocks of memory that an insertion touches, averaged while the filter fills.
    pub blocks_per_insert: f64,
    /// Distinct blocks that a question for a present key reads.
    pub blocks_per_hit: f64,
    /// Distinct blocks that a question for an absent key reads.
    pub blocks_per_miss: f64,
    /// Entries expected in the overflow; `None` for kinds without one.
    pub overflow: Option<f64>,
}

/// The share of absent keys that have the digest of one of `keys` keys. No rate is below it.
pub(crate) fn digest_floor(keys: u64) -> f64 {
    keys as f64 / 18_446_744_073_709_551_616.0
}

/// `bits` for each of `keys` keys, or for one if there are none.
pub(crate) fn per_key(bits: u64, keys: u64) -> f64 {
    bits as f64 / keys.max(1) as f64
}

/// A number of bytes that varies from filter to filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bytes {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, or somewhat more.
    pub deviation: f64,
}

impl Bytes {
    /// A number that is exceeded by one filter in three million.
    pub fn most(&self) -> f64 {
        libm::ceil(self.mean + DEVIATIONS * self.deviation)
    }

    /// The same mean with a larger deviation, for a model that is exact only to `share` of the
    /// mean.
    pub(crate) fn less_sure(self, share: f64) -> Self {
        Self { deviation: self.deviation + share * self.mean, ..self }
    }
}

/// What a filter takes on the wire.
///
/// ```
/// use tamis::{AnyParams, Goal, Kind};
/// let params = AnyParams::plan(Kind::Bloom, &Goal::rate(100_000, 0.01))?;
/// let traffic = params.traffic(100_000, Some(0.01));
/// assert!(traffic.delta.unwrap().mean < traffic.snapshot.mean);
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Traffic {
    /// A packed snapshot ([`Stored::pack`](crate::Stored::pack), with the best effort).
    pub snapshot: Bytes,
    /// A delta, if a churn was given. Kinds that are built once have none, and send a new
    /// snapshot.
    pub delta: Option<Bytes>,
}
