//! Flipped bits of blocks, and digests that are added to the list beside them or removed from it.

use alloc::vec::Vec;

use super::flips::Flips;
use crate::bits::Words;

/// What changes in an array and in a sorted list beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub(super) flips: Flips,
    /// Digests that are in one list and not in the other, in order.
    pub(super) toggled: Vec<u64>,
}

impl Listed {
    /// What turns one array and its sorted list into another.
    pub(crate) fn between(
        (old, old_list): (&Words, Vec<u64>),
        (new, new_list): (&Words, Vec<u64>),
    ) -> Self {
        let flips = Flips::between(old, new, old.len() as u64 * 64);
        Self { flips, toggled: either(&old_list, &new_list) }
    }

    pub(crate) fn then(&self, next: &Self) -> Self {
        Self { flips: self.flips.then(&next.flips), toggled: either(&self.toggled, &next.toggled) }
    }

    /// The bits that flip.
    pub fn flips(&self) -> &Flips {
        &self.flips
    }

    /// The list that `old` becomes.
    pub(crate) fn list(&self, old: &[u64]) -> Vec<u64> {
        either(old, &self.toggled)
    }
}

/// What is in exactly one of two sorted lists.
fn either(left: &[u64], right: &[u64]) -> Vec<u64> {
    let mut all: Vec<u64> = left.iter().chain(right).copied().collect();
    all.sort_unstable();
    let mut kept: Vec<u64> = Vec::with_capacity(all.len());
    for entry in all {
        if kept.last() == Some(&entry) {
            kept.pop();
        } else {
            kept.push(entry);
        }
    }
    kept
}
