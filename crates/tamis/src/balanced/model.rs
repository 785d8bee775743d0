//! Formulas that the layouts and the planner share: subtables of MHT, and the bits of a counter.
//!
//! | symbol | meaning |
//! |---|---|
//! | d | choices of a key |
//! | q | share of the keys that a subtable refuses while the filter fills |
//! | h | a block with fewer than h keys takes a key |
//!
//! **MHT.** Every subtable refuses the same share q, and subtable j has q^(j-1) (1 - q) / (1 -
//! q^d) of the blocks, whatever the number of keys is. The other formulas of the paper are in the
//! reproduction report of this project. Filters are sized by
//! [`predict`](super::Balanced::predict), which also takes account of finite tables and of keys
//! that are found by mistake.

use alloc::vec::Vec;

/// MHT: the share of the blocks in each subtable.
pub fn mht_sizes(q: f64, d: u32) -> Vec<f64> {
    let sum = powers(q, d);
    (0..d).map(|j| libm::pow(q, j.into()) / sum).collect()
}

/// 1 + q + ... + q^(d-1).
pub fn powers(q: f64, d: u32) -> f64 {
    (0..d).map(|j| libm::pow(q, j.into())).sum()
}

/// Bits of a counter that takes the values 0 to h + 1.
pub fn counter_bits(h: u32) -> u32 {
    (h + 1).ilog2() + 1
}
