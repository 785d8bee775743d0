//! Keys are bytes: how each type spells itself, the same on every machine and for ever.
//!
//! `std::hash::Hash` is not used anywhere. What it feeds a hasher may change with the compiler,
//! the platform and the definition of the type, and a stored filter must outlive all three.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A key as canonical bytes.
///
/// Two keys are equal exactly when their bytes are equal, whatever their types: the string `"a"`
/// and the byte slice `b"a"` are one key.
///
/// | type | bytes |
/// |---|---|
/// | `str`, `String`, `char` | UTF-8 |
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | as they are |
/// | integers | little-endian, in their own width: `1u32` and `1u64` are different keys |
/// | slices and arrays of integers | one after the other |
/// | IP addresses | the octets in network order |
/// | references, `Box`, `Rc`, `Arc`, `Cow` | those of what they point to |
/// | tuples of 2 to 4 keys | for each: its length as a `u64`, then its bytes |
///
/// So `("ab", "c")` and `("a", "bc")` are different keys. `usize` is no key: its width, and with
/// it the bytes, would depend on the machine.
///
/// ```
/// use tamis::Key;
/// assert_eq!("a".with_bytes(<[u8]>::to_vec), b"a".with_bytes(<[u8]>::to_vec));
/// assert_eq!(258u16.with_bytes(<[u8]>::to_vec), [2, 1]);
/// assert_eq!([1u16, 2].with_bytes(<[u8]>::to_vec), [1, 0, 2, 0]);
/// ```
pub trait Key {
    /// Calls `f` with the canonical bytes of this key, and returns what `f` returns.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;
}

macro_rules! pointer_keys {
    ($($pointer:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $pointer {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(f)
            }
        }
    )*};
}
pointer_keys!(&K, &mut K, Box<K>, Rc<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(f)
    }
}

/// Implements `Key` for types whose bytes are an expression of the key.
macro_rules! keys {
    ($key:ident => $bytes:expr; $($(#[$about:meta])* $type:ty),*) => {$(
        $(#[$about])*
        impl Key for $type {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                let $key = self;
                f($bytes)
            }
        }
    )*};
}
keys!(bytes => bytes; [u8], Vec<u8>);
keys!(text => text.as_bytes(); str, String);
keys!(character => character.encode_utf8(&mut [0; 4]).as_bytes(); char);
keys!(integer => &integer.to_le_bytes(); u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);
keys!(address => &address.octets();
    /// The four octets in network order.
    Ipv4Addr,
    /// The sixteen octets in network order.
    Ipv6Addr
);

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

/// The bytes of a composite key, put together. They are on the stack as long as they are few.
struct Joined {
    few: [u8; FEW],
    len: usize,
    many: Vec<u8>,
}

/// Bytes that are kept on the stack. Most composite keys are shorter.
const FEW: usize = 128;

impl Joined {
    const EMPTY: Self = Self { few: [0; FEW], len: 0, many: Vec::new() };

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.many.is_empty() && end <= FEW {
            self.few[self.len..end].copy_from_slice(bytes);
        } else {
            if self.many.is_empty() {
                self.many.extend_from_slice(&self.few[..self.len]);
            }
            self.many.extend_from_slice(bytes);
        }
        self.len = end;
    }

    fn bytes(&self) -> &[u8] {
        if self.len <= FEW { &self.few[..self.len] } else { &self.many }
    }
}

macro_rules! integer_slice_keys {
    ($($int:ty)*) => {$(
        impl Key for [$int] {
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                let mut joined = Joined::EMPTY;
                for integer in self {
                    joined.push(&integer.to_le_bytes());
                }
                f(joined.bytes())
            }
        }

        impl<const N: usize> Key for [$int; N] {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                self.as_slice().with_bytes(f)
            }
        }
    )*};
}
// `[u8]` is not among these: it is a key without being copied.
integer_slice_keys!(u16 u32 u64 u128 i8 i16 i32 i64 i128);

macro_rules! tuple_keys {
    ($(($($part:ident $at:tt),*))*) => {$(
        impl<$($part: Key),*> Key for ($($part,)*) {
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                let mut joined = Joined::EMPTY;
                $(self.$at.with_bytes(|bytes| {
                    joined.push(&(bytes.len() as u64).to_le_bytes());
                    joined.push(bytes);
                });)*
                f(joined.bytes())
            }
        }
    )*};
}
tuple_keys!((A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3));

/// The octets of the address inside. An IPv4 address and its IPv6-mapped form are different keys.
impl Key for IpAddr {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::V4(address) => address.with_bytes(f),
            Self::V6(address) => address.with_bytes(f),
        }
    }
}
