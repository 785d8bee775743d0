//! Attacks on the decoder.

use tamis::wire::{Encoding, Frame, Object};
use tamis::{AnyFilter, Delta, Digest, Effort, Filter, Limits, WireError};
use tamis_report::memory;
use xxhash_rust::xxh3::xxh3_64;

use crate::bombs;

/// The bytes that a decoder may hold for itself, beyond its limit or the length of raw input.
const SLACK: u64 = 1 << 20;
const RAW_SLACK: u64 = 16 << 10;
/// The limits for input that is not raw, and that may stand for more bytes than it has.
pub const LIMITS: Limits = Limits::memory(4 << 20);

/// Whether the header is complete and all its sections are raw.
pub fn is_raw(bytes: &[u8]) -> bool {
    let mut source = bytes;
    let frame = Frame::read(&mut source, LIMITS);
    frame.is_ok_and(|frame| frame.header().sections.iter().all(|it| it.encoding == Encoding::Raw))
}

/// Decodes, and checks that the decoder never held more memory than the input or the limits
/// justify.
///
/// # Panics
///
/// When the decoder held more.
pub fn decode(bytes: &[u8]) -> Result<AnyFilter, WireError> {
    let most = if is_raw(bytes) { bytes.len() as u64 + RAW_SLACK } else { LIMITS.memory + SLACK };
    let (result, peak) = memory::peak_of(|| AnyFilter::decode(bytes, LIMITS));
    assert!(peak <= most, "held {peak} for {} bytes: {result:?}", bytes.len());
    result
}

/// As [`decode`], for a delta.
///
/// # Panics
///
/// As [`decode`].
pub fn decode_delta(bytes: &[u8]) -> Result<Delta, WireError> {
    let (result, peak) = memory::peak_of(|| Delta::decode(bytes, LIMITS));
    assert!(peak <= LIMITS.memory + SLACK, "held {peak} for {} bytes", bytes.len());
    result
}

/// Calls every method of a filter that was accepted, and checks that it keeps its laws. Meanwhile
/// it may hold no more memory than the limit or, where it grows, than an old filter and a new one
/// twice as large.
///
/// # Panics
///
/// When it does not.
pub fn use_fully(mut filter: AnyFilter) {
    let held = filter.footprint() / 8;
    let ((), peak) = memory::peak_of(|| {
        filter.validate().expect("what was decoded is valid");
        let content = filter.content_id();
        for bytes in [
            filter.encode().to_vec(),
            filter.pack(Effort::Fast).to_vec(),
            filter.pack(Effort::Best).to_vec(),
        ] {
            let again = AnyFilter::decode(&bytes, Limits::NONE).expect("own bytes");
            assert_eq!(again.content_id(), content, "own bytes are another content");
        }
        for digest in [0, 1, 0x1234_5678_9abc_def0, u64::MAX].map(Digest) {
            filter.contains_digest(digest);
            let inserted = filter.as_insert().is_some_and(|it| it.insert_digest(digest).is_ok());
            assert!(!inserted || filter.contains_digest(digest), "lost");
            if let Some(count) = filter.as_count() {
                count.count_digest(digest);
            }
            if let Some(remove) = filter.as_remove() {
                let _ = remove.remove_digest(digest);
            }
        }
        filter.validate().expect("what was used is valid");
        let _ = (filter.rate(), filter.fill());
    });
    let most = LIMITS.memory.max(4 * held) + SLACK;
    assert!(held + peak <= most, "{} held {held} and {peak} in use", filter.kind().name());
}

/// A number that is invalid in many places.
fn strange(random: u64) -> u64 {
    let power = 1_u64 << (random >> 8 & 63);
    match random & 7 {
        0 => 0,
        1 => u64::MAX,
        2 => power - 1,
        3 => power + 1,
        4 => random >> 32,
        5 => random >> 50,
        _ => power,
    }
}

/// The bytes of a valid file after one to four changes, with valid checksums. Bytes, params and
/// claimed lengths are changed; data is cut, extended or repeated. `None` if the header of `bytes`
/// cannot be read.
pub fn mutated(bytes: &[u8], seed: u64) -> Option<Vec<u8>> {
    let mut turn = 0;
    let mut random = || {
        turn += 1;
        Digest(seed).word(turn)
    };
    let mut source = bytes;
    let header = Frame::read(&mut source, Limits::NONE).ok()?.header().clone();
    let mut params = header.params.clone();
    let mut sections: Vec<bombs::Section> = header
        .sections
        .iter()
        .map(|it| {
            let data = bytes[it.offset as usize..(it.offset + it.stored) as usize].to_vec();
            (it.role, it.encoding, data, it.decoded)
        })
        .collect();
    for _ in 0..=random() % 4 {
        let section = random() as usize % sections.len();
        let (role, encoding, data, decoded) = &mut sections[section];
        let at = random() as usize % data.len().max(1);
        match random() % 16 {
            0 => *decoded = strange(random()),
            1 => *decoded = decoded.wrapping_add(strange(random())),
            2 | 3 => {
                let param = random() as usize % params.len().max(1);
                if let Some(param) = params.get_mut(param) {
                    *param = match random() % 4 {
                        0 => param.wrapping_mul(2),
                        1 => *param / 2,
                        2 => param.wrapping_add(strange(random()) & 7).wrapping_sub(3),
                        _ => strange(random()),
                    };
                }
            }
            // Makes an array larger, up to all that is allowed, and changes its claimed length
            // accordingly. The array keeps its bytes or has only zeros.
            4 => {
                let all = LIMITS.memory / (*decoded).max(1);
                let factor = if random() % 2 == 0 { all } else { 1 << (random() % 16) };
                *decoded = decoded.wrapping_mul(factor);
                if let Some(first) = params.first_mut() {
                    *first = first.wrapping_mul(factor);
                }
                if *encoding == Encoding::Packed && random() % 2 == 0 {
                    *data = vec![4, 0];
                }
            }
            5 => data.truncate(at),
            6 => data.insert(at.min(data.len()), random() as u8),
            7 => {
                let part = data[at.min(data.len())..].to_vec();
                data.extend(part);
            }
            8 => {
                let end = (at + 24).min(data.len());
                data[at.min(end)..end].fill(if random() % 2 == 0 { 0xff } else { 0 });
            }
            9 => *role = random() as u8 % 8,
            10 => {
                *encoding =
                    [Encoding::Raw, Encoding::Trimmed, Encoding::Packed][random() as usize % 3];
            }
            _ => {
                if let Some(byte) = data.get_mut(at) {
                    *byte ^= 1 << (random() % 8) | random() as u8 & random() as u8;
                }
            }
        }
    }
    for (_, encoding, data, decoded) in &mut sections {
        if *encoding == Encoding::Raw {
            *decoded = data.len() as u64;
        }
    }
    let object = if random() % 64 == 0 { Object::Delta } else { header.object };
    Some(bombs::file(object, header.kind, &params, &sections))
}

/// Checks that every truncation and every changed byte of valid bytes is refused.
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

/// The bytes after `lie` changed the header, with a valid checksum.
pub fn forge(bytes: &[u8], lie: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    let len = 48 + 8 * usize::from(bytes[14]) + 40 * usize::from(bytes[15]);
    lie(&mut forged[..len]);
    let checksum = xxh3_64(&forged[..len]).to_le_bytes();
    forged[len..len + 8].copy_from_slice(&checksum);
    forged
}

/// The bytes with every checksum made valid, as far as the header makes sense, so that a fuzzer
/// gets past the checksums.
pub fn repair(bytes: &[u8]) -> Option<Vec<u8>> {
    let (params, sections) = (usize::from(*bytes.get(14)?), usize::from(*bytes.get(15)?));
    let table = 48 + 8 * params;
    let mut repaired = bytes.to_vec();
    if repaired.len() < table + 40 * sections + 8 {
        return None;
    }
    repaired[..8].copy_from_slice(&tamis::wire::MAGIC);
    repaired[8..10].copy_from_slice(&tamis::wire::Header::VERSION.to_le_bytes());
    for entry in (0..sections).map(|section| table + 40 * section) {
        let word = |at: usize| {
            let bytes = bytes.get(entry + at..entry + at + 8)?;
            usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
        };
        let (offset, stored) = (word(8)?, word(16)?);
        let data = bytes.get(offset..offset.checked_add(stored)?)?;
        let list: Vec<u8> = data
            .chunks(tamis::wire::Section::CHUNK)
            .flat_map(|chunk| xxh3_64(chunk).to_le_bytes())
            .collect();
        let start = offset.checked_sub(list.len()).filter(|&start| start >= table)?;
        repaired.get_mut(start..offset)?.copy_from_slice(&list);
        repaired[entry + 32..entry + 40].copy_from_slice(&xxh3_64(&list).to_le_bytes());
    }
    Some(forge(&repaired, |_| ()))
}
