//! How commands are described for `COMMAND DOCS`: a line such as
//! `key capacity:int [EXPANSION factor:int] [NONSCALING] ITEMS item...`.

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Key,
    Text,
    Integer,
    Double,
    Word,
}

/// One argument of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// The word before it, or the word that it is.
    pub(crate) token: Option<String>,
    pub(crate) class: Type,
    pub(crate) optional: bool,
    pub(crate) multiple: bool,
}

/// The arguments in a line.
pub(crate) fn arguments(line: &str) -> Vec<Argument> {
    let mut found: Vec<Argument> = Vec::new();
    let mut token: Option<String> = None;
    for word in line.split_whitespace() {
        let opens = word.starts_with('[');
        let closes = word.ends_with(']');
        let word = word.trim_matches(['[', ']']);
        let is_token = word.chars().all(|c| c.is_ascii_uppercase());
        if is_token && !(opens && closes) {
            token = Some(word.to_owned());
            continue;
        }
        let multiple = word.ends_with("...");
        let (name, class) = match word.trim_end_matches('.').split_once(':') {
            Some((name, "int")) => (name, Type::Integer),
            Some((name, _)) => (name, Type::Double),
            None if is_token => (word, Type::Word),
            None if word.starts_with("key") => (word.trim_end_matches('.'), Type::Key),
            None => (word.trim_end_matches('.'), Type::Text),
        };
        let own = is_token.then(|| word.to_owned());
        found.push(Argument {
            name: name.to_lowercase(),
            token: own.or(token.take()),
            class,
            optional: closes,
            multiple,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_word_by_word() {
        let found = arguments("key capacity:int [EXPANSION factor:int] [NONSCALING] ITEMS item...");
        let brief: Vec<_> = found
            .iter()
            .map(|one| (&one.name[..], one.token.as_deref(), one.class, one.optional, one.multiple))
            .collect();
        let expected = [
            ("key", None, Type::Key, false, false),
            ("capacity", None, Type::Integer, false, false),
            ("factor", Some("EXPANSION"), Type::Integer, true, false),
            ("nonscaling", Some("NONSCALING"), Type::Word, true, false),
            ("item", Some("ITEMS"), Type::Text, false, true),
        ];
        assert_eq!(brief, expected);
    }
}
