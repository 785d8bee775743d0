//! Writing: pieces of bytes, borrowed from the filter where they can be.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use super::header::{Encoding, Header, Object, Section};
use crate::bits::Words;
use crate::coder::Packing;
use crate::digest::Hasher;
use crate::spec::Kind;

/// The data of one section.
#[derive(Debug)]
pub struct Payload<'a> {
    role: u8,
    encoding: Encoding,
    decoded: u64,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Payload<'a> {
    /// Words as they are in memory.
    pub(crate) fn raw(role: u8, words: &'a Words) -> Self {
        let bytes = words.as_le_bytes();
        Self { role, encoding: Encoding::Raw, decoded: bytes.len() as u64, bytes }
    }

    /// The same, with bytes of its own.
    pub(crate) fn into_owned<'b>(self) -> Payload<'b> {
        let Self { role, encoding, decoded, bytes } = self;
        Payload { role, encoding, decoded, bytes: Cow::Owned(bytes.into_owned()) }
    }

    /// Entropy-coded bytes that decode into `decoded` bytes of memory.
    pub(crate) fn packed(role: u8, bytes: Vec<u8>, decoded: u64) -> Self {
        Self { role, encoding: Encoding::Packed, decoded, bytes: Cow::Owned(bytes) }
    }

    /// An array of `bits` bits, entropy-coded.
    pub(crate) fn array(role: u8, words: &Words, bits: u64, how: Packing) -> Self {
        Self::packed(role, how.array(words.as_slice(), bits), words.len() as u64 * 8)
    }

    /// Bytes in a form of the kind's own that decode into `decoded` bytes of memory.
    pub(crate) fn trimmed(role: u8, bytes: Vec<u8>, decoded: u64) -> Self {
        Self { role, encoding: Encoding::Trimmed, decoded, bytes: Cow::Owned(bytes) }
    }
}

/// A filter as bytes. The pieces borrow the filter's memory, so that writing a large filter to a
/// file takes no second copy of it.
#[derive(Debug)]
pub struct Encoded<'a> {
    pieces: Vec<Cow<'a, [u8]>>,
}

impl Encoded<'_> {
    /// The pieces, to be written one after the other.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(AsRef::as_ref)
    }

    /// How many bytes all pieces have together.
    pub fn len(&self) -> u64 {
        self.pieces().map(|piece| piece.len() as u64).sum()
    }

    /// Never: there is always a header.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// All pieces in one vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() as usize);
        self.pieces().for_each(|piece| out.extend_from_slice(piece));
        out
    }
}

/// Puts the header and the sections together. The header's list of sections is filled in here.
pub(crate) fn encode(mut header: Header, payloads: Vec<Payload<'_>>) -> Encoded<'_> {
    let mut checksums = Vec::with_capacity(payloads.len());
    for payload in &payloads {
        let list: Vec<u8> = payload
            .bytes
            .chunks(Section::CHUNK)
            .flat_map(|chunk| xxh3_64(chunk).to_le_bytes())
            .collect();
        let (stored, checksum) = (payload.bytes.len() as u64, xxh3_64(&list));
        let Payload { role, encoding, decoded, .. } = *payload;
        header.sections.push(Section { role, encoding, offset: 0, stored, decoded, checksum });
        checksums.push(list);
    }
    header.lay_out();
    let mut end = header.encoded_len();
    let mut pieces = vec![Cow::Owned(header.encode())];
    for ((section, list), payload) in header.sections.iter().zip(checksums).zip(payloads) {
        let mut lead = vec![0; (section.offset - end) as usize - list.len()];
        lead.extend(list);
        pieces.push(Cow::Owned(lead));
        pieces.push(payload.bytes);
        end = section.offset + section.stored;
    }
    Encoded { pieces }
}

/// The bytes of a filter with `params` params and one section of `stored` bytes: what
/// [`Encoded::len`] would say, for planning.
pub(crate) fn planned_len(params: usize, encoding: Encoding, stored: u64) -> u64 {
    planned_sections(params, &[(encoding, stored)])
}

/// As [`planned_len`], for several sections.
pub(crate) fn planned_sections(params: usize, sections: &[(Encoding, u64)]) -> u64 {
    let (role, offset, checksum) = (0, 0, 0);
    let section =
        |&(encoding, stored)| Section { role, encoding, offset, stored, decoded: stored, checksum };
    let label = Hasher::default().into();
    let mut header = Header::new(Object::Filter, Kind::Bloom, label, vec![0; params]);
    header.sections.extend(sections.iter().map(section));
    header.lay_out()
}
