//! The one wire format, version 1: filters and deltas as bytes, stable for ever.
//!
//! ```text
//! header   magic, version, object, kind, hash, seed, keys, capacity, params, sections, checksum
//! section  [zeros to alignment] [checksum of every chunk] [data, 64-byte aligned where raw]
//! section  ...
//! ```
//!
//! `docs/wire.md` describes every byte. Decoding treats its input as hostile: each length is
//! checked against the bytes that are there, all memory is counted against
//! [`Limits`](crate::Limits) before it is allocated, and every error names its field. Decoding
//! ends with the structure's own `validate()`, unless the structure was built by its own
//! insertions. Opening shared bytes in place checks the header only; `tamis verify` checks the
//! rest.

mod content;
mod encode;
#[cfg(feature = "std")]
mod file;
mod header;
#[cfg(feature = "mmap")]
mod map;
mod reader;

pub(crate) use content::ContentHasher;
pub use content::ContentId;
pub use encode::Encoded;
#[cfg(feature = "std")]
pub use file::ReadSource;
pub use header::{Encoding, Header, Object, Section};
#[cfg(feature = "mmap")]
pub use map::map;
pub use reader::{Frame, Source};

pub(crate) use encode::{Payload, encode, planned_len, planned_sections};

/// The first eight bytes: not text, not UTF-8, and broken by any transfer that touches line ends.
pub const MAGIC: [u8; 8] = *b"\x89TAMIS\r\n";
