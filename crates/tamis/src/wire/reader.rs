//! Reading: from a slice, from any source of known length, or in place from shared bytes.

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64;

use super::header::{CHECKSUM, Encoding, FIXED, Header, Object, Section, u64_at};
use crate::bits::{Line, SharedBytes, Words};
use crate::coder::{self, CoderError};
use crate::spec::{Budget, Invalid, Kind, Label, Limits, WireError};

/// Where bytes come from: a slice, a file.
pub trait Source {
    /// How many bytes are left.
    fn remaining(&self) -> u64;

    /// Fills `buffer` with the next bytes; called only if as many remain. The error is a reason
    /// that the user reads.
    fn read(&mut self, buffer: &mut [u8]) -> Result<(), alloc::string::String>;
}

impl Source for &[u8] {
    fn remaining(&self) -> u64 {
        self.len() as u64
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), alloc::string::String> {
        let (now, later) = self.split_at(buffer.len());
        buffer.copy_from_slice(now);
        *self = later;
        Ok(())
    }
}

/// A header that has been checked, and the sections behind it, read one after the other.
pub struct Frame<'a> {
    header: Header,
    body: Body<'a>,
    next: usize,
    budget: Budget,
    /// Whether the filter was built by its own insertions, so that it need not be validated.
    sound: bool,
}

enum Body<'a> {
    /// Sections are copied, and every checksum is checked.
    Streamed(&'a mut dyn Source),
    /// Sections are used in place, unchecked.
    Shared(&'a SharedBytes),
}

impl<'a> Frame<'a> {
    /// Reads and checks the header.
    pub fn read(source: &'a mut dyn Source, limits: Limits) -> Result<Self, WireError> {
        let total = source.remaining();
        let mut fixed = [0; FIXED];
        fetch(source, &mut fixed, "header")?;
        let len = Header::len_from_fixed(&fixed)?;
        if (len as u64) > total {
            return Err(WireError::Truncated { field: "header", need: len as u64, have: total });
        }
        let mut bytes = fixed.to_vec();
        bytes.resize(len, 0);
        fetch(source, &mut bytes[FIXED..], "header")?;
        let header = Header::parse(&bytes, total)?;
        // Memory is counted piece by piece later; a header that claims too much is refused before
        // more is read.
        let claimed = header.sections.iter().map(|section| section.decoded);
        let mut budget = Budget::new(limits);
        budget.take(claimed.fold(0, u64::saturating_add))?;
        let (body, budget) = (Body::Streamed(source), Budget::new(limits));
        Ok(Self { header, body, next: 0, budget, sound: false })
    }

    /// Checks the header of bytes whose sections will be used in place. Sections for which that is
    /// impossible are read, within the default limits.
    pub fn share(bytes: &'a SharedBytes) -> Result<Self, WireError> {
        let mut source = (**bytes).as_ref();
        let header = Frame::read(&mut source, Limits::NONE)?.header;
        let (body, budget) = (Body::Shared(bytes), Budget::new(Limits::default()));
        Ok(Self { header, body, next: 0, budget, sound: false })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What reading may still take.
    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Records that the filter was built by its own insertions. Then it need not be validated,
    /// which would take long for a large table that was read from few bytes.
    pub(crate) fn set_sound(&mut self) {
        self.sound = true;
    }

    /// Whether the filter need not be validated.
    pub(crate) fn is_sound(&self) -> bool {
        self.sound
    }

    /// Label and params of the filter, which must be of this kind.
    pub(crate) fn begin(&self, object: Object, wanted: Kind) -> Result<(Label, &[u64]), WireError> {
        self.header.expect(object)?;
        let found = self.header.kind;
        if found != wanted {
            return Err(WireError::Kind { found: found.name(), wanted: wanted.name() });
        }
        Ok((self.header.label(), &self.header.params))
    }

    /// The array of `bits` bits in the next section, which must have the role `role` and be raw or
    /// packed.
    pub(crate) fn array(&mut self, role: u8, bits: u64) -> Result<Words, WireError> {
        let len = bits.div_ceil(64);
        if self.next_encoding() == Some(Encoding::Packed) {
            let (bytes, decoded) = self.packed(role)?;
            check_length(len, decoded)?;
            let damaged = Invalid("a packed array is not what an encoder writes");
            let refused = |error: CoderError| error.or(damaged);
            coder::check(&bytes, bits).map_err(refused)?;
            let mut words = self.budget.words(len)?;
            coder::decode_into(&bytes, bits, words.as_mut_slice()).map_err(refused)?;
            return Ok(words);
        }
        self.raw(role, bits)
    }

    /// As [`array`](Self::array), for a section that must be raw.
    pub(crate) fn raw(&mut self, role: u8, bits: u64) -> Result<Words, WireError> {
        let len = bits.div_ceil(64);
        let section = self.next_section(role, Encoding::Raw)?;
        check_length(len, section.decoded)?;
        if let Body::Shared(bytes) = &self.body {
            // The header was checked against the length of these bytes, so both numbers fit.
            let words = Words::shared(bytes, section.offset as usize, len as usize);
            if let Some(words) = words {
                return Ok(words);
            }
        }
        let mut words = self.budget.words(len)?;
        words.fill_from_le_bytes(|bytes| self.fill(&section, bytes))?;
        Ok(words)
    }

    /// Whether there is another section.
    pub(crate) fn has_more(&self) -> bool {
        self.next < self.header.sections.len()
    }

    /// The role of the next section, if there is one.
    pub(crate) fn next_role(&self) -> Option<u8> {
        self.header.sections.get(self.next).map(|section| section.role)
    }

    /// How the next section is encoded, if there is one.
    pub(crate) fn next_encoding(&self) -> Option<Encoding> {
        self.header.sections.get(self.next).map(|section| section.encoding)
    }

    /// The bytes of the next section, which must have the role `role` and be trimmed, and the
    /// bytes of memory that they claim to decode into.
    pub(crate) fn trimmed(&mut self, role: u8) -> Result<(Vec<u8>, u64), WireError> {
        self.bytes(role, Encoding::Trimmed)
    }

    /// As [`trimmed`](Self::trimmed), for a section that must be packed.
    pub(crate) fn packed(&mut self, role: u8) -> Result<(Vec<u8>, u64), WireError> {
        self.bytes(role, Encoding::Packed)
    }

    /// As [`packed`](Self::packed), for a file that is in memory as a whole: the bytes are
    /// borrowed.
    pub(crate) fn packed_in_place<'b>(
        &mut self,
        file: &'b [u8],
    ) -> Result<(&'b [u8], u64), WireError> {
        let section = self.header.sections.get(self.next).copied();
        let (_, decoded) = self.packed(0)?;
        let place = section.map_or(0..0, |section| {
            section.offset as usize..(section.offset + section.stored) as usize
        });
        Ok((file.get(place).unwrap_or_default(), decoded))
    }

    /// The checksums are checked also where the frame is shared, because the bytes must be read
    /// anyway.
    fn bytes(&mut self, role: u8, encoding: Encoding) -> Result<(Vec<u8>, u64), WireError> {
        let section = self.next_section(role, encoding)?;
        let mut bytes = self.budget.zeros(section.stored)?;
        self.fill(&section, &mut bytes)?;
        Ok((bytes, section.decoded))
    }

    /// Reads the section that was asked for last, every checksum checked.
    fn fill(&mut self, section: &Section, bytes: &mut [u8]) -> Result<(), WireError> {
        let before = self.next.checked_sub(2).and_then(|at| self.header.sections.get(at));
        let end = before.map_or(self.header.encoded_len(), |last| last.offset + last.stored);
        match &mut self.body {
            Body::Streamed(source) => read_section(*source, end, section, &mut self.budget, bytes),
            Body::Shared(shared) => {
                let mut source = &(***shared).as_ref()[end as usize..];
                read_section(&mut source, end, section, &mut self.budget, bytes)
            }
        }
    }

    fn next_section(&mut self, role: u8, encoding: Encoding) -> Result<Section, WireError> {
        let section = self.header.sections.get(self.next).copied().ok_or(WireError::Value {
            field: "section table",
            value: self.next as u64,
            expected: "a section for every part of the filter",
        })?;
        self.next += 1;
        let expected = "the sections of this kind in their order";
        WireError::require(section.role == role, "section role", section.role.into(), expected)?;
        let expected = "the encoding that sections of this kind have";
        let (fits, found) = (section.encoding == encoding, section.encoding as u64);
        WireError::require(fits, "section encoding", found, expected)?;
        Ok(section)
    }

    /// An error if a section was not asked for.
    pub(crate) fn finish(&self) -> Result<(), WireError> {
        let all = self.header.sections.len();
        let expected = "no sections beyond those of this kind";
        WireError::require(self.next == all, "section table", all as u64, expected)
    }
}

/// An error if a section does not decode into `len` words.
fn check_length(len: u64, decoded: u64) -> Result<(), WireError> {
    let fits = len.checked_mul(8) == Some(decoded);
    WireError::require(fits, "section length", decoded, "the length that the params ask for")
}

fn fetch(
    source: &mut (impl Source + ?Sized),
    buffer: &mut [u8],
    field: &'static str,
) -> Result<(), WireError> {
    let (need, have) = (buffer.len() as u64, source.remaining());
    if have < need {
        return Err(WireError::Truncated { field, need, have });
    }
    source.read(buffer).map_err(|reason| WireError::Read { field, reason })
}

/// Reads a section into `bytes`, with the padding and the chunk checksums in front of it, and
/// checks them. `end` is where the header or the section before it ends.
fn read_section(
    source: &mut dyn Source,
    end: u64,
    section: &Section,
    budget: &mut Budget,
    bytes: &mut [u8],
) -> Result<(), WireError> {
    // The header was checked against the input's length, so all of this is there, and its sums do
    // not overflow.
    let list = section.chunks() * CHECKSUM as u64;
    let mut padding = [0; Line::BYTES];
    let padding = &mut padding[..(section.offset - end - list) as usize];
    fetch(source, padding, "section padding")?;
    let stray = padding.iter().find(|&&byte| byte != 0).copied().unwrap_or(0);
    WireError::require(stray == 0, "section padding", stray.into(), "zeros")?;
    let mut checksums = budget.zeros(list)?;
    fetch(source, &mut checksums, "section checksums")?;
    if xxh3_64(&checksums) != section.checksum {
        return Err(WireError::Checksum { field: "section checksums" });
    }
    for (chunk, checksum) in bytes.chunks_mut(Section::CHUNK).zip(checksums.chunks_exact(CHECKSUM))
    {
        fetch(source, chunk, "section data")?;
        if xxh3_64(chunk) != u64_at(checksum, 0) {
            return Err(WireError::Checksum { field: "section data" });
        }
    }
    Ok(())
}
