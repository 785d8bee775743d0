//! Blocks of any size: maps of bits are searched word by word.
#![allow(clippy::inline_always)] // What runs with special instructions must be compiled into the functions that have them.

use core::marker::PhantomData;

use super::block::{Block, Spot};
use super::line::Instructions;
use super::shape::Shape;
use crate::bits::{field, low};

/// A block of any size. With portable instructions it says what is right for all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dense<I>(PhantomData<I>);

/// The ends, word by word; those of the last word reach beyond the cells as zeros.
#[inline(always)]
fn ends<'a>(words: &'a [u64], shape: &'a Shape) -> impl Iterator<Item = u64> + 'a {
    let at = shape.ends_at();
    let (first, offset) = (at as usize / 64, at % 64);
    let next = |number: usize| words.get(number + 1).copied().unwrap_or(0);
    (first..words.len()).map(move |i| words[i] >> offset | next(i) << 1 << (63 - offset))
}

impl<I: Instructions> Block for Dense<I> {
    #[inline(always)]
    fn words(shape: &Shape) -> usize {
        shape.words as usize
    }

    #[inline(always)]
    fn spot(words: &[u64], shape: &Shape, location: u32) -> Spot {
        let (word, bit) = (location as usize / 64, location % 64);
        let below = words[..word].iter().map(|word| word.count_ones()).sum::<u32>();
        let rank = below + (words[word] & low(bit)).count_ones();
        let is_occupied = words[word] >> bit & 1 == 1;
        // The end before the run, the last one found so far; and how many there are.
        let (mut start, mut left) = (0, rank);
        for (number, ends) in ends(words, shape).enumerate() {
            let base = 64 * number as u32;
            let ones = ends.count_ones();
            if left < ones {
                let end = I::nth(ends, left);
                let before = ends & (end - 1);
                if before != 0 {
                    start = base + 64 - before.leading_zeros();
                }
                let len = if is_occupied { base + end.trailing_zeros() + 1 - start } else { 0 };
                return Spot { location, is_occupied, rank, is_here: true, start, len };
            }
            if ones > 0 {
                start = base + 64 - ends.leading_zeros();
            }
            left -= ones;
        }
        Spot { location, is_occupied, rank, is_here: false, start, len: 0 }
    }

    #[inline(always)]
    fn held(words: &[u64], shape: &Shape) -> (u32, u32) {
        ends(words, shape).enumerate().fold((0, 0), |(runs, used), (number, ends)| {
            let end = 64 * number as u32 + 64 - ends.leading_zeros();
            (runs + ends.count_ones(), if ends == 0 { used } else { end })
        })
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
    fn open(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32, print: u64) {
        let (_, used) = Self::held(words, shape);
        let end = u64::from(shape.at(used + 1));
        field::open(words, at.into(), end, shape.width, print);
        let (first, last) = (shape.ends_at(), shape.ends_at() + used + 1);
        field::open(words, (first + spot.start).into(), last.into(), 1, u64::from(spot.len == 0));
        words[spot.location as usize / 64] |= 1 << (spot.location % 64);
    }

    #[inline(always)]
    fn close(words: &mut [u64], shape: &Shape, spot: &Spot, at: u32) {
        let (_, used) = Self::held(words, shape);
        field::close(words, at.into(), shape.at(used).into(), shape.width, 0);
        let (first, last) = (shape.ends_at(), shape.ends_at() + used);
        field::close(words, (first + spot.start).into(), last.into(), 1, 0);
        if spot.len == 1 {
            words[spot.location as usize / 64] &= !(1 << (spot.location % 64));
        }
    }
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
            if random.0.is_multiple_of(3) && step > shape.cells {
                let removed = machine.remove(&mut words, &cut, place);
                assert_eq!(removed, block::remove::<Any>(&mut other, shape, location, print));
                match truth.binary_search(&new) {
                    Ok(at) => drop((truth.remove(at), assert_eq!(removed, Removed::Here))),
                    Err(_) => assert_eq!(removed, Removed::Nowhere),
                }
            } else {
                let inserted = machine.insert(&mut words, &cut, place);
                assert_eq!(inserted, block::insert::<Any>(&mut other, shape, location, print));
                match inserted {
                    Inserted::Here(is_new) => {
                        let at = truth.binary_search(&new);
                        assert_eq!(is_new, at.is_err());
                        truth.insert(at.unwrap_or_else(|at| at), new);
                    }
                    _ => assert_eq!(truth.len(), shape.cells as usize),
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
                    let level =
                        Level { block: 64 * words, blocks: 1, locations, cells, fingerprint };
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
