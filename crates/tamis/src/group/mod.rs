//! What fingerprint structures hold, apart from any layout: identities, with values and counts, in order.

pub(crate) mod section;
mod spill;

use alloc::vec::Vec;

pub(crate) use self::spill::Spill;

use crate::coder::numbers;
use crate::spec::{Budget, Invalid, WireError};

/// An identity with its value (0 where a kind has none) and how often it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The identity.
    pub identity: u64,
    /// Its value.
    pub value: u64,
    /// How often it is in.
    pub count: u64,
}

impl Group {
    /// What groups are told apart by, and ordered by.
    pub(crate) fn key(&self) -> (u64, u64) {
        (self.identity, self.value)
    }
}

/// Groups in order and every one once, after some have become equal; a set keeps one of each.
pub(crate) fn merged(groups: &mut Vec<Group>, is_set: bool) -> &[Group] {
    groups.sort_unstable_by_key(Group::key);
    groups.dedup_by(|one, kept| {
        let same = one.key() == kept.key();
        if same && !is_set {
            kept.count = kept.count.saturating_add(one.count);
        }
        same
    });
    groups
}

/// Where the identities of two universes can meet: how many bits those of each lose. `None` if the universes do not differ
/// by a power of two.
pub(crate) fn common_universe(a: u64, b: u64) -> Option<(u32, u32)> {
    let (small, large) = (a.min(b), a.max(b));
    let ratio = large / small;
    if large % small != 0 || !ratio.is_power_of_two() {
        return None;
    }
    let bits = ratio.trailing_zeros();
    Some(if a == small { (0, bits) } else { (bits, 0) })
}

/// Adds groups in order: identities as gaps, values of `value_bits` bits, counts.
pub(crate) fn put_groups(out: &mut Vec<u8>, groups: &[Group], universe: u64, value_bits: u32) {
    let identities: Vec<u64> = groups.iter().map(|group| group.identity).collect();
    let counts: Vec<u64> = groups.iter().map(|group| group.count).collect();
    numbers::put_sorted(out, &identities, universe);
    numbers::put_fields(out, groups.iter().map(|group| group.value), value_bits);
    put_counts(out, &counts);
}

/// Bytes of memory that a group takes.
pub(crate) const GROUP_BYTES: u64 = size_of::<Group>() as u64;

const DAMAGED: Invalid = Invalid("the identities are not what an encoder writes");

/// So many groups that [`put_groups`] added.
pub(crate) fn take_groups(
    bytes: &mut &[u8],
    universe: u64,
    value_bits: u32,
    count: u64,
    budget: &mut Budget,
) -> Result<Vec<Group>, WireError> {
    let identities = numbers::take_sorted(bytes, universe, count);
    let mut identities = identities.filter(|numbers| numbers.left() == count).ok_or(DAMAGED)?;
    let mut groups = budget.vec(count)?;
    while let Some(identity) = identities.next().map_err(|_| DAMAGED)? {
        groups.push(Group { identity, value: 0, count: 1 });
    }
    let values = groups.iter_mut().map(|group| &mut group.value);
    numbers::take_fields(bytes, values, value_bits).ok_or(DAMAGED)?;
    take_counts(bytes, groups.iter_mut().map(|group| &mut group.count)).ok_or(DAMAGED)?;
    if groups.is_sorted_by(|a, b| a.key() < b.key()) { Ok(groups) } else { Err(DAMAGED.into()) }
}

/// Adds counts, which are all but always one: which are not, and these.
pub(crate) fn put_counts(out: &mut Vec<u8>, counts: &[u64]) {
    let several = counts.iter().enumerate().filter(|&(_, &count)| count > 1);
    let at: Vec<u64> = several.clone().map(|(at, _)| at as u64).collect();
    numbers::put_sorted(out, &at, counts.len() as u64);
    several.for_each(|(_, &count)| numbers::put(out, count));
}

/// Sets counts, which are all one, to those that [`put_counts`] added.
pub(crate) fn take_counts<'a>(
    bytes: &mut &[u8],
    mut counts: impl ExactSizeIterator<Item = &'a mut u64>,
) -> Option<()> {
    let len = counts.len() as u64;
    let mut several = numbers::take_sorted(bytes, len, len)?;
    let mut next = 0;
    while let Some(at) = several.next().ok()? {
        // They rise strictly.
        let count = counts.nth(usize::try_from(at.checked_sub(next)?).ok()?)?;
        next = at + 1;
        *count = numbers::take(bytes).filter(|&count| count > 1)?;
    }
    Some(())
}
