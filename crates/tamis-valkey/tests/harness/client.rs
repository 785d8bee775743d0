//! A client for one connection.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Resp {
    Simple(String),
    Error(String),
    Int(i64),
    Double(f64),
    Bool(bool),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Self>),
    Map(Vec<(Self, Self)>),
}

impl Resp {
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    pub fn int(&self) -> i64 {
        match self {
            Self::Int(value) => *value,
            Self::Bool(value) => i64::from(*value),
            other => panic!("not a number: {other}"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            Self::Simple(text) => text.as_bytes(),
            other => panic!("not bytes: {other}"),
        }
    }

    pub fn elements(&self) -> &[Self] {
        match self {
            Self::Array(elements) => elements,
            other => panic!("not an array: {other}"),
        }
    }

    /// The element after this name in a flat map.
    pub fn field(&self, name: &str) -> &Self {
        let elements = self.elements();
        let at = elements.iter().step_by(2).position(|element| element.bytes() == name.as_bytes());
        &elements[2 * at.unwrap_or_else(|| panic!("no {name} in {self}")) + 1]
    }
}

impl fmt::Display for Resp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Double(value) => write!(f, "{value}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Bulk(bytes) => write!(f, "\"{}\"", String::from_utf8_lossy(bytes)),
            Self::Nil => write!(f, "nil"),
            Self::Array(elements) => {
                write!(f, "[")?;
                for (at, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if at == 0 { "" } else { ", " })?;
                }
                write!(f, "]")
            }
            Self::Map(pairs) => {
                write!(f, "{{")?;
                for (at, (name, value)) in pairs.iter().enumerate() {
                    write!(f, "{}{name}: {value}", if at == 0 { "" } else { ", " })?;
                }
                write!(f, "}}")
            }
        }
    }
}

/// A connection.
pub struct Client {
    input: BufReader<TcpStream>,
    output: TcpStream,
}

impl Client {
    pub fn connect(port: u16) -> Self {
        let output = TcpStream::connect(("127.0.0.1", port)).unwrap();
        output.set_nodelay(true).unwrap();
        Self { input: BufReader::new(output.try_clone().unwrap()), output }
    }

    /// Sends a command and waits for the reply.
    pub fn send<A: AsRef<[u8]>>(&mut self, command: &[A]) -> Resp {
        self.try_send(command).expect("the server answers")
    }

    /// Sends a command in words and waits for the reply.
    pub fn say(&mut self, line: &str) -> Resp {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.send(&words)
    }

    /// Sends a command and waits for the reply; `None` if the server is gone.
    pub fn try_send<A: AsRef<[u8]>>(&mut self, command: &[A]) -> Option<Resp> {
        self.output.write_all(&encode(command)).ok()?;
        self.read()
    }

    /// Sends many commands at once, and then reads all replies.
    pub fn pipeline(&mut self, commands: &[Vec<Vec<u8>>]) -> Vec<Resp> {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        self.output.write_all(&bytes).unwrap();
        commands.iter().map(|_| self.read().expect("the server answers")).collect()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.input.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Reads a reply, or a message that was not asked for.
    pub fn read(&mut self) -> Option<Resp> {
        let line = self.line()?;
        let rest = &line[1..];
        let number = || rest.parse::<i64>().unwrap();
        Some(match line.as_bytes()[0] {
            b'+' => Resp::Simple(rest.to_owned()),
            b'-' => Resp::Error(rest.to_owned()),
            b':' => Resp::Int(number()),
            b',' => Resp::Double(rest.parse().unwrap()),
            b'#' => Resp::Bool(rest == "t"),
            b'_' => Resp::Nil,
            b'$' | b'*' if number() < 0 => Resp::Nil,
            b'$' | b'=' => {
                let mut bytes = vec![0; number() as usize + 2];
                self.input.read_exact(&mut bytes).ok()?;
                bytes.truncate(bytes.len() - 2);
                Resp::Bulk(bytes)
            }
            b'*' | b'~' | b'>' => {
                Resp::Array((0..number()).map(|_| self.read()).collect::<Option<_>>()?)
            }
            b'%' => {
                let pair = |_| Some((self.read()?, self.read()?));
                let pairs = rest.parse::<i64>().unwrap();
                Resp::Map((0..pairs).map(pair).collect::<Option<_>>()?)
            }
            _ => panic!("not a reply: {line}"),
        })
    }
}

fn encode<A: AsRef<[u8]>>(command: &[A]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        let argument = argument.as_ref();
        out.extend(format!("${}\r\n", argument.len()).bytes());
        out.extend_from_slice(argument);
        out.extend(b"\r\n");
    }
    out
}
