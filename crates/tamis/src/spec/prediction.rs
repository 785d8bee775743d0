//! What models say of a filter before it is built.

/// A limit is kept by so many standard deviations: one filter in three million breaks it.
const DEVIATIONS: f64 = 5.0;

/// What a filter with given params and keys will do, from its model.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Prediction {
    /// Expected rate, over all filters of this layout with so many random keys.
    pub rate: f64,
    /// Standard deviation of ln(rate) from one such filter to another.
    pub rate_spread: f64,
    /// Bits of memory held, over keys: payload, index, overflow, stored choices, rounding.
    pub bits_per_key: f64,
    /// Bits of the encoded filter, over keys, header included.
    pub wire_bits_per_key: f64,
    /// Distinct blocks of memory touched by an insert, averaged while the filter fills.
    pub blocks_per_insert: f64,
    /// Distinct blocks read to find a key that is in.
    pub blocks_per_hit: f64,
    /// Distinct blocks read to refuse a key that is not in.
    pub blocks_per_miss: f64,
    /// Keys expected in the overflow; `None` where a kind has none.
    pub overflow: Option<f64>,
}

/// The share of strangers whose whole digest equals that of one of `keys` keys: below this no rate can go.
pub(crate) fn digest_floor(keys: u64) -> f64 {
    keys as f64 / 18_446_744_073_709_551_616.0
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
    /// What all but one in three million keep within.
    pub fn most(&self) -> f64 {
        libm::ceil(self.mean + DEVIATIONS * self.deviation)
    }

    pub(crate) fn less_sure(self, share: f64) -> Self {
        Self { deviation: self.deviation + share * self.mean, ..self }
    }
}

/// What a filter takes on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Traffic {
    /// A packed snapshot ([`Stored::pack`](crate::Stored::pack), with the best effort).
    pub snapshot: Bytes,
    /// A delta, if it was said how much changes; of kinds that are built once a new snapshot.
    pub delta: Option<Bytes>,
}
