//! Numbers of any width at any bit of an array of words, the low bits first.

/// The number of `width` bits, at most 64, that starts at bit `at`.
#[inline]
pub(super) fn get(words: &[u64], at: usize, width: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let (word, bit) = (at / 64, at % 64);
    let mut number = words[word] >> bit;
    if bit + width > 64 {
        number |= words[word + 1] << (64 - bit);
    }
    number & (u64::MAX >> (64 - width))
}

/// Writes a number of `width` bits, at most 64, which starts at bit `at`.
#[inline]
pub(super) fn put(words: &mut [u64], at: usize, width: usize, number: u64) {
    if width == 0 {
        return;
    }
    let (word, bit) = (at / 64, at % 64);
    let mask = u64::MAX >> (64 - width);
    words[word] = words[word] & !(mask << bit) | (number & mask) << bit;
    if bit + width > 64 {
        let written = 64 - bit;
        words[word + 1] = words[word + 1] & !(mask >> written) | (number & mask) >> written;
    }
}

/// Copies `length` bits from bit `from` on to bit `to` on; the two places may overlap.
pub(super) fn copy(words: &mut [u64], from: usize, to: usize, length: usize) {
    let (whole, rest) = (length / 64 * 64, length % 64);
    if to > from {
        // The last bits first, so that none is overwritten before it was read.
        let last = get(words, from + whole, rest);
        put(words, to + whole, rest, last);
        for at in (0..whole).step_by(64).rev() {
            let number = get(words, from + at, 64);
            put(words, to + at, 64, number);
        }
    } else {
        for at in (0..whole).step_by(64) {
            let number = get(words, from + at, 64);
            put(words, to + at, 64, number);
        }
        let last = get(words, from + whole, rest);
        put(words, to + whole, rest, last);
    }
}

/// The position after the first `zeros` zeros of a word that has at least as many.
#[inline]
pub(super) fn behind_zeros(word: u64, zeros: usize) -> usize {
    let Some(before) = zeros.checked_sub(1) else { return 0 };
    let mut left = !word;
    for _ in 0..before {
        left &= left - 1;
    }
    left.trailing_zeros() as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same as with one bit a byte.
    #[test]
    fn bits_move_as_bytes_do() {
        let mut words: Vec<u64> =
            (1..=5u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut state = 7u64;
        let mut draw = |range: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % range
        };
        for _ in 0..10_000 {
            let mut model: Vec<u64> = (0..320).map(|at| get(&words, at, 1)).collect();
            let length = draw(200);
            let (from, to) = (draw(320 - length), draw(320 - length));
            model.copy_within(from..from + length, to);
            copy(&mut words, from, to, length);
            let width = draw(65);
            let (at, number) = (draw(320 - width), words[draw(5)]);
            for bit in 0..width {
                model[at + bit] = number >> bit & 1;
            }
            put(&mut words, at, width, number);
            assert!((0..320).all(|at| get(&words, at, 1) == model[at]));
            let word = words[draw(5)];
            let zeros = draw(word.count_zeros() as usize + 1);
            let before = behind_zeros(word, zeros);
            assert_eq!((0..before).filter(|&bit| word >> bit & 1 == 0).count(), zeros);
        }
    }
}
