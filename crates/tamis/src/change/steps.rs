//! Counters that go up or down.

use alloc::vec::Vec;

use crate::bits::Packed;

/// The counters that change, in order, each with how much: modulo 2^width, never zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Counters of the array.
    pub(super) counters: u64,
    /// Bits of a counter.
    pub(super) width: u32,
    pub(super) changes: Vec<(u64, u64)>,
}

impl Steps {
    pub(crate) fn between(old: &Packed, new: &Packed) -> Self {
        let mask = old.max_value();
        let step =
            |(index, (old, new)): (usize, (u64, u64))| (index as u64, new.wrapping_sub(old) & mask);
        let all = old.iter().zip(new.iter()).enumerate().map(step);
        let changes = all.filter(|&(_, step)| step != 0).collect();
        Self { counters: old.len(), width: old.width(), changes }
    }

    pub(crate) fn then(&self, next: &Self) -> Self {
        let mask = (1 << self.width) - 1;
        let mut joined: Vec<(u64, u64)> =
            self.changes.iter().chain(&next.changes).copied().collect();
        joined.sort_by_key(|&(index, _)| index);
        joined.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1 = first.1.wrapping_add(later.1) & mask;
            }
            same
        });
        joined.retain(|&(_, step)| step != 0);
        Self { changes: joined, ..self.clone() }
    }

    /// How many counters change.
    pub fn count(&self) -> u64 {
        self.changes.len() as u64
    }

    pub(crate) fn apply(&self, counters: &mut Packed) -> Result<(), &'static str> {
        if (counters.len(), counters.width()) != (self.counters, self.width) {
            return Err("the counters have another number or width");
        }
        for &(index, step) in &self.changes {
            let counter = counters.get(index).wrapping_add(step);
            counters.set(index, counter);
        }
        Ok(())
    }
}
