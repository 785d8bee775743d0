//! Arguments as numbers, and options among them. A number is what the server takes for one in its
//! own commands: a test compares them.

/// The argument as a whole number, which has one spelling.
pub(crate) fn integer(argument: &[u8]) -> Option<i64> {
    if matches!(argument, [b'+', ..] | [b'0', _, ..] | [b'-', b'0', ..]) {
        return None;
    }
    str::from_utf8(argument).ok()?.parse().ok()
}

/// The argument as a fraction. (Redis 7 also takes hexadecimal ones, Valkey 9 does not.)
pub(crate) fn fraction(argument: &[u8]) -> Option<f64> {
    let text = str::from_utf8(argument).ok()?;
    let value: f64 = text.parse().ok()?;
    // What is too large or too small for a number of 64 bits is none.
    let is_too_large = value.is_infinite() && text.contains(|c: char| c.is_ascii_digit());
    let mantissa = text.split(['e', 'E']).next()?;
    let is_too_small = value == 0.0 && mantissa.contains(|c: char| matches!(c, '1'..='9'));
    (!value.is_nan() && !is_too_large && !is_too_small).then_some(value)
}

/// Whether the argument is this word, in capitals or not.
pub(crate) fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// Whether a letter of the argument is this capital, or its small one.
pub(crate) fn letter(argument: &[u8], at: usize, capital: u8) -> bool {
    argument.get(at).is_some_and(|letter| letter.eq_ignore_ascii_case(&capital))
}

/// The arguments after the first one that is this word.
pub(crate) fn after<'a, I: Iterator<Item = &'a [u8]>>(mut arguments: I, word: &str) -> Option<I> {
    arguments.find(|argument| is(argument, word))?;
    Some(arguments)
}
