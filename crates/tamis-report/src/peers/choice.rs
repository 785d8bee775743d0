//! Which filters peers should send, at which rate and how often, for the fewest bytes.
//!
//! A hit of another is lost if its filter does not show the page yet, if the one that is asked
//! (Squid asks one) has dropped it since its last filter, or if that one's filter claims it
//! wrongly. The first two happen for at most the pages that were replaced since the last filter:
//! see [`stale`]. With `peers` peers and the rate f, the third happens for at most (`peers` - 1) f
//! of all hits. These are upper bounds, because several peers may have a page. What the first two
//! leave of `max_lost` is the rate's: the longer the interval, the lower the rate.

use tamis::{Goal, Kind, Plan};

/// What peers need.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    /// Peers, each of which tells all others.
    pub peers: u64,
    /// Keys of each.
    pub keys: u64,
    /// The part of its keys that a peer replaces in `every` seconds.
    pub churn: f64,
    /// Seconds.
    pub every: u64,
    /// The part of the hits that may be lost.
    pub max_lost: f64,
}

/// A way to meet it.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Choice {
    /// The name of the kind.
    pub kind: &'static str,
    /// The rate of the filters.
    pub rate: f64,
    /// Seconds between two messages of a peer.
    pub every: u64,
    /// The part of the hits that is lost, at most.
    pub lost: f64,
    /// Whether a message is a delta, or a snapshot.
    pub is_delta: bool,
    /// Bytes of a message to one other.
    pub update_bytes: f64,
    /// Bytes of all peers to all others in an hour.
    pub bytes_an_hour: f64,
}

/// Kinds with the smallest deltas, and kinds with the smallest snapshots; `bloom` to compare with.
const KINDS: [Kind; 5] =
    [Kind::BlockedRank, Kind::RankIndexed, Kind::Ribbon, Kind::Compressed, Kind::Bloom];
/// Rates that are of no use, and rates that nobody needs.
const RATES: std::ops::RangeInclusive<f64> = 1e-9..=0.2;
/// Intervals are `every` times a power of two from 2^-10 to 2^10, a second at least.
const OCTAVES: std::ops::RangeInclusive<i32> = -10..=10;

/// The part of a peer's keys that its newest filter does not show, on average over the time
/// between two filters: `periods` times the time in which the part `churn` is replaced. Keys are
/// replaced at random, so after t such times (1 - `churn`)^t are left.
pub fn stale(churn: f64, periods: f64) -> f64 {
    let gone = -periods * libm::log1p(-churn.min(1.0 - 1e-9));
    if gone < 1e-9 { gone / 2.0 } else { 1.0 + libm::expm1(-gone) / gone }
}

/// All ways to meet a need, the one with the fewest bytes first; the best interval of each kind.
/// None if `max_lost` cannot be met.
pub fn choose(need: &Need) -> Vec<Choice> {
    let others = need.peers.saturating_sub(1).max(1) as f64;
    let mut best: Vec<Choice> = Vec::new();
    for kind in KINDS {
        let ways = OCTAVES.filter_map(|octave| {
            let periods = libm::exp2(octave.into());
            let every = (need.every as f64 * periods).round() as u64;
            let is_used = every > 0 && (octave == 0 || every != need.every);
            is_used.then(|| way(need, kind, every, others)).flatten()
        });
        best.extend(ways.min_by(|one, other| one.bytes_an_hour.total_cmp(&other.bytes_an_hour)));
    }
    best.sort_by(|one, other| one.bytes_an_hour.total_cmp(&other.bytes_an_hour));
    best
}

/// What a kind takes at an interval; `None` if too many hits are lost.
fn way(need: &Need, kind: Kind, every: u64, others: f64) -> Option<Choice> {
    let periods = every as f64 / need.every as f64;
    let replaced = 2.0 * stale(need.churn, periods);
    let rate = ((need.max_lost - replaced) / others).min(*RATES.end());
    if !RATES.contains(&rate) {
        return None;
    }
    let churn = -libm::expm1(periods * libm::log1p(-need.churn.min(1.0 - 1e-9)));
    let plan = Plan::of(kind, &Goal::rate(need.keys, rate).churn(churn)).ok()?;
    let snapshot = plan.traffic.snapshot.mean;
    let delta = plan.traffic.delta.map(|delta| delta.mean).filter(|&delta| delta < snapshot);
    let update_bytes = delta.unwrap_or(snapshot);
    let messages = need.peers as f64 * others * 3600.0 / every as f64;
    Some(Choice {
        kind: kind.name(),
        rate,
        every,
        lost: replaced + others * rate,
        is_delta: delta.is_some(),
        update_bytes,
        bytes_an_hour: update_bytes * messages,
    })
}
