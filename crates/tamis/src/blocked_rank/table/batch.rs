//! Many keys at once: what lies behind their blocks is fetched ahead, too.

use core::ops::Range;

use super::super::block::{FREE_TO_TAKE, Inserted, Removed};
use super::super::machine::{Behind, fetch};
use super::super::place::Place;
use super::Table;
use super::back::Back;
use super::blocks::Blocks;
use crate::bits::AHEAD;
use crate::digest::Digest;
use crate::identities::Table as _;
use crate::spec::{Absent, Full};

/// How many insertions or removals may wait for the memory of the back table.
const WAITING: usize = 16;

/// Fewer questions than this are answered one by one, after their blocks were fetched: it takes
/// longer to get ready for more.
const FEW: usize = 24;

impl Blocks {
    /// Starts fetching the first blocks of a batch.
    pub(super) fn prefetch_first(&self, digests: &[Digest]) {
        for &digest in digests.iter().take(AHEAD) {
            fetch(self.words.as_slice(), &self.cut, digest);
        }
    }

    /// Writes to `answers` whether each of `digests` is in.
    pub(super) fn contains_many(&self, digests: &[Digest], answers: &mut [bool]) {
        self.prefetch_first(digests);
        if digests.len() < FEW {
            for (&digest, answer) in digests.iter().zip(answers) {
                *answer = self.contains(self.cut.place(digest));
            }
            return;
        }
        let (mut behind, mut fetched) = (Behind::new(), Fetched::new());
        let (value, mut from) = (self.cut.shape.value, 0);
        while from < digests.len() {
            let words = self.words.as_slice();
            from = self.machine.find_many(words, &self.cut, digests, answers, from, &mut behind);
            // Those before were fetched while these were looked for.
            self.back.answer(&fetched, answers, value);
            fetched.clear();
            for &number in behind.take() {
                let identity = self.behind(self.cut.place(digests[number as usize]));
                self.back.prefetch(identity);
                fetched.push(number, identity);
            }
        }
        self.back.answer(&fetched, answers, value);
    }

    /// Writes to `answers` whether identities of this level are in.
    fn answer(&self, fetched: &Fetched, answers: &mut [bool]) {
        let mut places = [self.cut.place_of(0); Behind::ROOM];
        for (place, &identity) in places.iter_mut().zip(fetched.identities()) {
            *place = self.cut.place_of(identity);
        }
        let (places, mut found) = (&places[..fetched.len], [false; Behind::ROOM]);
        let (mut behind, found) = (Behind::new(), &mut found[..fetched.len]);
        self.machine.find_places(self.words.as_slice(), &self.cut, places, found, &mut behind);
        for &number in behind.take() {
            found[number as usize] = self.back_contains(places[number as usize]);
        }
        for (&number, &mut found) in fetched.numbers.iter().zip(found) {
            answers[number as usize] = found;
        }
    }

    /// Removes one occurrence of each of `digests`, and returns how many were removed.
    pub(super) fn remove_many(&mut self, digests: &[Digest]) -> u64 {
        self.prefetch_first(digests);
        self.lags = true;
        let (mut from, mut absent) = (0, 0);
        let mut waiting = Waiting::new();
        while let Some((number, place, removed)) = {
            let Self { words, cut, machine, .. } = &mut *self;
            machine.remove_many(words.as_mut_slice(), cut, digests, from)
        } {
            from = number + 1;
            if removed == Removed::Nowhere {
                absent += 1;
                continue;
            }
            let lowest = (removed == Removed::Room)
                .then(|| self.machine.lowest_behind(self.words.as_slice(), &self.cut, place.block));
            self.fetch_behind(place, lowest.flatten().map(|(location, _)| location));
            if let Some((place, removed)) = waiting.push((place, removed)) {
                absent += u64::from(self.finish(place, removed).is_err());
            }
        }
        while let Some((place, removed)) = waiting.pop() {
            absent += u64::from(self.finish(place, removed).is_err());
        }
        digests.len() as u64 - absent
    }

    /// Starts fetching what is behind a location of the block of a place; that of the place, if
    /// there is no other.
    fn fetch_behind(&self, place: Place, location: Option<u32>) {
        self.back.prefetch(match location {
            Some(location) => self.part(place.block, location).first,
            None => self.behind(place),
        });
    }

    /// Does what a removal has left to do.
    fn finish(&mut self, place: Place, removed: Removed) -> Result<(), Absent> {
        if removed == Removed::Behind {
            // From the start, because its run may have come back meanwhile.
            return self.remove(place);
        }
        self.take_back(place.block, FREE_TO_TAKE);
        Ok(())
    }
}

impl Back {
    /// Writes to `answers` whether identities are in.
    fn answer(&self, fetched: &Fetched, answers: &mut [bool], value: u8) {
        match self {
            Self::Blocks(blocks) => blocks.answer(fetched, answers),
            Self::List(_) => {
                for (&identity, &number) in fetched.identities().iter().zip(&fetched.numbers) {
                    answers[number as usize] = self.contains(identity, value);
                }
            }
        }
    }
}

impl Table {
    /// Inserts digests. The error says how many went in before it.
    pub(super) fn insert_all(&mut self, digests: &[Digest]) -> Result<(), (usize, Full)> {
        self.front.prefetch_first(digests);
        // Numbers of those that their blocks have refused.
        let (mut from, mut waiting) = (0, Waiting::new());
        while from < digests.len() || !waiting.is_empty() {
            let front = &mut self.front;
            let words = front.words.as_mut_slice();
            let mut next = None;
            match front.machine.insert_many(words, &front.cut, digests, from) {
                Some((number, place, refused)) => {
                    from = number + 1;
                    let highest = (refused == Inserted::Full).then(|| {
                        front.machine.highest(front.words.as_slice(), &front.cut, place.block)
                    });
                    front.fetch_behind(place, highest.flatten().map(|spot| spot.location));
                    next = waiting.push(number);
                }
                None => from = digests.len(),
            }
            // The last ones wait no longer; and no other if much is listed, so that the table
            // grows when it would one by one.
            let all = from == digests.len() || 2 * front.list().len() as u64 >= self.grow_above;
            while let Some(number) = next.or_else(|| if all { waiting.pop() } else { None }) {
                next = None;
                // (The place anew, because the table may have grown meanwhile.)
                if let Err(full) = self.insert(self.place(digests[number]), 0) {
                    self.undo(digests, number + 1..from, &mut waiting);
                    return Err((number, full));
                }
            }
        }
        Ok(())
    }

    /// Removes the digests of these numbers again, but for those that wait.
    #[cold]
    fn undo(&mut self, digests: &[Digest], numbers: Range<usize>, waiting: &mut Waiting<usize>) {
        let mut not_in = waiting.pop();
        for number in numbers {
            if not_in == Some(number) {
                not_in = waiting.pop();
            } else {
                // (It is in: nothing else has removed it.)
                let _ = self.remove(self.place(digests[number]), None);
            }
        }
    }
}

/// Questions for what is behind blocks, whose memory is being fetched.
struct Fetched {
    /// Numbers of their answers, and their identities there.
    numbers: [u64; Behind::ROOM],
    identities: [u64; Behind::ROOM],
    len: usize,
}

impl Fetched {
    fn new() -> Self {
        Self { numbers: [0; Behind::ROOM], identities: [0; Behind::ROOM], len: 0 }
    }

    fn push(&mut self, number: u64, identity: u64) {
        (self.numbers[self.len], self.identities[self.len]) = (number, identity);
        self.len += 1;
    }

    fn clear(&mut self) {
        self.len = 0;
    }

    fn identities(&self) -> &[u64] {
        &self.identities[..self.len]
    }
}

/// What waits until its memory has been fetched, the oldest first.
struct Waiting<T> {
    items: [Option<T>; WAITING],
    /// Where the next goes.
    next: usize,
    len: usize,
}

impl<T: Copy> Waiting<T> {
    fn new() -> Self {
        Self { items: [None; WAITING], next: 0, len: 0 }
    }

    /// Adds an item. Returns the oldest, if there is no room for both.
    fn push(&mut self, item: T) -> Option<T> {
        let before = self.items[self.next].replace(item);
        self.next = (self.next + 1) % WAITING;
        self.len = (self.len + 1).min(WAITING);
        before
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes the oldest.
    fn pop(&mut self) -> Option<T> {
        let oldest = (self.next + WAITING - self.len) % WAITING;
        self.len = self.len.saturating_sub(1);
        self.items[oldest].take()
    }
}
