//! The parameters of a rank-indexed table, and the layout that follows from them.

use alloc::vec;
use alloc::vec::Vec;

use super::levels::MOST_CELLS;
use super::model::Layout;
use super::optimise::{DEFAULT_OVERFLOW, Demand, MAX_FINGERPRINT, MAX_LOCATIONS, complete};
use crate::filter::{InvalidParam, Params};

/// The most identities: so that they leave room in a word.
pub(super) const MAX_UNIVERSE: u64 = 1 << 62;
/// The most buckets: far beyond any memory, and safe from overflow.
const MAX_BUCKETS: u64 = 1 << 44;
/// The most keys that a layout provides for at one chain location: longer chains would make lookups crawl and
/// buckets unwieldy.
pub(super) const MAX_KEYS_PER_LOCATION: u64 = 4;
/// How far the cut of identities may move when a table is laid out anew.
const MOST_CUTS: usize = 3;
/// The widest value.
pub(super) const MAX_VALUE_BITS: u32 = 32;

/// How identities are cut, and how many keys the table has room for.
///
/// Cells of the levels and numbers of extensions are not stored: they follow from these, the same on every
/// machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankParams {
    layout: Layout,
    capacity: u64,
}

/// The capacity after one growth: a quarter more.
pub(super) fn grown_capacity(capacity: u64) -> u64 {
    capacity.saturating_mul(5) / 4 + 1
}

impl RankParams {
    /// `buckets` buckets of `locations` chain locations, `fingerprint` bits a cell (and `extra` bits of counter or
    /// value), room for `capacity` keys, extensions shared by the buckets of each of `groups` equal groups.
    pub fn new(
        buckets: u64,
        locations: u32,
        fingerprint: u32,
        extra: u32,
        capacity: u64,
        groups: u64,
    ) -> Result<Self, InvalidParam> {
        let frame = Layout {
            buckets,
            locations,
            fingerprint,
            extra,
            level1: 0,
            level2: 0,
            level3: 0,
            second: 0,
            third: 0,
            groups,
        };
        Self::check_frame(&frame, capacity)?;
        let demand = Demand { extra, overflow: DEFAULT_OVERFLOW, ..Demand::new(capacity) };
        let expected = "what buckets of a few hundred cells can hold";
        let refused = InvalidParam { name: "capacity", value: capacity, expected };
        let layout = complete(&demand, frame).ok_or(refused)?;
        Ok(Self { layout, capacity })
    }

    /// The params of a layout that is given to the last number, and not what rules of today would choose.
    pub(super) fn laid_out(layout: Layout, capacity: u64) -> Result<Self, InvalidParam> {
        Self::check_frame(&layout, capacity)?;
        let refuse = |name, value, expected| Err(InvalidParam { name, value, expected });
        let Layout { level1, level2, level3, second, third, groups, .. } = layout;
        if !(1..=MOST_CELLS).contains(&level1.into()) {
            return refuse("level1", level1.into(), "1 up to 4098 cells");
        }
        // So all of them together have fewer bits than a word can count.
        let most = MAX_BUCKETS / groups;
        if second > most {
            return refuse("second", second, "extensions for 2^44 buckets at most");
        }
        if third > most || third > 0 && second == 0 {
            return refuse("third", third, "as those of level 2, and none without them");
        }
        let levels = [("level2", level2, second), ("level3", level3, third)];
        let mut cells = u64::from(level1);
        for (name, level, extensions) in levels {
            cells += u64::from(level);
            if (level == 0) != (extensions == 0) || cells > MOST_CELLS {
                return refuse(
                    name,
                    level.into(),
                    "cells if there are extensions, 4098 with all below",
                );
            }
        }
        Ok(Self { layout, capacity })
    }

    /// Checks all but the levels.
    fn check_frame(frame: &Layout, capacity: u64) -> Result<(), InvalidParam> {
        let Layout { buckets, locations, fingerprint, extra, groups, .. } = *frame;
        let refuse = |name, value, expected| Err(InvalidParam { name, value, expected });
        if !(1..=MAX_LOCATIONS).contains(&locations) {
            return refuse("locations", locations.into(), "1 to 64");
        }
        if !(1..=MAX_FINGERPRINT).contains(&fingerprint) {
            return refuse("fingerprint", fingerprint.into(), "1 to 56 bits");
        }
        if extra > MAX_VALUE_BITS {
            return refuse("value", extra.into(), "1 to 32 bits");
        }
        let most_buckets = ((MAX_UNIVERSE / u64::from(locations)) >> fingerprint).min(MAX_BUCKETS);
        if !(1..=most_buckets).contains(&buckets) {
            return refuse("buckets", buckets, "1 to 2^44, and at most 2^62 identities");
        }
        if groups == 0 || !buckets.is_multiple_of(groups) {
            return refuse("groups", groups, "a divisor of the buckets");
        }
        if capacity == 0 || capacity / MAX_KEYS_PER_LOCATION > buckets * u64::from(locations) {
            return refuse("capacity", capacity, "1 up to 4 keys a chain location");
        }
        Ok(())
    }

    /// The params of a planned layout.
    pub(crate) fn of(layout: &Layout, capacity: u64) -> Result<Self, InvalidParam> {
        let Layout { buckets, locations, fingerprint, extra, groups, .. } = *layout;
        Self::new(buckets, locations, fingerprint, extra, capacity.max(1), groups)
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

    /// What decides answers beside hash, seed and content.
    pub(crate) fn content_params(&self) -> [(&'static str, u64); 2] {
        [("universe", self.universe()), ("extra", self.layout.extra.into())]
    }

    /// The same table with other counter or value bits.
    pub(super) fn with_extra(&self, extra: u32) -> Self {
        let layout = Layout { extra: extra.min(MAX_VALUE_BITS), ..self.layout };
        Self::of(&layout, self.capacity).unwrap_or(*self)
    }

    /// These params, or ones with more capacity if so many keys need it.
    pub(super) fn with_room_for(&self, keys: u64) -> Result<Self, InvalidParam> {
        let mut params = *self;
        while params.capacity < keys {
            params = params.with_capacity(grown_capacity(params.capacity))?;
        }
        Ok(params)
    }

    /// The same identities with room for so many keys, in the fewest bits: identities may be cut elsewhere, into twice the
    /// buckets with fingerprints a bit shorter, or the other way round, as often as that pays.
    pub(super) fn with_capacity(&self, capacity: u64) -> Result<Self, InvalidParam> {
        let finer = core::iter::successors(Some(self.layout), |layout| {
            (layout.fingerprint > 1).then(|| Layout {
                buckets: layout.buckets * 2,
                groups: layout.groups * 2,
                fingerprint: layout.fingerprint - 1,
                ..*layout
            })
        });
        let coarser = core::iter::successors(Some(self.layout), |layout| {
            let halves = layout.buckets % 2 == 0 && layout.fingerprint < MAX_FINGERPRINT;
            halves.then(|| Layout {
                buckets: layout.buckets / 2,
                groups: if layout.groups % 2 == 0 { layout.groups / 2 } else { 1 },
                fingerprint: layout.fingerprint + 1,
                ..*layout
            })
        });
        let cuts = finer.take(MOST_CUTS).chain(coarser.take(MOST_CUTS).skip(1));
        let plans = cuts.filter_map(|layout| Self::of(&layout, capacity).ok());
        match plans.min_by_key(|params| params.layout.bits()) {
            Some(params) => Ok(params),
            None => Self::of(&self.layout, capacity),
        }
    }
}

impl Params for RankParams {
    const NAMES: &'static [&'static str] =
        &["buckets", "locations", "fingerprint", "extra", "capacity", "groups"];

    fn values(&self) -> Vec<u64> {
        let Layout { buckets, locations, fingerprint, extra, groups, .. } = self.layout;
        vec![buckets, locations.into(), fingerprint.into(), extra.into(), self.capacity, groups]
    }

    fn from_values(values: &[u64]) -> Result<Self, InvalidParam> {
        let narrow = |at: usize| u32::try_from(values[at]).unwrap_or(u32::MAX);
        Self::new(values[0], narrow(1), narrow(2), narrow(3), values[4], values[5])
    }
}
