//! Sorted lists of identities as filters of the library, and back: the identities are the same.

use std::borrow::Cow;

use tamis::{AnyFilter, AnyParams, Entry, Filter as _, Goal, Hasher, Kind, Label};

use crate::memory::{self, NoMemory};
use crate::multiset::{MOST_BITS, Plan, Refused, Table};
use crate::reply::Refusal;
use crate::scaling::Layer;

/// Bytes of memory for every identity while a table is made of them.
const IDENTITY: u64 = 64;

/// The kinds that can become a multiset.
pub(crate) const MULTISETS: [Kind; 4] =
    [Kind::RankIndexed, Kind::RankCounting, Kind::BlockedRank, Kind::DLeft];

/// A table as a `rank-counting` filter with the same universe. Identities go from leaf to bucket
/// one by one, and where there is no memory for the filter that is an error.
pub(crate) fn exported(table: &Table, hasher: Hasher) -> Result<AnyFilter, Refusal> {
    let keys = table.distinct().max(1);
    memory::ask(memory::SPARE)?;
    let label = Label::planned(hasher, table.most());
    let entries = table.items().map(|(identity, count)| Entry { identity, value: 0, count });
    let params = params(table.universe(), keys).ok_or("ERR no filter has this universe")?;
    AnyFilter::of_entries(params, label, entries).ok_or_else(|| NoMemory.into())
}

/// A layer as a filter of the library.
pub(crate) fn of_layer(layer: &Layer, hasher: Hasher) -> Result<Cow<'_, AnyFilter>, Refusal> {
    match layer {
        Layer::Small(table) => exported(table, hasher).map(Cow::Owned),
        Layer::Large(filter) => Ok(Cow::Borrowed(filter)),
    }
}

/// A layout of buckets, locations and fingerprints with exactly this universe, and about as many
/// locations as keys.
fn params(universe: u64, keys: u64) -> Option<AnyParams> {
    let wanted = (universe / keys).checked_ilog2()?.max(1);
    let cuts = (1..=64u64).rev().filter(|&locations| universe.is_multiple_of(locations));
    let cuts = cuts.filter_map(|locations| {
        let rest = universe / locations;
        let fingerprint = rest.trailing_zeros().min(wanted);
        (fingerprint > 0).then_some((rest >> fingerprint, locations, fingerprint))
    });
    // The longest fingerprints, and of these the fewest buckets.
    let (buckets, locations, fingerprint) =
        cuts.min_by_key(|&(buckets, locations, fingerprint)| {
            (buckets.saturating_mul(locations) / 2 > keys, wanted - fingerprint, 64 - locations)
        })?;
    // A universe that came from elsewhere may have no cut that is near.
    if buckets.saturating_mul(locations) > keys.saturating_mul(64) + 1024 {
        return None;
    }
    let fixed =
        [("buckets", buckets), ("locations", locations), ("fingerprint", fingerprint.into())];
    let capacity = keys.min(4 * buckets * locations);
    AnyParams::plan(Kind::RankCounting, &Goal::rate(capacity, 0.5).params(fixed)).ok()
}

/// The table of a filter that keeps identities.
pub(crate) fn imported(filter: &AnyFilter, most: u64) -> Result<Table, Refusal> {
    let universe = filter.universe().filter(|&universe| universe <= 1 << MOST_BITS);
    let universe = universe.ok_or("ERR the filter tells more identities apart than 2^56")?;
    memory::ask(filter.keys().saturating_mul(IDENTITY).min(64 * memory::bytes(filter)))?;
    let entries = filter.entries().into_iter();
    let items = entries.map(|entry| (entry.identity, entry.count));
    Table::of_items(Plan { universe, most }, items).map_err(|refused| match refused {
        Refused::Memory => NoMemory.into(),
        Refused::Count => "ERR a count is too high".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table becomes a filter that answers alike, and a table again.
    #[test]
    fn tables_and_filters_answer_alike() {
        let hasher = Hasher::default();
        for universe in [2, 64, 1 << 14, 1 << 30, 1 << 56, 625 << 5] {
            for keys in [0, 1, 40, 3_000u64] {
                let plan = Plan { universe, most: keys.max(1) };
                let mut table = Table::new(plan);
                for key in 0..keys {
                    let digest = hasher.digest_bytes(&key.to_le_bytes());
                    table.add(table.identity(digest), key % 4 + 1).unwrap();
                }
                if table.distinct() * 2 > universe {
                    continue; // No filter has fewer than two identities a location.
                }
                let filter = exported(&table, hasher).unwrap();
                assert_eq!(filter.universe(), Some(universe));
                assert_eq!(filter.keys(), table.keys());
                for key in 0..keys + 2_000 {
                    let digest = hasher.digest_bytes(&key.to_le_bytes());
                    assert_eq!(filter.contains_digest(digest), table.contains(digest));
                }
                let back = imported(&filter, plan.most).unwrap();
                assert!(back.items().eq(table.items()));
            }
        }
    }
}
