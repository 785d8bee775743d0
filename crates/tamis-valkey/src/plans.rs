//! The layout of a layer, in less than a microsecond: the library's planner takes milliseconds,
//! and RESERVE runs on the server's only thread.
//!
//! The rate of a `blocked` filter depends on its hashes and on the keys of a block, and on next to
//! nothing else. So a table has the keys of a block for some rates; the rate that is asked for is
//! rounded down to one of them. `bloom` has a formula. A test compares both with the library's
//! models.

use tamis::{AnyParams, Kind};

/// A rate that no layout reaches: that of the digests alone, which have 64 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unreachable {
    pub(crate) nearest: f64,
}

/// Below this rate a plain filter takes a tenth less memory than blocks do.
const LEAST_BLOCKED: f64 = 0.001;
/// Rates of the table: 2^(-i / STEPS).
const STEPS: f64 = 4.0;
/// Bits of a block.
const BLOCK: u64 = 512;

/// Hashes, and hundredths of keys of a block of 512 bits.
#[rustfmt::skip]
const BLOCKS: [(u64, u64); 41] = [
    (1, 59908), (1, 59908), (1, 59908), (1, 46157), (1, 35435), (1, 27887),
    (2, 23047), (2, 20108), (2, 17682), (2, 15642), (3, 13973), (3, 12787),
    (3, 11741), (3, 10808), (3, 9973), (4, 9335), (4, 8753), (4, 8220),
    (4, 7730), (5, 7318), (5, 6948), (5, 6604), (5, 6281), (6, 5990),
    (6, 5734), (6, 5492), (6, 5264), (6, 5048), (7, 4858), (7, 4679),
    (7, 4509), (7, 4347), (8, 4194), (8, 4056), (8, 3925), (8, 3798),
    (8, 3676), (9, 3563), (9, 3457), (9, 3355), (9, 3258),
];

/// The layout for a rate.
pub(crate) fn layout(rate: f64, capacity: u64) -> Result<AnyParams, Unreachable> {
    // Half of what is asked for is left to the bits.
    let nearest = 2.0 * capacity as f64 / 2f64.powi(64);
    if rate < nearest {
        return Err(Unreachable { nearest });
    }
    let unreachable = |_| Unreachable { nearest };
    if rate >= LEAST_BLOCKED {
        let step = (-rate.log2() * STEPS).ceil().max(0.0) as usize;
        let (hashes, keys) = BLOCKS[step.min(BLOCKS.len() - 1)];
        let blocks = (u128::from(capacity) * 100).div_ceil(keys.into()).max(1) as u64;
        return AnyParams::from_values(Kind::Blocked, &[blocks, BLOCK, hashes])
            .map_err(unreachable);
    }
    let rate = rate - capacity as f64 / 2f64.powi(64);
    let hashes = (-rate.log2()).round().clamp(1.0, 64.0);
    // Of the bits a share of 1 - e^(-k n / m) is set, and k of them must be.
    let set = rate.powf(1.0 / hashes);
    let bits = -hashes * capacity as f64 / (-set).ln_1p();
    let bits = (bits * 1.000_1).ceil() as u64 + 8 * hashes as u64;
    AnyParams::from_values(Kind::Bloom, &[bits, hashes as u64]).map_err(unreachable)
}

/// The kinds of large layers that this module makes.
pub(crate) const KINDS: [Kind; 2] = [Kind::Bloom, Kind::Blocked];

/// The words of a filter with these params, of one of [`KINDS`].
pub(crate) fn words(params: &AnyParams) -> u64 {
    let values = params.named();
    let value = |wanted: &str| {
        values.iter().find(|(name, _)| *name == wanted).map_or(1, |&(_, value)| value)
    };
    match params.kind() {
        Kind::Bloom => value("bits").div_ceil(64),
        _ => value("blocks").saturating_mul(value("block")) / 64,
    }
}

/// The bytes of memory that it takes: whole cache lines.
pub(crate) fn bytes(params: &AnyParams) -> u64 {
    words(params).div_ceil(8).saturating_mul(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every layout meets its rate, and takes at most a little more than the library's plan.
    #[test]
    fn layouts_meet_their_rates() {
        for capacity in [1, 2, 3, 10, 100, 1_000, 12_345, 1 << 20, 1 << 30] {
            for rate in
                [0.25, 0.2, 0.1, 0.05, 0.01, 0.005, 0.0017, 0.001, 9e-4, 1e-4, 1e-6, 1e-9, 1e-12]
            {
                let Ok(params) = layout(rate, capacity) else {
                    assert!((capacity as f64) > rate * 2f64.powi(62), "{rate} {capacity}");
                    continue;
                };
                let predicted = params.predict(capacity);
                assert!(predicted.rate <= rate, "{rate} {capacity} {params:?} {}", predicted.rate);
                let ideal = -rate.log2() * std::f64::consts::LOG2_E;
                let most = ideal * 1.45 + 1.2 + 1100.0 / capacity as f64;
                assert!(
                    predicted.bits_per_key <= most,
                    "{rate} {capacity} {} {most}",
                    predicted.bits_per_key
                );
            }
        }
    }
}
