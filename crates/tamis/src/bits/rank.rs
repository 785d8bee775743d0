//! Rank and select inside a few words.

/// How many of the first `end` bits are set.
#[inline]
pub fn ones_below(words: &[u64], end: usize) -> u32 {
    let (whole, rest) = (end / 64, end % 64);
    let below: u32 = words[..whole].iter().map(|word| word.count_ones()).sum();
    // A shift by 64 must not happen: with nothing left over there is no word to mask.
    if rest == 0 { below } else { below + (words[whole] << (64 - rest)).count_ones() }
}

/// The position of set bit number `index` (from 0); `None` if fewer are set.
pub fn nth_one(words: &[u64], index: u32) -> Option<usize> {
    let mut before = 0;
    for (number, &word) in words.iter().enumerate() {
        let here = word.count_ones();
        if before + here > index {
            let mut word = word;
            for _ in before..index {
                word &= word - 1;
            }
            return Some(number * 64 + word.trailing_zeros() as usize);
        }
        before += here;
    }
    None
}
