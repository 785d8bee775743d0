//! What the benchmark, its tables and the instruction counts share.

pub mod chart;
pub mod readme;
pub mod record;

use anyhow::Result;
use tamis::{BlockedRank, Goal, Hasher, Label, Stored};

/// The rate that fingerprints of `width` bits in `blocked-rank` just reach when cells are as full
/// as plans make them.
pub fn rate_of_width(width: u32) -> f64 {
    3e-3 * 0.515_f64.powi(width as i32 - 8)
}

/// An empty `blocked-rank` filter with fingerprints of `width` bits, planned for `keys` keys.
pub fn blocked_rank(keys: u64, width: u32) -> Result<BlockedRank> {
    let mut goal = Goal::rate(keys, rate_of_width(width));
    goal.fixed.push(("fingerprint".to_owned(), width.into()));
    Ok(BlockedRank::new(BlockedRank::plan(&goal)?, Label::planned(Hasher::default(), keys))?)
}
