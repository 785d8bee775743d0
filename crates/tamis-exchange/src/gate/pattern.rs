//! Which part of a path is the key.

use std::borrow::Cow;
use std::str::FromStr;

use crate::error::Error;

/// Stands for the key in a pattern.
const PLACE: &str = "{}";

/// A path with a key in it, such as `/{}.narinfo`.
///
/// ```
/// use tamis_exchange::gate::Pattern;
/// let pattern: Pattern = "/{}.narinfo".parse()?;
/// assert_eq!(pattern.key("/0abc.narinfo").as_deref(), Some(&b"0abc"[..]));
/// assert_eq!(pattern.key("/a%20b.narinfo").as_deref(), Some(&b"a b"[..]));
/// assert_eq!(pattern.key("/nix-cache-info"), None);
/// # Ok::<(), tamis_exchange::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    before: String,
    behind: String,
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parts = text.split_once(PLACE).filter(|parts| !parts.1.contains(PLACE));
        let (before, behind) = parts.filter(|parts| parts.0.starts_with('/')).ok_or_else(|| {
            let fault =
                format!("{text:?}: write a path with {{}} for the key, as in '/{{}}.narinfo'");
            Error::format("pattern", fault)
        })?;
        Ok(Self { before: before.to_owned(), behind: behind.to_owned() })
    }
}

impl Pattern {
    /// The key in a path. `None` if the path does not match, or if the origin might read it in
    /// another way: a key has no slash, and what is escaped must be escaped well.
    pub fn key<'a>(&self, path: &'a str) -> Option<Cow<'a, [u8]>> {
        let inner = path.strip_prefix(self.before.as_str())?;
        let inner = inner.strip_suffix(self.behind.as_str())?;
        let key = unescape(inner.as_bytes())?;
        (!key.is_empty() && !key.contains(&b'/')).then_some(key)
    }
}

/// The bytes that `%20` and the like stand for; `None` where no two digits follow.
fn unescape(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !text.contains(&b'%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_first_chunk::<2>()?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
        rest = behind;
    }
    Some(Cow::Owned(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_could_mean_another_key_do_not_match() {
        let pattern: Pattern = "/nix/{}.narinfo".parse().unwrap();
        let key = |path| pattern.key(path).map(|key| String::from_utf8(key.into_owned()).unwrap());
        assert_eq!(key("/nix/a.narinfo").as_deref(), Some("a"));
        assert_eq!(key("/nix/%61.narinfo").as_deref(), Some("a"));
        assert_eq!(key("/nix/a.narinfo.narinfo").as_deref(), Some("a.narinfo"));
        for path in [
            "/nix/.narinfo",
            "/nix/a/b.narinfo",
            "/nix//a.narinfo",
            "/nix/a%2fb.narinfo",
            "/nix/a%2.narinfo",
            "/nix/a%zz.narinfo",
            "/nix/a%+1.narinfo",
            "/nix/a.narinfo/",
            "/a.narinfo",
            "nix/a.narinfo",
            "",
        ] {
            assert_eq!(key(path), None, "{path}");
        }
    }

    #[test]
    fn a_pattern_has_one_key() {
        for text in ["", "/", "{}", "/{}/{}", "/a", "a/{}"] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains("'/{}.narinfo'"), "{error}");
        }
    }
}
