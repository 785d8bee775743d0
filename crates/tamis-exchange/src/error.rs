//! Why a set could not be published or followed.

use std::fmt::Display;
use std::io;

use tamis::{DeltaError, WireError};

/// Why a set could not be published or followed. What was there before is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a server did not do what it was asked.
    #[error("{place}: {source}")]
    Io {
        /// The file or the address.
        place: String,
        /// What went wrong.
        source: io::Error,
    },
    /// A server answered, but not with what was asked for.
    #[error("{place}: the server answered {status}{}", advice(*.status))]
    Status {
        /// The address.
        place: String,
        /// The status of HTTP.
        status: u16,
    },
    /// There is no such set.
    #[error(
        "{place}: no set is published here; publish one with `tamis publish`, or check the name{}",
        scheme(.place)
    )]
    NoSet {
        /// Where its manifest would be.
        place: String,
    },
    /// A name that cannot be a folder of a store.
    #[error(
        "name {0:?}: use letters, digits, '.', '-' and '_', up to 100 of them, no '.' in front"
    )]
    Name(String),
    /// A manifest, a table or a file of keys is not what a publisher writes.
    #[error("{field}: {fault}")]
    Format {
        /// The part that is wrong.
        field: &'static str,
        /// What is wrong with it.
        fault: String,
    },
    /// The manifest is not signed by the key that was given.
    #[error("signature: {0}")]
    Signature(&'static str),
    /// The store offers an older version than one that was seen before.
    #[error(
        "version: the store offers {offered}, but {seen} was published before; it may be a stale mirror, or someone replays old files"
    )]
    Rollback {
        /// The version of the manifest.
        offered: u64,
        /// The newest version seen so far.
        seen: u64,
    },
    /// The manifest comes from the future.
    #[error(
        "time: the manifest was signed {ahead} s in the future; set the clock of this machine, or of the publisher"
    )]
    Clock {
        /// Seconds from now.
        ahead: u64,
    },
    /// Bytes are not those that the signed table names.
    #[error(
        "{place}: the bytes are not those that were published; the server or a cache on the way damages them"
    )]
    Damaged {
        /// The object.
        place: String,
    },
    /// The result is not what the publisher signed.
    #[error(
        "content: the manifest promises {promised}, but the objects give {found}; ask the publisher"
    )]
    Content {
        /// The content id that was signed.
        promised: tamis::ContentId,
        /// The content id of the result.
        found: tamis::ContentId,
    },
    /// Something is larger than the limit.
    #[error(
        "{field}: {need} bytes are more than the limit of {limit}; raise it if you trust the publisher"
    )]
    Limit {
        /// The part that is too large.
        field: &'static str,
        /// Its bytes.
        need: u64,
        /// The most that is allowed.
        limit: u64,
    },
    /// Another publisher was quicker.
    #[error("another publisher has just published version {0}; publish again on top of it")]
    Conflict(u64),
    /// A snapshot was refused.
    #[error("snapshot: {0}")]
    Wire(#[from] WireError),
    /// A delta cannot be made or applied.
    #[error("delta: {0}")]
    Delta(#[from] DeltaError),
}

impl Error {
    /// An error of a file or a server.
    pub(crate) fn io(place: &dyn Display) -> impl FnOnce(io::Error) -> Self {
        let place = place.to_string();
        move |source| Self::Io { place, source }
    }

    pub(crate) fn format(field: &'static str, fault: impl Into<String>) -> Self {
        Self::Format { field, fault: fault.into() }
    }

    /// Whether bytes came that lead nowhere, so that others should be tried.
    pub(crate) fn is_of_content(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::Content { .. } | Self::Wire(_) | Self::Delta(_))
    }

    /// Whether a store does not have any more what it had.
    pub(crate) fn is_loss(&self) -> bool {
        self.is_passing() || self.is_of_content() || matches!(self, Self::Format { .. })
    }

    /// Whether the same request may succeed a little later: an object may have been replaced
    /// since the manifest was read.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Status { status: 404 | 410, .. })
            || matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// What may be wrong with the address of a folder.
fn scheme(place: &str) -> &'static str {
    if place.contains("://") {
        return "";
    }
    " (the address of a web server begins with http:// or https://)"
}

/// What to do about a status.
fn advice(status: u16) -> &'static str {
    match status {
        404 | 410 => "; is this the address of a store, and the name of a set in it?",
        401 | 403 => "; this store may not be read without permission",
        500..=599 => "; it may work again later",
        _ => "",
    }
}
