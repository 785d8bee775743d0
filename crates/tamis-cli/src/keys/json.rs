//! Keys in JSON: a field of the object that a line is.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::joined;

/// An object whose values have not been looked at.
#[derive(Deserialize)]
struct Object<'a>(#[serde(borrow)] BTreeMap<Cow<'a, str>, &'a RawValue>);

/// The key of a line.
pub(super) fn key<'a>(line: &'a [u8], fields: &[String]) -> Result<Cow<'a, [u8]>> {
    let line: &RawValue = serde_json::from_slice(line).context("it is no JSON object")?;
    let parts: Vec<_> = fields.iter().map(|field| value(line, field)).collect::<Result<_>>()?;
    Ok(joined(parts.into_iter()))
}

/// The field that a path with dots leads to: the text of a string, or a number as it is written.
fn value<'a>(line: &'a RawValue, path: &str) -> Result<Cow<'a, [u8]>> {
    let mut value = line;
    for name in path.split('.') {
        let Object(fields) =
            serde_json::from_str(value.get()).with_context(|| format!("{path}: no JSON object"))?;
        value = fields.get(name).with_context(|| format!("it has no field {path}"))?;
    }
    match value.get().as_bytes() {
        [b'"', ..] => match serde_json::from_str(value.get())? {
            Text(Cow::Borrowed(text)) => Ok(text.as_bytes().into()),
            Text(Cow::Owned(text)) => Ok(text.into_bytes().into()),
        },
        number @ [b'-' | b'0'..=b'9', ..] => Ok(number.into()),
        _ => bail!("field {path} is neither text nor a number: {value}"),
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_spelled() {
        let line =
            br#"{"id": 1.50, "user": {"name": "a\u00e9\n", "id": "7"}, "none": null, "b": true}"#;
        let key = |fields: &[&str]| {
            let fields: Vec<_> = fields.iter().map(ToString::to_string).collect();
            key(line, &fields).map(Cow::into_owned).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(key(&["id"]), Ok(b"1.50".to_vec()));
        assert_eq!(key(&["user.name"]), Ok("a\u{e9}\n".into()));
        assert_eq!(
            key(&["user.id", "id"]),
            Ok([&1u64.to_le_bytes()[..], b"7", &4u64.to_le_bytes(), b"1.50"].concat())
        );
        assert!(key(&["missing"]).unwrap_err().contains("no field missing"));
        assert!(key(&["id.name"]).unwrap_err().contains("id.name"));
        assert!(key(&["none"]).unwrap_err().contains("neither text nor a number: null"));
        assert!(key(&["user"]).unwrap_err().contains("neither text nor a number"));
    }
}
