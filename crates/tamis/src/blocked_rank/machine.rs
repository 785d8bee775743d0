//! Which instructions the machine has, and the operations on a table of blocks with them.
#![allow(unsafe_code)] // Special instructions are unsafe because a machine may lack them.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use alloc::vec::Vec;

use super::block::{self, Block, Inserted, Prints, Removed, Spot};
use super::cells;
use super::dense::Dense;
#[cfg(target_arch = "x86_64")]
use super::eight;
use super::line::{One, Portable, Two};
use super::place::{Cut, Place};
use super::shape::Shape;
#[cfg(target_arch = "x86_64")]
use super::x86::Quick;
use crate::bits::{AHEAD, prefetch};
use crate::digest::Digest;
use crate::entry::Entry;

/// The operations for a shape on this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    size: Size,
    /// Only [`detect`](Self::detect) says that there is more than the least.
    code: Code,
}

/// The instructions that were found, each with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(all(feature = "std", target_arch = "x86_64")), allow(dead_code))]
enum Code {
    /// Those of every machine.
    Portable,
    /// Those of [`Quick`].
    Quick,
    /// Those of [`eight`].
    Wide,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    One,
    Two,
    Any,
}

impl Machine {
    /// The operations that need no special instructions.
    pub(super) fn portable(shape: &Shape) -> Self {
        let size = match shape.words {
            8 => Size::One,
            16 => Size::Two,
            _ => Size::Any,
        };
        Self { size, code: Code::Portable }
    }

    /// The best operations.
    pub(super) fn detect(shape: &Shape) -> Self {
        Self { code: Code::detect(), ..Self::portable(shape) }
    }

    pub(super) fn is_portable(self) -> bool {
        self.code == Code::Portable
    }
}

impl Code {
    fn detect() -> Self {
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        if super::x86::is_detected() {
            return if eight::is_detected() { Self::Wide } else { Self::Quick };
        }
        Self::Portable
    }
}

/// Numbers of the questions of a batch whose locations are behind. They wait until there are
/// several, whose memory can be fetched at once.
pub(super) struct Behind {
    numbers: [u64; Self::ROOM],
    len: usize,
}

impl Behind {
    /// With this many it is full.
    const MOST: usize = 32;
    /// It takes eight at once, and so may get a few more.
    pub(super) const ROOM: usize = Self::MOST + 8;

    pub(super) fn new() -> Self {
        Self { numbers: [0; Self::ROOM], len: 0 }
    }

    #[inline(always)]
    fn push(&mut self, number: usize) {
        self.numbers[self.len] = number as u64;
        self.len += 1;
    }

    /// Adds the first `count` of eight numbers.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn push_some(&mut self, numbers: [u64; 8], count: u32) {
        self.numbers[self.len..][..8].copy_from_slice(&numbers);
        self.len += count as usize;
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.len >= Self::MOST
    }

    /// The numbers; there are none after it.
    pub(super) fn take(&mut self) -> &[u64] {
        let len = core::mem::take(&mut self.len);
        &self.numbers[..len]
    }
}

impl Machine {
    /// Answers for digests from number `from` on, and adds the numbers of those whose locations
    /// are behind to `behind`. Returns the number of the next digest, from which on it must be
    /// called again, with `behind` empty. Lines are fetched ahead, except the first 32.
    pub(super) fn find_many(
        self,
        words: &[u64],
        cut: &Cut,
        digests: &[Digest],
        answers: &mut [bool],
        from: usize,
        behind: &mut Behind,
    ) -> usize {
        #[cfg(target_arch = "x86_64")]
        if self.code == Code::Wide && eight::takes(cut) && digests.len() - from >= eight::LANES {
            let find_many: Option<unsafe fn(&_, &_, &_, &mut _, _, &mut _) -> _> = match self.size {
                Size::One => Some(eight::find_many::<1>),
                Size::Two => Some(eight::find_many::<2>),
                Size::Any => None,
            };
            if let Some(find_many) = find_many {
                // SAFETY: `code` says that the machine has the instructions.
                return unsafe { find_many(words, cut, digests, answers, from, behind) };
            }
        }
        self.find_each(words, cut, digests, answers, from, behind)
    }

    /// Answers for at most [`Behind::ROOM`] places, whose lines were fetched before, and adds the
    /// numbers of those whose locations are behind to `behind`, where nothing may be.
    pub(super) fn find_places(
        self,
        words: &[u64],
        cut: &Cut,
        places: &[Place],
        answers: &mut [bool],
        behind: &mut Behind,
    ) {
        #[cfg(not(target_arch = "x86_64"))]
        let done = 0;
        #[cfg(target_arch = "x86_64")]
        let done = match (self.code, self.size) {
            // SAFETY: as in `find_many`.
            (Code::Wide, Size::One) => unsafe {
                eight::find_places::<1>(words, cut, places, answers, behind)
            },
            // SAFETY: as above.
            (Code::Wide, Size::Two) => unsafe {
                eight::find_places::<2>(words, cut, places, answers, behind)
            },
            _ => 0,
        };
        for (number, (&place, answer)) in places.iter().zip(answers).enumerate().skip(done) {
            match self.find(words, cut, place) {
                Some(here) => *answer = here,
                None => behind.push(number),
            }
        }
    }
}

/// Each operation, by size and instructions. Bodies see the kind of block as `B`.
macro_rules! operations {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        impl Machine {
            $($(#[$doc])*
            #[inline]
            pub(super) fn $name(self, $($arg: $type),*) -> $result {
                #[cfg(target_arch = "x86_64")]
                if self.code >= Code::Quick {
                    // SAFETY: `code` says that the machine has the instructions.
                    return unsafe {
                        match self.size {
                            Size::One => quick::$name::<One<Quick>>($($arg),*),
                            Size::Two => quick::$name::<Two<Quick>>($($arg),*),
                            Size::Any => quick::$name::<Dense<Quick>>($($arg),*),
                        }
                    };
                }
                match self.size {
                    Size::One => portable::$name::<One<Portable>>($($arg),*),
                    Size::Two => portable::$name::<Two<Portable>>($($arg),*),
                    Size::Any => portable::$name::<Dense<Portable>>($($arg),*),
                }
            })*
        }

        /// Functions that are not inlined, like those with special instructions: so a caller
        /// saves no registers for either.
        mod portable {
            use super::*;
            $(#[inline(never)]
            pub(super) fn $name<B: Block>($($arg: $type),*) -> $result $body)*
        }

        #[cfg(target_arch = "x86_64")]
        mod quick {
            use super::*;
            $(#[target_feature(enable = "avx2,popcnt,lzcnt,bmi1,bmi2")]
            pub(super) fn $name<B: Block>($($arg: $type),*) -> $result $body)*
        }
    };
}

operations! {
    /// Whether the fingerprint of a place is in its block; `None` if its location is behind.
    fn find(words: &[u64], cut: &Cut, place: Place) -> Option<bool> {
        block::find::<B>(&words[range::<B>(cut, place.block)], &cut.shape, cut.cell(place))
    }

    fn insert(words: &mut [u64], cut: &Cut, place: Place) -> Inserted {
        insert_one::<B>(words, cut, place)
    }

    /// Inserts fingerprints into the location of a place, as [`block::insert`] does.
    fn insert_run(words: &mut [u64], cut: &Cut, place: Place, prints: Prints) -> Inserted {
        let block = &mut words[range::<B>(cut, place.block)];
        block::insert::<B>(block, &cut.shape, cut.location_of(place), prints)
    }

    fn remove(words: &mut [u64], cut: &Cut, place: Place) -> Removed {
        block::remove::<B>(&mut words[range::<B>(cut, place.block)], &cut.shape, cut.cell(place))
    }

    /// Where the run of a location of a block is.
    fn spot(words: &[u64], cut: &Cut, number: u64, location: u32) -> Spot {
        B::spot(&words[range::<B>(cut, number)], &cut.shape, location)
    }

    /// The highest run of a block.
    fn highest(words: &[u64], cut: &Cut, number: u64) -> Option<Spot> {
        block::highest::<B>(&words[range::<B>(cut, number)], &cut.shape)
    }

    /// The lowest location behind a block, and the cells in use.
    fn lowest_behind(words: &[u64], cut: &Cut, number: u64) -> Option<(u32, u32)> {
        block::lowest_behind::<B>(&words[range::<B>(cut, number)], &cut.shape)
    }

    /// Removes `count` cells from bit `at` on from the run at `spot` of a block.
    fn remove_cells(words: &mut [u64], cut: &Cut, number: u64, spot: &Spot, at: u32, count: u32) -> () {
        B::close(&mut words[range::<B>(cut, number)], &cut.shape, spot, at, count);
    }

    /// Adds the entries of a block, without what is behind it, as [`cells::list`] does.
    fn list(words: &[u64], cut: &Cut, number: u64, entries: &mut Vec<Entry>) -> Option<u64> {
        let first = cut.identity(cut.place_at(number, 0, 0));
        cells::list::<B>(&words[range::<B>(cut, number)], &cut.shape, first, entries)
    }

    /// Writes keys to an empty block, as [`cells::write`] does.
    fn write(block: &mut [u64], cut: &Cut, keys: &[u64]) -> () {
        cells::write(&mut block[..B::words(&cut.shape)], &cut.shape, keys);
    }

    /// As [`find_many`](Machine::find_many), one by one.
    fn find_each(words: &[u64], cut: &Cut, digests: &[Digest], answers: &mut [bool], from: usize, behind: &mut Behind) -> usize {
        let answers = &mut answers[..digests.len()];
        for (number, answer) in answers.iter_mut().enumerate().skip(from) {
            let place = next_place(words, cut, digests, number);
            let block = &words[range::<B>(cut, place.block)];
            if let Some(here) = block::find::<B>(block, &cut.shape, cut.cell(place)) {
                *answer = here;
                continue;
            }
            behind.push(number);
            if behind.is_full() {
                return number + 1;
            }
        }
        digests.len()
    }

    /// Inserts digests from number `from` on, up to the first that finds no room; returns its
    /// number, its place, and why. Lines are fetched ahead, except the first.
    fn insert_many(words: &mut [u64], cut: &Cut, digests: &[Digest], from: usize) -> Option<(usize, Place, Inserted)> {
        for number in from..digests.len() {
            let place = next_place(words, cut, digests, number);
            let inserted = insert_one::<B>(words, cut, place);
            if !matches!(inserted, Inserted::Here(_)) {
                return Some((number, place, inserted));
            }
        }
        None
    }

    /// Removes digests from number `from` on, up to the first after which something is left to
    /// do; returns its number, its place, and the result. Lines are fetched ahead, except the
    /// first.
    fn remove_many(words: &mut [u64], cut: &Cut, digests: &[Digest], from: usize) -> Option<(usize, Place, Removed)> {
        for number in from..digests.len() {
            let place = next_place(words, cut, digests, number);
            let block = &mut words[range::<B>(cut, place.block)];
            let removed = block::remove::<B>(block, &cut.shape, cut.cell(place));
            if removed != Removed::Here {
                return Some((number, place, removed));
            }
        }
        None
    }
}

/// Inserts a fingerprint alone.
#[inline(always)]
fn insert_one<B: Block>(words: &mut [u64], cut: &Cut, place: Place) -> Inserted {
    let block = &mut words[range::<B>(cut, place.block)];
    let (location, print) = cut.cell(place);
    block::insert::<B>(block, &cut.shape, location, Prints::one(print))
}

/// The place of a digest of a batch; the block of a later one is fetched meanwhile.
#[inline(always)]
fn next_place(words: &[u64], cut: &Cut, digests: &[Digest], number: usize) -> Place {
    if let Some(&later) = digests.get(number + AHEAD) {
        fetch(words, cut, later);
    }
    cut.place(digests[number])
}

/// Starts fetching the block of a digest: what a question reads first, where it is large.
#[inline(always)]
pub(super) fn fetch(words: &[u64], cut: &Cut, digest: Digest) {
    fetch_place(words, cut, cut.place(digest));
}

/// Starts fetching what a question for a place reads.
#[inline(always)]
pub(super) fn fetch_place(words: &[u64], cut: &Cut, place: Place) {
    let first = place.block as usize * cut.shape.words as usize;
    prefetch(words, first);
    if cut.shape.words > 8 {
        prefetch(words, first + cut.shape.words as usize - 1);
    }
    if cut.shape.words > 16 {
        // Runs are about where their locations are among all.
        let share = cut.shape.cells * cut.location_of(place) / cut.shape.locations;
        prefetch(words, first + cut.shape.at(share) as usize / 64);
        prefetch(words, first + (cut.shape.ends_at() + share) as usize / 64);
        prefetch(words, first + cut.location_of(place) as usize / 64);
    }
}

/// The words of a block.
#[inline(always)]
fn range<B: Block>(cut: &Cut, number: u64) -> core::ops::Range<usize> {
    let words = B::words(&cut.shape);
    let first = number as usize * words;
    first..first + words
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::super::params::Level;
    use super::*;
    use crate::bits::low;

    /// Blocks with random keys, about `share` of their cells, some with long runs.
    fn filled(cut: &Cut, cells: u32, share: f64) -> Vec<u64> {
        let machine = Machine::portable(&cut.shape);
        let mut words = vec![0; (cut.blocks * u64::from(cut.shape.words)) as usize];
        let keys = (f64::from(cells) * cut.blocks as f64 * share) as u64;
        for key in 0..keys {
            let random = Digest(key).word(3);
            // One in eight is of one of the first locations, and few fingerprints.
            let place = if random.is_multiple_of(8) {
                cut.place_at(random >> 8 & 1, (random >> 9 & 1) as u32, random >> 10 & 3)
            } else {
                cut.place(Digest(random))
            };
            let location = cut.location_of(place);
            while machine.insert(&mut words, cut, place) == Inserted::Full {
                let spot = machine.highest(&words, cut, place.block).unwrap();
                block::drop_last_run(&mut words[cut.range(place.block)], &cut.shape, &spot);
            }
            block::set_occupied(&mut words[cut.range(place.block)], location, true);
        }
        words
    }

    #[test]
    fn many_questions_have_the_answers_of_single_ones() {
        let mut long_runs = 0;
        for (lines, value, fingerprint) in [1, 2]
            .into_iter()
            .flat_map(|lines| (1..=40).map(move |width| (lines, width / 5, width)))
        {
            let width = fingerprint + value;
            let cells = (510 * lines / (width + 2)).min(64 * lines);
            let locations = Shape::most_locations(8 * lines, cells, width).unwrap();
            for (blocks, share) in [(2, 0.4), (37, 0.9), (37, 1.3)] {
                let block = 512 * lines;
                let level = Level { block, blocks, locations, cells, fingerprint: width, value };
                let cut = Cut::new(&level);
                let words = filled(&cut, cells, share);
                let best = Machine::detect(&cut.shape);
                // With eight at once, if there is that, and one by one.
                for machine in [best, Machine { code: best.code.min(Code::Quick), ..best }] {
                    let digests = (0..200).map(|key| Digest(Digest(key % 150).word(3)));
                    let digests: Vec<_> = digests.collect();
                    let single = |place| machine.find(&words, &cut, place);
                    for len in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
                        let (digests, mut answers) = (&digests[..len], vec![true; len]);
                        let (mut behind, mut from) = (Behind::new(), 0);
                        let mut told = vec![None; len];
                        while from < len {
                            let before = from;
                            let answers = &mut answers[..];
                            from = machine.find_many(
                                &words,
                                &cut,
                                digests,
                                answers,
                                from,
                                &mut behind,
                            );
                            for at in before..from {
                                told[at] = Some(answers[at]);
                            }
                            for &number in behind.take() {
                                told[number as usize] = None;
                            }
                        }
                        let expected = digests.iter().map(|&digest| single(cut.place(digest)));
                        assert!(told.iter().copied().eq(expected), "{level:?} {len}");
                    }
                    // The long runs are of few places.
                    let places = (0..Behind::ROOM as u64).map(|number| {
                        let print = (number >> 2 & 3).min(low(fingerprint)) << value;
                        cut.place_at(number & 1, (number >> 1 & 1) as u32 % locations, print)
                    });
                    let places: Vec<_> = places.collect();
                    let (mut answers, mut behind) = (vec![true; places.len()], Behind::new());
                    machine.find_places(&words, &cut, &places, &mut answers, &mut behind);
                    let behind = behind.take();
                    for (number, (&place, answer)) in (0..).zip(places.iter().zip(answers)) {
                        let told = (!behind.contains(&number)).then_some(answer);
                        assert_eq!(told, single(place), "{level:?} {place:?}");
                        let spot = machine.spot(&words, &cut, place.block, cut.location_of(place));
                        long_runs += u32::from(spot.is_here && spot.len > cut.shape.lanes.into());
                    }
                }
            }
        }
        assert!(long_runs > 100, "{long_runs}");
    }
}
