//! The parameters of a rank-indexed table: every number of its layout, as they are stored.
//!
//! They are checked as integers, by rules that never change. A planner may choose them as it likes
//! (in [`plan`](super::plan)); no reader needs to know how.

use alloc::vec;
use alloc::vec::Vec;

use super::model::Layout;
use crate::spec::{InvalidParam, Params, as_stored, narrow, require};

/// The base index of a bucket is one machine word. Frozen.
pub(super) const MAX_LOCATIONS: u32 = 64;
/// With a wider fingerprint one bucket of 64 locations would exceed the most identities. Frozen.
pub(super) const MAX_FINGERPRINT: u32 = 56;
/// The most identities: they leave room in a word. Frozen.
pub(super) const MAX_UNIVERSE: u64 = 1 << 62;
/// The most buckets: far beyond any memory, and safe from overflow. Frozen.
const MAX_BUCKETS: u64 = 1 << 44;
/// The most keys that a layout has room for at one chain location: longer chains would make
/// lookups slow and buckets unwieldy. Frozen.
const MAX_KEYS_PER_LOCATION: u64 = 4;
/// The most cells of a bucket, its extensions included. Frozen.
const MAX_CELLS: u64 = 4098;
/// The widest value. Frozen.
const MAX_VALUE_BITS: u32 = 32;

/// Every number of a table's layout, and how many keys it has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankParams {
    layout: Layout,
    capacity: u64,
}

impl RankParams {
    /// The params of a layout of which every number is given. [`new`](Self::new) chooses the
    /// levels.
    pub fn laid_out(layout: Layout, capacity: u64) -> Result<Self, InvalidParam> {
        Self::check_frame(&layout, capacity)?;
        let Layout { level1, level2, level3, second, third, .. } = layout;
        let fits = (1..=MAX_CELLS).contains(&level1.into());
        require(fits, "level1", level1, "1 up to 4098 cells")?;
        // With these limits the bits of all records fit into a `u64`.
        let most = layout.group_buckets();
        let expected = "at most an extension for each bucket of a group";
        require(second <= most, "second", second, expected)?;
        let fits = third <= most && (third == 0 || second > 0);
        require(fits, "third", third, "as many as those of level 2 may be, and 0 without them")?;
        let levels = [("level2", level2, second), ("level3", level3, third)];
        let mut cells = u64::from(level1);
        for (name, level, extensions) in levels {
            cells += u64::from(level);
            let fits = (level == 0) == (extensions == 0) && cells <= MAX_CELLS;
            require(
                fits,
                name,
                level,
                "above 0 if there are extensions, and at most 4098 with all below",
            )?;
        }
        Ok(Self { layout, capacity })
    }

    /// Checks all but the levels.
    pub(super) fn check_frame(frame: &Layout, capacity: u64) -> Result<(), InvalidParam> {
        let Layout { buckets, locations, fingerprint, extra, groups, .. } = *frame;
        let fits = (1..=MAX_LOCATIONS).contains(&locations);
        require(fits, "locations", locations, "1 to 64")?;
        let fits = (1..=MAX_FINGERPRINT).contains(&fingerprint);
        require(fits, "fingerprint", fingerprint, "1 to 56 bits")?;
        require(extra <= MAX_VALUE_BITS, "value", extra, "1 to 32 bits")?;
        let most_buckets = ((MAX_UNIVERSE / u64::from(locations)) >> fingerprint).min(MAX_BUCKETS);
        let fits = (1..=most_buckets).contains(&buckets);
        require(fits, "buckets", buckets, "1 to 2^44, and at most 2^62 identities")?;
        let divides = groups > 0 && buckets.is_multiple_of(groups);
        require(divides, "groups", groups, "a divisor of the buckets")?;
        let most = buckets * u64::from(locations);
        let fits = capacity > 0 && capacity / MAX_KEYS_PER_LOCATION <= most;
        require(fits, "capacity", capacity, "1 up to 4 keys a chain location")
    }

    /// Every number of the table.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Keys that the table has room for before it grows.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Identities that can be told apart, U.
    pub fn universe(&self) -> u64 {
        self.layout.buckets * self.identities_per_bucket()
    }

    /// Identities that fall into one bucket.
    pub(super) fn identities_per_bucket(&self) -> u64 {
        u64::from(self.layout.locations) << self.layout.fingerprint
    }

    /// The same table with other counter or value bits.
    pub(super) fn with_extra(&self, extra: u32) -> Self {
        Self { layout: Layout { extra: extra.min(MAX_VALUE_BITS), ..self.layout }, ..*self }
    }

    /// The same table with identities, and fingerprints, that are `dropped` bits shorter.
    pub(super) fn coarser(&self, dropped: u32) -> Result<Self, InvalidParam> {
        let fingerprint = self.layout.fingerprint;
        let fits = dropped < fingerprint;
        require(fits, "fingerprint", fingerprint, "more bits than are to be dropped")?;
        let layout = Layout { fingerprint: fingerprint - dropped, ..self.layout };
        Ok(Self { layout, ..*self })
    }
}

impl Params for RankParams {
    const NAMES: &'static [&'static str] = &[
        "buckets",
        "locations",
        "fingerprint",
        "extra",
        "capacity",
        "groups",
        "level1",
        "level2",
        "level3",
        "second",
        "third",
    ];

    fn values(&self) -> Vec<u64> {
        let Self { layout: all, capacity } = *self;
        let frame = [all.locations, all.fingerprint, all.extra].map(u64::from);
        let levels = [all.level1, all.level2, all.level3].map(u64::from);
        let mut values = vec![all.buckets];
        values.extend(frame);
        values.extend([capacity, all.groups]);
        values.extend(levels);
        values.extend([all.second, all.third]);
        values
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let [buckets, frame @ .., third] = as_stored::<11>(values)?;
        let [locations, fingerprint, extra, capacity, groups, levels @ .., second] = frame;
        let [locations, fingerprint, extra] = [locations, fingerprint, extra].map(narrow);
        let [level1, level2, level3] = levels.map(narrow);
        let layout = Layout {
            buckets,
            locations,
            fingerprint,
            extra,
            level1,
            level2,
            level3,
            second,
            third,
            groups,
        };
        Self::laid_out(layout, capacity)
    }
}
