//! Layouts of one universe: for tables of many sizes that hold the same identities.
//!
//! A table of U identities has B blocks of L locations, with fingerprints of w bits: U = B L 2^w.
//! Growing doubles B, and a table that has just grown is half empty. If U is a power of two times
//! an odd number with many divisors, L can be any of a dozen numbers as well, and for every number
//! of keys there is a layout that takes little more than the least memory.

use super::model;
use super::params::{BlockedRankParams, Level, MAX_FINGERPRINT, MAX_UNIVERSE};
use super::plan::{BACK_OVERHEAD, BLOCKS_FROM, MOST_BEHIND, MOST_RATIO};
use super::shape::{LEAST_WORDS, Shape};
use crate::entry::Entry;
use crate::spec::InvalidParam;

/// The odd parts of the universes of a ladder: each is at most an eighth above the one before,
/// when both are scaled by powers of two. Frozen.
const ODD_PARTS: [u64; 8] = [135, 147, 315, 175, 189, 105, 225, 245];
/// The least power of two in a universe: smaller ones would save no block. Frozen.
const LEAST_TWOS: u32 = 10;
/// What a universe is, for errors.
pub(crate) const UNIVERSES: &str =
    "135, 147, 315, 175, 189, 105, 225 or 245 times 2^10 or more, up to 2^61";
/// No layout has fewer locations for each key, unless its fingerprints have one bit.
const LEAST_RATIO: f64 = 0.3;
/// Words of a block: one line or two. Two can be fuller, and are fetched together.
const WORDS: [u32; 2] = [LEAST_WORDS, 2 * LEAST_WORDS];
/// Bits of a listed key, in a list that may be half empty.
const LISTED: f64 = 2.0 * 8.0 * size_of::<Entry>() as f64;

/// The smallest universe of a ladder with `identities` identities or more; `None` if that is more
/// than a filter can have.
pub(crate) fn universe(identities: f64) -> Option<u64> {
    let universes = ODD_PARTS.iter().flat_map(|odd| (LEAST_TWOS..54).map(move |twos| odd << twos));
    universes.filter(|&universe| is_universe(universe) && universe as f64 >= identities).min()
}

/// Whether this is the universe of a ladder.
pub(crate) fn is_universe(universe: u64) -> bool {
    let twos = universe.trailing_zeros();
    (LEAST_TWOS..64).contains(&twos)
        && universe <= MAX_UNIVERSE
        && ODD_PARTS.contains(&(universe >> twos))
}

/// Blocks of `words` words with each number of locations that divides all of them, `all`.
fn cuts(words: u32, all: u64) -> impl Iterator<Item = (u32, u32)> {
    let numbers = (1..=Shape::most_cells(words)).rev();
    let divides = move |&locations: &u32| all.is_multiple_of(locations.into());
    numbers.filter(divides).map(move |locations| (words, locations))
}

/// The layout of `keys` keys that takes the fewest bits, of those that have all identities of
/// `universe`, which must be the universe of a ladder.
pub(crate) fn layout(universe: u64, keys: u64) -> Result<BlockedRankParams, InvalidParam> {
    let widest = MAX_FINGERPRINT.min(universe.trailing_zeros());
    let mut best: Option<((bool, f64), Level)> = None;
    for fingerprint in 1..=widest {
        let all = universe >> fingerprint;
        let ratio = all as f64 / keys.max(1) as f64;
        let is_coarse = ratio > MOST_RATIO && fingerprint < widest;
        if is_coarse || ratio < LEAST_RATIO && fingerprint > 1 {
            continue;
        }
        for (words, locations) in WORDS.into_iter().flat_map(|words| cuts(words, all)) {
            let block = 64 * words;
            let cells = (block - locations) / (fingerprint + 1);
            let cells = cells.min(Shape::most_cells(words));
            let blocks = all / u64::from(locations);
            let share = model::behind(keys as f64 / blocks as f64, locations, cells);
            let behind = share * keys as f64;
            let each = if behind < BLOCKS_FROM {
                LISTED
            } else {
                libm::log2(universe as f64 / behind) + BACK_OVERHEAD
            };
            let bits = blocks as f64 * f64::from(block) + behind * each;
            let cost = (share > MOST_BEHIND, bits);
            if best.is_none_or(|(least, _)| cost < least) {
                let level = Level { block, blocks, locations, cells, fingerprint, value: 0 };
                best = Some((cost, level));
            }
        }
    }
    let no_ladder = InvalidParam { name: "universe", value: universe, expected: UNIVERSES };
    let (_, level) = best.filter(|_| is_universe(universe)).ok_or(no_ladder)?;
    BlockedRankParams::of(level, keys.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocked_rank::BlockedRank;
    use crate::spec::Goal;
    use crate::stored::Stored;

    #[test]
    fn universes_are_near_what_is_asked() {
        for power in 17..60 {
            for part in 0..40 {
                let asked = libm::exp2(f64::from(power) + f64::from(part) / 40.0);
                let universe = universe(asked).unwrap();
                assert!(is_universe(universe) && universe as f64 >= asked);
                assert!(power < 18 || universe as f64 <= 1.126 * asked, "{asked} {universe}");
            }
        }
        assert_eq!(universe(3e18), None);
        assert_eq!(universe(0.0), Some(105 << LEAST_TWOS));
        for not_one in [0, 1, 1 << 20, 105, 105 << 9, 33 << 20, u64::MAX, 1 << 63] {
            assert!(!is_universe(not_one), "{not_one}");
            layout(not_one, 10).unwrap_err();
        }
    }

    /// A layout of the ladder takes little more than one with a universe of its own.
    #[test]
    fn layouts_take_little_more_than_the_least_memory() {
        let mut most: f64 = 0.0;
        for odd in ODD_PARTS {
            for twos in [22, 31, 38] {
                let universe = odd << twos;
                // Rates from 1/8 to 1/500,000.
                for step in 0..64 {
                    let keys = universe as f64 / 8.0 / libm::exp2(f64::from(step) / 4.0);
                    if keys < 20_000.0 {
                        break;
                    }
                    let keys = keys as u64;
                    let params = layout(universe, keys).unwrap();
                    assert_eq!(params.universe(), universe);
                    let rate = keys as f64 / universe as f64;
                    let bits = BlockedRank::predict(&params, keys).bits_per_key;
                    let least = BlockedRank::plan(&Goal::rate(keys, rate)).unwrap();
                    let least = BlockedRank::predict(&least, keys).bits_per_key;
                    most = most.max(bits / least);
                }
            }
        }
        // (1.131 is reached.)
        assert!(most < 1.14, "{most}");
    }
}
