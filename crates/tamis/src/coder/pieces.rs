//! An array cut into pieces that are coded on their own, with an index.
//!
//! To read one bit, one piece is decoded. Pieces can be decoded in parallel.
//!
//! ```text
//! | 5 | log2 of a piece's bits | width | end of every piece: width bytes each | frame | frame | .. |
//!                                        counted from the first frame's start
//! ```
//!
//! Every piece adds about 8 bytes: the id and the count of its frame, the rounding of its coder,
//! and its end. The index has ends, not lengths, so that a reader finds a piece without adding up.
//! `width` is the least number of bytes that holds the last end.

use alloc::{vec, vec::Vec};

use super::{CoderError, Effort, Head, Result, encode};
use crate::bits::filled;

/// The first byte of a frame that is cut into pieces.
pub const ID: u8 = 5;

/// Codes an array in pieces of `piece_bits` bits, rounded up to a power of two of at least 64.
///
/// # Panics
///
/// As [`encode`].
pub fn encode_pieces(words: &[u64], bits: u64, piece_bits: u64, effort: Effort) -> Vec<u8> {
    assert_eq!(words.len() as u64, bits.div_ceil(64), "the words must be those of the bits");
    let log = piece_bits.clamp(64, 1 << 62).next_power_of_two().ilog2();
    let piece_words = usize::try_from(1_u64 << (log - 6)).unwrap_or(usize::MAX);
    let (mut ends, mut data) = (Vec::new(), Vec::new());
    for (number, piece) in words.chunks(piece_words).enumerate() {
        data.extend(encode(piece, piece_len(bits, log, number as u64), effort));
        ends.push(data.len() as u64);
    }
    let width = width(data.len() as u64);
    let mut frame = vec![ID, log as u8, width as u8];
    frame.extend(ends.iter().flat_map(|end| end.to_le_bytes().into_iter().take(width)));
    frame.extend(data);
    frame
}

/// Bits of piece `number`. All but the last have 2^`log`.
fn piece_len(bits: u64, log: u32, number: u64) -> u64 {
    (bits - (number << log)).min(1 << log)
}

/// How many bytes hold `number`: 1 to 8.
fn width(number: u64) -> usize {
    (64 - (number | 1).leading_zeros()).div_ceil(8) as usize
}

/// Reads single pieces or bits of a frame that [`encode_pieces`] wrote.
#[derive(Clone, Copy, Debug)]
pub struct PieceReader<'a> {
    bits: u64,
    log: u32,
    width: usize,
    ends: &'a [u8],
    data: &'a [u8],
}

impl<'a> PieceReader<'a> {
    /// Opens a frame of `bits` bits and checks its index; the pieces are checked when they are
    /// read.
    pub fn new(frame: &'a [u8], bits: u64) -> Result<Self> {
        let (&[id, log, width], rest) = frame.split_first_chunk().ok_or(CoderError::Truncated)?;
        if id != ID {
            return Err(CoderError::Coder(id));
        }
        if !(6..=62).contains(&log) || !(1..=8).contains(&width) {
            return Err(CoderError::Index);
        }
        let (log, width) = (u32::from(log), usize::from(width));
        let index =
            bits.div_ceil(1 << log).checked_mul(width as u64).ok_or(CoderError::Truncated)?;
        let index = usize::try_from(index).map_err(|_| CoderError::Truncated)?;
        let (ends, data) = rest.split_at_checked(index).ok_or(CoderError::Truncated)?;
        let reader = Self { bits, log, width, ends, data };
        let sorted =
            (1..reader.pieces()).all(|number| reader.end(number - 1) <= reader.end(number));
        let last = reader.pieces().checked_sub(1).map_or(0, |number| reader.end(number));
        if !sorted || last != data.len() as u64 || width != self::width(last) {
            return Err(CoderError::Index);
        }
        Ok(reader)
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> u64 {
        self.bits.div_ceil(1 << self.log)
    }

    /// Bits of every piece but the last, which may have fewer.
    pub fn piece_bits(&self) -> u64 {
        1 << self.log
    }

    /// The words of one piece.
    pub fn piece(&self, number: u64) -> Result<Vec<u64>> {
        let frame = self.frame(number)?;
        let bits = piece_len(self.bits, self.log, number);
        let head = Head::parse(frame, bits)?;
        let mut words = filled(bits.div_ceil(64), 0).map_err(|_| CoderError::Memory)?;
        head.decode(bits, &mut words)?;
        Ok(words)
    }

    /// The bit at `position`. Decodes its piece.
    pub fn bit(&self, position: u64) -> Result<bool> {
        if position >= self.bits {
            return Err(CoderError::Position(position));
        }
        let piece = self.piece(position >> self.log)?;
        let inside = position & (self.piece_bits() - 1);
        let word = piece.get((inside / 64) as usize).ok_or(CoderError::Position(position))?;
        Ok(word >> (inside % 64) & 1 == 1)
    }

    /// Checks what stands before the payload of every piece.
    pub(super) fn check(&self) -> Result<()> {
        (0..self.pieces()).try_for_each(|number| self.head(number).map(|_| ()))
    }

    /// Decodes the whole array into `words`, which must be zeros.
    pub(super) fn decode_into(&self, words: &mut [u64]) -> Result<()> {
        let piece_words = usize::try_from(1_u64 << (self.log - 6)).unwrap_or(usize::MAX);
        for (number, piece) in words.chunks_mut(piece_words).enumerate() {
            let number = number as u64;
            self.head(number)?.decode(piece_len(self.bits, self.log, number), piece)?;
        }
        Ok(())
    }

    /// What stands before the payload of a piece.
    fn head(&self, number: u64) -> Result<Head<'a>> {
        let frame = self.frame(number)?;
        Head::parse(frame, piece_len(self.bits, self.log, number))
    }

    /// The bytes of one piece's frame.
    fn frame(&self, number: u64) -> Result<&'a [u8]> {
        if number >= self.pieces() {
            return Err(CoderError::Position(number));
        }
        let start = number.checked_sub(1).map_or(0, |before| self.end(before));
        self.data.get(start as usize..self.end(number) as usize).ok_or(CoderError::Index)
    }

    /// Where a piece ends; the caller has checked its number.
    fn end(&self, number: u64) -> u64 {
        let mut end = [0; 8];
        let at = number as usize * self.width;
        end[..self.width].copy_from_slice(&self.ends[at..at + self.width]);
        u64::from_le_bytes(end)
    }
}
