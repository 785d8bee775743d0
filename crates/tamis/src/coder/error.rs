//! Why a frame was refused.

use crate::spec::{Invalid, WireError};

/// What decoding gives.
pub(super) type Result<T> = core::result::Result<T, CoderError>;

/// Why a frame was refused. Nothing was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CoderError {
    /// The first byte names no coder.
    #[error("coder: {0} is not known")]
    Coder(u8),
    /// The frame ends too early.
    #[error("payload: the frame ends too early")]
    Truncated,
    /// The frame goes on behind its end.
    #[error("payload: the frame goes on behind its end")]
    Trailing,
    /// The count of ones is not one that an encoder writes for this length, or not the array's.
    #[error("ones: the count does not fit the array")]
    Count,
    /// The payload is not one that an encoder writes.
    #[error("payload: no encoder writes this")]
    Payload,
    /// The index of the pieces is not one that an encoder writes.
    #[error("index: the ends of the pieces do not fit the frame")]
    Index,
    /// The array has more bits than the coder may have for each byte of its frame.
    #[error("payload: too few bytes for so many bits")]
    Expansion,
    /// There is no memory for the array.
    #[error("array: there is no memory for it")]
    Memory,
    /// The position, or the number of the piece, is not in the array.
    #[error("position: {0} is not in the array")]
    Position(u64),
}

impl CoderError {
    /// The error of the section that holds the frame: `damaged`, unless a later version may know
    /// the coder.
    pub(crate) fn or(self, damaged: Invalid) -> WireError {
        match self {
            Self::Coder(id) => WireError::unknown("coder", &id),
            _ => damaged.into(),
        }
    }
}
