//! The cells of one bucket, made from its entries in order: to write a bucket, and to lay one out
//! anew.

use alloc::vec::Vec;

use super::bucket::Cell;
use super::table::{MAX_COPIES, MAX_COUNTER, Mode};
use crate::bits::BitWriter;
use crate::entry::Entry;

/// How many copies a cell can count.
pub(super) fn per_cell(mode: Mode) -> u64 {
    if mode == Mode::Counting { MAX_COUNTER + 1 } else { 1 }
}

/// Cells that the copies of an entry take, at most [`MAX_COPIES`]; the overflow counts the rest.
#[inline]
pub(super) fn cells_of(entry: &Entry, mode: Mode) -> u32 {
    entry.count.div_ceil(per_cell(mode)).min(MAX_COPIES.into()) as u32
}

/// A cell, and whether its chain goes on after it.
pub(super) type Linked = (Cell, bool);

/// The chains of one bucket.
#[derive(Default)]
pub(super) struct Chains {
    /// I0.
    base: u64,
    /// The location of the last chain.
    location: u32,
    /// The cells in order of location and chain, each with how many are before it in its chain.
    ordered: Vec<(Cell, u32)>,
    /// How many chains have more than this many cells, by that number; then the number of the
    /// next cell that has that many before it.
    depths: Vec<u32>,
    numbered: Vec<Linked>,
}

impl Chains {
    pub(super) fn clear(&mut self) {
        self.base = 0;
        self.ordered.clear();
        self.depths.clear();
    }

    pub(super) fn len(&self) -> u32 {
        self.ordered.len() as u32
    }

    /// Adds up to `most` cells of an entry, which belongs at this location and comes after those
    /// before it. Returns the copies that get no cell.
    #[inline]
    pub(super) fn push(
        &mut self,
        (location, print): (u32, u64),
        entry: &Entry,
        mode: Mode,
        most: u32,
    ) -> u64 {
        let mut left = entry.count;
        for _ in 0..cells_of(entry, mode).min(most) {
            let here = left.min(per_cell(mode));
            let extra = if mode == Mode::Counting { here - 1 } else { entry.value };
            let goes_on = self.base != 0 && self.location == location;
            let before = self.ordered.last().map_or(0, |&(_, depth)| depth + 1);
            let depth = if goes_on { before } else { 0 };
            self.base |= 1 << location;
            self.location = location;
            if depth as usize == self.depths.len() {
                self.depths.push(0);
            }
            self.depths[depth as usize] += 1;
            self.ordered.push((Cell { print, extra }, depth));
            left -= here;
        }
        left
    }

    /// I0.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The cells in the order of their numbers: first those that begin a chain, then those that
    /// come second, and so on.
    pub(super) fn numbered(&mut self) -> &[Linked] {
        let mut first = 0;
        for depth in &mut self.depths {
            (*depth, first) = (first, first + *depth);
        }
        self.numbered.clear();
        self.numbered.resize(self.ordered.len(), (Cell { print: 0, extra: 0 }, false));
        let mut before = 0;
        for &(cell, depth) in &self.ordered {
            let number = self.depths[depth as usize];
            self.depths[depth as usize] += 1;
            self.numbered[number as usize].0 = cell;
            // (The first of a chain follows none.)
            self.numbered[before as usize].1 |= depth > 0;
            before = number;
        }
        &self.numbered
    }

    pub(super) fn write(&mut self, to: &mut BitWriter, locations: u32, print: u32, extra: u32) {
        to.put(self.base(), locations);
        let cells = self.numbered();
        for (_, goes_on) in cells {
            to.put((*goes_on).into(), 1);
        }
        for (cell, _) in cells {
            to.put(cell.print, print);
        }
        if extra > 0 {
            for (cell, _) in cells {
                to.put(cell.extra, extra);
            }
        }
    }
}
