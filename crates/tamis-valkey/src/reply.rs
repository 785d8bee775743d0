//! What a command answers.

use std::borrow::Cow;

use crate::memory::NoMemory;

/// An answer; RESP2 and RESP3 spell some of these differently.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A status, such as OK.
    Simple(&'static str),
    /// A number.
    Int(i64),
    /// True or false; 1 or 0 in RESP2.
    Bool(bool),
    /// A fraction.
    Double(f64),
    /// Bytes.
    Bulk(Vec<u8>),
    /// Nothing.
    Null,
    /// An error among other elements.
    Error(Refusal),
    /// A list.
    Array(Vec<Self>),
    /// Names, which are statuses as RedisBloom's are, and values; a flat list in RESP2.
    Map(Vec<(&'static str, Self)>),
}

impl Reply {
    /// Done.
    pub(crate) const OK: Self = Self::Simple("OK");

    /// A number that is never near the limits of an `i64`.
    pub(crate) fn number(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// Text.
    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Bulk(text.as_ref().as_bytes().to_vec())
    }
}

/// Why a command was refused; nothing has changed then, except what the reply lists before it.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The wrong number of arguments.
    Arity,
    /// The key holds something else.
    WrongType,
    /// Any other reason, spelled as clients know it.
    Text(Cow<'static, str>),
}

impl From<&'static str> for Refusal {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<NoMemory> for Refusal {
    fn from(_: NoMemory) -> Self {
        "ERR Insufficient memory".into()
    }
}

/// What commands return.
pub(crate) type Answer = Result<Reply, Refusal>;
