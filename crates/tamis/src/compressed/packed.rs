//! A plain filter that answers from its packed form, piece by piece.

use crate::bloom::{Bloom, BloomParams};
use crate::coder::{CoderError, PieceReader};
use crate::digest::Digest;
use crate::key::Key;
use crate::spec::{Invalid, Label, Limits, WireError};
use crate::stored::Stored;
use crate::wire::Frame;

/// Answers from a packed plain filter without unpacking all of it: a filter in pieces, as
/// [`Packing`](crate::Packing) writes it.
///
/// The paper proposes it (section II-B): "split the Bloom filter into several pieces, and
/// compress each piece. To look up a bit would only require decompressing a certain piece".
///
/// A question decodes the pieces of its positions one after the other, until it finds a bit that
/// is not set: up to `hashes` pieces for a present key, one or two for an absent one. Only one
/// piece is in memory at a time. Each takes microseconds to decode, so unpack the filter instead
/// if you ask often.
///
/// ```
/// use tamis::compressed::PackedBloom;
/// use tamis::{Bloom, Effort, Limits, Packing, Stored};
/// let mut filter = Bloom::with_rate(10_000, 0.01)?;
/// filter.insert("apple");
/// let packing = Packing::from(Effort::Best).in_pieces(4096);
/// let bytes = filter.pack(packing).to_vec();
/// let packed = PackedBloom::open(&bytes, Limits::default())?;
/// assert!(packed.contains("apple")? && !packed.contains("pear")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PackedBloom<'a> {
    params: BloomParams,
    label: Label,
    pieces: PieceReader<'a>,
}

impl<'a> PackedBloom<'a> {
    /// Opens a packed filter. Its header and checksums are checked now, and each piece when it is
    /// read. `limits` is for the memory of one piece.
    pub fn open(bytes: &'a [u8], limits: Limits) -> Result<Self, WireError> {
        let mut source = bytes;
        let mut frame = Frame::read(&mut source, Limits::NONE)?;
        let (label, params) = Bloom::begin(&frame)?;
        let (data, decoded) = frame.packed_in_place(bytes)?;
        frame.finish()?;
        if decoded != params.bits().div_ceil(64) * 8 {
            return Err(Invalid("the array has another length than the params say").into());
        }
        let pieces = PieceReader::new(data, params.bits()).map_err(|_| {
            Invalid("the array is not cut into pieces: unpack the filter, or pack it with pieces")
        })?;
        let need = pieces.piece_bits().min(params.bits()).div_ceil(64) * 8;
        if need > limits.memory {
            return Err(WireError::Limit { field: "piece", need, limit: limits.memory });
        }
        Ok(Self { params, label, pieces })
    }

    /// The params, which fix the layout.
    pub fn params(&self) -> BloomParams {
        self.params
    }

    /// The label: hash function and seed, keys, capacity.
    pub fn label(&self) -> Label {
        self.label
    }

    /// The pieces.
    pub fn pieces(&self) -> &PieceReader<'a> {
        &self.pieces
    }

    /// Whether `key` may be in the set. It is an error if a piece is not what an encoder writes.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> Result<bool, CoderError> {
        self.contains_digest(self.label.hasher.digest(key))
    }

    /// Whether a key with this digest may be in the set; see [`contains`](Self::contains).
    pub fn contains_digest(&self, digest: Digest) -> Result<bool, CoderError> {
        for position in self.params.positions(digest) {
            if !self.pieces.bit(position)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
