//! The least rate for a given number of bytes on the wire: the question of paper 004, asked of
//! every kind.
//!
//! Plain and counting filters have the paper's own answer, the shape of
//! [`optimise::least_rate`](crate::compressed::optimise::least_rate): fewer functions in more
//! memory make a better message. Messages of the other kinds grow as their rate falls, so the rate
//! is found by narrowing it down. In either case the bytes that [`Traffic`] predicts decide, with
//! the header, the coder and the margin.

use super::Plan;
use super::choose::MOST_MEMORY;
use crate::any::AnyParams;
use crate::bloom::{BloomParams, CountingParams, MAX_POSITIONS};
use crate::compressed::optimise::{Demand, Margin, least_rate};
use crate::math::solve::first_true;
use crate::spec::{Goal, Kind, Limited, PlanError, Size};
use crate::traffic::model::Message;

/// The margin in standard deviations if none is given: that of
/// [`Bytes::most`](crate::Bytes::most).
const DEVIATIONS: u32 = 5;
/// Rates 2^-x that are tried: from this x on, up to this one.
const LEAST: f64 = 0.02;
const MOST: f64 = 62.0;
/// How near to the best x the search comes: a rate within 0.1%.
const NEAR: f64 = 0.001;

/// The layout of this kind with the least rate whose messages keep within these bytes.
pub(crate) fn plan(
    kind: Kind,
    goal: &Goal,
    bytes: u64,
    margin: Option<f64>,
) -> Result<AnyParams, PlanError> {
    goal.check()?;
    let sent = Sent { goal, bytes, margin };
    let usual = sent.narrowed(kind)?;
    let rate = |params: &AnyParams| params.predict(goal.keys).rate;
    Ok(sent.optimised(usual).filter(|better| rate(better) < rate(&usual)).unwrap_or(usual))
}

/// A goal and its limit.
struct Sent<'a> {
    goal: &'a Goal,
    bytes: u64,
    margin: Option<f64>,
}

impl Sent<'_> {
    /// The bytes that a message needs: the mean, and the margin for sizes above it.
    fn needed(&self, params: AnyParams) -> f64 {
        let traffic = Plan::new(params, self.goal).traffic;
        let sent = traffic.delta.unwrap_or(traffic.snapshot);
        self.margin.map_or(sent.most(), |margin| libm::ceil(sent.mean / (1.0 - margin)))
    }

    /// The paper's shape, for kinds that have one, if no params are fixed; `usual` is the layout
    /// with the least memory.
    fn optimised(&self, usual: AnyParams) -> Option<AnyParams> {
        let (goal, kind) = (self.goal, usual.kind());
        if !goal.fixed.is_empty() {
            return None;
        }
        let (message, width) = match (kind, goal.churn) {
            (Kind::Bloom, None) => (Message::Snapshot, 1),
            (Kind::Bloom, Some(changed)) => (Message::Delta { changed }, 1),
            (Kind::Counting, None) => (Message::Counters, CountingParams::DEFAULT_WIDTH),
            _ => return None,
        };
        let most = MOST_MEMORY * usual.predict(goal.keys).bits_per_key;
        let held = goal.at_most.bits_per_key.unwrap_or(most) * goal.sized_keys() as f64;
        let margin = match self.margin {
            Some(_) => Margin::Share(1.0),
            None => Margin::Deviations(DEVIATIONS),
        };
        let most_positions = (held / f64::from(width)).min(MAX_POSITIONS as f64) as u64;
        let demand = Demand { margin, most_positions, ..Demand::new(goal.keys, message) };
        let shape = |bits| {
            let shape = least_rate(&demand, bits)?;
            let params = match kind {
                Kind::Bloom => {
                    BloomParams::new(shape.positions, shape.hashes).map(AnyParams::Bloom)
                }
                _ => CountingParams::new(shape.positions, shape.hashes, width)
                    .map(AnyParams::Counting),
            };
            params.ok()
        };
        // How many bits the header and the coder leave for the array itself.
        let over = |bits| shape(bits).is_some_and(|params| self.needed(params) > self.bytes as f64);
        let most = self.bytes.saturating_mul(8);
        match first_true(0, most, over) {
            Some(beyond) => shape(beyond.checked_sub(1)?),
            None => shape(most),
        }
    }

    /// The least rate of the kind, between one that fits and one that does not.
    fn narrowed(&self, kind: Kind) -> Result<AnyParams, PlanError> {
        let at = |x: f64| {
            let goal = Goal { size: Size::Rate(libm::exp2(-x)), ..self.goal.clone() };
            let params = AnyParams::least(kind, &goal)?;
            Ok::<_, PlanError>((params, self.needed(params)))
        };
        let asked = self.bytes as f64;
        let (mut best, mut below) = at(LEAST)?;
        if below > asked {
            let limited = match self.goal.churn {
                Some(_) => Limited::Delta,
                None => Limited::Snapshot,
            };
            let (nearest, kind) = (below, kind.name());
            return Err(PlanError::Limit { limited, asked, nearest, kind, beside: "" });
        }
        // The bytes are nearly linear in x, so the next x is interpolated; the middle is tried
        // only if that does not help.
        let (mut low, mut high, mut above): (f64, f64, Option<f64>) = (LEAST, MOST, None);
        let mut by_halves = false;
        while high - low > NEAR {
            let share = match above {
                Some(above) if !by_halves => ((asked - below) / (above - below)).clamp(0.02, 0.98),
                _ => 0.5,
            };
            let x = low + share * (high - low);
            let before = high - low;
            match at(x) {
                Ok((params, needed)) if needed <= asked => {
                    (best, below, low) = (params, needed, x);
                }
                Ok((_, needed)) => (above, high) = (Some(needed), x),
                Err(_) => (above, high) = (None, x),
            }
            by_halves = high - low > 0.5 * before;
        }
        Ok(best)
    }
}
