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

use core::borrow::{Borrow, BorrowMut};

use super::store::{Store, View};

/// What a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    /// The fingerprint.
    pub(crate) print: u64,
    /// Counter or value; 0 where there is neither.
    pub(crate) extra: u64,
}

/// The bits of I0 before a location.
fn before(base: u64, location: u32) -> u32 {
    (base & ((1 << location) - 1)).count_ones()
}

impl<S: Borrow<Store>> View<S> {
    /// The first cell of the chain at a location.
    #[inline]
    fn first(&self, location: u32) -> Option<u32> {
        let base = self.base();
        (base >> location & 1 == 1).then(|| before(base, location))
    }

    /// The cell after this one in its chain.
    #[inline]
    fn next(&self, cell: u32) -> Option<u32> {
        self.goes_on(cell).then(|| self.base().count_ones() + self.go_on_below(cell))
    }

    /// The cells of the chain at a location and what they hold, from its start.
    #[inline]
    pub(super) fn chain(self, location: u32) -> impl Iterator<Item = (u32, Cell)> {
        let base = self.base();
        let mut cursor = (base >> location & 1 == 1).then(|| before(base, location));
        core::iter::from_fn(move || {
            let cell = cursor?;
            cursor = self.goes_on(cell).then(|| base.count_ones() + self.go_on_below(cell));
            Some((cell, self.cell(cell)))
        })
    }
}

impl<S: BorrowMut<Store>> View<S> {
    /// Puts a new cell into the chain at a location, in order, behind equal ones.
    pub(super) fn insert(
        &mut self,
        location: u32,
        content: Cell,
        comes_after: impl Fn(Cell, Cell) -> bool,
    ) {
        let mut carried = content;
        let mut moving = false;
        let mut last = None;
        let mut cursor = self.first(location);
        while let Some(cell) = cursor {
            let here = self.cell(cell);
            // From the new cell on, each cell moves on by one, equal ones too.
            moving |= comes_after(here, content);
            if moving {
                self.set_cell(cell, carried);
                carried = here;
            }
            last = Some(cell);
            cursor = self.next(cell);
        }
        let base = self.base();
        let new = if let Some(last) = last {
            self.set_goes_on(last, true);
            base.count_ones() + self.go_on_below(last)
        } else {
            self.set_base(base | 1 << location);
            before(base, location)
        };
        self.open(new, carried);
    }

    /// Removes a cell from the chain at a location, to which it must belong.
    pub(super) fn remove(&mut self, location: u32, cell: u32) {
        let Some(mut last) = self.first(location) else { return };
        let mut owner = None;
        let mut moving = false;
        loop {
            moving |= last == cell;
            let Some(following) = self.next(last) else { break };
            if moving {
                let content = self.cell(following);
                self.set_cell(last, content);
            }
            owner = Some(last);
            last = following;
        }
        match owner {
            Some(owner) => self.set_goes_on(owner, false),
            None => self.set_base(self.base() & !(1 << location)),
        }
        self.close(last);
    }
}
