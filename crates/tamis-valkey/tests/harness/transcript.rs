//! Conversations with a server: lines that start with `>` are said, the line after each is the
//! reply, `#` starts a remark.
//!
//! Where RESP2 and RESP3 differ, ` | ` stands between the two; `*` stands for anything.

use super::Client;

/// Holds the conversation, in RESP2 or RESP3.
pub fn run(text: &str, client: &mut Client, resp3: bool) {
    client.send(&["HELLO", if resp3 { "3" } else { "2" }]);
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut held = 0;
    while let Some(line) = lines.next() {
        let said = line.strip_prefix("> ").unwrap_or_else(|| panic!("nobody asked: {line}"));
        let expected = lines.next().unwrap_or_else(|| panic!("no reply to: {said}"));
        let (two, three) = expected.split_once(" | ").unwrap_or((expected, expected));
        let wanted = if resp3 { three } else { two };
        let got = client.send(&words(said)).to_string();
        assert!(matches(wanted, &got), "{said}\n  wanted {wanted}\n  got    {got}");
        held += 1;
    }
    assert!(held > 0, "an empty conversation");
}

/// Words of a line; `""` is an empty one, `\xNN` a byte.
fn words(line: &str) -> Vec<Vec<u8>> {
    line.split_whitespace()
        .map(|word| {
            let word = if word == "\"\"" { "" } else { word };
            let mut out = Vec::new();
            let mut rest = word;
            while let Some(at) = rest.find("\\x") {
                out.extend(rest[..at].bytes());
                out.push(u8::from_str_radix(&rest[at + 2..at + 4], 16).unwrap());
                rest = &rest[at + 4..];
            }
            out.extend(rest.bytes());
            out
        })
        .collect()
}

/// Whether the text is what was wanted, where `*` stands for anything.
fn matches(wanted: &str, text: &str) -> bool {
    let parts: Vec<&str> = wanted.split('*').collect();
    let [first, middle @ .., last] = &parts[..] else { return wanted == text };
    let Some(mut rest) = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    middle.iter().all(|part| {
        let at = rest.find(part);
        rest = at.map_or("", |at| &rest[at + part.len()..]);
        at.is_some()
    })
}
