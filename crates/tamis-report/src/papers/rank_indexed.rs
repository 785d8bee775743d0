//! Paper 000, Hua, Zhao, Lin, Xu, "Rank-Indexed Hashing", ICNP 2008: the formulas that plans do
//! not need.
//!
//! The symbols are those of `rank_indexed/model.rs` in the library, which has the formulas of
//! sizes, rates and overflows. The tests named below are in `tests/library/papers_rank_indexed.rs`
//! of the testkit.

use tamis::internals::math::tail::binomial_above;
use tamis::internals::rank_indexed::model::Layout;

/// Bits per key of the transfer form, 1/lambda + r + 1: B L base bits, then an index bit and a
/// cell for every key, counters and values included. Header excluded. Tested by `table_five`.
pub fn trimmed_bits_per_key(layout: &Layout, keys: u64) -> f64 {
    1.0 / layout.lambda(keys.max(1)) + layout.cell() as f64
}

/// The shares of buckets with a level-2 and with a level-3 extension: Pr[Bin(n, 1/B) > W1] and the
/// same for W2. The bucket of an absent key is random, so a lookup that misses reads at most 1
/// plus their sum records on average. The paper prints the Poisson limit of these shares in Table
/// I. Tested by `table_one`.
pub fn extension_share(layout: &Layout, keys: u64) -> (f64, f64) {
    let share = 1.0 / layout.buckets as f64;
    let w1 = u64::from(layout.level1);
    let above = |load, exists: bool| if exists { binomial_above(keys, share, load) } else { 0.0 };
    let second = above(w1, layout.second > 0);
    (second, above(w1 + u64::from(layout.level2), layout.third > 0))
}
