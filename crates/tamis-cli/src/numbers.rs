//! Numbers as people write them: `10M`, `0.1%`, `1e-3`, `8MiB`.
//!
//! One grammar for counts and sizes, which is why there is no crate behind it: `bytesize` reads
//! `8MiB` but not `1e6`, `1_000_000` or `0.1%`.

/// A count: `10M`, `1e6`, `1_000_000`, `64Ki`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let example = "write for example 1000, 10k, 2.5M, 1e9 or 64Ki";
    let (number, suffix) = split(text);
    let unit = unit(suffix)
        .or((suffix == "B").then_some(1_000_000_000)) // B as in billion
        .ok_or_else(|| format!("'{suffix}' is not a unit of counts; {example}"))?;
    scale(number, unit).map_err(|error| format!("{error}; {example}"))
}

/// A size in bytes: `8MiB`, `8MB`, `1G`, `4096`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let example = "write for example 4096, 64kB, 8MiB or 1G";
    let (number, suffix) = split(text);
    let unit = unit(suffix.strip_suffix(['B', 'b']).unwrap_or(suffix))
        .ok_or_else(|| format!("'{suffix}' is not a unit of bytes; {example}"))?;
    scale(number, unit).map_err(|error| format!("{error} of bytes; {example}"))
}

/// A time in seconds: `20s`, `5m`, `1h`, `7d`, `90`.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let example = "write for example 20s, 5m, 1h or 7d";
    let (number, suffix) = split(text);
    let unit = match suffix {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(format!("'{suffix}' is not a unit of time; {example}")),
    };
    scale(number, unit).map_err(|error| format!("{error} of seconds; {example}"))
}

/// A probability strictly between 0 and 1: `0.1%`, `1e-3`, `0.001`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    match part(text)? {
        rate if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err(format!("a rate lies between 0 and 1 (0% and 100%), both excluded; {PARTS}")),
    }
}

/// A share above 0, and all of it at most: `1%`, `0.01`, `100%`.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match part(text)? {
        share if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(format!("a share lies above 0% and is at most 100%; {PARTS}")),
    }
}

const PARTS: &str = "write for example 1%, 0.1% or 1e-3";

fn part(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    Ok(number.parse::<f64>().map_err(|_| format!("not a number; {PARTS}"))? / scale)
}

/// A seed: decimal, or hexadecimal after `0x`.
pub(crate) fn seed(text: &str) -> Result<u128, String> {
    let digits = text.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16),
        None => digits.parse(),
    }
    .map_err(|_| "a seed is a number of at most 128 bits, such as 42 or 0x2a".to_owned())
}

/// A param and its value: `block=512`.
pub(crate) fn param(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write name=number, for example block=512")?;
    Ok((name.to_owned(), count(value)?))
}

/// One byte: itself, or `\t`, `\0`, `\xHH`.
pub(crate) fn byte(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        &[byte] => Ok(byte),
        b"\\t" => Ok(b'\t'),
        b"\\0" => Ok(0),
        b"\\\\" => Ok(b'\\'),
        [b'\\', b'x', hex @ ..] if hex.len() == 2 => u8::from_str_radix(&text[2..], 16)
            .map_err(|_| format!("'{text}' is not a byte; write for example \\x1f")),
        _ => Err("must be one byte; write for example , or \\t or \\x1f".to_owned()),
    }
}

fn split(text: &str) -> (&str, &str) {
    let number = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    (number.trim_end(), &text[number.len()..])
}

fn unit(suffix: &str) -> Option<u64> {
    Some(match suffix {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "ki" | "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    })
}

/// Why a number is none that can be counted with.
#[derive(Debug, PartialEq)]
enum NotCounted {
    /// Not a number, or not a whole one.
    NotWhole,
    TooLarge,
}

impl std::fmt::Display for NotCounted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotWhole => write!(out, "not a whole number"),
            Self::TooLarge => write!(out, "more than {}, the largest whole number", u64::MAX),
        }
    }
}

/// The number times the unit, digit by digit: doubles would round large ones.
fn scale(number: &str, unit: u64) -> Result<u64, NotCounted> {
    let number = number.replace('_', "");
    let (digits, power) = match number.split_once(['e', 'E']) {
        Some((digits, power)) => (digits, power.parse().map_err(|_| NotCounted::NotWhole)?),
        None => (number.as_str(), 0_i32),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(NotCounted::NotWhole);
    }
    // Zeros at the end of a fraction say nothing.
    let kept = digits.trim_end_matches('0');
    let power = i64::from(power) - fraction.len() as i64 + (digits.len() - kept.len()) as i64;
    let value: u128 = match kept.trim_start_matches('0') {
        "" => return Ok(0),
        kept => kept.parse().map_err(|_| NotCounted::TooLarge)?,
    };
    let value = value.checked_mul(unit.into()).ok_or(NotCounted::TooLarge)?;
    let ten = |power: u64| 10_u128.checked_pow(u32::try_from(power).unwrap_or(u32::MAX));
    let value = if power >= 0 {
        ten(power as u64).and_then(|ten| value.checked_mul(ten)).ok_or(NotCounted::TooLarge)?
    } else {
        let ten = ten(power.unsigned_abs()).filter(|ten| value % ten == 0);
        value / ten.ok_or(NotCounted::NotWhole)?
    };
    u64::try_from(value).map_err(|_| NotCounted::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, value) in [
            ("0", 0),
            ("10M", 10_000_000),
            ("1e6", 1_000_000),
            ("1_000_000", 1_000_000),
            ("2.5k", 2_500),
            ("1B", 1_000_000_000),
            ("3G", 3_000_000_000),
            ("64Ki", 65_536),
            ("1Mi", 1 << 20),
            ("1 M", 1_000_000),
            ("18446744073709551615", u64::MAX),
            ("1e19", 10_000_000_000_000_000_000),
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("1.50e1", 15),
            ("20e-1", 2),
            ("0.0", 0),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in ["2e19", "18446744073709551616", "1e30", "1e999999999", "20000000T"] {
            assert!(
                count(text).unwrap_err().starts_with("more than 18446744073709551615"),
                "{text}"
            );
        }
        for text in ["1.5", "1e-1", "1.2.3", "1e1.5", "."] {
            assert!(count(text).unwrap_err().starts_with("not a whole number"), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "10X", "nan", "inf", "1e30", "20000000T", "1e", "0x10"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, value) in [
            ("4096", 4096),
            ("4096B", 4096),
            ("8MiB", 8 << 20),
            ("8Mi", 8 << 20),
            ("8MB", 8_000_000),
            ("1G", 1_000_000_000),
            ("1.5GiB", 3 << 29),
            ("64kB", 64_000),
        ] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
        for text in ["", "MiB", "-1MiB", "8Mb/s", "0.1B"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates() {
        for (text, value) in
            [("0.1%", 1e-3), ("1%", 1e-2), ("1e-3", 1e-3), ("0.001", 1e-3), ("50 %", 0.5)]
        {
            assert_eq!(rate(text), Ok(value), "{text}");
        }
        for text in ["0", "1", "100%", "-1%", "nan", "inf", "-inf", "2", "", "%", "a%"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!((share("100%"), share("0.5")), (Ok(1.0), Ok(0.5)));
        assert!(share("0").is_err() && share("101%").is_err() && share("nan").is_err());
    }

    #[test]
    fn seeds_and_params_and_bytes() {
        assert_eq!(seed("42"), Ok(42));
        assert_eq!(seed("0x2a"), Ok(42));
        assert_eq!(seed(&u128::MAX.to_string()), Ok(u128::MAX));
        assert!(seed("").is_err() && seed("-1").is_err() && seed("x").is_err());
        assert_eq!(param("block=512"), Ok(("block".to_owned(), 512)));
        assert!(param("block").is_err() && param("block=").is_err());
        assert_eq!(byte(","), Ok(b','));
        assert_eq!(byte("\\t"), Ok(b'\t'));
        assert_eq!(byte("\\x1f"), Ok(0x1f));
        assert!(byte("").is_err() && byte("ab").is_err() && byte("\\xzz").is_err());
    }
}
