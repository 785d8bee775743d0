//! Bits at any position of a slice of words: read, write, open and close a gap.

/// The lowest `width` bits set; `width` is at most 64.
#[inline]
pub(crate) const fn low(width: u32) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - width) }
}

/// The `width` bits (at most 64) from bit `at` on.
#[inline]
pub fn get(words: &[u64], at: u64, width: u32) -> u64 {
    if width == 0 {
        return 0; // There may be no word at all.
    }
    let (word, offset) = ((at >> 6) as usize, (at & 63) as u32);
    let mut value = words[word] >> offset;
    if offset + width > 64 {
        value |= words[word + 1] << (64 - offset);
    }
    value & low(width)
}

/// Writes the `width` bits (at most 64) from bit `at` on; bits of `value` beyond the width are
/// dropped.
#[inline]
pub fn put(words: &mut [u64], at: u64, width: u32, value: u64) {
    if width == 0 {
        return;
    }
    let (mask, value) = (low(width), value & low(width));
    let (word, offset) = ((at >> 6) as usize, (at & 63) as u32);
    words[word] = words[word] & !(mask << offset) | value << offset;
    if offset + width > 64 {
        let placed = 64 - offset;
        words[word + 1] = words[word + 1] & !(mask >> placed) | value >> placed;
    }
}

/// Opens a gap of `width` bits (1 to 64) at `at` and writes `value` there. The bits up to `end`
/// move up; the `width` bits that are pushed out at the end are returned.
#[inline]
pub fn open(words: &mut [u64], at: u64, end: u64, width: u32, value: u64) -> u64 {
    if width == 0 {
        return 0;
    }
    let pushed = get(words, end - u64::from(width), width);
    let (first, last) = ((at >> 6) as usize, ((end - 1) >> 6) as usize);
    let mut moves = u64::MAX << (at & 63);
    let mut carried = u128::from(value & low(width)) << (at & 63);
    for (number, word) in words[first..=last].iter_mut().enumerate() {
        if first + number == last {
            moves &= u64::MAX >> (63 - ((end - 1) & 63));
        }
        carried |= u128::from(*word & moves) << width;
        *word = *word & !moves | carried as u64 & moves;
        carried >>= 64;
        moves = u64::MAX;
    }
    pushed
}

/// Closes the gap of `width` bits (1 to 64) at `at`. The bits up to `end` move down, and `value`
/// fills the room at the end; the bits that were in the gap are returned.
#[inline]
pub fn close(words: &mut [u64], at: u64, end: u64, width: u32, value: u64) -> u64 {
    if width == 0 {
        return 0;
    }
    let taken = get(words, at, width);
    let (first, last) = ((at >> 6) as usize, ((end - 1) >> 6) as usize);
    let mut moves = u64::MAX << (at & 63);
    for number in first..=last {
        let next = if number < last { words[number + 1] } else { 0 };
        let both = u128::from(next) << 64 | u128::from(words[number]);
        if number == last {
            moves &= u64::MAX >> (63 - ((end - 1) & 63));
        }
        words[number] = words[number] & !moves | (both >> width) as u64 & moves;
        moves = u64::MAX;
    }
    put(words, end - u64::from(width), width, value);
    taken
}

/// How many of the `len` bits from bit `at` on are set.
#[inline]
pub fn ones(words: &[u64], at: u64, len: u64) -> u32 {
    let mut count = 0;
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(64) as u32;
        count += get(words, at + done, piece).count_ones();
        done += u64::from(piece);
    }
    count
}

/// Sets the `len` bits from bit `at` on to zero.
pub fn clear(words: &mut [u64], at: u64, len: u64) {
    let mut done = 0;
    while done < len {
        let piece = (len - done).min(64) as u32;
        put(words, at + done, piece, 0);
        done += u64::from(piece);
    }
}
