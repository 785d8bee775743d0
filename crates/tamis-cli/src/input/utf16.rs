//! UTF-16 as UTF-8.

use std::io::{self, Read};

/// Bytes of UTF-16 that are turned into UTF-8 at once.
const PIECE: usize = 32 << 10;

/// A stream of UTF-16 behind its byte-order mark, read as UTF-8.
pub(super) struct Utf16<R> {
    bytes: R,
    big_endian: bool,
    /// UTF-8 that has not been handed out, from `taken` on.
    ready: Vec<u8>,
    taken: usize,
    /// Bytes of a unit, or of a pair of surrogates, whose rest has not come.
    rest: Vec<u8>,
    /// Bytes that were turned, the mark included.
    turned: u64,
}

impl<R: Read> Utf16<R> {
    /// `bytes` start with the mark.
    pub(super) fn new(bytes: R, big_endian: bool) -> Self {
        Self { bytes, big_endian, ready: Vec::new(), taken: 0, rest: Vec::new(), turned: 0 }
    }

    /// Turns what has come; at the end of the stream nothing may be left over.
    fn turn(&mut self) -> io::Result<bool> {
        let kept = self.rest.len();
        let mut piece = std::mem::take(&mut self.rest);
        piece.resize(kept + PIECE, 0);
        let read = self.bytes.read(&mut piece[kept..])?;
        piece.truncate(kept + read);
        let read_unit = if self.big_endian { u16::from_be_bytes } else { u16::from_le_bytes };
        let (pairs, odd) = piece.as_chunks::<2>();
        let mut units: Vec<u16> = pairs.iter().map(|&pair| read_unit(pair)).collect();
        let waits = |unit: u16| (0xd800..0xdc00).contains(&unit);
        let held = units.pop_if(|unit| read > 0 && waits(*unit)).is_some();
        self.rest = piece[piece.len() - odd.len() - 2 * usize::from(held)..].to_vec();
        if read == 0 && !odd.is_empty() {
            return Err(self.wrong("half a character at the end"));
        }
        (self.ready, self.taken) = (Vec::with_capacity(units.len()), 0);
        for character in char::decode_utf16(units) {
            let character = character.map_err(|_| self.wrong("half of a pair of surrogates"))?;
            if !(self.turned == 0 && character == '\u{feff}') {
                self.ready.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            self.turned += 2 * character.len_utf16() as u64;
        }
        Ok(read > 0)
    }

    fn wrong(&self, what: &str) -> io::Error {
        let text = format!("its byte-order mark says UTF-16, but byte {} is {what}", self.turned);
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.ready.len() {
            if !self.turn()? && self.ready.is_empty() {
                return Ok(0);
            }
        }
        let len = buffer.len().min(self.ready.len() - self.taken);
        buffer[..len].copy_from_slice(&self.ready[self.taken..self.taken + len]);
        self.taken += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte at a time, so that every unit is cut.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            (buffer[0], self.0) = (*first, rest);
            Ok(1)
        }
    }

    fn read(bytes: &[u8], big_endian: bool) -> io::Result<String> {
        let mut whole = String::new();
        Utf16::new(bytes, big_endian).read_to_string(&mut whole)?;
        let mut drops = String::new();
        Utf16::new(Drops(bytes), big_endian).read_to_string(&mut drops)?;
        assert_eq!(whole, drops);
        Ok(whole)
    }

    #[test]
    fn every_character_survives_and_only_the_mark_goes() {
        let text = "\u{feff}a\n\u{e9}\u{4e2d}\u{1f600}\u{feff}\r\n".repeat(9000);
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&big, true).unwrap(), text[3..]);
        assert_eq!(read(&little, false).unwrap(), text[3..]);
        assert_eq!(read(&big[..2], true).unwrap(), "");
    }

    #[test]
    fn what_is_no_utf_16_is_refused() {
        for (bytes, what) in [
            (&b"\xff\xfea\0b"[..], "byte 4 is half a character"),
            (b"\xff\xfea\0\x00\xd8", "byte 4 is half of a pair"),
            (b"\xff\xfe\x00\xdca\0", "byte 2 is half of a pair"),
        ] {
            assert!(read(bytes, false).unwrap_err().to_string().contains(what), "{what}");
        }
    }
}
