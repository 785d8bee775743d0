//! Bit arrays in as few bytes as their density allows: the coders of compressed Bloom filters and
//! deltas.
//!
//! A filter's bits look independent, so nothing but their density p helps to code them: an array
//! of m bits takes at least m H(p) bits ([`entropy_bits`]). Four coders come close, each for other
//! densities:
//!
//! | id | coder | above m H(p) | where |
//! |---|---|---|---|
//! | 0 | plain bytes | | density near 1/2, and whenever nothing else is shorter |
//! | 1 | range coder, one probability | a byte | [`Effort::Best`], from 0.3% on |
//! | 2 | range coder, adaptive counts | 2 bytes, no header | [`Effort::Best`], small arrays |
//! | 3 | rANS on bytes | 0.1% at 13%, 0.56% at 5% | [`Effort::Fast`], 5 to 45% |
//! | 4 | Golomb codes of gaps | 0.3 to 0.6% | [`Effort::Fast`], below 5% |
//! | 5 | pieces | their headers | [`encode_pieces`], [`Packing`] |
//!
//! ```text
//! frame   | id, 0x80 if the bits are flipped | ones: LEB128, not for 0, 2 | payload to the end |
//! ```
//!
//! An array with more ones than zeros is flipped first, so the coders see densities up to 1/2. A
//! frame has no length and no checksum; the container has both.
//!
//! Decoding is safe on any bytes. It never panics, allocates at most 20 kB beside the array, and
//! accepts only what an encoder could have written. Nor does it take long: coders that go through
//! the array bit by bit have at most [`BITS_PER_BYTE`] bits for each byte of their frame. An
//! encoder writes sparser arrays as gaps, whose time grows with the ones. So a frame takes a few
//! hundred nanoseconds for each of its bytes, and the time to fill the array.
//!
//! A caller limits the number of bits, calls [`check`], allocates the array, and calls
//! [`decode_into`].

mod choose;
mod error;
pub mod gaps;
mod golomb;
pub mod numbers;
mod packing;
pub mod pieces;
pub(crate) mod planes;
pub mod range;
mod rans;

use alloc::{vec, vec::Vec};

pub(crate) use choose::set_bits;
pub use choose::{Coder, Effort, choose, entropy_bits, predicted_bits};
pub use error::CoderError;
pub(crate) use gaps::sorted_bits;
pub use packing::Packing;
pub use pieces::{PieceReader, encode_pieces};

use crate::bits::tail_is_zero;
use error::Result;
use range::{Adaptive, Static};

/// The bit of the first byte that says that zeros and ones are exchanged.
pub const FLIPPED: u8 = 0x80;

/// The most bits of array for each byte of a frame of the range coders: a density of 0.3%.
///
/// Frozen: a decoder refuses frames of more bits before it decodes anything. Sparser arrays are
/// coded as gaps, which are within 0.6% of the entropy there.
pub const BITS_PER_BYTE: u64 = 256;

/// The same for rANS. Its slots allow no more: a byte of zeros costs at least log2(2^14 / (2^14 -
/// 255)) bits.
const RANS_BITS_PER_BYTE: u64 = 4096;

/// Codes an array of `bits` bits as a frame. It is at most one byte longer than the array.
///
/// # Panics
///
/// If `words` has not the length for `bits` bits, or if a bit behind the last is set.
pub fn encode(words: &[u64], bits: u64, effort: Effort) -> Vec<u8> {
    let ones = count_ones(words);
    encode_as(choose(bits, ones, effort), words, bits, ones)
}

/// Codes an array with `ones` ones by `coder`, or as plain bytes if these are shorter.
///
/// # Panics
///
/// As [`encode`].
pub fn encode_as(coder: Coder, words: &[u64], bits: u64, ones: u64) -> Vec<u8> {
    assert_eq!(words.len() as u64, bits.div_ceil(64), "the words must be those of the bits");
    assert!(tail_is_zero(words, bits), "bits behind the last must be zeros");
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
        Coder::Adaptive => Some(range::encode(coded, bits, Adaptive::default())),
        Coder::Rans => rans::encode(coded, bits, ones),
        Coder::Gaps => Some(gaps::encode(coded, bits, ones)),
    };
    let plain_len = bits.div_ceil(8) as usize;
    if let Some(mut payload) = payload {
        let mut head = vec![coder as u8 | if flipped { FLIPPED } else { 0 }];
        if coder != Coder::Adaptive {
            numbers::put(&mut head, ones);
        }
        let len = (head.len() + payload.len()) as u64;
        if matches!(coder, Coder::Static | Coder::Adaptive) && bits > len * BITS_PER_BYTE {
            return encode_as(Coder::Gaps, words, bits, count_ones(words));
        }
        if len <= plain_len as u64 {
            // The payload is moved to make room for the head, since its buffer mostly has spare
            // capacity. A second buffer would cost more.
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

/// Checks what can be checked of a frame, pieces included, without an array. A frame that no
/// encoder writes and that would take long to decode is refused here.
pub fn check(frame: &[u8], bits: u64) -> Result<()> {
    if frame.first() == Some(&pieces::ID) {
        return PieceReader::new(frame, bits)?.check();
    }
    Head::parse(frame, bits).map(|_| ())
}

/// Decodes a frame, pieces included, into `words`, which must be zeros.
pub fn decode_into(frame: &[u8], bits: u64, words: &mut [u64]) -> Result<()> {
    if frame.first() == Some(&pieces::ID) {
        return PieceReader::new(frame, bits)?.decode_into(words);
    }
    Head::parse(frame, bits)?.decode(bits, words)
}

/// What stands before the payload of a frame that is not cut into pieces.
struct Head<'a> {
    coder: Coder,
    flipped: bool,
    ones: u64,
    payload: &'a [u8],
}

impl<'a> Head<'a> {
    fn parse(frame: &'a [u8], bits: u64) -> Result<Self> {
        let (&first, mut payload) = frame.split_first().ok_or(CoderError::Truncated)?;
        let flipped = first & FLIPPED != 0;
        let coder = match first & !FLIPPED {
            0 if !flipped => Coder::Plain,
            1 => Coder::Static,
            2 if !flipped => Coder::Adaptive,
            3 => Coder::Rans,
            4 => Coder::Gaps,
            _ => return Err(CoderError::Coder(first)),
        };
        let mut ones = 0;
        if !matches!(coder, Coder::Plain | Coder::Adaptive) {
            ones = numbers::take(&mut payload).ok_or(CoderError::Count)?;
            // An array is flipped only if more than half of its bits are ones.
            if ones > bits / 2 || flipped && ones == bits.div_ceil(2) {
                return Err(CoderError::Count);
            }
        }
        let len = frame.len() as u64;
        let stands_for = |each: u64| bits <= len.saturating_mul(each);
        match coder {
            Coder::Plain if (payload.len() as u64) < bits.div_ceil(8) => Err(CoderError::Truncated),
            Coder::Static | Coder::Adaptive if !stands_for(BITS_PER_BYTE) => {
                Err(CoderError::Expansion)
            }
            Coder::Rans if !stands_for(RANS_BITS_PER_BYTE) => Err(CoderError::Truncated),
            // A gap takes a bit at least.
            Coder::Gaps if ones > payload.len() as u64 * 8 => Err(CoderError::Truncated),
            _ => Ok(Self { coder, flipped, ones, payload }),
        }
    }

    /// Decodes the payload into `words`, which must be zeros.
    fn decode(&self, bits: u64, words: &mut [u64]) -> Result<()> {
        let Self { coder, flipped, ones, payload } = *self;
        match coder {
            Coder::Plain => return decode_plain(payload, bits, words),
            Coder::Adaptive => return range::decode(payload, words, bits, Adaptive::default()),
            Coder::Static => range::decode(payload, words, bits, Static::new(bits, ones))?,
            Coder::Rans => rans::decode(payload, words, bits, ones)?,
            // Sets exactly `ones` bits, so they need not be counted.
            Coder::Gaps => gaps::decode(payload, words, bits, ones)?,
        }
        if coder != Coder::Gaps && count_ones(words) != ones {
            return Err(CoderError::Count);
        }
        if !tail_is_zero(words, bits) {
            return Err(CoderError::Payload);
        }
        if flipped {
            flip(words, bits);
        }
        Ok(())
    }
}

fn decode_plain(payload: &[u8], bits: u64, words: &mut [u64]) -> Result<()> {
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
    if tail_is_zero(words, bits) { Ok(()) } else { Err(CoderError::Payload) }
}

fn count_ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
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
