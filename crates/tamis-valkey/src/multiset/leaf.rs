//! Some hundred identities at most, in order, each with its count: one array of bits.
//!
//! ```text
//! word 0   identities (16) | words (16) | bits of a low part (8) | bits of a count (8) |
//!          zeros (16)
//! from bit 64 upwards    the high parts: of each identity as many zeros as its high part is above
//!                        the one before, then a one
//! from the end downwards a cell for each identity: its low part, and its count less 1
//! ```
//!
//! This is the sorted list of Elias and Fano, with room in the middle: an identity that comes or
//! goes moves the bits behind it, less than a kilobyte. Identities are counted from the start of
//! the leaf. How many bits a low part has is chosen anew whenever the leaf is laid out: with n
//! identities in a span of s it is log2(s / n), and an identity takes about two bits more. Counts
//! take no bits while all are 1.
#![allow(clippy::inline_always)] // What `machine.rs` compiles once more must be inlined there.

use super::bits::{behind_zeros, copy, get, put};
use super::machine;
use crate::incoming;
use crate::memory::NoMemory;

/// The most identities of a leaf.
pub(super) const MOST: usize = 512;
/// The most bits of an identity: an iterator of SCANDUMP has room for them beside the number of a
/// table. Frozen: dumps have them.
pub(crate) const MOST_BITS: u32 = 56;
/// The widths that counts may have. Frozen.
const WIDTHS: [usize; 8] = [0, 1, 2, 4, 8, 16, 32, 48];
/// The highest count.
pub(crate) const MOST_COUNT: u64 = 1 << 48;
/// The most words of a leaf, far above what the widest cells take. Frozen.
pub(super) const MOST_WORDS: usize = 1 << 10;

/// The `width` bits, at most 56, that end at bit `end`: they are in the eight bytes before it.
#[inline(always)]
fn bits_before(bytes: &[u8], end: usize, width: usize) -> u64 {
    let behind = end.div_ceil(8);
    let word = bytes[..behind].last_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    word << (8 * behind - end) >> 1 >> (63 - width)
}

/// An identity, counted from the start of the leaf, and its count.
pub(crate) type Item = (u64, u64);

/// Identities in order, with their counts. An empty leaf takes no memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf(Box<[u64]>);

/// Where an identity is, or would be.
pub(super) struct Place {
    /// How many identities are below it.
    rank: usize,
    /// The bit of its one.
    bit: usize,
    found: bool,
}

/// What became of an identity that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It was not in.
    New,
    /// It was in, and is now in more often.
    More,
    /// The leaf must be laid out anew first; nothing has changed.
    NoRoom,
}

impl Leaf {
    /// How many identities are in.
    pub(super) fn distinct(&self) -> usize {
        self.0.first().map_or(0, |head| *head as u16 as usize)
    }

    fn low(&self) -> usize {
        (self.0[0] >> 32) as u8 as usize
    }

    /// Bits of a count.
    fn wide(&self) -> usize {
        (self.0[0] >> 40) as u8 as usize
    }

    /// The words that it takes.
    pub(super) fn words(&self) -> &[u64] {
        &self.0
    }

    fn bits(&self) -> usize {
        64 * self.0.len()
    }

    /// The bit of the cell with this rank.
    fn cell(&self, rank: usize) -> usize {
        self.bits() - (rank + 1) * (self.low() + self.wide())
    }

    /// The end of what high parts may use.
    fn end(&self) -> usize {
        self.bits() - self.distinct() * (self.low() + self.wide())
    }

    /// A leaf of these items, which are in order and within `span`, with room for a few more.
    pub(super) fn of(items: &[Item], span: u64) -> Result<Self, NoMemory> {
        let Some(&(last, _)) = items.last() else { return Ok(Self::default()) };
        let room = items.len() + items.len() / 16 + 2;
        let most = items.iter().map(|&(_, count)| count).max().unwrap_or(1);
        let needed = (u64::BITS - (most - 1).leading_zeros()) as usize;
        let wide = WIDTHS.into_iter().find(|&width| width >= needed).ok_or(NoMemory)?;
        let span = span.max(last + 1);
        let low = (span / room as u64).checked_ilog2().unwrap_or(0) as usize;
        let high = (span >> low) as usize;
        let words = 1 + (room * (low + wide + 1) + high + 1).div_ceil(64);
        let mut array = Vec::new();
        array.try_reserve_exact(words).map_err(|_| NoMemory)?;
        array.resize(words, 0);
        array[0] =
            items.len() as u64 | (words as u64) << 16 | (low as u64) << 32 | (wide as u64) << 40;
        let mut leaf = Self(array.into_boxed_slice());
        for (rank, &(identity, count)) in items.iter().enumerate() {
            let bit = 64 + (identity >> low) as usize + rank;
            leaf.0[bit / 64] |= 1 << (bit % 64);
            let cell = leaf.cell(rank);
            put(&mut leaf.0, cell, low, identity);
            put(&mut leaf.0, cell + low, wide, count - 1);
        }
        Ok(leaf)
    }

    /// The leaf whose words these bytes are, if they are one, with the identity behind its last
    /// and the sum of its counts.
    pub(super) fn of_bytes(bytes: &[u8]) -> Result<Option<(Self, u64, u64)>, NoMemory> {
        if bytes.len() > 8 * MOST_WORDS || !bytes.len().is_multiple_of(8) {
            return Ok(None);
        }
        let mut words = Vec::new();
        words.try_reserve_exact(bytes.len() / 8).map_err(|_| NoMemory)?;
        words.extend(incoming::words(bytes));
        let leaf = Self(words.into_boxed_slice());
        let Some(behind) = machine::check(&leaf, bytes) else { return Ok(None) };
        let (mut end, mut keys) = (leaf.bits(), leaf.distinct() as u64);
        if leaf.wide() > 0 {
            for _ in 0..leaf.distinct() {
                keys = keys.saturating_add(bits_before(bytes, end, leaf.wide()));
                end -= leaf.low() + leaf.wide();
            }
        }
        Ok(Some((leaf, behind, keys)))
    }

    /// The identity behind the last, if the leaf, whose bytes these are, keeps to all that other
    /// methods rely on.
    #[inline(always)]
    pub(super) fn check(&self, bytes: &[u8]) -> Option<u64> {
        let &head = self.0.first()?;
        let (distinct, low, wide) = (self.distinct(), self.low(), self.wide());
        let fits = (1..=MOST).contains(&distinct)
            && (head >> 16) as u16 as usize == self.0.len()
            && head >> 48 == 0
            && low <= MOST_BITS as usize
            && WIDTHS.contains(&wide)
            && distinct * (low + wide + 1) + 64 <= self.bits();
        if !fits {
            return None;
        }
        // High parts are in order as they are written. Low parts must be where high parts are
        // equal: where a one follows a one. What fails is only noted: a branch for each identity
        // would take longer than all else.
        let (step, mask) = (low + wide, !(u64::MAX << low));
        let (mut rank, mut carry, mut ordered) = (0, 0, true);
        for word in 1..self.end().div_ceil(64) {
            let ones = self.high(word);
            let behind = rank + ones.count_ones() as usize;
            if behind > distinct {
                return None;
            }
            let mut again = ones & (ones << 1 | carry);
            while again != 0 {
                let below = ones & !again & (again - 1);
                let before = rank + below.count_ones() as usize - 1;
                let end = self.bits() - wide - before * step;
                ordered &= if step + low <= 56 {
                    let both = bits_before(bytes, end, step + low);
                    both & mask > both >> step
                } else {
                    bits_before(bytes, end - step, low) > bits_before(bytes, end, low)
                };
                again &= again - 1;
            }
            (rank, carry) = (behind, ones >> 63);
        }
        let bit = self.used() - 1;
        // The last high part is the highest.
        if rank != distinct || !ordered || (bit - 63 - rank) >> (MOST_BITS as usize - low) != 0 {
            return None;
        }
        Some(self.identity(rank - 1, bit) + 1)
    }

    /// The bits of high parts in a word.
    #[inline]
    fn high(&self, word: usize) -> u64 {
        let end = self.end();
        match end.saturating_sub(64 * word) {
            0 => 0,
            bits if bits < 64 => self.0[word] & !(u64::MAX << bits),
            _ => self.0[word],
        }
    }

    /// All items, in order.
    pub(super) fn items(&self) -> impl Iterator<Item = Item> {
        let mut word = 0;
        let mut ones = 0;
        (0..self.distinct()).map(move |rank| {
            while ones == 0 {
                word += 1;
                ones = self.high(word);
            }
            let bit = 64 * word + ones.trailing_zeros() as usize;
            ones &= ones - 1;
            (self.identity(rank, bit), self.count_at(rank))
        })
    }

    #[inline]
    fn identity(&self, rank: usize, bit: usize) -> u64 {
        ((bit - 64 - rank) as u64) << self.low() | get(&self.0, self.cell(rank), self.low())
    }

    #[inline]
    fn count_at(&self, rank: usize) -> u64 {
        get(&self.0, self.cell(rank) + self.low(), self.wide()) + 1
    }

    /// Where an identity is.
    fn find(&self, identity: u64) -> Place {
        machine::search(self, identity)
    }

    #[inline(always)]
    pub(super) fn search(&self, identity: u64) -> Place {
        let (distinct, low) = (self.distinct(), self.low());
        let high = (identity >> low) as usize;
        let (mut zeros, mut ones, mut word) = (high, 0, 1);
        let mut bit = loop {
            if ones == distinct {
                return Place { rank: distinct, bit: 64 + high + distinct, found: false };
            }
            let bits = self.high(word);
            let set = bits.count_ones() as usize;
            if zeros <= 64 - set {
                break 64 * word + behind_zeros(bits, zeros);
            }
            zeros -= 64 - set;
            ones += set;
            word += 1;
        };
        let mut rank = bit - 64 - high;
        let wanted = identity & !(u64::MAX << low);
        while rank < distinct && get(&self.0, bit, 1) == 1 {
            let here = get(&self.0, self.cell(rank), low);
            if here >= wanted {
                return Place { rank, bit, found: here == wanted };
            }
            (rank, bit) = (rank + 1, bit + 1);
        }
        Place { rank, bit, found: false }
    }

    /// How often an identity is in.
    pub(super) fn count(&self, identity: u64) -> u64 {
        if self.0.is_empty() {
            return 0;
        }
        let place = self.find(identity);
        if place.found { self.count_at(place.rank) } else { 0 }
    }

    /// The bit behind the last one.
    fn used(&self) -> usize {
        let mut word = (self.end() - 1) / 64;
        let mut bits = self.high(word);
        while bits == 0 && word > 1 {
            word -= 1;
            bits = self.0[word];
        }
        64 * word + (u64::BITS - bits.leading_zeros()) as usize
    }

    /// Adds `copies` copies of an identity. All together must be at most [`MOST_COUNT`].
    pub(super) fn add(&mut self, identity: u64, copies: u64) -> Added {
        if self.0.is_empty() {
            return Added::NoRoom;
        }
        let (low, wide, distinct) = (self.low(), self.wide(), self.distinct());
        let fits = |count: u64| (count - 1) >> wide == 0;
        let Place { rank, bit, found } = self.find(identity);
        if found {
            let (cell, count) = (self.cell(rank), self.count_at(rank) + copies);
            if !fits(count) {
                return Added::NoRoom;
            }
            put(&mut self.0, cell + low, wide, count - 1);
            return Added::More;
        }
        let used = self.used();
        let last = if rank < distinct { used } else { bit };
        if distinct == MOST || !fits(copies) || last + 1 + low + wide > self.end() {
            return Added::NoRoom;
        }
        let end = self.end();
        copy(&mut self.0, end, end - low - wide, (distinct - rank) * (low + wide));
        let cell = self.cell(rank);
        put(&mut self.0, cell, low, identity);
        put(&mut self.0, cell + low, wide, copies - 1);
        if rank < distinct {
            copy(&mut self.0, bit, bit + 1, used - bit);
        }
        put(&mut self.0, bit, 1, 1);
        self.0[0] += 1;
        Added::New
    }

    /// Removes at most `copies` copies of an identity; how many were in, and are left.
    pub(super) fn remove(&mut self, identity: u64, copies: u64) -> (u64, u64) {
        if self.0.is_empty() {
            return (0, 0);
        }
        let Place { rank, bit, found } = self.find(identity);
        if !found {
            return (0, 0);
        }
        let (low, wide, distinct) = (self.low(), self.wide(), self.distinct());
        let count = self.count_at(rank);
        let left = count.saturating_sub(copies);
        if left > 0 {
            let cell = self.cell(rank);
            put(&mut self.0, cell + low, wide, left - 1);
            return (count, left);
        }
        let (end, width) = (self.end(), low + wide);
        copy(&mut self.0, bit + 1, bit, end - bit - 1);
        put(&mut self.0, end - 1, 1, 0);
        copy(&mut self.0, end, end + width, (distinct - 1 - rank) * width);
        put(&mut self.0, end, low, 0);
        put(&mut self.0, end + low, wide, 0);
        self.0[0] -= 1;
        (count, 0)
    }

    /// Whether a third of it, and more than a little, is room.
    pub(super) fn is_roomy(&self) -> bool {
        let most = 256 + self.bits() / 3;
        // Every identity uses a bit at least: the first question is quick, and mostly enough.
        let may_be = !self.0.is_empty() && self.end() > 64 + self.distinct() + most;
        may_be && self.end() - self.used() > most
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(words: &[u64]) -> Option<(Leaf, u64, u64)> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let read = Leaf::of_bytes(&bytes).unwrap();
        // Without special instructions the answer is the same.
        let behind = Leaf(words.into()).check(&bytes);
        assert_eq!(read.as_ref().map(|&(_, behind, _)| behind), behind);
        read
    }

    /// A leaf does what a sorted map does, at every span, with copies and without.
    #[test]
    fn a_leaf_is_a_sorted_multiset() {
        let mut state = 1u64;
        let mut draw = move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state ^ state >> 29
        };
        for span in [1, 2, 100, 600, 5_000, 1 << 20, 1 << 40, 1 << 56] {
            for most in [1, 3, 1 << 47] {
                let mut model: BTreeMap<u64, u64> = BTreeMap::new();
                let mut leaf = Leaf::default();
                for step in 0..4_000 {
                    let near = model.keys().nth(draw() as usize % model.len().max(1)).copied();
                    let identity = match draw() % 3 {
                        0 => near.unwrap_or(0),
                        1 => (near.unwrap_or(0) + 1).min(span - 1),
                        _ => draw() % span,
                    };
                    let copies = draw() % most + 1;
                    let grows = if step < 2_000 { 3 } else { 1 };
                    if draw() % 4 < grows {
                        let before = model.get(&identity).copied().unwrap_or(0);
                        if before == 0 && model.len() == MOST || before + copies > MOST_COUNT {
                            continue;
                        }
                        let mut added = leaf.add(identity, copies);
                        if added == Added::NoRoom {
                            model.entry(identity).and_modify(|c| *c += copies).or_insert(copies);
                            let items: Vec<Item> = model.iter().map(|(&i, &c)| (i, c)).collect();
                            leaf = Leaf::of(&items, span).unwrap();
                            added = if before == 0 { Added::New } else { Added::More };
                        } else {
                            model.entry(identity).and_modify(|c| *c += copies).or_insert(copies);
                        }
                        assert_eq!(added == Added::New, before == 0);
                    } else {
                        let before = model.get(&identity).copied().unwrap_or(0);
                        let left = before.saturating_sub(copies);
                        assert_eq!(leaf.remove(identity, copies), (before, left));
                        if left == 0 {
                            model.remove(&identity)
                        } else {
                            model.insert(identity, left)
                        };
                    }
                    let asked = draw() % span;
                    for identity in [identity, asked] {
                        let count = model.get(&identity).copied().unwrap_or(0);
                        assert_eq!(leaf.count(identity), count, "{span} {step}");
                    }
                    if step % 50 == 0 {
                        assert!(leaf.items().eq(model.iter().map(|(&i, &c)| (i, c))));
                        if !model.is_empty() {
                            let (read, behind, keys) = read(leaf.words()).unwrap();
                            assert_eq!(behind - 1, *model.keys().last().unwrap());
                            assert_eq!(keys, model.values().sum::<u64>());
                            assert_eq!(read.0, leaf.0);
                        }
                    }
                }
            }
        }
    }

    /// Whatever words come, reading them is safe, and what is read is in order.
    #[test]
    fn changed_words_are_refused_or_legal() {
        let items: Vec<Item> = (0..200).map(|n| (n * n * 37, n % 5 + 1)).collect();
        let leaf = Leaf::of(&items, 1 << 30).unwrap();
        for at in 0..leaf.words().len() * 64 {
            let mut words = leaf.words().to_vec();
            words[at / 64] ^= 1 << (at % 64);
            let Some((mut changed, ..)) = read(&words) else { continue };
            let items: Vec<Item> = changed.items().collect();
            assert!(items.is_sorted_by(|a, b| a.0 < b.0));
            for &(identity, count) in &items {
                assert_eq!(changed.count(identity), count);
                assert_eq!(changed.remove(identity, count), (count, 0));
            }
        }
        assert!(read(&[]).is_none());
        assert!(read(&[u64::MAX; 20]).is_none());
    }
}
