//! Bit arrays in as few bytes as their density allows: the coders of compressed Bloom filters and
//! deltas.
//!
//! A filter's bits look independent, so an array of m bits with density p cannot take less than m
//! H(p) bits ([`entropy_bits`]), and nothing but p is worth knowing about it. Four coders come
//! close, each in its place:
//!
//! | id | coder | above m H(p) | where |
//! |---|---|---|---|
//! | 0 | plain bytes | | density near 1/2, and whenever nothing else is shorter |
//! | 1 | range coder, one probability | a byte | [`Effort::Best`] |
//! | 2 | range coder, adaptive counts | 2 bytes, no header | [`Effort::Best`], small arrays |
//! | 3 | rANS on bytes | 0.1% at 13%, 0.56% at 5% | [`Effort::Fast`], 5 to 45% |
//! | 4 | Golomb codes of gaps | 0.3 to 0.6% | [`Effort::Fast`], below 5% |
//! | 5 | pieces | their headers | [`encode_pieces`], [`Packing`] |
//!
//! ```text
//! frame   | id, 0x80 if the bits are flipped | ones: LEB128, not for 0 and 2 | payload to the end |
//! ```
//!
//! An array with more ones than zeros is flipped first, so the coders see densities up to 1/2. A
//! frame has no length and no checksum, which are the container's, but decoding is safe on any
//! bytes: it never panics, allocates the array and 20 kB more at most, and accepts only what an
//! encoder could have written.
//!
//! ```
//! use tamis::coder::{Effort, decode, encode};
//!
//! let words = [0b1000_0001, 1 << 40, 0, 3];
//! let frame = encode(&words, 256, Effort::Fast);
//! assert!(frame.len() < 10);
//! assert_eq!(decode(&frame, 256).unwrap(), words);
//! ```

mod choose;
mod error;
mod gaps;
mod golomb;
pub(crate) mod numbers;
mod packing;
mod pieces;
pub(crate) mod planes;
mod range;
mod rans;
#[cfg(test)]
mod tests;

use alloc::{vec, vec::Vec};

pub use choose::{Coder, Effort, choose, entropy_bits, predicted_bits};
pub use error::CoderError;
pub(crate) use gaps::sorted_bits;
pub use gaps::{decode_sorted, encode_sorted};
pub use packing::Packing;
pub use pieces::{PieceReader, encode_pieces};

use range::{Adaptive, Static};

/// In the first byte: zeros and ones are exchanged.
const FLIPPED: u8 = 0x80;

/// Codes an array; at most one byte longer than the array's bytes.
///
/// # Panics
///
/// If the words are not those of `bits` bits, or a bit behind the last is set.
pub fn encode(words: &[u64], bits: u64, effort: Effort) -> Vec<u8> {
    let ones = count_ones(words);
    encode_counted(choose(bits, ones, effort), words, bits, ones)
}

/// Codes an array with a given coder, or plainly if that is shorter.
///
/// # Panics
///
/// As [`encode`].
pub fn encode_as(coder: Coder, words: &[u64], bits: u64) -> Vec<u8> {
    encode_counted(coder, words, bits, count_ones(words))
}

fn encode_counted(coder: Coder, words: &[u64], bits: u64, ones: u64) -> Vec<u8> {
    assert_eq!(words.len() as u64, bits.div_ceil(64), "the words must be those of the bits");
    assert!(padding_is_zero(words, bits), "bits behind the last must be zeros");
    let flipped = ones > bits / 2 && matches!(coder, Coder::Static | Coder::Rans | Coder::Gaps);
    let mut copy = Vec::new();
    let (coded, ones) = if flipped {
        copy.extend(words);
        flip(&mut copy, bits);
        (copy.as_slice(), bits - ones)
    } else {
        (words, ones)
    };
    let payload = match coder {
        Coder::Plain => None,
        Coder::Static => Some(range::encode(coded, bits, Static::new(bits, ones))),
        Coder::Adaptive => Some(range::encode(coded, bits, Adaptive::new())),
        Coder::Rans => rans::encode(coded, bits, ones),
        Coder::Gaps => Some(gaps::encode(coded, bits, ones)),
    };
    let plain_len = bits.div_ceil(8) as usize;
    if let Some(mut payload) = payload {
        let mut head = vec![coder as u8 | if flipped { FLIPPED } else { 0 }];
        if coder != Coder::Adaptive {
            numbers::put(&mut head, ones);
        }
        if head.len() + payload.len() <= plain_len {
            // Put in front, where the coder's buffer mostly has room: a second array would cost
            // more.
            payload.splice(0..0, head);
            return payload;
        }
    }
    encode_plain(words, plain_len)
}

fn encode_plain(words: &[u64], len: usize) -> Vec<u8> {
    let mut frame = vec![0; 1 + words.len() * 8];
    frame[0] = Coder::Plain as u8;
    for (bytes, word) in frame[1..].as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    frame.truncate(1 + len);
    frame
}

/// The array in a frame, pieces included.
///
/// `bits` is the caller's, who has bounded it: that many bits are allocated whatever the frame
/// says.
pub fn decode(frame: &[u8], bits: u64) -> Result<Vec<u64>, CoderError> {
    if frame.first() == Some(&pieces::ID) {
        return PieceReader::new(frame, bits)?.decode();
    }
    let mut words = vec![0; bits.div_ceil(64) as usize];
    decode_into(frame, bits, &mut words)?;
    Ok(words)
}

/// Decodes a frame that is not cut into pieces, into zeros.
fn decode_into(frame: &[u8], bits: u64, words: &mut [u64]) -> Result<(), CoderError> {
    let (&first, rest) = frame.split_first().ok_or(CoderError::Truncated)?;
    let flipped = first & FLIPPED != 0;
    match first & !FLIPPED {
        0 if !flipped => return decode_plain(rest, bits, words),
        2 if !flipped => return range::decode(rest, words, bits, Adaptive::new()),
        1 | 3 | 4 => {}
        _ => return Err(CoderError::Coder(first)),
    }
    let mut payload = rest;
    let ones = numbers::take(&mut payload).ok_or(CoderError::Count)?;
    // Half of the bits is not more than half: such an array is never flipped.
    if ones > bits / 2 || flipped && ones == bits.div_ceil(2) {
        return Err(CoderError::Count);
    }
    match first & !FLIPPED {
        1 => range::decode(payload, words, bits, Static::new(bits, ones))?,
        3 => rans::decode(payload, words, bits, ones)?,
        // Sets that many bits and no other.
        _ => gaps::decode(payload, words, bits, ones)?,
    }
    if first & !FLIPPED != 4 && count_ones(words) != ones {
        return Err(CoderError::Count);
    }
    if !padding_is_zero(words, bits) {
        return Err(CoderError::Payload);
    }
    if flipped {
        flip(words, bits);
    }
    Ok(())
}

fn decode_plain(payload: &[u8], bits: u64, words: &mut [u64]) -> Result<(), CoderError> {
    let len = bits.div_ceil(8);
    if (payload.len() as u64) < len {
        return Err(CoderError::Truncated);
    }
    if payload.len() as u64 > len {
        return Err(CoderError::Trailing);
    }
    let (whole, rest) = payload.as_chunks();
    for (word, bytes) in words.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(*bytes);
    }
    if let (Some(word), false) = (words.get_mut(whole.len()), rest.is_empty()) {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        *word = u64::from_le_bytes(last);
    }
    if padding_is_zero(words, bits) { Ok(()) } else { Err(CoderError::Payload) }
}

fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Whether no bit behind the last is set.
fn padding_is_zero(words: &[u64], bits: u64) -> bool {
    bits.is_multiple_of(64) || words.last().is_none_or(|last| last >> (bits % 64) == 0)
}

/// Exchanges zeros and ones, and leaves the bits behind the last alone.
fn flip(words: &mut [u64], bits: u64) {
    for word in &mut *words {
        *word = !*word;
    }
    if let (Some(last), true) = (words.last_mut(), !bits.is_multiple_of(64)) {
        *last &= (1 << (bits % 64)) - 1;
    }
}
