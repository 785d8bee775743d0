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
pub(super) fn cells_of(entry: &Entry, mode: Mode) -> u32 {
    entry.count.div_ceil(per_cell(mode)).min(MAX_COPIES.into()) as u32
}

/// The chains of one bucket, in order of location.
#[derive(Default)]
pub(super) struct Chains {
    /// Location, first cell and length of each chain.
    chains: Vec<(u32, usize, usize)>,
    cells: Vec<Cell>,
}

impl Chains {
    pub(super) fn clear(&mut self) {
        self.chains.clear();
        self.cells.clear();
    }

    pub(super) fn len(&self) -> u32 {
        self.cells.len() as u32
    }

    /// Adds up to `most` cells of an entry, which belongs at this location and comes after those
    /// before it. Returns the copies that get no cell.
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
            match self.chains.last_mut() {
                Some((last, _, length)) if *last == location => *length += 1,
                _ => self.chains.push((location, self.cells.len(), 1)),
            }
            self.cells.push(Cell { print, extra });
            left -= here;
        }
        left
    }

    /// I0.
    pub(super) fn base(&self) -> u64 {
        self.chains.iter().fold(0, |base, &(location, ..)| base | 1 << location)
    }

    /// The cells in the order of their numbers: first those that begin a chain, then those that
    /// come second, and so on; each with whether its chain goes on.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (Cell, bool)> {
        let longest = self.chains.iter().map(|&(_, _, length)| length).max().unwrap_or(0);
        (0..longest).flat_map(move |depth| {
            self.chains
                .iter()
                .filter(move |chain| chain.2 > depth)
                .map(move |&(_, first, length)| (self.cells[first + depth], length > depth + 1))
        })
    }

    pub(super) fn write(&self, to: &mut BitWriter, locations: u32, print: u32, extra: u32) {
        to.put(self.base(), locations);
        self.numbered().for_each(|(_, goes_on)| to.put(goes_on.into(), 1));
        self.numbered().for_each(|(cell, _)| to.put(cell.print, print));
        if extra > 0 {
            self.numbered().for_each(|(cell, _)| to.put(cell.extra, extra));
        }
    }
}
