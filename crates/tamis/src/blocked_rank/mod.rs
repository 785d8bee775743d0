//! The blocked rank-indexed filter: paper 000's buckets, each in one cache line, with paper 001's idea of a limit and an overflow.
//!
//! A key is kept as its *identity*, an integer in [0, U): block, chain location and fingerprint. A block holds the chains of its
//! locations below a threshold; those at or above it live in a back table, which stays in the cache: blocks again, a
//! twentieth as many with wider fingerprints, and behind them, for the few that are left, a packed
//! [rank-indexed](crate::rank_indexed) table. A location is in exactly one place, so that a question reads one block, and in
//! one case of twenty-five one more; removal is exact, and nothing is ever lost.
//!
//! ```text
//! block (64 bytes)   | low bytes of Z fingerprints | their high bits | IH (Z bits) | I0 (L bits) | threshold |
//! back table         identities of the locations at or above the thresholds of their blocks
//! ```
//!
//! With fingerprints of 8 bits a key takes 11.7 bits at a rate of 0.29%, of 12 bits 16.5 at 0.02%, the back table included.
//!
//! ```
//! use tamis::{BlockedRank, Filter, Insert, Remove};
//! let mut filter = BlockedRank::with_rate(1_000, 0.01)?;
//! filter.insert("apple")?;
//! assert!(filter.contains("apple"));
//! filter.remove("apple")?;
//! assert!(!filter.contains("apple"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When it fills up
//!
//! When a block is full, the cells of its highest location move to the back table and the threshold falls to it; when removals make
//! room, locations come back. One key inserted very often ends up in the back table, which counts. When a third of the planned keys live in the
//! back table, and there are enough to fill the blocks, the filter grows to twice the blocks, with fingerprints a bit shorter: identities, and so answers, stay.
//!
//! # Limits
//!
//! At most 2^61 identities; fingerprints of 1 to 16 bits (of fewer than 8, a byte is used all the same). Rates below 10^-5 take more
//! blocks than keys need: take [`RankIndexed`](crate::RankIndexed) there.

mod back;
mod backend;
mod block;
mod machine;
mod many;
pub mod model;
mod params;
mod place;
mod plan;
mod sections;
mod table;
#[cfg(target_arch = "x86_64")]
mod x86;

use alloc::vec;
use alloc::vec::Vec;

pub use params::BlockedRankParams;

use self::table::Table;
use crate::bits::OutOfMemory;
use crate::coder::Packing;
use crate::digest::{Digest, Hasher};
use crate::filter::{Count, Filter, Insert, Remove, Stored};
use crate::group::{Group, common_universe};
use crate::plan::in_proportion;
use crate::spec::{
    Absent, Full, Goal, Invalid, Kind, Label, Mismatch, PlanError, Prediction, ResizeError,
    WireError,
};
use crate::wire::{self, ContentHasher, ContentId, Encoded, Encoding, Frame};

/// A multiset of identities; see [the module](self).
#[derive(Clone, Debug)]
pub struct BlockedRank {
    label: Label,
    table: Table,
}

impl BlockedRank {
    /// An empty filter for so many keys at this rate, with XXH3 and seed 0.
    pub fn with_rate(keys: u64, rate: f64) -> Result<Self, PlanError> {
        let params = Self::plan(&Goal::rate(keys, rate))?;
        Ok(Self::new(params, Label::planned(Hasher::default(), keys))?)
    }

    /// The params for a goal; an error where fingerprints are too short for its rate, and only more and more blocks would do.
    pub fn plan(goal: &Goal) -> Result<BlockedRankParams, PlanError> {
        let bits_per_key =
            |params: &BlockedRankParams| plan::predict(params, goal.sized_keys()).bits_per_key;
        in_proportion(Kind::BlockedRank, goal, plan::plan, bits_per_key)
    }

    /// What a filter with these params and so many keys will do.
    pub fn predict(params: &BlockedRankParams, keys: u64) -> Prediction {
        plan::predict(params, keys)
    }

    /// Cells in use, in the blocks and in the back table.
    pub fn used(&self) -> u64 {
        self.table.used()
    }

    /// As [`encode`](Stored::encode) does for a filter of 4 MiB and more, whatever its size: with the back table as it lies in memory too, so
    /// that nothing has to be built when the bytes are opened in place.
    pub fn encode_in_place(&self) -> Encoded<'_> {
        wire::encode(self, sections::encode_in_place(&self.table))
    }

    /// Uses plain instructions only, whatever the machine has: for comparisons.
    pub fn make_portable(&mut self) {
        self.table.make_portable();
    }

    /// All that is in, in order of identity: enough to build the filter anew, without the keys.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups = Vec::new();
        self.table.for_each_group(&mut |group| groups.push(group));
        groups
    }

    /// Takes identities away and adds others; on an error the table is half changed.
    pub(crate) fn change(
        &mut self,
        removed: &[Group],
        inserted: &[Group],
    ) -> Result<(), &'static str> {
        for &group in removed {
            self.table.take(group).map_err(|Absent| "more is removed than is in")?;
        }
        for &group in inserted {
            self.table.add(group).map_err(|_| "there is no memory for what comes")?;
        }
        Ok(())
    }

    pub(crate) fn label_mut(&mut self) -> &mut Label {
        &mut self.label
    }

    /// Twice the blocks, with fingerprints a bit shorter: room for twice the keys, and the same answers.
    pub fn grow(&mut self) -> Result<(), ResizeError> {
        self.table = self.table.rebuilt(self.table.params().grown()?, 0)?;
        Ok(())
    }

    /// Half the blocks, with fingerprints a bit longer: the same answers in half the memory, for half the keys.
    pub fn shrink(&mut self) -> Result<(), ResizeError> {
        self.table = self.table.rebuilt(self.table.params().shrunk()?, 0)?;
        Ok(())
    }

    /// Adds all of another filter: the multiset sum. Needs the same hash and seed, and universes that differ by a power of
    /// two: the finer filter is then read as coarsely as the other, and so is this one afterwards. It grows to make room.
    pub fn merge(&mut self, other: &Self) -> Result<(), Mismatch> {
        Mismatch::check_hashers(self.label.hasher, other.label.hasher)?;
        let (mine, theirs) = (self.table.layout(), other.table.layout());
        let (universe, their_universe) = (mine.universe(), theirs.universe());
        let dropped = common_universe(universe, their_universe);
        let meeting = dropped.and_then(|(dropped, _)| mine.coarser(dropped).ok()).zip(dropped);
        let Some((params, (dropped, their_dropped))) = meeting else {
            return Mismatch::check("universe", &universe, &their_universe);
        };
        // Beside this one, so that it is unchanged if memory runs out.
        let merged = self.table.rebuilt(params, dropped).and_then(|mut table| {
            // At once, since each step of growing is planned.
            table.settle_back(other.table.packed());
            table.add_all(&other.table, their_dropped)?;
            Ok(table)
        });
        self.table = merged.map_err(|_| Mismatch {
            field: "memory",
            left: alloc::format!("{} cells", self.used()),
            right: alloc::format!("{} cells", other.used()),
        })?;
        self.label.merge(&other.label);
        Ok(())
    }
}

impl PartialEq for BlockedRank {
    /// Equal content and label, wherever it lies.
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && self.content_id() == other.content_id()
    }
}

impl Eq for BlockedRank {}

impl Filter for BlockedRank {
    #[inline]
    fn label(&self) -> Label {
        self.label
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.table.contains_at(self.table.place(digest))
    }

    fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        let len = digests.len().min(answers.len());
        self.table.contains_many(&digests[..len], &mut answers[..len]);
    }

    #[inline]
    fn prefetch(&self, digest: Digest) {
        self.table.prefetch(digest);
    }

    fn footprint(&self) -> u64 {
        self.table.footprint()
    }

    /// Different identities over all: the chance that a stranger has one of them.
    fn rate(&self) -> f64 {
        let mut distinct = 0_u64;
        self.table.for_each_group(&mut |_| distinct += 1);
        distinct as f64 / self.table.params().universe() as f64
    }

    /// Cells in use over those of the blocks.
    fn fill(&self) -> f64 {
        let params = self.table.params();
        let cells = params.blocks() * u64::from(params.cells());
        (self.table.used() as f64 / cells as f64).min(1.0)
    }

    /// What lives in the back table: about 5% of the keys when all planned ones are in, and more with wide fingerprints.
    fn overflow(&self) -> Option<u64> {
        Some(self.table.in_back())
    }

    fn blocks_to_contain(&self, digest: Digest) -> u32 {
        self.table.lines_to_contain(self.table.place(digest))
    }
}

impl Insert for BlockedRank {
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Full> {
        let new = self.table.insert(self.table.place(digest))?;
        self.label.keys = self.label.keys.saturating_add(1);
        Ok(new)
    }

    fn insert_many(&mut self, digests: &[Digest]) -> Result<(), Full> {
        let done = self.table.insert_many(digests);
        let inserted = done.map_or_else(|(inserted, _)| inserted, |()| digests.len()) as u64;
        self.label.keys = self.label.keys.saturating_add(inserted);
        done.map_err(|(_, full)| Full { inserted, ..full })
    }

    fn blocks_to_insert(&self, digest: Digest) -> u32 {
        self.table.lines_to_insert(self.table.place(digest))
    }
}

impl Remove for BlockedRank {
    #[inline]
    fn remove_digest(&mut self, digest: Digest) -> Result<(), Absent> {
        self.table.remove(self.table.place(digest))?;
        self.label.keys = self.label.keys.saturating_sub(1);
        Ok(())
    }

    fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        let removed = self.table.remove_many(digests);
        self.label.keys = self.label.keys.saturating_sub(removed);
        removed
    }
}

impl Count for BlockedRank {
    fn count_digest(&self, digest: Digest) -> Option<u64> {
        Some(self.table.count(self.table.place(digest)))
    }

    fn max_count(&self) -> u64 {
        u64::MAX
    }
}

impl Stored for BlockedRank {
    const KIND: Kind = Kind::BlockedRank;
    type Params = BlockedRankParams;

    fn params(&self) -> BlockedRankParams {
        self.table.layout()
    }

    fn new(params: BlockedRankParams, label: impl Into<Label>) -> Result<Self, OutOfMemory> {
        Ok(Self { label: label.into(), table: Table::new(params)? })
    }

    fn clear(&mut self) {
        self.table.clear();
        self.label.keys = 0;
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.table.validate()
    }

    /// Covers the universe and the identities in order, not where they lie: a grown filter is the same multiset.
    fn content_id(&self) -> ContentId {
        let facts = self.table.params().content_params().map(|(_, value)| value);
        let mut id = ContentHasher::new(Kind::BlockedRank, self.label.hasher, &facts);
        self.table.for_each_group(&mut |Group { identity, count, .. }| {
            id.numbers([identity, count].into_iter());
        });
        id.finish()
    }

    fn encode(&self) -> Encoded<'_> {
        wire::encode(self, sections::encode(&self.table))
    }

    fn pack(&self, _: impl Into<Packing>) -> Encoded<'_> {
        wire::encode(self, vec![sections::pack(&self.table)])
    }

    fn from_frame(frame: &mut Frame<'_>) -> Result<Self, WireError> {
        let (label, params) = frame.begin::<Self>()?;
        let table = match frame.next_encoding() {
            Some(Encoding::Packed) => sections::unpack(frame, params)?,
            _ => sections::decode(frame, params)?,
        };
        Ok(Self { label, table })
    }
}
