//! What the benchmark and the instruction counts share.

use anyhow::Result;
use tamis::{BlockedRank, Goal, Hasher, Label, Stored};

/// An empty `blocked-rank` filter with cells of 8, 12 or 16 bits, as full as plans make it with so many keys.
pub fn blocked_rank(keys: u64, width: u32) -> Result<BlockedRank> {
    // What cells of that width just reach when they are so full.
    let rate = match width {
        ..=8 => 3e-3,
        9..=12 => 1.9e-4,
        _ => 1.5e-5,
    };
    let mut goal = Goal::rate(keys, rate);
    goal.fixed.push(("fingerprint".to_owned(), width.into()));
    Ok(BlockedRank::new(BlockedRank::plan(&goal)?, Label::planned(Hasher::default(), keys))?)
}
