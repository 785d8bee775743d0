//! The paper: chains of fingerprints in one bucket, found by counting bits.
//!
//! A bucket has L chain locations. Its base index I0 has one bit a location: is there a chain? Its
//! cells are numbered from 0, and the higher index IH has one bit a cell: does the chain go on
//! after it? Join both to I = I0 . IH: **set bit number t of I owns cell t**. So the cell of a set
//! bit is the number of set bits before it, and the levels of a chain need not be told apart. (The
//! paper walks level by level; the sizes of its levels telescope to this one rule.)
//!
//! ```text
//! I0      0 1 0 1 1 0 ...      chains at locations 1, 3, 4
//! IH      0 1 0 1 0            after cells 1 and 3 the chain goes on
//! cells   a c e f g            location 1: a    3: c, f, g    4: e
//! ```
//!
//! Cell 1 (c) is owned by I0[3]; IH[1] is set bit number 3 of I, so its chain goes on in cell 3
//! (f); IH[3] is set bit number 4, so it goes on in cell 4 (g); IH[4] is not set. A new cell at
//! the end of a chain sets the bit that ended the walk, and opens a gap in IH and in the cells at
//! its own number; removing closes one. Chains are kept in order, so that equal contents look
//! alike whatever their history.

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    /// The fingerprint.
    pub(crate) print: u64,
    /// Counter or value; 0 where there is neither.
    pub(crate) extra: u64,
}

/// The memory of one bucket, to read.
pub(crate) trait Bucket {
    /// I0.
    fn base(&self) -> u64;

    /// IH at a cell that is in use: whether its chain goes on after it.
    fn goes_on(&self, cell: u32) -> bool;

    /// How many of the cells before this one have chains that go on after them.
    fn go_on_below(&self, cell: u32) -> u32;

    /// A cell that is in use.
    fn cell(&self, cell: u32) -> Cell;
}

/// The memory of one bucket, to write.
pub(crate) trait BucketMut: Bucket {
    /// Writes I0.
    fn set_base(&mut self, base: u64);

    /// Writes IH at a cell that is in use.
    fn set_goes_on(&mut self, cell: u32, goes_on: bool);

    /// Writes a cell that is in use.
    fn set_cell(&mut self, cell: u32, content: Cell);

    /// Moves this cell and all behind it up by one, and puts `content` there, at the end of its
    /// chain. There must be room.
    fn open(&mut self, cell: u32, content: Cell);

    /// Moves all cells behind this one, which is at the end of its chain, down by one.
    fn close(&mut self, cell: u32);
}

/// The bits of I0 before a location.
fn before(base: u64, location: u32) -> u32 {
    (base & ((1 << location) - 1)).count_ones()
}

/// The first cell of the chain at a location.
#[inline]
pub(crate) fn first(bucket: &impl Bucket, location: u32) -> Option<u32> {
    let base = bucket.base();
    (base >> location & 1 == 1).then(|| before(base, location))
}

/// The cell after this one in its chain.
#[inline]
pub(crate) fn next(bucket: &impl Bucket, cell: u32) -> Option<u32> {
    bucket.goes_on(cell).then(|| bucket.base().count_ones() + bucket.go_on_below(cell))
}

/// The cells of the chain at a location and what they hold, from its start.
#[inline]
pub(crate) fn chain(bucket: impl Bucket, location: u32) -> impl Iterator<Item = (u32, Cell)> {
    let base = bucket.base();
    let mut cursor = (base >> location & 1 == 1).then(|| before(base, location));
    core::iter::from_fn(move || {
        let cell = cursor?;
        cursor = bucket.goes_on(cell).then(|| base.count_ones() + bucket.go_on_below(cell));
        Some((cell, bucket.cell(cell)))
    })
}

/// Puts a new cell into the chain at a location, in order, behind equal ones.
pub(crate) fn insert(
    bucket: &mut impl BucketMut,
    location: u32,
    content: Cell,
    comes_after: impl Fn(Cell, Cell) -> bool,
) {
    let mut carried = content;
    let mut moving = false;
    let mut last = None;
    let mut cursor = first(bucket, location);
    while let Some(cell) = cursor {
        let here = bucket.cell(cell);
        // From the new cell on, each cell moves on by one, equal ones too.
        moving |= comes_after(here, content);
        if moving {
            bucket.set_cell(cell, carried);
            carried = here;
        }
        last = Some(cell);
        cursor = next(bucket, cell);
    }
    let base = bucket.base();
    let new = if let Some(last) = last {
        bucket.set_goes_on(last, true);
        base.count_ones() + bucket.go_on_below(last)
    } else {
        bucket.set_base(base | 1 << location);
        before(base, location)
    };
    bucket.open(new, carried);
}

/// Removes a cell from the chain at a location, to which it must belong.
pub(crate) fn remove(bucket: &mut impl BucketMut, location: u32, cell: u32) {
    let Some(mut last) = first(bucket, location) else { return };
    let mut owner = None;
    let mut moving = false;
    loop {
        moving |= last == cell;
        let Some(following) = next(bucket, last) else { break };
        if moving {
            let content = bucket.cell(following);
            bucket.set_cell(last, content);
        }
        owner = Some(last);
        last = following;
    }
    match owner {
        Some(owner) => bucket.set_goes_on(owner, false),
        None => bucket.set_base(bucket.base() & !(1 << location)),
    }
    bucket.close(last);
}
