//! What only some kinds can do, called on an [`AnyFilter`].

use tamis::blocked_rank::{BlockedMapParams, BlockedRankParams};
use tamis::dleft::DLeftParams;
use tamis::internals::address::identity;
use tamis::internals::rank_indexed::model::Layout;
use tamis::rank_indexed::RankParams;
use tamis::{
    AnyFilter, AnyParams, AtomicBlockedBloom, AtomicBloom, Digest, Entry, Filter, Label, Sharded,
};

use super::history::Partner;

/// The universe of a kind that keeps identities; `None` for other kinds.
pub(super) fn universe(params: &AnyParams) -> Option<u64> {
    match params {
        AnyParams::RankIndexed(params)
        | AnyParams::RankSet(params)
        | AnyParams::RankCounting(params)
        | AnyParams::RankMap(params) => Some(params.universe()),
        AnyParams::BlockedRank(params) => Some(params.universe()),
        AnyParams::BlockedMap(params) => Some(params.universe()),
        AnyParams::DLeft(params) => Some(params.universe()),
        _ => None,
    }
}

/// Whether the same keys in any order make the same content.
pub(super) fn forgets_order(filter: &AnyFilter) -> bool {
    match filter {
        // A counter at its limit stays there.
        AnyFilter::Counting(filter) => filter.saturated() == 0,
        AnyFilter::BalancedSingle(_)
        | AnyFilter::BalancedSequential(_)
        | AnyFilter::BalancedMht(_)
        | AnyFilter::BalancedPopcount(_)
        | AnyFilter::BalancedTwoChoice(_) => false,
        _ => true,
    }
}

/// Whether an insertion may be refused: the policy "error" of balanced kinds.
pub(super) fn may_refuse(params: &AnyParams) -> bool {
    params.named().iter().any(|&(name, value)| name == "policy" && value == 1)
}

/// The number of blocks where full blocks list all later keys: in balanced kinds, and in a
/// `blocked-rank` filter without a second level. `None` for others.
pub(super) fn lists_by_block(params: &AnyParams) -> Option<u64> {
    let value = |wanted| params.named().iter().find(|&&(name, _)| name == wanted).map(|it| it.1);
    let lists = value("policy").is_some() || value("second_blocks") == Some(0);
    value("blocks").filter(|_| lists)
}

/// The largest value; `None` where there are none.
pub(super) fn max_value(filter: &AnyFilter) -> Option<u64> {
    matches!(filter, AnyFilter::RankMap(_) | AnyFilter::BlockedMap(_) | AnyFilter::DLeft(_))
        .then(|| filter.max_value())
}

/// Inserts a key with a value; false where that failed.
pub(super) fn insert_value(filter: &mut AnyFilter, key: u64, value: u64) -> bool {
    match filter {
        AnyFilter::RankMap(filter) => filter.insert_value(&key, value).is_ok(),
        AnyFilter::BlockedMap(filter) => filter.insert_value(&key, value).is_ok(),
        AnyFilter::DLeft(filter) => filter.insert_value(&key, value).is_ok(),
        _ => false,
    }
}

/// Removes a key with a value; false where that failed.
pub(super) fn remove_value(filter: &mut AnyFilter, key: u64, value: u64) -> bool {
    match filter {
        AnyFilter::RankMap(filter) => filter.remove_value(&key, value).is_ok(),
        AnyFilter::BlockedMap(filter) => filter.remove_value(&key, value).is_ok(),
        AnyFilter::DLeft(filter) => filter.remove_value(&key, value).is_ok(),
        _ => false,
    }
}

/// Changes the value of a key; false where that failed.
pub(super) fn update(filter: &mut AnyFilter, key: u64, old: u64, new: u64) -> bool {
    match filter {
        AnyFilter::RankMap(filter) => filter.update(&key, old, new).is_ok(),
        AnyFilter::BlockedMap(filter) => filter.update(&key, old, new).is_ok(),
        AnyFilter::DLeft(filter) => filter.update(&key, old, new).is_ok(),
        _ => false,
    }
}

/// The values of a key.
pub(super) fn values(filter: &AnyFilter, key: u64) -> Vec<u64> {
    match filter {
        AnyFilter::RankMap(filter) => filter.values(&key),
        AnyFilter::BlockedMap(filter) => filter.values(&key),
        AnyFilter::DLeft(filter) => filter.values(&key),
        _ => Vec::new(),
    }
}

/// Makes room for `keys` keys; false where that is not possible.
pub(super) fn resize(filter: &mut AnyFilter, keys: u64) -> bool {
    match filter {
        AnyFilter::RankIndexed(filter) => filter.resize(keys).is_ok(),
        AnyFilter::RankSet(filter) => filter.resize(keys).is_ok(),
        AnyFilter::RankCounting(filter) => filter.resize(keys).is_ok(),
        AnyFilter::RankMap(filter) => filter.resize(keys).is_ok(),
        _ => false,
    }
}

/// Makes identities `bits` bits shorter; false where that is not possible.
pub(super) fn coarsen(filter: &mut AnyFilter, bits: u32) -> bool {
    match filter {
        AnyFilter::RankIndexed(filter) => filter.coarsen(bits).is_ok(),
        AnyFilter::RankSet(filter) => filter.coarsen(bits).is_ok(),
        AnyFilter::RankCounting(filter) => filter.coarsen(bits).is_ok(),
        AnyFilter::RankMap(filter) => filter.coarsen(bits).is_ok(),
        AnyFilter::DLeft(filter) => filter.recut(bits).is_ok(),
        _ => false,
    }
}

/// Makes the filter use portable instructions, where that can be chosen. (For the other kinds,
/// tests inside the library compare both.)
pub(super) fn make_portable(filter: &mut AnyFilter) {
    if let AnyFilter::BlockedRank(filter) = filter {
        filter.make_portable();
    }
}

/// The count that the filter must return for a digest; `None` where the kind promises no exact
/// count.
pub(super) fn exact_count(filter: &AnyFilter, entries: &[Entry], digest: Digest) -> Option<u64> {
    filter.as_count()?;
    let wanted = identity(digest, universe(&filter.params())?);
    let from = entries.partition_point(|entry| entry.identity < wanted);
    let alike = entries[from..].iter().take_while(|entry| entry.identity == wanted);
    Some(alike.map(|entry| entry.count).sum())
}

/// The layout of a partner; `None` where there is no such layout.
pub(super) fn partner(planned: &AnyParams, now: &AnyParams, which: Partner) -> Option<AnyParams> {
    match which {
        Partner::Now => Some(*now),
        Partner::Alike => Some(*planned),
        Partner::Coarser => with_fingerprint(planned, |bits| bits.checked_sub(1)),
        Partner::Finer => with_fingerprint(planned, |bits| bits.checked_add(1)),
    }
}

/// The layout that a plan would choose for the same buckets or blocks and as much room. `params`
/// may be far from it.
pub(super) fn as_planned(params: &AnyParams) -> Option<AnyParams> {
    with_fingerprint(params, Some)
}

/// The planned layout of a filter whose identities have become shorter; `None` where they have
/// not.
pub(super) fn coarsened(planned: &AnyParams, now: &AnyParams) -> Option<AnyParams> {
    let ratio = universe(planned)? / universe(now)?;
    if ratio < 2 { None } else { with_fingerprint(planned, |bits| bits.checked_sub(ratio.ilog2())) }
}

/// The same params with another width of fingerprints or remainders, and with everything that
/// follows from it as a plan would choose it. Kinds without fingerprints keep their params.
fn with_fingerprint(params: &AnyParams, change: impl Fn(u32) -> Option<u32>) -> Option<AnyParams> {
    let rank = |params: &RankParams| {
        let Layout { buckets, locations, fingerprint, extra, groups, .. } = params.layout();
        let (capacity, bits) = (params.capacity(), change(fingerprint)?);
        RankParams::new(buckets, locations, bits, extra, capacity, groups).ok()
    };
    match params {
        AnyParams::RankIndexed(params) => rank(params).map(AnyParams::RankIndexed),
        AnyParams::RankSet(params) => rank(params).map(AnyParams::RankSet),
        AnyParams::RankCounting(params) => rank(params).map(AnyParams::RankCounting),
        AnyParams::RankMap(params) => rank(params).map(AnyParams::RankMap),
        AnyParams::BlockedRank(params) => {
            let (blocks, locations, cells) = (params.blocks(), params.locations(), params.cells());
            let bits = change(params.fingerprint())?;
            let (block, capacity) = (params.block(), params.capacity());
            let params = BlockedRankParams::new(block, blocks, locations, cells, bits, capacity);
            params.ok().map(AnyParams::BlockedRank)
        }
        AnyParams::BlockedMap(params) => {
            let (table, value) = (params.table(), params.value());
            let (blocks, locations, cells) = (table.blocks(), table.locations(), table.cells());
            let (block, bits, capacity) =
                (table.block(), change(table.fingerprint())?, table.capacity());
            let params =
                BlockedMapParams::new(block, blocks, locations, cells, bits, capacity, value);
            params.ok().map(AnyParams::BlockedMap)
        }
        AnyParams::DLeft(params) => {
            let (subtables, buckets, cells) =
                (params.subtables(), params.buckets(), params.cells());
            let bits = change(params.remainder())?;
            let params = DLeftParams::new(subtables, buckets, cells, bits, params.value());
            params.ok().map(AnyParams::DLeft)
        }
        params => Some(*params),
    }
}

/// Inserts through the filter that threads share; false where the kind has none.
pub(super) fn insert_atomically(filter: &mut AnyFilter, digests: &[Digest]) -> bool {
    match filter {
        AnyFilter::Bloom(bloom) => {
            let shared = AtomicBloom::from(bloom.clone());
            shared.insert_many(digests);
            *bloom = shared.into();
        }
        AnyFilter::Blocked(blocked) => {
            let shared = AtomicBlockedBloom::from(blocked.clone());
            shared.insert_many(digests);
            *blocked = shared.into();
        }
        _ => return false,
    }
    true
}

/// A filter of these keys without `gone`, built in shards and merged; or what went wrong.
pub(super) fn through_shards(
    params: AnyParams,
    label: Label,
    shards: usize,
    (digests, gone): (&[Digest], &[Digest]),
) -> Result<AnyFilter, String> {
    let empty = params.build(label).map_err(|error| error.to_string())?;
    let all = Sharded::from_shards(vec![empty; shards]).map_err(|error| error.to_string())?;
    let (first, rest) = digests.split_at(digests.len() / 2);
    all.insert_many(first).map_err(|error| error.to_string())?;
    for &digest in rest {
        all.insert_digest(digest).map_err(|error| error.to_string())?;
    }
    if params.kind().can_remove() {
        all.with_groups_mut(gone, |filter, gone| {
            let removed = filter.as_remove().map_or(0, |filter| filter.remove_many(gone));
            let missed = "a shard did not find what is in it".to_string();
            if removed == gone.len() as u64 { Ok(()) } else { Err(missed) }
        })?;
    }
    let mut answers = vec![false; digests.len()];
    all.contains_many(digests, &mut answers);
    let single = |(&digest, &answer): (&Digest, &bool)| all.contains_digest(digest) == answer;
    if !digests.iter().zip(&answers).all(single) {
        return Err("a batch over shards is not its keys one by one".into());
    }
    if !answers[gone.len()..].iter().all(|&answer| answer) {
        return Err("false negative in shards".into());
    }
    all.merged(AnyFilter::merge).map_err(|error| error.to_string())
}
