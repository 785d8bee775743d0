//! What the benchmark and the instruction counts share.

use anyhow::Result;
use tamis::{BlockedRank, Goal, Hasher, Label, Stored};

/// An empty `blocked-rank` filter with fingerprints of `width` bits, planned for `keys` keys.
pub fn blocked_rank(keys: u64, width: u32) -> Result<BlockedRank> {
    // What cells of that width just reach when they are so full.
    let rate = 3e-3 * 0.515_f64.powi(width as i32 - 8);
    let mut goal = Goal::rate(keys, rate);
    goal.fixed.push(("fingerprint".to_owned(), width.into()));
    Ok(BlockedRank::new(BlockedRank::plan(&goal)?, Label::planned(Hasher::default(), keys))?)
}
