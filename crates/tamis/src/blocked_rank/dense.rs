//! Blocks of any size: maps of bits are counted through, and cells moved by whole words.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use core::marker::PhantomData;

use super::block::{Block, Prints, Spot};
use super::line::Instructions;
use super::shape::{LEAST_WORDS, Shape};
use crate::bits::{field, low};

/// A block of any size. With portable instructions it says what is right for all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dense<I>(PhantomData<I>);

/// Words that are moved at once.
const GROUP: usize = 8;

impl<I> Dense<I> {
    /// The cell after the last end in the words up to `number`, where that word is `last`; 0 if
    /// there is none.
    #[inline(always)]
    fn after_last(words: &[u64], shape: &Shape, number: usize, last: u64) -> u32 {
        let first = shape.ends_at() as usize / 64;
        let (mut number, mut last) = (number, last);
        while last == 0 && number > first {
            number -= 1;
            last = words[number];
        }
        // (The last bit that is set may come before the ends.)
        (64 * number as u32 + 64 - last.leading_zeros()).saturating_sub(shape.ends_at())
    }
}

impl<I: Instructions> Block for Dense<I> {
    #[inline(always)]
    fn words(shape: &Shape) -> usize {
        shape.words.into()
    }

    #[inline(always)]
    fn patience(shape: &Shape) -> u32 {
        if u32::from(shape.words) <= 2 * LEAST_WORDS { 0 } else { 15 }
    }

    #[inline(always)]
    fn spot(words: &[u64], shape: &Shape, location: u32) -> Spot {
        let words = &words[..shape.words as usize];
        let (word, bit) = (location as usize / 64, location % 64);
        let groups = words.as_chunks().0;
        let rank = I::rank(&groups[..shape.locations.div_ceil(256) as usize], location);
        let is_occupied = words[word] >> bit & 1 == 1;
        // In whole groups: the bits before the ends are counted, too.
        let (first, offset) = (shape.ends_at() as usize / 256, shape.ends_at() % 256);
        let skipped = I::rank(&groups[first..=first], offset);
        let (number, left) = I::select(&groups[first..], skipped + rank);
        let number = 4 * first + number;
        let Some(&word) = words.get(number) else {
            let start = Self::used(words, shape);
            return Spot { location, is_occupied, rank, is_here: false, start, len: 0 };
        };
        let end = I::nth(word, left);
        let start = Self::after_last(words, shape, number, word & (end - 1));
        let next = 64 * number as u32 + end.trailing_zeros() + 1 - shape.ends_at();
        // (Whether it is occupied cannot be predicted.)
        let len = (next - start) & u32::from(is_occupied).wrapping_neg();
        Spot { location, is_occupied, rank, is_here: true, start, len }
    }

    #[inline(always)]
    fn runs(words: &[u64], shape: &Shape) -> u32 {
        field::ones(words, shape.ends_at().into(), shape.cells.into())
    }

    #[inline(always)]
    fn used(words: &[u64], shape: &Shape) -> u32 {
        let last = shape.words as usize - 1;
        Self::after_last(words, shape, last, words[last])
    }

    #[inline(always)]
    fn occupied(words: &[u64], shape: &Shape) -> u32 {
        field::ones(words, 0, shape.locations.into())
    }

    #[inline(always)]
    fn ranked(words: &[u64], shape: &Shape, rank: u32) -> Option<u32> {
        let mut left = rank;
        for (number, &word) in (0..).zip(&words[..shape.locations.div_ceil(64) as usize]) {
            let word = word & low((shape.locations - 64 * number).min(64));
            if left < word.count_ones() {
                return Some(64 * number + I::nth(word, left).trailing_zeros());
            }
            left -= word.count_ones();
        }
        None
    }

    #[inline(always)]
    fn open(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, prints: Prints) {
        let used = Self::used(words, shape);
        let Prints { count, bits } = prints;
        open(words, (at, shape.at(used)), count * shape.width, bits);
        let ends = shape.ends_at();
        let end = u64::from(spot.len == 0) << (count - 1);
        open(words, (ends + spot.start, ends + used), count, end);
        words[spot.location as usize / 64] |= 1 << (spot.location % 64);
    }

    #[inline(always)]
    fn close(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, count: u32) {
        let used = Self::used(words, shape);
        close(words, (at, shape.at(used)), count * shape.width);
        let ends = shape.ends_at();
        close(words, (ends + spot.start, ends + used), count);
        if spot.len == count {
            words[spot.location as usize / 64] &= !(1 << (spot.location % 64));
        }
    }
}

/// Puts `width` bits of `print` at bit `at`; the bits from there up to `end` move up, over zeros.
#[inline(always)]
fn open(words: &mut [u64], (at, end): (u32, u32), width: u32, print: u64) {
    let (first, offset) = (at as usize / 64, at % 64);
    let (last, beyond) = last_word(end + width);
    let words = &mut words[first..=last];
    let moves = words[0] & u64::MAX << offset;
    let new = words[0] ^ moves | moves << width | print << offset;
    let Some((last, before)) = words[1..].split_last_mut() else {
        words[0] = new & !beyond | words[0] & beyond;
        return;
    };
    // What comes up from the first word.
    let carried = moves >> (64 - width) | print >> 1 >> (63 - offset);
    let from_below = before.last().map_or(carried, |word| word >> (64 - width));
    *last = (*last << width | from_below) & !beyond | *last & beyond;
    // Groups from the last on, so that each still finds the word before it.
    let mut left = before.len();
    while let Some(group) = before[..left].last_chunk_mut::<{ GROUP + 1 }>() {
        let old = *group;
        for (word, pair) in group[1..].iter_mut().zip(old.windows(2)) {
            *word = pair[1] << width | pair[0] >> (64 - width);
        }
        left -= GROUP;
    }
    for number in (1..left).rev() {
        before[number] = before[number] << width | before[number - 1] >> (64 - width);
    }
    if let Some(next) = before.first_mut() {
        *next = *next << width | carried;
    }
    words[0] = new;
}

/// Removes the `width` bits at bit `at`; the bits from there up to `end` move down, and leave
/// zeros.
#[inline(always)]
fn close(words: &mut [u64], (at, end): (u32, u32), width: u32) {
    let (first, offset) = (at as usize / 64, at % 64);
    let (last, beyond) = last_word(end);
    let words = &mut words[first..=last];
    let count = words.len();
    let kept = words[0] & low(offset);
    let end = words[count - 1] & beyond;
    let moves = words[count - 1] & !beyond;
    let mut done = 0;
    while let Some(group) = words[done..count - 1].first_chunk_mut::<{ GROUP + 1 }>() {
        let old = *group;
        for (word, pair) in group.iter_mut().zip(old.windows(2)) {
            *word = pair[0] >> width | pair[1] << (64 - width);
        }
        done += GROUP;
    }
    for number in done..count - 1 {
        let next = if number + 2 < count { words[number + 1] } else { moves };
        words[number] = words[number] >> width | next << (64 - width);
    }
    words[count - 1] = moves >> width | end;
    words[0] = kept | words[0] & u64::MAX << offset;
}

/// The number of the word of the bit before `end`, and a mask of its bits from there on.
#[inline(always)]
fn last_word(end: u32) -> (usize, u64) {
    ((end - 1) as usize / 64, u64::MAX << ((end - 1) % 64) << 1)
}

#[cfg(test)]
mod tests {
    use super::super::block::{self, Inserted, Removed};
    use super::super::line::Portable;
    use super::super::machine::Machine;
    use super::super::params::Level;
    use super::super::place::Cut;
    use super::super::shape::MAX_WIDTH;
    use super::*;
    use crate::digest::Digest;
    use alloc::vec;

    type Any = Dense<Portable>;

    /// Random insertions and removals, with the operations of a machine, with those for blocks of
    /// any size, and in a sorted list.
    fn agree(level: &Level, machine: Machine, seed: u64) {
        let cut = Cut::new(level);
        let shape = &cut.shape;
        let mut words = vec![0; shape.words as usize];
        let mut other = words.clone();
        let mut truth: alloc::vec::Vec<(u32, u64)> = vec![];
        let mut random = Digest(seed);
        for step in 0..4 * shape.cells {
            random = Digest(random.word(1));
            let location = (random.word(2) % u64::from(shape.locations)) as u32;
            let mut new = (location, random.word(3) & low(shape.width.min(3)));
            if random.0 % 5 < 2 && !truth.is_empty() {
                new = truth[random.word(4) as usize % truth.len()];
            }
            let (location, print) = new;
            let place = cut.place_at(0, location, print);
            let most = (random.word(5) % u64::from(shape.lanes) + 1) as usize;
            if random.0.is_multiple_of(3) && step > shape.cells {
                let removed = machine.remove(&mut words, &cut, place);
                assert_eq!(removed, block::remove::<Any>(&mut other, shape, (location, print)));
                match truth.binary_search(&new) {
                    Ok(at) => {
                        assert_eq!(removed, Removed::Here);
                        truth.remove(at);
                        // Those that follow in its run.
                        let run = truth[at..].iter().take_while(|cell| cell.0 == location);
                        let count = run.count().min(most - 1);
                        if count > 0 {
                            truth.drain(at..at + count);
                            let (spot, at) = (Any::spot(&other, shape, location), at as u32);
                            let (at, count) = (shape.at(at), count as u32);
                            machine.remove_cells(&mut words, &cut, 0, &spot, at, count);
                            Any::close(&mut other, shape, &spot, at, count);
                        }
                    }
                    Err(_) => assert_eq!(removed, Removed::Nowhere),
                }
            } else {
                // Several that nothing is between, or the same several times.
                let after = truth.partition_point(|cell| *cell <= new);
                let next = truth.get(after).filter(|cell| cell.0 == location);
                let end = next.map_or(print + 4, |cell| cell.1).clamp(print, shape.mask);
                let mut prints = Prints { count: 0, bits: 0 };
                let mut cells = vec![];
                for lane in 0..most.min((random.word(6) % 8 + 1) as usize) {
                    let print = end.min(print + lane as u64 / 2);
                    prints.bits |= print << (prints.count * shape.width);
                    prints.count += 1;
                    cells.push((location, print));
                }
                let inserted = machine.insert_run(&mut words, &cut, place, prints);
                assert_eq!(inserted, block::insert::<Any>(&mut other, shape, location, prints));
                match inserted {
                    Inserted::Here(is_new) => {
                        assert_eq!(is_new, !truth.contains(cells.last().unwrap()));
                        truth.append(&mut cells);
                        truth.sort_unstable();
                    }
                    _ => assert!(truth.len() + cells.len() > shape.cells as usize),
                }
            }
            assert_eq!(words, other);
            assert!(block::is_valid::<Any>(&words, shape), "{shape:?} {truth:?}");
            for &(location, print) in &truth {
                let place = cut.place_at(0, location, print);
                assert_eq!(machine.find(&words, &cut, place), Some(true));
            }
            let runs = truth.chunk_by(|a, b| a.0 == b.0);
            for (rank, run) in (0..).zip(runs.clone()) {
                let location = run[0].0;
                let spot = machine.spot(&words, &cut, 0, location);
                assert_eq!(spot, Any::spot(&words, shape, location));
                assert_eq!(spot.rank, rank);
                assert!(block::run(&words, shape, &spot).eq(run.iter().map(|cell| cell.1)));
                assert_eq!(Any::ranked(&words, shape, rank), Some(location));
            }
            let highest = machine.highest(&words, &cut, 0);
            assert_eq!(highest.map(|spot| spot.location), runs.last().map(|run| run[0].0));
            assert_eq!(machine.lowest_behind(&words, &cut, 0), None);
        }
    }

    #[test]
    fn blocks_are_sorted_lists() {
        for fingerprint in 1..=MAX_WIDTH {
            for words in [8, 16, 32, 128] {
                for share in [15, 20, 26] {
                    let cells = (640 * words / (10 * fingerprint + share)).max(1);
                    let cells = if words < 32 { cells.min(8 * words) } else { cells };
                    let most = Shape::most_locations(words, cells, fingerprint);
                    if most.is_none() || words == 128 && fingerprint % 8 != 0 {
                        continue;
                    }
                    let locations = most.unwrap();
                    let level = Level {
                        block: 64 * words,
                        blocks: 1,
                        locations,
                        cells,
                        fingerprint,
                        value: 0,
                    };
                    let seed = u64::from(fingerprint * words + share);
                    agree(&level, Machine::portable(&level.shape()), seed);
                    agree(&level, Machine::detect(&level.shape()), seed);
                }
            }
        }
    }

    #[test]
    fn set_bits_are_found_by_rank() {
        let mut random = Digest(7);
        for _ in 0..10_000 {
            random = Digest(random.word(1));
            let mut word = random.word(2) & random.word(3);
            let full = word;
            for rank in 0..64 {
                let lowest = word & word.wrapping_neg();
                assert_eq!(block::nth(full, rank), lowest);
                word ^= lowest;
            }
        }
        assert_eq!(block::nth(u64::MAX, 63), 1 << 63);
    }
}
