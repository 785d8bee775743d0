//! The paper's own way to answer without the array: the sorted list of its ones.
//!
//! Printed (section III-A): for one hash function a list of n log2(92 n) bits takes the place of
//! 92 n bits, and interpolation search finds an index in O(log log n) steps on average. Here n
//! counts keys; ours holds the distinct positions, x = m (1 - p) of them, at ceil(log2 m) bits
//! each. It works for any sorted positions, but the mean number of steps holds only for those that
//! hashing has spread. It is here for comparison:
//! [`EliasFano`](tamis::internals::compressed::elias_fano::EliasFano) takes fewer bits and fewer
//! steps. Tested by `list_forms`.

use tamis::Invalid;
use tamis::internals::bits::{Line, MAX_FIELD_WIDTH, Packed, Words};
use tamis::internals::compressed::elias_fano::{PositionsError, visit};

/// After this many probes the search goes on by halving. Positions that hashing has spread rarely
/// need more, and for others each probe might gain only one place.
const INTERPOLATIONS: u32 = 8;

/// Distinct positions below a bound, in a sorted list.
///
/// ```text
/// positions 3 4 13 of 16     list  0011 0100 1101
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedList {
    universe: u64,
    positions: Packed,
}

/// ceil(log2 m), and at least one bit for a field.
fn width(universe: u64) -> Result<u32, Invalid> {
    let width = u64::BITS - universe.saturating_sub(1).leading_zeros();
    if width > MAX_FIELD_WIDTH {
        return Err(Invalid("a list holds positions below 2^57"));
    }
    Ok(width.max(1))
}

impl SortedList {
    /// The list of `count` positions, which must come in rising order, all different and below
    /// `universe`; at most 2^57.
    pub fn new(
        universe: u64,
        count: u64,
        positions: impl IntoIterator<Item = u64>,
    ) -> Result<Self, PositionsError> {
        let width = width(universe)?;
        if count > universe {
            return Err(Invalid("there are more positions than the universe has").into());
        }
        let mut list = Packed::zeroed(count, width)?;
        visit(universe, count, positions, |index, position| list.set(index, position))?;
        Ok(Self { universe, positions: list })
    }

    /// The list in these [`words`](Self::words). Everything is checked.
    pub fn from_words(universe: u64, count: u64, words: Words) -> Result<Self, PositionsError> {
        let positions = Packed::from_words(words, count, width(universe)?)
            .ok_or(Invalid("the list has the wrong length or stray bits"))?;
        visit(universe, count, positions.iter(), |_, _| ())?;
        Ok(Self { universe, positions })
    }

    /// Whether the position is in the list.
    pub fn contains(&self, position: u64) -> bool {
        self.probe(position).0
    }

    /// Whether the position is in the list, and how many fields were read: at most 9 plus the
    /// logarithm of their number to base 2.
    pub fn probe(&self, position: u64) -> (bool, u32) {
        // Only fields `first..end` can hold the position; their values are in `low..high`.
        let (mut first, mut end) = (0, self.positions.len());
        let (mut low, mut high) = (0, self.universe);
        let mut probes = 0;
        while first < end && position < high {
            let middle = if probes < INTERPOLATIONS {
                let share = (position - low) as f64 / (high - low) as f64;
                (first + (share * (end - first) as f64) as u64).min(end - 1)
            } else {
                first + (end - first) / 2
            };
            let found = self.positions.get(middle);
            probes += 1;
            if found == position {
                return (true, probes);
            }
            // The neighbour towards the position is in the same word or the next, and often
            // decides.
            if found < position {
                first = middle + 1;
                low = found + 1;
                if first < end {
                    let above = self.positions.get(first);
                    if above >= position {
                        return (above == position, probes);
                    }
                    first += 1;
                    low = above + 1;
                }
            } else {
                end = middle;
                high = found;
                if first < end {
                    let below = self.positions.get(end - 1);
                    if below <= position {
                        return (below == position, probes);
                    }
                    end -= 1;
                    high = below;
                }
            }
        }
        (false, probes)
    }

    /// All positions in rising order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.positions.iter()
    }

    /// How many positions there are.
    pub fn len(&self) -> u64 {
        self.positions.len()
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// All positions are below this.
    pub fn universe(&self) -> u64 {
        self.universe
    }

    /// The packed list.
    pub fn words(&self) -> &Words {
        self.positions.words()
    }

    /// Bits of heap memory held.
    pub fn footprint_bits(&self) -> u64 {
        self.words().footprint()
    }

    /// What [`footprint_bits`](Self::footprint_bits) will be; `None` if no such list can be built.
    pub fn planned_bits(universe: u64, count: u64) -> Option<u64> {
        let width = width(universe).ok().filter(|_| count <= universe)?;
        let bits = count.checked_mul(width.into())?;
        bits.checked_next_multiple_of(Line::BITS)
    }
}
