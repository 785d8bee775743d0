//! The memory that reading may take, and why bytes are refused.

use alloc::format;
use alloc::string::{String, ToString};

use super::{Invalid, InvalidParam};

/// What a decoder may spend on one input, even a hostile one.
///
/// Time is limited too, by the memory and by the input: at most a second of processor time for
/// every gigabyte allowed, and four microseconds for every byte of input. So a few bytes that
/// claim much are answered or refused at once.
///
/// ```
/// use tamis::{Bloom, Limits, Stored};
/// let bytes = Bloom::with_rate(100_000, 0.01)?.to_bytes();
/// assert!(Bloom::decode(&bytes, Limits::memory(1 << 20)).is_ok());
/// assert!(Bloom::decode(&bytes, Limits::memory(1_000)).is_err());
/// # Ok::<(), tamis::PlanError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most bytes of memory that are held at once while reading. They include the filter or
    /// delta itself, stored bytes that have to be unpacked, and lists that the filter is built
    /// from. Beyond them at most a megabyte is used, for small things.
    ///
    /// A filter in its plain form takes little more than its own size. Unpacking takes the packed
    /// bytes as well, and in `blocked-rank` up to 144 bytes for each key that finds no room in its
    /// block. Of a filter that is as full as planned that is one key in ten at most.
    pub memory: u64,
}

impl Default for Limits {
    /// 1 GiB: a machine with 4 GB can read two files at once and has as much left.
    fn default() -> Self {
        Self { memory: 1 << 30 }
    }
}

impl Limits {
    /// At most `bytes` bytes of memory.
    pub const fn memory(bytes: u64) -> Self {
        Self { memory: bytes }
    }

    /// No limit but the memory of the machine. Use it only for bytes that your own program wrote.
    pub const NONE: Self = Self { memory: u64::MAX };
}

/// Why bytes were refused. Damage is told with the field of the format that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The input does not start as the format does.
    #[error("not a tamis file")]
    Magic,
    /// The input ends before the field does.
    #[error("{}", cut_off(field, *need, *have))]
    Truncated {
        /// The field.
        field: &'static str,
        /// Bytes up to its end. For `sections` that is the length of the whole.
        need: u64,
        /// Bytes there.
        have: u64,
    },
    /// The field has a value that no encoder writes.
    #[error("{}", not_valid(field, *value, expected))]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What would be accepted.
        expected: &'static str,
    },
    /// The bytes of the field are not those that were written.
    #[error("{field}: checksum does not match; the data is damaged")]
    Checksum {
        /// The field.
        field: &'static str,
    },
    /// The field would take more memory than [`Limits`] allow, or than there is.
    #[error(
        "{field}: {need} bytes are beyond the limit of {limit}; raise the limit if you trust the source"
    )]
    Limit {
        /// The field.
        field: &'static str,
        /// Bytes it would take.
        need: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The field is from a later version, or of a kind that this build does not know.
    #[error("{field}: {value} is not known to this version of tamis; use a newer one")]
    Unknown {
        /// The field.
        field: &'static str,
        /// Its value, and the name reserved for it if there is one.
        value: String,
    },
    /// The field is right, but the filter is of another kind than the one asked for.
    #[error("kind: the file holds {found}, not {wanted}")]
    Kind {
        /// The kind in the file.
        found: &'static str,
        /// The kind asked for.
        wanted: &'static str,
    },
    /// The bytes could not be read at all.
    #[error("{field}: {reason}")]
    Read {
        /// The field being read.
        field: &'static str,
        /// What the source said.
        reason: String,
    },
    /// Well-formed, but the structure inside breaks one of its invariants.
    #[error("content: {}", .0.0)]
    Content(#[from] Invalid),
    /// A param is out of range.
    #[error(transparent)]
    Params(#[from] InvalidParam),
}

/// What is wrong with bytes that end before `field` does.
fn cut_off(field: &str, need: u64, have: u64) -> String {
    match field {
        "sections" => format!("the file is cut off: {have} bytes of {need}"),
        _ => format!("the file is cut off after {have} bytes, in the {field}"),
    }
}

/// What is wrong with the value of a field.
fn not_valid(field: &str, value: u64, expected: &str) -> String {
    match (field, value) {
        // Here `expected` says it all: the value is a number that only the format knows.
        ("object", _) => expected.to_string(),
        ("end", 1) => "1 byte too many at the end".to_string(),
        ("end", _) => format!("{value} bytes too many at the end"),
        _ => format!("{field}: {value} is not valid; {expected}"),
    }
}

impl WireError {
    /// `Ok` if `fits`, otherwise the error that `field` has the value `value` and not what is
    /// `expected`.
    pub(crate) fn require(
        fits: bool,
        field: &'static str,
        value: u64,
        expected: &'static str,
    ) -> Result<(), Self> {
        if fits { Ok(()) } else { Err(Self::Value { field, value, expected }) }
    }

    /// The error for a value that only a later version may know.
    pub(crate) fn unknown(field: &'static str, value: &(impl ToString + ?Sized)) -> Self {
        Self::Unknown { field, value: value.to_string() }
    }
}
