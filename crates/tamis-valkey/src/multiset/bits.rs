//! Numbers of any width at any bit of an array of words, the low bits first.

/// The number of `width` bits, fewer than 64, that starts at bit `at`.
#[inline]
pub(super) fn get(words: &[u64], at: usize, width: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let (word, bit) = (at / 64, at % 64);
    // Without a branch, which nobody could foresee: bits of the next word count only if some are
    // wanted, and then there is one.
    let next = words[(word + 1).min(words.len() - 1)];
    (words[word] >> bit | next << 1 << (63 - bit)) & !(u64::MAX << width)
}

/// Writes a number of `width` bits, fewer than 64, which starts at bit `at`.
#[inline]
pub(super) fn put(words: &mut [u64], at: usize, width: usize, number: u64) {
    if width == 0 {
        return;
    }
    let (word, bit) = (at / 64, at % 64);
    let mask = !(u64::MAX << width);
    words[word] = words[word] & !(mask << bit) | (number & mask) << bit;
    if bit + width > 64 {
        let written = 64 - bit;
        words[word + 1] = words[word + 1] & !(mask >> written) | (number & mask) >> written;
    }
}

/// Copies `length` bits from bit `from` on to bit `to` on; the two places may overlap.
pub(super) fn copy(words: &mut [u64], from: usize, to: usize, length: usize) {
    let Some(rest) = length.checked_sub(1) else { return };
    let (first, last) = (to / 64, (to + rest) / 64);
    // All words come from equally far away.
    let away = from as isize - to as isize;
    let (far, bit) = (away.div_euclid(64), away.rem_euclid(64) as u32);
    let read = |words: &[u64], at: usize| {
        let at = at.wrapping_add_signed(far);
        let part = |at: usize| words.get(at).copied().unwrap_or(0);
        part(at) >> bit | part(at.wrapping_add(1)) << 1 << (63 - bit)
    };
    let write = |words: &mut [u64], at: usize| {
        let head = if at == first { u64::MAX << (to % 64) } else { u64::MAX };
        let tail = if at == last { u64::MAX >> (63 - (to + rest) % 64) } else { u64::MAX };
        let mask = head & tail;
        words[at] = words[at] & !mask | read(words, at) & mask;
    };
    // In the order in which no word is overwritten before it was read.
    let (begin, end) = if to > from { (last, first) } else { (first, last) };
    write(words, begin);
    let both = |low: u64, high: u64| low >> bit | high << 1 << (63 - bit);
    if to > from && last > first + 1 {
        let mut high = words[last.wrapping_add_signed(far)];
        for at in (first + 1..last).rev() {
            let low = words[at.wrapping_add_signed(far)];
            (words[at], high) = (both(low, high), low);
        }
    } else if last > first + 1 {
        let mut low = words[(first + 1).wrapping_add_signed(far)];
        for at in first + 1..last {
            let high = words[(at + 1).wrapping_add_signed(far)];
            (words[at], low) = (both(low, high), high);
        }
    }
    if begin != end {
        write(words, end);
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
            let width = draw(64);
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
