//! Bytes as digits, for file names and files of keys.

use std::fmt::Write;

pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that [`encode`] wrote; `None` if `text` is not `N` bytes in lower case.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let is_digit = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        let digits = std::str::from_utf8(digits).ok().filter(|_| digits.iter().all(is_digit))?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(bytes)
}
