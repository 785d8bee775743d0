//! Arguments as numbers, and options among them.

/// The argument as a whole number.
pub(crate) fn integer(argument: &[u8]) -> Option<i64> {
    str::from_utf8(argument).ok()?.parse().ok()
}

/// The argument as a fraction.
pub(crate) fn fraction(argument: &[u8]) -> Option<f64> {
    let value: f64 = str::from_utf8(argument).ok()?.parse().ok()?;
    (!value.is_nan()).then_some(value)
}

/// Whether the argument is this word, in capitals or not.
pub(crate) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// Whether the argument starts as this word does, in capitals or not.
pub(crate) fn starts(argument: &[u8], start: &str) -> bool {
    argument.get(..start.len()).is_some_and(|first| is(first, start))
}
