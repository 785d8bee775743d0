//! What distinguishes one table from another: where items are linked, and which lists a lookup
//! reads.

use super::counters::Counters;
use super::params::TableParams;
use super::trace::Trace;
use crate::bits::OutOfMemory;
use crate::digest::Digest;
use crate::spec::Invalid;

/// The placement of items. Items are numbered from 0 without gaps, and are kept elsewhere.
///
/// `digest_of` gives the digest of any item that is linked.
pub trait Place: Sized + Clone + core::fmt::Debug {
    /// An empty table.
    fn new(params: TableParams) -> Result<Self, OutOfMemory>;

    /// The item with `digest` for which `is` holds; `by` is told what is read.
    fn find(&self, digest: Digest, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32>;

    /// Makes room for `items` items in all, the next of which has `digest`. Nothing else changes.
    fn prepare(&mut self, items: u64, digest: Digest) -> Result<(), OutOfMemory>;

    /// Links a new item. There must be room for it.
    fn link(
        &mut self,
        item: u32,
        digest: Digest,
        digest_of: impl Fn(u32) -> Digest,
        by: &mut impl Trace,
    );

    /// Removes `item` from all lists. `digest_of` still knows it.
    fn unlink(
        &mut self,
        item: u32,
        digest: Digest,
        digest_of: impl Fn(u32) -> Digest,
        by: &mut impl Trace,
    );

    /// Gives item `from`, which is the last one and has `digest`, the number `to` of an item that
    /// was unlinked.
    fn rename(&mut self, from: u32, to: u32, digest: Digest);

    /// Links the items below `items` into an empty table.
    fn fill(
        &mut self,
        items: u32,
        digest_of: impl Fn(u32) -> Digest + Copy,
    ) -> Result<(), OutOfMemory> {
        for item in 0..items {
            let digest = digest_of(item);
            self.prepare(items.into(), digest)?;
            self.link(item, digest, digest_of, &mut ());
        }
        Ok(())
    }

    /// The counters, which are the on-chip part; `None` if there are none.
    fn counters(&self) -> Option<&Counters>;

    /// Bits of memory held.
    fn footprint(&self) -> u64;

    /// Checks every invariant for `items` items.
    fn validate(&self, items: u32, digest_of: impl Fn(u32) -> Digest) -> Result<(), Invalid>;
}
