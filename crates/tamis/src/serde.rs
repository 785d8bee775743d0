//! Filters and deltas in serde: they are the bytes of the wire format, and are checked when they
//! are read.

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::aging::Aging;
use crate::any::AnyFilter;
use crate::delta::Delta;
use crate::spec::Limits;
use crate::stored::Stored;

/// Reads bytes. Formats without a type for bytes, such as JSON, have a sequence of numbers
/// instead.
struct Bytes;

impl<'de> Visitor<'de> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a tamis file")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = numbers.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

macro_rules! as_bytes {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&self.encode().to_vec())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let bytes = deserializer.deserialize_byte_buf(Bytes)?;
                Self::decode(&bytes, Limits::default()).map_err(Error::custom)
            }
        }
    )*};
}
as_bytes!(Aging, AnyFilter, Delta);

macro_rules! all_as_bytes {
    ($($id:literal $kind:ident $name:literal $type:ty,)*) => {
        as_bytes!($($type),*);
    };
}
kinds!(all_as_bytes);
