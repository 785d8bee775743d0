//! Numbers in arguments are those that the server takes in commands of its own.
#![allow(missing_docs)]

mod harness;

use harness::{Kind, Resp, Server};

/// Spellings on which programs differ. (Not hexadecimal fractions: servers differ.)
const SPELLINGS: [&str; 44] = [
    "",
    " ",
    "0",
    "00",
    "-0",
    "1",
    "+1",
    "-1",
    "01",
    "-01",
    "1 ",
    " 1",
    "1e2",
    "1e-2",
    "1E-2",
    "1e",
    "1e+",
    "e1",
    "1.",
    ".1",
    ".",
    "-.",
    "0.1f",
    "0,1",
    "1_0",
    "1e400",
    "-1e400",
    "1e-400",
    "-1e-400",
    "0e-400",
    "0.0e999",
    "1e-310",
    "4.9e-324",
    "inf",
    "-inf",
    "+inf",
    "Infinity",
    "infi",
    "nan",
    "NaN",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "99999999999999999999999999",
];

/// Whether the server has taken the number, or has refused it as none.
fn is_taken(reply: &Resp, refusal: &str) -> bool {
    !matches!(reply, Resp::Error(text) if text.starts_with(refusal))
}

#[test]
fn numbers_are_those_of_the_server() {
    for kind in Kind::ALL {
        let server = Server::start(kind, &[]);
        let mut client = server.client();
        for text in SPELLINGS {
            client.send(&["FLUSHALL"]);
            client.send(&["SET", "number", "0"]);
            let theirs = is_taken(&client.send(&["INCRBY", "number", text]), "ERR value is not");
            let ours = is_taken(&client.send(&["BF.RESERVE", "b", "0.1", text]), "ERR bad");
            assert_eq!(ours, theirs, "{kind:?}: {text:?} as a whole number");
            let ours = is_taken(&client.send(&["CF.RESERVE", "c", text]), "Bad capacity");
            assert_eq!(ours, theirs, "{kind:?}: {text:?} as a whole number");
            let theirs = is_taken(&client.send(&["ZADD", "z", text, "x"]), "ERR value is not");
            let ours = is_taken(&client.send(&["BF.RESERVE", "b", text, "0"]), "ERR bad error");
            assert_eq!(ours, theirs, "{kind:?}: {text:?} as a fraction");
        }
    }
}
