//! Bits per key against rate, for all kinds that meet a goal.

use std::sync::atomic::{AtomicU64, Ordering};

use tamis::{Goal, Kind, Size, choose};

use crate::plot::{Axis, Plot, Series};
use crate::show;
use crate::trials::in_parallel;

/// Rates from 50% down to 1e-8, two to a decade.
const RATES: u64 = 16;

fn rate(number: u64) -> f64 {
    if number == 0 { 0.5 } else { 10_f64.powf(-(number as f64) / 2.0) }
}

/// Where a kind takes more bits per key than this, nothing is drawn.
const MOST_BITS: f64 = 64.0;

/// The bits per key of `kinds` at the rate of `goal` and at others, and the bound log2(1/rate).
/// A kind has no line where it does not meet the goal, or takes more than 64 bits per key. Calls
/// `progress` with the share that is done.
pub fn bits_against_rate(goal: &Goal, kinds: &[Kind], progress: &(impl Fn(f64) + Sync)) -> Plot {
    let done = AtomicU64::new(0);
    let mut rows = in_parallel(RATES + 1, |number| {
        let goal = goal.clone().size(Size::Rate(rate(number)));
        let plans = choose(&goal).unwrap_or_default();
        let bits = |kind: Kind| {
            let plan = plans.iter().find(|plan| plan.params.kind() == kind);
            let bits = plan.map(|plan| plan.predicted.bits_per_key);
            bits.filter(|&bits| bits <= MOST_BITS).unwrap_or(f64::NAN)
        };
        progress(done.fetch_add(1, Ordering::Relaxed) as f64 / RATES as f64);
        (number, Kind::ALL.iter().copied().map(bits).collect::<Vec<_>>())
    });
    rows.sort_by_key(|&(number, _)| number);
    let bound = rows.iter().map(|&(number, _)| (rate(number), -rate(number).log2()));
    let title = format!("Bits per key against rate, {} keys", show::count(goal.keys));
    let mut plot = Plot::new(title, Axis::log("rate"), Axis::linear("bits per key, all memory"))
        .with(Series::line("information bound", bound).coloured(6).dashed(2));
    for (place, kind) in Kind::ALL.iter().copied().enumerate() {
        if !kinds.contains(&kind) {
            continue;
        }
        let points: Vec<(f64, f64)> =
            rows.iter().map(|(number, bits)| (rate(*number), bits[place])).collect();
        if points.iter().any(|(_, bits)| bits.is_finite()) {
            plot = plot.with(Series::line(kind.name(), points));
        }
    }
    plot
}
