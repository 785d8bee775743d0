//! A small web server and a small client, which see every byte: for tests of what is between them.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use tamis::Digest;

/// A message: its first line, its headers, and its body.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) start: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |header: &&(String, String)| header.0.eq_ignore_ascii_case(name);
        self.headers.iter().find(is_it).map(|header| header.1.as_str())
    }

    pub(crate) fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    /// Reads a message; `None` at the end of the stream. An answer to HEAD has no body.
    pub(crate) fn read(from: &mut impl BufRead, has_body: bool) -> io::Result<Option<Self>> {
        let mut message = Self::default();
        let line = |from: &mut dyn BufRead| {
            let mut line = String::new();
            from.read_line(&mut line).map(|bytes| (bytes, line.trim_end().to_owned()))
        };
        let (bytes, start) = line(from)?;
        if bytes == 0 {
            return Ok(None);
        }
        message.start = start;
        loop {
            let (bytes, text) = line(from)?;
            match text.split_once(": ") {
                Some((name, value)) => message.headers.push((name.to_owned(), value.to_owned())),
                None if bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                None => break,
            }
        }
        if !has_body || message.start.contains(" 304 ") {
            return Ok(Some(message));
        }
        if message.header("transfer-encoding").is_some() {
            loop {
                let size = usize::from_str_radix(&line(from)?.1, 16).map_err(io::Error::other)?;
                let start = message.body.len();
                message.body.resize(start + size, 0);
                from.read_exact(&mut message.body[start..])?;
                line(from)?;
                if size == 0 {
                    break;
                }
            }
        } else if let Some(length) = message.header("content-length") {
            message.body = vec![0; length.parse().map_err(io::Error::other)?];
            from.read_exact(&mut message.body)?;
        }
        Ok(Some(message))
    }
}

/// A server whose answers are known.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    /// Requests so far.
    pub(crate) requests: Arc<AtomicU64>,
    /// Connections so far.
    pub(crate) connections: Arc<AtomicU64>,
    /// Keys whose `/KEY.narinfo` is there.
    pub(crate) keys: Arc<RwLock<HashSet<String>>>,
    delay: Duration,
}

/// Bytes that no two lengths share.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| Digest((at / 8) as u64).word(7).to_le_bytes()[at % 8]).collect()
}

impl Origin {
    pub(crate) fn start(delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = Self {
            address: listener.local_addr().expect("an address"),
            requests: Arc::default(),
            connections: Arc::default(),
            keys: Arc::default(),
            delay,
        };
        let server = origin.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                server.connections.fetch_add(1, Ordering::Relaxed);
                thread::spawn(move || server.serve(stream));
            }
        });
        origin
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = Message::read(&mut reader, true)? {
            self.requests.fetch_add(1, Ordering::Relaxed);
            thread::sleep(self.delay);
            let mut answer = Vec::new();
            let is_open = self.answer(&request, &mut answer);
            stream.write_all(&answer)?;
            if !is_open {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Writes the answer; returns whether the connection goes on.
    fn answer(&self, request: &Message, answer: &mut Vec<u8>) -> bool {
        let mut words = request.start.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (mut status, mut extra) = ("200 OK", String::new());
        let mut body = match path.strip_prefix('/').and_then(|path| path.split_once('/')) {
            Some(("bytes", length)) => bytes(length.parse().unwrap_or(0)),
            Some(("chunks", length)) => {
                answer.extend(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
                for chunk in bytes(length.parse().unwrap_or(0)).chunks(1000) {
                    answer.extend(format!("{:x}\r\n", chunk.len()).bytes());
                    answer.extend(chunk);
                    answer.extend(b"\r\n");
                }
                answer.extend(b"0\r\n\r\n");
                return true;
            }
            Some(("cut", length)) => {
                answer
                    .extend(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").bytes());
                answer.extend(bytes(10));
                return false;
            }
            Some(("echo", _)) => request.body.clone(),
            Some(("request", _)) => {
                let headers =
                    request.headers.iter().map(|(name, value)| format!("{name}: {value}"));
                [request.start.clone()]
                    .into_iter()
                    .chain(headers)
                    .collect::<Vec<_>>()
                    .join("\n")
                    .into()
            }
            _ => match path.strip_prefix('/').and_then(|path| path.strip_suffix(".narinfo")) {
                Some(key) if self.keys.read().unwrap().contains(key) => narinfo(key).into(),
                _ if path == "/nix-cache-info" => {
                    b"StoreDir: /nix/store\nWantMassQuery: 1\nPriority: 40\n".to_vec()
                }
                _ => {
                    status = "404 Not Found";
                    b"the origin has no such file\n".to_vec()
                }
            },
        };
        if let Some(range) = request.header("range").and_then(|range| range.strip_prefix("bytes="))
        {
            let (from, to) = range.split_once('-').expect("a range");
            let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
            extra = format!("Content-Range: bytes {from}-{to}/{}\r\n", body.len());
            (status, body) = ("206 Partial Content", body[from..=to].to_vec());
        }
        let length = body.len();
        answer.extend(
            format!("HTTP/1.1 {status}\r\n{extra}Content-Length: {length}\r\n\r\n").bytes(),
        );
        if method != "HEAD" {
            answer.extend(body);
        }
        true
    }
}

/// What a binary cache says of a path.
fn narinfo(key: &str) -> String {
    format!(
        "StorePath: /nix/store/{key}-thing\nURL: nar/{key}.nar\nCompression: none\n\
         NarHash: sha256:{}\nNarSize: 120\nReferences: \n",
        "0".repeat(52)
    )
}

/// A connection that is kept.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        Self { reader: BufReader::new(stream) }
    }

    /// Sends a request as it stands, and reads the answer.
    pub(crate) fn send(&mut self, request: &[u8]) -> io::Result<Message> {
        self.reader.get_mut().write_all(request)?;
        let answer = Message::read(&mut self.reader, !request.starts_with(b"HEAD "))?;
        answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Message> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: gate\r\n\r\n").as_bytes())
    }

    /// What comes until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.reader.read_to_end(&mut rest);
        rest
    }
}
