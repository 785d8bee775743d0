//! The bucket of paper 000 in one cache line, with a threshold.
//!
//! ```text
//! bit 0                                                                                   bit 511
//! | low bytes of Z fingerprints | their high bits | spare | IH (Z) | I0 (L) | threshold (7 bits) |
//! ```
//!
//! Set bit number t of I = I0 . IH owns cell t, as in [`rank_indexed`](crate::rank_indexed).
//! Locations at or above the threshold are in the back table. All low bytes are compared at once;
//! for most absent keys none is equal, and the question ends there. Cells of a chain are in no
//! order: a new cell is appended, and the last cell replaces one that is removed.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use super::backend::Backend;

/// A block.
pub(super) type Block = [u64; 8];

/// Bits of the threshold, which is at most 64. Frozen.
const THRESHOLD_BITS: u32 = 7;
/// IH, I0 and the threshold are in the last two words. Frozen.
const TAIL_BITS: u32 = 128;
/// The first bit of the threshold in these words.
const THRESHOLD_AT: u32 = TAIL_BITS - THRESHOLD_BITS;

/// How a block is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// Z.
    pub(super) cells: u32,
    /// L.
    pub(super) locations: u32,
    /// Bits of a fingerprint beyond its low byte.
    pub(super) high: u32,
    /// I0 and IH.
    base: Field,
    more: Field,
    /// The bits of the last two words that belong to cells.
    kept: [u64; 2],
    /// A bit for each cell.
    all: u64,
}

/// Up to 64 bits of the last two words that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    masks: [u64; 2],
    /// Where they begin in their word. Rotated by this, the bits of both words join.
    turn: u32,
}

impl Field {
    const fn new(at: u32, len: u32) -> Self {
        let mask = (u128::MAX >> (TAIL_BITS - len)) << at;
        Self { masks: [mask as u64, (mask >> 64) as u64], turn: at % 64 }
    }

    #[inline(always)]
    fn get(&self, tail: [u64; 2]) -> u64 {
        (tail[0] & self.masks[0] | tail[1] & self.masks[1]).rotate_right(self.turn)
    }

    /// The two words with this value in the field, and zeros elsewhere.
    #[inline(always)]
    fn put(&self, value: u64) -> [u64; 2] {
        let turned = value.rotate_left(self.turn);
        self.masks.map(|mask| turned & mask)
    }
}

impl Shape {
    /// `cells` and `locations` must be 1 to 64, and fit into a block.
    pub(super) const fn new(cells: u32, locations: u32, high: u32) -> Self {
        let base_at = THRESHOLD_AT - locations;
        let more_at = base_at - cells;
        Self {
            cells,
            locations,
            high,
            base: Field::new(base_at, locations),
            more: Field::new(more_at, cells),
            kept: match more_at {
                0 => [0, 0],
                1..=64 => [u64::MAX >> (64 - more_at), 0],
                _ => [u64::MAX, u64::MAX >> (128 - more_at)],
            },
            all: u64::MAX >> (64 - cells),
        }
    }

    /// The first of the high bits of a cell.
    #[inline(always)]
    fn high_at(&self, cell: u32) -> u32 {
        self.cells * 8 + cell * self.high
    }

    /// The most locations of a block with `cells` cells; `None` if the cells do not fit.
    pub(super) fn most_locations(cells: u32, high: u32) -> Option<u32> {
        let of_block = 512_u32.checked_sub(cells * (9 + high) + THRESHOLD_BITS)?;
        let of_tail = THRESHOLD_AT.checked_sub(cells)?;
        Some(of_block.min(of_tail).min(64)).filter(|&most| most > 0 && cells <= 64)
    }
}

/// Locations from this one on are in the back table.
#[inline(always)]
pub(super) fn threshold(block: &Block) -> u32 {
    (block[7] >> (64 - THRESHOLD_BITS)) as u32
}

/// I0, IH and the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) base: u64,
    pub(super) more: u64,
    pub(super) threshold: u32,
}

impl Index {
    #[inline(always)]
    pub(super) fn of(block: &Block, shape: &Shape) -> Self {
        let tail = [block[6], block[7]];
        Self { base: shape.base.get(tail), more: shape.more.get(tail), threshold: threshold(block) }
    }

    #[inline(always)]
    pub(super) fn put(self, block: &mut Block, shape: &Shape) {
        let (base, more) = (shape.base.put(self.base), shape.more.put(self.more));
        let threshold = u64::from(self.threshold) << (64 - THRESHOLD_BITS);
        // Cells may reach into both words.
        block[6] = block[6] & shape.kept[0] | base[0] | more[0];
        block[7] = block[7] & shape.kept[1] | base[1] | more[1] | threshold;
    }

    /// Cells in use.
    #[inline(always)]
    pub(super) fn len(self) -> u32 {
        self.base.count_ones() + self.more.count_ones()
    }

    /// The first cell of the chain at a location.
    #[inline(always)]
    fn first(self, location: u32) -> Option<u32> {
        let below = self.base & ((1 << location) - 1);
        (self.base >> location & 1 == 1).then(|| below.count_ones())
    }

    /// The cell after this one in its chain. (In unchecked bytes it may be beyond 64: the end.)
    #[inline(always)]
    fn next(self, cell: u32) -> Option<u32> {
        (self.more >> cell & 1 == 1).then(|| self.after(cell)).filter(|&next| next < 64)
    }

    /// The cell that bit number `cell` of IH owns, or would own if it were set.
    #[inline(always)]
    fn after(self, cell: u32) -> u32 {
        self.base.count_ones() + (self.more & ((1 << cell) - 1)).count_ones()
    }

    /// The cells of the chain at a location.
    #[inline(always)]
    fn chain(self, location: u32) -> impl Iterator<Item = u32> {
        core::iter::successors(self.first(location), move |&cell| self.next(cell))
    }

    /// The end of the chain at a location.
    #[inline(always)]
    fn end(self, location: u32) -> Option<End> {
        self.chain(location).fold(None, |end: Option<End>, last| {
            let (base, more) = end.map_or((1 << location, 0), |before| (0, 1 << before.last));
            Some(End { last, base, more })
        })
    }

    /// Opens IH at a cell, which is the end of its chain.
    #[inline(always)]
    fn open(&mut self, cell: u32) {
        let below = (1 << cell) - 1;
        self.more = self.more & below | (self.more & !below) << 1;
    }

    /// Closes IH at a cell.
    #[inline(always)]
    fn close(&mut self, cell: u32) {
        let below = (1 << cell) - 1;
        self.more = self.more & below | self.more >> 1 & !below;
    }
}

/// The fingerprint of a cell.
#[inline(always)]
fn print(block: &Block, shape: &Shape, cell: u32) -> u32 {
    let low = (block[cell as usize / 8] >> (cell % 8 * 8)) as u32 & 0xff;
    if shape.high == 0 { low } else { low | high(block, shape, cell) << 8 }
}

/// The bits of a fingerprint beyond its low byte, at most 16.
#[inline(always)]
fn high(block: &Block, shape: &Shape, cell: u32) -> u32 {
    let at = shape.high_at(cell);
    let (word, offset) = (at as usize / 64, at % 64);
    let (low, high) = (block[word % 8], block[(word + 1) % 8]);
    // (One shift of both words together would be slow.)
    (low >> offset | high << 1 << (63 - offset)) as u32 & ((1 << shape.high) - 1)
}

#[inline(always)]
fn set_print(block: &mut Block, shape: &Shape, cell: u32, print: u32) {
    let (word, offset) = (cell as usize / 8, cell % 8 * 8);
    block[word] = block[word] & !(0xff << offset) | u64::from(print & 0xff) << offset;
    if shape.high > 0 {
        let at = u64::from(shape.high_at(cell));
        crate::bits::field::put(block, at, shape.high, u64::from(print >> 8));
    }
}

/// The last cell of a chain, and the bit of I0 or IH that owns it.
#[derive(Clone, Copy)]
struct End {
    last: u32,
    base: u64,
    more: u64,
}

/// `yes` or `no`, by a condition of 1 or 0 that cannot be predicted: never a branch.
#[inline(always)]
fn select(condition: u64, yes: u32, no: u32) -> u32 {
    core::hint::select_unpredictable(condition == 1, yes, no)
}

/// The first three cells of a chain, found without a branch. Where a chain ends cannot be
/// predicted, and a wrong prediction costs a wait for the line; few chains are longer.
#[derive(Clone, Copy)]
struct Start {
    /// Where the first, second and third cell are, or would be.
    cells: [u32; 3],
    /// Whether there is a first, second, third and fourth: 1 or 0.
    has: [u64; 4],
}

impl Start {
    #[inline(always)]
    fn of(index: Index, location: u32) -> Self {
        let first = (index.base & ((1 << location) - 1)).count_ones();
        // (Only unchecked bytes lead beyond the last cell.)
        let second = index.after(first) & 63;
        let third = index.after(second) & 63;
        let has_first = index.base >> location & 1;
        let has_second = index.more >> first & has_first;
        let has_third = index.more >> second & has_second;
        let has_fourth = index.more >> third & has_third;
        Self { cells: [first, second, third], has: [has_first, has_second, has_third, has_fourth] }
    }

    /// The last of the three.
    #[inline(always)]
    fn end(&self, location: u32) -> End {
        let ([first, second, third], [_, has_second, has_third, _]) = (self.cells, self.has);
        End {
            last: select(has_third, third, select(has_second, second, first)),
            base: (1 - has_second) << location,
            more: (has_second - has_third) << first | has_third << second,
        }
    }

    /// Whether `is_such` holds for one of the three, 1 or 0, and the first of these.
    #[inline(always)]
    fn among(&self, is_such: impl Fn(u32) -> u64) -> (u64, u32) {
        let ([first, second, third], [has_first, has_second, has_third, _]) =
            (self.cells, self.has);
        let is_first = is_such(first) & has_first;
        let is_second = is_such(second) & has_second;
        let is_third = is_such(third) & has_third;
        (is_first | is_second | is_third, select(is_first, first, select(is_second, second, third)))
    }
}

/// Whether the fingerprint is in the block; `None` if its location is in the back table.
#[inline(always)]
pub(super) fn find<B: Backend>(
    block: &Block,
    shape: &Shape,
    location: u32,
    wanted: u32,
) -> Option<bool> {
    let equal = B::equal(block, wanted as u8) & shape.all;
    if location >= threshold(block) {
        return None;
    }
    // Most questions for absent keys end here.
    if equal == 0 {
        return Some(false);
    }
    let index = Index::of(block, shape);
    let start = Start::of(index, location);
    let (is_like, cell) = start.among(|cell| B::is_equal(block, equal, cell, wanted as u8));
    let [.., has_fourth] = start.has;
    if shape.high == 0 {
        if is_like >= has_fourth {
            return Some(is_like == 1);
        }
    } else if is_like | has_fourth == 0 {
        return Some(false);
    } else if is_like == 1 && high(block, shape, cell) == wanted >> 8 {
        return Some(true);
    }
    Some(index.chain(location).any(|cell| is_same::<B>(block, shape, equal, cell, wanted)))
}

/// Whether a cell has this fingerprint, if `equal` says so of its low byte.
#[inline(always)]
fn is_same<B: Backend>(block: &Block, shape: &Shape, equal: u64, cell: u32, wanted: u32) -> bool {
    B::is_equal(block, equal, cell, wanted as u8) == 1
        && (shape.high == 0 || high(block, shape, cell) == wanted >> 8)
}

/// How often a fingerprint is in the block; `None` if its location is in the back table.
pub(super) fn count(block: &Block, shape: &Shape, location: u32, wanted: u32) -> Option<u64> {
    let same = chain(block, shape, location).filter(|&(_, print)| print == wanted);
    (location < threshold(block)).then(|| same.count() as u64)
}

/// The cells of a chain.
pub(super) fn chain(
    block: &Block,
    shape: &Shape,
    location: u32,
) -> impl Iterator<Item = (u32, u32)> {
    let cells = Index::of(block, shape).chain(location);
    cells.map(move |cell| (cell, print(block, shape, cell)))
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It is in the block; true if it was not in before.
    Here(bool),
    /// There is no room.
    Full,
    /// The location lives elsewhere.
    Elsewhere,
}

#[inline(always)]
pub(super) fn insert<B: Backend>(
    block: &mut Block,
    shape: &Shape,
    location: u32,
    new: u32,
) -> Inserted {
    let mut index = Index::of(block, shape);
    if location >= index.threshold {
        return Inserted::Elsewhere;
    }
    if index.len() >= shape.cells {
        return Inserted::Full;
    }
    let equal = B::equal(block, new as u8) & shape.all;
    let start = Start::of(index, location);
    let [begins, .., has_fourth] = start.has;
    let (is_like, _) = start.among(|cell| B::is_equal(block, equal, cell, new as u8));
    let (mut is_new, mut last) = (is_like == 0, start.end(location).last);
    if has_fourth == 1 || shape.high > 0 && is_like == 1 {
        is_new = true;
        for cell in index.chain(location) {
            is_new &= !is_same::<B>(block, shape, equal, cell, new);
            last = cell;
        }
    }
    let cell = select(begins, index.after(last), start.cells[0]);
    index.base |= 1 << location;
    index.more |= begins << last;
    index.open(cell);
    B::open(block, shape.cells, cell, new as u8);
    if shape.high > 0 {
        let (at, end) = (shape.high_at(cell), shape.high_at(shape.cells));
        B::open_field(block, end, at, shape.high, u64::from(new >> 8));
    }
    index.put(block, shape);
    Inserted::Here(is_new)
}

/// The result of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// It is gone.
    Here {
        /// Whether locations of the block are in the back table.
        spilled: bool,
    },
    /// It is nowhere.
    Nowhere,
    /// The location lives elsewhere.
    Elsewhere,
}

#[inline(always)]
pub(super) fn remove<B: Backend>(
    block: &mut Block,
    shape: &Shape,
    location: u32,
    old: u32,
) -> Removed {
    let equal = B::equal(block, old as u8) & shape.all;
    let index = Index::of(block, shape);
    if location >= index.threshold {
        return Removed::Elsewhere;
    }
    let start = Start::of(index, location);
    let [.., has_fourth] = start.has;
    let mut end = start.end(location);
    if has_fourth == 1 {
        end = index.end(location).unwrap_or(end);
    }
    let (is_like, cell) = start.among(|cell| B::is_equal(block, equal, cell, old as u8));
    let found = if is_like == 1 && (shape.high == 0 || high(block, shape, cell) == old >> 8) {
        Some(cell)
    } else {
        index.chain(location).find(|&cell| is_same::<B>(block, shape, equal, cell, old))
    };
    // Only in unchecked bytes does a chain leave the cells.
    let Some(found) = found.filter(|_| end.last < shape.cells) else { return Removed::Nowhere };
    // The last cell of the chain replaces the one that is removed.
    let moved = print(block, shape, end.last);
    close::<B>(block, shape, index, end, (found, moved));
    Removed::Here { spilled: index.threshold < shape.locations }
}

/// Puts a fingerprint into a cell, then closes the last cell of its chain.
#[inline(always)]
fn close<B: Backend>(
    block: &mut Block,
    shape: &Shape,
    mut index: Index,
    end: End,
    (found, moved): (u32, u32),
) {
    index.base &= !end.base;
    index.more &= !end.more;
    index.close(end.last);
    B::close(block, shape.cells, end.last, found, moved as u8);
    if shape.high > 0 {
        let [all, last, changed] = [shape.cells, end.last, found].map(|cell| shape.high_at(cell));
        B::close_field(block, all, last, shape.high, changed, u64::from(moved >> 8));
    }
    index.put(block, shape);
}

/// Removes the highest chain from the block and lowers the threshold to its location.
#[inline(always)]
pub(super) fn lower<B: Backend>(block: &mut Block, shape: &Shape) {
    let Some(location) = highest(block, shape) else { return };
    let mut index = Index::of(block, shape);
    while let Some(end) = index.end(location).filter(|end| end.last < shape.cells) {
        let kept = print(block, shape, end.last);
        close::<B>(block, shape, index, end, (end.last, kept));
        index = Index::of(block, shape);
    }
    Index { base: index.base & !(1 << location), threshold: location, ..index }.put(block, shape);
}

/// The highest location that has a chain.
pub(super) fn highest(block: &Block, shape: &Shape) -> Option<u32> {
    Index::of(block, shape).base.checked_ilog2()
}

pub(super) fn set_threshold(block: &mut Block, shape: &Shape, threshold: u32) {
    let index = Index::of(block, shape);
    Index { threshold, ..index }.put(block, shape);
}

/// An empty block.
pub(super) fn empty(shape: &Shape) -> Block {
    let mut block = [0; 8];
    set_threshold(&mut block, shape, shape.locations);
    block
}

/// Whether the block could have been made by these functions.
pub(super) fn is_valid(block: &Block, shape: &Shape) -> bool {
    let index = Index::of(block, shape);
    if index.threshold > shape.locations || index.len() > shape.cells {
        return false;
    }
    // Chains are below the threshold, and every cell belongs to one: then no bit is set beyond the
    // cells.
    let below = |bits: u64, limit: u32| limit >= 64 || bits >> limit == 0;
    let cells = (0..shape.locations).map(|at| chain(block, shape, at).count() as u32).sum::<u32>();
    if !below(index.base, index.threshold)
        || !below(index.more, index.len())
        || cells != index.len()
    {
        return false;
    }
    // Writing the same content anew must give the same bits, and no others.
    let mut copy = [0; 8];
    (0..index.len()).for_each(|cell| set_print(&mut copy, shape, cell, print(block, shape, cell)));
    index.put(&mut copy, shape);
    copy == *block
}
