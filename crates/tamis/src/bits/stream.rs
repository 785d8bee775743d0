//! Bits one after the other: written to bytes, and read from bytes that may be hostile.

use alloc::vec::Vec;

/// Collects bits, the first in the lowest bit of the first byte.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    /// Bits that do not fill a word yet, and how many.
    pending: u64,
    held: u32,
}

impl BitWriter {
    /// Adds the lowest `width` bits (at most 64).
    #[inline]
    pub fn put(&mut self, value: u64, width: u32) {
        if width == 0 {
            return;
        }
        let value = value & u64::MAX >> (64 - width);
        self.pending |= value << self.held;
        if self.held + width < 64 {
            self.held += width;
            return;
        }
        self.bytes.extend(self.pending.to_le_bytes());
        let placed = 64 - self.held;
        self.held = width - placed;
        // With nothing left over a shift by 64 would be asked for.
        self.pending = if self.held == 0 { 0 } else { value >> placed };
    }

    /// The bytes, the last one filled with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        let rest = self.pending.to_le_bytes();
        self.bytes.extend(&rest[..self.held.div_ceil(8) as usize]);
        self.bytes
    }
}

/// Reads bits; every read says whether there were enough.
#[derive(Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Bits read so far.
    position: u64,
}

impl<'a> BitReader<'a> {
    /// Reads from the first bit on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bits that are left.
    pub fn left(&self) -> u64 {
        self.bytes.len() as u64 * 8 - self.position
    }

    /// The next `width` bits (at most 64).
    #[inline]
    pub fn get(&mut self, width: u32) -> Option<u64> {
        if self.left() < width.into() {
            return None;
        }
        if width > 56 {
            // Nine bytes may be touched; two reads never touch more than eight each.
            let low = self.get(32)?;
            return Some(low | self.get(width - 32)? << 32);
        }
        let (byte, offset) = ((self.position / 8) as usize, self.position % 8);
        let mut word = [0; 8];
        let there = (self.bytes.len() - byte).min(8);
        word[..there].copy_from_slice(&self.bytes[byte..byte + there]);
        self.position += u64::from(width);
        Some(u64::from_le_bytes(word) >> offset & ((1 << width) - 1))
    }

    /// Whether only the zeros that fill the last byte are left.
    pub fn ends_here(mut self) -> bool {
        let left = self.left();
        left < 8 && self.get(left as u32) == Some(0)
    }
}
