//! What tells one table from another: where items are linked, and which lists a lookup reads.

use super::counters::Counters;
use super::params::TableParams;
use super::trace::Trace;
use crate::bits::OutOfMemory;
use crate::digest::Digest;
use crate::spec::Invalid;

/// The placement of items, which are numbered from 0 without gaps and kept elsewhere.
///
/// `digest_of` gives the digest of any item that is linked.
pub trait Place: Sized + Clone + core::fmt::Debug {
    /// An empty table.
    fn new(params: TableParams) -> Result<Self, OutOfMemory>;

    /// The item with this digest for which `is` holds.
    fn find(&self, digest: Digest, is: impl Fn(u32) -> bool, by: &mut impl Trace) -> Option<u32>;

    /// Makes room for `items` items in all, the next of which has this digest; nothing else changes.
    fn prepare(&mut self, items: u64, digest: Digest) -> Result<(), OutOfMemory>;

    /// Links a new item, for which there is room.
    fn link(
        &mut self,
        item: u32,
        digest: Digest,
        digest_of: impl Fn(u32) -> Digest,
        by: &mut impl Trace,
    );

    /// Takes an item out of all lists; it is still there for `digest_of`.
    fn unlink(
        &mut self,
        item: u32,
        digest: Digest,
        digest_of: impl Fn(u32) -> Digest,
        by: &mut impl Trace,
    );

    /// Gives item `from`, the last one, the number `to` of one that was unlinked.
    fn rename(&mut self, from: u32, to: u32, digest: Digest);

    /// Links the items 0 to `items` into an empty table.
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

    /// The on-chip part, where there is one.
    fn counters(&self) -> Option<&Counters>;

    /// Bits of memory held.
    fn footprint(&self) -> u64;

    /// Checks every invariant for `items` items.
    fn validate(&self, items: u32, digest_of: impl Fn(u32) -> Digest) -> Result<(), Invalid>;
}
