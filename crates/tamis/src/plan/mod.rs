//! From a goal to a plan: each kind's model bids with the integer params that it would build, every bit
//! counted, and the choice explains itself. Pure, and the same on every machine.

mod choose;
mod explain;
mod goal;
mod limits;
pub(crate) mod message;
mod traffic;

pub use choose::{Plan, choose};
pub use goal::{Goal, Minimise, Operation, PlanError, Size};
pub(crate) use limits::in_proportion;
pub use limits::{AtMost, Limited};
pub use traffic::{Bytes, Traffic};

/// What a filter with given params and keys will do, from its model.
#[derive(Clone, Copy, Debug, PartialEq)]
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
