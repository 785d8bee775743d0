//! One level: blocks, and what is behind them. A multiset of identities that never loses one.

use super::super::block::{self, Block, FREE_TO_TAKE, Inserted, Prints, Removed};
use super::super::dense::Dense;
use super::super::line::Portable;
use super::super::machine::{Machine, fetch_place};
use super::super::params::Level;
use super::super::place::{Cut, Place};
use super::super::shape::Shape;
use super::back::{Back, FULL, Part};
use super::pass;
use crate::bits::{OutOfMemory, Words, low};
use crate::entry::{Entry, Overflow};
use crate::permutation::{Permutation, multipliers};
use crate::spec::{Absent, Full, Invalid};

/// What runs seldom is the same for blocks of every size, without special instructions.
type Any = Dense<Portable>;

/// A level of blocks.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    pub(super) cut: Cut,
    pub(super) machine: Machine,
    pub(super) words: Words,
    pub(super) spread: Spread,
    pub(super) back: Back,
    /// Whether runs may be behind that would fit into their blocks.
    pub(super) lags: bool,
}

/// Spreads locations over what is behind, so that those of one block go to different blocks.
#[derive(Clone, Debug)]
pub(super) struct Spread(Permutation);

impl Spread {
    /// The identity behind of a place. The identities of one location stay neighbours.
    #[inline]
    pub(super) fn behind(&self, cut: &Cut, place: Place) -> u64 {
        let location = self.0.apply(cut.location(place), cut.all_locations());
        location << cut.shape.width | cut.print_of(place)
    }
}

impl Blocks {
    pub(super) fn new(level: &Level, words: Words, back: Back) -> Self {
        let (cut, locations) = (Cut::new(level), level.all_locations());
        let [factor] = multipliers::<1>(1, locations);
        let spread = Spread(Permutation::new(factor, locations));
        let machine = Machine::detect(&cut.shape);
        Self { cut, machine, words, spread, back, lags: false }
    }

    /// Words of empty blocks.
    pub(super) fn empty(level: &Level) -> Result<Words, OutOfMemory> {
        Words::zeroed(level.bits() / 64)
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.cut.shape
    }

    pub(super) fn block(&self, number: u64) -> &[u64] {
        &self.words.as_slice()[self.cut.range(number)]
    }

    fn block_mut(&mut self, number: u64) -> &mut [u64] {
        &mut self.words.as_mut_slice()[self.cut.range(number)]
    }

    /// All blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &[u64]> {
        self.words.as_slice().chunks_exact(self.cut.shape.words as usize)
    }

    #[inline]
    pub(super) fn behind(&self, place: Place) -> u64 {
        self.spread.behind(&self.cut, place)
    }

    pub(super) fn part(&self, block: u64, location: u32) -> Part {
        let first = self.behind(self.cut.place_at(block, location, 0));
        Part { first, width: self.cut.shape.width }
    }

    /// Says that a location has keys, or that it has none.
    fn set_occupied(&mut self, place: Place, is_occupied: bool) {
        let location = self.cut.location_of(place);
        block::set_occupied(self.block_mut(place.block), location, is_occupied);
    }

    #[inline]
    pub(super) fn prefetch(&self, place: Place) {
        fetch_place(self.words.as_slice(), &self.cut, place);
    }

    /// Whether the identity of a place is in, with any value.
    #[inline]
    pub(super) fn contains(&self, place: Place) -> bool {
        match self.machine.find(self.words.as_slice(), &self.cut, place) {
            Some(here) => here,
            None => self.back_contains(place),
        }
    }

    /// Not inlined, so that the common case saves no registers for it.
    #[inline(never)]
    pub(super) fn back_contains(&self, place: Place) -> bool {
        self.back.contains(self.behind(place), self.cut.shape.value)
    }

    pub(super) fn is_behind(&self, place: Place) -> bool {
        Any::spot(self.block(place.block), self.shape(), self.cut.location_of(place)).is_behind()
    }

    #[inline]
    pub(super) fn insert(&mut self, place: Place) -> Result<bool, Full> {
        match self.machine.insert(self.words.as_mut_slice(), &self.cut, place) {
            Inserted::Here(is_new) => Ok(is_new),
            refused => self.insert_elsewhere(place, refused),
        }
    }

    /// Inserts what its block has refused. Not inlined, so that the common case saves no
    /// registers for it.
    #[inline(never)]
    pub(super) fn insert_elsewhere(
        &mut self,
        place: Place,
        refused: Inserted,
    ) -> Result<bool, Full> {
        let mut inserted = refused;
        loop {
            match inserted {
                Inserted::Here(is_new) => return Ok(is_new),
                Inserted::Behind => {
                    let is_new = self.back.insert(self.behind(place));
                    // What made room for it may fit again.
                    let is_new = is_new.inspect_err(|_| self.lags = true)?;
                    self.set_occupied(place, true);
                    return Ok(is_new);
                }
                Inserted::Full => self.make_room(place.block)?,
            }
            inserted = self.machine.insert(self.words.as_mut_slice(), &self.cut, place);
        }
    }

    /// Moves the highest run of a block behind it, as a whole, or not at all if there is no
    /// memory.
    fn make_room(&mut self, number: u64) -> Result<(), Full> {
        // (Only unchecked bytes have full blocks without runs.)
        let spot = self.machine.highest(self.words.as_slice(), &self.cut, number).ok_or(FULL)?;
        let part = self.part(number, spot.location);
        let Self { cut, words, back, lags, .. } = self;
        let block = &mut words.as_mut_slice()[cut.range(number)];
        let moved = back.insert_part(part, &mut block::run(block, &cut.shape, &spot));
        // Another that has moved before may fit again.
        moved.inspect_err(|_| *lags = true)?;
        block::drop_last_run(block, &cut.shape, &spot);
        Ok(())
    }

    /// Inserts fingerprints of a part of which nothing else is in: all or, if there is no memory,
    /// none. They come in order, and less the first of the part.
    pub(super) fn insert_part(
        &mut self,
        part: Part,
        prints: &mut dyn Iterator<Item = u64>,
    ) -> Result<(), Full> {
        let place = self.cut.place_of(part.first);
        let (first, shape) = (self.cut.print_of(place), &self.cut.shape);
        let (width, lanes) = (shape.width, u32::from(shape.lanes));
        loop {
            let mut next = Prints { count: 0, bits: 0 };
            for print in (&mut *prints).take(lanes as usize) {
                next.bits |= (first | print) << (next.count * width);
                next.count += 1;
            }
            if next.count == 0 {
                return Ok(());
            }
            if let Err(full) = self.insert_run(place, part, next) {
                self.take_part(part, u64::MAX, &mut |_| {});
                return Err(full);
            }
        }
    }

    /// Inserts fingerprints that are neighbours in their location.
    fn insert_run(&mut self, place: Place, part: Part, prints: Prints) -> Result<(), Full> {
        loop {
            let words = self.words.as_mut_slice();
            match self.machine.insert_run(words, &self.cut, place, prints) {
                Inserted::Here(_) => return Ok(()),
                Inserted::Behind => {
                    let (width, mask) = (self.cut.shape.width, low(part.width));
                    let prints = (0..prints.count).map(|lane| prints.bits >> (lane * width) & mask);
                    let part = self.part_behind(place, part);
                    let done = self.back.insert_part(part, &mut { prints });
                    done.inspect_err(|_| self.lags = true)?;
                    self.set_occupied(place, true);
                    return Ok(());
                }
                Inserted::Full => self.make_room(place.block)?,
            }
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, place: Place) -> Result<(), Absent> {
        self.lags = true;
        let removed = self.machine.remove(self.words.as_mut_slice(), &self.cut, place);
        if removed == Removed::Here { Ok(()) } else { self.after_removal(place, removed) }
    }

    /// What is left to do after a removal from a block.
    #[inline(never)]
    pub(super) fn after_removal(&mut self, place: Place, removed: Removed) -> Result<(), Absent> {
        match removed {
            Removed::Here => {}
            Removed::Nowhere => return Err(Absent),
            Removed::Room => self.take_back(place.block, FREE_TO_TAKE),
            Removed::Behind => {
                self.back.remove(self.behind(place))?;
                if !self.back.has(self.part(place.block, self.cut.location_of(place))) {
                    self.set_occupied(place, false);
                }
            }
        }
        Ok(())
    }

    /// Brings runs of a block back, in order, as far as there is room, while `least` cells are
    /// free.
    pub(super) fn take_back(&mut self, number: u64, least: u32) {
        while let Some((location, used)) =
            self.machine.lowest_behind(self.words.as_slice(), &self.cut, number)
            && used + least <= self.cut.shape.cells
        {
            let part = self.part(number, location);
            let Self { cut, words, back, .. } = self;
            let block = &mut words.as_mut_slice()[cut.range(number)];
            let mut cell = used;
            let room = u64::from(cut.shape.cells.saturating_sub(used));
            let comes = back.take_part(part, room, &mut |print| {
                block::append(block, &cut.shape, cell, print);
                cell += 1;
            });
            if !comes {
                return;
            }
            if cell == used {
                // (Only unchecked bytes say that there is something where nothing is.)
                block::set_occupied(block, location, false);
            } else {
                block::end_run(block, &cut.shape, cell - 1);
            }
        }
    }

    /// Removes the fingerprints of a part, if there are at most `most`, and calls `take` with
    /// each, in order and less the first of the part. Returns false if there are more.
    pub(super) fn take_part(&mut self, part: Part, most: u64, take: &mut dyn FnMut(u64)) -> bool {
        let place = self.cut.place_of(part.first);
        let location = self.cut.location_of(place);
        let mut spot = self.machine.spot(self.words.as_slice(), &self.cut, place.block, location);
        if spot.is_behind() {
            let is_taken = self.back.take_part(self.part_behind(place, part), most, take);
            if is_taken {
                // The lowest run behind may be a shorter one now, which fits.
                self.lags = true;
                if !self.back.has(self.part(place.block, location)) {
                    self.set_occupied(place, false);
                }
            }
            return is_taken;
        }
        let (block, shape) = (self.block(place.block), &self.cut.shape);
        let first = self.cut.print_of(place);
        let end = first | low(part.width);
        let below = block::run(block, shape, &spot).take_while(|&print| print < first).count();
        let prints = block::run(block, shape, &spot).skip(below).take_while(|&print| print <= end);
        let (cell, count) = (spot.start + below as u32, prints.count() as u32);
        if u64::from(count) > most {
            return false;
        }
        for cell in cell..cell + count {
            take(block::print(block, shape, cell) ^ first);
        }
        let at = shape.at(cell);
        let mut left = count;
        while left > 0 {
            // The next ones move to where these were.
            let (words, some) = (self.words.as_mut_slice(), left.min(shape.lanes.into()));
            self.machine.remove_cells(words, &self.cut, place.block, &spot, at, some);
            spot.len -= some;
            left -= some;
        }
        self.lags |= count > 0;
        true
    }

    /// Whether there are identities of a part.
    pub(super) fn has(&self, part: Part) -> bool {
        let place = self.cut.place_of(part.first);
        let location = self.cut.location_of(place);
        let spot = self.machine.spot(self.words.as_slice(), &self.cut, place.block, location);
        if spot.is_behind() {
            return self.back.has(self.part_behind(place, part));
        }
        let first = self.cut.print_of(place);
        let end = first | low(part.width);
        block::run(self.block(place.block), self.shape(), &spot)
            .any(|print| first <= print && print <= end)
    }

    /// A part of this level, behind it.
    fn part_behind(&self, place: Place, part: Part) -> Part {
        Part { first: self.behind(place), ..part }
    }

    /// Brings back all that fits, on every level.
    pub(super) fn bring_back(&mut self) {
        if self.lags {
            for number in 0..self.words.len() as u64 / u64::from(self.cut.shape.words) {
                self.take_back(number, 1);
            }
            self.lags = false;
        }
        if let Back::Blocks(blocks) = &mut self.back {
            blocks.bring_back();
        }
    }

    /// Whether [`bring_back`](Self::bring_back) may change something.
    pub(super) fn lags(&self) -> bool {
        self.lags || matches!(&self.back, Back::Blocks(blocks) if blocks.lags())
    }

    /// Adds `count` copies.
    pub(super) fn add(&mut self, place: Place, count: u64) -> Result<(), Full> {
        for done in 0..count {
            if self.is_behind(place) {
                // The list takes any count at once.
                return self.back.add(self.behind(place), count - done);
            }
            self.insert(place)?;
        }
        Ok(())
    }

    /// Removes `count` copies; on an error some are removed.
    pub(super) fn take(&mut self, place: Place, count: u64) -> Result<(), Absent> {
        for done in 0..count {
            if self.is_behind(place) {
                let left = count - done;
                self.back.take(self.behind(place), left - 1)?;
                return self.remove(place);
            }
            self.remove(place)?;
        }
        Ok(())
    }

    /// Calls `take` with every fingerprint of a part, less the first, and its count, in order.
    pub(super) fn for_each(&self, part: Part, take: &mut dyn FnMut(u64, u64)) {
        let place = self.cut.place_of(part.first);
        let (block, shape) = (self.block(place.block), self.shape());
        let (first, location) = (self.cut.print_of(place), self.cut.location_of(place));
        let spot = self.machine.spot(self.words.as_slice(), &self.cut, place.block, location);
        if spot.is_behind() {
            return self.back.for_each(self.part_behind(place, part), take);
        }
        for print in block::run(block, shape, &spot) {
            if print >> part.width == first >> part.width {
                take(print ^ first, 1);
            }
        }
    }

    /// Fills empty blocks with entries of their own identities, which must be in order.
    pub(super) fn fill(&mut self, entries: impl Iterator<Item = Entry>) -> Result<(), Full> {
        let most = self.list().most();
        let blocks = (self.words.as_mut_slice(), 0);
        let refused = pass::fill((&self.cut, &self.spread, self.machine), blocks, entries, most)?;
        self.back.fill(refused)
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        self.lags = false;
        match &mut self.back {
            Back::Blocks(blocks) => blocks.clear(),
            Back::List(list) => list.clear(),
        }
    }

    /// Cells and entries of this level and all behind it.
    pub(super) fn used(&self) -> u64 {
        self.cells() + self.back.used()
    }

    /// Cells in use.
    pub(super) fn cells(&self) -> u64 {
        self.blocks().map(|block| u64::from(Any::held(block, self.shape()).1)).sum()
    }

    pub(super) fn footprint(&self) -> u64 {
        self.words.footprint() + self.back.footprint()
    }

    /// The list at the end.
    pub(super) fn list(&self) -> &Overflow {
        match &self.back {
            Back::Blocks(blocks) => blocks.list(),
            Back::List(list) => list,
        }
    }

    pub(super) fn list_mut(&mut self) -> &mut Overflow {
        match &mut self.back {
            Back::Blocks(blocks) => blocks.list_mut(),
            Back::List(list) => list,
        }
    }

    pub(super) fn make_portable(&mut self) {
        self.machine = Machine::portable(&self.cut.shape);
        if let Back::Blocks(blocks) = &mut self.back {
            blocks.make_portable();
        }
    }

    /// Checks every block, and that what is behind it belongs there.
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        let shape = self.shape();
        let mut behind = 0_u64;
        for (number, block) in (0..).zip(self.blocks()) {
            if !block::is_valid::<Any>(block, shape) {
                return Err(Invalid("a block is not what an insertion or a removal leaves"));
            }
            let (runs, used) = Any::held(block, shape);
            let mut next = Any::ranked(block, shape, runs);
            let mut has_room = true;
            while let Some(location) = next {
                let count = self.back.count_of(self.part(number, location));
                if count == 0 {
                    return Err(Invalid("the back table lacks keys that a block has sent there"));
                }
                if has_room && !self.lags && count <= u64::from(shape.cells - used) {
                    return Err(Invalid("a block has room for what the back table holds"));
                }
                has_room = false;
                behind = behind.saturating_add(count);
                next = block::next_occupied(block, shape, location + 1);
            }
        }
        if behind != self.back.keys() {
            return Err(Invalid("the back table holds what belongs to a block"));
        }
        match &self.back {
            Back::Blocks(blocks) => blocks.validate(),
            Back::List(_) => Ok(()),
        }
    }

    /// Distinct cache lines that a question for `place` reads, about.
    pub(super) fn lines_to_contain(&self, place: Place) -> u32 {
        let lines = u32::from(self.cut.shape.words / 8).min(3);
        lines + if self.is_behind(place) { self.back.lines(self.behind(place)) } else { 0 }
    }

    /// Distinct cache lines that an insertion at `place` touches, about.
    pub(super) fn lines_to_insert(&self, place: Place) -> u32 {
        let (_, used) = Any::held(self.block(place.block), self.shape());
        if used < self.cut.shape.cells && !self.is_behind(place) {
            return u32::from(self.cut.shape.words / 8).min(3);
        }
        u32::from(self.cut.shape.words / 8).min(3) + self.back.lines(self.behind(place))
    }
}
