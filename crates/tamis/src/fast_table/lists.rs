//! Linked lists of small numbers, in two arrays: no allocation for an item, four bytes a link.

use alloc::vec;
use alloc::vec::Vec;

use super::trace::Trace;
use crate::bits::{self, OutOfMemory};
use crate::spec::Invalid;

const STRAY: Invalid = Invalid("a list has an item that does not exist");

/// No number: the end of a list.
pub const NIL: u32 = u32::MAX;

/// The error for more items than 32 bits can number.
pub const TOO_MANY: OutOfMemory = OutOfMemory { bytes: u64::MAX };

/// `len` times [`NIL`].
pub fn nils(len: usize) -> Result<Vec<u32>, OutOfMemory> {
    bits::filled(len as u64, NIL)
}

/// Makes room in `vec` for `more` elements. The vector grows by more than that, so that many
/// small requests cost few allocations.
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let bytes = (vec.len().saturating_add(more) as u64).saturating_mul(size_of::<T>() as u64);
    vec.try_reserve(more).map_err(|_| OutOfMemory { bytes })
}

/// A list for every bucket. A number is in at most one list, so its link is kept under the number
/// itself.
#[derive(Clone, Debug)]
pub struct Lists {
    heads: Vec<u32>,
    next: Vec<u32>,
}

impl Lists {
    /// Empty lists.
    pub fn new(buckets: u64) -> Result<Self, OutOfMemory> {
        let buckets = usize::try_from(buckets).map_err(|_| TOO_MANY)?;
        Ok(Self { heads: nils(buckets)?, next: Vec::new() })
    }

    /// Makes room for the numbers below `numbers`.
    pub fn prepare(&mut self, numbers: u64) -> Result<(), OutOfMemory> {
        if numbers > u64::from(NIL) {
            return Err(TOO_MANY);
        }
        let more = (numbers as usize).saturating_sub(self.next.len());
        reserve(&mut self.next, more)
    }

    /// Puts `number` at the head of the list of `bucket`. There must be room for it: see
    /// [`prepare`](Self::prepare).
    pub fn push(&mut self, bucket: u32, number: u32) {
        if self.next.len() <= number as usize {
            self.next.resize(number as usize + 1, NIL);
        }
        self.next[number as usize] = self.heads[bucket as usize];
        self.heads[bucket as usize] = number;
    }

    /// Removes `number` from the list of `bucket`. Returns whether it was there.
    pub fn remove(&mut self, bucket: u32, number: u32) -> bool {
        let next = self.next(number);
        self.relink(bucket, number, next)
    }

    /// Puts `to` in the place of `from` in the list of `bucket`. Returns whether `from` was
    /// there.
    pub fn rename(&mut self, bucket: u32, from: u32, to: u32) -> bool {
        let next = self.next(from);
        let found = self.relink(bucket, from, to);
        if found {
            self.next[to as usize] = next;
        }
        found
    }

    /// Makes the link to `number` in the list of `bucket` point to `to`. Returns whether there
    /// was one.
    fn relink(&mut self, bucket: u32, number: u32, to: u32) -> bool {
        let head = &mut self.heads[bucket as usize];
        if *head == number {
            *head = to;
            return true;
        }
        let mut at = *head;
        while at != NIL {
            let next = &mut self.next[at as usize];
            if *next == number {
                *next = to;
                return true;
            }
            at = *next;
        }
        false
    }

    fn next(&self, number: u32) -> u32 {
        self.next.get(number as usize).copied().unwrap_or(NIL)
    }

    /// The first number in the list of `bucket`.
    #[inline]
    pub fn first(&self, bucket: u32) -> Option<u32> {
        Some(self.heads[bucket as usize]).filter(|&number| number != NIL)
    }

    /// The number behind `number` in its list.
    #[inline]
    pub fn after(&self, number: u32) -> Option<u32> {
        Some(self.next(number)).filter(|&number| number != NIL)
    }

    /// The numbers in the list of `bucket`.
    #[inline]
    pub fn walk(&self, bucket: u32) -> impl Iterator<Item = u32> {
        core::iter::successors(self.first(bucket), |&number| self.after(number))
    }

    /// The number in the list of `bucket` for which `is` holds; `by` is told what is read.
    #[inline]
    pub fn find(&self, bucket: u32, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32> {
        by.head();
        self.walk(bucket).find(|&item| {
            by.node();
            is(item)
        })
    }

    /// Starts fetching the head of the list of `bucket`.
    #[inline]
    pub fn prefetch(&self, bucket: u32) {
        bits::prefetch(&self.heads, bucket as usize);
    }

    /// How many lists.
    pub fn buckets(&self) -> u32 {
        self.heads.len() as u32
    }

    /// Checks that every number in a list is below `numbers`, is there once, and belongs there.
    /// Returns how many numbers there are.
    pub fn validate(
        &self,
        numbers: usize,
        belongs: impl Fn(u32, u32) -> bool,
    ) -> Result<usize, Invalid> {
        let mut seen = vec![false; numbers];
        for bucket in 0..self.buckets() {
            for number in self.walk(bucket) {
                let seen = seen.get_mut(number as usize).ok_or(STRAY)?;
                // This also ends a walk in a circle.
                if core::mem::replace(seen, true) {
                    return Err(Invalid("an item is linked twice"));
                }
                if !belongs(number, bucket) {
                    return Err(Invalid("an item is in a list where nobody looks for it"));
                }
            }
        }
        Ok(seen.into_iter().filter(|&seen| seen).count())
    }

    /// As [`validate`](Self::validate), and checks that every number below `numbers` is in a
    /// list.
    pub fn validate_all(
        &self,
        numbers: u32,
        belongs: impl Fn(u32, u32) -> bool,
    ) -> Result<(), Invalid> {
        let linked = self.validate(numbers as usize, belongs)?;
        if linked == numbers as usize { Ok(()) } else { Err(Invalid("an item is in no list")) }
    }

    /// Bits of memory held.
    pub fn footprint(&self) -> u64 {
        (self.heads.capacity() + self.next.capacity()) as u64 * 32
    }
}
