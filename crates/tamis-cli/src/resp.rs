//! A client of Redis and Valkey, single or in a cluster: RESP2 over TCP, no more than
//! `tamis server` needs. Crates for this bring pools, scripts and runtimes that nothing here uses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Display;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How long a server may take for a part of a reply.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a command is sent elsewhere, or again, before that is an error.
const TRIES: usize = 32;
/// The longest string, and the most elements, that a reply may have: what servers allow.
const LONGEST: i64 = 1 << 32;

/// How deep lists of a reply may be: more is not what our module says.
const DEEPEST: usize = 8;

/// A reply that is no error.
#[derive(Debug)]
pub(crate) enum Reply {
    Int(i64),
    Bytes(Vec<u8>),
    Nothing,
    List(Vec<Reply>),
}

impl Reply {
    /// The element behind this name, in a list of names and values.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let Self::List(elements) = self else { return None };
        let mut pairs = elements.chunks_exact(2);
        let is_it =
            |pair: &&[Self]| matches!(&pair[0], Self::Bytes(word) if word == name.as_bytes());
        pairs.find(is_it).map(|pair| &pair[1])
    }
}

struct Connection {
    input: BufReader<TcpStream>,
    output: TcpStream,
}

impl Connection {
    fn open(address: &str) -> Result<Self> {
        let open = || -> std::io::Result<Self> {
            let output = TcpStream::connect(address)?;
            output.set_nodelay(true)?;
            output.set_read_timeout(Some(PATIENCE))?;
            output.set_write_timeout(Some(PATIENCE))?;
            Ok(Self { input: BufReader::new(output.try_clone()?), output })
        };
        open().with_context(|| format!("cannot reach the server {address}"))
    }

    /// Sends a command. The error of the server is the inner one.
    fn ask(&mut self, command: &[&[u8]]) -> Result<Result<Reply, String>> {
        let mut out = format!("*{}\r\n", command.len()).into_bytes();
        for word in command {
            out.extend(format!("${}\r\n", word.len()).bytes());
            out.extend_from_slice(word);
            out.extend(b"\r\n");
        }
        self.output.write_all(&out)?;
        self.read(DEEPEST)
    }

    /// Reads a reply, in which lists may be `deep` deep.
    fn read(&mut self, deep: usize) -> Result<Result<Reply, String>> {
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        let Some((sort, rest)) = line.trim_end().split_at_checked(1) else {
            bail!("the server has closed the connection");
        };
        let number = || -> Result<i64> {
            let number = rest.parse::<i64>().ok().filter(|number| *number <= LONGEST);
            number.with_context(|| format!("not a reply: {}", line.trim_end()))
        };
        Ok(Ok(match sort {
            "-" => return Ok(Err(rest.to_owned())),
            "+" => Reply::Bytes(rest.as_bytes().to_vec()),
            ":" => Reply::Int(rest.parse()?),
            "$" | "*" if number()? < 0 => Reply::Nothing,
            "$" => {
                let length = number()? as u64;
                let mut bytes = Vec::new();
                self.input.by_ref().take(length + 2).read_to_end(&mut bytes)?;
                if bytes.len() as u64 != length + 2 {
                    bail!("the server has closed the connection");
                }
                bytes.truncate(length as usize);
                Reply::Bytes(bytes)
            }
            "*" if deep > 0 => {
                let mut elements = Vec::new();
                for _ in 0..number()? {
                    match self.read(deep - 1)? {
                        Ok(element) => elements.push(element),
                        Err(error) => return Ok(Err(error)),
                    }
                }
                Reply::List(elements)
            }
            _ => bail!("not a reply: {}", line.trim_end()),
        }))
    }
}

/// Servers that together hold all keys; also one by itself.
pub(crate) struct Cluster {
    connections: HashMap<String, Connection>,
    /// The node that is asked for keys of which nothing is known.
    seed: String,
    /// Where keys were found.
    places: HashMap<String, String>,
}

impl Cluster {
    /// The cluster of which a node has this address.
    pub(crate) fn new(seed: &str) -> Self {
        let seed = seed.to_owned();
        Self { connections: HashMap::new(), seed, places: HashMap::new() }
    }

    /// Sends a command whose first argument is a key to the node that has this key.
    pub(crate) fn ask(&mut self, name: &str, key: &str, rest: &[&[u8]]) -> Result<Reply> {
        let command = [&[name.as_bytes(), key.as_bytes()], rest].concat();
        let mut place = self.places.get(key).unwrap_or(&self.seed).clone();
        let mut asking = false;
        for _ in 0..TRIES {
            let connection = match self.connections.entry(place.clone()) {
                Entry::Occupied(open) => open.into_mut(),
                Entry::Vacant(none) => none.insert(Connection::open(&place)?),
            };
            if asking {
                let _ = connection.ask(&[b"ASKING"])?;
            }
            let error = match connection.ask(&command)? {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            asking = false;
            match error.split(' ').collect::<Vec<_>>()[..] {
                ["MOVED", _, to] => {
                    place = at(to, &place);
                    self.places.insert(key.to_owned(), place.clone());
                }
                ["ASK", _, to] => (place, asking) = (at(to, &place), true),
                ["TRYAGAIN" | "CLUSTERDOWN" | "LOADING", ..] => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                _ => bail!("{name} {key}: {error}"),
            }
        }
        bail!("{name} {key}: no node has this key")
    }
}

/// An address that a node gave; without a host it is the host of that node.
fn at(to: &str, node: &str) -> String {
    match (to.strip_prefix(':'), node.rsplit_once(':')) {
        (Some(port), Some((host, _))) => format!("{host}:{port}"),
        _ => to.to_owned(),
    }
}

/// What a reply should have been.
pub(crate) fn unexpected(what: impl Display) -> anyhow::Error {
    anyhow::anyhow!("the server's reply to {what} is not what the module of this project says")
}
