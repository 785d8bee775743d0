//! Fields of a fixed width, packed without gaps.

use super::field;
use super::words::{OutOfMemory, Words, tail_is_zero};

/// The widest field; wider contents are two fields. Frozen: it decides how positions are laid out.
pub const MAX_FIELD_WIDTH: u32 = 57;

/// `len` fields of `width` bits each; the unused bits of the last word are always zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    words: Words,
    len: u64,
    width: u32,
}

impl Packed {
    /// `len` zero fields of `width` bits, 1 to [`MAX_FIELD_WIDTH`]. Another width is refused as if
    /// there were no memory for it.
    pub fn zeroed(len: u64, width: u32) -> Result<Self, OutOfMemory> {
        let possible = (1..=MAX_FIELD_WIDTH).contains(&width);
        let bits = len.checked_mul(width.into()).filter(|_| possible);
        let bits = bits.ok_or(OutOfMemory { bytes: u64::MAX })?;
        Ok(Self { words: Words::zeroed(bits.div_ceil(64))?, len, width })
    }

    /// The `len` fields in these words; `None` if they do not fit, or if a bit beyond them is set.
    pub fn from_words(words: Words, len: u64, width: u32) -> Option<Self> {
        let possible = (1..=MAX_FIELD_WIDTH).contains(&width);
        let words = words.checked(len.checked_mul(width.into()).filter(|_| possible)?)?;
        Some(Self { words, len, width })
    }

    /// Whether the unused bits of the last word are zero, as they must be.
    pub(crate) fn tail_is_zero(&self) -> bool {
        tail_is_zero(self.words.as_slice(), self.len * u64::from(self.width))
    }

    /// The words that hold the fields, field 0 in the lowest bits of word 0.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// How many fields.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bits in a field.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The largest value a field holds.
    #[inline]
    pub fn max_value(&self) -> u64 {
        (1 << self.width) - 1
    }

    /// Field `index`.
    #[inline]
    pub fn get(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        field::get(self.words.as_slice(), index * u64::from(self.width), self.width)
    }

    /// Writes field `index`; bits of `value` beyond the width are dropped.
    #[inline]
    pub fn set(&mut self, index: u64, value: u64) {
        debug_assert!(index < self.len);
        let at = index * u64::from(self.width);
        field::put(self.words.as_mut_slice(), at, self.width, value);
    }

    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + Clone {
        (0..self.len).map(|index| self.get(index))
    }

    /// Sets every field to zero.
    pub fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
    }
}
