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
use super::table::OWN_BITS;
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
/// Words of a block: one line or two, which are fetched together, or more. The larger, the fuller
/// they can be, and the more numbers of locations there are.
const WORDS: [u32; 5] =
    [LEAST_WORDS, 2 * LEAST_WORDS, 4 * LEAST_WORDS, 8 * LEAST_WORDS, 16 * LEAST_WORDS];
/// Tables of more keys have blocks of two lines at most: they may not be in the cache, where a
/// question that reads more of a block costs little.
const MOST_CACHED: u64 = 1 << 16;
/// No block has more locations for each of its words: half of its bits.
const MOST_LOCATIONS: u32 = 32;
/// Bits that a level behind takes beside those of its keys: its last block is half empty.
const LEVEL: f64 = OWN_BITS as f64 + 512.0;
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

/// Numbers of locations for blocks of `words` words: all that divide the number `all` of all
/// locations.
fn numbers(words: u32, all: u64) -> impl Iterator<Item = u32> {
    let twos = all.trailing_zeros();
    let odd = (all >> twos) as u32;
    let most = Shape::most_cells(words).min(MOST_LOCATIONS * words);
    let divisors = (1..=odd).step_by(2).filter(move |&divisor| odd.is_multiple_of(divisor));
    let powers = 0..=twos.min(most.ilog2());
    let numbers = divisors.flat_map(move |divisor| powers.clone().map(move |two| divisor << two));
    numbers.filter(move |&locations| locations <= most)
}

/// The layout of `keys` keys that takes the fewest bits, of those that have all identities of
/// `universe`, which must be the universe of a ladder.
pub(crate) fn layout(universe: u64, keys: u64) -> Result<BlockedRankParams, InvalidParam> {
    let no_ladder = InvalidParam { name: "universe", value: universe, expected: UNIVERSES };
    if !is_universe(universe) {
        return Err(no_ladder);
    }
    let widest = MAX_FINGERPRINT.min(universe.trailing_zeros());
    let most_words = if keys > MOST_CACHED { 2 * LEAST_WORDS } else { u32::MAX };
    let mut best: Option<((bool, f64), Level)> = None;
    for fingerprint in 1..=widest {
        let all = universe >> fingerprint;
        let ratio = all as f64 / keys.max(1) as f64;
        let is_coarse = ratio > MOST_RATIO && fingerprint < widest;
        if is_coarse || ratio < LEAST_RATIO && fingerprint > 1 {
            continue;
        }
        let words = WORDS.into_iter().filter(|&words| words <= most_words);
        for (words, locations) in
            words.flat_map(|words| numbers(words, all).map(move |locations| (words, locations)))
        {
            let block = 64 * words;
            let cells = (block - locations) / (fingerprint + 1);
            let cells = cells.min(Shape::most_cells(words));
            let blocks = all / u64::from(locations);
            let front = blocks as f64 * f64::from(block);
            // What is behind only adds to that.
            if best.is_some_and(|((is_full, least), _)| !is_full && front >= least) {
                continue;
            }
            let share = model::behind(keys as f64 / blocks as f64, locations, cells);
            let behind = share * keys as f64;
            let bits = front
                + if behind < BLOCKS_FROM {
                    behind * LISTED
                } else {
                    behind * (libm::log2(universe as f64 / behind) + BACK_OVERHEAD) + LEVEL
                };
            let cost = (share > MOST_BEHIND, bits);
            if best.is_none_or(|(least, _)| cost < least) {
                let level = Level { block, blocks, locations, cells, fingerprint, value: 0 };
                best = Some((cost, level));
            }
        }
    }
    let (_, level) = best.ok_or(no_ladder)?;
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

    /// A layout of the ladder takes little more than a plan with one line a block and a universe
    /// of its own, and less where its blocks are larger.
    #[test]
    fn layouts_take_little_more_than_a_plan() {
        // Keys from here on, and what is taken at most and on average.
        for (from, most, mean) in
            [(1_000, 1.03, 0.92), (8_000, 1.0, 0.93), (MOST_CACHED + 1, 1.14, 0.99)]
        {
            let mut ratios = alloc::vec::Vec::new();
            for odd in ODD_PARTS {
                for twos in [14, 18, 22, 31, 38] {
                    let universe = odd << twos;
                    // Rates from 1/8 to 1/500,000.
                    for step in 0..64 {
                        let keys = universe as f64 / 8.0 / libm::exp2(f64::from(step) / 4.0);
                        let keys = keys as u64;
                        if keys < from || keys >= 8 * from && from <= MOST_CACHED {
                            continue;
                        }
                        let params = layout(universe, keys).unwrap();
                        assert_eq!(params.universe(), universe);
                        let rate = keys as f64 / universe as f64;
                        let bits = BlockedRank::predict(&params, keys).bits_per_key;
                        let plan = BlockedRank::plan(&Goal::rate(keys, rate)).unwrap();
                        let plan = BlockedRank::predict(&plan, keys).bits_per_key;
                        ratios.push(bits / plan);
                    }
                }
            }
            let reached = ratios.iter().copied().fold(0.0, f64::max);
            let on_average = ratios.iter().sum::<f64>() / ratios.len() as f64;
            assert!(reached < most, "{from}: {reached}");
            assert!(on_average < mean, "{from}: {on_average}");
        }
    }
}
