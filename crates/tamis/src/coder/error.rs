//! Why a frame was refused.

use core::fmt;

/// What decoding gives.
pub(super) type Result<T> = core::result::Result<T, CoderError>;

/// Why a frame was refused. Nothing was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoderError {
    /// The first byte names no coder.
    Coder(u8),
    /// The frame ends too early.
    Truncated,
    /// The frame goes on behind its end.
    Trailing,
    /// The count of ones is not one that an encoder writes for this length, or not the array's.
    Count,
    /// The payload is not one that an encoder writes.
    Payload,
    /// The index of the pieces is not one that an encoder writes.
    Index,
    /// The array has more bits than the coder may have for each byte of its frame.
    Expansion,
    /// There is no memory for the array.
    Memory,
    /// The position, or the number of the piece, is not in the array.
    Position(u64),
}

impl fmt::Display for CoderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coder(id) => write!(f, "coder: {id} is not known"),
            Self::Truncated => write!(f, "payload: the frame ends too early"),
            Self::Trailing => write!(f, "payload: the frame goes on behind its end"),
            Self::Count => write!(f, "ones: the count does not fit the array"),
            Self::Payload => write!(f, "payload: no encoder writes this"),
            Self::Index => write!(f, "index: the ends of the pieces do not fit the frame"),
            Self::Expansion => write!(f, "payload: too few bytes for so many bits"),
            Self::Memory => write!(f, "array: there is no memory for it"),
            Self::Position(at) => write!(f, "position: {at} is not in the array"),
        }
    }
}

impl core::error::Error for CoderError {}
