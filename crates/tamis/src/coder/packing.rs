//! How a filter is packed.

use alloc::vec::Vec;

use super::{Effort, encode, encode_pieces};

/// How a filter is packed: an [`Effort`], and whether arrays are cut into pieces.
///
/// Pieces make a message somewhat longer, but a reader that needs a few bits decodes only the
/// pieces that have them: see [`PackedBloom`](crate::compressed::PackedBloom), and section II-B of
/// paper 004. Only arrays of bits are cut: see
/// [`AnyFilter::packs_an_array`](crate::AnyFilter::packs_an_array).
///
/// ```
/// use tamis::{Bloom, Effort, Packing, Stored};
/// let filter = Bloom::with_rate(10_000, 0.01)?;
/// let bytes = filter.pack(Packing::from(Effort::Best).in_pieces(4096)).to_vec();
/// assert_eq!(Bloom::from_bytes(&bytes)?, filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packing {
    /// Whether packing should be fast or the result short.
    pub effort: Effort,
    /// Bits of a piece, rounded up to a power of two of at least 64; `None` leaves the array
    /// whole.
    pub piece_bits: Option<u64>,
}

impl From<Effort> for Packing {
    fn from(effort: Effort) -> Self {
        Self { effort, piece_bits: None }
    }
}

impl Packing {
    /// The same, with arrays cut into pieces of `bits` bits, rounded up to a power of two of at
    /// least 64.
    #[must_use]
    pub fn in_pieces(self, bits: u64) -> Self {
        Self { piece_bits: Some(bits), ..self }
    }

    /// Codes an array of `bits` bits as a frame, in pieces or whole.
    pub(crate) fn array(self, words: &[u64], bits: u64) -> Vec<u8> {
        match self.piece_bits {
            None => encode(words, bits, self.effort),
            Some(piece_bits) => encode_pieces(words, bits, piece_bits, self.effort),
        }
    }
}
