//! Attacks on the decoder.

use tamis::wire::{Encoding, Frame};
use tamis::{AnyFilter, Limits, WireError};
use tamis_report::memory;
use xxhash_rust::xxh3::xxh3_64;

/// What a decoder may allocate at once beyond the size of its input: its own bookkeeping.
const SLACK: usize = 16 << 10;
/// What it may spend on input that is not raw, and so may stand for more than it is long.
const LIMITS: Limits = Limits { memory: 4 << 20 };
/// How many bytes the cells of a trimmed bucket take for a byte of input while they are sorted: 24 a bit, in a vector that
/// doubles.
const TRIMMED: usize = 8 * 24 * 2;

/// Whether all sections of a header that is whole are raw.
pub fn is_raw(bytes: &[u8]) -> bool {
    let mut source = bytes;
    let frame = Frame::read(&mut source, LIMITS);
    frame.is_ok_and(|frame| frame.header().sections.iter().all(|it| it.encoding == Encoding::Raw))
}

/// Decodes and checks that no single allocation was larger than the input or the limits can justify.
///
/// # Panics
///
/// When the decoder allocated more.
pub fn decode(bytes: &[u8]) -> Result<AnyFilter, WireError> {
    let most = if is_raw(bytes) {
        bytes.len()
    } else {
        (LIMITS.memory as usize).max(bytes.len() * TRIMMED)
    };
    memory::forget_largest();
    let result = AnyFilter::decode(bytes, LIMITS);
    let largest = memory::largest();
    assert!(largest <= most + SLACK, "allocated {largest} for {}", bytes.len());
    result
}

/// Every truncation and every changed byte of valid bytes must be refused.
///
/// # Panics
///
/// When one is accepted.
pub fn attack(bytes: &[u8]) {
    assert!(decode(bytes).is_ok(), "the bytes to attack are valid");
    for len in 0..bytes.len() {
        assert!(decode(&bytes[..len]).is_err(), "cut to {len} bytes, and accepted");
    }
    let mut copy = bytes.to_vec();
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            copy[at] ^= change;
            assert!(decode(&copy).is_err(), "byte {at} changed by {change:#x}, and accepted");
            copy[at] ^= change;
        }
    }
    copy.push(0);
    assert!(decode(&copy).is_err(), "a byte too many, and accepted");
}

/// The bytes with a lie in the header, whose checksum is made right again.
pub fn forge(bytes: &[u8], lie: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    let len = 48 + 8 * usize::from(bytes[14]) + 40 * usize::from(bytes[15]);
    lie(&mut forged[..len]);
    let checksum = xxh3_64(&forged[..len]).to_le_bytes();
    forged[len..len + 8].copy_from_slice(&checksum);
    forged
}

/// The bytes with every checksum made right, as far as the header makes sense: so that a fuzzer gets behind them.
pub fn repair(bytes: &[u8]) -> Option<Vec<u8>> {
    let (params, sections) = (usize::from(*bytes.get(14)?), usize::from(*bytes.get(15)?));
    let table = 48 + 8 * params;
    let mut repaired = bytes.to_vec();
    if repaired.len() < table + 40 * sections + 8 {
        return None;
    }
    repaired[..8].copy_from_slice(&tamis::wire::MAGIC);
    repaired[8..10].copy_from_slice(&tamis::wire::VERSION.to_le_bytes());
    for entry in (0..sections).map(|section| table + 40 * section) {
        let word = |at: usize| {
            let bytes = bytes.get(entry + at..entry + at + 8)?;
            usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        let (offset, stored) = (word(8)?, word(16)?);
        let data = bytes.get(offset..offset.checked_add(stored)?)?;
        let list: Vec<u8> = data
            .chunks(tamis::wire::CHUNK)
            .flat_map(|chunk| xxh3_64(chunk).to_le_bytes())
            .collect();
        let start = offset.checked_sub(list.len()).filter(|&start| start >= table)?;
        repaired.get_mut(start..offset)?.copy_from_slice(&list);
        repaired[entry + 32..entry + 40].copy_from_slice(&xxh3_64(&list).to_le_bytes());
    }
    Some(forge(&repaired, |_| ()))
}
