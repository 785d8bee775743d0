//! The smallest layout for a rate, and the lowest rate for a size.
//!
//! Symbols as in [`model`](super::model). The search has two steps, because the problem does. For
//! a given rate only few pairs of r and B L make sense (notes, section 4: lambda is best at or
//! just below what the rate allows). In a frame of r, B, L and S, each level has a threshold W and
//! the least pool J that its share of Po allows. The levels depend on each other only through that
//! share and the widths of pointers. So every frame is first estimated with equal shares of Po,
//! near the levels of a frame whose buckets are as full, and only the best few are completed
//! exactly.

use alloc::vec::Vec;

use super::levels::{Bid, Levels, lesser};
use super::model::{Layout, rate, rate_of};
use super::params::{MAX_FINGERPRINT, MAX_LOCATIONS};

/// The longest mean chain of any plan. A lookup walks the chain, and for 1e5 keys the notes found
/// no better layout with longer ones (section 4, which went up to 10.5).
pub const MAX_LAMBDA: f64 = 3.5;
/// The paper's Po.
pub const DEFAULT_OVERFLOW: f64 = 1e-10;
/// U stays below this, so that identities leave room in a word.
const MAX_IDENTITIES: f64 = 4611686018427387904.0;
/// The smallest group that is considered when there is more than one. With smaller groups the
/// margin of the pools takes more than the shorter pointers save.
const SMALLEST_GROUP: f64 = 500.0;
/// The largest group that is considered when there is more than one. With larger groups the margin
/// is negligible and the pointers grow.
const LARGEST_GROUP: f64 = 1e6;
/// How many of the bids are completed exactly. To complete all of them, in a wider neighbourhood
/// and with more numbers of buckets, gained at most 0.007 bits per key over 180 goals from 2 to
/// 3e9 keys.
const REFINED: usize = 4;
/// The rate for a budget is found to within this, in ln: 0.003 bits per key.
const FINEST: f64 = 2e-3;
/// The highest rate of a layout for a budget.
pub const HIGHEST_RATE: f64 = 0.9;

/// What is asked of a layout beside its rate or its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// n; 0 is planned as 1.
    pub keys: u64,
    /// Counter or value bits of a cell.
    pub extra: u32,
    /// Po.
    pub overflow: f64,
    /// The longest mean chain.
    pub max_lambda: f64,
    /// The most groups; 1 gives the structure of the paper.
    pub max_groups: u64,
}

impl Demand {
    /// A demand for `keys` keys with cells that have fingerprints only, the paper's Po, and no
    /// limits on chains and groups.
    pub fn new(keys: u64) -> Self {
        let overflow = DEFAULT_OVERFLOW;
        Self { keys, extra: 0, overflow, max_lambda: MAX_LAMBDA, max_groups: u64::MAX }
    }

    /// The keys to size for.
    pub(crate) fn sized_keys(&self) -> u64 {
        self.keys.max(1)
    }
}

/// The layout of the fewest bits whose [`rate`] is at most `rate` and whose
/// [`overflow_bound`](super::model::overflow_bound) is at most that of `demand`; `None` if there
/// is none with U below 2^62, or if a number makes no sense.
///
/// Printed: r = ceil(log2(lambda/eps)) for a chosen lambda. Ours: the exact rate takes the place
/// of lambda 2^-r, which saves up to 0.008 bits per key at 1% and more above; r and lambda are
/// chosen together. Tested by `section_four` and `sweep`.
pub fn optimise(demand: &Demand, rate: f64) -> Option<Layout> {
    let sensible = rate > 0.0 && rate < 1.0 && demand.overflow > 0.0 && demand.max_lambda > 0.0;
    if !sensible {
        return None;
    }
    let frame = |&(fingerprint, places): &Split, buckets: f64, groups: f64| {
        frame(demand, fingerprint, places, buckets, groups)
    };
    let plain: Vec<(Split, f64, Levels, Bid)> = splits(demand, rate)
        .filter_map(|split| {
            let least = libm::ceil(split.1 / f64::from(MAX_LOCATIONS));
            let levels = Levels::new(demand, frame(&split, least, 1.0)?)?;
            let bid = levels.even_shares();
            Some((split, least, levels, bid))
        })
        .collect();
    // Groups and more buckets save less than the pointers take, and where groups are tried these
    // take less than half a bit for each key.
    let least = plain.iter().map(|plain| plain.3.0).min()?;
    let hopeless = least.saturating_add(demand.sized_keys() / 2);
    let hopeful = plain.iter().filter(|plain| plain.3.0 <= hopeless || plain.1 <= SMALLEST_GROUP);
    let grouped: Vec<(Split, f64, Bid)> = hopeful
        .map(|(split, least, levels, plain)| {
            let like = |groups| Some(levels.grouped(frame(split, *least, groups)?, &plain.1));
            let numbers = group_numbers(demand, *least);
            (*split, *least, numbers.filter_map(like).fold(*plain, lesser))
        })
        .collect();
    // Finer groups save at most a bit of each pointer.
    let least = grouped.iter().map(|grouped| grouped.2.0).min()?;
    let hopeless = least.saturating_add(demand.sized_keys() / 16);
    let mut bids: Vec<Bid> = Vec::new();
    for (split, least, best) in grouped.iter().filter(|grouped| grouped.2.0 <= hopeless) {
        let Some(levels) = Levels::new(demand, best.1) else { continue };
        let best = levels.even_shares_near(&best.1);
        let like = |groups| Some(levels.grouped(frame(split, *least, groups)?, &best.1));
        bids.push(best);
        bids.extend(finer_groups(demand, best.1.groups as f64).filter_map(like));
        let more = |buckets| {
            let levels = Levels::new(demand, frame(split, buckets, 1.0)?)?;
            Some(levels.even_shares_near(&best.1))
        };
        bids.extend(more_buckets(*least).filter_map(more));
    }
    bids.sort_by_key(|bid| bid.0);
    bids.dedup();
    bids.truncate(REFINED);
    let refined = bids.into_iter().filter_map(|bid| Some(Levels::new(demand, bid.1)?.refine(bid)));
    refined.min_by_key(|bid| bid.0).map(|bid| bid.1)
}

/// The layout with the lowest rate that takes at most `bits_per_key` bits per key; `None` if none
/// does.
///
/// Bits rise as the rate falls, apart from steps of a few thousandths where a pointer gains a bit.
/// So the rate can be enclosed: by secants, which start from one bit per key for every halving of
/// the rate, and by halving where few buckets make the steps coarse. Tested by `budgets`.
pub fn fit(demand: &Demand, bits_per_key: f64) -> Option<Layout> {
    let point = |layout: &Layout| {
        let excess = layout.bits_per_key(demand.keys) - bits_per_key;
        (libm::log(rate(layout, demand.sized_keys())), excess)
    };
    let mut best = optimise(demand, HIGHEST_RATE).filter(|layout| point(layout).1 <= 0.0)?;
    let mut last = point(&best);
    let mut low = libm::log(demand.sized_keys() as f64 / MAX_IDENTITIES);
    let mut high = last.0;
    // Near the most identities, rounding alone can make a frame fail.
    let mut refused = false;
    let mut slope = -core::f64::consts::LN_2;
    for round in 0..24 {
        if high - low <= FINEST {
            break;
        }
        let secant = last.0 - slope * last.1;
        let probe = if round < 8 && !refused { secant } else { 0.5 * (low + high) };
        let probe = probe.clamp(low + 0.5 * FINEST, high - 0.5 * FINEST);
        let Some(layout) = optimise(demand, libm::exp(probe)) else {
            low = probe;
            refused = true;
            continue;
        };
        refused = false;
        let (ln_rate, excess) = point(&layout);
        // Closer points show the steps and not the slope. The limits are the slopes of long and of
        // short chains.
        if libm::fabs(excess - last.1) > 0.02 {
            slope = ((probe - last.0) / (excess - last.1)).clamp(-4.0, -0.4);
        }
        // The rate asked for, because the rate found does not change where the longest chain is
        // the limit.
        last = (probe, excess);
        if excess <= 0.0 {
            high = ln_rate.min(probe);
            best = layout;
        } else {
            low = probe;
        }
    }
    Some(best)
}

/// The best levels for a fixed frame: replaces Z and J of `frame` and keeps the rest. `None` if
/// the frame makes no sense or has thousands of keys in a bucket. Tested by `fixed_frames`.
pub fn complete(demand: &Demand, frame: Layout) -> Option<Layout> {
    let whole = frame.groups > 0 && frame.buckets.checked_rem(frame.groups) == Some(0);
    if !(whole && frame.buckets > 0 && demand.overflow > 0.0) {
        return None;
    }
    let levels = Levels::new(demand, frame)?;
    Some(levels.refine(levels.even_shares()).1)
}

/// r, and the least B L for the rate.
type Split = (u32, f64);

/// The pairs of r and B L that can win.
fn splits(demand: &Demand, rate: f64) -> impl Iterator<Item = Split> {
    let keys = demand.sized_keys();
    let n = keys as f64;
    // The least U for the rate, from 1 - (1 - 1/U)^n = rate.
    let identities = -1.0 / libm::expm1(libm::log1p(-rate) / n);
    let cap = demand.max_lambda.min(MAX_LAMBDA);
    // The widest fingerprint for which the rate limits lambda, and not the cap. The next wider one
    // may still win by longer chains and fuller buckets, and the two below it by fewer bits for
    // each cell.
    let widest = libm::floor(libm::log2(cap * identities / n).min(MAX_FINGERPRINT.into())) as i64;
    let candidates = (widest - 2).max(1)..=(widest + 1).max(1);
    candidates.filter_map(move |r| {
        let fingerprint = u32::try_from(r).ok().filter(|r| *r <= MAX_FINGERPRINT)?;
        let unit = libm::ldexp(1.0, fingerprint as i32);
        let mut places = libm::ceil((identities / unit).max(n / cap)).max(1.0);
        // Rounding in `identities` may leave the rate slightly too high.
        if rate_of(places * unit, keys) > rate {
            places += 1.0;
        }
        (places * unit < MAX_IDENTITIES).then_some((fingerprint, places))
    })
}

/// Numbers of buckets above the least that can win. With few buckets, one or two more make each
/// index shorter. With thousands, a few in a thousand more can take a pool down to a power of two.
/// Larger tables reach the same by their groups.
fn more_buckets(least: f64) -> impl Iterator<Item = f64> {
    let step = libm::ceil(least / 500.0);
    (1..=4).take_while(move |_| step < 20.0).map(move |more| least + step * f64::from(more))
}

/// The S above 1 that are tried first.
fn group_numbers(demand: &Demand, buckets: f64) -> impl Iterator<Item = f64> {
    let most = demand.max_groups as f64;
    let sizes = core::iter::successors(Some(SMALLEST_GROUP), |size| Some(size * 1.5));
    let numbers =
        sizes.take_while(|size| *size <= LARGEST_GROUP).map(move |size| libm::ceil(buckets / size));
    numbers.filter(move |groups| *groups > 1.0 && *groups <= most)
}

/// The S near a good one, `around`, in steps that are small enough to fill a pool up to a power of
/// two.
fn finer_groups(demand: &Demand, around: f64) -> impl Iterator<Item = f64> {
    let most = demand.max_groups as f64;
    let numbers = (-8..=8).map(move |step| libm::round(around * libm::pow(1.025, f64::from(step))));
    numbers.filter(move |groups| *groups > 1.0 && *groups <= most && *groups != around)
}

/// A layout that has no levels yet; `None` if it would have too many identities.
fn frame(
    demand: &Demand,
    fingerprint: u32,
    places: f64,
    buckets: f64,
    groups: f64,
) -> Option<Layout> {
    let buckets = libm::ceil(buckets / groups) * groups;
    let frame = Layout {
        buckets: buckets as u64,
        locations: libm::ceil(places / buckets) as u32,
        fingerprint,
        extra: demand.extra,
        groups: groups as u64,
        ..Layout::default()
    };
    (frame.identities() < MAX_IDENTITIES).then_some(frame)
}
