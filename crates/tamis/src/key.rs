//! Keys are bytes: how each type of key spells itself, the same on every machine and for ever.
//!
//! `std::hash::Hash` is not used anywhere: what it feeds a hasher may change with the compiler, the
//! platform and the type's definition, and a stored filter must outlive all three.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A key as canonical bytes.
///
/// Two keys are the same key exactly when their bytes are the same, whatever their types: the string
/// `"a"` and the byte slice `b"a"` are one key. Integers are fixed-width little-endian, so `1u32` and
/// `1u64` are *different* keys: choose a width and stay with it. Composite keys are the caller's to
/// spell, with a separator or a length so that `("ab", "c")` and `("a", "bc")` differ.
///
/// ```
/// use tamis::Key;
/// assert_eq!("a".with_bytes(<[u8]>::to_vec), b"a".with_bytes(<[u8]>::to_vec));
/// assert_eq!(258u16.with_bytes(<[u8]>::to_vec), [2, 1]);
/// ```
pub trait Key {
    /// Calls `f` with the canonical bytes of this key.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(f)
    }
}

impl Key for [u8] {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

impl Key for Vec<u8> {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self)
    }
}

impl Key for str {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.as_bytes())
    }
}

impl Key for String {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.as_bytes())
    }
}

impl Key for Cow<'_, str> {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.as_bytes())
    }
}

macro_rules! integer_keys {
    ($($int:ty)*) => {$(
        impl Key for $int {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(&self.to_le_bytes())
            }
        }
    )*};
}
// No usize and isize: their width, and with it the key, would depend on the machine.
integer_keys!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128);

/// The four octets in network order.
impl Key for Ipv4Addr {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.octets())
    }
}

/// The sixteen octets in network order.
impl Key for Ipv6Addr {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.octets())
    }
}

/// The octets of the address inside: an IPv4 address and its IPv6-mapped form are different keys.
impl Key for IpAddr {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::V4(address) => address.with_bytes(f),
            Self::V6(address) => address.with_bytes(f),
        }
    }
}
