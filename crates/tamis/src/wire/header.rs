//! The header: what a filter is, and where its sections are.

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use super::MAGIC;
use crate::bits::Line;
use crate::digest::{HashId, Hasher};
use crate::spec::{Kind, Label, WireError};

/// Bytes before the parameters.
pub(super) const FIXED: usize = 48;
/// Bytes of one entry of the section table.
const ENTRY: usize = 40;
/// Bytes of a checksum.
pub(super) const CHECKSUM: usize = 8;

/// What the bytes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Object {
    /// A whole filter.
    Filter = 1,
    /// What turns one filter into another.
    Delta = 2,
    /// A filter whose keys expire: [`Aging`](crate::Aging).
    Aging = 3,
    /// What turns one filter whose keys expire into another.
    AgingDelta = 4,
}

/// How the data of a section is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Encoding {
    /// Little-endian words as they are in memory, 64-byte aligned, so that they can be mapped.
    Raw = 0,
    /// Only what is in use, in a form of the kind's own; see `docs/wire.md`.
    Trimmed = 1,
    /// Entropy-coded; see `docs/wire.md`.
    Packed = 2,
}

impl Encoding {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Trimmed => "trimmed",
            Self::Packed => "packed",
        }
    }
}

/// One entry of the section table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// What the section is to its filter; each kind numbers its own.
    pub role: u8,
    /// How the data is written.
    pub encoding: Encoding,
    /// Where the data starts, from the first byte of the header.
    pub offset: u64,
    /// Bytes of data.
    pub stored: u64,
    /// Bytes of memory that the data decodes into.
    pub decoded: u64,
    /// XXH3 of the checksums of the chunks.
    pub checksum: u64,
}

impl Section {
    /// Every chunk of this many bytes has a checksum, so that a part can be checked without
    /// reading all.
    pub const CHUNK: usize = 1 << 20;

    /// How many chunks the data is checked in.
    pub(super) fn chunks(&self) -> u64 {
        self.stored.div_ceil(Self::CHUNK as u64)
    }

    /// Where the data must start if everything before the section ends at `end`: behind the chunk
    /// checksums, and on a line boundary if it is raw. `None` on overflow.
    fn expected_offset(&self, end: u64) -> Option<u64> {
        let after_checksums = end.checked_add(self.chunks().checked_mul(CHECKSUM as u64)?)?;
        match self.encoding {
            Encoding::Raw => after_checksums.checked_next_multiple_of(Line::BYTES as u64),
            Encoding::Trimmed | Encoding::Packed => Some(after_checksums),
        }
    }
}

/// Everything that stands before the sections.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// What the bytes hold.
    pub object: Object,
    /// The kind of the filter.
    pub kind: Kind,
    /// Hash function and seed.
    pub hasher: Hasher,
    /// Insertions less removals.
    pub keys: u64,
    /// Keys that the filter was planned for; 0 if nothing was planned.
    pub capacity: u64,
    /// The parameters, in the order of the kind.
    pub params: Vec<u64>,
    /// The sections, in the order in which they are stored.
    pub sections: Vec<Section>,
}

impl Header {
    /// The version of the format.
    pub const VERSION: u16 = 1;

    /// A header without sections, which [`encode`](super::encode) fills in.
    pub(crate) fn new(object: Object, kind: Kind, label: Label, params: Vec<u64>) -> Self {
        let Label { hasher, keys, capacity } = label;
        Self { object, kind, hasher, keys, capacity, params, sections: Vec::new() }
    }

    /// What the filter carries beside params and content.
    pub(crate) fn label(&self) -> Label {
        let Self { hasher, keys, capacity, .. } = *self;
        Label { hasher, keys, capacity }
    }

    /// `Ok` if the bytes hold what is `wanted`.
    pub(crate) fn expect(&self, wanted: Object) -> Result<(), WireError> {
        use Object::{Aging, AgingDelta, Delta, Filter};
        let expected = match (self.object, wanted) {
            (found, wanted) if found == wanted => return Ok(()),
            (Filter | Aging, Delta | AgingDelta) => "this is a filter, not a delta",
            (Delta | AgingDelta, Filter | Aging) => {
                "this is a delta, not a filter; apply it with tamis patch"
            }
            (Filter, _) => "this is a filter whose keys do not expire",
            (Delta, _) => "this is a delta of a filter whose keys do not expire",
            (Aging, _) => "this is a filter whose keys expire",
            (AgingDelta, _) => "this is a delta of a filter whose keys expire",
        };
        Err(WireError::Value { field: "object", value: self.object as u64, expected })
    }

    /// Bytes that the header takes.
    pub fn encoded_len(&self) -> u64 {
        header_len(self.params.len(), self.sections.len()) as u64
    }

    /// Gives every section the offset that it must have; returns the end of the last.
    pub(super) fn lay_out(&mut self) -> u64 {
        let mut end = self.encoded_len();
        for section in &mut self.sections {
            // Sections are in memory when they are written, so their sum cannot overflow.
            section.offset = section.expected_offset(end).unwrap_or(u64::MAX);
            end = section.offset.saturating_add(section.stored);
        }
        end
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(header_len(self.params.len(), self.sections.len()));
        out.extend(MAGIC);
        out.extend(Self::VERSION.to_le_bytes());
        out.push(self.object as u8);
        out.push(self.hasher.id() as u8);
        out.extend(self.kind.id().to_le_bytes());
        out.push(self.params.len() as u8);
        out.push(self.sections.len() as u8);
        out.extend(self.hasher.seed().to_le_bytes());
        out.extend(self.keys.to_le_bytes());
        out.extend(self.capacity.to_le_bytes());
        debug_assert_eq!(out.len(), FIXED);
        for param in &self.params {
            out.extend(param.to_le_bytes());
        }
        for section in &self.sections {
            out.extend([section.role, section.encoding as u8, 0, 0, 0, 0, 0, 0]);
            for field in [section.offset, section.stored, section.decoded, section.checksum] {
                out.extend(field.to_le_bytes());
            }
        }
        out.extend(xxh3_64(&out).to_le_bytes());
        out
    }

    /// The length of the header that starts with the fixed part `fixed`, after the checks without
    /// which its length means nothing.
    pub(super) fn len_from_fixed(fixed: &[u8; FIXED]) -> Result<usize, WireError> {
        if fixed[..8] != MAGIC {
            return Err(WireError::Magic);
        }
        let version = u16_at(fixed, 8);
        if version != Self::VERSION {
            return Err(WireError::unknown("version", &version));
        }
        Ok(header_len(fixed[14].into(), fixed[15].into()))
    }

    /// Parses a whole header whose input is `total` bytes long.
    pub(super) fn parse(bytes: &[u8], total: u64) -> Result<Self, WireError> {
        let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        // The checksum comes first: a damaged header must not be blamed on a field.
        if u64_at(checksum, 0) != xxh3_64(body) {
            return Err(WireError::Checksum { field: "header" });
        }
        let object = match body[10] {
            1 => Object::Filter,
            2 => Object::Delta,
            3 => Object::Aging,
            4 => Object::AgingDelta,
            other => return Err(WireError::unknown("object", &other)),
        };
        let hash =
            HashId::from_id(body[11]).ok_or_else(|| WireError::unknown("hash", &body[11]))?;
        let seed = u128::from(u64_at(body, 16)) | u128::from(u64_at(body, 24)) << 64;
        let hasher = Hasher::from_parts(hash, seed).ok_or(WireError::Value {
            field: "seed",
            value: u64_at(body, 24),
            expected: "the upper half is zero for xxh3 and xxh64",
        })?;
        let kind = u16_at(body, 12);
        let kind = Kind::from_id(kind).ok_or_else(|| WireError::unknown("kind", &kind))?;
        let (params, table) = body[FIXED..].split_at(usize::from(body[14]) * 8);
        let mut header = Self {
            object,
            kind,
            hasher,
            keys: u64_at(body, 32),
            capacity: u64_at(body, 40),
            params: params.chunks_exact(8).map(|bytes| u64_at(bytes, 0)).collect(),
            sections: Vec::with_capacity(body[15].into()),
        };
        let mut end = bytes.len() as u64;
        for entry in table.chunks_exact(ENTRY) {
            let section = parse_entry(entry)?;
            let follows = section.expected_offset(end) == Some(section.offset);
            let expected = "sections follow each other without gaps";
            WireError::require(follows, "section offset", section.offset, expected)?;
            end = section.offset.saturating_add(section.stored);
            header.sections.push(section);
        }
        if end > total {
            return Err(WireError::Truncated { field: "sections", need: end, have: total });
        }
        WireError::require(end == total, "end", total - end, "no bytes follow the last section")?;
        Ok(header)
    }
}

fn header_len(params: usize, sections: usize) -> usize {
    FIXED + params * 8 + sections * ENTRY + CHECKSUM
}

fn parse_entry(entry: &[u8]) -> Result<Section, WireError> {
    let encoding = match entry[1] {
        0 => Encoding::Raw,
        1 => Encoding::Trimmed,
        2 => Encoding::Packed,
        other => return Err(WireError::unknown("section encoding", &other)),
    };
    let reserved = u64_at(entry, 0) >> 16;
    if reserved != 0 {
        return Err(WireError::unknown("section reserved", &reserved));
    }
    let section = Section {
        role: entry[0],
        encoding,
        offset: u64_at(entry, 8),
        stored: u64_at(entry, 16),
        decoded: u64_at(entry, 24),
        checksum: u64_at(entry, 32),
    };
    let fits = section.encoding != Encoding::Raw || section.stored == section.decoded;
    let expected = "raw data is as long as what it stands for";
    WireError::require(fits, "section length", section.stored, expected)?;
    Ok(section)
}

/// The little-endian word at `offset`, which must be inside `bytes`.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}
