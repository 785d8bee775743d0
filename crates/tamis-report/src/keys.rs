//! Seeded streams of distinct keys: numbers for experiments, and text as people have it.

use tamis::{Digest, Hasher};

/// A stream of keys: members, which go into a filter, and absent keys, all different from each
/// other.
///
/// Keys are eight bytes: a bijection of the seed and a running number. Members count up from 0,
/// absent keys from 2^63, so that no absent key is a member.
#[derive(Clone, Copy, Debug)]
pub struct KeyStream {
    offset: u64,
}

/// The running number of the first absent key.
const FIRST_ABSENT: u64 = 1 << 63;

impl KeyStream {
    /// The stream with this seed.
    pub fn new(seed: u64) -> Self {
        Self { offset: Digest(seed).word(0) }
    }

    /// Member number `index`.
    pub fn member(self, index: u64) -> u64 {
        // XOR keeps numbers apart, and so does `word`.
        Digest(index ^ self.offset).word(1)
    }

    /// Absent key number `index`.
    pub fn absent_key(self, index: u64) -> u64 {
        self.member(FIRST_ABSENT | index)
    }

    /// Digests of the members in a range of numbers.
    pub fn members(
        self,
        hasher: Hasher,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = Digest> {
        range.map(move |index| hasher.digest(&self.member(index)))
    }

    /// Digests of the absent keys in a range of numbers.
    pub fn absent_keys(
        self,
        hasher: Hasher,
        range: std::ops::Range<u64>,
    ) -> impl Iterator<Item = Digest> {
        range.map(move |index| hasher.digest(&self.absent_key(index)))
    }
}

/// A stream of text keys: addresses of pages and words by turns, all different from each other.
#[derive(Clone, Copy, Debug)]
pub struct TextStream {
    seed: Digest,
}

/// Words of six syllables: consonant and vowel.
const WORDS: u64 = 1_000_000_000_000;
const CONSONANTS: [&str; 20] = [
    "b", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "z", "ch",
    "st", "tr",
];
const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];
const ENDINGS: [&str; 6] = ["com", "org", "net", "io", "de", "fr"];
/// The running number of the first absent key.
const FIRST_ABSENT_TEXT: u64 = 1 << 38;

impl TextStream {
    /// The stream with this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed: Digest(Digest(seed).word(0)) }
    }

    /// Member number `index`, below 2^38.
    pub fn member(self, index: u64) -> String {
        if index.is_multiple_of(2) { self.address(index) } else { self.word(index) }
    }

    /// Absent key number `index`, below 2^38.
    pub fn absent_key(self, index: u64) -> String {
        self.member(FIRST_ABSENT_TEXT + index)
    }

    /// Different for every index, which stands in it.
    fn address(self, index: u64) -> String {
        let random = self.seed.word(index);
        // Some hundred thousand sites, a few of which have most of the pages.
        let site = syllables(random % 1000 * (random >> 10 & 0xff) + 7, 3);
        let ending = ENDINGS[(random >> 20) as usize % ENDINGS.len()];
        let folder = syllables(random >> 24 & 0xff, 2);
        let page = syllables(random >> 32 & 0xfffff, 3);
        format!("https://www.{site}.{ending}/{folder}/{page}-{index}.html")
    }

    /// Different for every index: the factor has no divisor in common with the number of words.
    fn word(self, index: u64) -> String {
        let offset = self.seed.word(u64::MAX) % WORDS;
        let number = u128::from(index) * 618_033_988_751 + u128::from(offset);
        syllables((number % u128::from(WORDS)) as u64, 6)
    }
}

/// The last syllables of a number that is written in base 100.
fn syllables(mut number: u64, count: usize) -> String {
    let mut word = String::with_capacity(3 * count);
    for _ in 0..count {
        word += CONSONANTS[(number % 20) as usize];
        word += VOWELS[(number / 20 % 5) as usize];
        number /= 100;
    }
    word
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn text_keys_are_all_different() {
        let stream = TextStream::new(7);
        let members = (0..50_000).map(|index| stream.member(index));
        let all: HashSet<String> =
            members.chain((0..50_000).map(|index| stream.absent_key(index))).collect();
        assert_eq!(all.len(), 100_000);
        assert!(stream.member(0).starts_with("https://www."), "{}", stream.member(0));
        assert_ne!(stream.member(1), TextStream::new(8).member(1));
    }
}
